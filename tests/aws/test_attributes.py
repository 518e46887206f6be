"""DynamoDB's values as Python values and back."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from glue_jobs.aws.attributes import plain, plain_item, typed, typed_item

NUMBERS = st.one_of(
    st.integers(-(10**37), 10**37),
    st.floats(allow_nan=False, allow_infinity=False, min_value=-1e36, max_value=1e36),
)
TEXTS = st.text(max_size=8)
VALUES = st.recursive(
    st.one_of(st.none(), st.booleans(), TEXTS, NUMBERS, st.binary(max_size=8)),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(TEXTS, inner, max_size=3)),
    max_leaves=8,
)


@given(st.dictionaries(TEXTS, VALUES, max_size=4))
def test_what_is_written_is_read(item: dict[str, Any]) -> None:
    """All plain values, nested too."""
    assert plain_item(typed_item(item)) == item


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ({"N": "12"}, 12),
        ({"N": "12.0"}, 12),
        ({"N": "1E+3"}, 1000),
        ({"N": "0.1"}, 0.1),
        ({"N": "0.12345678901234567890123"}, Decimal("0.12345678901234567890123")),
        ({"SS": ["a", "b"]}, ("a", "b")),
        ({"NS": ["1", "2.5"]}, (1, 2.5)),
        ({"BS": [b"x"]}, (b"x",)),
        ({"NULL": True}, None),
        ({"BOOL": False}, False),
    ],
)
def test_a_value_of_dynamodb_is_plain(value: dict[str, Any], expected: Any) -> None:
    """Whole numbers are int, sets are tuples, and no digit is lost."""
    assert (plain(value), type(plain(value))) == (expected, type(expected))


@pytest.mark.parametrize("value", [{"SS": ["a", "b"]}, {"NS": ["1", "2.5"]}, {"BS": [b"x"]}, {"N": "0.12345678901234567890123"}])
def test_a_value_that_was_read_is_written_as_it_was(value: dict[str, Any]) -> None:
    """A condition 'as read' has to hold for what a person wrote."""
    assert typed(plain(value)) == value


def test_a_number_of_more_digits_than_dynamodb_keeps_is_written_short() -> None:
    """A float of that size has none to lose."""
    assert typed(1e90) == {"N": "1e+90"}


def test_true_is_no_number() -> None:
    """Python's bool is an int."""
    assert typed(True) == {"BOOL": True}


@pytest.mark.parametrize("value", [object(), (), set()])
def test_what_dynamodb_can_not_hold_is_refused(value: Any) -> None:
    """Also an empty set."""
    with pytest.raises(TypeError, match="no DynamoDB type"):
        typed(value)


def test_an_unknown_type_is_refused() -> None:
    """Rather than read as something else."""
    with pytest.raises(ValueError, match="'X'"):
        plain({"X": "?"})
