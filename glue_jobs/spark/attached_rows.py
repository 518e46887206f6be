"""Rows as one Parquet file in memory, as an attachment of a record holds them."""

from __future__ import annotations

import io

import pyarrow as pa
import pyarrow.parquet as pq


def as_parquet(rows: pa.Table) -> bytes:
    """The bytes of a Parquet file of these rows, in zstd."""
    sink = io.BytesIO()
    pq.write_table(rows, sink, compression="zstd")
    return sink.getvalue()


def from_parquet(data: bytes) -> pa.Table:
    """The rows of a file.

    `read_table` would scan a dataset, and its threads may let go of the bytes a moment after it returned: a process that ends just then
    is aborted (apache/arrow#34314). A file that is read in this thread alone has no such moment.
    """
    return pq.ParquetFile(pa.BufferReader(data)).read(use_threads=False)
