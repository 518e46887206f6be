"""Reading a data file: whole, some of its columns, or piece by piece; also those that other programs wrote."""

from __future__ import annotations

import io
from collections.abc import Container, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from glue_jobs.aws.ranged import RangedFile
from glue_jobs.spark.column_buffers import buffer_bytes, pieces
from glue_jobs.spark.dms_files import damage_named
from glue_jobs.spark.encoded_texts import encoded_columns
from glue_jobs.spark.plain_parquet import PlainParquet
from glue_jobs.spark.row_batches import batch_rows_of

# Of rows so wide that not even so many come at a time there is no memory for more.
FEW_ROWS = 4096
_RESTORE = "roll the table back to a change before this file came, or reload it"


def read_data_file(file: Any, name: str = "", streamed: bool = False, decoded: Container[str] | None = None) -> pq.ParquetFile:
    """The data file whose bytes are behind `file`. name: its path, for messages; TableBlocked, bad-data-file, if it is damaged.

    streamed, decoded: as of `read_encoded`.
    """
    return read_encoded(file, name, streamed, decoded)[0]


def read_encoded(
    file: Any, name: str = "", streamed: bool = False, decoded: Container[str] | None = None
) -> tuple[pq.ParquetFile, frozenset[str]]:
    """(the same, its columns whose texts are to stay indices into their dictionary, which is a small one). Arrow reads others as indices
    too, where the file says that they were a dictionary before they were written: those are to be decoded.

    streamed: it is read in pieces, and of each column only so much is held as is being decoded; else of a row group all of it. decoded: the
    columns whose texts are decoded in any case, None for all.
    """
    if isinstance(file, io.BytesIO):
        file = pa.BufferReader(file.getvalue())  # nothing is copied, and nothing asks Python for the next bytes
    with _damage(name):
        metadata = pq.read_metadata(file)
        each_bytes = buffer_bytes(metadata.num_columns) if streamed else 0
        encoded = [] if decoded is None else encoded_columns(metadata, decoded)
        parquet = PlainParquet(file, metadata=metadata, coerce_int96_timestamp_unit="us", buffer_size=each_bytes, read_dictionary=encoded)
        _ = parquet.schema_arrow, parquet.num_row_groups
        parquet.ranged = file if streamed and isinstance(file, RangedFile) else None
        return parquet, frozenset(encoded)


def _damage(name: str) -> AbstractContextManager[None]:
    return damage_named(name, "bad-data-file", _RESTORE)


def dictionary_columns(parquet: pq.ParquetFile) -> list[str]:
    """The columns that the file's longest row group has a dictionary for; a rewrite gives them one again."""
    if not parquet.num_row_groups:
        return []
    group = max((parquet.metadata.row_group(number) for number in range(parquet.num_row_groups)), key=lambda each: int(each.num_rows))
    chunks = [group.column(index) for index in range(group.num_columns)]
    return [chunk.path_in_schema for chunk in chunks if chunk.has_dictionary_page]


def read_columns(parquet: pq.ParquetFile, columns: Sequence[str], name: str = "") -> pa.Table:
    """Some columns of all rows, as they stand in the file; those it lacks are left out."""
    there = [column for column in parquet.schema_arrow.names if column in columns]
    with _damage(name):
        return parquet.read(columns=there, use_threads=False).select(there)


def read_rows(
    parquet: pq.ParquetFile,
    columns: Sequence[str] | None = None,
    name: str = "",
    batch_rows: int = 0,
    groups: Sequence[int] | None = None,
    ahead: bool = False,
) -> Iterator[pa.Table]:
    """The rows in the file's order, in pieces of so many rows, or of few bytes. columns, groups: those of the file, None for all. ahead: of
    a file that is read by ranges, fetch what comes next while the caller has some rows in hand; for one who takes all of them."""
    there = [column for column in parquet.schema_arrow.names if columns is None or column in columns]
    count = batch_rows or batch_rows_of(parquet, groups)
    with _fetching_ahead(parquet, there, groups) if ahead and count >= FEW_ROWS else nullcontext():
        with _damage(name):
            batches = parquet.iter_batches(count, row_groups=groups, columns=there, use_threads=False)
        while True:
            with _damage(name):
                batch = next(batches, None)
            if batch is None:
                return
            yield pa.Table.from_batches([batch]).select(there)


def _fetching_ahead(parquet: pq.ParquetFile, columns: Sequence[str], groups: Sequence[int] | None) -> AbstractContextManager[None]:
    file: RangedFile | None = getattr(parquet, "ranged", None)
    if file is None:
        return nullcontext()
    chosen = range(parquet.num_row_groups) if groups is None else groups
    return file.fetching_ahead(pieces(parquet.metadata, columns, chosen, file.size()))
