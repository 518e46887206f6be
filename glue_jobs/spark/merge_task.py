"""A task of a merge: net changes into the files of one bin. Small neighbours that are rewritten become one file."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa
from botocore.exceptions import BotoCoreError, ClientError

from glue_jobs.core.errors import TableBlocked
from glue_jobs.core.key_filter import KeyFilter
from glue_jobs.core.neighbours import Group, Tidied, is_ascending
from glue_jobs.core.record import DataFile
from glue_jobs.spark.engine import Shared, chain
from glue_jobs.spark.joined_files import Joining, Written, of_groups
from glue_jobs.spark.key_notes import KeyNotes, Noting
from glue_jobs.spark.merge_file import FileMerge, Tally
from glue_jobs.spark.net_changes import NetChanges
from glue_jobs.spark.open_file import OpenFile
from glue_jobs.spark.place import Place, Shape
from glue_jobs.spark.row_batches import batch_rows_of
from glue_jobs.spark.side_by_side import in_order, read_ahead
from glue_jobs.spark.stored_groups import StoredGroup
from glue_jobs.spark.write_files import WriteOptions, give_up, write_tables

_R = TypeVar("_R")

# Of keys and of a filter's sections, multiplied: a section says of one key in ten millions that it may be there, and it is not. Where a
# file would be taken for hit in vain more often than once in ten, those sections are searched.
BELIEVED = 2**20


@dataclass(frozen=True)
class FileResult:
    """What became of one candidate. replaced: it is superseded, by what its group wrote, or by nothing where no row is left. hits, moved:
    places in the net changes. dropped: how many of its rows went. filters: its own, if it stays."""

    path: str
    replaced: bool
    hits: np.ndarray[Any, Any]
    moved: np.ndarray[Any, Any]
    dropped: int = 0
    filters: tuple[KeyFilter, ...] = ()


@dataclass(frozen=True)
class GroupResult:
    """What became of the files of a group, and what replaces them. Nothing is said of a file that stays and need not have been joined;
    trouble: why those of a whole group do."""

    files: tuple[FileResult, ...]
    written: Written
    trouble: str = ""


@dataclass(frozen=True)
class MergeBin:
    """One task: groups of data files, which files are only searched because the second step rewrites them, and which groups are joined
    although they hold no changed key."""

    groups: tuple[Group, ...]
    locate_only: frozenset[str]
    tidied: tuple[Tidied, ...] = ()


@dataclass(frozen=True)
class _Searched:
    """A file of a group. rows: those that it has after the merge, None if it stays; `tally` is whole when they have been read."""

    opened: OpenFile
    tally: Tally
    rows: Iterable[pa.Table] | None
    filters: tuple[KeyFilter, ...] = ()

    def result(self) -> FileResult:
        return _result(self.opened, self.rows is not None, self.tally, self.filters)


@dataclass(frozen=True)
class MergeTask:
    """Merges net changes into the files of one bin."""

    place: Place
    shape: Shape
    shared: Shared[NetChanges]
    rewrite_all: bool
    renames: tuple[tuple[str, str], ...]
    noting: Noting

    def __call__(self, task: MergeBin) -> list[GroupResult]:
        net, notes = self.shared.get(), KeyNotes(self.shape, self.noting)
        tidied = {each.group[0].path: each for each in task.tidied}
        rows = sum(file.rows for each in task.tidied for file in each.group)
        notes_besides = KeyNotes(self.shape, self.noting.for_rows(rows))
        done: list[GroupResult] = []

        def one(file: DataFile) -> GroupResult:
            done.append(result := self._one(net, file, file.path in task.locate_only, notes))
            return result

        def several(group: Group, threads: ThreadPoolExecutor) -> Callable[[], GroupResult]:
            if group[0].path in tidied:
                end = self._tidied(net, tidied[group[0].path], notes_besides, threads)
            else:
                end = self._joined(net, group, notes, threads)

            def noted() -> GroupResult:
                done.append(result := end())
                return result

            return noted

        try:
            return of_groups(one, several, task.groups, _file_size)
        except BaseException:
            give_up(self.place, chain(result.written.files for result in done))
            raise

    def _one(self, net: NetChanges, file: DataFile, locate_only: bool, notes: KeyNotes) -> GroupResult:
        """A file that stays a file of its own: its rows go from it to its replacement a piece at a time."""
        opened = notes.watch(OpenFile.open(self.place, self.shape, file, self.renames, encoded=not locate_only))
        told = notes.told_of(opened)
        is_told = True in told and net.rows * len(told) <= BELIEVED
        told = told if is_told else tuple(False if each is False else None for each in told)
        merge, tally = FileMerge(opened, net, told), Tally()
        if locate_only:
            merge.locate(tally)
        if locate_only or not (self.rewrite_all or is_told or merge.has_hits()):
            return GroupResult((_result(opened, False, tally, notes.of_searched(opened)),), Written())
        notes.count_hit(file)
        pieces = merge.rows(tally) if self.rewrite_all else merge.pieces(tally)
        with notes.of_rows() as rows:
            options = WriteOptions(opened.dictionary, split=False, on_group=rows.cut)
            with read_ahead(rows.passing(pieces), _memory_to_read(opened)) as merged:
                added = write_tables(self.place, self.shape, file.partition, merged, options)
            return GroupResult((_result(opened, True, tally),), Written(tuple(added), notes.of_written(added, rows)))

    def _tidied(self, net: NetChanges, tidied: Tidied, notes: KeyNotes, threads: ThreadPoolExecutor) -> Callable[[], GroupResult]:
        """Files that no change needs: one that is gone, damaged or archived keeps them as they are, and the batch is applied."""

        def or_as_they_are(work: Callable[[], _R]) -> _R | GroupResult:
            try:
                return work()
            except (TableBlocked, ClientError, BotoCoreError) as error:
                return GroupResult((), Written(), error.message if isinstance(error, TableBlocked) else str(error))

        end = or_as_they_are(lambda: self._joined(net, tidied.group, notes, threads, tidied))
        return (lambda: end) if isinstance(end, GroupResult) else lambda: or_as_they_are(end)

    def _joined(
        self,
        net: NetChanges,
        group: Group,
        notes: KeyNotes,
        threads: ThreadPoolExecutor,
        tidied: Tidied | None = None,
    ) -> Callable[[], GroupResult]:
        """Neighbours: read and merged a few at a time, written one after the other. What it returns sends the last rows.

        One that holds no changed key stays as it is, and where keys ascend the next one begins a file. If all are rewritten, none stays;
        of files that are tidied up, those stay without which the file is large enough.
        """

        def search(file: DataFile) -> _Searched:
            opened = notes.watch(OpenFile.open(self.place, self.shape, file, self.renames))
            merge, tally = FileMerge(opened, net), Tally()
            if tidied is None and not self.rewrite_all:
                if not merge.has_hits():
                    return _Searched(opened, tally, None, notes.of_searched(opened))
                notes.count_hit(file)
            rows = merge.rows(tally)
            # A small file of very many rows would not lie in memory: it is read when its turn comes.
            return _Searched(opened, tally, list(rows) if opened.whole else rows)

        joining = Joining(self.place, self.shape, notes, is_ascending(group, self.shape.key_types))
        found: list[FileResult] = []
        with joining.or_abort(), in_order(search, group, _file_size, threads) as searched:
            for each in searched:
                joining.take(each.opened.file, each.rows)
                found.append(each.result())
                del each  # its rows: the next file is being read
                if tidied is not None and tidied.is_enough(self.place.limits, joining.size_bytes, len(found)):
                    break
        return lambda: GroupResult(tuple(found), joining.finish())


def _memory_to_read(opened: OpenFile) -> Callable[[pa.Table | StoredGroup], int | None]:
    """The bytes of as many rows as are read at a time, as wide as those of a merged piece: of most of its rows a merge may leave few, and
    those that come ahead are read all the same. A row group that is copied, and a piece without rows, does not tell how wide others are."""
    rows_read = batch_rows_of(opened.parquet)

    def memory(piece: pa.Table | StoredGroup) -> int | None:
        if isinstance(piece, StoredGroup) or not piece.num_rows:
            return None
        return int(piece.nbytes / piece.num_rows * rows_read)

    return memory


def _file_size(file: DataFile) -> int:
    return file.size_bytes


def _result(opened: OpenFile, replaced: bool, tally: Tally, filters: tuple[KeyFilter, ...] = ()) -> FileResult:
    return FileResult(opened.file.path, replaced, tally.all_hits(), tally.all_moved(), tally.dropped, filters)
