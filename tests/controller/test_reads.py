"""Those who look on share reads, and nobody waits for ever."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest

from controller.reads import NoAnswerYet, Reads


class Clock:
    """Seconds that pass when a test says so."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def __call__(self) -> float:
        return self.seconds


class Slow:
    """A read that ends when it is let go, with the number of times that it was begun."""

    def __init__(self) -> None:
        self.begun = 0
        self.go = threading.Event()

    def __call__(self) -> int:
        self.begun += 1
        assert self.go.wait(60)
        return self.begun


def counted(answer: Callable[[int], Any] = lambda times: times) -> Callable[[], Any]:
    """A read that says how many times it was done, or what `answer` makes of that."""
    times = 0

    def read() -> Any:
        nonlocal times
        times += 1
        return answer(times)

    return read


def test_all_who_ask_at_the_same_time_share_a_read() -> None:
    """Several tabs cost no more than one."""
    reads, slow, got = Reads(kept_seconds=1, clock=Clock()), Slow(), list[int]()
    tabs = [threading.Thread(target=lambda: got.append(reads.ask("page", slow))) for _ in range(4)]
    for tab in tabs:
        tab.start()

    slow.go.set()
    for tab in tabs:
        tab.join(60)

    assert got == [1, 1, 1, 1]
    assert slow.begun == 1


def test_an_answer_is_kept_for_a_moment_only() -> None:
    """Then the same question is read anew; another question is read by itself."""
    clock, read = Clock(), counted()
    reads = Reads(kept_seconds=1, clock=clock)

    first = [reads.ask("page", read), reads.ask("page", read), reads.ask("other", read)]
    clock.seconds = 1.0

    assert first == [1, 1, 2]
    assert reads.ask("page", read) == 3


def test_who_does_not_want_to_wait_is_told_and_gets_the_answer_later() -> None:
    """The read goes on, and asking again begins no second one."""
    clock, slow = Clock(), Slow()
    reads = Reads(kept_seconds=1, wait_seconds=0, clock=clock)

    with pytest.raises(NoAnswerYet, match="has not answered within 0 s"):
        reads.ask("page", slow)
    assert reads.are_going_on()
    slow.go.set()
    patient = Reads(kept_seconds=1, clock=clock)
    patient._reads = reads._reads  # the same reads, asked by who waits
    clock.seconds = 30.0

    assert patient.ask("page", slow) == 1
    assert not reads.are_going_on()


def test_an_answer_that_nobody_fetched_is_not_shown_a_minute_later() -> None:
    """It would pass for what is true now."""
    clock, slow = Clock(), Slow()
    reads = Reads(kept_seconds=1, wait_seconds=0, clock=clock)
    with pytest.raises(NoAnswerYet):
        reads.ask("page", slow)
    slow.go.set()
    assert reads._reads["page"].over.wait(60)
    clock.seconds = 61.0
    patient = Reads(kept_seconds=1, clock=clock)
    patient._reads = reads._reads

    assert patient.ask("page", slow) == 2


def test_a_failure_is_everybodys_and_forgotten_soon() -> None:
    """As an answer is."""

    def answer(times: int) -> int:
        if times == 1:
            raise ValueError("broken")
        return times

    clock, read = Clock(), counted(answer)
    reads = Reads(kept_seconds=1, clock=clock)
    for _ in range(2):
        with pytest.raises(ValueError, match="broken"):
            reads.ask("page", read)
    clock.seconds = 1.0

    assert reads.ask("page", read) == 2


def test_no_more_than_so_many_reads_at_once() -> None:
    """When AWS hangs, pages that are asked for again and again don't fill the process with threads."""
    reads, slow = Reads(wait_seconds=0, most_at_once=2), Slow()
    for page in ("one", "two"):
        with pytest.raises(NoAnswerYet, match="within"):
            reads.ask(page, slow)

    with pytest.raises(NoAnswerYet, match="2 pages are being read"):
        reads.ask("three", slow)

    slow.go.set()
