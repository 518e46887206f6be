"""Row groups of data files, to be put into others as they stand."""

from __future__ import annotations

import io
from collections.abc import Iterable
from contextlib import nullcontext
from typing import Any

import pyarrow as pa
import pytest

from glue_jobs.aws.copies import ObjectRange, Source
from glue_jobs.core.schema import Schema
from glue_jobs.spark import data_file_writer, open_file
from glue_jobs.spark.data_file_reader import read_data_file
from glue_jobs.spark.data_file_writer import DataFileWriter, stored_footer
from glue_jobs.spark.stored_groups import StoredGroup, described_groups


def stored_group(data: bytes, number: int, schema: Schema, low: Any = (), high: Any = ()) -> StoredGroup:
    """A row group of the file whose bytes these are."""
    parquet = read_data_file(io.BytesIO(data))
    footer = stored_footer(parquet, schema)
    assert footer is not None
    described = described_groups(footer)[number]
    start, stop = described.start, described.stop
    rows = parquet.metadata.row_group(number).num_rows
    return StoredGroup(rows, low, high, described, list, lambda: None, range_in_memory(data, start, stop))


def data_file(tables: Iterable[pa.Table], schema: Schema, **options: Any) -> bytes:
    """A file with these rows, as the writer makes it."""
    sink = io.BytesIO()
    writer = DataFileWriter(sink, schema, **options)
    for table in tables:
        writer.write(table)
    writer.close()
    return sink.getvalue()


def range_in_memory(data: bytes, start: int, stop: int) -> ObjectRange:
    """Bytes that are read in two pieces."""

    def read(first: int, end: int) -> nullcontext[list[bytes]]:
        middle = (first + end) // 2
        return nullcontext([data[first:middle], data[middle:end]])

    return ObjectRange(Source("lake", "in-memory", None, None), start, stop, read)


def make_small_groups(monkeypatch: pytest.MonkeyPatch, rows: int = 50) -> None:
    """Data files have row groups of so many rows, which may go to another file as they stand."""
    monkeypatch.setattr(data_file_writer, "ROW_GROUP_ROWS", rows)
    monkeypatch.setattr(open_file, "LEAST_STORED_BYTES", 1)
