"""Rows are taken in batches of few bytes, however wide they are: a table with LOBs needs no more memory than another."""

from __future__ import annotations

import io
import threading
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from glue_jobs.core.errors import TableBlocked
from glue_jobs.core.limits import Limits
from glue_jobs.core.record import DataFile
from glue_jobs.core.schema import Column
from glue_jobs.spark import key_columns, open_file, row_balance, row_batches, side_by_side
from glue_jobs.spark.condition import filtered
from glue_jobs.spark.data_file_reader import read_data_file, read_rows
from glue_jobs.spark.data_file_writer import ROW_GROUP_BYTES, DataFileWriter
from glue_jobs.spark.dms_files import damage_named, open_dms, read_batches
from glue_jobs.spark.merge_file import FileMerge, Tally
from glue_jobs.spark.open_file import OpenFile
from glue_jobs.spark.place import Shape
from glue_jobs.spark.reading import reading_place
from glue_jobs.spark.row_batches import BATCH_BYTES, BATCH_ROWS, LEAST_BATCH_ROWS, batch_rows_of, rows_at_a_time
from glue_jobs.spark.shuffle import _Rewriter
from tests.spark.tables import SHOP
from tests.work_tables import MakeTable

WIDE, ROWS = 30_000, 4000


def file_of(width: int, rows: int) -> io.BytesIO:
    """A Parquet file whose rows have a text of so many random characters."""
    rng = np.random.default_rng(1)
    sink = io.BytesIO()
    pq.write_table(pa.table({"id": range(rows), "lob": [rng.bytes(width // 2).hex() for _ in range(rows)]}), sink, row_group_size=1500)
    return sink


@pytest.fixture(scope="module")
def wide() -> io.BytesIO:
    """120 MB in three row groups."""
    return file_of(WIDE, ROWS)


@pytest.mark.parametrize(("row_bytes", "rows"), [(0, BATCH_ROWS), (100, BATCH_ROWS), (1 << 20, 12), (1 << 40, 1)])
def test_rows_of_a_batch(row_bytes: int, rows: int) -> None:
    assert rows_at_a_time(row_bytes) == rows


def test_a_full_batch_of_wide_rows_is_too_large_to_be_read_ahead() -> None:
    """There is no memory for two of them. Those of narrow rows, which are as many as a batch may have, are read ahead."""
    for row_bytes in (1024, 20_000, 300_000):
        assert rows_at_a_time(row_bytes) * row_bytes > side_by_side.LARGE_BYTES


def test_wide_rows_of_a_data_file_come_a_few_at_a_time(wide: io.BytesIO) -> None:
    """All of them, in order."""
    tables = list(read_rows(read_data_file(wide)))

    assert max(table.nbytes for table in tables) <= 1.1 * BATCH_BYTES
    assert pa.concat_tables(tables)["id"].to_pylist() == list(range(ROWS))


def test_wide_rows_that_a_condition_chooses_come_a_few_at_a_time(wide: io.BytesIO) -> None:
    """DuckDB would gather 65,536 of them, whatever their width."""
    batches = (batch for table in read_rows(read_data_file(wide)) for batch in table.to_batches())

    chosen = list(filtered(batches, (Column("id", "bigint"), Column("lob", "string")), "id % 2 = 0"))

    assert max(batch.nbytes for batch in chosen) <= 1.1 * BATCH_BYTES
    assert [key for batch in chosen for key in batch["id"].to_pylist()] == list(range(0, ROWS, 2))


def test_wide_rows_of_a_raw_file_come_a_few_at_a_time(wide: io.BytesIO) -> None:
    """Also of some row groups."""
    parquet = open_dms(wide, "raw.parquet")

    batches = list(read_batches(wide, parquet, ["id", "lob"], [1, 2], "raw.parquet"))

    assert max(batch.nbytes for batch in batches) <= 1.1 * BATCH_BYTES
    assert sum(batch.num_rows for batch in batches) == ROWS - 1500


@pytest.mark.parametrize(("group_rows", "found"), [(100, LEAST_BATCH_ROWS), (5000, 5000), (200_000, BATCH_ROWS)])
def test_narrow_rows_come_many_at_a_time(group_rows: int, found: int) -> None:
    """Not more than a row group has."""
    sink = io.BytesIO()
    pq.write_table(pa.table({"id": range(100_000)}), sink, row_group_size=group_rows)

    assert batch_rows_of(read_data_file(sink)) == found


def test_long_texts_that_repeat_themselves_come_a_few_at_a_time(new_table: MakeTable) -> None:
    """The footer counts each text once; a file of ours has so few bytes in memory in a row group that their number tells."""
    text = pa.array([f"{number:02}" * 2000 for number in range(40)])
    sink = io.BytesIO()
    with_texts = pa.table({"id": pa.array(range(60_000), pa.int64()), "name": text.take(pa.array(np.arange(60_000) % 40))})
    writer = DataFileWriter(sink, (Column("id", "bigint"), Column("name", "string")))
    writer.write(with_texts)
    writer.close()
    table = new_table(pa.schema([("id", pa.int64()), ("name", pa.string())]))
    place = reading_place(table.environment, table.path.bucket, table.out_path, Limits())
    shape = Shape(str(table.path), (Column("id", "bigint"), Column("name", "string")), ("id",), ())
    found = []
    for name in ("0000000001-000001-0000000a-00000.parquet", "foreign.parquet"):
        table.clients.s3.put_object(Bucket=table.out_path.bucket, Key=table.out_path.key + name, Body=sink.getvalue())
        found.append(OpenFile.open(place, shape, DataFile(name, len(sink.getvalue()), 60_000)))

    assert [file.whole for file in found] == [False, True]
    assert max(batch.nbytes for batch in found[0].batches()) <= 1.1 * ROW_GROUP_BYTES


def test_a_file_that_is_small_only_by_its_compression_is_merged_in_pieces(new_table: MakeTable, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its rows are the same."""
    monkeypatch.setattr(row_batches, "BATCH_BYTES", 2000)
    monkeypatch.setattr(open_file, "WHOLE_RATIO", 0)
    pieces: list[int] = []
    rows_of = FileMerge.rows
    monkeypatch.setattr(FileMerge, "rows", lambda self, tally: (pieces.append(piece.num_rows) or piece for piece in rows_of(self, tally)))
    table = new_table()
    table.load([(number, f"n{number:03}" * 20, 1) for number in range(200)])
    assert table.run("LoadInitial") == 0
    table.cdc([("U", (5, "five", 0)), ("D", (150, None, None))])

    assert table.run() == 0

    assert len(pieces) > 2
    assert sum(pieces) == len(table.rows()) == 199
    assert (5, "five", 0) in table.rows()


@pytest.mark.parametrize(("width", "comes_ahead"), [(10, True), (4000, False)], ids=["narrow", "wide"])
def test_wide_rows_do_not_come_ahead_where_a_merge_leaves_few_of_them(
    quick_table: MakeTable, monkeypatch: pytest.MonkeyPatch, width: int, comes_ahead: bool
) -> None:
    """What is left of each piece is small: the next ones are read as large as they are."""
    monkeypatch.setattr(row_batches, "BATCH_BYTES", 200_000)
    monkeypatch.setattr(row_batches, "BATCH_ROWS", 100)
    monkeypatch.setattr(side_by_side, "LARGE_BYTES", 150_000)
    rng = np.random.default_rng(1)
    table = quick_table()
    table.cdc([("I", (number, rng.bytes(width // 2).hex(), 1)) for number in range(1000)])
    table.sync()
    readers: list[str] = []

    def noted(*words: Any, **named: Any) -> Iterator[pa.Table]:
        for rows in read_rows(*words, **named):
            if "name" in rows.column_names:
                readers.append(threading.current_thread().name)
            yield rows

    monkeypatch.setattr(open_file, "read_rows", noted)
    table.cdc([("D", (number, None, None)) for number in range(1000) if number % 10])

    table.sync(stream_file_bytes="0", small_file_bytes="0")

    assert [row[0] for row in sorted(table.rows())] == list(range(0, 1000, 10))
    assert len(readers) >= 10
    assert any(name.startswith("ahead") for name in readers) == comes_ahead


def test_rows_that_get_lost_stop_the_commit(new_table: MakeTable, monkeypatch: pytest.MonkeyPatch) -> None:
    """An error of ours must not become one of the table's."""
    table = new_table()
    table.load([(number, f"n{number}", 1) for number in range(10)])
    assert table.run("LoadInitial") == 0
    table.cdc([("U", (5, "five", 0))])
    rows_of = FileMerge.rows
    with monkeypatch.context() as patch:
        patch.setattr(FileMerge, "rows", lambda self, tally: (piece.slice(1) for piece in rows_of(self, tally)))

        error = table.blocked()

    assert error["code"] == "rows-do-not-add-up"
    assert "expected: 10 rows" in error["message"]
    assert "found: 9 rows" in error["message"]
    assert len(table.rows()) == 10
    assert table.open_uploads() == []


def test_a_shuffle_adds_up_the_rows_of_each_file(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ten rows less one that was dropped, and two that came, are eleven. What was written otherwise is given up."""
    given_up: list[str] = []
    monkeypatch.setattr(row_balance, "give_up", lambda place, files: given_up.extend(file.path for file in files))
    shape, tally = Shape("t", (), ()), Tally(dropped=1)
    rewriter = _Rewriter(SimpleNamespace(), shape, ())  # type: ignore[arg-type]

    rewriter._check(DataFile("old", 1, 10), [DataFile("a", 1, 5), DataFile("b", 1, 6)], tally, 2)
    with pytest.raises(TableBlocked, match=r"what replaces old.*expected: 11 rows.*found: 10 rows"):
        rewriter._check(DataFile("old", 1, 10), [DataFile("a", 1, 4), DataFile("b", 1, 6)], tally, 2)

    assert given_up == ["a", "b"]


def test_the_last_rows_may_all_be_wider_than_the_average(monkeypatch: pytest.MonkeyPatch) -> None:
    """What doesn't fit is halved until it does; a single row that doesn't is an error."""

    class Narrow(SimpleNamespace):
        """Stands for a table that fits up to three rows."""

        def slice(self, start: int, length: int | None = None) -> Narrow:
            return Narrow(num_rows=self.num_rows - start if length is None else length, most=self.most)

        def combine_chunks(self) -> Narrow:
            return self

        def cast(self, _: Any) -> Narrow:
            if self.num_rows > self.most:
                raise pa.ArrowInvalid("input array too large")
            return self

    table: Any = Narrow(num_rows=10, most=3)
    assert [piece.num_rows for piece in key_columns._narrowed(table, SHOP)] == [2, 3, 2, 3]
    with pytest.raises(pa.ArrowInvalid):
        key_columns._narrowed(Narrow(num_rows=10, most=0), SHOP)  # type: ignore[arg-type]


@pytest.mark.parametrize("error", [pa.ArrowMemoryError("realloc of size 1 failed"), pa.ArrowCapacityError("array cannot contain more")])
def test_a_shortage_is_no_damage(error: Exception) -> None:
    """The file is whole: the run fails, and nobody is told to skip it."""
    with pytest.raises(type(error)), damage_named("f.parquet"):
        raise error
    with pytest.raises(TableBlocked, match="can't be read as Parquet"), damage_named("f.parquet"):
        raise pa.ArrowInvalid("corrupt")


def test_a_data_file_needs_a_column() -> None:
    """Of none the rows would not be counted."""
    with pytest.raises(ValueError, match="a data file needs a column"):
        DataFileWriter(io.BytesIO(), ())
