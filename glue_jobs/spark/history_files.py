"""The files of a history table: reading versions with the place where they stand, ending versions in place, writing new ones.

A place is one integer: the file's number among those of the snapshot, then the row in it. The key range of a history's file, in the
records, is that of its open versions (those that are their key's latest); a file without any has none and is never looked at again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from glue_jobs.core.bins import bins_of_slots
from glue_jobs.core.history_table import FLAG, OPERATION, PARTITIONING, VALID_TO
from glue_jobs.core.partitioning import PartitionValues
from glue_jobs.core.record import DataFile
from glue_jobs.spark.engine import Engine, chain
from glue_jobs.spark.key_columns import sort_by_key
from glue_jobs.spark.locate import GivenKeys, candidates_by_range, packed
from glue_jobs.spark.merge import absorbers_of
from glue_jobs.spark.open_file import OpenFile
from glue_jobs.spark.partition_columns import partition_values, split_by_partition
from glue_jobs.spark.past import PastFile
from glue_jobs.spark.place import Place, Shape
from glue_jobs.spark.row_versions import Array, as_times, with_place
from glue_jobs.spark.write_files import WriteOptions, write_tables

ROW_BITS = 40
_ROWS = (1 << ROW_BITS) - 1
Numbered = tuple[int, DataFile]
Renames = tuple[tuple[str, str], ...]


def _none() -> Array:
    return np.empty(0, np.int64)


@dataclass(frozen=True)
class Edits:
    """What becomes of versions that are there, by place, ascending. closed: they end, each at its time in closed_at (microseconds since
    1970); removed: they go, since they are written anew elsewhere."""

    closed: Array = field(default_factory=_none)
    closed_at: Array = field(default_factory=_none)
    removed: Array = field(default_factory=_none)

    @classmethod
    def of(cls, closed: Array, closed_at: Array, removed: Array | None = None) -> Edits:
        order = np.argsort(closed)
        return cls(closed[order], closed_at[order], _none() if removed is None else np.sort(removed))

    @classmethod
    def joined(cls, several: Sequence[Edits]) -> Edits:
        """All of them; no version is in two."""
        closed, closed_at, removed = (
            np.concatenate([_none(), *(getattr(each, name) for each in several)]) for name in ("closed", "closed_at", "removed")
        )
        return cls.of(closed, closed_at, removed)

    def in_file(self, number: int) -> Edits:
        """Those of one file, by row."""
        bounds = (number << ROW_BITS, (number + 1) << ROW_BITS)
        start, stop = np.searchsorted(self.closed, bounds)
        first, last = np.searchsorted(self.removed, bounds)
        return Edits(self.closed[start:stop] & _ROWS, self.closed_at[start:stop], self.removed[first:last] & _ROWS)

    def files(self) -> set[int]:
        """The numbers of the files that they touch."""
        return set(np.unique(np.concatenate([self.closed, self.removed]) >> ROW_BITS).tolist())


# --- reading


def open_files(files: Sequence[DataFile]) -> list[Numbered]:
    """The files that have open versions, with their numbers."""
    return [(number, file) for number, file in enumerate(files) if file.low is not None]


def with_keys(keys: GivenKeys, shape: Shape, files: Sequence[Numbered]) -> list[Numbered]:
    """Those of the files that may have an open version of one of the keys, by the records."""
    found = {each.file.path for each in candidates_by_range(keys, shape, [PastFile(file, "") for _, file in files])}
    return [(number, file) for number, file in files if file.path in found]


def versions(place: Place, shape: Shape, file: Numbered, wanted: Callable[[pa.Table], Array]) -> Iterator[pa.Table]:
    """Versions of one file as entries that come before all else of their key. wanted: a mask of rows, from the key's columns, the flag
    and the operation alone; where it finds none, nothing else of the file is read."""
    looked_at = Shape(shape.table, shape.schema, (*shape.key, FLAG, OPERATION), shape.partitioning, shape.empty_as_null)
    number, opened = file[0], OpenFile.open(place, looked_at, file[1])
    masks = [wanted(rows) for rows in opened.key_batches()]
    if not any(mask.any() for mask in masks):
        return
    mask, start = np.concatenate(masks), 0
    for rows in opened.batches():
        places = np.flatnonzero(mask[start : start + rows.num_rows])
        if len(places):
            order = pa.repeat(pa.scalar(-1, pa.int64()), len(places))
            yield with_place(rows.take(pa.array(places)), order, (number << ROW_BITS) + start + places)
        start += rows.num_rows


def is_open(rows: pa.Table) -> Array:
    """A mask of the open versions."""
    return np.asarray(pc.equal(rows[FLAG], 1).to_numpy())


def only_open(rows: pa.Table) -> pa.Table:
    return rows.filter(pc.equal(rows[FLAG], 1))


# --- writing


@dataclass(frozen=True)
class FileEdit:
    """One task's work on one partition. file: None for a new one; rows: new versions, packed, b'' for none."""

    partition: PartitionValues
    file: DataFile | None
    edits: Edits
    rows: bytes

    @property
    def size_bytes(self) -> int:
        return len(self.rows) + (self.file.size_bytes if self.file else 0)


def write_edits(
    engine: Engine,
    place: Place,
    shape: Shape,
    files: Sequence[DataFile],
    edits: Edits,
    rows: pa.Table,
    *,
    also: Sequence[int] = (),
    renames: Renames = (),
) -> tuple[list[DataFile], list[str]]:
    """(files written as uploads that are not completed, paths superseded). rows: new versions; also: numbers of files that are rewritten
    though nothing happens to their rows (their columns or their key change). Nothing touches a file that is not named by one of these,
    but a partition's smallest small file takes up its new versions."""
    parts = dict(by_partition(rows, shape))
    absorbers = absorbers_of(set(parts), files, place.limits.small_file_bytes)
    taking = {file.path: values for values, file in absorbers.items()}
    touched = {*edits.files(), *also, *(number for number, file in enumerate(files) if file.path in taking)}
    tasks = []
    for number in sorted(touched):
        new = parts.pop(taking[files[number].path]) if files[number].path in taking else None
        tasks.append(FileEdit(files[number].partition, files[number], edits.in_file(number), b"" if new is None else packed(new)))
    tasks += [FileEdit(values, None, Edits(), packed(new)) for values, new in parts.items()]
    bins = bins_of_slots(tasks, lambda task: task.size_bytes, engine.slots)
    written = engine.map(_EditTask(place, shape, renames), bins)
    return chain(written), [files[number].path for number in sorted(touched)]


def by_partition(rows: pa.Table, shape: Shape) -> Iterator[tuple[PartitionValues, pa.Table]]:
    """New versions by the month from which they are valid, each month's sorted by key."""
    values = partition_values(rows, PARTITIONING, shape.schema, shape.empty_as_null, shape.table)
    for partition, part in split_by_partition(rows, values):
        yield partition, sort_by_key(part, shape.key)


def write_rows(place: Place, shape: Shape, rows: pa.Table) -> list[DataFile]:
    """New versions as files of their own."""
    parts = by_partition(rows, shape)
    return chain(write_tables(place, shape, values, [part], WriteOptions(ranged=only_open)) for values, part in parts)


@dataclass(frozen=True)
class _EditTask:
    place: Place
    shape: Shape
    renames: Renames

    def __call__(self, tasks: tuple[FileEdit, ...]) -> list[DataFile]:
        return chain(self._one(task) for task in tasks)

    def _one(self, task: FileEdit) -> list[DataFile]:
        new = [pa.ipc.open_stream(task.rows).read_all()] if task.rows else []
        if task.file is None:
            return write_tables(self.place, self.shape, task.partition, new, WriteOptions(ranged=only_open))
        opened = OpenFile.open(self.place, self.shape, task.file, self.renames)
        rows: Any = edited(opened.batches(), task.edits)
        if new and opened.whole:
            rows = [sort_by_key(pa.concat_tables([*rows, *new]), self.shape.key)]
        elif new:
            rows = (table for tables in (rows, new) for table in tables)
        options = WriteOptions(opened.dictionary, split=bool(new), ranged=only_open)
        return write_tables(self.place, self.shape, task.partition, rows, options)


def edited(tables: Iterator[pa.Table], edits: Edits) -> Iterator[pa.Table]:
    """The file's rows after the edits (of this file, by row), in their order, in pieces."""
    start = 0
    for table in tables:
        stop = start + table.num_rows
        first, last = np.searchsorted(edits.closed, (start, stop))
        gone = edits.removed[slice(*np.searchsorted(edits.removed, (start, stop)))] - start
        rows = _closed(table, edits.closed[first:last] - start, edits.closed_at[first:last])
        if len(gone):
            stays = np.ones(rows.num_rows, bool)
            stays[gone] = False
            rows = rows.filter(pa.array(stays))
        yield rows
        start = stop


def _closed(rows: pa.Table, places: Array, times: Array) -> pa.Table:
    """The rows, those at `places` ended."""
    if not len(places):
        return rows
    ends, moments = np.zeros(rows.num_rows, bool), np.zeros(rows.num_rows, np.int64)
    ends[places], moments[places] = True, times
    mask = pa.array(ends)
    for name, values in ((VALID_TO, as_times(moments)), (FLAG, pa.scalar(0, pa.int32()))):
        at = rows.column_names.index(name)
        rows = rows.set_column(at, rows.schema.field(at), pc.if_else(mask, values, rows[name]))
    return rows
