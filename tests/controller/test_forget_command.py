"""`dmslake forget`: what is shown, what is asked, what is done, and how a table comes back."""

from __future__ import annotations

import shlex
import sys
from typing import Any

import pytest

from controller.forgetting import ways_back
from glue_jobs.aws.attributes import plain_item
from glue_jobs.aws.state_table import StateTable
from glue_jobs.core.paths import S3Uri, TablePath
from glue_jobs.core.settings import DEFAULTS
from glue_jobs.core.state import default_item, read_state
from glue_jobs.protocol.forget import BEING_FORGOTTEN
from tests.controller.aws_lines import request_of, run_lines
from tests.controller.past_world import FIRST, LOADED, Command, Done, PastWorld, untouched
from tests.lake import LakeTable


def said_back(done: Done) -> list[str]:
    """The commands that a forget printed."""
    assert done.code == 0, done.err
    return [line.strip() for line in done.out.splitlines() if line.startswith(("  aws ", "  dmslake "))]


def do(command: Command, line: str) -> None:
    """What a shell does with the line; it must succeed."""
    if line.startswith("aws "):
        run_lines(line)
    else:
        done = command(*shlex.split(line)[1:])
        assert done.code == 0, (line, done.err)


def as_said(table: LakeTable) -> dict[str, Any]:
    """Its item without what each run writes."""
    return {name: value for name, value in table.item().items() if name not in ("Fence", "LastRun")}


def in_catalog(table: LakeTable) -> list[tuple[str, str]]:
    """Its Glue tables, and where they are."""
    pages = table.clients.glue.get_paginator("get_tables").paginate(DatabaseName=table.environment["DMSLAKE_DATABASE"])
    found = [each for page in pages for each in page["TableList"] if each["Parameters"].get("dmslake.path") == str(table.path)]
    return sorted((each["Name"], each["StorageDescriptor"]["Location"]) for each in found)


def test_a_dry_run_shows_and_changes_nothing(past_world: PastWorld, lake_command: Command) -> None:
    """What goes, what stays, what is not touched; the item whole, so that it can be put back."""
    table = past_world.batched()
    table.clients.s3.put_object(Bucket=table.out_path.bucket, Key=f"{table.out_path.key}notes.txt", Body=b"x")
    before = untouched(table)

    plain = lake_command("forget", str(table.path), "--dry-run")
    data = lake_command("forget", str(table.path), "--purge", "--dry-run", "--output", "json")

    assert (plain.code, data.code, untouched(table)) == (0, 0, before)
    assert (data.json["files"], data.json["records"], data.json["item"]) == (1, 2, before[0])
    assert data.json["foreign"] == [f"{table.out_path.key}notes.txt"]
    assert data.json["catalog"] == [{"table": table.item()["CatalogTable"], "whose": "ours"}]
    words = ("nothing was changed", "is dropped", "1, ", "stay", "1 object(s) of others", "new and inactive")
    assert [word for word in words if word not in plain.out] == []


FIRST_SAID = {"CatalogTable": "my_stores", "PartitionKey": "name", "History": "true", "KeyCollation": "ci", "EmptyPartition": "null"}
LATER_SAID = {
    "CdcPath": "changes",
    "SkipFiles": ("b.parquet", "it's.parquet"),
    "CsvDelimiter": "\t",
    "Schema": '{"id": "int", "it\'s": "string"}',
}


@pytest.mark.parametrize("is_plain", [True, False], ids=["plain", "of-its-own"])
def test_a_forgotten_table_comes_back_by_the_lines_that_are_said(past_world: PastWorld, lake_command: Command, is_plain: bool) -> None:
    """Each line that forget prints is a command. Whenever scheduled runs come in between, nothing is loaded anew; after the last line
    there are all that a person had said, the same head and rows, and the same Glue tables in the same folders."""
    table = past_world.table()
    if not is_plain:
        table.out_path = S3Uri.folder(f"s3://{table.out_path.bucket}/old/{table.table}/stores/")
        table.edit(out_path=str(table.out_path), **FIRST_SAID)
    table.load(LOADED)
    table.sync()
    table.cdc([("U", (1, "ONE")), ("D", (2, None)), ("I", (4, "four"))])
    table.sync()
    table.edit(**({} if is_plain else LATER_SAID))
    before, visible, catalog = as_said(table), table.visible(), in_catalog(table)

    back = said_back(lake_command("forget", str(table.path), "--yes"))
    assert (table.item(), in_catalog(table)) == ({}, [])
    assert lake_command("tables").code == 0
    for line in back:
        do(lake_command, line)
        do(lake_command, "dmslake run")

    assert [line.split()[1] for line in back] == ["dynamodb", "recover", "activate"]
    assert (as_said(table), table.visible(), in_catalog(table), table.rows()) == (before, visible, catalog, FIRST)
    assert table.verify() == []


def test_a_table_that_was_loaded_anew_keeps_its_item(past_world: PastWorld, lake_command: Command) -> None:
    """The line that puts the old one back is refused."""
    table = past_world.loaded()
    (line, *_) = said_back(lake_command("forget", str(table.path), "--yes"))
    assert table.state_table.create({**default_item(table.path, str(table.out_path)), "Head": "of the other load"})
    before = table.item()

    with pytest.raises(AssertionError, match="ConditionalCheckFailed"):
        run_lines(line)

    assert table.item() == before


@pytest.mark.parametrize(
    ("values", "put_back"),
    [
        ({"ActiveFlag": "true"}, {"ActiveFlag": "false"}),
        ({"ActiveFlag": "false", "Paused": f"{BEING_FORGOTTEN}: again"}, {"ActiveFlag": "false"}),
        ({"ActiveFlag": "true", "Paused": "a rollback"}, {"ActiveFlag": "true", "Paused": "a rollback"}),
        ({"ActiveFlag": "false"}, {"ActiveFlag": "false"}),
    ],
    ids=["active", "half-forgotten", "paused", "inactive"],
)
def test_a_table_that_rested_comes_back_resting(values: dict[str, str], put_back: dict[str, str]) -> None:
    """A pause is put back, and nothing is activated that was not active. Whether it was is not known of a table that was half forgotten."""
    path = TablePath.parse("raw-bucket/dms/shop/stores")
    item = {**default_item(path, "s3://lake-bucket/lake/shop/stores/"), "Head": "x", "Fence": 3, **values}

    put, recover, *activate = ways_back(read_state(item), "my states")

    request = request_of(put)
    names = ("ActiveFlag", "Paused", "Head", "Fence")
    assert ({name: value for name, value in plain_item(request["Item"]).items() if name in names}, request["TableName"]) == (
        put_back,
        "my states",
    )
    assert recover == f"dmslake recover {path}"
    assert activate == ([f"dmslake activate {path}"] if put_back != values else [])


def test_what_a_plain_forget_left_can_be_purged(past_world: PastWorld, lake_command: Command) -> None:
    """By its full path, though there is no item; when nothing is left, that is said."""
    table = past_world.batched()
    assert lake_command("forget", str(table.path), "--yes").code == 0
    assert lake_command("forget", table.path.name, "--yes").code == 2

    done = lake_command("forget", str(table.path), "--purge", "--yes")
    again = lake_command("forget", str(table.path), "--purge", "--yes")

    assert (done.code, table.visible(), table.item()) == (0, set(), {}), done.err
    assert (again.code, "is left to forget" in again.err) == (2, True)


def test_a_table_without_source_is_found_by_its_own_folder(past_world: PastWorld, lake_command: Command) -> None:
    """Its PATH is where it lies, and no run makes its item: the lines that are said do."""
    name = f"t{past_world.raw[-9:-1]}"
    folder = f"{past_world.aws.lake[len('s3://') :]}made/{name}/"
    assert lake_command("create", folder, "--schema", "id int", "--primary-key", "id").code == 0
    assert lake_command("insert", folder, "--row", '{"id": 1}').code == 0
    first = lake_command("forget", folder, "--yes", "--output", "json")
    before = first.json["item"]
    assert (first.code, before["Source"]) == (0, "none"), first.err

    planned = lake_command("forget", folder, "--dry-run", "--output", "json")
    for line in first.json["ways_back"]:
        do(lake_command, line)

    assert (planned.code, planned.json["item"]["Source"], planned.json["files"]) == (0, "none", 1), planned.err
    item = StateTable(past_world.clients, DEFAULTS["state_table"]).get(folder) or {}
    assert [item[name] for name in ("Source", "PrimaryKey", "Head", "out_path")] == [
        before[name] for name in ("Source", "PrimaryKey", "Head", "out_path")
    ]


def test_a_purge_says_the_item_too(past_world: PastWorld, lake_command: Command) -> None:
    """Nothing else knows it, should the delete markers be removed."""
    table = past_world.loaded()
    table.edit(SkipFiles="a.parquet")

    (line,) = said_back(lake_command("forget", str(table.path), "--purge", "--yes"))
    do(lake_command, line)

    assert table.item()["SkipFiles"] == "a.parquet"


def test_without_a_terminal_it_wants_a_yes(past_world: PastWorld, lake_command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody could be asked; and a no is a no."""
    table = past_world.loaded()
    before = untouched(table)
    monkeypatch.setattr(sys.stdin, "isatty", lambda: False, raising=False)

    done = lake_command("forget", str(table.path))
    monkeypatch.setattr("click.confirm", lambda *words, **options: False)
    monkeypatch.setattr(sys.stdin, "isatty", lambda: True, raising=False)
    refused = lake_command("forget", str(table.path))

    assert (done.code, refused.code, untouched(table)) == (2, 1, before)
    assert ("--yes" in done.err, "nothing was forgotten" in refused.err) == (True, True)


def test_a_refusal_is_said_with_the_way_out(past_world: PastWorld, lake_command: Command) -> None:
    """Before it is asked, with the table's path in the command."""
    table = past_world.loaded()
    table.edit(Publishing=table.item()["Head"])

    done = lake_command("forget", str(table.path), "--yes")

    assert (done.code, f"dmslake run {table.path}" in done.err) == (1, True)
