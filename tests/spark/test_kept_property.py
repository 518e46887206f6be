"""A property that is found out once, for several objects at the same time."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import pytest

from glue_jobs.spark.kept_property import kept_property


@dataclass(frozen=True)
class Thing:
    """Something of which the double can be asked."""

    number: int
    asked: list[int]
    together: threading.Barrier

    @kept_property
    def double(self) -> int:
        """Twice the number."""
        self.asked.append(self.number)
        self.together.wait(timeout=10)
        return self.number * 2


def test_it_is_found_out_once_for_each_object_and_for_several_together() -> None:
    """Each waits for the other one: with one lock for both neither would end."""
    together, asked = threading.Barrier(2), list[int]()
    things = [Thing(number, asked, together) for number in (1, 2)]

    with ThreadPoolExecutor(2) as pool:
        found = list(pool.map(lambda thing: thing.double, things))

    assert (found, [thing.double for thing in things], sorted(asked)) == ([2, 4], [2, 4], [1, 2])
    assert Thing.double.__doc__ == "Twice the number."


def test_what_failed_is_asked_again() -> None:
    """Nothing is kept of it."""
    broken = threading.Barrier(2)
    broken.abort()
    thing = Thing(1, [], broken)

    for _ in range(2):
        with pytest.raises(threading.BrokenBarrierError):
            _ = thing.double

    assert thing.asked == [1, 1]
