"""Texts of few different values on their way from a data file to its replacement: they stay indices into a dictionary, as they are stored.

To make a text of each index, and an index of each text again, is much of a merge's work where a table has many such columns. What a file
is read and written with is the same dictionary then, but for two things: it holds the new images' texts too, and none that no row has any
more, so that what was deleted is not left behind in it.
"""

from __future__ import annotations

import base64
from collections.abc import Container
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pyarrow.types as pt

from glue_jobs.spark.arrow_writer import is_by_arrow

ENCODED_TEXT = pa.dictionary(pa.int32(), pa.string())
# Of a row group's column, before compression: a small dictionary, and for each row an index of two bytes; no row is stored beside them.
MOST_DICTIONARY_BYTES = 32 * 1024
MOST_INDEX_BYTES = 2.25
# Of columns in row groups that are looked at: a wide table's take longer than what is spared.
MOST_CHUNKS = 1000
# As in Parquet's writers: a dictionary that has become larger is not worth it.
LARGE_DICTIONARY_BYTES = 1024 * 1024
# Shorter texts are counted as if each were the longest one of the dictionary.
SHORT_TEXT_BYTES = 32
_OFFSET_BYTES = 4
_TYPES_BEFORE = b"ARROW:schema"  # of the rows that were written, in a footer


def encoded_columns(metadata: pq.FileMetaData, but: Container[str] = ()) -> list[str]:
    """The text columns, without those in `but`, that have a small dictionary in every row group of a file and no row beside it."""
    # Of other libraries' dictionaries Arrow makes wrong texts (where one stands twice) or an error (where other rows are in DELTA pages).
    if not is_by_arrow(metadata.created_by) or not 0 < metadata.num_columns * metadata.num_row_groups <= MOST_CHUNKS:
        return []
    texts = [at for at in range(metadata.num_columns) if _is_text(metadata.schema.column(at), but)]
    for group in range(metadata.num_row_groups) if texts else ():
        described = metadata.row_group(group)
        texts = [at for at in texts if _has_small_dictionary(described.column(at))]
    return [metadata.schema.column(at).name for at in texts]


def _is_text(column: pq.ColumnSchema, but: Container[str]) -> bool:
    is_flat = column.path == column.name and column.max_repetition_level == 0
    return is_flat and column.logical_type.type == "STRING" and column.name not in but


def _has_small_dictionary(chunk: pq.ColumnChunkMetaData) -> bool:
    most = MOST_DICTIONARY_BYTES + MOST_INDEX_BYTES * chunk.num_values
    return chunk.has_dictionary_page and chunk.total_uncompressed_size <= most


def may_have_unused_values(metadata: pq.FileMetaData) -> bool:
    """Whether a dictionary in a file that Arrow wrote, but not we, may have values that no row of its row group has: what was a dictionary
    in memory, as a category of pandas, Arrow writes whole into each row group. Where the footer does not say what was one, any may be.
    """
    types_before = (metadata.metadata or {}).get(_TYPES_BEFORE)
    if types_before is not None:
        schema = pa.ipc.read_schema(pa.py_buffer(base64.b64decode(types_before)))
        return any(pt.is_dictionary(field.type) for field in schema)
    groups = [metadata.row_group(number) for number in range(metadata.num_row_groups)]
    return any(group.column(at).has_dictionary_page for group in groups for at in range(group.num_columns))


def encoded_like(table: pa.Table, schema: pa.Schema) -> pa.Table:
    """The rows with the same texts encoded as in `schema`, which has the same columns."""
    if table.schema.equals(schema):
        return table
    return pa.Table.from_arrays([_as(column, field.type) for column, field in zip(table.columns, schema, strict=True)], schema=schema)


def _as(column: pa.ChunkedArray, wanted: pa.DataType) -> pa.ChunkedArray:
    if column.type.equals(wanted):
        return column
    return column.dictionary_encode() if wanted.equals(ENCODED_TEXT) else column.cast(wanted)


def decoded(table: pa.Table) -> pa.Table:
    """The rows with no text encoded."""
    plain = [field.with_type(pa.string()) if field.type.equals(ENCODED_TEXT) else field for field in table.schema]
    return encoded_like(table, pa.schema(plain))


def decoded_bytes_of(table: pa.Table) -> int:
    """Of the rows in memory once their texts are decoded; rather more than fewer."""
    return sum(map(_column_bytes, table.columns))


def _column_bytes(column: pa.ChunkedArray) -> int:
    kind = column.type
    if pt.is_dictionary(kind):
        return _text_bytes(column)
    # Arrow looks at the buffers of every piece, of which the rows of a merge have many; only of texts must it.
    if column.num_chunks > 1 and (pt.is_primitive(kind) or pt.is_decimal(kind)):
        return -(-len(column) * (kind.bit_width + 1) // 8)
    return int(column.nbytes)


def _text_bytes(column: pa.ChunkedArray) -> int:
    total, known = len(column) * _OFFSET_BYTES, dict[Any, tuple[np.ndarray[Any, Any], int]]()
    for chunk in column.chunks:
        texts = chunk.dictionary
        place = _place(texts)
        if place not in known:
            lengths = pc.binary_length(texts).to_numpy(zero_copy_only=False)
            known[place] = lengths, int(lengths.max(initial=0))
        lengths, longest = known[place]
        if longest <= SHORT_TEXT_BYTES:
            total += len(chunk) * longest
        else:
            total += int(lengths[chunk.indices.drop_null().to_numpy(zero_copy_only=False)].sum(dtype=np.int64))
    return total


def _place(texts: pa.Array) -> Any:
    """The same for dictionaries that are the same one in memory."""
    return len(texts), texts.offset, *(buffer.address if buffer else 0 for buffer in texts.buffers())


def with_one_dictionary(table: pa.Table) -> pa.Table:
    """The rows with one dictionary for each encoded column, of the texts that a row has. Where that would be a large one each run of rows
    keeps its own: Parquet's writer has one for the first of them, and none for the others."""
    if not any(pt.is_dictionary(field.type) for field in table.schema):
        return table
    columns = [_tidied(column) if pt.is_dictionary(column.type) else column for column in table.columns]
    return pa.Table.from_arrays(columns, schema=table.schema)


def _tidied(column: pa.ChunkedArray) -> pa.ChunkedArray:
    whole = one_dictionary(column)
    if whole.dictionary.nbytes > LARGE_DICTIONARY_BYTES:
        return pa.chunked_array([one_dictionary(pa.chunked_array([chunk])) for chunk in column.chunks], column.type)
    return pa.chunked_array([whole], column.type)


def one_dictionary(column: pa.ChunkedArray) -> pa.DictionaryArray:
    """An encoded column in one piece, its dictionary without texts that no row has."""
    first_of: dict[Any, int] = {}
    dictionaries, parts, length = [pa.array([], pa.string())], [pa.array([], pa.int32())], 0
    for chunk in column.chunks:
        texts = chunk.dictionary
        place = _place(texts)
        if place not in first_of:
            first_of[place] = length
            dictionaries.append(texts)
            length += len(texts)
        first = first_of[place]
        parts.append(pc.add(chunk.indices, pa.scalar(first, pa.int32())) if first else chunk.indices)
    indices, texts = pa.concat_arrays(parts), pa.concat_arrays(dictionaries)
    used = np.bincount(indices.drop_null().to_numpy(zero_copy_only=False), minlength=length) > 0
    if len(first_of) == 1 and used.all():
        return pa.DictionaryArray.from_arrays(indices, texts)
    distinct = texts.filter(pa.array(used)).unique()
    return pa.DictionaryArray.from_arrays(pc.index_in(texts, value_set=distinct).take(indices), distinct)
