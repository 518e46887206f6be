"""How the writing of a whole table is shared between tasks."""

from __future__ import annotations

import random

from hypothesis import given
from hypothesis import strategies as st

from glue_jobs.spark.portions import Content, Sorted, Streamed, planned, portions_of

MANY = 2.0**40  # bytes: no partition is cut
LARGE = {0: Content(12 * 10**6, {(str(number),): 10**6 for number in range(12)})}


def test_a_task_has_no_more_partitions_open_than_it_can_hold() -> None:
    """Of large partitions four, of small ones as many as come to its share of the rows."""
    small = {0: Content(1200, {(str(number),): 100 for number in range(12)})}

    assert [len(portion.partitions) for portion in portions_of(LARGE, Streamed(100.0, MANY), 1)] == [4, 4, 4]
    assert [len(portion.partitions) for portion in portions_of(small, Streamed(100.0, MANY), 1)] == [12]
    assert [len(portion.partitions) for portion in portions_of(small, Streamed(100.0, MANY), 3)] == [4, 4, 4]


def test_of_partitions_that_are_sorted_in_memory_a_task_has_what_fits() -> None:
    """A million rows of 64 bytes are 64 MB: three of them stay below 192 MiB, which leaves room for writing."""
    assert [len(portion.partitions) for portion in portions_of(LARGE, Sorted(16.0, 64.0), 1)] == [3, 3, 3, 3]
    apart = {at: Content(10**6, {(str(at),): 10**6}) for at in range(12)}
    assert planned(apart, Sorted(50.0, 200.0), slots=1) is not None, "200 MB are the largest"
    assert planned(apart, Sorted(50.0, 204.0), slots=1) is None, "204 MB"


def test_work_that_a_few_tasks_would_have_alone_is_left_to_a_shuffle() -> None:
    """One large file in key order, on a cluster; and partitions that have nothing to do with the key, each in every file."""
    one = {0: Content(10**8, {("a",): 10**8})}
    crossed = {at: Content(3 * 10**6, {(str(number),): 10**6 for number in range(3)}) for at in range(40)}

    assert planned(one, Streamed(50.0, 128e6), slots=20) is None
    assert planned(one, Streamed(50.0, 128e6), slots=1) is not None
    assert planned(crossed, Streamed(42.0, MANY), slots=20) is None
    sorted_there = {at: Content(300_000, {(str(number),): 1000 for number in range(300)}) for at in range(400)}
    assert planned(sorted_there, Sorted(100.0, 400.0), slots=20) is None, "each partition is in each file, and a task holds one"
    assert planned({0: Content(10**6, {("a",): 10**6})}, Streamed(50.0, 128e6), slots=20) is not None, "small: one task is short"


held = st.lists(
    st.dictionaries(st.integers(0, 6).map(lambda number: (str(number),)), st.integers(1, 50), max_size=4), min_size=1, max_size=12
)


@given(held=held, cut_rows=st.none() | st.integers(1, 200), tasks=st.integers(1, 9), numbers=st.randoms(use_true_random=False))
def test_portions_have_every_row_once(held: list[dict[tuple[str], int]], cut_rows: int | None, tasks: int, numbers: random.Random) -> None:
    """Whatever the table: each partition's rows of each source are in one portion, in the order of keys."""
    order = numbers.sample(range(len(held)), len(held))
    contents = {at: Content(sum(held[at].values()), dict(held[at])) for at in order}

    portions = portions_of(contents, Sorted(1.0, 4.0) if cut_rows is None else Streamed(1.0, cut_rows), tasks)

    places = {at: place for place, at in enumerate(order)}
    for portion in portions:
        assert portion.partitions
        assert [places[at] for at in portion.sources] == sorted(places[at] for at in portion.sources)
        assert portion.rows == sum(held[at].get(values, 0) for at in portion.sources for values in portion.partitions)
    assert sum(portion.rows for portion in portions) == sum(sum(rows.values()) for rows in held)
    if cut_rows is None:
        written = [values for portion in portions for values in portion.partitions]
        assert len(written) == len(set(written)), "a partition is one task's"
