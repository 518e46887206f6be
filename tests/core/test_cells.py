"""Values that a person gives, held against a lake type."""

from __future__ import annotations

from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from glue_jobs.core.cells import fit, shown

UTC = timezone.utc


@pytest.mark.parametrize(
    ("kind", "value", "expected"),
    [
        ("int", None, None),
        ("boolean", "True", True),
        ("tinyint", -128, -128),
        ("int", "7", 7),
        ("bigint", 3.0, 3),
        ("bigint", Decimal("9223372036854775807"), 2**63 - 1),
        ("decimal(5,2)", "12.3", Decimal("12.30")),
        ("decimal(5,2)", 12.3, Decimal("12.30")),
        ("decimal(5,2)", "1e2", Decimal("100.00")),
        ("decimal(38,0)", 10**38 - 1, Decimal(10**38 - 1)),
        ("double", "NaN", None),
        ("double", Decimal("0.1"), 0.1),
        ("float", 3, 3.0),
        ("float", 0.1, 0.1),
        ("float", 1 << 24, 2.0**24),
        ("float", 1e30, 1e30),
        ("float", Decimal("123456790"), 123456790.0),  # how 123456792 is written, with which it is the same float
        ("float", "3.4028235e38", 3.4028235e38),
        ("float", Decimal("4503599627370497.5"), 4503599627370496.0),
        ("float", float("-inf"), float("-inf")),
        ("double", "1e23", 1e23),
        ("double", 2**60, 2.0**60),
        ("string", "", ""),
        ("binary", "00ff", b"\x00\xff"),
        ("date", datetime(2024, 5, 1), date(2024, 5, 1)),
        ("date", "0001-01-01", date(1, 1, 1)),
        ("timestamp", "2024-05-01", datetime(2024, 5, 1, tzinfo=UTC)),
        ("timestamp", "2024-05-01T12:00:00.25+02:00", datetime(2024, 5, 1, 10, 0, 0, 250000, UTC)),
        ("timestamp", "2024-05-01 12:00 -0130", datetime(2024, 5, 1, 13, 30, tzinfo=UTC)),
        ("timestamp", datetime(2024, 5, 1, 12, tzinfo=timezone(timedelta(hours=1))), datetime(2024, 5, 1, 11, tzinfo=UTC)),
        ("timestamp", date(2024, 5, 1), datetime(2024, 5, 1, tzinfo=UTC)),
    ],
)
def test_a_value_that_fits(kind: str, value: Any, expected: Any) -> None:
    """As JSON, a CSV's text, pandas or Python have it."""
    found = fit(kind, value)

    assert (found, type(found)) == (expected, type(expected)) if value != "NaN" else found != found


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        ("boolean", 1), ("int", True), ("int", 1.5), ("int", ""), ("int", "1_000"), ("tinyint", 128), ("bigint", 2**63), ("int", [1]),
        ("bigint", Decimal("NaN")), ("bigint", float("inf")), ("decimal(5,2)", "1.234"), ("decimal(5,2)", 1000), ("decimal(5,2)", "x"),
        ("decimal(5,2)", "NaN"), ("decimal(5,2)", "9e999"), ("double", 2**63 + 1), ("double", "1e999"), ("float", 1e300), ("double", {}),
        ("double", 10**23), ("double", "9007199254740993"), ("double", Decimal("9007199254740993.0")), ("double", "1e-999"),
        ("float", 16777217), ("float", "16777217"), ("float", 16777217.0), ("float", 123456790), ("float", 1e-60), ("float", 10**400),
        ("string", 5), ("string", "\ud800"), ("binary", "0g"), ("binary", 5), ("date", "2024-02-30"), ("date", "1.5.2024"),
        ("date", datetime(2024, 5, 1, 1)), ("timestamp", "2024-05-01 25:00:00"), ("timestamp", 5),
        ("timestamp", "2024-05-01 12:00:00.1234567"), ("timestamp", "0001-01-01 00:00:00+01:00"),
        ("timestamp", "2024-05-01 12:00:00+24:00"), ("timestamp", "2024-05-01 12:00:00-01:60"),
    ],
)  # fmt: skip
def test_a_value_that_does_not_fit(kind: str, value: Any) -> None:
    """It is refused, never rounded or guessed."""
    with pytest.raises(ValueError):
        fit(kind, value)


@given(st.one_of(st.none(), st.integers(), st.text(), st.floats(), st.decimals(), st.dates(), st.datetimes(), st.lists(st.none())))
def test_any_value_fits_or_is_refused(value: Any) -> None:
    """Whatever the type: nothing but a ValueError; what fits, fits again as it is."""
    for kind in ("boolean", "int", "decimal(10,3)", "float", "double", "string", "binary", "date", "timestamp"):
        try:
            found = fit(kind, value)
        except ValueError:
            continue
        assert found != found or fit(kind, found) == found


def test_a_long_value_is_shortened() -> None:
    """A row of a megabyte is no error text."""
    assert shown("x" * 100) == "'" + "x" * 38 + "…"
    assert (shown(None), shown(Decimal("1.50"))) == ("null", "1.50")
