"""How many rows are taken at a time: so many that they are few bytes in memory, however wide a row is.

Rows of a narrow table have a hundred bytes, those with LOBs a megabyte: counted in rows alone, a batch of them would be all of a file.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow.parquet as pq

BATCH_ROWS = 65_536
BATCH_BYTES = 25 * 1024 * 1024 // 2  # above LARGE_BYTES of side_by_side, so that full batches of wide rows are not read ahead
DECODED_RATIO = 4  # so many times as large as in compressed files are rows in memory
LEAST_BATCH_ROWS = 1024  # where row groups are smaller; rows that are known to be wide come fewer at a time


def rows_at_a_time(row_bytes: float) -> int:
    """Rows of a batch. row_bytes: of a row in memory, on average."""
    return max(1, min(BATCH_ROWS, int(BATCH_BYTES / max(1.0, row_bytes))))


def batch_rows_of(parquet: pq.ParquetFile, groups: Sequence[int] | None = None) -> int:
    """Rows of a batch of a file, by the widest of its row groups (of these, None for all), all columns together.

    The footer has the bytes before compression, but after dictionaries: long texts that repeat themselves are wider than it says. So no
    batch has more rows than a row group, which is of few bytes in a file that we wrote.
    """
    metadata = parquet.metadata
    chosen = [metadata.row_group(at) for at in (range(metadata.num_row_groups) if groups is None else groups)]
    by_bytes = rows_at_a_time(max((group.total_byte_size / max(1, group.num_rows) for group in chosen), default=0.0))
    return min(by_bytes, max(LEAST_BATCH_ROWS, max((group.num_rows for group in chosen), default=0)))


def group_rows(parquet: pq.ParquetFile) -> list[int]:
    """How many rows each row group has."""
    return [int(parquet.metadata.row_group(number).num_rows) for number in range(parquet.num_row_groups)]


def decoded_bytes(parquet: pq.ParquetFile) -> int:
    """Of all rows, before compression but after dictionaries."""
    return sum(parquet.metadata.row_group(at).total_byte_size for at in range(parquet.metadata.num_row_groups))
