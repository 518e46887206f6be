"""Key filters as a by-product of a merge: of files that were searched in vain, whose keys were read anyway, and of those written."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, fields, replace
from functools import partial
from typing import TypeVar

import pyarrow as pa
from botocore.exceptions import BotoCoreError, ClientError

from glue_jobs.aws.objects import read_bytes
from glue_jobs.core.errors import DmslakeError
from glue_jobs.core.key_filter import LEAST_SECTION_ROWS, MOST_FILE_ROWS, ROW_BYTES, Answer, KeyFilter, Section, Span
from glue_jobs.core.record import DataFile
from glue_jobs.spark.kept_property import kept_property
from glue_jobs.spark.key_filter_bits import Hashes, HashQueue, hashes_of, packed, sections_of
from glue_jobs.spark.open_file import OpenFile
from glue_jobs.spark.place import Shape
from glue_jobs.spark.row_batches import group_rows
from glue_jobs.spark.stored_groups import StoredGroup

Piece = TypeVar("Piece", pa.Table, pa.Table | StoredGroup)

TROUBLE = (DmslakeError, ClientError, BotoCoreError, ValueError)  # what may be wrong with filters in S3
# Bytes of files that a task may find to hold a changed key, beyond those that hold none, before it stops to make filters of what it writes.
SLACK_BYTES = 32 * 1024 * 1024
_ALL = -1


@dataclass(frozen=True)
class NotingFile(OpenFile):
    """An open file that hashes its keys while they are read. What is read last is hashed when more is asked for: a search that stops at
    a hit hashes nothing in vain. noted: by row group; of all that are read at once: −1. answer: of the file's filter, if it has one."""

    answer: Answer | None = None
    noted: dict[int, list[Hashes]] = field(default_factory=dict)

    def key_batches(self, groups: Sequence[int] | None = None) -> Iterator[pa.Table]:
        hashes = self.noted[_ALL if groups is None else groups[0]] = []
        for rows in super().key_batches(groups):
            yield rows
            hashes.append(hashes_of(rows, self.shape))

    def group_hashes(self, number: int) -> Iterator[Hashes]:
        """A row group that was searched in vain is not read again. Its hashes are the caller's then."""
        hashes = self.noted.pop(number, [])
        return iter(hashes) if sum(map(len, hashes)) == group_rows(self.parquet)[number] else super().group_hashes(number)

    def group_section(self, number: int) -> bytes | None:
        """That of the file's own filter, if it has one of just this row group."""
        span = None if self.answer is None else self.answer.span_of(group_rows(self.parquet), number)
        kept = None if span is None else self._kept.get(span)
        return super().group_section(number) if kept is None else kept

    @kept_property
    def _kept(self) -> dict[Span, bytes]:
        """The sections of row groups that hold no changed key, with one request. What can't be read any more is made anew."""
        answer = self.answer
        clean = [span for span, holds in zip(answer.spans, answer.holds, strict=True) if not holds] if answer else []
        if not answer or not clean:
            return {}
        start, stop = clean[0].start, clean[-1].stop
        try:
            data = read_bytes(self.place.s3, self.place.lake.bucket, answer.key, start=start, stop=stop, etag=answer.etag)
        except TROUBLE:
            return {}
        sections = {span: span.section(data[span.start - start : span.stop - start]) for span in clean}
        return {span: section.data for span, section in sections.items() if section is not None}

    def sections(self) -> tuple[Section, ...] | None:
        """Of all that was read, if these are the keys of all rows; once."""
        numbers = [_ALL] if _ALL in self.noted else sorted(self.noted)
        hashes = [each for number in numbers for each in self.noted.pop(number)]
        self.noted.clear()
        return sections_of(hashes, [self.file.rows] if self.whole else group_rows(self.parquet))


@dataclass(frozen=True)
class Noting:
    """What one task is told: up to how many bytes of filters it makes, 0 for none; how many bytes of files it need not open, thanks to
    filters; what the filters say of the files that it opens, by path."""

    most_bytes: int = 0
    spared_bytes: int = 0
    known: Mapping[str, Answer] = field(default_factory=dict)

    def for_rows(self, rows: int) -> Noting:
        """For files of so many rows, each of which gets a filter, if filters are made at all."""
        return replace(self, most_bytes=rows * ROW_BYTES) if self.most_bytes else self


class NotedRows:
    """Hashes the keys of rows on their way to one file, as long as `is_noting` says so, and they are not too many for a filter.

    Rows pass in one thread and are written in another, which says what becomes a row group (`cut`). The filter's sections are made beside
    both; who leaves the context waits for them. Without a word of row groups, as of small files, there is one, which is made at the end.
    """

    def __init__(self, shape: Shape, is_noting: Callable[[], bool]) -> None:
        self._shape, self._is_noting = shape, is_noting
        self._lock = threading.Lock()
        self._hashes = HashQueue()
        self._rows = 0
        self._is_whole = True  # nothing that passed is left out
        self._begun: list[Hashes] = []  # of row groups that share a section with the next one
        self._sections: list[tuple[int, Callable[[], bytes | None]]] = []
        self._threads: ThreadPoolExecutor | None = None

    def __enter__(self) -> NotedRows:
        return self

    def __exit__(self, *_: object) -> None:
        if self._threads is not None:
            self._threads.shutdown(wait=True, cancel_futures=True)

    def passing(self, pieces: Iterable[Piece]) -> Iterator[Piece]:
        """The tables and stored row groups as they are."""
        for piece in pieces:
            self._rows += piece.rows if isinstance(piece, StoredGroup) else piece.num_rows
            self._is_whole = self._is_whole and self._rows <= MOST_FILE_ROWS and self._is_noting()
            hashes = self._hashed(piece) if self._is_whole else []
            with self._lock:
                for each in hashes:
                    self._hashes.put(each)
                if not self._is_whole:
                    self._hashes.clear()
            yield piece

    def _hashed(self, piece: pa.Table | StoredGroup) -> list[Hashes]:
        """Nothing of a stored row group that has a section of its own."""
        if not isinstance(piece, StoredGroup):
            return [hashes_of(piece, self._shape)]
        return [] if piece.rows >= LEAST_SECTION_ROWS else list(piece.key_hashes())

    def cut(self, rows: int, stored: StoredGroup | None) -> None:
        """Of what has passed, the next so many rows become a row group, or a stored one does."""
        if not self._is_whole:
            return
        if self._threads is None:
            self._threads = ThreadPoolExecutor(1, thread_name_prefix="filter")
        if stored is not None and rows >= LEAST_SECTION_ROWS:
            self._end_section()
            self._sections.append((rows, self._threads.submit(stored.key_section).result))
            return
        with self._lock:
            self._begun += self._hashes.take(rows)
        if sum(map(len, self._begun)) >= LEAST_SECTION_ROWS:
            self._end_section()

    def _end_section(self) -> None:
        parts, self._begun = self._begun, []
        if parts:
            make = partial(packed, parts)
            self._sections.append((sum(map(len, parts)), make if self._threads is None else self._threads.submit(make).result))

    def sections(self, rows: int) -> tuple[Section, ...] | None:
        """Of the filter of what has passed, for a file of so many rows; once. None if these are not all that were noted, because without
        one of its keys a filter would lose a change; and where the keys of a stored row group can't be had: the rows are written all the
        same."""
        self._begun += self._hashes.take(self._rows)
        self._end_section()
        if not self._is_whole or not rows or not rows == self._rows == sum(count for count, _ in self._sections):
            return None
        try:
            made = [(count, make()) for count, make in self._sections]
        except TROUBLE:
            return None
        sections = tuple(Section(count, data) for count, data in made if data is not None)
        return sections if len(sections) == len(made) else None


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
        attributes = {each.name: getattr(opened, each.name) for each in fields(OpenFile)}
        return NotingFile(**attributes, answer=self._known.get(opened.file.path))

    def told_of(self, opened: OpenFile) -> tuple[bool | None, ...]:
        """Whether the row groups of a large file hold a changed key, as its key filter says, wrong once in millions of keys for each.
        None where a row group must be searched; nothing of a file that is not known to hold one."""
        answer = None if opened.whole else self._known.get(opened.file.path)
        return () if answer is None else answer.of_groups(group_rows(opened.parquet))

    def of_searched(self, opened: OpenFile) -> tuple[KeyFilter, ...]:
        """The filter of a file that `watch` gave, if all its keys were read."""
        with self._lock:
            self._balance += opened.file.size_bytes
        if not isinstance(opened, NotingFile) or opened.answer is not None:
            return ()
        return self._filter(opened.file, opened.sections())

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
        return self._filter(files[0], rows.sections(files[0].rows)) if len(files) == 1 else ()

    def _filter(self, file: DataFile, sections: Sequence[Section] | None) -> tuple[KeyFilter, ...]:
        """As many as there is room for."""
        if sections is None:
            return ()
        made = KeyFilter.of(file, sections)
        with self._lock:
            if made.length > self._left:
                return ()
            self._left -= made.length
        return (made,)
