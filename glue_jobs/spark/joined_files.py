"""Several small data files that are rewritten as one: which ones, and the writer that takes their rows one file after the other."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TypeVar

import pyarrow as pa

from glue_jobs.core.key_filter import KeyFilter
from glue_jobs.core.limits import Limits
from glue_jobs.core.neighbours import Group, joined_below, neighbours
from glue_jobs.core.record import DataFile
from glue_jobs.spark.engine import chain
from glue_jobs.spark.key_notes import KeyNotes, NotedRows
from glue_jobs.spark.place import Place, Shape
from glue_jobs.spark.side_by_side import file_threads, one_behind, side_by_side
from glue_jobs.spark.write_files import FileWriter, WriteOptions, abort_all

_T = TypeVar("_T")
_R = TypeVar("_R")

# Small files that are joined come to so many times `small_file_bytes` at most, so that what they become is not small again; to less where
# cores would have no work. Below so many bytes a task of its own is not worth its while.
JOINED_FILES = 2
LEAST_JOINED_BYTES = 8 * 1024 * 1024


def to_join(limits: Limits, shape: Shape, chosen: Sequence[DataFile], table: Iterable[DataFile], share_bytes: float) -> list[Group]:
    """The files `chosen`, which are rewritten, small neighbours together: so many that they fill a new file, or a task's share."""
    most_bytes = min(JOINED_FILES * limits.small_file_bytes, max(LEAST_JOINED_BYTES, share_bytes))
    return neighbours(chosen, table, shape.key_types, joined_below(limits), most_bytes)


def of_groups(
    one: Callable[[_T], _R],
    several: Callable[[tuple[_T, ...], ThreadPoolExecutor], Callable[[], _R]],
    groups: Sequence[tuple[_T, ...]],
    size_bytes: Callable[[_T], int],
) -> list[_R]:
    """The groups of a task, first those of one file: one(file). several(group, threads) is another group's work up to its end, which it
    returns: it has several files in hand on those threads, and only the end of the one before is at work beside it. size_bytes: of a file.
    """
    with file_threads() as threads:
        alone = side_by_side(one, [group[0] for group in groups if len(group) == 1], size_bytes, threads)
        return alone + one_behind(lambda group: several(group, threads), [group for group in groups if len(group) > 1])


@dataclass(frozen=True)
class Written:
    """Files that a task wrote, and their filters."""

    files: tuple[DataFile, ...] = ()
    filters: tuple[KeyFilter, ...] = ()


class Joining:
    """Writes the rows of several files into one; where they follow on each other (ascending), until one comes that stays."""

    def __init__(self, place: Place, shape: Shape, notes: KeyNotes, ascending: bool = True) -> None:
        self._place, self._shape, self._notes, self._ascending = place, shape, notes, ascending
        self._writer: FileWriter | None = None
        self._rows: NotedRows | None = None
        self._writers: list[FileWriter] = []
        self._done: list[Written] = []

    def take(self, file: DataFile, rows: Iterable[pa.Table] | None) -> None:
        """The rows of the next file, None if it stays."""
        if rows is None:
            if self._ascending:
                self._close()
            return
        if self._writer is None or self._rows is None:
            # Which columns may have a dictionary is asked of many rows: the first file may be tiny, or older than some columns.
            self._writer = FileWriter(self._place, self._shape, file.partition, WriteOptions(split=False))
            self._writers.append(self._writer)
            self._rows = self._notes.of_rows()
        for table in self._rows.passing(rows):
            self._writer.write(table)

    @property
    def size_bytes(self) -> int:
        """Of the file that is being written."""
        return 0 if self._writer is None else self._writer.size_bytes

    def finish(self) -> Written:
        """All files that were written; given up, if the last one can't be finished."""
        with self.or_abort():
            self._close()
        return Written(tuple(chain(each.files for each in self._done)), tuple(chain(each.filters for each in self._done)))

    def _close(self) -> None:
        if self._writer is not None and self._rows is not None:
            files = self._writer.finish()
            self._done.append(Written(tuple(files), self._notes.of_written(files, self._rows)))
        self._writer = self._rows = None

    @contextmanager
    def or_abort(self) -> Iterator[None]:
        """Gives up what was written, also the files that are finished, if what is done inside fails."""
        try:
            yield
        except BaseException:
            abort_all(self._writers)
            raise
