"""The command line against a moto behind a port: what is printed, what is written, exit codes."""

from __future__ import annotations

import json
import os
import re
import resource
import shlex
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import click
import pytest

import glue_jobs
from controller.cli import main
from controller.cli.call import not_empty
from controller.cli.entry import cli
from controller.cli.running import CONTROLLER_LIMITS, JOB_SETTINGS
from glue_jobs.aws.records import read_record, write_record
from glue_jobs.core.limits import Limits
from glue_jobs.core.paths import lake_folder
from glue_jobs.core.settings import setting_names
from infra.local.embedded import NotStarted
from tests.controller.world import HEAD, LAKE, World, as_json, table_path

ORDERS, STORES = table_path("orders"), table_path("stores")
ORDERS_LAKE = lake_folder(LAKE, ORDERS)
LOAD, CDC = "LOAD00000001.parquet", "20240501-010000000.parquet"
BLOCK = json.dumps({"code": "type-changed", "message": "id was int", "todo": "reload it", "signature": ""})
Dmslake = Callable[..., "Done"]


class Done:
    """A command that ended."""

    def __init__(self, code: int, out: str, err: str) -> None:
        self.code, self.out, self.err = code, out, err

    @property
    def json(self) -> Any:
        return as_json(self.out)


@pytest.fixture
def dmslake(capsys: pytest.CaptureFixture[str]) -> Dmslake:
    """Runs a command line in this process."""

    def run(*words: str) -> Done:
        capsys.readouterr()
        code = main([*words])
        printed = capsys.readouterr()
        return Done(code, printed.out, printed.err)

    return run


def create_jobs(world: World) -> None:
    """The Glue jobs; moto ends their runs at once and runs nothing."""
    for name in ("LoadInitial", "LoadIncremental"):
        world.clients.glue.create_job(Name=name, Role="r", Command={"Name": "glueetl", "ScriptLocation": "s3://x/y.py"})


# --- tables, activate, deactivate


def test_tables_lists_new_ones_with_their_activate_line(served: World, dmslake: Dmslake) -> None:
    """A table found below raw gets an inactive item and is shown with the command that activates it."""
    served.put_raw(ORDERS, LOAD)

    done = dmslake("tables")

    assert done.code == 0
    assert f"dmslake activate {ORDERS} --primary-key" in done.out
    assert "(id is an example)" in done.out
    assert served.item(ORDERS)["ActiveFlag"] == "false"


@pytest.mark.parametrize("words", [("tables",), ("status",), ("plan",), ("run",)], ids=" ".join)
def test_the_line_for_a_table_that_was_kept_up_leaves_its_key(served: World, dmslake: Dmslake, words: tuple[str, ...]) -> None:
    """Pasted, it activates the table and changes nothing else of the item."""
    create_jobs(served)
    served.put_loaded(ORDERS, LOAD, ActiveFlag="false", PrimaryKey="order_no")
    before = served.item(ORDERS)

    (line,) = [line for line in dmslake(*words).out.splitlines() if line.startswith("  dmslake activate")]
    dmslake(*shlex.split(line)[1:])

    assert served.item(ORDERS) == {**before, "ActiveFlag": "true"}


def test_tables_as_json(served: World, dmslake: Dmslake) -> None:
    """One document with every table, loaded, blocked or unreadable."""
    served.put_raw(ORDERS, LOAD)
    served.put_item(STORES, Blocked=BLOCK, Head=HEAD)
    served.put_item(table_path("bad"), ActiveFlag="perhaps")

    tables = {table["path"]: table for table in dmslake("tables", "--output", "json").json["tables"]}

    assert tables[str(ORDERS)]["state"] == "inactive"
    assert tables[str(ORDERS)]["is_new"]
    assert tables[str(STORES)]["state"] == "blocked"
    assert "ActiveFlag" in tables[str(table_path("bad"))]["state"]


def test_tables_without_lake_writes_nothing(served: World, dmslake: Dmslake, monkeypatch: pytest.MonkeyPatch) -> None:
    """An item's out_path is written once, so there is none before the lake is known."""
    monkeypatch.delenv("DMSLAKE_LAKE")
    served.put_raw(ORDERS, LOAD)

    done = dmslake("tables")

    assert (done.code, served.table.get(str(ORDERS))) == (0, None)
    assert "--lake is not set" in done.err


def test_activate_and_deactivate(served: World, dmslake: Dmslake) -> None:
    """The item's attributes change as asked, and the next step is named."""
    served.put_item(ORDERS, ActiveFlag="false", PrimaryKey="null")

    done = dmslake("activate", "shop.orders", "--primary-key", "id, line", "--partition-key", "year(day)")

    assert done.code == 0
    assert f"dmslake run {ORDERS}" in done.out
    item = served.item(ORDERS)
    assert (item["ActiveFlag"], item["PrimaryKey"], item["PartitionKey"]) == ("true", "id,line", "year(day)")

    assert dmslake("deactivate", str(ORDERS)).code == 0
    assert served.item(ORDERS)["ActiveFlag"] == "false"


@pytest.mark.parametrize("name", ["Order Details", "a=b", "a%2Fb+c", 'o\'x "y"', "tick`s", "a.b", "😀"])
def test_a_table_with_a_special_name_is_named_as_it_is(served: World, dmslake: Dmslake, name: str) -> None:
    """By path and by schema.table; what `tables` says to paste activates it, once a shell has read it."""
    path = table_path(name, "my schema")
    served.put_raw(path, LOAD)
    (line,) = [line for line in dmslake("tables").out.splitlines() if "dmslake activate" in line]

    assert dmslake(*shlex.split(line)[1:]).code == 0

    assert (served.item(path)["ActiveFlag"], served.item(path)["PrimaryKey"]) == ("true", "id")
    assert [dmslake("deactivate", text).code for text in (f"s3://{path}", path.name)] == [0, 0]
    assert served.item(path)["ActiveFlag"] == "false"


def test_activate_lifts_a_pause(served: World, dmslake: Dmslake) -> None:
    """The attribute is gone."""
    served.put_item(ORDERS, Paused="rolled back")

    assert dmslake("activate", "orders").code == 0
    assert "Paused" not in served.item(ORDERS)


def test_activate_as_json(served: World, dmslake: Dmslake) -> None:
    """What was set, for programs."""
    served.put_item(ORDERS, ActiveFlag="false")

    assert dmslake("activate", str(ORDERS), "--output", "json").json["set"] == {"ActiveFlag": "true"}


@pytest.mark.parametrize(
    "words", [("activate", "nowhere", "--primary-key", "id"), ("activate", "raw-bucket/dms/shop/nowhere"), ("deactivate", "x")]
)
def test_an_unknown_table_is_refused(served: World, dmslake: Dmslake, words: tuple[str, ...]) -> None:
    """A misspelled table makes no item."""
    served.put_item(ORDERS)

    done = dmslake(*words)

    assert done.code == 2
    assert "dmslake tables" in done.err
    assert done.out == ""


# --- plan and run


def test_plan_is_run_dry_run_and_writes_nothing(served: World, dmslake: Dmslake) -> None:
    """Both print the same; a new table is shown and no item made for it."""
    served.put_raw(ORDERS, LOAD)
    served.put_raw(STORES, LOAD)
    served.put_item(STORES)

    plan, dry = dmslake("plan", "--output", "json"), dmslake("run", "--dry-run", "--output", "json")

    assert plan.code == dry.code == 0
    assert plan.json == dry.json
    assert [(table["path"], table["action"], table["run"]) for table in plan.json["tables"]] == [
        (str(ORDERS), "inactive", None),
        (str(STORES), "load", 1),
    ]
    assert plan.json["runs"] == [{"run": 1, "job": "LoadInitial", "paths": [str(STORES)], "pending_bytes": 100}]
    assert served.table.get(str(ORDERS)) is None


def test_plan_for_people(served: World, dmslake: Dmslake) -> None:
    """A row per table, the blocked one's way out, the inactive one's activate line."""
    served.put_raw(ORDERS, LOAD, "notes.txt")
    served.put_item(ORDERS)
    served.put_item(STORES, ActiveFlag="false")

    done = dmslake("plan")

    assert done.code == 0
    assert "--skip-file notes.txt" in done.out
    assert f"dmslake activate {STORES}" in done.out
    assert "0 run(s)" in done.out


def test_run_starts_what_plan_shows(served: World, dmslake: Dmslake) -> None:
    """The runs that a plan lists are those that are started; a run without a result is exit code 1 with a reason."""
    create_jobs(served)
    served.put_raw(ORDERS, LOAD)
    served.put_item(ORDERS)
    plan = dmslake("plan", "--output", "json").json

    done = dmslake("run", "--output", "json")

    assert done.code == done.json["exit_code"] == 1
    (table,) = done.json["tables"]
    assert (table["path"], table["action"], table["error"]["code"]) == (str(ORDERS), plan["tables"][0]["action"], "no-result")
    runs = served.clients.glue.get_job_runs(JobName="LoadInitial")["JobRuns"]
    assert [run["Arguments"]["--path"] for run in runs] == [",".join(plan["runs"][0]["paths"])]


def test_run_with_nothing_to_do_is_fine(served: World, dmslake: Dmslake) -> None:
    """Up to date, inactive and paused tables: exit code 0, and the activate line."""
    served.put_loaded(ORDERS, LOAD)
    served.put_raw(STORES, LOAD)
    served.put_item(table_path("held"), Paused="rolled back")

    done = dmslake("run")

    assert done.code == 0
    assert f"dmslake activate {STORES}" in done.out


def test_run_of_no_table_warns(served: World, dmslake: Dmslake) -> None:
    """No table below raw: exit code 0 and a warning that names bucket, prefix and what to check in DMS."""
    done = dmslake("run")

    assert done.code == 0
    for words in ("raw-bucket", "dms/", "BucketFolder"):
        assert words in done.err


def test_run_with_a_blocked_table_is_1(served: World, dmslake: Dmslake) -> None:
    """The message and the way out are shown."""
    served.put_loaded(ORDERS, LOAD, Blocked=BLOCK)

    done = dmslake("run")

    assert done.code == 1
    assert "id was int" in done.out
    assert "what to do: reload it" in done.out


def test_run_with_a_held_lease_is_4(served: World, dmslake: Dmslake) -> None:
    """Another run works on the only table."""
    create_jobs(served)
    served.put_raw(ORDERS, LOAD)
    served.put_item(ORDERS, LeaseOwner="another")

    assert dmslake("run").code == 4


def test_run_without_the_jobs_is_3(served: World, dmslake: Dmslake) -> None:
    """The jobs were never deployed: configuration."""
    served.put_raw(ORDERS, LOAD)
    served.put_item(ORDERS)

    done = dmslake("run")

    assert done.code == 3
    assert "LoadInitial" in done.out


def test_run_of_one_table(served: World, dmslake: Dmslake) -> None:
    """Only the named tables are looked at."""
    served.put_loaded(ORDERS, LOAD)
    served.put_loaded(STORES, LOAD, Blocked=BLOCK)

    done = dmslake("run", "shop.orders", "--output", "json")

    assert (done.code, [table["path"] for table in done.json["tables"]]) == (0, [str(ORDERS)])


# --- status


def test_status_shows_lag_and_pending(served: World, dmslake: Dmslake) -> None:
    """For programs: numbers per table."""
    served.put_loaded(ORDERS, LOAD, CDC)
    served.put_raw(ORDERS, "20240501-020000000.parquet")

    done = dmslake("status", "--output", "json")

    (table,) = done.json["tables"]
    assert (table["state"], table["lag_seconds"], table["pending_files"], table["rows"], table["files"]) == ("behind", 3600, 1, 10, 1)
    assert done.code == 0


def test_status_check(served: World, dmslake: Dmslake) -> None:
    """0 while all is well or within the bound, 1 where a table is behind or blocked."""
    served.put_loaded(ORDERS, LOAD, CDC)
    assert dmslake("status", "--check").code == 0

    served.put_raw(ORDERS, "20240501-020000000.parquet")
    assert dmslake("status", "--check").code == 1
    assert dmslake("status", "--check", "--max-lag", "7200").code == 0

    served.put_loaded(STORES, LOAD, Blocked=BLOCK)
    done = dmslake("status", "--check", "--max-lag", "7200")
    assert done.code == 1
    assert str(STORES) in done.err
    assert "what to do: reload it" in done.out


@pytest.mark.parametrize(
    "words",
    [
        ("status", "--check"),
        ("status", str(ORDERS), "--check"),
        ("verify", "--quick"),
        ("verify", str(ORDERS), "--quick"),
        ("rollback", "--all", "--to", "2024-05-01T12:00:00Z"),
        ("rollback", str(ORDERS), "--to", "previous"),
    ],
    ids=" ".join,
)
def test_a_check_without_a_state_table_is_3(served: World, dmslake: Dmslake, words: tuple[str, ...]) -> None:
    """A wrong name or region does not pass for tables that are well."""
    done = dmslake(*words, "--state-table", "nowhere")

    assert (done.code, done.out) == (3, "")
    for said in ("no DynamoDB table nowhere", "--state-table", "AWS_REGION"):
        assert said in done.err


@pytest.mark.parametrize("words", [("plan",), ("status",)], ids=" ".join)
def test_a_look_before_the_first_run_needs_no_state_table(served: World, dmslake: Dmslake, words: tuple[str, ...]) -> None:
    """It shows what is there for it."""
    served.put_raw(ORDERS, LOAD)

    done = dmslake(*words, "--state-table", "nowhere")

    assert (done.code, str(ORDERS) in done.out) == (0, True)


@pytest.mark.parametrize("words", [("status", "--check"), ("verify", "--quick")], ids=" ".join)
def test_a_check_of_no_table_at_all_is_3(served: World, dmslake: Dmslake, words: tuple[str, ...]) -> None:
    """A table that only lies in the raw folder is none yet; one that nobody keeps up is enough."""
    served.put_raw(ORDERS, LOAD)
    done = dmslake(*words)
    served.put_item(ORDERS, ActiveFlag="false")

    assert (done.code, done.out) == (3, "")
    for said in (f"the state table {served.table.name} has no item", "--state-table", "AWS_REGION", "`dmslake tables`"):
        assert said in done.err
    assert dmslake(*words).code == 0


@pytest.mark.parametrize("words", [("verify", "--quick"), ("verify", "--quick", "--repair")], ids=" ".join)
def test_a_check_of_no_table_below_raw_is_3(served: World, dmslake: Dmslake, words: tuple[str, ...]) -> None:
    """The tables may be another installation's, and a repair would write: they are not checked instead."""
    served.put_item(ORDERS)

    done = dmslake(*words, "--raw", "s3://raw-bucket/elsewhere/")

    assert (done.code, done.out) == (3, "")
    for said in (f"no item of the state table {served.table.name}", "below --raw s3://raw-bucket/elsewhere/", "or name the tables"):
        assert said in done.err
    assert dmslake(*words, str(ORDERS), "--raw", "s3://raw-bucket/elsewhere/").code != 3


def test_a_rollback_of_all_tables_where_there_is_none_is_a_wrong_call(served: World, dmslake: Dmslake) -> None:
    """Nothing went back, and that is said."""
    served.put_item(ORDERS)
    before = served.item(ORDERS)

    done = dmslake("rollback", "--all", "--to", "2024-05-01T12:00:00Z")

    assert (done.code, done.out, served.item(ORDERS)) == (2, "", before)
    for said in ("--all means no table", "1 item(s)", served.table.name, "--raw s3://raw-bucket/dms/"):
        assert said in done.err


def test_status_shows_the_last_runs_error(served: World, dmslake: Dmslake) -> None:
    """A table that failed without being blocked says why."""
    served.put_loaded(ORDERS, LOAD)
    served.write_result(str(ORDERS), "run-1", "failed", error={"code": "x", "message": "out of memory", "todo": "a larger worker"})

    done = dmslake("status")

    assert "out of memory" in done.out
    assert "a larger worker" in done.out


def test_status_shows_why_a_change_is_unfinished(served: World, dmslake: Dmslake) -> None:
    """The last run's warnings; of a table on which nothing is left to do they are not repeated."""
    served.put_loaded(ORDERS, LOAD, CatalogPending=HEAD)
    served.put_loaded(STORES, LOAD)
    for path in (ORDERS, STORES):
        served.write_result(str(path), "run-1", "committed", warnings=["Lake Formation refuses"])

    out = dmslake("status").out

    assert f"warning: {ORDERS}: Lake Formation refuses" in out
    assert out.count("Lake Formation") == 1


def test_status_of_a_full_path_finds_the_table_that_has_its_name(served: World, dmslake: Dmslake) -> None:
    """What the report of all tables prints can be pasted, and says the same."""
    served.put_loaded(ORDERS, LOAD)
    served.put_loaded(STORES, LOAD, CatalogTable="shop_orders")

    for words in (("status", "--check"), ("status", str(ORDERS), "--check"), ("status", "shop.orders", "--check")):
        done = dmslake(*words)
        assert (done.code, "the catalog table shop_orders would be written by" in done.out) == (1, True), words
    assert "blocked" in dmslake("plan", str(ORDERS)).out
    served.table.set_attributes(str(STORES), {"out_path": str(served.item(ORDERS)["out_path"]), "CatalogTable": "other"})
    assert "the lake folder" in dmslake("status", str(ORDERS)).out


def test_status_writes_nothing(served: World, dmslake: Dmslake) -> None:
    """A new table is shown, its item is not made."""
    served.put_raw(ORDERS, LOAD)

    assert str(ORDERS) in dmslake("status").out
    assert served.table.get(str(ORDERS)) is None


# --- requests


@pytest.mark.parametrize(
    ("words", "request_text"),
    [
        (("reload",), "reload"),
        (("widen",), "widen"),
        (("repartition",), "repartition"),
        (("schema", "--accept"), "schema-accept"),
        (("schema", "--rename", "name=title"), "schema-rename:name=title"),
    ],
)
def test_requests_are_written(served: World, dmslake: Dmslake, words: tuple[str, ...], request_text: str) -> None:
    """The attribute Request is set, nothing else; the next command is named."""
    code = {"widen": "widening-needs-a-word", "schema-accept": "rename-or-drop-and-add"}.get(request_text, "type-changed")
    served.put_loaded(ORDERS, LOAD, Blocked=json.dumps({**json.loads(BLOCK), "code": code}))
    before = served.item(ORDERS)

    done = dmslake(words[0], str(ORDERS), *words[1:])

    assert done.code == 0
    assert f"dmslake run {ORDERS}" in done.out
    assert served.item(ORDERS) == {**before, "Request": request_text}


def test_repartition_sets_the_key(served: World, dmslake: Dmslake) -> None:
    """PartitionKey and request together."""
    served.put_loaded(ORDERS, LOAD)

    dmslake("repartition", str(ORDERS), "--partition-key", "month(name) as month")

    assert (served.item(ORDERS)["PartitionKey"], served.item(ORDERS)["Request"]) == ("month(name) as month", "repartition")


def test_repartition_by_no_column_of_the_table_is_refused(served: World, dmslake: Dmslake) -> None:
    """At once, with the columns that it has; the item stays."""
    served.put_loaded(ORDERS, LOAD)
    before = served.item(ORDERS)

    done = dmslake("repartition", str(ORDERS), "--partition-key", "nosuch")

    assert (done.code, served.item(ORDERS)) == (2, before)
    assert "names the column 'nosuch'" in done.err
    assert "id, name" in done.err


@pytest.mark.parametrize(
    "words",
    [
        ("activate", "PATH", "--primary-key", ""),
        ("activate", "PATH", "--partition-key", " "),
        ("repartition", "PATH", "--partition-key", ""),
        ("adopt", "PATH", "--primary-key", ""),
        ("adopt", "PATH", "--partition-key", ""),
        ("adopt", "PATH", "--load-date", ""),
        ("create", "shop.made", "--schema", "id int", "--primary-key", ""),
        ("create", "shop.made", "--schema", "id int", "--partition-key", ""),
        ("read", "PATH", "--as-of", ""),
        ("read", "PATH", "--where", " "),
        ("read", "PATH", "--columns", ""),
        ("read", "PATH", "--history", "--at", ""),
        ("diff", "PATH", "", HEAD),
        ("diff", "PATH", HEAD, ""),
        ("show", "PATH", HEAD, "--rows", ""),
        ("erase", "PATH", "--keys", "k.csv", "--key", ""),
        ("erase", "PATH", "--keys", "k.csv", "--list", ""),
        ("apply", "PATH", "--key", "id", "--deletes", "", "--updates", "u.csv"),
        ("rollback", "PATH", "--to", "", "--undo", HEAD),
        ("reapply", "PATH", ""),
        ("run", ""),
        ("run", "PATH", " , "),
        ("run", "\r"),
        ("reapply", "PATH", "\r"),
        ("run", "", "--dry-run"),
        ("plan", ""),
        ("verify", "", "--repair"),
        ("status", ""),
        ("watch", ""),
        ("rollback", "", "--to", HEAD),
        ("snapshot", "orders", "--sources", ""),
        ("snapshot", "orders", "--path", "s3://raw-bucket/dms/shop/orders/", "--to", ""),
        ("generate-feed", "PATH", "--staging", "s", "--as-of", ""),
        ("generate-feed", "", "--staging", "s"),
        ("feed", "--to", "things", "--layout", ""),
        ("feed", "--to", "things", "--truth", ""),
        ("fake", "PATH", "--rows", "1", "--out", ""),
        ("insert", "PATH", "--row", '{"id": 7}', "--rows", ""),
        ("deploy", "--stack", "dmslake", "--artifacts", "s3://bucket/dmslake/", "--label", ""),
        ("build", ""),
        ("up", "--folder", ""),
        ("capture", "--mysql", "mysql://user@host/shop", "--tables", ""),
        ("capture", "--mysql", "mysql://user@host/shop", "--timestamp-column", ""),
        ("run", "PATH", "--lake", ""),
        ("run", "PATH", "--batch-files", ""),
        ("--state-table", "", "status", "--check"),
    ],
    ids=" ".join,
)
def test_an_empty_value_is_no_answer(served: World, dmslake: Dmslake, words: tuple[str, ...]) -> None:
    """A variable that is not set would take a key away, or ask for something else: the call is wrong, and nothing is changed."""
    served.put_loaded(ORDERS, LOAD, PartitionKey="name")
    before = served.item(ORDERS)

    done = dmslake(*(str(ORDERS) if word == "PATH" else word for word in words))

    assert (done.code, done.out, served.item(ORDERS)) == (2, "", before)
    assert " is empty" in done.err


# A key can be an empty text, a feed can be without timestamp column. Where an option may be repeated, what reads its texts refuses an empty
# one, and click finds no file of that name.
MAY_BE_EMPTY = frozenset(
    {
        "read --key", "feed --timestamp-column",
        "read --sum", "schema --rename", "unblock --skip-file", "adopt --column", "deploy --parameter",
        "insert --row", "update --row", "delete --row",
        "deploy --template",
    }
)  # fmt: skip


def test_every_text_that_is_empty_is_refused() -> None:
    """A new option or argument must be given, has the callback that refuses it, or stands above; --job-prefix has a test of its own."""
    free = {
        f"{name} {each.opts[0]}"
        for name, command in {"": cli, **cli.commands}.items()
        for each in command.params
        if isinstance(each.type, (click.Path, click.types.StringParamType)) and not getattr(each, "is_flag", False)
        if not each.required and each.callback is not not_empty and each.name != "job_prefix"
    }

    assert free == MAY_BE_EMPTY


def test_an_empty_job_prefix_is_no_prefix(dmslake: Dmslake, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before the command and after it: an installation has none, whatever the shell is set to."""
    monkeypatch.setenv("DMSLAKE_JOB_PREFIX", "dms-")

    def prefix(*words: str) -> str:
        (row,) = [row for row in dmslake(*words, "--output", "json").json["settings"] if row["setting"] == "job_prefix"]
        return str(row["value"])

    told = [prefix("settings"), prefix("settings", "--job-prefix", ""), prefix("--job-prefix", "", "settings")]
    assert told == ["dms-", "", ""]
    assert prefix("--job-prefix", "own-", "settings", "--job-prefix", "") == ""


@pytest.mark.parametrize("words", [("read",), ("read", "--history"), ("history",), ("diff", HEAD)], ids=" ".join)
def test_a_limit_beyond_all_numbers_is_a_wrong_call(dmslake: Dmslake, words: tuple[str, ...]) -> None:
    """Nothing could count so far."""
    done = dmslake(words[0], str(ORDERS), *words[1:], "--limit", "99999999999999999999")

    assert (done.code, "'--limit'" in done.err, "defect" in done.err) == (2, True, False)


def test_run_option_runs_the_table(served: World, dmslake: Dmslake) -> None:
    """`reload --run` starts the job and answers with the run's report."""
    create_jobs(served)
    served.put_loaded(ORDERS, LOAD)

    done = dmslake("reload", str(ORDERS), "--run", "--output", "json")

    assert done.json["tables"][0]["action"] == "reload-waits"
    assert done.json["report"] == 1
    assert "will be loaded again" in done.err


def test_schema_shows_columns(served: World, dmslake: Dmslake) -> None:
    """Names and types of the lake table."""
    served.put_loaded(ORDERS, LOAD)

    done = dmslake("schema", "orders", "--output", "json")

    assert done.json["columns"] == [{"name": "id", "type": "int"}, {"name": "name", "type": "string"}]


def test_schema_of_an_unloaded_table(served: World, dmslake: Dmslake) -> None:
    """There are none yet, which is no error."""
    served.put_item(ORDERS)

    done = dmslake("schema", "orders")

    assert (done.code, "never loaded" in done.out) == (0, True)


def test_schema_takes_one_answer(served: World, dmslake: Dmslake) -> None:
    """--accept and --rename exclude each other, as two renames do; a column that isn't there can't be renamed."""
    served.put_loaded(ORDERS, LOAD)
    before = served.item(ORDERS)

    assert dmslake("schema", "orders", "--accept", "--rename", "a=b").code == 2
    assert dmslake("schema", "orders", "--rename", "missing=b").code == 2
    assert dmslake("schema", "orders", "--rename", "id=number", "--rename", "name=title").code == 2
    assert dmslake("schema", "orders", "--rename", "").code == 2
    assert served.item(ORDERS) == before


def test_schema_of_a_damaged_history(served: World, dmslake: Dmslake) -> None:
    """A record that is gone is said, with exit code 1."""
    served.put_item(ORDERS, Head=HEAD)

    done = dmslake("schema", "orders")

    assert (done.code, HEAD in done.err) == (1, True)


def test_unblock(served: World, dmslake: Dmslake) -> None:
    """The block goes, the skipped file stays written."""
    served.put_loaded(ORDERS, LOAD, Blocked=BLOCK)

    done = dmslake("unblock", "orders", "--skip-file", "notes.txt", "--skip-file", "more.txt")

    assert done.code == 0
    assert "id was int" in done.out
    item = served.item(ORDERS)
    assert ("Blocked" in item, item["SkipFiles"]) == (False, "notes.txt,more.txt")


def test_recover(served: World, dmslake: Dmslake) -> None:
    """An item that was deleted gets its head back from the change records; a dry run only says so."""
    served.put_raw(ORDERS, LOAD)
    served.put_loaded(ORDERS, LOAD)
    served.clients.s3.put_object(Bucket="lake-bucket", Key="lake/shop/orders/data.parquet", Body=b"rows")
    served.table.set_attributes(str(ORDERS), {}, ("Head", "Fence"))

    dry = dmslake("recover", "orders", "--dry-run")
    before = served.item(ORDERS)
    done = dmslake("recover", "orders", "--output", "json")

    assert (dry.code, done.code) == (0, 0)
    assert HEAD in dry.out
    assert "Head" not in before
    assert (done.json["head"], done.json["changed"]) == (HEAD, True)
    assert served.item(ORDERS)["Head"] == HEAD
    assert "nothing to recover" in dmslake("recover", "orders").out


def test_recover_of_a_table_that_was_rolled_back(served: World, dmslake: Dmslake) -> None:
    """It says that the table waits, and for which command."""
    served.put_loaded(ORDERS, LOAD)
    rollback = replace(read_record(served.clients.s3, ORDERS_LAKE, HEAD), kind="rollback", target=HEAD)
    write_record(served.clients.s3, ORDERS_LAKE, rollback)
    served.clients.s3.put_object(Bucket="lake-bucket", Key="lake/shop/orders/data.parquet", Body=b"rows")
    served.table.set_attributes(str(ORDERS), {}, ("Head", "Fence"))

    dry = dmslake("recover", "orders", "--dry-run")
    done = dmslake("recover", "orders")

    assert "it would be paused" in dry.out
    assert f"it is paused: recovered at the rollback {HEAD}; `dmslake activate {ORDERS}` goes on with new files" in done.out


def test_recover_without_records(served: World, dmslake: Dmslake) -> None:
    """There is nothing to recover a table from that was never loaded."""
    served.put_item(ORDERS)

    assert dmslake("recover", "orders").code == 2


def test_a_command_on_an_unreadable_item(served: World, dmslake: Dmslake) -> None:
    """The attribute is named."""
    served.put_item(ORDERS, ActiveFlag="perhaps")

    done = dmslake("reload", str(ORDERS))

    assert (done.code, "ActiveFlag" in done.err) == (1, True)


def test_an_option_that_glue_jobs_do_not_take_is_warned_of(served: World, dmslake: Dmslake) -> None:
    """They get a path and a run id; processes on this machine get the settings too."""
    by_glue = dmslake("run", "--compression", "snappy")
    by_this_machine = dmslake("run", "--compression", "snappy", "--runner", "local")

    assert (by_glue.code, "--compression: Glue jobs take this" in by_glue.err) == (0, True)
    assert (by_this_machine.code, "Glue jobs take this" in by_this_machine.err) == (0, False)


def test_a_variable_that_glue_jobs_do_not_take_is_warned_of(served: World, dmslake: Dmslake, monkeypatch: pytest.MonkeyPatch) -> None:
    """As the option; what the controller heeds itself is not spoken of."""
    monkeypatch.setenv("DMSLAKE_TABLES_AT_ONCE", "8")
    monkeypatch.setenv("DMSLAKE_PACKED_RUN_TABLES", "50")

    done = dmslake("run", "--driver-bytes", "0")

    assert "--driver-bytes, DMSLAKE_TABLES_AT_ONCE: Glue jobs take this from their default arguments (--driver_bytes), not" in done.err


def test_each_limit_is_the_jobs_or_the_controllers() -> None:
    """What no code of the jobs reads is the controller's own; of all else a warning says that Glue jobs are not told."""
    code = "\n".join(file.read_text() for file in Path(glue_jobs.__file__).parent.rglob("*.py") if file.name != "limits.py")

    names = {item.name for item in fields(Limits)}

    assert {name for name in names if re.search(rf"\b{name}\b", code)} == names - CONTROLLER_LIMITS
    assert {"compression", *names} - CONTROLLER_LIMITS == JOB_SETTINGS


# --- settings, errors, start-up


def test_settings_lists_every_setting(dmslake: Dmslake, monkeypatch: pytest.MonkeyPatch) -> None:
    """Value by flag before variable before default, with its names."""
    monkeypatch.setenv("DMSLAKE_BATCH_FILES", "7")
    monkeypatch.setenv("DMSLAKE_LAKE", "s3://from-variable/")

    rows = {row["setting"]: row for row in dmslake("settings", "--lake", "s3://from-flag/", "--output", "json").json["settings"]}

    assert set(rows) == set(setting_names())
    assert (rows["batch_files"]["value"], rows["batch_files"]["default"]) == (7, Limits().batch_files)
    assert rows["lake"]["value"] == "s3://from-flag/"
    assert rows["state_table"]["option"] == "--state-table"
    assert rows["state_table"]["variable"] == "DMSLAKE_STATE_TABLE"


def test_options_before_and_after_the_command(dmslake: Dmslake) -> None:
    """Both places are taken, the one after the command wins."""
    rows = dmslake("--output", "json", "--batch-files", "5", "--batch-bytes", "9", "settings", "--batch-files", "6").json["settings"]

    values = {row["setting"]: row["value"] for row in rows}
    assert (values["batch_files"], values["batch_bytes"]) == (6, 9)


def test_every_command_has_every_setting() -> None:
    """No command that reads settings lacks one, limits included."""
    for name, command in cli.commands.items():
        if name in ("demo", "up"):
            continue
        assert set(setting_names()) <= {option.name for option in command.params}, name


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("nonsense",), 2, "nonsense"),
        (("activate",), 2, "PATH"),
        (("status", "--max-lag", "x"), 2, "max-lag"),
        (("run", "--runner", "moon"), 2, "moon"),
        (("run", "--batch-files", "-1"), 2, "batch_files"),
        (("plan", "--raw", "raw-bucket"), 2, "s3://"),
        (("plan",), 3, "--raw"),
        (("plan", "--raw", "s3://raw-bucket/", "--lake", "s3://lake-bucket/", "--runner", "local"), 3, "--database"),
    ],
)
def test_wrong_calls(dmslake: Dmslake, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], code: int, said: str) -> None:
    """2 for a wrong call, 3 for a missing setting; the message is on stderr and says what to give."""
    for name in setting_names():
        monkeypatch.delenv(f"DMSLAKE_{name.upper()}", raising=False)
    monkeypatch.setenv("AWS_REGION", "us-east-1")

    done = dmslake(*words)

    assert done.code == code
    assert said in done.err
    assert done.out == ""


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("DMSLAKE_RAW", "s3://no-such-bucket/dms/", "NoSuchBucket"),
        ("AWS_PROFILE", "nobody-has-this", "nobody-has-this"),
        ("AWS_ENDPOINT_URL_DYNAMODB", "http://127.0.0.1:1", "127.0.0.1:1"),
    ],
)
def test_configuration_errors_are_3(
    served: World, dmslake: Dmslake, monkeypatch: pytest.MonkeyPatch, name: str, value: str, said: str
) -> None:
    """A missing bucket, an unknown profile, an endpoint where nobody listens."""
    monkeypatch.setattr("glue_jobs.aws.clients.Clients.max_attempts", 1)
    monkeypatch.setenv(name, value)

    done = dmslake("status")

    assert done.code == 3
    assert said in done.err


def test_an_unversioned_lake_bucket_is_3(served: World, dmslake: Dmslake) -> None:
    """The command that switches versioning on is shown."""
    served.clients.s3.create_bucket(Bucket="plain-bucket")

    done = dmslake("plan", "--lake", "s3://plain-bucket/lake/")

    assert (done.code, "put-bucket-versioning" in done.err) == (3, True)


def test_an_unexpected_error_is_short_unless_asked(dmslake: Dmslake, monkeypatch: pytest.MonkeyPatch) -> None:
    """One text without a traceback; --debug shows it."""

    def defect(*_: Any) -> None:
        raise ZeroDivisionError("a defect")

    monkeypatch.setattr(cli.commands["settings"], "invoke", defect)

    short, long = dmslake("settings"), dmslake("--debug", "settings")

    assert short.code == long.code == 1
    assert "a defect" in short.err
    assert "Traceback" not in short.err
    assert "Traceback" in long.err


@pytest.mark.parametrize("error", [KeyboardInterrupt, EOFError])
def test_ctrl_c_is_130(dmslake: Dmslake, monkeypatch: pytest.MonkeyPatch, error: type[BaseException]) -> None:
    """As a shell would have it."""

    def interrupted(*_: Any) -> None:
        raise error

    monkeypatch.setattr(cli.commands["settings"], "invoke", interrupted)

    assert dmslake("settings").code == 130


@pytest.mark.parametrize("words", [("settings",), ("settings", "--output", "json"), ("--help",), ("run", "--help")])
@pytest.mark.parametrize("with_errors", [False, True], ids=["stdout", "both"])
def test_a_reader_that_has_gone_is_no_failure(words: tuple[str, ...], with_errors: bool) -> None:
    """As of `dmslake settings | head -1`: exit code 0, and nothing is said; nor where stderr is the same pipe."""
    reader, writer = os.pipe()
    os.close(reader)

    done = subprocess.run(
        [sys.executable, "-m", "controller.cli", *words],
        stdout=writer, stderr=writer if with_errors else subprocess.PIPE, text=True, check=False, timeout=60,
    )  # fmt: skip
    os.close(writer)

    assert (done.returncode, done.stderr or "") == (0, "")


def in_a_process(
    *words: str, stdout: Any = subprocess.PIPE, stderr: Any = subprocess.PIPE, shell: str = "", **variables: str
) -> subprocess.CompletedProcess[bytes]:
    """A command line with a stdout of its own. shell: a redirection that a shell does before."""
    words = (sys.executable, "-m", "controller.cli", *words)
    line = ["sh", "-c", f"exec {shlex.join(words)} {shell}"]
    environment = {**os.environ, **variables}
    return subprocess.run(line, stdout=stdout, stderr=stderr, env=environment, check=False, timeout=60)


@pytest.fixture
def unread() -> Iterator[int]:
    """The end of a pipe that nobody reads from."""
    reader, writer = os.pipe()
    os.close(reader)
    yield writer
    os.close(writer)


@pytest.mark.parametrize(
    "words", [("run",), ("status", "--check"), ("status", "--check", "--output", "json"), ("verify", "--quick")], ids=" ".join
)
def test_a_failure_is_one_though_nobody_reads_the_answer(served: World, unread: int, words: tuple[str, ...]) -> None:
    """As of `dmslake run | head -1`: the exit code is that of what was done, and stderr says no more and no less."""
    served.put_loaded(ORDERS, LOAD, Blocked=BLOCK)

    heard, unheard = in_a_process(*words), in_a_process(*words, stdout=unread)

    assert heard.returncode != 0
    assert (unheard.returncode, unheard.stderr) == (heard.returncode, heard.stderr)


def test_a_run_is_waited_for_though_nobody_reads_its_messages(served: World, unread: int) -> None:
    """As of `dmslake run 2>&1 >report | head -1`: it is started, and the report has it."""
    create_jobs(served)
    served.put_raw(ORDERS, LOAD)
    served.put_item(ORDERS)

    done = in_a_process("run", "--output", "json", stderr=unread)

    assert done.returncode == as_json(done.stdout.decode())["exit_code"] == 1
    assert len(served.clients.glue.get_job_runs(JobName="LoadInitial")["JobRuns"]) == 1


@pytest.mark.parametrize("words", [("settings",), ("settings", "--output", "json")], ids=" ".join)
def test_an_answer_that_can_not_be_printed_is_no_crash(words: tuple[str, ...]) -> None:
    """Of a full disk: what was done stands, which is said; exit code 3, not that of a defect or of a table that failed."""
    with open("/dev/full", "wb") as full:
        done = in_a_process(*words, stdout=full)

    first, *rest = done.stderr.decode().splitlines()
    assert (done.returncode, len(rest)) == (3, 1), done.stderr
    assert first.startswith("dmslake: the answer could not be printed: ")
    assert first.endswith("; what was done stands")


@pytest.mark.parametrize("words", [("settings",), ("settings", "--output", "json")], ids=" ".join)
def test_a_closed_output_is_no_crash(words: tuple[str, ...]) -> None:
    """As of `dmslake settings >&-`: nobody wants the answer."""
    done = in_a_process(*words, shell=">&-")

    assert (done.returncode, done.stderr) == (0, b"")


def test_a_locale_without_the_characters_of_an_answer_is_no_crash() -> None:
    """People see them escaped; JSON is UTF-8 whatever the locale, and reads back."""
    words = ("settings", "--raw", "s3://bucket/gr\u00f6\u2212\U0001f600/")
    people = in_a_process(*words, PYTHONIOENCODING="latin-1")
    programs = in_a_process(*words, "--output", "json", PYTHONIOENCODING="latin-1")

    assert (people.returncode, people.stderr, programs.returncode, programs.stderr) == (0, b"", 0, b"")
    assert "s3://bucket/gr\u00f6\\u2212\\U0001f600/" in people.stdout.decode("latin-1")
    assert words[2] in [setting["value"] for setting in json.loads(programs.stdout.decode("utf-8"))["settings"]]


def test_help_and_version(dmslake: Dmslake) -> None:
    """Both are fine, and help names every command; limits don't fill it."""
    done = dmslake("--help")

    assert done.code == 0
    assert all(name in done.out for name in cli.commands)
    assert "--batch-files" not in done.out
    assert dmslake("--version").out.startswith("dmslake")


def test_output_of_a_pipe_is_plain(served: World, dmslake: Dmslake) -> None:
    """One line per table, no frames and no wrapping, however long the path."""
    path = table_path("a" * 150)
    served.put_item(path, ActiveFlag="false")

    lines = dmslake("tables").out.splitlines()

    assert lines[1].startswith(f"{path}  inactive")


def test_read_only_commands_start_fast_and_load_no_spark() -> None:
    """`status` loads neither Spark nor Arrow nor moto, nor the code of the embedded AWS."""
    names = ["pyspark", "pyarrow", "moto", "duckdb", "infra", "glue_jobs.spark"]
    code = f"import sys, controller.cli.entry; print([name for name in {names} if name in sys.modules])"

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)

    assert done.stdout.strip() == "[]"


def test_status_costs_little_more_than_the_aws_library(served: World) -> None:
    """The whole process, start included, against one that only loads boto3 and makes a client: 1.6 times on a quiet machine.

    Processor time of both, in turns, because other work shares this machine.
    """
    served.put_loaded(ORDERS, LOAD, CDC)
    client = "import boto3; boto3.client('dynamodb')"

    pairs = [(processor_seconds("-m", "controller.cli", "status"), processor_seconds("-c", client)) for _ in range(3)]

    assert min(status for status, _ in pairs) < 4 * min(library for _, library in pairs)


def processor_seconds(*arguments: str) -> float:
    """What a Python process took of the processor."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, *arguments], capture_output=True, check=True, timeout=60)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def test_a_missing_package_is_said() -> None:
    """Without click the command says how to install it."""
    code = "import sys; sys.modules['click'] = None\nfrom controller.cli import main\nsys.exit(main(['status']))"

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=60)

    assert done.returncode == 3
    assert "pip install --editable '.[cli]'" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("package", "words", "extra"),
    [
        ("moto", ["up"], "local"),
        ("pyspark", ["demo"], "local"),
        ("pymysqlreplication", ["capture", "--mysql", "mysql://root@localhost/x", "--raw", "s3://raw-bucket/"], "local,capture"),
    ],
)
def test_a_missing_package_of_a_local_command_is_said(
    dmslake: Dmslake, monkeypatch: pytest.MonkeyPatch, package: str, words: list[str], extra: str
) -> None:
    """Before anything is started, the extra to install is named."""
    monkeypatch.setitem(sys.modules, package, None)

    done = dmslake(*words)

    assert done.code == 3
    assert f"pip install --editable '.[{extra}]'" in done.err


def test_a_taken_port_is_a_wrong_call(dmslake: Dmslake) -> None:
    """Of `dmslake up` as of `dmslake serve`, with the way out."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = dmslake("up", "--port", str(port))

    assert (done.code, done.out) == (2, "")
    assert f"port {port} can't be listened on" in done.err
    assert "give another --port" in done.err


def test_a_folder_that_can_not_be_made_is_said(dmslake: Dmslake, tmp_path: Path) -> None:
    """No server, no defect: exit code 3, and the folder is named."""
    (tmp_path / "file").write_text("")

    done = dmslake("up", "--folder", str(tmp_path / "file" / "logs"))

    assert (done.code, str(tmp_path / "file" / "logs") in done.err) == (3, True)
    assert "defect" not in done.err


@pytest.mark.parametrize("command", ["up", "demo"])
def test_an_embedded_aws_that_does_not_start_is_3(dmslake: Dmslake, monkeypatch: pytest.MonkeyPatch, command: str) -> None:
    """What it said, and where its log is."""

    def refuse(*_: Any) -> None:
        raise NotStarted("the server of the embedded AWS did not start; it said: no memory")

    monkeypatch.setattr("infra.local.embedded.EmbeddedAws.start", refuse)

    done = dmslake(command)

    assert (done.code, "it said: no memory" in done.err, "--folder" in done.err) == (3, True, True)


def test_every_command_but_those_that_go_on_takes_an_output() -> None:
    """README.md says so: what is offered is honoured."""
    without = {name for name, command in cli.commands.items() if "output" not in {option.name for option in command.params}}

    assert without == {"demo", "up", "capture"}


def test_capture_needs_raw(dmslake: Dmslake, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where to write is a setting like for all commands."""
    monkeypatch.delenv("DMSLAKE_RAW", raising=False)

    done = dmslake("capture", "--mysql", "mysql://root@localhost/x")

    assert (done.code, "--raw" in done.err) == (3, True)


def test_capture_needs_a_folder_to_write_to(dmslake: Dmslake) -> None:
    """Some schemas of one are none: no folder would be read that is named `sales_*`."""
    done = dmslake("capture", "--mysql", "mysql://root@localhost/x", "--raw", "s3://raw-bucket/dms/sales_*")

    assert (done.code, done.out) == (2, "")
    assert "give --raw s3://raw-bucket/dms/," in done.err
