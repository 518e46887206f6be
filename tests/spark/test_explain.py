"""The life of a row: each change that touched its key, with the raw file and row, at the cost of the files that hold it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from glue_jobs.core.errors import UsageError
from glue_jobs.core.limits import Limits
from glue_jobs.core.record import ChangeRecord, DataFile, Input
from glue_jobs.core.schema import Column
from glue_jobs.core.undo import root, rows_path
from glue_jobs.spark.explain import Life, bytes_of, followed, key_of, life_of
from glue_jobs.spark.place import Place
from glue_jobs.spark.plain_rows import plain_rows
from glue_jobs.spark.reading import reading_place
from tests.aws.plain_gets import plain_gets
from tests.core.records import minimal
from tests.spark.tables import SHOP, WorkTable
from tests.work_tables import MakeTable

LOADED = [(1, "a", 1), (2, "b", 2), (3, "c", 3)]


@contextmanager
def counted(place: Place) -> Iterator[Counter[str]]:
    """What is asked of S3 meanwhile."""
    requests: Counter[str] = Counter()
    events = place.s3.meta.events
    events.register("before-call.s3", lambda model, **_: requests.update([model.name]), unique_id="count")
    with plain_gets():
        yield requests
    events.unregister("before-call.s3", unique_id="count")


def life(table: WorkTable, *key: str) -> Life:
    """The life of a row by its key."""
    snapshot, lineage = table.snapshot(), table.lineage()
    wanted = key_of(snapshot.schema, snapshot.primary_key, key)
    roots = {file.path: root(file) for record in lineage.back() for file in record.added}
    records = followed(list(rows_path(lineage, snapshot.stands_for))[::-1], wanted)
    place = reading_place(table.environment, table.path.bucket, table.out_path, Limits())
    return life_of(place, "t", records, roots, wanted)


def told(table: WorkTable, *key: str) -> list[tuple[Any, ...]]:
    """(what, values after, columns changed, raw file, row) of each step."""
    steps = []
    for step in life(table, *key).steps:
        source = (step.source.file.rsplit("/", 1)[-1], step.source.row) if step.source else None
        steps.append((step.what, tuple((step.after or {}).values()), step.changed, *(source or ("", -1))))
    return steps


def loaded(table: WorkTable) -> WorkTable:
    table.load(LOADED)
    assert table.run("LoadInitial") == 0
    return table


def batch(table: WorkTable, *rows: Any, **options: Any) -> str:
    """Apply a CDC file; its name."""
    name = table.cdc(rows, **options).rsplit("/", 1)[-1]
    assert table.run() == 0, table.item()
    return name


def hide_forever(table: WorkTable, change: str) -> None:
    """Delete the data versions of the files that a change added."""
    for file in table.lineage()(change).added:
        key = table.out_path.key + file.path
        for version in table.clients.s3.list_object_versions(Bucket=table.out_path.bucket, Prefix=key)["Versions"]:
            table.clients.s3.delete_object(Bucket=table.out_path.bucket, Key=key, VersionId=version["VersionId"])


def test_the_files_that_may_tell_of_a_row_are_counted() -> None:
    """Data files whose keys surround it, with the raw files of their changes, and of a change that took such a file, or its copy, away."""

    def change(number: int, low: int, high: int, *superseded: str) -> ChangeRecord:
        file = DataFile(f"{number}.parquet", 100 * number, 9, low=(low,), high=(high,))
        inputs = (Input(f"raw/{number}", "etag", number),)
        return minimal(added=(file,), superseded=superseded, inputs=inputs, schema=(Column("id", "bigint"),), primary_key=("id",))

    records = [change(1, 1, 3), change(2, 3, 4, "copy.parquet"), change(3, 5, 9)]
    roots = {"copy.parquet": "1.parquet"}

    def size(value: str) -> int:
        return bytes_of(records, roots, key_of(records[0].schema, ("id",), (value,)))

    assert [size(value) for value in ("2", "3", "7", "10")] == [101 + 2, 101 + 202, 303, 0]


def test_of_raw_files_in_parquet_a_part_is_counted() -> None:
    """The key's columns alone are read: counted whole, a table whose load had more than a page reads would never show a row's life."""
    file = DataFile("1.parquet", 100, 9, low=(1,), high=(3,))
    inputs = (Input("raw/LOAD00000001.parquet", "etag", 8000), Input("raw/LOAD00000002.csv", "etag", 8000))
    record = minimal(added=(file,), inputs=inputs, schema=(Column("id", "bigint"),), primary_key=("id",))

    assert bytes_of([record], {}, key_of(record.schema, ("id",), ("2",))) == 100 + 1000 + 8000


def test_every_change_of_the_row_is_told(new_table: MakeTable) -> None:
    """Of several rows of a key in a batch the last one; a batch that leaves it as it is, is none of its life."""
    table = loaded(new_table())
    first = batch(table, ("U", (1, "x", 1)), ("U", (2, "B", 2)), ("U", (1, "A", None)))
    batch(table, ("U", (2, "BB", 2)))
    batch(table, ("U", (1, "A", None)))
    gone = batch(table, ("I", (9, "z", 9)), ("D", (1, "A", None)))
    again = batch(table, ("I", (1, "new", 7)))

    assert told(table, "1") == [
        ("insert", (1, "a", 1), (), "LOAD00000001.parquet", 0),
        ("update", (1, "A", None), ("name", "qty"), first, 2),
        ("delete", (), (), gone, 1),
        ("insert", (1, "new", 7), (), again, 0),
    ]
    assert life(table, "1").now == {"id": 1, "name": "new", "qty": 7}
    assert (told(table, "77"), life(table, "77").now) == ([], None)


def test_rows_that_move_between_partitions_and_changes_that_are_undone(served_table: MakeTable) -> None:
    """A row that moved is updated, not deleted; of a rollback nothing is told, and a batch after it goes on from the copies."""
    table = loaded(served_table(partition_key="qty"))
    moved = batch(table, ("U", (1, "a", 2)))
    batch(table, ("U", (1, "wrong", 3)), ("D", (2, "b", 2)))
    assert table.run("Rollback", to="previous", resume="true", skip="true") == 0
    later = batch(table, ("U", (1, "right", 2)))
    last = batch(table, ("D", (2, "b", 2)))

    assert [step[:3] for step in told(table, "1")] == [
        ("insert", (1, "a", 1), ()), ("update", (1, "a", 2), ("qty",)), ("update", (1, "right", 2), ("name",)),
    ]  # fmt: skip
    assert [step[3:] for step in told(table, "1")] == [("LOAD00000001.parquet", 0), (moved, 0), (later, 0)]
    assert told(table, "2") == [("insert", (2, "b", 2), (), "LOAD00000001.parquet", 1), ("delete", (), (), last, 0)]


EVENTS = st.lists(
    st.tuples(st.sampled_from("IUD"), st.integers(0, 3), st.none() | st.sampled_from(["", "a"]), st.integers(0, 1)), min_size=1
)


@settings(max_examples=4, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(EVENTS, min_size=1, max_size=3))
def test_a_life_agrees_with_the_batches(new_table: MakeTable, batches: list[list[Any]]) -> None:
    """Played in Python: states of each key after each batch, and the last row of the key in its file."""
    table = loaded(new_table(partition_key="qty"))
    rows: dict[int, tuple[Any, ...]] = {row[0]: row for row in LOADED}
    expected: dict[int, list[Any]] = {key: [(row, "LOAD00000001.parquet", key - 1)] for key, row in rows.items()}
    for events in batches:
        name = batch(table, *((op, values) for op, *values in events))
        for key in {event[1] for event in events}:
            at, (op, *values) = [(at, event) for at, event in enumerate(events) if event[1] == key][-1]
            after = None if op == "D" else tuple(values)
            if after != rows.pop(key, None):
                expected.setdefault(key, []).append((after, name, at))
            if after is not None:
                rows[key] = after

    found = {key: [(after or None, file, row) for _, after, _, file, row in told(table, str(key))] for key in expected}

    assert found == expected


def test_a_raw_file_that_is_gone_or_changed_is_said(new_table: MakeTable) -> None:
    """With the file that ranks highest of those that are left; an image may have come from one that is gone."""
    table = loaded(new_table())
    names = [table.cdc([("U", (1, text, 1))]).rsplit("/", 1)[-1] for text in ("x", "y", "z")]
    assert table.run() == 0
    table.delete_raw(names[2])
    table.put_raw("LOAD00000001.parquet", b"another")

    load, update = life(table, "1").steps

    assert load.source is not None
    assert update.source is not None
    assert (load.source.file, [key.rsplit("/", 1)[-1] for key in load.source.missing]) == ("", ["LOAD00000001.parquet"])
    assert (update.source.file.rsplit("/", 1)[-1], update.source.row) == (names[1], 0)
    assert [key.rsplit("/", 1)[-1] for key in update.source.missing] == [names[2]]


def test_data_that_is_no_more_is_said_and_passed_over(new_table: MakeTable) -> None:
    """The raw file still tells what the change did; the next change's file tells the row again. Other rows' lives don't mention it."""
    table = loaded(new_table())
    lost = batch(table, ("U", (1, "x", 1)), ("D", (2, "b", 2)))
    hidden = table.head()
    kept = batch(table, ("U", (1, "y", 1)))
    hide_forever(table, hidden.id)

    steps = life(table, "1").steps

    assert [(step.what, step.gone, step.after) for step in steps] == [
        ("insert", "", {"id": 1, "name": "a", "qty": 1}),
        ("unknown", hidden.added[0].path, None),
        ("unknown", "", {"id": 1, "name": "y", "qty": 1}),
    ]
    sources = [step.source for step in steps if step.source]
    assert [(source.file.rsplit("/", 1)[-1], source.operation) for source in sources[1:]] == [(lost, "update"), (kept, "update")]
    assert [(step.what, bool(step.gone)) for step in life(table, "2").steps] == [("insert", False), ("delete", True)]
    assert [step.what for step in life(table, "3").steps] == ["insert"]
    assert life(table, "3").now == {"id": 3, "name": "c", "qty": 3}


def test_columns_that_come_grow_and_are_renamed(new_table: MakeTable) -> None:
    """A null in a new column and a new name are no update."""
    table = loaded(new_table())
    wider = pa.schema([("id", pa.int64()), ("name", pa.string()), ("qty", pa.int64()), ("note", pa.string())])
    batch(table, ("U", (3, "c", 2**40, "new")), columns=wider)
    table.edit(Request="schema-rename:name=title")
    assert table.run() == 0, table.item()
    renamed = pa.schema([("id", pa.int64()), ("title", pa.string()), ("qty", pa.int64()), ("note", pa.string())])
    batch(table, ("U", (1, "A", 1, None)), columns=renamed)

    assert [step[:3] for step in told(table, "1")] == [("insert", (1, "a", 1), ()), ("update", (1, "A", 1, None), ("title",))]
    assert [step[:3] for step in told(table, "3")][1:] == [("update", (3, "c", 2**40, "new"), ("qty", "note"))]


def test_a_changed_key_is_a_delete_of_the_old_one(new_table: MakeTable) -> None:
    """As far as DMS writes before images; found in the same row of the file."""
    table = loaded(new_table())
    name = batch(table, ("U", (8, "a", 1, 1)), columns=pa.schema([*SHOP, ("BI_id", pa.int64())]))

    assert told(table, "1")[1:] == [("delete", (), (), name, 0)]
    assert told(table, "8") == [("insert", (8, "a", 1), (), name, 0)]


def test_a_life_begins_where_rows_are_told_apart_by_the_key(new_table: MakeTable) -> None:
    """Another PrimaryKey, another life."""
    table = loaded(new_table())
    table.edit(PrimaryKey="id,name")
    assert table.run() == 0, table.item()
    name = batch(table, ("U", (1, "a", 5)))

    assert told(table, "1", "a")[-1] == ("update", (1, "a", 5), ("qty",), name, 0)
    assert len(told(table, "1", "a")) == 2


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("bigint", "x"), ("tinyint", "300"), ("decimal(5,2)", "1.234"), ("date", "2024-13-01"), ("timestamp", "yesterday"),
        ("binary", "zz"), ("boolean", "yes"), ("double", "much"),
    ],
)  # fmt: skip
def test_values_that_are_no_key_are_refused(kind: str, text: str) -> None:
    """With the type that is wanted."""
    with pytest.raises(UsageError, match="is no key of column 'k'") as caught:
        key_of((Column("k", kind),), ("k",), (text,))

    assert kind in caught.value.todo


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        ("bigint", "-7", -7), ("string", "a,b", "a,b"), ("binary", "00ff", b"\x00\xff"), ("boolean", "true", True), ("double", "1.5", 1.5),
    ],
)  # fmt: skip
def test_values_have_the_keys_type(kind: str, text: str, value: Any) -> None:
    """Also without a key, or with too few values, it is refused."""
    assert key_of((Column("k", kind),), ("k",), (text,))["k"].to_pylist() == [value]
    assert key_of((Column("k", "timestamp"),), ("k",), ("2024-05-01T12:00:00.5Z",))["k"].cast(pa.int64()).to_pylist() == [1714564800500000]
    with pytest.raises(UsageError, match="no primary key"):
        key_of((Column("k", kind),), (), (text,))
    with pytest.raises(UsageError, match="2 key value"):
        key_of((Column("k", kind),), ("k",), (text, text))


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        ("date", "10000-01-01", 2_932_897), ("date", "-0001-12-31", -719_529), ("date", "12000-02-29", 3_663_441),
        ("timestamp", "10000-01-01T00:00:00.000001Z", 253_402_300_800_000_001),
        ("timestamp", "-0001-12-31 23:59:59.999999", -62_167_219_200_000_001),
    ],
)  # fmt: skip
def test_a_key_may_be_of_any_year(kind: str, text: str, value: int) -> None:
    """In the texts that rows are shown in."""
    key = key_of((Column("k", kind),), ("k",), (text,))

    assert key["k"].cast(pa.int32() if kind == "date" else pa.int64()).to_pylist() == [value]
    assert plain_rows(key)[0][0].rstrip("Z") == text.replace(" ", "T").rstrip("Z")


@pytest.mark.parametrize(("kind", "text"), [("date", "10000-02-30"), ("date", "9999999999-01-01"), ("timestamp", "400000-01-01")])
def test_a_far_day_that_is_none_is_refused(kind: str, text: str) -> None:
    """As one of our time is; so is one that the type can't hold."""
    with pytest.raises(UsageError, match="is no key of column 'k'"):
        key_of((Column("k", kind),), ("k",), (text,))


def test_a_table_of_many_files_costs_few_requests(new_table: MakeTable) -> None:
    """Of 700 files (all but three only stand in the record) those that cover the key, and the raw files of the changes that touched it."""
    table = loaded(new_table(partition_key="qty"))
    batch(table, ("U", (2, "B", 2)))
    batch(table, ("U", (1, "A", 1)))
    load, *rest = list(rows_path(table.lineage(), table.snapshot().stands_for))[::-1]
    many = tuple(DataFile(f"qty={at}/x.parquet", 9, 1, partition=(str(at),), low=(at,), high=(at,)) for at in range(4, 701))
    place = reading_place(table.environment, table.path.bucket, table.out_path, Limits())
    key = key_of(load.schema, load.primary_key, ("2",))

    with counted(place) as requests:
        found = life_of(place, "t", [replace(load, added=(*load.added, *many)), *rest], {}, key)

    assert [step.what for step in found.steps] == ["insert", "update"]
    assert (found.files, requests) == (2, {"ListObjectVersions": 2, "GetObject": 6})
