"""`dmslake rollback` and `reapply`: what is shown, what is refused, what is done, and what the table is like afterwards."""

from __future__ import annotations

import re
import secrets
import shlex
import time
from dataclasses import replace
from typing import Any

import pytest

from controller.cli.undo_text import columns_text
from controller.gather import Facts
from controller.history import epoch_text
from controller.plan import ROLLBACK, PlannedRun
from controller.raw_scope import RawScope
from controller.runners import GlueRunner, job_arguments
from controller.undoing import job_arguments as arguments_of
from controller.undoing import loaded_in_scope, plan_undos, undo_runs
from glue_jobs.aws.clients import Deadline
from glue_jobs.core.arguments import parse_arguments
from glue_jobs.core.errors import UsageError
from glue_jobs.core.limits import Limits
from glue_jobs.core.paths import TablePath
from glue_jobs.core.schema import Column
from glue_jobs.core.settings import Settings
from glue_jobs.core.undo import Wish
from glue_jobs.protocol.lease import take_lease
from glue_jobs.rollback import read_wish
from tests.controller.past_world import FIRST, LOADED, Command, PastWorld, changes, expire, untouched
from tests.controller.world import ScriptedGlue, facts, raw_file, table_path
from tests.lake import LakeTable

# --- shown


def test_a_dry_run_says_all_and_writes_nothing(kept_history: LakeTable, kept_command: Command) -> None:
    """Changes that go, files, bytes, rows, cursors and raw files; neither item nor lake is touched."""
    load, first, second = changes(kept_history)
    before = untouched(kept_history)

    done = kept_command("rollback", str(kept_history.path), "--to", load, "--dry-run", "--output", "json")

    (plan,) = done.json["tables"]
    assert (done.code, done.json["dry_run"], untouched(kept_history)) == (0, True, before)
    assert (plan["kind"], plan["to_change"], plan["undone"], plan["redone"]) == ("rollback", load, [second, first], [])
    assert (plan["files_superseded"], plan["files_restored"], plan["rows_before"], plan["rows_after"]) == (1, 1, 3, 3)
    assert plan["bytes_to_copy"] == kept_history.snapshot(load).size_bytes
    assert (plan["cursor_before"][-26:], plan["cursor_after"]) == ("20240501-120001000.parquet", "")
    assert [key[-26:] for key in plan["pending_again"]] == ["20240501-120000000.parquet", "20240501-120001000.parquet"]


def test_a_dry_run_for_people(kept_history: LakeTable, kept_command: Command) -> None:
    """What goes, what stays, what is pending again, the pause, and the way back."""
    _, first, second = changes(kept_history)

    done = kept_command("rollback", kept_history.path.name, "--to", "previous", "--dry-run")

    lines = [" ".join(line.split()) for line in done.out.splitlines()]
    assert lines[0] == f"{kept_history.path}: rollback to change {first}"
    assert any(line.startswith(f"goes {second}") for line in lines)
    assert any(line.startswith(f"stays {first}") for line in lines)
    assert "rows 3 → 3" in lines
    assert "cursor 20240501-120001000.parquet → 20240501-120000000.parquet" in lines
    assert "raw files 1 pending again: 20240501-120001000.parquet" in lines
    assert any(line.startswith("afterwards paused: rolled back") for line in lines)
    assert f"to go back dmslake reapply {kept_history.path}" in lines


@pytest.mark.parametrize(
    ("option", "words"),
    [
        ("--resume", "afterwards  active: the next run applies 1 raw file(s) again"),
        ("--skip", "skipped     1 left out for good: 20240501-120001000.parquet"),
    ],
)
def test_what_the_options_do_is_shown(kept_history: LakeTable, kept_command: Command, option: str, words: str) -> None:
    """--resume and --skip."""
    assert words in kept_command("rollback", str(kept_history.path), "--to", "previous", option, "--dry-run").out


def test_columns_that_go_back_are_shown() -> None:
    """What comes, what goes and what has another type; nothing for an empty table, whose columns are not known."""
    before, after = (Column("id", "int"), Column("note", "string")), (Column("id", "bigint"), Column("flag", "boolean"))

    assert columns_text(before, after) == "+ flag boolean, − note string, id int → bigint"
    assert columns_text(before, ()) == ""


def test_going_where_the_table_is_starts_no_run(kept_history: LakeTable, kept_command: Command) -> None:
    """Exit code 0 and a line that says so."""
    before = untouched(kept_history)

    done = kept_command("rollback", str(kept_history.path), "--to", changes(kept_history)[-1])

    assert (done.code, untouched(kept_history)) == (0, before)
    assert "nothing to do" in done.out


def test_an_id_is_taken_with_spaces_around_it(kept_history: LakeTable, kept_command: Command) -> None:
    """As it comes from a table's cell."""
    load = changes(kept_history)[0]

    done = kept_command("rollback", str(kept_history.path), "--to", f" {load} ", "--dry-run", "--output", "json")

    assert done.json["tables"][0]["to_change"] == load


# --- refused

T, ID = "TABLE", "0000000009-000001-0123abcd"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("rollback", T), "give one of --to"),
        (("rollback", T, "--to", "previous", "--undo", ID), "give one of --to"),
        (("rollback", T, "--to", "yesterday"), "neither a change id nor a time"),
        (("rollback", T, "--to", ID[:12]), "neither a change id nor a time"),
        (("rollback", T, "--undo", ID[:12]), "not a change id"),
        (("rollback", T, "--to", ID), "took effect"),
        (("rollback", T, "--undo", ID), "took effect"),
        (("rollback", "--to", "2024-05-01"), "it is not said which tables"),
        (("rollback", T, "--all", "--to", "2024-05-01"), "--all and PATH exclude each other"),
        (("rollback", "--all", "--to", ID), "mean one table"),
        (("rollback", "--all", "--undo", ID), "mean one table"),
        (("rollback", "--all", "--to", "previous"), "mean one table"),
        (("rollback", T, "shop.other", "--to", "previous"), "mean one table"),
        (("rollback", "shop.nowhere", "--to", "previous"), "no table 'shop.nowhere' is known"),
        (("reapply", T), "nothing is undone"),
        (("reapply", T, ID), "took effect"),
        (("reapply", "shop.nowhere"), "no table 'shop.nowhere' is known"),
    ],
)
def test_what_can_not_be_meant_is_refused(kept_history: LakeTable, kept_command: Command, words: tuple[str, ...], said: str) -> None:
    """Exit code 2 before any run is started; nothing on stdout, nothing changed."""
    before = untouched(kept_history)

    done = kept_command(*(str(kept_history.path) if word == T else word for word in words))

    assert (done.code, done.out, untouched(kept_history)) == (2, "", before)
    assert said in done.err
    assert "PATH" not in done.err.replace("--all and PATH", "")


@pytest.mark.parametrize("words", [("rollback", "--to", "previous"), ("reapply",), ("history",), ("show", ID)])
def test_a_table_that_was_never_loaded_is_refused(past_world: PastWorld, lake_command: Command, words: tuple[str, ...]) -> None:
    """With the command that loads it."""
    table = past_world.table()

    done = lake_command(words[0], str(table.path), *words[1:])

    assert done.code == 2
    assert f"`dmslake run {table.path}` loads it" in done.err


def test_a_bucket_without_versions_is_refused(past_world: PastWorld, lake_command: Command) -> None:
    """Exit code 3, as for every wrong configuration."""
    table = past_world.loaded()
    s3, bucket = table.clients.s3, table.out_path.bucket
    s3.put_bucket_versioning(Bucket=bucket, VersioningConfiguration={"Status": "Suspended"})
    try:
        done = lake_command("rollback", str(table.path), "--to", "previous")
    finally:
        s3.put_bucket_versioning(Bucket=bucket, VersioningConfiguration={"Status": "Enabled"})

    assert done.code == 3
    assert "versioning suspended" in done.err


# --- done


def test_rollback_and_reapply(past_world: PastWorld, lake_command: Command) -> None:
    """The table goes back and is paused with the reason, what is said to paste brings it back and lifts the pause."""
    table = past_world.batched()

    back = lake_command("rollback", str(table.path), "--to", "previous")

    assert (back.code, table.rows()) == (0, LOADED)
    assert "1 committed" in back.out
    assert f"paused: rolled back to change {changes(table)[0]}" in back.out
    assert table.item()["Paused"] in lake_command("status", str(table.path)).out
    (line,) = [line for line in back.out.splitlines() if "to go back: " in line]

    forth = lake_command(*shlex.split(line.split("to go back: dmslake ")[1]))

    assert (forth.code, table.rows(), "Paused" in table.item()) == (0, FIRST, False)
    assert "the pause is lifted" in forth.out


def test_activate_lifts_the_pause_and_says_so(past_world: PastWorld, lake_command: Command) -> None:
    """What the pause's reason names is what lifts it."""
    table = past_world.loaded()
    assert table.run("Rollback", to="previous") == 0
    (command,) = [part for part in table.item()["Paused"].split("`") if part.startswith("dmslake")]

    done = lake_command(*shlex.split(command)[1:])

    assert "the pause is lifted (rolled back to before its first change" in done.out
    assert "Paused" not in table.item()


def test_an_inactive_table_goes_back_too(past_world: PastWorld, lake_command: Command) -> None:
    """By a Glue run, with the report as one document; the table stays inactive."""
    table = past_world.batched(table="Order Details " + secrets.token_hex(4))
    lake_command("deactivate", str(table.path))

    done = lake_command("rollback", str(table.path), "--undo", changes(table)[1], "--runner", "glue", "--output", "json")

    (report,), (plan,) = done.json["tables"], done.json["plans"]
    assert (done.json["undo"], done.json["dry_run"]) == (1, False)
    assert (done.code, table.rows(), table.item()["ActiveFlag"]) == (0, LOADED, "false")
    assert (report["action"], report["outcome"], report["table_rows"]) == ("rollback", "committed", 3)
    assert plan["afterwards"].startswith(f"inactive as before: nothing more is applied until `dmslake activate '{table.path}'`")


def test_a_held_lease_is_exit_code_4(past_world: PastWorld, lake_command: Command) -> None:
    """Another run works on the table: nothing is done, and that is no failure of the table."""
    table = past_world.loaded()
    lease = take_lease(table.state_table, Deadline(), table.item(), "other", 2.0, lambda: 1, time.sleep)
    try:
        done = lake_command("rollback", str(table.path), "--to", "previous")
    finally:
        lease.release()

    assert (done.code, table.rows()) == (4, LOADED)
    assert "lease-held" in done.out


# --- several tables


def moment_of(table: LakeTable) -> str:
    """The time of the table's last change, as `history` shows it."""
    return epoch_text(table.head())


def test_all_tables_go_back_to_a_time_together(past_world: PastWorld, lake_command: Command) -> None:
    """Each to its state as of then, one that was not there yet to nothing, in one run with one report; the unloaded is left out."""
    old, same, unloaded = past_world.loaded(), past_world.loaded(), past_world.table()
    moment = moment_of(same)
    old.cdc([("D", (1, None))])
    assert old.run() == 0
    new = past_world.loaded()

    done = lake_command("rollback", "--all", "--to", moment, "--output", "json")

    assert (done.code, old.rows(), new.visible(), same.rows()) == (0, LOADED, set(), LOADED)
    outcomes = {table["path"]: table["outcome"] for table in done.json["tables"] if table["path"].startswith("dmslake-raw/")}
    assert outcomes == {str(old.path): "committed", str(new.path): "committed", str(same.path): "nothing"}
    assert ["Paused" in table.item() for table in (old, new, same)] == [True, True, False]
    assert "Head" not in unloaded.item()
    assert len({run for table in done.json["tables"] for run in table.get("runs", ())}) == 1


def test_all_means_what_is_below_raw_and_the_sourceless_below_the_lake() -> None:
    """A table without source has no raw folder: its lake folder tells. One that can't be read counts where its path is below either."""
    loaded = (raw_file(table_path(), "LOAD00000001.parquet"),)
    here, elsewhere = "s3://lake-bucket/lake/shop/a/", "s3://lake-bucket/lake-of-others/shop/b/"
    others = TablePath.parse("raw-bucket/others/shop/a/")
    sourceless = [facts(TablePath.parse(path), loaded=loaded, Source="none", out_path=path) for path in (here, elsewhere)]
    unread = [Facts(path[5:], problem=UsageError("x")) for path in (here.replace("/a/", "/c/"), elsewhere)]
    sourced = [facts(table_path(), loaded=loaded), facts(table_path("new")), facts(others, loaded=loaded), Facts(str(table_path("bad")))]
    scope = RawScope.parse("s3://raw-bucket/dms/")

    def chosen(scope: RawScope | None, lake: str) -> list[str]:
        return [fact.path for fact in loaded_in_scope([*sourced, *sourceless, *unread], scope, lake)]

    below_raw = [str(table_path()), str(table_path("bad"))]
    assert chosen(scope, "s3://lake-bucket/lake") == [*below_raw, sourceless[0].path, unread[0].path]
    assert chosen(scope, "") == below_raw
    assert chosen(None, "s3://lake-bucket/lake/")[:3] == [str(table_path()), str(others), str(table_path("bad"))]
    assert sourceless[1].path not in [fact.path for fact in loaded_in_scope(sourceless, None, "s3://lake-bucket/lake/")]


def test_one_refusal_is_a_refusal_of_all(past_world: PastWorld, lake_command: Command) -> None:
    """Every refusal is listed with its way out, and no table is changed."""
    good, gone, bad = past_world.batched(), past_world.loaded(), past_world.loaded()
    moment = moment_of(gone)
    gone.cdc([("D", (1, None))])
    assert gone.run() == 0
    expire(gone, changes(gone)[0])
    bad.edit(ActiveFlag="perhaps")
    before = [untouched(table) for table in (good, gone, bad)]

    done = lake_command("rollback", "--all", "--to", moment)
    document = lake_command("rollback", "--all", "--to", moment, "--output", "json").json

    assert (done.code, [untouched(table) for table in (good, gone, bad)]) == (1, before)
    assert (document["undo"], document["dry_run"], document["refused"]) == (1, False, True)
    assert f"refused: {gone.path}" in done.out
    assert f"refused: {bad.path}" in done.out
    # Tables without a source below the lake, which other tests may have left, count too.
    assert re.search(r"\n2 of \d+ table\(s\) refused: nothing was changed\n", done.out)
    assert "started" not in done.err


def test_an_item_whose_key_is_no_path_holds_up_no_table(past_world: PastWorld, lake_command: Command) -> None:
    """It is no table: it is named and left out, and the tables go back."""
    table = past_world.loaded()
    moment = moment_of(table)
    table.cdc([("D", (1, None))])
    assert table.run() == 0
    key = {"path": {"S": "no-path"}}
    past_world.clients.dynamodb.put_item(TableName=past_world.aws.state_table, Item=key)
    try:
        done = lake_command("rollback", "--all", "--to", moment, "--output", "json")
    finally:
        past_world.clients.dynamodb.delete_item(TableName=past_world.aws.state_table, Key=key)

    assert (done.code, table.rows()) == (0, LOADED), done.err
    assert "the item with the key 'no-path' is left out, it is no table's path: delete the item" in done.err
    assert "no-path" not in {each["path"] for each in done.json["tables"]}


# --- handed on


@pytest.mark.parametrize(
    "wish", [Wish(to="previous", skip=True), Wish(to="1714564800.5", resume=True), Wish(undo=ID), Wish(reapply=""), Wish(reapply=ID)]
)
def test_the_job_understands_what_the_command_hands_on(wish: Wish) -> None:
    """Glue's arguments and a local run's, read as the job reads them."""
    run = PlannedRun(ROLLBACK, ("bucket/dms/shop/a/",), 0, arguments_of(wish))
    glue = StartedGlue()

    GlueRunner(glue, Settings()).start(run, "run-1")

    given: list[str] = [word for pair in glue.arguments.items() for word in pair]
    assert read_wish(parse_arguments(given)) == wish
    assert read_wish(parse_arguments(job_arguments(Settings(), run, "run-1"))) == wish


class StartedGlue(ScriptedGlue):
    """Keeps the arguments of the last run."""

    def start_job_run(self, JobName: str, Arguments: dict[str, str]) -> dict[str, Any]:  # noqa: N803 - AWS's names
        self.arguments = Arguments
        return super().start_job_run(JobName, Arguments)


def test_the_run_does_what_was_shown(kept_history: LakeTable) -> None:
    """`previous` and all that is undone are handed on as the changes they meant when they were shown."""
    load, first, _ = changes(kept_history)
    fact = replace(facts(table_path()), path=str(kept_history.path), state=kept_history.state())

    def handed_on(wish: Wish) -> tuple[tuple[str, str], ...]:
        undos = plan_undos(kept_history.clients.s3, [fact], wish)
        *arguments, (name, seen) = undo_runs(undos, wish, Limits()).runs[0].arguments
        assert (name, seen) == ("from_change", kept_history.item()["Head"])
        return tuple(arguments)

    assert handed_on(Wish(to="previous", skip=True)) == (("to", first), ("skip", "true"))
    assert handed_on(Wish(undo=load)) == (("undo", load),)
    assert handed_on(Wish(to="2024-05-01")) == (("to", "2024-05-01"),)
