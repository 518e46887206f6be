"""Packing files into tasks and tables into runs."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from glue_jobs.core.bins import BINS_PER_SLOT, LEAST_BIN_BYTES, bins_of_slots, groups, pack

WEIGHTS = st.lists(st.integers(0, 50), max_size=30)


@given(WEIGHTS, st.integers(1, 8))
def test_every_item_is_packed_once_and_in_order(weights: list[int], bins: int) -> None:
    """At most so many bins, none of them empty."""
    items = list(enumerate(weights))

    packed = pack(items, lambda item: item[1], bins)

    assert sorted(item for one in packed for item in one) == items
    assert all(one == sorted(one) and one for one in packed)
    assert len(packed) == min(bins, len(items))


@given(st.lists(st.integers(1, 50), min_size=1, max_size=30), st.integers(1, 8))
def test_the_lightest_bin_takes_the_next_heaviest_item(weights: list[int], bins: int) -> None:
    """So without its lightest item, which came last, the heaviest bin is not above the mean."""
    heaviest = max(pack(weights, float, bins), key=sum)

    assert sum(heaviest) - min(heaviest) <= sum(weights) / bins


@given(WEIGHTS, st.integers(1, 60), st.integers(1, 5))
def test_groups_keep_the_order_and_both_bounds(weights: list[int], most_weight: int, most_items: int) -> None:
    """One item that is too heavy stands alone."""
    cut = groups(weights, float, most_weight, most_items)

    assert [weight for group in cut for weight in group] == weights
    assert all(len(group) <= most_items for group in cut)
    assert all(sum(group) <= most_weight or len(group) == 1 for group in cut)


@given(WEIGHTS, st.integers(1, 60), st.integers(1, 5))
def test_a_group_ends_only_where_it_must(weights: list[int], most_weight: int, most_items: int) -> None:
    """The next group's first item would not have fitted."""
    cut = groups(weights, float, most_weight, most_items)

    pairs = itertools.pairwise(cut)
    assert all(len(group) == most_items or sum(group) + after[0] > most_weight for group, after in pairs)


@pytest.mark.parametrize(
    ("files_of_one_bin", "each"),
    [(0.1, 1), (1.0, 1), (1.9, 1), (2.0, 2), (3.0, 3), (50.0, BINS_PER_SLOT)],
)
def test_a_slot_gets_more_bins_where_it_has_much_to_do(files_of_one_bin: float, each: int) -> None:
    """A little work is not cut up: a bin has a begin and an end, at which its slot mostly waits."""
    slots, files = 4, 200
    size = files_of_one_bin * LEAST_BIN_BYTES * slots / files

    bins = bins_of_slots(range(files), lambda _: size, slots)

    assert len(bins) == each * slots
    assert sorted(file for chosen in bins for file in chosen) == list(range(files))


def test_there_is_no_bin_without_a_file() -> None:
    assert bins_of_slots([], float, 2) == []
    assert bins_of_slots([7], float, 2) == [(7,)]
