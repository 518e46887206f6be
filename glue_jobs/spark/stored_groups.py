"""Row groups that go from a data file to its replacement as they stand: neither decoded nor encoded, the new footer says where they are.

A batch of new rows' changes meets the end of a table's last file. What is before it need not be worked on, only be copied. Of the footer
(parquet.thrift) nothing but places in the file is changed, so what this program does not know of is kept, statistics too.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from itertools import pairwise

import pyarrow as pa
import pyarrow.parquet as pq

from glue_jobs.core.keys import Bound
from glue_jobs.spark.thrift_compact import I16, I64, LIST, STRUCT, Struct, read_struct, write_struct

# Smaller ones are decoded: together with what is written before them they become larger ones, and a request is not worth their bytes.
LEAST_STORED_BYTES = 1024 * 1024

_MAGIC = b"PAR1"
_WRITER = b"parquet-cpp-arrow version "
_SCHEMA, _ROWS, _GROUPS, _METADATA, _CREATED_BY, _ORDERS = 2, 3, 4, 5, 6, 7  # of a footer
_COLUMNS, _GROUP_ROWS, _GROUP_OFFSET, _ORDINAL = 1, 3, 5, 7  # of a row group
_PATH, _CHUNK_OFFSET, _COLUMN, _INDEXES, _ENCRYPTION = 1, 2, 3, (4, 5, 6, 7), (8, 9)  # of a column chunk
_SIZE, _PAGES, _DICTIONARY, _OFFSETS, _BLOOM = 7, 9, 11, (9, 10, 11), (14, 15)  # of its column


@dataclass(frozen=True)
class StoredGroup:
    """A row group without a changed key. low, high: its key range. start, stop: its bytes in the file. keys: reads its keys; chunks: opens
    its bytes, a few at a time."""

    rows: int
    low: Bound
    high: Bound
    start: int
    stop: int
    described: Struct
    keys: Callable[[], Iterable[pa.Table]]
    chunks: Callable[[], AbstractContextManager[Iterable[bytes]]]


def footer_of(metadata: pq.FileMetaData) -> Struct:
    """The footer that pyarrow read or wrote, as a Thrift struct."""
    sink = pa.BufferOutputStream()
    metadata.write_metadata_file(sink)
    return read_struct(sink.getvalue().to_pybytes(), len(_MAGIC))


def are_alike(footer: Struct, ours: Struct) -> bool:
    """Whether row groups of the one file may stand in the other: the same columns in the same types and order, whose statistics are
    ordered alike, by the same library, and nothing encrypted. Metadata may differ: that library reads nothing into values."""
    known = {1, _SCHEMA, _ROWS, _GROUPS, _METADATA, _CREATED_BY, _ORDERS}
    return (
        set(footer.fields) | set(ours.fields) <= known
        and all(footer.fields.get(each) == ours.fields.get(each) for each in (_SCHEMA, _ORDERS))
        and all(bytes(each.value(_CREATED_BY, b"")).startswith(_WRITER) for each in (footer, ours))
    )


def bytes_of(group: Struct) -> tuple[int, int] | None:
    """The range (start, stop) of the row group's pages; None where it can't be copied: other bytes lie among them, or some elsewhere."""
    spans = []
    for chunk in group.children(_COLUMNS):
        if _PATH in chunk.fields or any(each in chunk.fields for each in _ENCRYPTION):
            return None
        for column in chunk.children(_COLUMN):
            start = min(column.value(at) for at in (_PAGES, _DICTIONARY) if column.value(at, 0) > 0)
            spans.append((start, start + column.value(_SIZE)))
    if len(spans) != len(group.children(_COLUMNS)) or not spans or any(before[1] != after[0] for before, after in pairwise(spans)):
        return None
    return spans[0][0], spans[-1][1]


def moved(group: Struct, by: int) -> Struct:
    """Its description, so many bytes further on in a file; without page indexes and Bloom filters, which stand elsewhere and don't move."""
    out = read_struct(write_struct(group))
    _shift(out, (_GROUP_OFFSET,), by)
    for chunk in out.children(_COLUMNS):
        chunk.drop(*_INDEXES)
        _shift(chunk, (_CHUNK_OFFSET,), by)
        for column in chunk.children(_COLUMN):
            column.drop(*_BLOOM)
            _shift(column, _OFFSETS, by)
    return out


def _shift(node: Struct, keys: Sequence[int], by: int) -> None:
    for key in keys:
        if node.value(key, 0) > 0:  # some writers leave 0 where nobody looks
            node.fields[key] = (I64, node.value(key) + by)


def file_end(written: pq.FileMetaData, stored: Iterable[Struct]) -> bytes:
    """What ends the file in which row groups were written and others were put as they stood: footer, its length, the magic bytes."""
    footer = footer_of(written)
    groups = sorted([*footer.children(_GROUPS), *stored], key=lambda group: (bytes_of(group) or (0, 0))[0])
    numbered = [_numbered(group, number) for number, group in enumerate(groups)]
    footer.fields[_GROUPS] = (LIST, (STRUCT, numbered))
    footer.fields[_ROWS] = (I64, sum(group.value(_GROUP_ROWS) for group in groups))
    data = write_struct(footer)
    return data + struct.pack("<I", len(data)) + _MAGIC


def _numbered(group: Struct, number: int) -> Struct:
    """With its place in the file, as long as that has 15 bits."""
    out = Struct(dict(group.fields))
    out.fields[_ORDINAL] = (I16, number)
    if number >= 2**15:
        out.drop(_ORDINAL)
    return out
