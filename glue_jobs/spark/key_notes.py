"""Key filters as a by-product of a merge: of files that were searched in vain, whose keys were read anyway, and of those written."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field, fields, replace
from typing import TypeVar

import pyarrow as pa

from glue_jobs.core.key_filter import MOST_FILE_ROWS, ROW_BYTES, KeyFilter
from glue_jobs.core.record import DataFile
from glue_jobs.spark.key_filter_bits import Hashes, hashes_of, packed
from glue_jobs.spark.open_file import OpenFile
from glue_jobs.spark.place import Shape
from glue_jobs.spark.stored_groups import StoredGroup

Piece = TypeVar("Piece", pa.Table, pa.Table | StoredGroup)

_ALL = -1
# Bytes of files that a task may find to hold a changed key, beyond those that hold none, before it stops to make filters of what it writes.
SLACK_BYTES = 32 * 1024 * 1024


@dataclass(frozen=True)
class NotingFile(OpenFile):
    """An open file that hashes its keys while they are read. What is read last is hashed when more is asked for: a search that stops at
    a hit hashes nothing in vain. noted: by row group; of all that are read at once: −1."""

    noted: dict[int, list[Hashes]] = field(default_factory=dict)

    def key_batches(self, groups: Sequence[int] | None = None) -> Iterator[pa.Table]:
        hashes = self.noted[_ALL if groups is None else groups[0]] = []
        for rows in super().key_batches(groups):
            yield rows
            hashes.append(hashes_of(rows, self.shape))

    def group_hashes(self, number: int) -> Iterator[Hashes]:
        """A row group that was searched in vain is not read again. Its hashes are the caller's then."""
        hashes = self.noted.pop(number, [])
        if sum(map(len, hashes)) == self.parquet.metadata.row_group(number).num_rows:
            return iter(hashes)
        return super().group_hashes(number)

    def all_hashes(self) -> list[Hashes]:
        """Of all that was read; they are the caller's then."""
        parts = [self.noted[_ALL]] if _ALL in self.noted else list(self.noted.values())
        self.noted.clear()
        return [each for part in parts for each in part]


@dataclass(frozen=True)
class Noting:
    """What one task is told: up to how many bytes of filters it makes, 0 for none; how many bytes of files it need not open, thanks to
    filters; the files that have a filter already."""

    most_bytes: int = 0
    spared_bytes: int = 0
    known: frozenset[str] = frozenset()

    def for_rows(self, rows: int) -> Noting:
        """For files of so many rows, each of which gets a filter, if filters are made at all."""
        return replace(self, most_bytes=rows * ROW_BYTES) if self.most_bytes else self


class NotedRows:
    """Hashes the keys of rows on their way to one file, as long as `is_noting` says so, and they are not too many for a filter."""

    def __init__(self, shape: Shape, is_noting: Callable[[], bool]) -> None:
        self.hashes: list[Hashes] = []
        self._shape, self._is_noting, self._rows = shape, is_noting, 0
        self._packing: Future[bytes | None] | None = None

    def passing(self, pieces: Iterable[Piece]) -> Iterator[Piece]:
        """The tables and stored row groups as they are."""
        for piece in pieces:
            self._rows += piece.rows if isinstance(piece, StoredGroup) else piece.num_rows
            if self._rows > MOST_FILE_ROWS:
                self.hashes.clear()
            elif self._is_noting():
                self.hashes.extend(piece.key_hashes() if isinstance(piece, StoredGroup) else [hashes_of(piece, self._shape)])
            yield piece

    def passing_all(self, pieces: Iterable[Piece]) -> Iterator[Piece]:
        """The same for all rows of the file. When the last has passed, a thread makes the filter, while they are written."""
        yield from self.passing(pieces)
        if self.hashes:
            threads = ThreadPoolExecutor(1, thread_name_prefix="filter")
            self._packing = threads.submit(_filter_of, self.hashes, self._rows)
            threads.shutdown(wait=False)  # it computes, and asks S3 for nothing: who gives up need not wait for it

    def packed(self, rows: int) -> bytes | None:
        """The filter of what has passed, for a file of so many rows; once. None if not all of them were noted."""
        if self._packing is None:
            return _filter_of(self.hashes, rows)
        return self._packing.result() if self._rows == rows else None


def _filter_of(hashes: list[Hashes], rows: int) -> bytes | None:
    """The filter of so many rows, after which the list is empty; None if these are not the hashes of all of them: without one of its keys
    it would lose a change."""
    return packed(hashes) if hashes and sum(map(len, hashes)) == rows else None


class KeyNotes:
    """Makes the key filters of one task's files, some of which may be worked on at the same time. Where most files hold a changed key,
    filters are of no use: then it stops to make those of what is written."""

    def __init__(self, shape: Shape, noting: Noting) -> None:
        self._shape, self._known = shape, noting.known
        self._lock = threading.Lock()
        self._left = noting.most_bytes if shape.key else 0
        self._balance = SLACK_BYTES + noting.spared_bytes

    def watch(self, opened: OpenFile) -> OpenFile:
        """The file, to be searched."""
        if self._left <= 0 or opened.file.rows > MOST_FILE_ROWS:
            return opened
        return NotingFile(**{each.name: getattr(opened, each.name) for each in fields(OpenFile)})

    def is_known_to_hold(self, opened: OpenFile) -> bool:
        """Whether a large file need not be searched, because its key filter says that it holds a changed key. That is wrong once in
        millions of keys; then the file is written anew as it is."""
        return not opened.whole and opened.file.path in self._known

    def of_searched(self, opened: OpenFile) -> tuple[KeyFilter, ...]:
        """The filter of a file that `watch` gave, if all its keys were read."""
        with self._lock:
            self._balance += opened.file.size_bytes
        if not isinstance(opened, NotingFile) or opened.file.path in self._known:
            return ()
        return self._filter(opened.file, _filter_of(opened.all_hashes(), opened.file.rows))

    def count_hit(self, file: DataFile) -> None:
        """This file holds a changed key, as a search or its key filter says, and is written anew."""
        with self._lock:
            self._balance -= file.size_bytes

    def of_rows(self) -> NotedRows:
        """For the rows of a file that is to be written. What is noted of a part of them makes no filter."""
        return NotedRows(self._shape, self._is_noting)

    def _is_noting(self) -> bool:
        with self._lock:
            return self._left > 0 and self._balance >= 0

    def of_written(self, files: Sequence[DataFile], rows: NotedRows) -> tuple[KeyFilter, ...]:
        """The filter of the file that took the rows; of several there is none, because which took which is not known."""
        return self._filter(files[0], rows.packed(files[0].rows)) if len(files) == 1 else ()

    def _filter(self, file: DataFile, data: bytes | None) -> tuple[KeyFilter, ...]:
        """As many as there is room for."""
        with self._lock:
            if data is None or len(data) > self._left:
                return ()
            self._left -= len(data)
        return (KeyFilter.of(file, data),)
