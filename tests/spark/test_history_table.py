"""The history table through the jobs: whatever happens to a table, its versions are what happened, and the open ones are its rows."""

from __future__ import annotations

import itertools
import random
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from glue_jobs.core.history_table import history_lake
from glue_jobs.core.record import ChangeRecord
from infra.local.dms_files import DmsRow, cdc_file_name, load_file_name
from tests.lake import START
from tests.spark.histories import check_history, history_of, versions
from tests.spark.tables import SHOP, WorkTable
from tests.work_tables import MakeTable

NAMES = [cdc_file_name(START + timedelta(seconds=second)) for second in range(6)]
STAMPED = pa.schema([("committed", pa.string()), *SHOP])
PARTS = {"replay_bytes": "2000", "small_file_bytes": "0", "stream_file_bytes": "0"}  # a few rows at a time, files in pieces


def at(hours: float) -> datetime:
    return START + timedelta(hours=hours)


def told(table: WorkTable, *names: str) -> list[tuple[Any, ...]]:
    """All versions, checked, in these columns."""
    return [tuple(row[name] for name in names) for row in check_history(table)]


def keeping(new_table: MakeTable, **attributes: Any) -> WorkTable:
    """A table with a history, whose rows tell their commit time."""
    table = new_table(**{"timestamp_column": "committed", **attributes})
    table.environment = {"DMSLAKE_DATABASE": "", **table.environment}
    table.edit(History="true")
    return table


def load(table: WorkTable, hours: float, *rows: tuple[Any, ...], number: int = 1) -> None:
    table.put_raw(load_file_name(number), table.parquet(DmsRow("I", row, at(hours)) for row in rows))


def batch(table: WorkTable, *changes: tuple[float, str, tuple[Any, ...]], name: str | None = None) -> None:
    """changes: (hours after START, operation, row)."""
    table.cdc([DmsRow(op, row, at(hours)) for hours, op, row in changes], name=name)


@pytest.mark.parametrize("settings", [{}, PARTS], ids=["whole", "parts"])
def test_every_change_is_a_version(new_table: MakeTable, settings: dict[str, str]) -> None:
    """Of a batch all changes, not only the last; a delete is the last image; a delete of what is not there is none; times don't go back."""
    table = keeping(new_table)
    load(table, 0, (1, "a", 1), (2, "b", 2), (3, "c", 3))
    table.sync(**settings)
    batch(table, (1000, "U", (1, "A", 1)), (1001, "U", (1, "AA", 1)), (1002, "D", (2, None, None)), (1003, "D", (9, None, None)))
    batch(table, (900, "U", (1, "back", 1)), (1005, "I", (2, "again", 2)), (1006, "I", (4, "d", 4)))

    table.sync(**settings)

    found = told(table, "id", "name", "qty", "operation", "valid_from", "valid_to", "validity_flag")
    assert found == [
        (1, "a", 1, "insert", at(0), at(1000), 0),
        (1, "A", 1, "update", at(1000), at(1001), 0),
        (1, "AA", 1, "update", at(1001), at(1001), 0),
        (1, "back", 1, "update", at(1001), None, 1),
        (2, "b", 2, "insert", at(0), at(1002), 0),
        (2, "b", 2, "delete", at(1002), at(1005), 0),
        (2, "again", 2, "insert", at(1005), None, 1),
        (3, "c", 3, "insert", at(0), None, 1),
        (4, "d", 4, "insert", at(1006), None, 1),
    ]
    first, second = (change.id for change in changes(table))
    sources = [(row["change_id"], row["source_file"], row["source_row"]) for row in versions(table) if row["id"] == 2]
    assert sources == [
        (first, "LOAD00000001.parquet", 1),
        (second, cdc_file_name(START), 2),
        (second, cdc_file_name(START + timedelta(seconds=1)), 1),
    ]


@pytest.mark.parametrize("is_off", [False, True], ids=["kept", "off meanwhile"])
@pytest.mark.parametrize("key", [{"PrimaryKey": "qty"}, {"PrimaryKey": "name"}, {"KeyCollation": "ci"}], ids=["qty", "name", "collation"])
def test_a_repartition_that_also_changes_the_key(new_table: MakeTable, key: dict[str, str], is_off: bool) -> None:
    """It takes what the item says by then, and so does the history: the next batch finds the open version of each key."""
    table = keeping(new_table, primary_key="name" if "KeyCollation" in key else "id")
    load(table, 0, (1, "ANNA", 1001), (2, "ben", 1002))
    table.sync()
    table.edit(Request="repartition", History=str(not is_off).lower(), **key)
    table.sync()
    table.edit(History="true")
    assert is_off or table.verify() == []

    name = "anna" if "KeyCollation" in key else "ANNA"
    batch(table, (1, "U", (1, name, 1001)))
    table.sync()

    found = [(row["id"], row["name"], row["validity_flag"]) for row in versions(table)]
    assert sorted(found, key=repr) == [(1, "ANNA", 0), (1, name, 1), (2, "ben", 1)]
    assert table.verify() == []


@pytest.mark.parametrize("settings", [{}, PARTS], ids=["whole", "parts"])
@pytest.mark.parametrize("also", [{}, {"PrimaryKey": "qty"}], ids=["layout", "layout and key"])
def test_an_empty_text_that_a_new_layout_makes_null_is_a_version(
    new_table: MakeTable, settings: dict[str, str], also: dict[str, str]
) -> None:
    """Of the change's time, whatever the row says of its commit; rows that keep their values get none."""
    table = keeping(new_table, partition_key="null")
    load(table, 0, (1, "", 1), (2, "a", 2), (3, None, 3))
    table.sync()
    before = datetime.now(timezone.utc)
    table.edit(PartitionKey="name", EmptyPartition="null", Request="repartition", **also)

    table.sync(**settings)

    first, second = (change.id for change in changes(table))
    assert told(table, "id", "name", "operation", "change_id") == [
        (1, "", "insert", first), (1, None, "update", second), (2, "a", "insert", first), (3, None, "insert", first)
    ]  # fmt: skip
    assert [row["valid_from"] > before for row in versions(table)] == [False, True, False, False]
    assert (table.verify(), table.head().kind) == ([], "repartition")


def test_a_new_layout_that_changes_rows_leaves_a_history_that_is_off_behind(new_table: MakeTable) -> None:
    """Switched on again, it gets the version; a layout that changes no row leaves it as it is."""
    table = keeping(new_table, partition_key="null")
    load(table, 0, (1, "", 1), (2, "a", 2))
    table.sync()
    table.edit(PartitionKey="qty", History="false", Request="repartition")
    table.sync()
    assert not table.snapshot().history.is_stale
    table.edit(PartitionKey="name", EmptyPartition="null", Request="repartition")
    table.sync()
    assert table.snapshot().history.is_stale
    table.edit(History="true")

    table.sync()

    assert told(table, "id", "name", "operation") == [(1, "", "insert"), (1, None, "update"), (2, "a", "insert")]


def changes(table: WorkTable) -> list[ChangeRecord]:
    """The table's change records, oldest first."""
    return list(table.lineage().back())[::-1]


def test_a_batch_touches_only_files_with_an_open_version_of_its_keys(new_table: MakeTable) -> None:
    """A month that is over is rewritten to end versions, and then never looked at again."""
    table = keeping(new_table)
    load(table, 0, (1, "a", 1))
    table.sync()
    (first,) = history_of(table).files
    batch(table, (1000, "U", (1, "b", 1)))
    table.sync()
    old, new = sorted(history_of(table).files.values(), key=lambda file: file.partition)
    assert (old.partition, old.low, old.high) == (("2024", "5"), None, None)
    assert first not in history_of(table).files
    assert (new.partition, new.low) == (("2024", "6"), (1,))
    batch(table, (1001, "U", (1, "c", 1)), (1002, "I", (2, "d", 1)))

    table.sync()

    after = history_of(table).files
    assert old.path in after
    assert len(after) == 2, "the new versions went into the month's small file"
    check_history(table)


def test_without_a_timestamp_column_the_files_tell_the_time(new_table: MakeTable) -> None:
    """CDC rows: the file's name; load rows: when the load file was written."""
    table = keeping(new_table, timestamp_column=None)
    table.cdc([("I", (1, "a", 1))], name="20240501-120000250.parquet")
    table.sync()
    table.load([(1, "b", 1)])
    table.edit(Request="reload", LoadQuietMinutes="0")

    table.sync()

    modified = table.clients.s3.head_object(Bucket="raw", Key=f"{table.path.raw.key}LOAD00000001.parquet")["LastModified"]
    assert told(table, "name", "valid_from") == [("a", START.replace(microsecond=250_000)), ("b", modified)]


def test_a_changed_key_is_a_delete_and_an_insert(new_table: MakeTable) -> None:
    """As the before image tells."""
    columns = pa.schema([*SHOP, ("BI_id", pa.int64())])
    table = keeping(new_table, timestamp_column=None)
    table.load([(1, "a", 1)])
    table.sync()
    table.cdc([("U", (5, "a", 1, 1))], columns=columns)

    table.sync()

    assert told(table, "id", "operation", "source_row") == [(1, "insert", 0), (1, "delete", 0), (5, "insert", 0)]


def test_a_reload_is_compared(new_table: MakeTable) -> None:
    """Rows that are the same have no new version; gone ones are deleted when the load began; load files may overlap."""
    table = keeping(new_table, timestamp_column=None)
    table.load([(1, "a", 1), (2, "b", 2)])
    table.load([(2, "b", 2), (3, "c", 3)], number=2)
    table.sync()
    table.cdc([("D", (3, None, None)), ("I", (6, "f", 6))])
    table.sync()
    table.load([(1, "a", 1), (2, "B", 2), (4, "d", 4)])
    table.load([(3, "new", 3)], number=2)
    table.edit(Request="reload", LoadQuietMinutes="0")

    table.sync()

    assert told(table, "id", "name", "operation") == [
        (1, "a", "insert"),
        (2, "b", "insert"),
        (2, "B", "update"),
        (3, "c", "insert"),
        (3, "c", "delete"),
        (3, "new", "insert"),
        (4, "d", "insert"),
        (6, "f", "insert"),
        (6, "f", "delete"),
    ]
    assert versions(table)[-1]["source_file"] is None


def test_a_reload_with_other_columns(new_table: MakeTable) -> None:
    """Old versions keep what is gone; types that widen are widened everywhere; a type that can't be taken up blocks the table."""
    table = keeping(new_table, timestamp_column=None)
    table.load([(1, "a", 1)])
    table.sync()
    table.load([(1, 2**40)], columns=pa.schema([("id", pa.int64()), ("qty", pa.int64())]))
    table.edit(Request="reload", LoadQuietMinutes="0")
    table.sync()
    assert told(table, "id", "qty", "name", "operation") == [(1, 1, "a", "insert"), (1, 2**40, None, "update")]
    before = table.item()["Head"]
    table.load([(1, "text")], columns=pa.schema([("id", pa.int64()), ("qty", pa.string())]))
    table.edit(Request="reload", LoadQuietMinutes="0")

    assert table.run("LoadInitial") == 1

    assert table.last_run()["error"]["code"] == "history-type-changed"
    assert table.item()["Head"] == before
    table.edit(History="false")
    table.sync()
    assert table.rows() == [(1, "text")]


def test_a_history_begins_later_and_catches_up(new_table: MakeTable) -> None:
    """Switched on for a table with rows; switched off while rows changed; each time brought up to date before the next batch."""
    table = keeping(new_table, partition_key="qty")
    table.edit(History="false")
    load(table, 0, (1, "a", 1), (2, "b", 2), (3, "c", 3))
    table.sync()
    table.edit(History="true")
    batch(table, (10, "U", (1, "A", 1)))
    table.sync(**PARTS)
    assert [record.kind for record in changes(table)] == ["full-load", "history", "incremental"]
    assert told(table, "id", "operation", "valid_from") == [
        (1, "insert", at(0)),
        (1, "update", at(10)),
        (2, "insert", at(0)),
        (3, "insert", at(0)),
    ]
    table.edit(History="false")
    batch(table, (20, "D", (2, None, None)), (21, "U", (3, "C", 4)))
    table.sync()
    assert table.snapshot().history is not None
    assert table.snapshot().history.is_stale
    table.edit(History="true")

    table.sync(**PARTS)

    found = told(table, "id", "name", "operation", "valid_from", "source_file")
    assert found[-2:] == [(3, "c", "insert", at(0), None), (3, "C", "update", at(21), None)]
    assert found[-3][:3] == (2, "b", "delete")
    assert found[-3][3] > datetime(2025, 1, 1, tzinfo=timezone.utc)


def test_a_table_without_a_key_is_loaded_and_then_blocked(new_table: MakeTable) -> None:
    """Row versions are versions of a key. With a key the history begins."""
    table = keeping(new_table, primary_key="null", timestamp_column=None)
    table.load([(1, "a", 1)])
    assert table.blocked()["code"] == "history-needs-key"
    table.edit(PrimaryKey="id")

    table.sync()

    assert told(table, "id", "operation") == [(1, "insert")]


@pytest.mark.parametrize("name", ["Operation", "valid_from_year"])
def test_a_column_that_is_the_history_s_blocks_the_table(new_table: MakeTable, name: str) -> None:
    """Also that of one of its folders, which readers have as a column."""
    table = keeping(new_table, columns=pa.schema([("id", pa.int64()), (name, pa.string())]), timestamp_column=None)
    table.load([(1, "a")])

    assert table.run("LoadInitial") == 1

    assert table.last_run()["error"]["code"] == "history-column-clash"
    assert "Head" not in table.item()


# --- one change for both tables


def test_it_goes_back_and_forth_with_the_table(new_table: MakeTable) -> None:
    """Rollback, re-apply, a staged change that is dropped and one that is committed, a truncate: one change for both tables each."""
    table = keeping(new_table)
    load(table, 0, (1, "a", 1), (2, "b", 2))
    table.sync()
    loaded = check_history(table)
    batch(table, (1, "U", (1, "A", 1)))
    assert table.run(stage="true") == 0
    assert check_history(table) == loaded
    assert table.discard(table.last_run()["staged"]).code == 0
    table.remove("Paused")
    assert table.run(stage="true") == 0
    assert table.commit(table.last_run()["staged"]).code == 0
    table.remove("Paused")
    applied = check_history(table)
    assert [row["name"] for row in applied] == ["a", "A", "b"]
    assert table.run("Rollback", to="previous", resume="true") == 0
    assert check_history(table) == loaded
    assert table.run("Rollback", reapply="all") == 0
    assert check_history(table) == applied
    for entry in table.clients.s3.list_objects_v2(Bucket="raw", Prefix=table.path.raw.key)["Contents"]:
        table.clients.s3.delete_object(Bucket="raw", Key=entry["Key"])
    table.edit(OnRawFilesGone="truncate")

    table.sync()

    assert table.rows() == []
    assert told(table, "name", "operation")[1:3] == [("A", "update"), ("A", "delete")]


def test_a_point_in_time_is_an_as_of_read(new_table: MakeTable) -> None:
    """Where times run forward, the versions valid at a time are the rows that the table had after the last change before it."""
    random_ = random.Random(7)
    table, hours, states = keeping(new_table, partition_key="qty"), itertools.count(step=100), []
    load(table, next(hours), *((number, "load", 1) for number in range(5)))
    table.sync()
    for _ in range(3):
        rows = [(random_.choice("IUUD"), (random_.randrange(7), random_.choice("abc"), random_.randrange(2))) for _ in range(6)]
        states.append((next(hours), table.rows()))
        batch(table, *((next(hours), op, row if op != "D" else (row[0], None, None)) for op, row in rows))
        table.sync()
    found = check_history(table)

    for hour, rows in states:
        valid = [row for row in found if row["valid_from"] <= at(hour) and (row["valid_to"] is None or at(hour) < row["valid_to"])]
        living = [tuple(row[name] for name in STAMPED.names) for row in valid if row["operation"] != "delete"]
        assert sorted(living) == sorted(rows)


def test_spark_keeps_the_history_too(spark_table: MakeTable) -> None:
    """As tasks of Spark: a batch in one go, another one in a few parts."""
    table = spark_table(timestamp_column="committed")
    table.edit(History="true")
    load(table, 0, *((number, "load", 1) for number in range(6)))
    assert table.run("LoadInitial") == 0, table.last_run()
    for name, replay_bytes in (("first", "100000000"), ("second", "2500")):
        batch(table, *((10, op, (number, name, 1)) for number, op in enumerate("UUD")))
        assert table.run(driver_bytes="0", replay_bytes=replay_bytes) == 0, table.last_run()
        assert table.head().details["engine"] == "spark"

    found = told(table, "id", "name", "operation")

    updated = [(number, *version) for number in (0, 1) for version in (("load", "insert"), ("first", "update"), ("second", "update"))]
    assert found == [*updated, (2, "load", "insert"), (2, "load", "delete"), *((number, "load", "insert") for number in (3, 4, 5))]


# --- a person's changes


def given(folder: Path, name: str, columns: pa.Schema, *rows: tuple[Any, ...]) -> str:
    path = folder / f"{name}.parquet"
    pq.write_table(pa.Table.from_pylist([dict(zip(columns.names, row, strict=True)) for row in rows], columns), path)
    return str(path)


def test_what_a_person_changes_is_a_version(new_table: MakeTable, tmp_path: Path) -> None:
    """By a key that is not the primary one; an edit that inserts; what no raw file says has no source."""
    table = keeping(new_table, partition_key="qty", timestamp_column=None)
    table.load([(1, "a", 1), (2, "b", 1), (3, "c", 2)])
    table.sync()
    before = datetime.now(timezone.utc)
    quantity = pa.schema([("qty", pa.int32())])
    updates, deletes = given(tmp_path, "new", SHOP, (2, "B", 1), (5, "e", 1)), given(tmp_path, "gone", quantity, (2,))
    assert table.run("Apply", key="qty", updates=updates, deletes=deletes) == 0, table.last_run()
    assert table.run("Apply", edit="insert", rows=given(tmp_path, "rows", SHOP, (3, "again", 2), (7, "g", 2))) == 0, table.last_run()

    found = check_history(table)

    assert [(row["id"], row["name"], row["operation"]) for row in found] == [
        (1, "a", "insert"),
        (1, "a", "delete"),
        (2, "b", "insert"),
        (2, "B", "update"),
        (3, "c", "insert"),
        (3, "c", "delete"),
        (3, "again", "insert"),
        (5, "e", "insert"),
        (7, "g", "insert"),
    ]
    by_hand = [row for row in found if row["source_file"] is None]
    assert len(by_hand) == 6
    assert all(row["valid_from"] >= before and row["source_row"] is None for row in by_hand)


def test_a_person_s_change_of_a_table_that_is_behind_waits(new_table: MakeTable, tmp_path: Path) -> None:
    """The next run of the load job finds what it did."""
    table = keeping(new_table, timestamp_column=None)
    table.edit(History="false")
    table.load([(1, "a", 1)])
    table.sync()
    table.edit(History="true")
    assert table.run("Apply", key="id", updates=given(tmp_path, "new", SHOP, (1, "A", 1))) == 0, table.last_run()
    assert table.snapshot().history is None

    table.sync()

    assert told(table, "name", "operation") == [("A", "insert")]


# --- files that come late


def test_a_late_file_is_put_where_it_belongs(new_table: MakeTable, tmp_path: Path) -> None:
    """Between versions, before a delete, behind all, after a person's change; and a delete that came to nothing may be one now."""
    table = keeping(new_table)
    load(table, 0, *((number, "load", 1) for number in range(1, 6)))
    batch(table, (1, "U", (1, "f1", 1)), (1, "U", (2, "f1", 2)), name=NAMES[1])
    batch(table, (800, "D", (3, None, None)), (800, "D", (9, None, None)), (800, "U", (2, "f3", 2)), name=NAMES[3])
    table.sync()
    person = given(tmp_path, "new", STAMPED, ("2030-01-01 00:00:00", 4, "person", 1), ("2030-01-01 00:00:00", 5, "person", 1))
    assert table.run("Apply", key="id", updates=person) == 0, table.last_run()
    late = [(number, "late", 1) for number in (1, 2, 3, 4, 9)]
    batch(table, *((2, "U", row) for row in late), (2, "D", (8, None, None)), name=NAMES[2])

    table.sync(**PARTS)

    assert table.head().kind == "late"
    found = told(table, "id", "name", "operation")
    assert found == [
        (1, "load", "insert"),
        (1, "f1", "update"),
        (1, "late", "update"),
        (2, "load", "insert"),
        (2, "f1", "update"),
        (2, "late", "update"),
        (2, "f3", "update"),
        (3, "load", "insert"),
        (3, "late", "update"),
        (3, "late", "delete"),
        (4, "load", "insert"),
        (4, "person", "update"),
        (4, "late", "update"),
        (5, "load", "insert"),
        (5, "person", "update"),
        (9, "late", "insert"),
        (9, "late", "delete"),
    ]
    assert [row[1:] for row in told(table, "id", "valid_from", "valid_to") if row[0] == 2] == [
        (at(0), at(1)),
        (at(1), at(2)),
        (at(2), at(800)),
        (at(800), None),
    ]


# --- columns and keys


def test_columns_that_come_and_grow(new_table: MakeTable) -> None:
    """A new column is null in old versions, whose files stay; a wider one means that all files are rewritten."""
    table = keeping(new_table)
    load(table, 0, (1, "a", 1), (2, "b", 2))
    table.sync()
    (first,) = history_of(table).files
    more = SHOP.append(pa.field("note", pa.string()))
    table.cdc([DmsRow("I", (3, "c", 3, "hello"), at(800))], columns=more)
    table.sync(**PARTS)
    assert first in history_of(table).files
    wide = pa.schema([("id", pa.int64()), ("name", pa.string()), ("qty", pa.int64()), ("note", pa.string())])
    table.cdc([DmsRow("U", (1, "A", 2**40, None), at(801))], columns=wide)

    table.sync(**PARTS)

    assert told(table, "id", "qty", "note") == [(1, 1, None), (1, 2**40, None), (2, 2, None), (3, 3, "hello")]
    assert types(table, "qty") == {pa.int64()}


def types(table: WorkTable, name: str) -> set[pa.DataType]:
    """The types that a column has in the history's files."""
    lake = history_lake(table.out_path)
    bodies = [table.clients.s3.get_object(Bucket=lake.bucket, Key=lake.key + path)["Body"].read() for path in history_of(table).files]
    return {pq.read_schema(pa.BufferReader(body)).field(name).type for body in bodies}


def test_a_renamed_column_is_renamed_in_the_history(new_table: MakeTable) -> None:
    """In its files too, whether it goes with the table or is behind it."""
    table = keeping(new_table)
    load(table, 0, (1, "a", 1))
    table.sync()
    table.edit(Request="schema-rename:name=title")
    table.sync()
    assert told(table, "title", "operation") == [("a", "insert")]
    table.edit(History="false")
    batch_of_new = pa.schema([("id", pa.int64()), ("title", pa.string()), ("qty", pa.int32())])
    table.cdc([DmsRow("U", (1, "b", 1), at(5))], columns=batch_of_new)
    table.sync()
    table.edit(History="true", Request="schema-rename:title=label")

    table.sync()

    assert told(table, "label", "operation") == [("a", "insert"), ("b", "update")]
    assert [record.kind for record in changes(table)][-2:] == ["schema", "history"]


def test_another_key(new_table: MakeTable) -> None:
    """Each new key has one open version: of a key that a living row has now, and of one that is null, the deleted row's ends."""
    table = keeping(new_table)
    load(table, 0, (1, "x", 1), (2, "y", 2), (3, None, 3))
    table.sync()
    batch(table, (1, "D", (1, None, None)), (2, "D", (3, None, None)), (3, "U", (2, "x", 2)))
    table.sync()
    table.edit(PrimaryKey="name")
    table.sync(replay_bytes="500")

    open_now = [(row["id"], row["name"], row["operation"]) for row in versions(table) if row["validity_flag"] == 1]

    assert open_now == [(2, "x", "update")]
    batch(table, (800, "U", (2, "x", 9)), (801, "I", (7, "z", 1)))
    table.sync()
    latest = [(row["name"], row["qty"], row["operation"]) for row in versions(table) if row["validity_flag"] == 1]
    assert latest == [("x", 9, "update"), ("z", 1, "insert")]
