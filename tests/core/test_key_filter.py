"""Key filters as values: what an object of them says, whose filter it is, and when they are asked, made and put together."""

from __future__ import annotations

import itertools
from dataclasses import replace

import pytest

from glue_jobs.core.collation import collated, parse_collation
from glue_jobs.core.key_filter import (
    LEAST_BYTES,
    LEAST_FILES,
    MOST_ROWS_A_FILE,
    ROWS_A_CHANGE,
    SAMPLE,
    SAMPLED_BYTES,
    SMALL_BYTES,
    Entry,
    KeyFilter,
    Stored,
    decode,
    encode,
    evenly,
    first_asked,
    head_bytes,
    is_filter_name,
    may_pay,
    signature,
    to_absorb,
)
from glue_jobs.core.record import DataFile

SIGNED = signature(("id",), ("string",))
FILTERS = [KeyFilter("a=1/x.parquet", 10, 2, "e1", b"first"), KeyFilter("ü.parquet", 20, 3, "", b"second one")]


def test_what_is_written_is_read() -> None:
    """Each filter by its place, with the file that it is of."""
    data = encode(SIGNED, FILTERS)

    entries = decode(data[: head_bytes(data[:16])], SIGNED)

    assert [data[each.start : each.stop] for each in entries] == [b"first", b"second one"]
    assert [(each.path, each.size_bytes, each.rows, each.etag) for each in entries] == [
        (each.path, each.size_bytes, each.rows, each.etag) for each in FILTERS
    ]


@pytest.mark.parametrize("size", [0, 5, 15])
def test_what_is_too_short_is_no_object_of_filters(size: int) -> None:
    """Nor is what begins otherwise, or whose index is not whole."""
    data = encode(SIGNED, FILTERS)
    for wrong in (data[:size], b"x" + data[1:], data[: head_bytes(data) - 1], data[:16] + b"\0" + data[17:]):
        with pytest.raises(ValueError, match="key filters"):
            decode(wrong, SIGNED)


def test_filters_of_another_key_are_none() -> None:
    """Other columns, other types, another collation: another value is hashed, or in another form."""
    data = encode(SIGNED, FILTERS)
    others = [
        signature(("name",), ("string",)),
        signature(("id",), ("bigint",)),
        signature(("id", "part"), ("string", "int")),
        signature(collated(("id",), parse_collation("ci")), ("string",)),
        signature(collated(("id",), parse_collation("pad")), ("string",)),
    ]

    assert len({SIGNED, *others}) == 6
    assert [decode(data, other) for other in others] == [()] * 5
    assert len(decode(data, signature(("id",), ("string",)))) == 2


def test_a_filter_is_of_just_these_bytes() -> None:
    """The path with its size, rows and ETag; of a restored file it is the original's, whose ETag is another."""
    entry = Entry("old", 10, 2, "e1", 0, 5, 1)
    file = DataFile("old", 10, 2, "e1")

    assert entry.is_of(file)
    assert not any(entry.is_of(other) for other in (replace(file, etag="e2"), replace(file, rows=3), replace(file, size_bytes=9)))
    assert not entry.is_of(replace(file, path="new"))
    assert entry.is_of(replace(file, path="new", etag="e2", origin="old"))


def test_names() -> None:
    """Only what is named like ours is taken, or hidden with the table."""
    change = "0000000002-000001-1858ce37"
    assert is_filter_name(f"key_filters/{change}.keys")
    for other in (
        f"{change}.keys",
        f"key_filters/{change}.parquet",
        f"key_filters/x/{change}.keys",
        "key_filters/a.keys",
        "key_filters/.keys",
    ):
        assert not is_filter_name(other)


def files(count: int, size_bytes: int = 1, rows: int = 1) -> list[DataFile]:
    return [DataFile(f"{number}.parquet", size_bytes, rows) for number in range(count)]


def test_filters_are_asked_where_they_may_spare_something() -> None:
    """Of few and small candidates, or of more keys than leave a file without one, they can't."""
    assert may_pay(1, files(LEAST_FILES))
    assert may_pay(1, files(2, LEAST_BYTES // 2))
    assert not may_pay(1, files(LEAST_FILES - 1, (LEAST_BYTES - 1) // LEAST_FILES))
    assert not may_pay(1, files(1, LEAST_BYTES))
    assert may_pay(MOST_ROWS_A_FILE * 100, files(100))
    assert not may_pay(MOST_ROWS_A_FILE * 100 + 1, files(100))
    assert not may_pay(0, files(100))


def test_many_changes_of_many_more_rows_may_be_in_few_files() -> None:
    """Those of the newest rows are; whether these are such is seen by the first filters."""
    large = files(5, 2**27, 2_000_000)

    assert may_pay(10_000_000 // ROWS_A_CHANGE, large)
    assert not may_pay(10_000_000 // ROWS_A_CHANGE + 1, large)


@pytest.mark.parametrize(
    ("count", "length", "asked"),
    [
        (1000, 1000, 0),  # few bytes: all at once
        (700, 57_000, SAMPLE),
        (2 * SAMPLE, SAMPLED_BYTES, 2),
        (5, 8_000_000, 2),
        (4, 8_000_000, 0),
        (2, SAMPLED_BYTES, 0),
        (0, 0, 0),
    ],
)
def test_how_many_filters_are_looked_at_first(count: int, length: int, asked: int) -> None:
    """No more than tell, no more bytes than they are worth, and none where the rest is hardly more."""
    assert len(first_asked([length] * count)) == asked


@pytest.mark.parametrize("count", [0, 1, 31, 32, 33, 64, 1000])
def test_a_sample_is_spread_evenly(count: int) -> None:
    """Each place once, from the first on, as many as wanted."""
    found = evenly(count, 32)

    assert len(set(found)) == len(found) == min(count, 32)
    assert all(0 <= at < count for at in found)
    assert max((b - a for a, b in itertools.pairwise(found)), default=0) <= count // 32 + 1


def stored(key: str, *lengths: int) -> Stored:
    """An object whose filters have these lengths; those of an odd length are of files that are gone."""
    return Stored(key, sum(lengths) + 100, "", tuple(Entry(f"{key}{at}", 1, 1, "", 0, length, 0) for at, length in enumerate(lengths)))


def absorbed(objects: list[Stored], new_bytes: int, most_bytes: int = 10**9) -> str:
    found = to_absorb(objects, new_bytes, lambda entry: entry.length % 2 == 0, most_bytes)
    return "".join(sorted(each.key for each in found))


def test_objects_that_are_not_larger_than_the_next_go_into_it() -> None:
    """Small ones always, larger ones once as much has come together; what can't be read goes away."""
    large, small = stored("L", 10 * SMALL_BYTES), stored("s", 1000)

    assert absorbed([large, small], 10) == "s"
    assert absorbed([large, small], 11 * SMALL_BYTES) == "Ls"
    assert absorbed([stored("m", 4 * SMALL_BYTES), stored("n", 6 * SMALL_BYTES)], 5 * SMALL_BYTES) == "mn"
    assert absorbed([Stored("x", 10 * SMALL_BYTES, "")], 10) == "x"


def test_objects_that_are_mostly_of_files_that_are_gone_go_into_it() -> None:
    """With what is left of them."""
    half, less, none = (
        stored("h", 20 * SMALL_BYTES, 20 * SMALL_BYTES - 1),
        stored("l", 20 * SMALL_BYTES, 21 * SMALL_BYTES + 1),
        stored("n", 31),
    )

    assert absorbed([half, less, none], 10) == "ln"


def test_no_object_grows_beyond_what_is_held_in_memory() -> None:
    """Larger ones stay as they are."""
    objects = [stored("a", 400), stored("b", 500), stored("c", 600)]

    assert absorbed(objects, 100, most_bytes=1000) == "ab"
    assert absorbed(objects, 1000, most_bytes=1000) == ""
