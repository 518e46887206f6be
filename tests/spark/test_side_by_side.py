"""Files of one task at the same time: in order, within bounds, and nothing goes on after a failure."""

from __future__ import annotations

import threading

import pytest

from glue_jobs.core.record import DataFile
from glue_jobs.spark.side_by_side import MOST_BYTES, MOST_FILES, side_by_side


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
