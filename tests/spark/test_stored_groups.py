"""Row groups that no change meets are copied as they stand, and readers find them where the footer says."""

from __future__ import annotations

import io
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from glue_jobs.core.schema import Column, Schema
from glue_jobs.spark import data_file_reader, data_file_writer, stored_groups
from glue_jobs.spark.arrow_types import arrow_schema
from glue_jobs.spark.data_file_reader import read_data_file
from glue_jobs.spark.data_file_writer import DataFileWriter, stored_footer
from glue_jobs.spark.stored_groups import Described, described_groups, file_end, footer_of, moved
from glue_jobs.spark.thrift_compact import BINARY, I64, LIST, STRUCT, Struct, read_struct, write_struct
from tests.spark.row_groups import stored_group

SCHEMA: Schema = (Column("n", "bigint"), Column("text", "string"))
GROUP = 50
IN_PIECES = {"stream_file_bytes": "0", "small_file_bytes": "0"}


def rows(start: int, stop: int) -> pa.Table:
    return pa.table({"n": range(start, stop), "text": [f"text {number % 7}" for number in range(start, stop)]}, arrow_schema(SCHEMA))


def file_of(start: int, stop: int, **options: Any) -> bytes:
    sink = io.BytesIO()
    writer = DataFileWriter(sink, SCHEMA, row_group_rows=GROUP, **options)
    writer.write(rows(start, stop))
    writer.close()
    return sink.getvalue()


def test_written_and_stored_row_groups_take_turns() -> None:
    """In the order in which they came; statistics and dictionaries go along."""
    source, sink = file_of(0, 400), io.BytesIO()
    writer = DataFileWriter(sink, SCHEMA, row_group_rows=GROUP, dictionary=["text"])
    for number in range(8):
        if number in (0, 3, 4, 7):
            writer.put(stored_group(source, number, SCHEMA))
        else:
            writer.write(rows(number * GROUP, (number + 1) * GROUP))

    assert writer.close() == 400
    assert writer.size_bytes == len(sink.getvalue())
    parquet = read_data_file(io.BytesIO(sink.getvalue()))
    assert parquet.read().equals(rows(0, 400))
    assert parquet.metadata.metadata == {b"org.apache.spark.version": b"3.5.6"}
    for number in range(8):
        chunk = parquet.metadata.row_group(number).column(0)
        assert (chunk.statistics.min, chunk.statistics.max) == (number * GROUP, number * GROUP + GROUP - 1)
        assert parquet.metadata.row_group(number).column(1).has_dictionary_page
    assert [group.value(7) for group in footer_of(parquet.metadata).children(4)] == list(range(8))


FLOATS: Schema = (Column("n", "bigint"), Column("d", "double"), Column("f", "float"))


def test_readers_find_what_is_no_number(tmp_path: Path) -> None:
    """Bounds leave NaN out, and a reader that goes by them would pass over its row: our files have none, nor those of others' row groups
    that are copied."""
    table = pa.table({"n": [1, 2, 3], "d": [1.0, math.nan, -0.0], "f": [1.0, math.nan, -0.0]}, arrow_schema(FLOATS))
    theirs = io.BytesIO()
    pq.write_table(table, theirs, store_schema=False, version="2.6")
    assert pq.ParquetFile(theirs).metadata.row_group(0).column(1).statistics.has_min_max
    written, copied = io.BytesIO(), io.BytesIO()
    for sink in (written, copied):
        writer = DataFileWriter(sink, FLOATS)
        if sink is written:
            writer.write(table)
        else:
            writer.put(stored_group(theirs.getvalue(), 0, FLOATS))
        writer.close()

    for sink in (written, copied):
        (tmp_path / "part.parquet").write_bytes(sink.getvalue())
        for name in ("d", "f"):
            for condition in (f"{name} > 5", f"{name} = 'nan'", f"isnan({name})"):
                found = duckdb.sql(f"SELECT n FROM '{tmp_path / 'part.parquet'}' WHERE {condition}").fetchall()
                assert found == [(2,)], (sink is copied, condition)
        chunks = [pq.ParquetFile(sink).metadata.row_group(0).column(at) for at in range(3)]
        assert [bool(chunk.statistics and chunk.statistics.has_min_max) for chunk in chunks] == [True, False, False]


def test_a_file_may_consist_of_stored_row_groups_only() -> None:
    source, sink = file_of(0, 100), io.BytesIO()
    writer = DataFileWriter(sink, SCHEMA)
    for number in (1, 0):
        writer.put(stored_group(source, number, SCHEMA))

    assert writer.close() == 100
    assert read_data_file(io.BytesIO(sink.getvalue())).read().equals(pa.concat_tables([rows(50, 100), rows(0, 50)]))


def test_how_large_a_file_gets_is_guessed_from_what_was_written() -> None:
    """A stored row group says nothing about the rows that wait."""
    source = file_of(0, GROUP, compression="none", dictionary=False)
    writer = DataFileWriter(io.BytesIO(), SCHEMA)
    writer.put(stored_group(source, 0, SCHEMA))
    before = writer.size_bytes

    writer.write(rows(0, 10))

    assert before < writer.size_bytes < before + rows(0, 10).nbytes


def test_bytes_that_are_missing_are_no_row_group() -> None:
    group = stored_group(file_of(0, GROUP), 0, SCHEMA)

    size, longer = group.described.stop - group.described.start, replace(group.described, stop=group.described.stop + 1)

    with pytest.raises(ValueError, match=f"a row group of {size + 1} bytes came with {size}"):
        DataFileWriter(io.BytesIO(), SCHEMA).put(replace(group, described=longer))


def test_a_footer_that_counts_other_rows_is_not_written() -> None:
    writer = DataFileWriter(io.BytesIO(), SCHEMA)
    writer.put(replace(stored_group(file_of(0, GROUP), 0, SCHEMA), rows=GROUP + 1))

    with pytest.raises(ValueError, match="a footer of 50 rows for a data file of 51"):
        writer.close()


def parquet_of(table: pa.Table, **options: Any) -> pq.ParquetFile:
    sink = io.BytesIO()
    pq.write_table(table, sink, **{"store_schema": False, **options})
    return read_data_file(io.BytesIO(sink.getvalue()))


def test_row_groups_of_another_kind_of_file_are_not_taken_over() -> None:
    """Other columns, order or types; a column that may not be null. What the file says about itself beside that does not matter."""
    table = rows(0, 10)
    narrow = pa.schema([("n", pa.int32()), ("text", pa.string())])
    strict = pa.schema([pa.field("n", pa.int64(), nullable=False), ("text", pa.string())])

    assert stored_footer(parquet_of(table), SCHEMA) is not None
    assert stored_footer(parquet_of(table, store_schema=True), SCHEMA) is not None
    for other in (table.select(["text", "n"]), table.select(["n"]), table.cast(narrow), table.cast(strict)):
        assert stored_footer(parquet_of(other), SCHEMA) is None
    assert stored_footer(parquet_of(table.rename_columns(["m", "text"])), SCHEMA) is None


@pytest.mark.parametrize("field", [(6, (BINARY, b"parquet-mr version 1.13.1")), (7, None), (8, (BINARY, b"?"))])
def test_row_groups_of_another_library_are_not_taken_over(field: tuple[int, Any]) -> None:
    """Nor those whose statistics have no order, nor encrypted ones."""
    footer, ours = (footer_of(read_data_file(io.BytesIO(file_of(0, 10))).metadata) for _ in range(2))
    number, value = field
    footer.fields[number] = value
    footer.fields = {key: each for key, each in footer.fields.items() if each is not None}

    assert stored_groups.are_alike(ours, ours)
    assert not stored_groups.are_alike(footer, ours)


def group_of(data: bytes) -> Struct:
    return footer_of(read_data_file(io.BytesIO(data)).metadata).children(4)[0]


def changed(group: Struct, column: int, **fields: Any) -> Struct:
    """The row group with other fields in what is said of a column, or (chunk_…) of its chunk."""
    out = read_struct(write_struct(group))
    chunk = out.children(1)[column]
    for name, value in fields.items():
        (chunk if name.startswith("chunk") else chunk.children(3)[0]).fields[int(name.rsplit("_", 1)[1])] = value
    return out


def copied(group: Struct) -> dict[int, Described]:
    return described_groups(Struct({4: (LIST, (STRUCT, [group]))}))


def test_where_pages_of_a_row_group_do_not_lie_together_it_is_not_copied() -> None:
    """A small gap is none: pyarrow 17 says there what the footer says too."""
    whole = group_of(file_of(0, 10))
    (size,) = [column.value(7) for column in whole.children(1)[0].children(3)]
    later = whole.children(1)[1].children(3)[0].value(9)

    assert copied(whole)
    assert copied(changed(whole, 1, pages_9=(I64, later + 500)))
    assert not copied(changed(whole, 1, pages_9=(I64, later + stored_groups.MOST_GAP_BYTES + 1)))
    assert not copied(changed(whole, 0, size_7=(I64, size + 1)))
    assert not copied(changed(whole, 0, chunk_path_1=(BINARY, b"other.parquet")))
    assert not copied(changed(whole, 0, chunk_encrypted_9=(BINARY, b"?")))


def test_an_empty_row_group_is_not_copied() -> None:
    """pyarrow writes one for a table without rows, and says that its pages are nowhere."""
    sink = io.BytesIO()
    with pq.ParquetWriter(sink, arrow_schema(SCHEMA), store_schema=False, use_dictionary=False) as writer:
        for table in (rows(0, 10), rows(0, 0), rows(10, 20)):
            writer.write_table(table)
    footer = stored_footer(read_data_file(io.BytesIO(sink.getvalue())), SCHEMA)

    assert footer is not None
    assert len(footer.children(4)) == 3
    assert described_groups(footer).keys() == {0, 2}


def test_a_footer_of_very_many_columns_is_not_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    """It would take longer than the rows."""
    parquet = read_data_file(io.BytesIO(file_of(0, 3 * GROUP)))
    monkeypatch.setattr(data_file_writer, "MOST_CHUNKS", 6)
    assert stored_footer(parquet, SCHEMA) is not None
    monkeypatch.setattr(data_file_writer, "MOST_CHUNKS", 5)
    assert stored_footer(parquet, SCHEMA) is None


def test_a_few_rows_before_a_stored_row_group_do_not_lose_dictionaries() -> None:
    """Neither for the rows after it, nor for those of the next rewrite, which looks at the longest row group."""
    source, sink = file_of(0, GROUP), io.BytesIO()
    writer = DataFileWriter(sink, SCHEMA, dictionary=["text"])
    writer.write(rows(0, 3))
    writer.put(stored_group(source, 0, SCHEMA))
    writer.write(rows(0, 2000))
    writer.close()

    parquet = read_data_file(io.BytesIO(sink.getvalue()))
    assert [parquet.metadata.row_group(number).column(1).has_dictionary_page for number in range(3)] == [True, True, True]
    assert data_file_reader.dictionary_columns(parquet) == ["text"]


def test_page_indexes_and_filters_stay_behind() -> None:
    """They stand elsewhere in the file: a reader that follows a place of the old one reads something else."""
    sink = io.BytesIO()
    pq.write_table(rows(0, 10), sink, store_schema=False, write_page_index=True)
    group = group_of(sink.getvalue())
    column = group.children(1)[0].children(3)[0]
    column.fields[14] = (I64, 77)

    there = moved(group, 1000)

    assert {4, 5, 6, 7} <= set(group.children(1)[0].fields)
    assert there.children(1)[0].value(2) == 0
    assert not {4, 5, 6, 7} & set(there.children(1)[0].fields)
    assert 14 not in there.children(1)[0].children(3)[0].fields
    assert there.children(1)[0].children(3)[0].value(9) == column.value(9) + 1000
    assert column.fields[14] == (I64, 77), "the description that was given stays as it is"


def test_ordinals_end_where_they_have_no_more_bits() -> None:
    """A reader takes a wrong one for a damaged file."""
    metadata = read_data_file(io.BytesIO(file_of(0, 10))).metadata
    group = footer_of(metadata).children(4)[0]

    footer = read_struct(file_end(metadata, [group] * 2**15, ()))

    assert [each.value(7) for each in footer.children(4)[-2:]] == [2**15 - 1, None]
