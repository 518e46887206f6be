"""The states between two changes: what they tell, and what they hold."""

from __future__ import annotations

import gc
import weakref
from dataclasses import replace
from itertools import pairwise

from glue_jobs.core.snapshot import Snapshot, apply
from glue_jobs.protocol.steps import States
from tests.core.records import history

RECORDS = history([(3, 0)] + [(1, 1)] * 30, checkpoints=False)


def test_states_are_those_of_the_records() -> None:
    """All that row changes ask for, each time anew; a change that was taken back is no state."""
    expected = [Snapshot()]
    for record in RECORDS:
        expected.append(apply(expected[-1], record))
    lost = RECORDS[3].id
    states = States(Snapshot(), tuple(RECORDS), frozenset({lost}), ("an erase",))

    found = [list(states) for _ in range(2)]

    shown = [replace(state, applied={}, erases=("an erase",)) for state in expected if state.change != lost]
    assert found == [shown, shown]


def test_two_states_are_in_memory_however_many_there_are() -> None:
    """The one before is let go when the next pair is made, and no state carries the raw files of those before it."""
    seen: list[weakref.ref[Snapshot]] = []
    alive: list[int] = []

    for before, after in pairwise(States(Snapshot(), tuple(RECORDS))):
        seen += [weakref.ref(before), weakref.ref(after)]
        gc.collect()
        alive.append(len({id(each()) for each in seen if each() is not None}))
        assert not after.applied

    assert alive == [2] * len(RECORDS)
