"""How much of each column is fetched at a time, of a Parquet file that is read by ranges, and in which order."""

from __future__ import annotations

from collections.abc import Collection, Iterable

import pyarrow.parquet as pq

from glue_jobs.aws.fetched_ahead import Range
from glue_jobs.aws.ranged import READ_AHEAD_BYTES
from glue_jobs.spark.held_ranges import chunk_ranges

# All together, and of each.
BUFFERS_BYTES = 40 * 1024 * 1024
LEAST_BUFFER_BYTES, MOST_BUFFER_BYTES = 1024 * 1024, 4 * 1024 * 1024


def buffer_bytes(columns: int) -> int:
    """Of each column: large, because each piece is a request, but small where there are many columns."""
    return min(MOST_BUFFER_BYTES, max(LEAST_BUFFER_BYTES, BUFFERS_BYTES // max(1, columns)))


def pieces(metadata: pq.FileMetaData, columns: Collection[str], groups: Iterable[int], size_bytes: int) -> list[Range]:
    """What Arrow asks for (start, stop), about in that order, if it reads these columns of row groups a few rows at a time. About: not all
    of a column's rows are equally large. Without what is so small that it comes with something else, and what a damaged footer says to be
    outside of the file. size_bytes: of the file.
    """
    each_bytes = buffer_bytes(metadata.num_columns)
    found: list[tuple[int, float, Range]] = []
    for place, group in enumerate(groups):
        for start, stop in chunk_ranges(metadata, group, columns):
            if not 0 <= start < stop <= size_bytes:
                continue
            parts = [(at, min(at + each_bytes, stop)) for at in range(start, stop, each_bytes)]
            found += [(place, (at - start) / (stop - start), (at, end)) for at, end in parts if end - at >= READ_AHEAD_BYTES]
    return [piece for _, _, piece in sorted(found)]
