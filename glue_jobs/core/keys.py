"""Key values as Python values that compare the way their types do, and their JSON form in change records.

Comparable forms: integers, dates (days since 1970) and timestamps (microseconds) as int, decimals as Decimal, strings and
binary as bytes (strings in UTF-8, so that the order is the one Arrow and Spark use), floats as (0, value) or (1, 0.0) for NaN,
which is the greatest; −0.0 is 0.0. A key's bounds are tuples, compared column by column.
"""

from __future__ import annotations

import base64
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

from glue_jobs.core.schema import decimal_parts

Bound = tuple[Any, ...]
NAN = (1, 0.0)
MAX_BOUND_BYTES = 256


def float_key(value: float) -> tuple[int, float]:
    """The comparable form of a float."""
    return NAN if value != value else (0, value + 0.0)


def encode(type_name: str, value: Any) -> Any:
    """The JSON form of one comparable value of a lake type."""
    if type_name == "string":
        return value.decode("utf-8")
    if type_name == "binary":
        return base64.b64encode(value).decode("ascii")
    if type_name in ("float", "double"):
        return "NaN" if value == NAN else repr(value[1])
    return str(value) if decimal_parts(type_name) else int(value)


def decode(type_name: str, value: Any) -> Any:
    """The comparable value that `encode` wrote."""
    if type_name == "string":
        return value.encode("utf-8")
    if type_name == "binary":
        return base64.b64decode(value)
    if type_name in ("float", "double"):
        return NAN if value == "NaN" else float_key(float(value))
    return Decimal(value) if decimal_parts(type_name) else int(value)


def encode_bound(types: Sequence[str], bound: Bound, upper: bool) -> tuple[Any, ...] | None:
    """The JSON form of a lower or upper bound; long strings are cut where that keeps it a bound, else None (unbounded)."""
    out: list[Any] = []
    for type_name, value in zip(types, bound):
        if isinstance(value, bytes) and len(value) > MAX_BOUND_BYTES:
            if upper:
                return tuple(out) or None
            cut = value[:MAX_BOUND_BYTES]
            out.append(encode(type_name, cut.decode("utf-8", "ignore").encode() if type_name == "string" else cut))
            return tuple(out)
        out.append(encode(type_name, value))
    return tuple(out)


def decode_bound(types: Sequence[str], bound: Sequence[Any] | None) -> Bound | None:
    return None if bound is None else tuple(decode(type_name, value) for type_name, value in zip(types, bound))


def slice_of(keys: Sequence[Any], width: int, low: Bound | None, high: Bound | None) -> tuple[int, int]:
    """The half-open range of the sorted `keys` that lies between both bounds, each included; None is unbounded.

    `keys` are tuples of `width` comparable values, or bare values where `width` is 1. A bound may be shorter than the key
    (a prefix): then every key that starts with it lies inside.
    """
    if width == 1:
        start = 0 if low is None else bisect_left(keys, low[0])
        stop = len(keys) if high is None else bisect_right(keys, high[0])
    else:
        start = 0 if low is None else bisect_left(keys, tuple(low))
        stop = len(keys) if high is None else bisect_right(_Prefixes(keys, len(high)), tuple(high))
    return start, max(start, stop)


class _Prefixes(Sequence[Any]):
    """The first `width` columns of each key, seen through the sorted sequence without copying it."""

    def __init__(self, keys: Sequence[Any], width: int) -> None:
        self._keys, self._width = keys, width

    def __len__(self) -> int:
        return len(self._keys)

    def __getitem__(self, index: Any) -> Any:
        return self._keys[index][: self._width]
