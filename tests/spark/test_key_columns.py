"""Keys compared by Arrow are ordered, bounded and found as plain Python would."""

from __future__ import annotations

import math
from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import given, settings

from glue_jobs.core.keys import decode_bound, slice_of
from glue_jobs.core.schema import Column, names
from glue_jobs.spark import key_columns
from glue_jobs.spark.key_columns import bounds, comparables, encoded_bounds, normalised_keys, sort_by_key, take
from glue_jobs.spark.key_index import KeyIndex
from tests.spark.lake_values import plain_key, rows_of, table_of

PROPERTY = settings(deadline=None, max_examples=150)
NAN = float("nan")


@PROPERTY
@given(rows_of())
def test_bounds_are_the_least_and_greatest_tuples(drawn) -> None:
    """Bounds equal min and max of the keys as Python tuples, whatever the order of the rows."""
    schema, rows = drawn
    keys = [plain_key(row) for row in rows]

    found = bounds(table_of(schema, rows), names(schema))

    assert found == ((min(keys), max(keys)) if keys else None)


@PROPERTY
@given(rows_of())
def test_sorting_is_by_value_and_keeps_equal_keys_in_order(drawn) -> None:
    """Rows come in the order of Python's stable sort by comparable key."""
    schema, rows = drawn
    table = table_of(schema, rows).append_column("at", pa.array(range(len(rows)), pa.int64()))

    at = sort_by_key(table, names(schema))["at"].to_pylist()

    assert at == sorted(range(len(rows)), key=lambda place: plain_key(rows[place]))


@PROPERTY
@given(rows_of())
def test_the_keys_of_a_file_lie_in_the_slice_of_its_bounds(drawn) -> None:
    """slice_of over the sorted net keys, given a file's recorded bounds, takes in every key between them and no other."""
    schema, rows = drawn
    key, types = names(schema), [column.type for column in schema]
    table = sort_by_key(table_of(schema, rows), key)
    file = table.slice(len(rows) // 3, max(1, len(rows) // 2)) if rows else table

    low, high = encoded_bounds(file, key, types)
    start, stop = slice_of(comparables(table, key), len(key), decode_bound(types, low), decode_bound(types, high))

    everything = sorted(plain_key(row) for row in rows)
    inside = [value for value in everything if file.num_rows and bounds(file, key)[0] <= value <= bounds(file, key)[1]]
    assert everything[start:stop] == (inside if rows else [])


def test_a_long_text_is_recorded_as_a_shorter_bound() -> None:
    """The record's bounds stay short, and still hold the keys between them."""
    rows = [("é" * 300,), ("é" * 300 + "z",)]
    schema = (Column("k", "string"),)

    low, high = encoded_bounds(table_of(schema, rows), ["k"], ["string"])

    assert low is not None
    assert len(low[0].encode()) <= 256
    assert rows[0][0].startswith(low[0])
    assert high is None


def test_one_zero_and_one_nan() -> None:
    """−0.0 and 0.0 are one key, all NaNs are one key and the greatest."""
    other_nan = pa.Array.from_buffers(pa.float64(), 1, [None, pa.py_buffer(b"\x01\x00\x00\x00\x00\x00\xf8\xff")])
    table = pa.table({"k": pa.chunked_array([pa.array([NAN, -0.0, math.inf]), other_nan, pa.array([0.0])])})

    found = KeyIndex(pa.table({"k": [0.0, NAN]}), ["k"]).positions(table)

    assert found.to_pylist() == [1, 0, None, 1, 0]
    assert bounds(table, ["k"]) == (((0, 0.0),), ((1, 0.0),))
    assert normalised_keys(table, ["k"]).group_by("k").aggregate([]).num_rows == 3


def test_sorting_leaves_values_alone() -> None:
    """−0.0 is compared as 0.0 but stays −0.0 in the row."""
    table = sort_by_key(pa.table({"k": [1.0, -0.0]}), ["k"])

    assert math.copysign(1, table["k"][0].as_py()) == -1


def test_strings_are_ordered_by_their_bytes() -> None:
    """Not by UTF-16 units as in Java: an emoji comes behind the private use area."""
    table = sort_by_key(pa.table({"k": ["😀", "\ue000", "Z", "a"]}), ["k"])

    assert table["k"].to_pylist() == ["Z", "a", "\ue000", "😀"]
    assert list(comparables(table, ["k"])) == [text.encode() for text in table["k"].to_pylist()]


def test_decimals_are_ordered_as_numbers() -> None:
    """−10 comes before −9, 10 behind 9."""
    numbers = [Decimal(text) for text in ("10.00", "-9.00", "9.00", "-10.00")]
    table = sort_by_key(pa.table({"k": pa.array(numbers, pa.decimal128(38, 2))}), ["k"])

    assert table["k"].to_pylist() == sorted(numbers)


@pytest.mark.parametrize("gather_bytes", [1, 100, 1 << 30])
def test_rows_are_gathered_alike_in_one_piece_and_in_many(monkeypatch: pytest.MonkeyPatch, gather_bytes: int) -> None:
    """Columns too large for one Arrow array are gathered in pieces, with the same rows and types."""
    table = pa.table({"text": [f"row {row}" for row in range(50)], "raw": [bytes([row]) for row in range(50)], "n": list(range(50))})
    indices = pa.array([49, 0, 7, 7, 20])
    monkeypatch.setattr(key_columns, "GATHER_BYTES", gather_bytes)

    found = take(table, indices)

    assert found.schema == table.schema
    assert found.equals(table.take(indices))
    assert take(table, indices.slice(0, 0)).num_rows == 0
