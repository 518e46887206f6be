"""Texts of few different values on their way from a data file to its replacement: they stay indices into a dictionary, as they are stored.

To make a text of each index, and an index of each text again, is much of a merge's work where a table has many such columns. What a file
is read and written with is the same dictionary then, but for two things: it holds the new images' texts too, and none that no row has any
more, so that what was deleted is not left behind in it.
"""

from __future__ import annotations

from collections.abc import Container

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pyarrow.types as pt

ENCODED_TEXT = pa.dictionary(pa.int32(), pa.string())
# Of the dictionary in a row group, as it is stored: each piece of rows brings a dictionary, and all of a row group are made one.
MOST_DICTIONARY_BYTES = 16 * 1024
_OFFSET_BYTES = 4


def encoded_columns(metadata: pq.FileMetaData, but: Container[str] = ()) -> list[str]:
    """The text columns, without those in `but`, that have a small dictionary in every row group of a file."""
    texts = [at for at in range(metadata.num_columns) if _is_text(metadata.schema.column(at), but)]
    for group in range(metadata.num_row_groups) if texts else ():
        described = metadata.row_group(group)
        texts = [at for at in texts if _has_small_dictionary(described.column(at))]
    return [metadata.schema.column(at).name for at in texts] if metadata.num_row_groups else []


def _is_text(column: pq.ColumnSchema, but: Container[str]) -> bool:
    is_flat = column.path == column.name and column.max_repetition_level == 0
    return is_flat and column.logical_type.type == "STRING" and column.name not in but


def _has_small_dictionary(chunk: pq.ColumnChunkMetaData) -> bool:
    start = chunk.dictionary_page_offset
    return start is not None and 0 < chunk.data_page_offset - start <= MOST_DICTIONARY_BYTES


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
    """Of the rows in memory once their texts are decoded; of these it is told by the longest run of rows that lie together."""
    if not any(pt.is_dictionary(field.type) for field in table.schema):
        return int(table.nbytes)
    return sum(_text_bytes(column) if pt.is_dictionary(column.type) else int(column.nbytes) for column in table.columns)


def _text_bytes(column: pa.ChunkedArray) -> int:
    if not len(column):
        return 0
    longest = max(column.chunks, key=len)
    lengths = pc.binary_length(longest.dictionary).fill_null(0).to_numpy(zero_copy_only=False)
    used = longest.indices.drop_null().to_numpy(zero_copy_only=False)
    return len(column) * _OFFSET_BYTES + int(lengths[used].sum() / len(longest) * len(column))


def with_one_dictionary(table: pa.Table) -> pa.Table:
    """The rows with one dictionary for each encoded column, of the texts that a row has."""
    encoded = [at for at, field in enumerate(table.schema) if pt.is_dictionary(field.type)]
    if not encoded:
        return table
    unified = table.select(encoded).unify_dictionaries().combine_chunks()
    for at, column in zip(encoded, unified.columns, strict=True):
        chunks = [_without_unused(chunk) for chunk in column.chunks]
        table = table.set_column(at, table.field(at), pa.chunked_array(chunks, column.type))
    return table


def _without_unused(values: pa.DictionaryArray) -> pa.DictionaryArray:
    counts = np.bincount(values.indices.drop_null().to_numpy(zero_copy_only=False), minlength=len(values.dictionary))
    used = counts > 0
    if used.all():
        return values
    # Of an index that no row has the new place is never asked for.
    places = pa.array(np.cumsum(used, dtype=np.int32) - np.int32(1))
    return pa.DictionaryArray.from_arrays(places.take(values.indices), values.dictionary.filter(pa.array(used)))
