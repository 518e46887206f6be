"""Keys found among values of another type than the key's: a column may have had another type before a reload.

A value is a key's where it is the same in the key's type, or the key is the same in the value's type, or both are the same number or
text: 1.50 is '1.50', '5.0' is 5, '2024-05-01' is that day, and a day is its midnight. What can't be turned so is no key's.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import Decimal, InvalidOperation
from itertools import product
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.types as pt

from glue_jobs.core.erasure import canonical
from glue_jobs.spark.key_columns import comparable, normal_floats
from glue_jobs.spark.locate import GivenKeys, Places
from glue_jobs.spark.partition_columns import plain_number, value_of

_Space = tuple[pa.Array, pa.Array]  # values and keys in one type, null where one has no such value


def places_of_retyped(keys: GivenKeys, columns: Sequence[Any]) -> Places | None:
    """For each row the place of its key, −1 for none; None where a column can't be compared. columns: in the order of the key's."""
    given = [_flat(keys.table.column(name)) for name in keys.columns]
    spaces = [_spaces(_flat(values), key) for values, key in zip(columns, given, strict=True)]
    if not all(spaces):
        return None
    found = np.full(len(columns[0]), -1, np.int64)
    for chosen in product(*spaces):
        rows = pa.table([values for values, _ in chosen], names=list(keys.columns))
        there = _places(pa.table([key for _, key in chosen], names=list(keys.columns)), rows, keys.columns)
        found = np.where(found < 0, there, found)
    return found


def _places(given: pa.Table, rows: pa.Table, columns: Sequence[str]) -> Places:
    """For each row the first place among the given ones, of which some may be equal, and some have nulls."""
    distinct = GivenKeys.of(given, columns)
    at = distinct.places(given)
    first = np.full(len(distinct) + 1, -1, np.int64)  # the last is for rows that are none of them
    for place in range(len(at) - 1, -1, -1):
        if at[place] >= 0:
            first[at[place]] = place
    found: Places = first[distinct.places(rows)]
    return found


def _spaces(values: pa.Array, key: pa.Array) -> list[_Space]:
    """The ways to compare the two; none if there is no way."""
    if values.type.equals(key.type):
        return [(values, key)]
    turned = [(_turned(values, key.type), key), (values, _turned(key, values.type))]
    spaces = [(left, right) for left, right in turned if left is not None and right is not None]
    if not (pt.is_temporal(values.type) or pt.is_temporal(key.type)):
        numbers = any(pt.is_integer(kind) or pt.is_decimal(kind) or pt.is_floating(kind) for kind in (values.type, key.type))
        left, right = _texts(values, numbers), _texts(key, numbers)
        spaces += [(left, right)] if left is not None and right is not None else []
    return spaces


def _turned(values: pa.Array, kind: pa.DataType) -> pa.Array | None:
    """The values in another type, null where one has none; None for types that have nothing in common."""
    if values.type.equals(kind):
        return values
    if pt.is_date(values.type) and pt.is_timestamp(kind):
        return _each(values, kind, lambda value: value.cast(kind))
    if pt.is_string(values.type) and not pt.is_nested(kind):
        return _each(values, kind, lambda value: value_of(value.as_py(), kind))
    return None


def _texts(values: pa.Array, numbers: bool) -> pa.Array | None:
    """The canonical texts; None for values that have none. numbers: a text that says a number counts as it."""
    if pt.is_nested(values.type):
        return None
    is_number = numbers and pt.is_string(values.type)

    def text(value: pa.Scalar) -> str:
        plain = canonical(comparable(value))
        return _of_number(plain) if is_number else plain

    return _each(normal_floats(values), pa.string(), text)


def _of_number(text: str) -> str:
    try:
        number = Decimal(plain_number(text))
        return canonical(number) if number.is_finite() and abs(number.adjusted()) < 400 else text
    except (InvalidOperation, ValueError):
        return text


def _each(values: pa.Array, kind: pa.DataType, turn: Callable[[pa.Scalar], Any]) -> pa.Array:
    """Each distinct value turned, null where that fails."""
    encoded = values.dictionary_encode()
    turned = pa.array([_or_none(turn, value) for value in encoded.dictionary], kind)
    return turned.take(encoded.indices)


def _or_none(turn: Callable[[pa.Scalar], Any], value: pa.Scalar) -> Any:
    try:
        made = turn(value) if value.is_valid else None
        return made.as_py() if isinstance(made, pa.Scalar) and not pt.is_temporal(made.type) else made
    except (ValueError, TypeError, OverflowError, AttributeError, pa.ArrowException):
        return None


def _flat(values: Any) -> pa.Array:
    """One array without a dictionary; texts of any layout as plain ones."""
    array = values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values
    if isinstance(array, pa.ChunkedArray):  # of no chunk, or too large for one
        array = pa.concat_arrays(array.chunks) if array.num_chunks else pa.array([], array.type)
    if pt.is_dictionary(array.type):
        array = array.cast(array.type.value_type)
    if pt.is_large_string(array.type) or str(array.type) == "string_view":
        array = array.cast(pa.string())
    return array
