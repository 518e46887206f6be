"""However the work is done — by Arrow in the driver, by Spark with broadcast changes, by Spark's shuffle —, the lake is the same."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

from glue_jobs.core.collation import EXACT, Collation, collated, parse_collation
from glue_jobs.core.limits import Limits
from glue_jobs.core.partitioning import parse_partition_key
from glue_jobs.core.paths import S3Uri
from glue_jobs.core.record import DataFile
from glue_jobs.core.schema import Column
from glue_jobs.spark.net_changes import INSERT, UPDATE
from glue_jobs.spark.place import Shape
from glue_jobs.spark.reading import reading_place
from glue_jobs.spark.rows import append_forms
from glue_jobs.spark.shuffle import ARRIVES, COMES, LEAVES, NEW_FILE, _order, _Rewriter, _Router
from tests.spark.scenarios import Change, Row, Source
from tests.spark.tables import WorkTable, texts
from tests.work_tables import MakeTable

COLUMNS = pa.schema(
    [("shop", pa.string()), ("ratio", pa.float64()), ("part", pa.string()), ("amount", pa.decimal128(38, 4)), ("note", pa.binary())]
)
SHOPS = [f"s{number}" for number in range(60)] + ["é", "z\uffee", "😀"]
RATIOS = [-0.0, 0.0, math.nan, 1.5, -math.inf]
PARTS = ["a", "b/c", "", None]
STRATEGIES = {
    "driver": {},
    "broadcast": {"driver_bytes": "0"},
    "shuffle": {"driver_bytes": "0", "broadcast_bytes": "0"},
}
ROUNDS = [
    {"target_file_bytes": "3000"},  # the load comes out as several files, also without partitions
    {},  # inserts go into small files
    {"small_file_bytes": "0"},  # inserts go into new files
    {"stream_file_bytes": "1000"},  # files are read and written in pieces
]


def _row(random_: random.Random) -> Row:
    note = None if random_.random() < 0.2 else random_.randbytes(random_.randrange(3))
    return (random_.choice(SHOPS), random_.choice(RATIOS), random_.choice(PARTS), None, note)


def _changes(random_: random.Random, count: int) -> list[Change]:
    """Changes of few keys, so that many of them follow on each other; D with the key alone or with the whole row."""
    out: list[Change] = []
    for _ in range(count):
        op, row = random_.choice("IUUD"), _row(random_)
        key_only = op == "D" and random_.random() < 0.5
        out.append((op, (*row[:2], None, None, None) if key_only else row))
    return out


def _feed(table: WorkTable, round_: int, source: Source) -> tuple[int, int, int]:
    """The raw files of one round, the same for every table; what they come to."""
    random_ = random.Random(round_)
    if round_ == 0:
        rows = [_row(random_) for _ in range(300)]
        table.load(rows[:200], 1)
        table.load(rows[180:], 2)
        return source.take(("I", row) for row in rows)
    files = [_changes(random_, 60) for _ in range(2)]
    for changes in files:
        table.cdc(changes)
    return source.take(change for changes in files for change in changes)


@pytest.mark.parametrize("partition_key", ["null", "part"])
def test_all_strategies_give_the_same_rows(spark_table: MakeTable, partition_key: str) -> None:
    """After a load and three batches with moves, each table has the dict's rows to the last bit, and the same counts."""
    tables = {name: spark_table(COLUMNS, primary_key="shop,ratio", partition_key=partition_key) for name in STRATEGIES}
    for table in tables.values():
        table.edit(EmptyPartition="null")
    sources = {name: Source(2) for name in tables}
    for round_, settings in enumerate(ROUNDS):
        found: dict[str, Any] = {}
        for name, table in tables.items():
            expected = _feed(table, round_, sources[name])
            assert table.run("LoadInitial" if round_ == 0 else "LoadIncremental", **{**settings, **STRATEGIES[name]}) == 0, table.last_run()
            assert table.counts() == expected, f"{name}, round {round_}"
            table.check_folder()
            table.check_files()
            found[name] = texts(table.rows())
        wanted = texts(_as_read(row, partition_key) for row in sources["driver"].rows.values())
        for name, rows in found.items():
            assert rows == wanted, f"{name}, round {round_}"


def _as_read(row: Row, partition_key: str) -> Row:
    """With EmptyPartition = null an empty text in the partition column is written as null."""
    return (*row[:2], row[2] or None, *row[3:]) if partition_key == "part" else row


def _routed(*rows: tuple[int, int, str, int]) -> pa.RecordBatch:
    """A batch as it reaches the rewriter; of each row id, operation, partition and file."""
    ids, ops, parts, files = zip(*rows, strict=True)
    columns = [pa.array(ids, pa.int64()), pa.array(parts), pa.array(ops, pa.int8()), pa.array(parts), pa.array(files, pa.int32())]
    return pa.record_batch([*columns, pa.array([0] * len(rows), pa.int32())], names=["c0", "c1", "op", "p0", "file", "bin"])


def in_order(routed: Sequence[dict[str, Any]], shape: Shape) -> list[dict[str, Any]]:
    """The rows of a bin as Spark sorts them, null first."""

    def place_of(row: dict[str, Any]) -> list[Any]:
        values = [row["op"] >= ARRIVES if text == f"op >= {ARRIVES}" else row[text] for text in _order(shape)]
        return [(value is not None, value) for value in values]

    return sorted(routed, key=place_of)


@pytest.mark.parametrize(("home", "target"), [("open", "shipped"), ("open", "lost"), ("open", None), (None, "open")])
def test_a_row_that_leaves_stays_with_its_file(home: str | None, target: str | None) -> None:
    """Also where so many rows come to its partition that most of them go to new files: there it would be one of theirs."""
    schema = (Column("id", "bigint"), Column("part", "string"))
    shape = Shape("t", schema, ("id",), parse_partition_key("part"))
    place = replace(reading_place({}, "raw", S3Uri("lake", "t/"), Limits(target_file_bytes=10)), change="c")
    files = (DataFile("f", 1, 2, "", (home,)), DataFile("g", 1, 1, "", (target,)))
    parts, ids = [target, *[home] * 5], [1, 10, 11, 12, 13, 14]
    columns = [pa.array(ids), pa.array(parts), pa.array([UPDATE, *[INSERT] * 5], pa.int8()), pa.array(parts)]
    joined = pa.record_batch([*columns, pa.array([0, *[None] * 5], pa.int32())], names=["c0", "c1", "op", "p0", "file"])
    router = _Router(2, ("p0",), (files[0].partition, files[1].partition), {files[0].partition: 0, files[1].partition: 1}, {0: 0, 1: 1}, 2)
    routed = [row for batch in router(iter([joined])) for row in batch.to_pylist() if row["bin"] == 0]

    ready = pa.Table.from_pylist(in_order(routed, shape), router_schema())
    groups = list(_Rewriter(place, shape, files)._groups(iter(ready.to_batches(max_chunksize=2))))

    assert len(groups) > 1
    for (at, _), rows in groups:
        assert (LEAVES in rows["__op"].to_pylist()) == (at == 0 and 1 in rows["id"].to_pylist())
    assert sorted(number for _, rows in groups for number in rows["id"].to_pylist()) == ids


@pytest.mark.parametrize(("collation", "ids"), [(EXACT, [2, 4, 3, 1]), (parse_collation("ci"), [2, 3, 1, 4])])
def test_rows_that_come_are_in_the_order_of_their_keys(collation: Collation, ids: list[int]) -> None:
    """Whatever the places of the key's columns in the table, and however its texts are spelled: else the new files overlap."""
    shape = Shape("t", (Column("id", "bigint"), Column("name", "string")), collated(("name", "id"), collation))
    rows = pa.table({"id": [1, 2, 3, 4], "name": ["b", "A", "a", "B"]})
    net = pa.table([*rows.columns, pa.array([INSERT] * 4, pa.int8())], names=["c0", "c1", "op"])
    joined = append_forms(net, rows, shape).append_column("file", pa.nulls(4, pa.int32()))
    router = _Router(2, (), (), {}, {}, 1)

    routed = [row for batch in router(iter(joined.to_batches())) for row in batch.to_pylist()]

    assert [row["c0"] for row in in_order(routed, shape)] == ids


def test_a_row_of_a_file_is_never_written_as_a_new_one() -> None:
    """Whatever put it among those: the merge fails, and nothing is committed."""
    shape = Shape("t", (Column("id", "bigint"), Column("part", "string")), ("id",), parse_partition_key("part"))
    place = replace(reading_place({}, "raw", S3Uri("lake", "t/"), Limits()), change="c")
    rows = pa.table({"id": [1], "part": ["a"], "__op": pa.array([LEAVES], pa.int8())})

    with pytest.raises(RuntimeError, match="sorted behind"):
        _Rewriter(place, shape, ())._rewrite((NEW_FILE, ("a",)), rows)


def router_schema() -> pa.Schema:
    """Of a batch as it reaches the rewriter."""
    return _routed((1, COMES, "b", NEW_FILE)).schema


def test_rows_that_come_are_written_before_all_are_there() -> None:
    """A batch may have nothing but new rows, of one partition. A file takes up those that come with its own, the rest go to new files."""
    schema = (Column("id", "bigint"), Column("part", "string"))
    shape = Shape("t", schema, ("id",), parse_partition_key("part"))
    place = replace(reading_place({}, "raw", S3Uri("lake", "t/"), Limits(target_file_bytes=10)), change="c")
    rewriter = _Rewriter(place, shape, (DataFile("part=a/f", 1, 1, "", ("a",)),))
    batches = [
        _routed((1, COMES, "b", NEW_FILE), (2, COMES, "b", NEW_FILE)),
        _routed((3, COMES, "b", NEW_FILE), (4, COMES, "c", NEW_FILE)),
        _routed((5, UPDATE, "a", 0), (6, UPDATE, "a", 0)),
        _routed((7, UPDATE, "a", 0), (8, COMES, "a", 0)),
        _routed((9, ARRIVES, "a", 0), (10, COMES, "a", 0)),
        _routed((11, COMES, "a", 0)),
    ]

    groups = [(group, rows["id"].to_pylist()) for group, rows in rewriter._groups(iter(batches))]

    assert groups == [
        ((NEW_FILE, ("b",)), [1, 2]),
        ((NEW_FILE, ("b",)), [3]),
        ((NEW_FILE, ("c",)), [4]),
        ((0, ()), [5, 6, 7, 8]),
        ((NEW_FILE, ("a",)), [9, 10]),
        ((NEW_FILE, ("a",)), [11]),
    ]
