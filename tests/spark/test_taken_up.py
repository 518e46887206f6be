"""Rows that no data file held, into a new file or into the small one that takes them up: a few bytes at a time, and in order."""

from __future__ import annotations

import io
import random
from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from glue_jobs.core.limits import Limits
from glue_jobs.core.paths import S3Uri
from glue_jobs.core.record import Counts, DataFile
from glue_jobs.core.schema import Column
from glue_jobs.spark import open_file, row_batches
from glue_jobs.spark.arrow_types import arrow_schema
from glue_jobs.spark.data_file_reader import read_encoded
from glue_jobs.spark.encoded_texts import ENCODED_TEXT, decoded
from glue_jobs.spark.key_columns import sort_by_key
from glue_jobs.spark.merge_file import FileMerge, Tally
from glue_jobs.spark.net_changes import DELETE, INSERT, OP, POSITION, UPDATE, NetChanges, net_changes
from glue_jobs.spark.open_file import OpenFile
from glue_jobs.spark.place import Shape
from glue_jobs.spark.reading import reading_place
from glue_jobs.spark.shuffle import _Rewriter
from glue_jobs.spark.taken_up import new_rows, taken_up
from glue_jobs.spark.write_files import FileWriter, abort_files
from tests.spark.gathered import gather_little
from tests.spark.tables import WorkTable
from tests.work_tables import MakeTable

BATCH = 2000
SCHEMA = (Column("id", "bigint"), Column("state", "string"))
Written = list[tuple[int, int]]


def name_of(number: int) -> str:
    return f"n{number:04}" * 20


@pytest.fixture
def few_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    """A batch of rows has few bytes, and no file is so small that its rows lie in memory."""
    monkeypatch.setattr(row_batches, "BATCH_BYTES", BATCH)
    monkeypatch.setattr(open_file, "WHOLE_RATIO", 0)


@pytest.fixture
def written(monkeypatch: pytest.MonkeyPatch) -> Written:
    """Rows and bytes of each table that a data file is given."""
    found: Written = []
    write = FileWriter.write

    def noted(writer: FileWriter, rows: pa.Table) -> None:
        found.append((rows.num_rows, rows.nbytes))
        write(writer, rows)

    monkeypatch.setattr(FileWriter, "write", noted)
    return found


@pytest.fixture
def loaded(quick_table: MakeTable) -> WorkTable:
    """Two hundred rows with even keys, in one small file."""
    table = quick_table()
    table.load([(number, name_of(number), 0) for number in range(0, 400, 2)])
    assert table.run("LoadInitial") == 0
    return table


@pytest.mark.usefixtures("few_bytes")
@pytest.mark.parametrize("key", [-1, 101, 1000], ids=["before all", "among them", "behind all"])
def test_a_small_file_that_takes_up_a_row_is_never_in_memory_whole(loaded: WorkTable, written: Written, key: int) -> None:
    """It may be small because it is compressed well."""
    written.clear()
    loaded.cdc([("I", (key, "new", 1)), ("U", (50, "changed", 1)), ("D", (60, None, None))])

    loaded.sync()

    assert sum(rows for rows, _ in written) == 200
    assert max(size for _, size in written) <= 1.2 * BATCH
    rows = {number: (number, name_of(number), 0) for number in range(0, 400, 2) if number != 60}
    assert sorted(loaded.rows()) == sorted({**rows, key: (key, "new", 1), 50: (50, "changed", 1)}.values())
    assert loaded.counts() == (1, 1, 1)
    assert len(loaded.snapshot().files) == 1
    loaded.check_files()


@pytest.mark.usefixtures("few_bytes")
@pytest.mark.parametrize("key", [-1, 101, 1000], ids=["before all", "among them", "behind all"])
def test_nor_is_it_where_the_batch_came_by_a_shuffle(loaded: WorkTable, written: Written, key: int) -> None:
    written.clear()
    snapshot = loaded.snapshot()
    reading = reading_place(loaded.environment, loaded.path.bucket, loaded.out_path, Limits())
    place = replace(reading, change=loaded.item()["Head"], compression="zstd")
    shape = Shape(str(loaded.path), snapshot.schema, snapshot.primary_key, snapshot.partitioning)
    rows = pa.table({"id": [key, 50, 60], "name": ["new", "changed", None], "qty": [1, 1, None]}, arrow_schema(shape.schema))
    ops = pa.array([INSERT, UPDATE, DELETE], pa.int8())

    group = _Rewriter(place, shape, tuple(snapshot.files.values()))._rewrite((0, ()), rows.append_column(OP, ops))
    abort_files(place, group.added)

    assert group.counts == Counts(inserted=1, updated=1, deleted=1)
    assert [file.rows for file in group.added] == [200]
    assert (group.added[0].low, group.added[0].high) == ((min(key, 0),), (max(key, 398),))
    assert max(size for _, size in written) <= 1.2 * BATCH


def test_new_rows_of_a_batch_come_a_few_at_a_time(quick_table: MakeTable, written: Written, few_bytes: None) -> None:
    """Into one file for each partition, as many as they are."""
    table = quick_table(partition_key="qty")
    table.cdc([("I", (number, name_of(number), number % 2)) for number in range(300)])

    table.sync()

    assert sum(rows for rows, _ in written) == 300
    assert max(size for _, size in written) <= 1.2 * BATCH
    assert sorted(file.rows for file in table.snapshot().files.values()) == [150, 150]
    assert sorted(table.rows()) == [(number, name_of(number), number % 2) for number in range(300)]
    table.check_files()


@pytest.mark.parametrize("small_file_bytes", ["0", "1000000"], ids=["to new files", "to the small one"])
@pytest.mark.parametrize("in_pieces", [False, True], ids=["in memory", "in pieces"])
def test_new_rows_are_gathered_however_much_text_they_have(
    loaded: WorkTable, monkeypatch: pytest.MonkeyPatch, small_file_bytes: str, in_pieces: bool
) -> None:
    """Arrow can't gather 2 GiB of a column of texts at once."""
    gather_little(monkeypatch)
    changes = {number: (number, f"changed {number}", 1) for number in range(1, 500, 9)}
    loaded.cdc([("U", row) for row in changes.values()])

    loaded.sync(small_file_bytes=small_file_bytes, stream_file_bytes="0" if in_pieces else "1000000")

    rows = {number: (number, name_of(number), 0) for number in range(0, 400, 2)}
    assert sorted(loaded.rows()) == sorted({**rows, **changes}.values())
    loaded.check_files()


def changes_of(table: pa.Table, shape: Shape) -> NetChanges:
    return net_changes(table.append_column(OP, pa.array([INSERT] * table.num_rows, pa.int8())), shape)


def texts(ids: list[int], of: Callable[[int], str]) -> pa.Table:
    return pa.table({"id": ids, "state": [of(number) for number in ids]}, arrow_schema(SCHEMA))


@pytest.mark.parametrize("positions", [[], [0], [3, 4, 9], list(range(40))])
def test_the_images_at_some_positions(monkeypatch: pytest.MonkeyPatch, positions: list[int]) -> None:
    """Whatever lies between them."""
    monkeypatch.setattr(row_batches, "BATCH_BYTES", 100)
    net = changes_of(texts(list(range(40)), "state {0}".format), Shape("t", SCHEMA, ("id",)))

    pieces = list(new_rows(net, np.array(positions, np.int64)))

    assert [number for piece in pieces for number in piece["id"].to_pylist()] == positions
    assert max((piece.num_rows for piece in pieces), default=0) < 10


def opened(stored: pa.Table, shape: Shape, whole: bool) -> OpenFile:
    """A file of these rows in row groups of seven, of which each is a piece."""
    data = io.BytesIO()
    pq.write_table(stored, data, row_group_size=7, store_schema=False)
    place: Any = SimpleNamespace(lake=S3Uri("lake", "t/"), limits=Limits(stream_file_bytes=0))
    parquet, encoded = read_encoded(data, "f.parquet", streamed=not whole, decoded=set(shape.key))
    return OpenFile(place, shape, DataFile("f.parquet", len(data.getvalue()), stored.num_rows), parquet, whole, encoded=encoded)


@pytest.mark.parametrize("whole", [True, False], ids=["in memory", "in pieces"])
@pytest.mark.parametrize("is_sorted", [True, False], ids=["in order", "in none"])
@pytest.mark.parametrize("batch_bytes", [100, 1_000_000])
@pytest.mark.parametrize("seed", range(5))
def test_rows_are_taken_up_where_their_keys_belong(
    monkeypatch: pytest.MonkeyPatch, whole: bool, is_sorted: bool, batch_bytes: int, seed: int
) -> None:
    """In a file in the order of its keys; in any other one each row is there once. Texts stay as they are stored."""
    monkeypatch.setattr(row_batches, "LEAST_BATCH_ROWS", 7)
    monkeypatch.setattr(row_batches, "BATCH_BYTES", batch_bytes)
    choose = random.Random(seed)
    stored = choose.sample(range(200), 50)
    new = sorted(choose.sample([number for number in range(-20, 230) if number not in stored], choose.choice([0, 1, 5, 60])))
    shape = Shape("t", SCHEMA, ("id",))
    before, net = texts(sorted(stored) if is_sorted else stored, "AB"[seed % 2].format), changes_of(texts(new, "C".format), shape)
    file = opened(before, shape, whole)

    pieces = list(taken_up(file, net, FileMerge(file, net).rows(Tally()), np.arange(len(new))))

    rows = pa.concat_tables(map(decoded, pieces))
    expected = sort_by_key(pa.concat_tables([before, net.images]), ("id",))
    assert sort_by_key(rows, ("id",)).equals(expected)
    assert not (is_sorted or whole) or rows.equals(expected)
    assert whole or len(pieces) >= 8
    together = [sum(number in new for number in piece["id"].to_pylist()) for piece in pieces]
    assert max(together) <= (7 if batch_bytes == 100 else 60)
    assert ENCODED_TEXT in {piece.schema.field("state").type for piece in pieces}


@pytest.mark.parametrize("whole", [True, False], ids=["in memory", "in pieces"])
def test_without_a_key_they_come_last(whole: bool) -> None:
    shape = Shape("t", SCHEMA, ())
    file = opened(texts([5, 3, 9], "A".format), shape, whole)
    rows = texts([4, 1], "C".format).append_column(OP, pa.array([INSERT, INSERT], pa.int8()))
    net = net_changes(rows.append_column(POSITION, pa.array([0, 1], pa.int64())), shape)

    pieces = taken_up(file, net, FileMerge(file, net).rows(Tally()), np.array([0, 1]))

    assert [number for piece in pieces for number in piece["id"].to_pylist()] == [5, 3, 9, 4, 1]
