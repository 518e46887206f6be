"""Keys among values of another type: what is the same, and what is not."""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from glue_jobs.spark.locate import GivenKeys
from glue_jobs.spark.retyped import places_of_retyped

MOMENT = pa.timestamp("us", "UTC")
DAY = date(2024, 5, 1)


def places(kind: pa.DataType, keys: list[Any], values: pa.Array) -> list[int] | None:
    found = places_of_retyped(GivenKeys.of(pa.table({"k": pa.array(keys, kind)}), ["k"]), [values])
    return None if found is None else list(found)


@pytest.mark.parametrize(
    ("kind", "keys", "values", "expected"),
    [
        (pa.string(), ["1.50", "x"], pa.array([Decimal("1.5"), None, Decimal(2)], pa.decimal128(12, 2)), [0, -1, -1]),
        (pa.decimal128(12, 2), [Decimal("1.5")], pa.array(["1.50", "1.500", "x", "1.505", None]), [0, 0, -1, -1, -1]),
        (pa.int64(), [5], pa.array(["5.0", "05", "x", "9" * 20, "1e999999999"]), [0, 0, -1, -1, -1]),
        (pa.int64(), [1000], pa.array(["1_000", " 1000", "١٠٠٠", "1000"]), [-1, -1, -1, 0]),
        (pa.float64(), [float("inf")], pa.array(["1e999", "inf"]), [-1, 0]),
        (pa.int64(), [5], pa.array([5.0, 5.5, float("nan")]), [0, -1, -1]),
        (pa.string(), ["2024-05-01", "q"], pa.array([DAY, date(1, 1, 1)]), [0, -1]),
        (pa.date32(), [DAY], pa.array(["x", "2024-05-01"]), [-1, 0]),
        (pa.date32(), [DAY], pa.array([datetime(2024, 5, 1), datetime(2024, 5, 1, 1)], MOMENT), [0, -1]),
        (MOMENT, [datetime(2024, 5, 1)], pa.array([DAY, None]), [0, -1]),
        (MOMENT, [datetime(2024, 5, 1, 12, 30)], pa.array(["2024-05-01 12:30:00", "x"]), [0, -1]),
        (pa.string(), ["true"], pa.array([True, False, None]), [0, -1, -1]),
        (pa.bool_(), [True], pa.array([1, 0, 2]), [0, -1, -1]),
        (pa.binary(), [b"ab"], pa.array(["ab", "b"]), [0, -1]),
        (pa.date32(), [DAY], pa.array([19844]), None),
        (pa.int64(), [5], pa.array([[5]]), None),
    ],
    ids=str,
)
def test_values_of_another_type(kind: pa.DataType, keys: list[Any], values: pa.Array, expected: list[int] | None) -> None:
    """Turned either way, or the same number or text; a day's number is no day, and nothing is guessed."""
    assert places(kind, keys, values) == expected


def test_a_key_of_two_columns_of_other_types() -> None:
    """Both must be the same, each in its own way."""
    keys = GivenKeys.of(pa.table({"a": ["5", "6"], "b": [1, 1]}), ["a", "b"])

    found = places_of_retyped(keys, [pa.array([6, 5, 5]), pa.array(["1", "1", "2"])])

    assert found is not None
    assert np.array_equal(found, [1, 0, -1])
