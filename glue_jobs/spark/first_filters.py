"""Key filters of a table that is adopted: its keys are read then to look for doubled ones, so the first batch need not do it again."""

from __future__ import annotations

import threading
from collections.abc import Sequence

from glue_jobs.core.key_filter import LEAST_SPREAD, MOST_FILE_ROWS, SAMPLE, KeyFilter, may_pay, overlap
from glue_jobs.core.record import DataFile
from glue_jobs.spark.key_filter_bits import Hashes, sections_of
from glue_jobs.spark.place import Shape


class FirstFilters:
    """The filters of files whose keys are read, up to `most_bytes` in all. Where the ranges of the first files tell them apart, it stops:
    no filter would be asked. Used by many threads."""

    def __init__(self, shape: Shape, most_bytes: int) -> None:
        self.shape = shape
        self._lock = threading.Lock()
        self._left = most_bytes if shape.key else 0
        self._files: list[DataFile] = []
        self._made: list[KeyFilter] = []

    @property
    def wanted(self) -> bool:
        return self._left > 0

    def note(self, file: DataFile, hashes: list[Hashes], group_rows: Sequence[int]) -> None:
        """The hashes of all keys of a file, whose bounds are known. group_rows: the rows of its row groups."""
        if sum(group_rows) != file.rows or file.rows > MOST_FILE_ROWS:
            return
        sections = sections_of(hashes, group_rows)
        if sections is None:
            return
        made = KeyFilter.of(file, sections)
        with self._lock:
            if made.length > self._left:
                return
            self._left -= made.length
            self._files.append(file)
            self._made.append(made)
            if len(self._files) == SAMPLE and overlap(self._files, self.shape.key_types) <= LEAST_SPREAD:
                self._left, self._files, self._made = 0, [], []

    def made(self) -> list[KeyFilter]:
        """The filters, if they may be of use."""
        files = self._files
        of_use = may_pay(1, files) and overlap(files, self.shape.key_types) > LEAST_SPREAD
        return self._made if of_use else []
