"""Row groups that go from a data file to its replacement as they stand: neither decoded nor encoded, the new footer says where they are.

A batch of new rows' changes meets the end of a table's last file. What is before it need not be worked on, only be copied. What the footer
says of a row group (parquet.thrift) goes along, statistics too, but for the bounds of floats; only its places in the file become others,
and what stands elsewhere in the old file, page indexes and Bloom filters, is left out.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import pyarrow as pa
import pyarrow.parquet as pq

from glue_jobs.aws.copies import ObjectRange
from glue_jobs.core.keys import Bound
from glue_jobs.spark.arrow_writer import is_by_arrow
from glue_jobs.spark.column_hashes import Hashes
from glue_jobs.spark.thrift_compact import I16, I64, LIST, STRUCT, Struct, read_struct, write_struct

# Smaller ones are decoded: together with what is written before them they become larger ones, and a request is not worth their bytes.
LEAST_STORED_BYTES = 1024 * 1024
# Of a footer that is looked at: reading and writing one of so many columns of row groups takes a second.
MOST_CHUNKS = 5000
MOST_GAP_BYTES = 64 * 1024  # between the pages of two columns

_MAGIC = b"PAR1"
_SCHEMA, _ROWS, _GROUPS, _METADATA, _CREATED_BY, _ORDERS = 2, 3, 4, 5, 6, 7  # of a footer
_COLUMNS, _GROUP_SIZE, _GROUP_ROWS, _GROUP_OFFSET, _GROUP_PACKED_SIZE, _ORDINAL = 1, 2, 3, 5, 6, 7  # of a row group
_PATH, _CHUNK_OFFSET, _COLUMN, _INDEXES, _ENCRYPTION = 1, 2, 3, (4, 5, 6, 7), (8, 9)  # of a column chunk
_SIZE, _PAGES, _DICTIONARY, _OFFSETS, _BLOOM = 7, 9, 11, (9, 10, 11), (14, 15)  # of its column
_TYPE, _STATISTICS, _FLOATS, _BOUNDS = 1, 12, (4, 5), (1, 2, 5, 6, 7, 8)  # of its column too; types of 4 and 8 bytes


@dataclass(frozen=True)
class Described:
    """What a footer says of a row group, and the range of its bytes in the file (start, stop)."""

    struct: Struct
    start: int
    stop: int


@dataclass(frozen=True)
class StoredGroup:
    """A row group without a changed key, and where its bytes are. low, high: of its keys, or around them. key_hashes: of all its rows, some
    at a time; key_section: what a key filter keeps of them, None where that can't be made."""

    rows: int
    low: Bound
    high: Bound
    described: Described
    key_hashes: Callable[[], Iterable[Hashes]]
    key_section: Callable[[], bytes | None]
    object_range: ObjectRange


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
        and all(is_by_arrow(bytes(each.value(_CREATED_BY, b"")).decode(errors="replace")) for each in (footer, ours))
    )


def described_groups(footer: Struct) -> dict[int, Described]:
    """The row groups that can be copied, by their numbers."""
    found = {number: _described(group) for number, group in enumerate(footer.children(_GROUPS))}
    return {number: each for number, each in found.items() if each is not None}


def _described(group: Struct) -> Described | None:
    """None where it can't be copied: it is empty, or its pages don't lie together."""
    spans = []
    for chunk in group.children(_COLUMNS):
        if _PATH in chunk.fields or any(each in chunk.fields for each in _ENCRYPTION):
            return None
        start = _first_byte(chunk)
        spans.append((start, start + sum(column.value(_SIZE) for column in chunk.children(_COLUMN))))
    # Older versions of the library write what the footer says of a chunk behind it too.
    if not spans or spans[0][0] <= 0 or not all(0 <= after[0] - before[1] <= MOST_GAP_BYTES for before, after in pairwise(spans)):
        return None
    return Described(group, spans[0][0], spans[-1][1])


def _first_byte(chunk: Struct) -> int:
    """Of a column's pages; 0 where it has none."""
    offsets = [column.value(at, 0) for column in chunk.children(_COLUMN) for at in (_PAGES, _DICTIONARY)]
    return min((offset for offset in offsets if offset > 0), default=0)


def moved(group: Struct, by: int) -> Struct:
    """What is said of it so many bytes further on in a file; `group` stays as it is."""
    chunks = [_moved_chunk(chunk, by) for chunk in group.children(_COLUMNS)]
    return _shifted(Struct({**group.fields, _COLUMNS: (LIST, (STRUCT, chunks))}), (_GROUP_OFFSET,), by)


def with_columns_of(groups: Sequence[Struct]) -> Struct:
    """A row group with the columns of several ones of the same rows, in this order."""
    fields = {**groups[0].fields, _COLUMNS: (LIST, (STRUCT, [chunk for group in groups for chunk in group.children(_COLUMNS)]))}
    for size in (_GROUP_SIZE, _GROUP_PACKED_SIZE):
        fields[size] = (I64, sum(group.value(size) for group in groups))
    return Struct(fields)


def _moved_chunk(chunk: Struct, by: int) -> Struct:
    out = Struct(dict(chunk.fields))
    out.drop(*_INDEXES)
    out.fields[_CHUNK_OFFSET] = (I64, 0)  # out of use: where the chunk was described once more
    for column in chunk.children(_COLUMN):
        there = _shifted(Struct(dict(column.fields)), _OFFSETS, by)
        there.drop(*_BLOOM)
        if there.value(_TYPE) in _FLOATS:  # Arrow's bounds know of no NaN (data_file_writer.py)
            for statistics in there.children(_STATISTICS):
                there.fields[_STATISTICS] = (STRUCT, Struct(dict(statistics.fields)))
                there.children(_STATISTICS)[0].drop(*_BOUNDS)
        out.fields[_COLUMN] = (STRUCT, there)
    return out


def _shifted(node: Struct, keys: Sequence[int], by: int) -> Struct:
    for key in keys:
        if node.value(key, 0) > 0:  # some writers leave 0 where nobody looks
            node.fields[key] = (I64, node.value(key) + by)
    return node


def file_end(written: pq.FileMetaData, stored: Iterable[Struct], put: Sequence[tuple[int, int]]) -> bytes:
    """What ends the file in which row groups were written and others were put as they stood: footer, its length, the magic bytes.

    put: of bytes that the writer does not know of, behind which of its own they are, and how many.
    """
    footer = footer_of(written)
    own = [moved(group, sum(size for at, size in put if at <= _start(group))) for group in footer.children(_GROUPS)]
    numbered = [_numbered(group, number) for number, group in enumerate(sorted([*own, *stored], key=_start))]
    footer.fields[_GROUPS] = (LIST, (STRUCT, numbered))
    footer.fields[_ROWS] = (I64, sum(group.value(_GROUP_ROWS) for group in numbered))
    data = write_struct(footer)
    return data + struct.pack("<I", len(data)) + _MAGIC


def _start(group: Struct) -> int:
    """The first byte of its pages."""
    return min(map(_first_byte, group.children(_COLUMNS)))


def _numbered(group: Struct, number: int) -> Struct:
    """With its place in the file, as long as that has 15 bits."""
    out = Struct(dict(group.fields))
    out.fields[_ORDINAL] = (I16, number)
    if number >= 2**15:
        out.drop(_ORDINAL)
    return out
