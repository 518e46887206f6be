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
        array = _one_array(values) if values.nbytes <= GATHER_BYTES else values
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
    if not key or table.num_rows < 2:
        return table
    parts = pa.table(key_columns(table, key), names=[str(index) for index in range(len(key))])
    order = pc.sort_indices(parts, sort_keys=[(name, "ascending") for name in parts.column_names])
    return take(table, order)


def take(table: pa.Table, indices: pa.Array, gather_bytes: int = GATHER_BYTES) -> pa.Table:
    """The rows at `indices`, in that order, also where a column of text is larger than Arrow can gather at once."""
    if all(column.nbytes <= gather_bytes for column in table.itercolumns()):
        return table.take(indices)
    wide = table.cast(pa.schema([field.with_type(_large(field.type)) for field in table.schema]))
    rows = max(1, len(indices) * gather_bytes // wide.nbytes)
    pieces = [piece for start in range(0, len(indices), rows) for piece in _narrowed(wide.take(indices.slice(start, rows)), table.schema)]
    return pa.concat_tables(pieces) if pieces else table.slice(0, 0)


def _narrowed(wide: pa.Table, schema: pa.Schema) -> list[pa.Table]:
    """The rows with 32-bit offsets, in as many pieces as that takes: the widest rows may follow on each other."""
    try:
        return [wide.combine_chunks().cast(schema)]
    except pa.ArrowInvalid:
        if wide.num_rows < 2:
            raise
        half = wide.num_rows // 2
        return _narrowed(wide.slice(0, half), schema) + _narrowed(wide.slice(half), schema)


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


class KeyIndex:
    """Where a key stands in a table of distinct keys, for any number of rows at once and without a Python object per row."""

    def __init__(self, table: pa.Table, key: Sequence[str]) -> None:
        """`table` has the columns `key`, without nulls, each key once; other columns are left aside."""
        self.key = tuple(key)
        self._table = pa.table(key_columns(table, self.key), names=list(self.key))
        self._levels: list[tuple[pa.Array, pa.Array]] | None = None

    def __len__(self) -> int:
        return self._table.num_rows

    def slice(self, start: int, stop: int) -> KeyIndex:
        """The index of the keys from `start` to before `stop`; positions count from `start`. Copies nothing."""
        return KeyIndex(self._table.slice(start, max(0, stop - start)), self.key)

    def positions(self, table: pa.Table) -> pa.Array:
        """For each row of `table` the position of its key as int32, null where it has none here."""
        probes = [self._same_type(column, name) for name, column in zip(self.key, key_columns(table, self.key), strict=True)]
        if len(probes) == 1:
            return _one_array(pc.index_in(probes[0], value_set=_one_array(self._table.column(0))))
        return self._composite(probes)

    def _same_type(self, probe: Column, name: str) -> Column:
        wanted = self._table.schema.field(name).type
        return probe if probe.type.equals(wanted) else probe.cast(wanted)

    def _composite(self, probes: Sequence[Column]) -> pa.Array:
        """Each column's values are numbered, the numbers joined with those of the columns before and numbered again.

        So they stay below the number of keys, and a product of two below 2⁶³.
        """
        if self._levels is None:
            self._levels = self._number()
        code: pa.Array | None = None
        for probe, (distinct, joined) in zip(probes, self._levels, strict=True):
            number = _int64(pc.index_in(probe, value_set=distinct))
            pair = number if code is None else _join(code, number, len(distinct))
            code = _int64(pc.index_in(pair, value_set=joined))
        return code.cast(pa.int32())

    def _number(self) -> list[tuple[pa.Array, pa.Array]]:
        """Per column: its distinct values, and the distinct joined numbers; of the last column those of each key in order."""
        levels: list[tuple[pa.Array, pa.Array]] = []
        code: pa.Array | None = None
        last = self._table.num_columns - 1
        for index, column in enumerate(self._table.itercolumns()):
            distinct = _one_array(pc.unique(column))
            number = _int64(pc.index_in(column, value_set=distinct))
            pair = number if code is None else _join(code, number, len(distinct))
            joined = pair if index == last else pc.unique(pair)
            levels.append((distinct, joined))
            code = _int64(pc.index_in(pair, value_set=joined))
        return levels


def _join(code: pa.Array, number: pa.Array, distinct: int) -> pa.Array:
    return pc.add(pc.multiply(code, distinct), number)


def _int64(values: Column) -> pa.Array:
    return _one_array(values.cast(pa.int64()))


def _one_array(values: Column) -> pa.Array:
    return values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values
