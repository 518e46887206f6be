"""What is fetched at once of a Parquet file that is read by ranges: else each page is a request, and DMS makes many small row groups."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

import pyarrow.parquet as pq

from glue_jobs.aws.fetched_ahead import Range

HELD_BYTES = 64 * 1024 * 1024  # at most, gaps included; a row group that needs more is read page by page
GAP_BYTES = 1024 * 1024  # so much that nobody asked for costs no more than another request


def windows(metadata: pq.FileMetaData, groups: Sequence[int], columns: Collection[str]) -> Iterator[tuple[list[int], list[Range]]]:
    """The row groups in runs, each with the byte ranges (start, stop) to hold while it is read; none where they come to too much."""
    run: list[int] = []
    held: list[Range] = []
    for group in groups:
        mine = joined(chunk_ranges(metadata, group, columns))
        more = joined([*held, *mine])
        if run and _size(more) > HELD_BYTES:
            yield run, held
            run, held, more = [], [], mine
        run, held = [*run, group], more
        if _size(held) > HELD_BYTES:
            yield run, []
            run, held = [], []
    if run:
        yield run, held


def chunk_ranges(metadata: pq.FileMetaData, group: int, columns: Collection[str]) -> list[Range]:
    """Where the columns of a row group are, in the file's order."""
    found = metadata.row_group(group)
    ranges = []
    for at in range(found.num_columns):
        chunk = found.column(at)
        if chunk.path_in_schema in columns:
            start = chunk.data_page_offset
            if chunk.has_dictionary_page and 0 < (chunk.dictionary_page_offset or 0) < start:
                start = chunk.dictionary_page_offset
            ranges.append((start, start + chunk.total_compressed_size))
    return ranges


def joined(ranges: Sequence[Range]) -> list[Range]:
    """The ranges in order, those with small gaps between them as one."""
    out: list[Range] = []
    for start, stop in sorted(ranges):
        if out and start <= out[-1][1] + GAP_BYTES:
            out[-1] = (out[-1][0], max(stop, out[-1][1]))
        else:
            out.append((start, stop))
    return out


def _size(ranges: Sequence[Range]) -> int:
    return sum(stop - start for start, stop in ranges)
