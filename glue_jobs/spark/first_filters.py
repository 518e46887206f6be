"""Key filters of a table that is adopted: its keys are read then to look for doubled ones, so the first batch need not do it again."""

from __future__ import annotations

import threading

from glue_jobs.core.key_filter import LEAST_SPREAD, MOST_FILE_ROWS, SAMPLE, KeyFilter, may_pay, overlap
from glue_jobs.core.record import DataFile
from glue_jobs.spark.key_filter_bits import Hashes, packed
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

    def note(self, file: DataFile, hashes: list[Hashes]) -> None:
        """The hashes of all keys of a file, whose bounds are known."""
        if not hashes or sum(map(len, hashes)) != file.rows or file.rows > MOST_FILE_ROWS:
            return
        data = packed(hashes)
        with self._lock:
            if data is None or len(data) > self._left:
                return
            self._left -= len(data)
            self._files.append(file)
            self._made.append(KeyFilter.of(file, data))
            if len(self._files) == SAMPLE and overlap(self._files, self.shape.key_types) <= LEAST_SPREAD:
                self._left, self._files, self._made = 0, [], []

    def made(self) -> list[KeyFilter]:
        """The filters, if they may be of use."""
        files = self._files
        of_use = may_pay(1, files) and overlap(files, self.shape.key_types) > LEAST_SPREAD
        return self._made if of_use else []
