"""Encoding the columns of a row group side by side: Arrow encodes one after the other, and a task that has a machine to itself keeps one of
its cores busy.

A few columns each are written as a Parquet file in memory; what stands in it of them goes into the data file, byte by byte what Arrow would
have written there, and the footer says of all of them that they are one row group.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from glue_jobs.spark.stored_groups import Described, described_groups, footer_of

# Of rows in memory: fewer are encoded in the time that a thread takes to begin.
LEAST_BYTES = 8 * 1024 * 1024
# Of the columns that are encoded together: a file of their own, and its footer, take half a millisecond.
TOGETHER_BYTES = 1024 * 1024
# Of the rows in the largest column: where it has nearly all of them, the others are done at once, and what it becomes would be held.
MOST_PART = 0.75

# Makes the writer of a file with such columns; the list takes the file's metadata when the writer is closed.
OpenWriter = Callable[[Any, pa.Schema, list[pq.FileMetaData]], pq.ParquetWriter]
Encoded = tuple[pa.Buffer, Described]


def is_worth_a_thread(rows: pa.Table, size_bytes: int) -> bool:
    """size_bytes: of the rows in memory, decoded."""
    return size_bytes >= LEAST_BYTES and max(column.nbytes for column in rows.columns) <= size_bytes * MOST_PART


@contextmanager
def encoded_columns(rows: pa.Table, open_writer: OpenWriter) -> Iterator[Iterator[Encoded]]:
    """The columns in their order, some at a time: their bytes, and what a footer says of them, as of a row group that has no others.

    The caller's thread encodes them from the first ones on, another one from the last ones, until they meet: about half of what they become
    is held. Raises what encoding raised; the other thread has ended by then.
    """
    left = deque(_together(rows))

    def encode(names: Sequence[str]) -> Encoded:
        sink, written = pa.BufferOutputStream(), list[pq.FileMetaData]()
        columns = rows.select(names)
        with open_writer(sink, columns.schema, written) as writer:
            writer.write_table(columns, row_group_size=columns.num_rows)
        described = described_groups(footer_of(written[0]))[0]
        return sink.getvalue().slice(described.start, described.stop - described.start), described

    def encode_last() -> list[Encoded]:
        return [encode(names) for names in _until_empty(left.pop)]

    def in_order(last: Future[list[Encoded]]) -> Iterator[Encoded]:
        yield from (encode(names) for names in _until_empty(left.popleft))
        held = last.result()
        while held:
            yield held.pop()

    with ThreadPoolExecutor(1, thread_name_prefix="columns") as pool:
        try:
            yield in_order(pool.submit(encode_last))
        finally:
            left.clear()


def _together(rows: pa.Table) -> Iterator[list[str]]:
    """The names of columns that are encoded together, in the table's order."""
    names, size = list[str](), 0
    for name, column in zip(rows.column_names, rows.columns, strict=True):
        names.append(name)
        size += column.nbytes
        if size >= TOGETHER_BYTES:
            yield names
            names, size = [], 0
    if names:
        yield names


def _until_empty(take: Callable[[], Sequence[str]]) -> Iterator[Sequence[str]]:
    while True:
        try:
            names = take()
        except IndexError:  # the other thread may have taken the last ones
            return
        yield names
