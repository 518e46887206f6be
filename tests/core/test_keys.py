"""Key values that compare as their types do, their JSON form, and the slice of keys between two bounds."""

from __future__ import annotations

import json
import math
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from glue_jobs.core.keys import MAX_BOUND_BYTES, NAN, decode, decode_bound, encode, encode_bound, float_key, slice_of

FLOATS = st.floats(allow_nan=True).map(float_key)
VALUES: dict[str, st.SearchStrategy[Any]] = {
    "boolean": st.integers(0, 1),
    "tinyint": st.integers(-(2**7), 2**7 - 1),
    "bigint": st.integers(-(2**63), 2**63 - 1),
    "float": FLOATS,
    "double": FLOATS,
    "string": st.text(st.characters(exclude_categories=["Cs"])).map(str.encode),
    "binary": st.binary(),
    "date": st.integers(-719162, 2932896),
    "timestamp": st.integers(-62135596800000000, 253402300799999999),
    "decimal(38,10)": st.decimals(allow_nan=False, allow_infinity=False, places=10, min_value=-(10**27), max_value=10**27),
}
TYPED = st.sampled_from(sorted(VALUES)).flatmap(lambda name: st.tuples(st.just(name), VALUES[name]))
COLUMNS = st.lists(st.sampled_from(sorted(VALUES)), min_size=1, max_size=3).flatmap(
    lambda types: st.tuples(st.just(types), st.tuples(*(VALUES[name] for name in types)))
)


@given(TYPED)
def test_a_value_comes_back_from_its_json(typed: tuple[str, Any]) -> None:
    """Through real JSON text, as a change record holds it."""
    name, value = typed

    assert decode(name, json.loads(json.dumps(encode(name, value)))) == value


def test_floats_compare_as_keys() -> None:
    """NaN is the greatest and equals itself; −0.0 is 0.0."""
    values = [-math.inf, -1.5, -0.0, 5e-324, math.inf, math.nan]

    keys = [float_key(value) for value in values]

    assert keys == sorted(keys)
    assert (float_key(math.nan), float_key(-0.0)) == (NAN, float_key(0.0))
    assert math.copysign(1, float_key(-0.0)[1]) == 1


def test_strings_compare_by_their_utf8_bytes() -> None:
    """Python compares code points, which is the same; UTF-16 (Java's order) is not."""
    values = ["Z", "a", "é", "￿", "\U0001f600"]

    assert sorted(value.encode() for value in values) == [value.encode() for value in values]


def test_decimals_compare_as_numbers() -> None:
    """Not as texts: 9 < 10, and 1E+1 is 10."""
    low, high = (decode("decimal(10,2)", text) for text in ("9", "1E+1"))

    assert (low < high, high) == (True, Decimal(10))


def test_a_bound_of_short_values_is_kept_whole() -> None:
    """Each in the form of its column's type."""
    types, bound = ("string", "bigint", "decimal(5,1)"), ("né".encode(), 7, Decimal("1.5"))

    encoded = encode_bound(types, bound, upper=True)

    assert (encoded, decode_bound(types, encoded)) == (("né", 7, "1.5"), bound)


@pytest.mark.parametrize("upper", [False, True])
def test_no_bound_stays_no_bound(upper: bool) -> None:
    """None is 'unbounded', for a file without known range."""
    assert decode_bound(("int",), None) is None


LONG = st.builds(lambda head, tail: (head + tail * 200).encode(), st.text("ab€😀", max_size=4), st.text("ab€😀", min_size=3, max_size=4))


@given(st.lists(LONG | st.binary(max_size=3).map(lambda data: data.hex().encode()), min_size=2, max_size=2), st.integers(0, 3))
def test_a_cut_bound_is_still_a_bound(values: list[bytes], number: int) -> None:
    """A long string is cut below for the lower bound, and leaves the upper one open from there on."""
    types, key = ("string", "string", "bigint"), (*values, number)

    low = decode_bound(types, encode_bound(types, key, upper=False))
    high = decode_bound(types, encode_bound(types, key, upper=True))

    assert low is not None
    assert low <= key
    assert high is None or key[: len(high)] <= high
    assert all(len(value) <= MAX_BOUND_BYTES for value in (*low, *(high or ())) if isinstance(value, bytes))
    assert slice_of([key], 3, low, high) == (0, 1)


@given(st.binary(min_size=MAX_BOUND_BYTES + 1, max_size=MAX_BOUND_BYTES + 9))
def test_long_binary_is_cut_too(value: bytes) -> None:
    """At the byte, because it has no characters."""
    low = decode_bound(("binary",), encode_bound(("binary",), (value,), upper=False))

    assert (low, encode_bound(("binary",), (value,), upper=True)) == ((value[:MAX_BOUND_BYTES],), None)


SMALL = st.integers(0, 4)


@given(keys=st.lists(SMALL).map(sorted), low=st.none() | SMALL, high=st.none() | SMALL)
def test_a_slice_of_single_keys_is_what_brute_force_finds(keys: list[int], low: int | None, high: int | None) -> None:
    """Both bounds included; None is unbounded."""
    start, stop = slice_of(keys, 1, None if low is None else (low,), None if high is None else (high,))

    wanted = [key for key in keys if (low is None or key >= low) and (high is None or key <= high)]

    assert (keys[start:stop], start <= stop) == (wanted, True)


@given(
    keys=st.lists(st.tuples(SMALL, SMALL, SMALL)).map(sorted),
    low=st.none() | st.lists(SMALL, min_size=1, max_size=3).map(tuple),
    high=st.none() | st.lists(SMALL, min_size=1, max_size=3).map(tuple),
)
def test_a_slice_of_composite_keys_is_what_brute_force_finds(
    keys: list[tuple[int, int, int]], low: tuple[int, ...] | None, high: tuple[int, ...] | None
) -> None:
    """A bound shorter than the key takes in every key that begins with it."""
    start, stop = slice_of(keys, 3, low, high)

    wanted = [key for key in keys if (low is None or key[: len(low)] >= low) and (high is None or key[: len(high)] <= high)]

    assert (keys[start:stop], start <= stop) == (wanted, True)


@given(COLUMNS)
def test_a_key_lies_between_its_own_bounds(columns: tuple[list[str], tuple[Any, ...]]) -> None:
    """For every type and combination: a file's only key is found in the file's range."""
    types, key = columns
    low = decode_bound(types, encode_bound(types, key, upper=False))
    high = decode_bound(types, encode_bound(types, key, upper=True))

    keys = [key[0]] if len(types) == 1 else [key]

    assert slice_of(keys, len(types), low, high) == (0, 1)
