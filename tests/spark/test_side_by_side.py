"""Files of one task at the same time: in order, within bounds, and nothing goes on after a failure."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from glue_jobs.core.record import DataFile
from glue_jobs.spark import side_by_side as side_by_side_module
from glue_jobs.spark.side_by_side import (
    LARGE_BYTES,
    MOST_AHEAD,
    MOST_BYTES,
    MOST_FILES,
    file_threads,
    one_behind,
    read_ahead,
    side_by_side,
)


def files(*sizes: int) -> list[DataFile]:
    return [DataFile(f"{number}.parquet", size, 1) for number, size in enumerate(sizes)]


def size_of(file: DataFile) -> int:
    return file.size_bytes


class Counting:
    """Notes how many files are worked on at once; a file waits until `wanted` are, so that the greatest number shows."""

    def __init__(self, wanted: int) -> None:
        self.most = self.begun = 0
        self._now = 0
        self._wanted, self._changed = wanted, threading.Condition()

    def __call__(self, file: DataFile) -> str:
        with self._changed:
            self._now += 1
            self.begun += 1
            self.most = max(self.most, self._now)
            self._changed.notify_all()
            self._changed.wait_for(lambda: self.most >= self._wanted, timeout=10)
            self._now -= 1
        return file.path


def test_small_files_are_worked_on_together_and_come_in_order() -> None:
    work = Counting(MOST_FILES)
    many = files(*[1000] * 40)

    assert side_by_side(work, many, size_of) == [file.path for file in many]
    assert work.most == MOST_FILES


def test_big_files_are_worked_on_one_by_one() -> None:
    """Memory is bounded by the bytes of the files in hand."""
    work = Counting(1)

    side_by_side(work, files(MOST_BYTES, MOST_BYTES, 8 * MOST_BYTES), size_of)

    assert work.most == 1


def test_the_first_failure_is_raised_and_nothing_is_begun_after_it() -> None:
    begun: list[str] = []

    def fail(file: DataFile) -> str:
        begun.append(file.path)
        raise ValueError(file.path)

    with pytest.raises(ValueError, match=r"^0\.parquet$"):
        side_by_side(fail, files(*[1000] * 40), size_of)

    assert len(begun) <= MOST_FILES
    assert [thread.name for thread in threading.enumerate() if thread.name.startswith("file")] == []


def test_threads_of_a_task_are_idle_after_a_failure_and_go_on_with_the_next_files() -> None:
    """What had begun is waited for, what waited is never begun; the threads are not ended with it."""
    ended: list[str] = []
    begun = threading.Barrier(MOST_FILES)

    def fail(file: DataFile) -> str:
        begun.wait(timeout=10)
        if file.path == "0.parquet":
            raise ValueError(file.path)
        ended.append(file.path)
        return file.path

    with file_threads() as threads:
        with pytest.raises(ValueError, match=r"^0\.parquet$"):
            side_by_side(fail, files(*[1000] * 40), size_of, threads)

        assert sorted(ended) == [f"{number}.parquet" for number in range(1, MOST_FILES)]
        assert side_by_side(lambda file: file.path, files(*[1000] * 40), size_of, threads) == [file.path for file in files(*[1000] * 40)]
    assert [thread.name for thread in threading.enumerate() if thread.name.startswith("file")] == []


def test_the_end_of_one_item_is_done_while_the_next_is_begun() -> None:
    """And no more than one: the third waits for the first one's end."""
    begun = [threading.Event() for _ in range(5)]
    ended: list[int] = []

    def work(number: int) -> Callable[[], int]:
        begun[number].set()
        assert len(ended) >= number - 1

        def end() -> int:
            assert begun[min(number + 1, 4)].wait(timeout=10)
            ended.append(number)
            return number * 10

        return end

    assert one_behind(work, range(5)) == [0, 10, 20, 30, 40]
    assert ended == [0, 1, 2, 3, 4]
    assert one_behind(work, ()) == []


@pytest.mark.parametrize("fails", ["the second one", "the end of the first one"])
def test_ends_are_not_left_alone_when_something_fails(fails: str) -> None:
    """Each that was handed over has been done when the failure is told."""
    ended: list[int] = []

    def work(number: int) -> Callable[[], None]:
        if (number, fails) == (1, "the second one"):
            raise ValueError(fails)

        def end() -> None:
            ended.append(number)
            if (number, fails) == (0, "the end of the first one"):
                raise ValueError(fails)

        return end

    with pytest.raises(ValueError, match=fails):
        one_behind(work, range(3))

    assert ended == ([0] if fails == "the second one" else [0, 1])
    assert [thread.name for thread in threading.enumerate() if thread.name.startswith("behind")] == []


class Source:
    """Numbers, and how many were asked for; the one at `fails` can't be got."""

    def __init__(self, count: int, fails: int = -1) -> None:
        self.asked = 0
        self._count, self._fails = count, fails
        self._changed = threading.Condition()

    def __iter__(self) -> Iterator[int]:
        for number in range(self._count):
            with self._changed:
                self.asked += 1
                self._changed.notify_all()
            if number == self._fails:
                raise ValueError(f"number {number}")
            yield number

    def wait_for(self, asked: int) -> None:
        with self._changed:
            assert self._changed.wait_for(lambda: self.asked >= asked, timeout=10)


def small(_: int) -> int:
    return 1000


def middling(_: int) -> int:
    return LARGE_BYTES


def large(_: int) -> int:
    return LARGE_BYTES + 1


@pytest.mark.parametrize(("size_of_each", "most"), [(small, MOST_AHEAD), (middling, MOST_AHEAD), (large, 0)])
def test_the_next_items_are_got_while_one_is_in_hand_and_no_more_than_the_bound(size_of_each: Callable[[int], int], most: int) -> None:
    source = Source(20)
    with read_ahead(source, size_of_each) as items:
        for number in items:
            source.wait_for(min(number + 1 + most, 20))
            assert source.asked <= number + 1 + most

    assert source.asked == 20
    with read_ahead((), size_of_each) as none:
        assert list(none) == []


def test_what_tells_no_size_lets_others_come() -> None:
    """How large they are is known when one of them is there."""
    source = Source(20)
    with read_ahead(source, lambda number: small(number) if number else None) as items:
        next(items)
        source.wait_for(1 + MOST_AHEAD)

    assert source.asked == 1 + MOST_AHEAD


def test_a_small_item_among_large_ones_lets_no_more_come() -> None:
    """The last rows of a row group are few, and those of the next one as large as any."""
    source = Source(20)
    with read_ahead(source, lambda number: small(number) if number % 3 else large(number)) as items:
        for number in items:
            assert source.asked == number + 1


def test_large_items_behind_a_small_one_are_no_more_than_were_asked_for() -> None:
    source = Source(20)
    with read_ahead(source, lambda number: small(number) if number == 0 else large(number)) as items:
        assert [next(items) for _ in range(1 + MOST_AHEAD)] == list(range(1 + MOST_AHEAD))

        assert source.asked == 1 + MOST_AHEAD


def test_what_could_not_be_got_is_raised_in_its_turn() -> None:
    got: list[int] = []
    with pytest.raises(ValueError, match=r"^number 2$"), read_ahead(Source(5, fails=2), small) as items:
        got.extend(items)  # a list takes what came before the failure

    assert got == [0, 1]


def test_nothing_is_got_after_the_caller_failed() -> None:
    source = Source(40)

    def write(items: Iterator[int]) -> None:
        next(items)
        raise OSError("the disk is full")

    with pytest.raises(OSError, match=r"^the disk is full$"), read_ahead(source, small) as items:
        write(items)

    assert source.asked <= 1 + MOST_AHEAD
    assert [thread.name for thread in threading.enumerate() if thread.name.startswith("ahead")] == []


def test_an_item_that_comes_when_the_caller_is_gone_is_the_last(monkeypatch: pytest.MonkeyPatch) -> None:
    """It would ask for the next ones; that nobody takes it does not end the caller's own error, and nothing waits for ever."""
    is_gone = threading.Event()

    class Pool(ThreadPoolExecutor):
        def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
            super().shutdown(wait=False, cancel_futures=cancel_futures)
            is_gone.set()
            super().shutdown(wait=wait)

    monkeypatch.setattr(side_by_side_module, "ThreadPoolExecutor", Pool)
    got: list[int] = []

    def numbers() -> Iterator[int]:
        for number in range(20):
            if number:
                assert is_gone.wait(10)
            got.append(number)
            yield number

    def write(items: Iterator[int]) -> None:
        next(items)
        raise OSError("the disk is full")

    with pytest.raises(OSError, match=r"^the disk is full$"), read_ahead(numbers(), small) as items:
        write(items)

    assert got == [0, 1]
    assert [thread.name for thread in threading.enumerate() if thread.name.startswith("ahead")] == []
