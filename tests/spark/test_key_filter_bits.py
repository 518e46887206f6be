"""The bits of key filters: a key that is there is always found, one that is not hardly ever, whatever keys look like."""

from __future__ import annotations

import datetime as dt
import hashlib
import uuid
from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from glue_jobs.core.collation import collated, parse_collation
from glue_jobs.core.schema import Column
from glue_jobs.spark.key_filter_bits import hashes_of, may_hold, packed, sections_of
from glue_jobs.spark.place import Shape

EPOCH = dt.datetime(1970, 1, 1)
VALUES: dict[str, tuple[pa.DataType, st.SearchStrategy[Any]]] = {
    "boolean": (pa.bool_(), st.booleans()),
    "tinyint": (pa.int8(), st.integers(-128, 127)),
    "smallint": (pa.int16(), st.integers(-(2**15), 2**15 - 1)),
    "int": (pa.int32(), st.integers(-(2**31), 2**31 - 1)),
    "bigint": (pa.int64(), st.integers(-(2**63), 2**63 - 1)),
    "float": (pa.float32(), st.floats(width=32)),
    "double": (pa.float64(), st.floats()),
    "decimal(20,3)": (pa.decimal128(20, 3), st.integers(-(10**20) + 1, 10**20 - 1).map(lambda value: Decimal(value).scaleb(-3))),
    "date": (pa.date32(), st.dates()),
    "timestamp": (pa.timestamp("us"), st.datetimes()),
    "string": (pa.string(), st.text(max_size=40)),
    "binary": (pa.binary(), st.binary(max_size=40)),
}


def shape_of(types: Sequence[str], words: str = "") -> Shape:
    names = [f"k{at}" for at in range(len(types))]
    schema = tuple(Column(name, kind) for name, kind in zip(names, types, strict=True))
    return Shape("t", schema, collated(names, parse_collation(words)))


def table_of(shape: Shape, rows: Sequence[Sequence[Any]]) -> pa.Table:
    columns = [pa.array([row[at] for row in rows], VALUES[column.type][0]) for at, column in enumerate(shape.schema)]
    return pa.table(columns, names=[column.name for column in shape.schema])


def filter_of(shape: Shape, table: pa.Table) -> bytes:
    data = packed([hashes_of(table, shape)])
    assert data is not None
    return data


@st.composite
def keyed_rows(draw: st.DrawFn) -> tuple[Shape, list[tuple[Any, ...]]]:
    types = draw(st.lists(st.sampled_from(sorted(VALUES)), min_size=1, max_size=3))
    rows = draw(st.lists(st.tuples(*(VALUES[kind][1] for kind in types)), min_size=1, max_size=60))
    return shape_of(types), rows


@given(keyed_rows(), st.randoms(use_true_random=False), st.integers(0, 59))
def test_a_key_that_is_there_is_found(given: tuple[Shape, list[tuple[Any, ...]]], random: Any, start: int) -> None:
    """Of each type and of several columns, alone or among others, from arrays that begin elsewhere and come in pieces."""
    shape, rows = given
    data = filter_of(shape, table_of(shape, rows))
    random.shuffle(rows)
    again = table_of(shape, rows)

    assert all(may_hold(data, hashes_of(again.slice(at, 1), shape)) for at in range(len(rows)))
    pieces = pa.concat_tables([again.slice(start), again.slice(0, start)])
    assert sorted(hashes_of(pieces, shape)) == sorted(hashes_of(again, shape))


@pytest.mark.parametrize("kind", ["float", "double"])
def test_floats_that_are_one_key_are_found(kind: str) -> None:
    """One zero, one NaN."""
    shape = shape_of([kind])
    data = filter_of(shape, table_of(shape, [(-0.0,), (float("nan"),)]))

    assert may_hold(data, hashes_of(table_of(shape, [(0.0,)]), shape))
    assert may_hold(data, hashes_of(table_of(shape, [(-float("nan"),)]), shape))


def test_texts_that_are_one_key_by_their_collation_are_found() -> None:
    """Capital letters, accents and blanks at the end; without the collation they are others."""
    shape, exact = shape_of(["string", "bigint"], "ci,ai,pad"), shape_of(["string", "bigint"])
    there, asked = table_of(shape, [("Café", 1), ("straße", 2)]), table_of(shape, [("CAFE  ", 1)])

    assert may_hold(filter_of(shape, there), hashes_of(asked, shape))
    assert not may_hold(filter_of(exact, there), hashes_of(asked, exact))


def test_rows_without_a_key_do_no_harm() -> None:
    """A null is in no key; the others are found."""
    shape = shape_of(["bigint", "string"])
    rows = [(1, "a"), (None, "b"), (3, None), (4, "d")]
    data = filter_of(shape, table_of(shape, rows))

    assert all(may_hold(data, hashes_of(table_of(shape, [row]), shape)) for row in rows if None not in row)
    every = pa.table({"k0": pa.nulls(3, pa.int64()), "k1": pa.nulls(3, pa.string())})
    assert len(hashes_of(every, shape)) == 3


def uuids(rng: np.random.Generator, count: int) -> list[str]:
    return [str(uuid.UUID(bytes=rng.bytes(16))) for _ in range(count)]


SHAPES: dict[str, Callable[[np.random.Generator, int, int], list[Any]]] = {
    "numbers that follow each other": lambda rng, at, count: list(range(at, at + count)),
    "numbers a million apart": lambda rng, at, count: list(range(at * 1_000_000, (at + count) * 1_000_000, 1_000_000)),
    "random texts": lambda rng, at, count: uuids(rng, count),
    "a long beginning": lambda rng, at, count: [f"{'https://shop.example/orders/' * 4}{number}" for number in range(at, at + count)],
    "digits with zeros": lambda rng, at, count: [f"{number:020d}" for number in range(at, at + count)],
    "one letter at a place": lambda rng, at, count: [
        f"{'x' * (number % 97)}{chr(97 + number % 26)}{number}" for number in range(at, at + count)
    ],
}


@pytest.mark.parametrize("name", SHAPES)
def test_keys_that_are_not_there_are_hardly_ever_found(name: str) -> None:
    """As seldom as if hashes were random: of 30,000 others, of whose hashes 28 bits are compared with those of 20,000, about two."""
    rng = np.random.default_rng(5)
    there, others = SHAPES[name](rng, 1000, 20_000), SHAPES[name](rng, 100_000, 30_000)
    shape = shape_of(["string" if isinstance(there[0], str) else "bigint"])
    data = filter_of(shape, table_of(shape, [(value,) for value in there]))
    hashes = hashes_of(table_of(shape, [(value,) for value in others]), shape)

    assert len(np.unique(hashes)) == len(others)
    assert np.isin(hashes >> np.uint64(36), hashes_of(table_of(shape, [(value,) for value in there]), shape) >> np.uint64(36)).sum() < 15
    assert not may_hold(data, hashes[:10]), "of all 38 bits"
    assert 3.5 * len(there) < len(data) < 4 * len(there) + 4, "about four bytes a key"


def test_the_hashes_are_those_of_older_programs() -> None:
    """Filters outlive the program that wrote them: another hash needs another number in core.key_filter.HASHES."""
    shape = shape_of(["bigint", "string", "decimal(20,3)", "date", "double", "boolean"])
    row = (7, "a text of more than eight bytes", Decimal("1.500"), dt.date(2024, 5, 1), 0.5, True)

    assert [f"{value:016x}" for value in hashes_of(table_of(shape, [row]), shape)] == ["96b1f72f1a205f8f"]


def test_filters_are_packed_as_ever() -> None:
    """Those of older batches are asked by later programs."""
    parts = [np.arange(part, 1000, 3, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15) for part in range(3)]
    whole = [np.concatenate(parts)]
    data = packed(parts)

    assert data is not None
    assert parts == [], "what is not needed any more is not held"
    assert hashlib.sha256(data).hexdigest()[:16] == "3bbcb9206f70a8bb"
    assert packed(whole) == data


def test_many_equal_hashes_make_no_filter() -> None:
    """Keys that differ only far behind can't be told apart: no filter is better than a large one."""
    shape = shape_of(["string"])
    table = table_of(shape, [("x" * 1024 + str(number),) for number in range(10_000, 10_300)])

    assert packed([hashes_of(table, shape)]) is None


@pytest.mark.parametrize("count", [0, 1, 2, 3, 255, 256, 257])
def test_any_number_of_keys(count: int) -> None:
    """Also none: then nothing is found."""
    shape = shape_of(["bigint"])
    table = table_of(shape, [(number,) for number in range(count)])
    data = packed([hashes_of(table, shape)])

    assert data is not None
    assert all(may_hold(data, hashes_of(table.slice(at, 1), shape)) for at in range(count))
    assert not may_hold(data, hashes_of(table_of(shape, [(-5,)]), shape))


def test_sections_have_the_keys_of_the_rows_of_their_row_groups() -> None:
    """However the hashes came."""
    hashes = np.arange(300_000, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    parts = [hashes[:1], hashes[1:150_000], hashes[150_000:150_000], hashes[150_000:299_999], hashes[299_999:]]

    found = sections_of(parts, [100_000, 50_000, 60_000, 90_000])

    assert found is not None
    assert parts == [], "what is not needed any more is not held"
    assert [each.rows for each in found] == [100_000, 110_000, 90_000]
    assert [each.data for each in found] == [packed([part]) for part in (hashes[:100_000], hashes[100_000:210_000], hashes[210_000:])]


def test_hashes_of_other_rows_than_those_of_the_file_make_no_filter() -> None:
    """It would lack a key, and a change would be lost."""
    hashes = np.arange(100, dtype=np.uint64)

    assert [sections_of([hashes], groups) for groups in ([99], [101], [], [50, 49])] == [None] * 4
    assert sections_of([], []) is None
    assert sections_of([np.zeros(300, np.uint64)], [300]) is None, "too many that are one"
