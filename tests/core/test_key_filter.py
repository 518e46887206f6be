"""Key filters as values: what an object of them says, whose filter it is, and when they are asked, made and put together."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from glue_jobs.core.collation import collated, parse_collation
from glue_jobs.core.key_filter import (
    LEAST_BYTES,
    LEAST_FILES,
    MOST_ROWS_A_FILE,
    ROWS_A_CHANGE,
    SAMPLE,
    SAMPLED_BYTES,
    SMALL_BYTES,
    Answer,
    Entry,
    KeyFilter,
    Section,
    Span,
    Stored,
    decode,
    encode,
    evenly,
    first_asked,
    head_bytes,
    is_filter_name,
    may_pay,
    section_rows,
    signature,
    to_absorb,
)
from glue_jobs.core.record import DataFile

SIGNED = signature(("id",), ("string",))
FILTERS = [
    KeyFilter("a=1/x.parquet", 10, 2, "e1", (Section(2, b"first"),)),
    KeyFilter("ü.parquet", 20, 3, "", (Section(1, b"second"), Section(2, b" one"))),
]


def test_what_is_written_is_read() -> None:
    """Each filter by its place, with the file that it is of, and its sections."""
    data = encode(SIGNED, FILTERS)

    entries = decode(data[: head_bytes(data[:16])], SIGNED)

    assert [data[each.start : each.stop] for each in entries] == [b"first", b"second one"]
    assert [(each.path, each.size_bytes, each.rows, each.etag) for each in entries] == [
        (each.path, each.size_bytes, each.rows, each.etag) for each in FILTERS
    ]
    assert [tuple(span.section(data[span.start : span.stop]) for span in each.spans) for each in entries] == [
        each.sections for each in FILTERS
    ]
    assert [each.length for each in entries] == [each.length for each in FILTERS]


def test_a_section_that_is_not_what_was_written_is_none() -> None:
    """Whether a byte is another one or is missing."""
    data = encode(SIGNED, FILTERS)
    span = decode(data, SIGNED)[1].spans[1]

    assert span.section(b" one") == Section(2, b" one")
    assert [span.section(wrong) for wrong in (b" onE", b" on", b" one ", b"")] == [None] * 4


@pytest.mark.parametrize("sections", [(), (Section(2, b"x"), Section(2, b"y"))])
def test_sections_of_other_rows_than_the_files_are_not_taken(sections: tuple[Section, ...]) -> None:
    """Keys of some would be missing, and a change lost."""
    with pytest.raises(ValueError, match=r"not of the 3 rows of f\.parquet"):
        decode(encode(SIGNED, [KeyFilter("f.parquet", 10, 3, "", sections)]), SIGNED)


def answer(*sections: tuple[int, bool]) -> Answer:
    """Of a filter with sections of so many rows, which may hold a key or not."""
    return Answer("o", "e", tuple(Span(rows, 0, 0, 0) for rows, _ in sections), tuple(holds for _, holds in sections))


@pytest.mark.parametrize(
    ("sections", "groups", "told"),
    [
        ([(10, True), (10, False), (5, True)], [10, 10, 5], [True, False, True]),
        ([(20, True), (5, False)], [10, 10, 5], [None, None, False]),
        ([(20, False), (5, True)], [10, 10, 5], [False, False, True]),
        ([(4, True), (6, False), (15, False)], [10, 10, 5], [True, False, False]),
        ([(4, False), (8, True), (13, False)], [10, 10, 5], [None, None, False]),
        ([(4, True), (8, True), (13, False)], [10, 10, 5], [True, None, False]),
        ([(10, True), (15, False)], [10, 0, 15], [True, False, False]),
        ([(25, True)], [10, 0, 15], [None, False, None]),
        ([(25, True)], [], []),
    ],
)
def test_what_sections_say_of_row_groups(sections: list[tuple[int, bool]], groups: list[int], told: list[bool | None]) -> None:
    """One whose rows are in no section that may hold a key holds none; one that has all rows of such a section holds one."""
    assert answer(*sections).of_groups(groups) == tuple(told)


@given(st.lists(st.integers(0, 4), max_size=8), st.integers(0, 40), st.randoms(use_true_random=False))
def test_no_row_group_with_a_key_is_told_to_hold_none(groups: list[int], row: int, choose: Any) -> None:
    """However rows are cut, and wherever the row with the key is."""
    total = sum(groups)
    cuts = sorted({0, total, *(choose.randint(0, total) for _ in range(choose.randint(0, 5)))})
    sections = [(stop - start, start <= row < stop) for start, stop in itertools.pairwise(cuts)]
    ends = list(itertools.accumulate(groups))

    told = answer(*sections).of_groups(groups)

    for holds, start, stop in zip(told, [0, *ends][: len(ends)], ends, strict=True):
        is_there = start <= row < stop
        assert holds is not False if is_there else holds is not True
    assert len(told) == len(groups)


def test_a_section_is_that_of_a_row_group_only_if_it_has_just_its_rows() -> None:
    """Else what is kept for the copy of the group would have keys of other rows, or not all of its own."""
    said = answer((10, False), (10, True), (4, False), (6, False))

    found = [said.span_of([10, 6, 4, 10], number) for number in range(4)]

    assert found == [said.spans[0], None, None, None]
    assert [said.span_of([10, 10, 10], number) for number in range(3)] == [said.spans[0], said.spans[1], None]


@pytest.mark.parametrize(
    ("groups", "sections"),
    [
        ([], []),
        ([1], [1]),
        ([500_000, 65_536, 65_535], [500_000, 65_536, 65_535]),
        ([30_000, 30_000, 30_000, 500_000, 1], [90_000, 500_000, 1]),
        ([60_000, 500_000, 60_000], [560_000, 60_000]),
        ([0, 0], []),
    ],
)
def test_row_groups_of_few_rows_share_a_section(groups: list[int], sections: list[int]) -> None:
    """Each section of a file is asked about all keys of a batch."""
    assert section_rows(groups) == sections
    assert sum(sections) == sum(groups)


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
    entry = Entry("old", 10, 2, "e1", (Span(2, 0, 5, 1),))
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
    entries = tuple(Entry(f"{key}{at}", 1, 1, "", (Span(1, 0, length, 0),)) for at, length in enumerate(lengths))
    return Stored(key, sum(lengths) + 100, "", entries)


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
