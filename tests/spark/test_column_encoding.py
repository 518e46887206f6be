"""Row groups whose columns are encoded side by side are those that Arrow would have written, byte by byte."""

from __future__ import annotations

import io
import threading
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from glue_jobs.core.limits import Limits
from glue_jobs.core.paths import S3Uri
from glue_jobs.core.schema import Column, Schema
from glue_jobs.spark import column_encoding
from glue_jobs.spark.arrow_types import arrow_schema
from glue_jobs.spark.column_encoding import encoded_columns, is_worth_a_thread
from glue_jobs.spark.data_file_reader import read_data_file
from glue_jobs.spark.data_file_writer import DataFileWriter
from glue_jobs.spark.encoded_texts import ENCODED_TEXT
from glue_jobs.spark.merge import merge_net_changes
from glue_jobs.spark.net_changes import OP, POSITION, net_changes
from glue_jobs.spark.place import Place, Shape
from tests.spark.lake_values import rows_of
from tests.spark.row_groups import data_file, stored_group

MIB = 1024 * 1024
SCHEMA: Schema = (
    Column("id", "bigint"),
    Column("place", "string"),
    Column("amount", "decimal(12,2)"),
    Column("note", "string"),
    Column("paid", "boolean"),
)


@pytest.fixture
def always(monkeypatch: pytest.MonkeyPatch) -> None:
    """However few the rows are."""
    monkeypatch.setattr(column_encoding, "LEAST_BYTES", 0)
    monkeypatch.setattr(column_encoding, "MOST_PART", 1)
    monkeypatch.setattr(column_encoding, "TOGETHER_BYTES", 1)


def rows(count: int, first: int = 0) -> pa.Table:
    numbers = np.arange(first, first + count)
    columns = {
        "id": numbers,
        "place": [None if number % 11 == 0 else f"place {number % 7}" for number in numbers.tolist()],
        "amount": pa.array(numbers % 5000).cast(pa.decimal128(19, 0)).cast(pa.decimal128(12, 2), safe=False),
        "note": [f"{number * 2654435761 % 2**32:08x}" * 3 for number in numbers.tolist()],
        "paid": pa.array(numbers % 3 == 0),
    }
    return pa.table(columns, arrow_schema(SCHEMA))


def pages(data: bytes) -> bytes:
    """All but the footer."""
    return data[: -8 - int.from_bytes(data[-8:-4], "little")]


def test_the_file_is_the_one_that_arrow_writes(always: None) -> None:
    """Its pages to the byte, and whatever the footer says of rows, columns, statistics and places."""
    tables = [rows(700), rows(1300, 700), rows(50, 2000)]

    ours, arrows = (data_file(tables, SCHEMA, row_group_rows=900, alone=alone) for alone in (True, False))

    assert pages(ours) == pages(arrows)
    said, expected = (pq.read_metadata(io.BytesIO(data)) for data in (ours, arrows))
    assert [said.row_group(at).to_dict() for at in range(3)] == [expected.row_group(at).to_dict() for at in range(3)]
    assert (said.schema, said.num_rows, said.metadata) == (expected.schema, 2050, expected.metadata)
    assert read_data_file(io.BytesIO(ours)).read().equals(rows(2050))


def test_encoded_texts_are_written_as_they_are(always: None) -> None:
    """In several runs, each with a dictionary of its own; what no row has does not get into the file."""
    place = pa.chunked_array([pa.DictionaryArray.from_arrays(pa.array([0, 1, 0], pa.int32()), [each, "b", "unused"]) for each in "ac"])
    table = pa.table([pa.array(range(6)), place.cast(ENCODED_TEXT)], ["id", "place"])

    ours, arrows = (data_file([table], SCHEMA[:2], alone=alone) for alone in (True, False))

    assert pages(ours) == pages(arrows)
    assert read_data_file(io.BytesIO(ours)).read()["place"].to_pylist() == ["a", "b", "a", "c", "b", "c"]
    assert b"unused" not in ours


@given(rows_of(nullable=True), st.integers(1, 5))
def test_columns_of_all_types_are_written_alike(case: tuple[Schema, list[tuple[Any, ...]]], group_rows: int) -> None:
    schema, values = case
    types = arrow_schema(schema)
    columns = [pa.array([row[at] for row in values], field.type) for at, field in enumerate(types)]
    table = pa.Table.from_arrays(columns, schema=types)

    with pytest.MonkeyPatch.context() as patch:
        for name, value in (("LEAST_BYTES", 0), ("MOST_PART", 1), ("TOGETHER_BYTES", 1)):
            patch.setattr(column_encoding, name, value)
        ours, arrows = (data_file([table], schema, row_group_rows=group_rows, alone=alone) for alone in (True, False))

    assert pages(ours) == pages(arrows)
    assert pq.read_schema(io.BytesIO(ours)) == pq.read_schema(io.BytesIO(arrows))
    assert repr(pq.read_table(io.BytesIO(ours)).to_pylist()) == repr(table.to_pylist())


def test_they_take_turns_with_arrows_own_row_groups_and_stored_ones(always: None, monkeypatch: pytest.MonkeyPatch) -> None:
    source, sink = data_file([rows(100)], SCHEMA, row_group_rows=50), io.BytesIO()
    monkeypatch.setattr(column_encoding, "LEAST_BYTES", rows(40).nbytes)
    writer = DataFileWriter(sink, SCHEMA, row_group_rows=50, alone=True)
    writer.write(rows(50))
    writer.put(stored_group(source, 1, SCHEMA))
    writer.write(rows(10, 100))
    writer.put(stored_group(source, 0, SCHEMA))
    writer.write(rows(50, 200))

    assert writer.close() == 210
    expected = pa.concat_tables([rows(50), rows(50, 50), rows(10, 100), rows(50), rows(50, 200)])
    parquet = read_data_file(io.BytesIO(sink.getvalue()))
    assert parquet.read().equals(expected)
    assert [parquet.read_row_group(number).num_rows for number in range(5)] == [50, 50, 10, 50, 50]
    assert writer.size_bytes == len(sink.getvalue())


def test_the_size_on_the_way_is_guessed_as_of_other_rows(always: None) -> None:
    """What was encoded says how small the rows that wait will be."""
    sizes = []
    for alone in (True, False):
        writer = DataFileWriter(io.BytesIO(), SCHEMA, row_group_rows=1000, alone=alone)
        writer.write(rows(1500))
        sizes.append(writer.size_bytes)
        writer.abort()

    assert sizes[0] == pytest.approx(sizes[1], rel=0.02)
    assert sizes[0] > len(pages(data_file([rows(1000)], SCHEMA)))


def test_an_aborted_writer_writes_nothing_more(always: None) -> None:
    sink = io.BytesIO()
    writer = DataFileWriter(sink, SCHEMA, alone=True)
    writer.write(rows(100))
    writer.abort()
    writer.close()

    assert sink.getvalue() == b""


@pytest.mark.parametrize("failing", ["id", "paid"])
def test_what_encoding_raises_is_raised_and_no_thread_stays(always: None, failing: str) -> None:
    """In the caller's thread, which begins with the first column, and in the other one, which begins with the last."""

    def open_writer(sink: Any, form: pa.Schema, _: Any) -> pq.ParquetWriter:
        if form.names == [failing]:
            raise MemoryError(failing)
        return pq.ParquetWriter(sink, form, metadata_collector=_)

    with pytest.raises(MemoryError, match=failing), encoded_columns(rows(100), open_writer) as encoded:
        list(encoded)

    assert not [thread for thread in threading.enumerate() if thread.name.startswith("columns")]


def test_a_sink_that_fails_leaves_no_thread(always: None) -> None:
    class Full(io.BytesIO):
        def write(self, data: Any) -> int:
            if self.tell():
                raise OSError("disk full")
            return super().write(data)  # what a file begins with

    writer = DataFileWriter(Full(), SCHEMA, alone=True)
    writer.write(rows(100))

    with pytest.raises(OSError, match="disk full"):
        writer.close()

    assert not [thread for thread in threading.enumerate() if thread.name.startswith("columns")]


@pytest.mark.parametrize(
    ("size_bytes", "part", "worth"),
    [(8 * MIB, 0.75, True), (8 * MIB - 1, 0.5, False), (8 * MIB, 0.76, False), (20 * MIB, 1.0, False)],
    ids=["large", "small", "one column has most", "one column"],
)
def test_it_is_worth_a_thread_where_there_is_enough_for_both(size_bytes: int, part: float, worth: bool) -> None:
    columns = [SimpleNamespace(nbytes=size_bytes * part), SimpleNamespace(nbytes=size_bytes * (1 - part))]

    assert is_worth_a_thread(SimpleNamespace(columns=columns), size_bytes) is worth  # type: ignore[arg-type]


def test_narrow_columns_are_encoded_together(monkeypatch: pytest.MonkeyPatch) -> None:
    """A table of hundreds has no file for each of them."""
    monkeypatch.setattr(column_encoding, "TOGETHER_BYTES", rows(100)["id"].nbytes + 1)
    forms: list[list[str]] = []

    def open_writer(sink: Any, form: pa.Schema, written: Any) -> pq.ParquetWriter:
        forms.append(form.names)
        return pq.ParquetWriter(sink, form, metadata_collector=written)

    with encoded_columns(rows(100), open_writer) as encoded:
        assert len(list(encoded)) == 4

    assert sorted(forms) == [["amount"], ["id", "place"], ["note"], ["paid"]]


@pytest.mark.parametrize("slots", [1, 2])
def test_only_a_task_without_others_beside_it_takes_a_second_core(slots: int) -> None:
    seen: list[Place] = []

    class Engine:
        def map(self, function: Any, items: Any) -> list[Any]:
            seen.append(function.place)
            return []

        def share(self, payload: bytes, unpack: Callable[[Any], Any]) -> Any:
            return None

        def drop(self, shared: Any) -> None:
            pass

    engine: Any = Engine()
    engine.slots = slots
    shape = Shape("shop/t", SCHEMA, ("id",))
    place = Place((), "raw", S3Uri("lake", "t/"), "0000000001-000001-0badcafe", "zstd", Limits())
    none = rows(0).append_column(OP, pa.array([], pa.int8())).append_column(POSITION, pa.array([], pa.int64()))

    merge_net_changes(engine, place, shape, net_changes(none, shape), [])

    assert {place.alone for place in seen} == {slots == 1}
