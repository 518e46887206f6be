"""Hashes of rows: equal for rows that are equal, and checksums that no order changes."""

from __future__ import annotations

from datetime import datetime, timezone
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from glue_jobs.spark.row_hashes import Checksum, checksum, row_hashes

NAN = float("nan")
ROWS = st.lists(st.tuples(st.one_of(st.none(), st.integers(-5, 5)), st.one_of(st.none(), st.sampled_from(["", "a", "ab", "b"]))))


def rows_of(rows: list[Any]) -> pa.Table:
    return pa.table({"n": pa.array([row[0] for row in rows], pa.int32()), "t": pa.array([row[1] for row in rows], pa.string())})


@given(ROWS, ROWS)
def test_hashes_are_equal_where_rows_are(one: list[Any], other: list[Any]) -> None:
    """Null is itself and nothing else, an empty text too."""
    hashes = row_hashes(rows_of(one + other)).tolist()

    for mine, row in zip(hashes, one + other, strict=True):
        assert [mine == its for its in hashes] == [row == there for there in one + other]


@given(ROWS, st.randoms())
def test_no_order_and_no_cut_changes_a_checksum(rows: list[Any], chance: Any) -> None:
    """So that files of any layout can be compared."""
    mixed = rows[:]
    chance.shuffle(mixed)
    middle = chance.randint(0, len(rows))

    assert checksum([rows_of(rows)]) == checksum([rows_of(mixed[:middle]), rows_of(mixed[middle:])])
    assert checksum([rows_of([*rows, (7, "x")])]) != checksum([rows_of(rows)])
    assert checksum([]) == Checksum()


@pytest.mark.parametrize(
    ("kind", "wider", "values"),
    [
        (pa.int8(), pa.int64(), [1, -1, None]),
        (pa.float32(), pa.float64(), [1.5, NAN, None]),
        (pa.decimal128(5, 2), pa.decimal128(30, 2), [Decimal("1.50"), Decimal("-0.01"), None]),
    ],
)
def test_a_type_that_grew_keeps_its_hashes(kind: pa.DataType, wider: pa.DataType, values: list[Any]) -> None:
    """A part of the keys is the same part afterwards."""
    rows = pa.table({"v": pa.array(values, kind)})

    assert np.array_equal(row_hashes(rows), row_hashes(rows.cast(pa.schema([("v", wider)]))))


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        (pa.bool_(), [True, False, None]),
        (pa.date32(), [0, 1, None]),
        (pa.timestamp("us", "UTC"), [datetime(1, 1, 1, tzinfo=timezone.utc), datetime(2024, 5, 1, tzinfo=timezone.utc), None]),
        (pa.binary(), [b"", b"\0", None]),
        (pa.float64(), [0.0, NAN, None]),
        (pa.decimal128(20, 0), [Decimal(0), Decimal(2**64 - 1), None]),
    ],
)
def test_every_type_of_the_lake_has_hashes(kind: pa.DataType, values: list[Any]) -> None:
    """Different values, different hashes; also in a slice."""
    rows = pa.table({"v": pa.array(values, kind)})
    hashes = row_hashes(rows)

    assert len(set(hashes.tolist())) == len(values)
    assert row_hashes(rows.slice(1)).tolist() == hashes.tolist()[1:]


def test_one_zero_and_one_nan() -> None:
    """As rows are compared everywhere."""
    hashes = row_hashes(pa.table({"v": pa.array([0.0, -0.0, NAN, -NAN])})).tolist()

    assert (hashes[0] == hashes[1], hashes[2] == hashes[3]) == (True, True)
