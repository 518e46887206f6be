"""Applying a batch of CDC files: read → rank → find candidates → rewrite impacted files → write what no file held."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa

from glue_jobs.core.bins import BINS_PER_SLOT, bins_of_slots
from glue_jobs.core.key_filter import KeyFilter
from glue_jobs.core.keys import decode_bound
from glue_jobs.core.neighbours import Group, Tidied, to_tidy
from glue_jobs.core.partitioning import PartitionValues
from glue_jobs.core.record import Counts, DataFile
from glue_jobs.spark.engine import Engine, Shared, chain
from glue_jobs.spark.joined_files import Written, to_join
from glue_jobs.spark.key_filters import Search
from glue_jobs.spark.key_notes import KeyNotes, Noting
from glue_jobs.spark.merge_file import FileMerge, Tally
from glue_jobs.spark.merge_task import FileResult, GroupResult, MergeBin, MergeTask
from glue_jobs.spark.net_changes import DELETE, NetChanges, Unpacker
from glue_jobs.spark.open_file import OpenFile
from glue_jobs.spark.place import Place, Shape
from glue_jobs.spark.row_balance import check_balance
from glue_jobs.spark.taken_up import new_rows, options_of, taken_up
from glue_jobs.spark.write_files import WriteOptions, given_up_on_error, write_tables

ROWS_PER_INSERT_TASK = 1_000_000


@dataclass(frozen=True)
class Merged:
    """The outcome of a merge, by whichever strategy. filters: of files that are in the table after it; details: for the record."""

    added: tuple[DataFile, ...]
    superseded: tuple[str, ...]
    counts: Counts
    filters: tuple[KeyFilter, ...] = ()
    details: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class InsertTask:
    """One task of the second step: rows of one partition that no file held, and the small file that takes them up."""

    partition: PartitionValues
    positions: np.ndarray[Any, Any]
    absorber: DataFile | None


def merge_net_changes(
    engine: Engine,
    place: Place,
    shape: Shape,
    net: NetChanges,
    files: Sequence[DataFile],
    *,
    rewrite_all: bool = False,
    renames: tuple[tuple[str, str], ...] = (),
    found: Search | None = None,
) -> Merged:
    """Merge net changes that fit into every task's memory into a table's data files. Small ones that they do not meet are joined besides,
    where there are many.

    rewrite_all: rewrite every file, also those without a hit (their columns change). found: the candidates, where they are known.
    """
    place = replace(place, alone=engine.slots == 1)
    found = found or Search(tuple(candidates(net, files, rewrite_all)))
    shared = engine.share(net.pack(), Unpacker(shape, net.partitions))
    absorbers = absorbers_of(set(net.partitions), files, place.limits.small_file_bytes, shape.key_types)
    locate_only = frozenset(file.path for file in absorbers.values())
    share_bytes = sum(file.size_bytes for file in found.files) / (engine.slots * BINS_PER_SLOT)  # no core is left without work
    groups = to_join(place.limits, shape, [file for file in found.files if file.path not in locate_only], files, share_bytes)
    groups += [(file,) for file in found.files if file.path in locate_only]
    tidied = [] if rewrite_all else _to_tidy(place, shape, net, found, files, locate_only)
    bins = _bins(engine.slots, groups, locate_only, tidied)
    noting = found.noting(len(bins), sum(file.rows for each in tidied for file in each.group))
    done = chain(engine.map(MergeTask(place, shape, shared, rewrite_all, renames, noting), bins))
    results = chain(group.files for group in done)
    inserts = _insert_tasks(net, results, absorbers)
    used = {task.absorber.path for task in inserts if task.absorber}
    inserts += _rewrites_of_idle_absorbers(results, absorbers, used, rewrite_all)
    useful = found.is_useful(sum(1 for result in results if len(result.hits)))
    noting = replace(found.noting(len(inserts)), known={}) if useful else Noting()
    written = [group.written for group in done]
    with given_up_on_error(place, chain(each.files for each in written)):
        written += engine.map(_InsertRun(place, shape, shared, renames, noting), inserts)
    engine.drop(shared)  # a backlog has many batches, and a node one disk
    merged = replace(_outcome(net, results, inserts, written, useful), details=_of_tidied(tidied, done))
    _check(place, shape, files, results, inserts, merged)
    return merged


def _to_tidy(
    place: Place, shape: Shape, net: NetChanges, found: Search, table: Sequence[DataFile], locate_only: frozenset[str]
) -> list[Tidied]:
    """Small files to be joined beside the candidates that were `found`, in the partitions that the batch writes to."""
    partitions = {*net.partitions, *(file.partition for file in found.files)}
    taken = {file.path for file in found.files} | locate_only
    return to_tidy(table, partitions, taken, shape.key_types, place.limits, found.most_joined_rows)


def _of_tidied(tidied: Sequence[Tidied], groups: Sequence[GroupResult]) -> dict[str, Any]:
    """What became of them, for the change's details."""
    if not tidied:
        return {}
    paths = {file.path for each in tidied for file in each.group}
    trouble = next((group.trouble for group in groups if group.trouble), "")
    joined = sum(result.replaced for group in groups for result in group.files if result.path in paths)
    return {"files_tidied": joined, **({"tidy_trouble": trouble[:500]} if trouble else {})}


def _bins(slots: int, groups: Sequence[Group], locate_only: frozenset[str], tidied: Sequence[Tidied]) -> list[MergeBin]:
    """The groups as tasks, with those that are joined besides."""
    besides = [each.group for each in tidied]
    bins = bins_of_slots([*groups, *besides], lambda group: sum(file.size_bytes for file in group), slots)
    return [MergeBin(some, locate_only, tuple(each for each in tidied if each.group in some)) for some in bins]


def candidates(net: NetChanges, files: Sequence[DataFile], rewrite_all: bool = False) -> list[DataFile]:
    """The data files whose key range meets a changed key, by the ranges in the records: no request is made."""
    if rewrite_all:
        return list(files)
    return [file for file in files if net.shape.key and len(range(*net.slice_for(file)))]


def absorbers_of(
    wanted: set[PartitionValues], files: Sequence[DataFile], small_bytes: int, key_types: Sequence[str] = ()
) -> dict[PartitionValues, DataFile]:
    """For each partition of `wanted`: the small file that takes up what is inserted there, if there is one.

    With the types of the key that the files are sorted by, the one whose keys reach furthest: mostly new keys are the greatest, and
    elsewhere they would widen the key range of one old file after the other. Else the smallest.
    """
    chosen: dict[PartitionValues, tuple[Any, DataFile]] = {}
    for file in files:
        if file.partition in wanted and file.size_bytes < small_bytes:
            high = decode_bound(key_types, file.high) if key_types else None
            rank = (high is not None, high or (), -file.size_bytes)
            if file.partition not in chosen or rank > chosen[file.partition][0]:
                chosen[file.partition] = (rank, file)
    return {partition: file for partition, (_, file) in chosen.items()}


def _insert_tasks(net: NetChanges, results: Sequence[FileResult], absorbers: dict[PartitionValues, DataFile]) -> list[InsertTask]:
    """Rows that no file held, and rows that leave their partition, by the partition they belong to."""
    wanted = net.bring_rows
    for result in results:
        wanted[result.hits] = False
    for result in results:
        wanted[result.moved] = True
    positions = np.flatnonzero(wanted)
    if not len(positions):
        return []
    codes = net.codes[positions]
    order = np.argsort(codes, kind="stable")
    present, starts = np.unique(codes[order], return_index=True)
    tasks: list[InsertTask] = []
    for code, rows in zip(present, np.split(positions[order], starts[1:]), strict=True):
        partition = net.partitions[code]
        pieces = np.array_split(rows, -(-len(rows) // ROWS_PER_INSERT_TASK))
        absorber = absorbers.get(partition)
        tasks += [InsertTask(partition, piece, absorber if at == 0 else None) for at, piece in enumerate(pieces)]
    return tasks


def _rewrites_of_idle_absorbers(
    results: Sequence[FileResult], absorbers: dict[PartitionValues, DataFile], used: set[str], rewrite_all: bool
) -> list[InsertTask]:
    """Small files that were kept for inserts which did not come, but that hold changed rows."""
    hit = {result.path for result in results if len(result.hits) or rewrite_all}
    nothing = np.empty(0, np.int64)
    return [InsertTask(file.partition, nothing, file) for file in absorbers.values() if file.path in hit - used]


@dataclass(frozen=True)
class _InsertRun:
    place: Place
    shape: Shape
    shared: Shared[NetChanges]
    renames: tuple[tuple[str, str], ...]
    noting: Noting

    def __call__(self, task: InsertTask) -> Written:
        notes = KeyNotes(self.shape, self.noting)
        rows = notes.of_rows()
        pieces, options = self._pieces(task)
        files = write_tables(self.place, self.shape, task.partition, rows.passing(pieces), options)
        return Written(tuple(files), notes.of_written(files, rows))

    def _pieces(self, task: InsertTask) -> tuple[Iterator[pa.Table], WriteOptions]:
        net = self.shared.get()
        if task.absorber is None:
            return new_rows(net, task.positions), WriteOptions()
        opened = OpenFile.open(self.place, self.shape, task.absorber, self.renames, encoded=True)
        return taken_up(opened, net, FileMerge(opened, net).rows(Tally()), task.positions), options_of(opened)


def _check(
    place: Place,
    shape: Shape,
    files: Sequence[DataFile],
    results: Sequence[FileResult],
    inserts: Sequence[InsertTask],
    merged: Merged,
) -> None:
    """The rows that are written are those of the replaced files, less what was dropped there, and what was inserted."""
    gone = set(merged.superseded)
    kept = sum(file.rows for file in files if file.path in gone) - sum(result.dropped for result in results if result.path in gone)
    expected = kept + sum(len(task.positions) for task in inserts)
    check_balance(place, shape.table, merged.added, expected, "the merged files")


def _outcome(
    net: NetChanges, results: Sequence[FileResult], inserts: Sequence[InsertTask], written: Sequence[Written], useful: bool
) -> Merged:
    hit = np.zeros(net.rows, bool)
    for result in results:
        hit[result.hits] = True
    deletes = net.ops == DELETE
    added = chain(each.files for each in written)
    superseded = [result.path for result in results if result.replaced] + [task.absorber.path for task in inserts if task.absorber]
    counts = Counts(
        inserted=int((~hit & net.bring_rows).sum()),
        updated=int((hit & ~deletes).sum()),
        deleted=int((hit & deletes).sum()),
    )
    filters = [each for result in results for each in result.filters] + chain(each.filters for each in written)
    gone = set(superseded)
    return Merged(tuple(added), tuple(superseded), counts, tuple(each for each in filters if useful and each.path not in gone))
