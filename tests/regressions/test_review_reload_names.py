"""A load that DMS began while names changed: of columns, of files in several folders, and the words that a person has for it."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from typing import Any

import pyarrow as pa
import pytest

from controller.edits import unblock
from glue_jobs.aws.objects import list_files
from infra.local.dms_files import cdc_file_name
from tests.spark.tables import WorkTable
from tests.work_tables import MakeTable


def columns(*names: str) -> pa.Schema:
    return pa.schema([(name, pa.int64() if name.lower() in ("id", "no") else pa.string()) for name in names])


def named_after_now(seconds: float) -> str:
    return cdc_file_name(datetime.now(timezone.utc) + timedelta(seconds=seconds))


def reloaded_by_dms(table: WorkTable, rows: Any, *names: str) -> None:
    """DMS deletes what it wrote, and loads the table again."""
    for file in list_files(table.clients.s3, table.path.bucket, table.path.raw.key):
        table.clients.s3.delete_object(Bucket=table.path.bucket, Key=file.key)
    table.load(rows, columns=columns(*names))


def error(table: WorkTable) -> dict[str, str]:
    found: dict[str, str] = table.item()["LastRun"]["error"]
    return found


@pytest.mark.parametrize(
    ("before", "after", "item"),
    [
        (("id", "name"), ("no", "name"), {"PrimaryKey": "no"}),
        (("ID", "NAME"), ("id", "name"), {"PrimaryKey": "id"}),
        (("id", "region"), ("id", "area"), {"PartitionKey": "area"}),
    ],
    ids=["key", "case", "partition"],
)
def test_a_load_brings_the_key_that_the_source_has_by_now(
    new_table: MakeTable, before: tuple[str, ...], after: tuple[str, ...], item: dict[str, str]
) -> None:
    """The item is told the new name, and the load brings the column: nothing is rewritten before, which has it not."""
    table = new_table(columns(*before), primary_key=before[0], partition_key=before[1] if "PartitionKey" in item else "null")
    table.edit(LoadQuietMinutes="0")
    table.load([(1, "a"), (2, "b")])
    table.sync()
    reloaded_by_dms(table, [(1, "a2"), (3, "c")], *after)
    table.edit(**item)

    table.sync()

    assert ([column.name for column in table.snapshot().schema], table.rows()) == ([*after], [(1, "a2"), (3, "c")])
    table.check_folder()


def test_while_the_load_waits_nothing_is_rewritten_either(new_table: MakeTable) -> None:
    """A run that finds half of it leaves the table as it is."""
    table = new_table(columns("id", "name"))
    table.load([(1, "a")])
    table.sync()
    reloaded_by_dms(table, [(1, "a2")], "no", "name")
    table.edit(PrimaryKey="no", LoadQuietMinutes="60")

    table.sync()

    assert (table.rows(), table.item()["LastRun"]["outcome"]) == ([(1, "a")], "nothing")


def test_a_name_of_several_load_files_leaves_out_none(new_table: MakeTable) -> None:
    """A parallel load has the same names in each folder; the path says which one."""
    table = new_table(columns("id", "name"))
    table.edit(LoadQuietMinutes="0")
    for number, folder in enumerate(("p1", "p2", "p3"), 1):
        table.put_raw(f"{folder}/LOAD00000001.parquet", table.parquet([("I", (number, folder))]))
        table.put_raw(f"{folder}/LOAD00000002.parquet", table.parquet([("I", (10 + number, folder))]))
    table.put_raw("p1/LOAD00000002.parquet", b"damaged")
    assert (table.run("LoadInitial"), error(table)["code"]) == (1, "bad-raw-file")

    leave_out(table, "LOAD00000002.parquet")
    refused = (table.run("LoadInitial"), error(table))
    leave_out(table, "p1/LOAD00000002.parquet")
    table.sync()

    assert (refused[0], refused[1]["code"], "--skip-file p1/LOAD00000002.parquet" in refused[1]["todo"]) == (1, "skip-unclear", True)
    assert sorted(table.rows()) == [(1, "p1"), (2, "p2"), (3, "p3"), (12, "p2"), (13, "p3")]


@pytest.mark.parametrize("again", ["LOAD00000001.parquet", ""], ids=["the name once more", "the path"])
def test_a_name_that_is_all_of_a_load_leaves_out_none_either(new_table: MakeTable, again: str) -> None:
    """Each folder has that one file, or the table's own has one, too; changes alone are not taken for the table."""
    table = new_table(columns("id", "name"))
    table.edit(LoadQuietMinutes="0", SkipFiles="LOAD00000001.parquet")
    for number, folder in enumerate(("", "p1/"), 1):
        table.put_raw(f"{folder}LOAD00000001.parquet", table.parquet([("I", (number, folder))]))
    table.cdc([("I", (9, "changed"))], name=named_after_now(1))
    codes = [table.run(job) for job in ("LoadInitial", "LoadIncremental")]
    found = error(table)

    leave_out(table, again or f"{table.path.raw.key}LOAD00000001.parquet")

    assert (codes, found["code"], f"--skip-file {table.path.raw.key}LOAD00000001.parquet" in found["todo"]) == (
        [1, 1],
        "skip-unclear",
        True,
    )
    if again:
        assert (table.run("LoadInitial"), error(table)["code"]) == (1, "skip-unclear")
    else:
        table.sync()
        assert table.rows() == [(2, "p1/"), (9, "changed")]


def test_a_table_without_a_key_is_reloaded_where_a_file_was_written_again(new_table: MakeTable) -> None:
    """As the error says."""
    table = new_table(columns("id", "name"), primary_key="null")
    table.edit(LoadQuietMinutes="0")
    table.load([(1, "a")])
    name = named_after_now(1)
    table.cdc([("I", (2, "b"))], name=name)
    table.sync()
    table.cdc([("I", (2, "b")), ("I", (7, "g"))], name=name)
    assert (table.run(), error(table)["code"]) == (1, "file-written-again")
    table.edit(Request="reload")

    table.sync()

    assert sorted(table.rows()) == [(1, "a"), (2, "b"), (7, "g")]


def leave_out(table: WorkTable, name: str) -> None:
    """What the command does."""
    edit = unblock(table.state(), [name])
    table.state_table.set_attributes(str(table.path), edit.values, edit.remove)


def test_a_file_that_was_skipped_by_the_cursor_stays_skipped(new_table: MakeTable) -> None:
    """Also if the load is taken again before any change has noted it."""
    table = new_table(columns("id", "name"))
    table.edit(LoadQuietMinutes="0")
    table.load([(1, "a")])
    table.cdc([("U", (1, "b"))], name=named_after_now(1))
    table.sync()
    bad = named_after_now(2)
    table.cdc([("U", (1, "BAD"))], name=bad)
    table.edit(LastIncrementalFile=f"{table.path}{bad}")
    table.sync()
    table.edit(Request="reload")

    table.sync()
    table.cdc([("I", (2, "c"))], name=named_after_now(3))
    table.sync()

    assert table.rows() == [(1, "b"), (2, "c")]


def test_one_word_is_enough_for_a_file_that_wants_two(new_table: MakeTable) -> None:
    """A column went, another came, a third grew, and the table is large: there is room for one Request."""
    table = new_table(pa.schema([("id", pa.int64()), ("name", pa.string()), ("qty", pa.int32())]))
    table.load([(1, "a", 1)])
    table.sync()
    wide = pa.schema([("id", pa.int64()), ("title", pa.string()), ("qty", pa.int64())])
    table.cdc([("I", (2, "b", 2**40))], columns=wide, name=named_after_now(1))
    assert table.run(widen_bytes="0") == 1
    table.edit(Request="schema-accept")

    table.sync(widen_bytes="0")

    assert sorted(table.read()["qty"].to_pylist()) == [1, 2**40]


def test_a_history_gets_no_two_columns_that_differ_by_case(new_table: MakeTable) -> None:
    """Spark and Athena could read it no more; the load is not taken."""
    table = new_table(columns("id", "NAME"))
    table.environment = {**table.environment, "DMSLAKE_DATABASE": ""}
    table.edit(LoadQuietMinutes="0", History="true")
    table.load([(1, "a")])
    table.sync()
    reloaded_by_dms(table, [(1, "b")], "id", "name")

    code = table.run("LoadInitial")

    assert (code, error(table)["code"], table.rows()) == (1, "history-column-clash", [(1, "a")])
    table.edit(History="false")
    table.sync()
    assert table.rows() == [(1, "b")]
