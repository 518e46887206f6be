"""Keys of many rows at once: order, bounds, and where each row's key stands in a set of keys.

Order and equality are those of core.keys: strings and binary by their bytes, numbers by value, NaN the greatest and equal to
itself, −0.0 equal to 0.0. Where a key has a collation (core.collation), its strings are those of the form in which equal keys are equal.
Null has no place in a key.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, overload

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from glue_jobs.core.collation import Collation, column_collation
from glue_jobs.core.keys import NAN, Bound, encode_bound, float_key

Column = pa.Array | pa.ChunkedArray
JsonBound = tuple[Any, ...] | None
# Arrow strings have 32-bit offsets: a column above 2 GiB can't be gathered in one piece.
GATHER_BYTES = 1 << 30


def key_columns(table: pa.Table, key: Sequence[str]) -> list[pa.ChunkedArray]:
    """The key's columns in the values that are compared: of floats one zero and one NaN, of texts the collation's form."""
    return [comparable_column(table.column(name), name) for name in key]


def comparable_column(values: Column, name: str) -> Column:
    """The values of a key's column of this name, as they are compared."""
    collation = column_collation(name)
    return collated_texts(values, collation) if collation and pt.is_string(values.type) else normal_floats(values)


def collated_texts(values: Column, collation: Collation) -> Column:
    """What Collation.form makes of each text; null stays null. Only texts that are not ASCII are looked at one by one, each once."""
    if pc.all(pc.string_is_ascii(values)).as_py() is False:
        array = one_array(values) if values.nbytes <= GATHER_BYTES else values
        return _each_text(array, collation)
    small = pc.ascii_lower(values) if collation.is_small else values
    return pc.ascii_rtrim(small, characters=" ") if collation.pad else small


def _each_text(values: Column, collation: Collation) -> Column:
    if isinstance(values, pa.ChunkedArray):
        return pa.chunked_array([_each_text(chunk, collation) for chunk in values.chunks], values.type)
    encoded = values.dictionary_encode()
    forms = pa.array([collation.form(text) for text in encoded.dictionary.to_pylist()], pa.string())
    return forms.take(encoded.indices)


def normal_floats(values: Column) -> Column:
    """Floats with one zero and one NaN; other types as they are."""
    if not pt.is_floating(values.type):
        return values
    plus_zero = pc.add(values, pa.scalar(0.0, values.type))  # −0.0 + 0.0 is 0.0
    return pc.if_else(pc.is_nan(values), pa.scalar(float("nan"), values.type), plus_zero)


def normalised_keys(table: pa.Table, key: Sequence[str]) -> pa.Table:
    """The key's columns alone, under their names; equal keys are equal values here, also for a hash (a group_by, a join)."""
    return pa.table(key_columns(table, key), names=list(key))


def collated_keys(key: Sequence[str], types: Sequence[str]) -> list[str]:
    """Those of the key's columns, of these lake types, whose texts are compared in another form than they have."""
    return [name for name, kind in zip(key, types, strict=True) if kind == "string" and column_collation(name)]


def sort_by_key(table: pa.Table, key: Sequence[str]) -> pa.Table:
    """The rows in the order of their keys; rows with equal keys stay as they were. Values are not touched (−0.0 stays)."""
    return take(table, key_order(table, key)) if key and table.num_rows > 1 else table


def key_order(table: pa.Table, key: Sequence[str]) -> pa.Array:
    """The places of the rows in the order of their keys; of rows with equal keys as they stand."""
    parts = pa.table(key_columns(table, key), names=[str(index) for index in range(len(key))])
    return pc.sort_indices(parts, sort_keys=[(name, "ascending") for name in parts.column_names])


def take(table: pa.Table, indices: pa.Array) -> pa.Table:
    """The rows at `indices`, in that order, also where a column of text is larger than Arrow can gather at once."""
    if all(column.nbytes <= GATHER_BYTES for column in table.itercolumns() if _has_offsets(column.type)):
        return table.take(indices)
    wide = table.cast(pa.schema([field.with_type(_large(field.type)) for field in table.schema]))
    rows = max(1, len(indices) * GATHER_BYTES // wide.nbytes)
    pieces = [piece for start in range(0, len(indices), rows) for piece in _narrowed(wide.take(indices.slice(start, rows)), table.schema)]
    return pa.concat_tables(pieces) if pieces else table.slice(0, 0)


def in_one_piece(tables: list[pa.Table]) -> pa.Table:
    """The tables' rows, each column in one piece so that rows are found in it at once: no column of text may be larger than GATHER_BYTES.
    The list is empty afterwards: beside the rows only one column is in memory twice."""
    rest = pa.concat_tables(tables)
    tables.clear()
    names, columns = rest.column_names, []
    while rest.num_columns:
        columns.append(rest.column(0).combine_chunks())
        rest = rest.remove_column(0)
    return pa.table(columns, names=names)


def _narrowed(wide: pa.Table, schema: pa.Schema) -> list[pa.Table]:
    """The rows with 32-bit offsets, in as many pieces as that takes: the widest rows may follow on each other."""
    try:
        return [wide.combine_chunks().cast(schema)]
    except pa.ArrowInvalid:
        if wide.num_rows < 2:
            raise
        half = wide.num_rows // 2
        return _narrowed(wide.slice(0, half), schema) + _narrowed(wide.slice(half), schema)


def _has_offsets(kind: pa.DataType) -> bool:
    return bool(pt.is_string(kind) or pt.is_binary(kind))


def _large(kind: pa.DataType) -> pa.DataType:
    return pa.large_string() if pt.is_string(kind) else pa.large_binary() if pt.is_binary(kind) else kind


def comparable(scalar: pa.Scalar) -> Any:
    """One value in the comparable form of core.keys."""
    kind = scalar.type
    if pt.is_string(kind):
        return scalar.as_buffer().to_pybytes()
    if pt.is_date(kind) or pt.is_timestamp(kind):
        return scalar.value
    value = scalar.as_py()
    if pt.is_floating(kind):
        return float_key(value)
    return int(value) if pt.is_boolean(kind) else value


class SortedKeys(Sequence[Any]):
    """The keys of a sorted table as core.keys.slice_of reads them: bare values for one column, else tuples.

    Values are made when asked for: a binary search over millions of keys makes twenty of them.
    """

    def __init__(self, table: pa.Table, key: Sequence[str]) -> None:
        self._columns = key_columns(table, key)
        self._rows = table.num_rows

    def __len__(self) -> int:
        return self._rows

    @overload
    def __getitem__(self, index: int) -> Any: ...
    @overload
    def __getitem__(self, index: slice) -> list[Any]: ...
    def __getitem__(self, index: int | slice) -> Any:
        if isinstance(index, slice):
            return [self[position] for position in range(*index.indices(self._rows))]
        if len(self._columns) == 1:
            return comparable(self._columns[0][index])
        return tuple(comparable(column[index]) for column in self._columns)


def comparables(table: pa.Table, key: Sequence[str]) -> SortedKeys:
    """The keys of `table`, which is sorted by key, for core.keys.slice_of."""
    return SortedKeys(table, key)


def bounds(table: pa.Table, key: Sequence[str]) -> tuple[Bound, Bound] | None:
    """The least and the greatest key of the rows, in any order, as tuples of comparable values; None without rows."""
    if not key or not table.num_rows:
        return None
    columns = key_columns(table, key)
    return _extreme(columns, greatest=False), _extreme(columns, greatest=True)


def _extreme(columns: Sequence[Column], greatest: bool) -> Bound:
    """Column by column: its extreme, then only the rows that have it."""
    values: list[Any] = []
    columns = list(columns)
    while columns:
        value, holders = _extreme_of(columns[0], greatest, mask=len(columns) > 1)
        values.append(value)
        columns = [column.filter(holders) for column in columns[1:]]
    return tuple(values)


def _extreme_of(column: Column, greatest: bool, mask: bool) -> tuple[Any, Column | None]:
    if pt.is_floating(column.type):
        nan = pc.is_nan(column)
        if (pc.any(nan) if greatest else pc.all(nan)).as_py():
            return NAN, nan
    scalar = (pc.max if greatest else pc.min)(column)  # both pass over NaN
    return comparable(scalar), pc.equal(column, scalar) if mask else None


def encoded_bounds(table: pa.Table, key: Sequence[str], types: Sequence[str]) -> tuple[JsonBound, JsonBound]:
    """Both bounds in the JSON form of change records. types: the lake types of the key's columns; (None, None) without rows."""
    found = bounds(table, key)
    return (None, None) if found is None else (encode_bound(types, found[0], upper=False), encode_bound(types, found[1], upper=True))


def one_array(values: Column) -> pa.Array:
    """The values in one piece."""
    return values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values
