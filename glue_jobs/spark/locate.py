"""Which data files hold rows of given keys. The key may be of any columns, and need not be unique; null never matches.

Two steps: `candidates_by_range` leaves out files by what the records say, without a request; `locate` reads the key's columns of the rest.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import takewhile
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from glue_jobs.core.bins import bins_of_slots
from glue_jobs.core.collation import EXACT, column_collation
from glue_jobs.core.keys import decode_bound, slice_of
from glue_jobs.core.record import DataFile
from glue_jobs.core.schema import Schema, find
from glue_jobs.spark.arrow_types import conform
from glue_jobs.spark.engine import Engine, Shared, chain
from glue_jobs.spark.key_columns import comparable_column, comparables, normalised_keys, sort_by_key
from glue_jobs.spark.key_index import KeyIndex
from glue_jobs.spark.open_file import OpenFile
from glue_jobs.spark.partition_columns import value_of, with_partition_columns
from glue_jobs.spark.past import PastFile
from glue_jobs.spark.place import Place, Shape

Places = np.ndarray[Any, Any]


@dataclass(frozen=True)
class GivenKeys:
    """Distinct keys, none with a null. columns: those of the key; table: these columns alone, in the lake's types, and in the form in which
    they are compared."""

    columns: tuple[str, ...]
    table: pa.Table

    @classmethod
    def of(cls, rows: pa.Table, columns: Sequence[str]) -> GivenKeys:
        """The keys of `rows`, each once, in the order in which they first appear; a row with a null in its key has none."""
        keys = normalised_keys(rows, columns)
        if any(column.null_count for column in keys.columns):
            keys = keys.drop_null()
        # Plain names: a column may have any name, also one that a group_by makes.
        plain = [str(at) for at in range(len(columns))]
        distinct = keys.rename_columns(plain).group_by(plain, use_threads=False).aggregate([]).select(plain)
        return cls(tuple(columns), distinct.rename_columns(list(columns)).combine_chunks())

    def __len__(self) -> int:
        return int(self.table.num_rows)

    @cached_property
    def index(self) -> KeyIndex:
        return KeyIndex(self.table, self.columns)

    def places(self, rows: pa.Table) -> Places:
        """For each row the place of its key here, −1 where it is none of these."""
        if not len(self):
            return np.full(rows.num_rows, -1, np.int64)
        found = self.index.positions(rows)
        found = found.combine_chunks() if isinstance(found, pa.ChunkedArray) else found
        return np.asarray(found.fill_null(-1).to_numpy(zero_copy_only=False)).astype(np.int64)

    def pack(self) -> bytes:
        """The keys as bytes that `unpack_keys` reads."""
        return pickle.dumps((self.columns, packed(self.table)))


def packed(table: pa.Table) -> bytes:
    """A table as an Arrow stream."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue().to_pybytes())


def unpack_keys(payload: bytes) -> GivenKeys:
    """The keys that `GivenKeys.pack` packed."""
    columns, data = pickle.loads(payload)
    return GivenKeys(columns, pa.ipc.open_stream(data).read_all().combine_chunks())


@dataclass(frozen=True)
class Located:
    """A data file that holds given keys. hits: their places in the keys, ascending; counts: the rows of each; rows: all of them."""

    path: str
    version: str
    hits: Places
    counts: Places

    @property
    def rows(self) -> int:
        return int(self.counts.sum())


def candidates_by_range(keys: GivenKeys, shape: Shape, files: Sequence[PastFile]) -> list[PastFile]:
    """The files that may hold one of the keys, by the records: key ranges, where the key has the first columns of the primary key,
    and partitions, where it has a column that is one. shape: that of the change whose files these are."""
    if not len(keys):
        return []
    ranges, partitions = _Ranges(keys, shape), _Partitions(keys, shape)
    return [each for each in files if each.file.rows and ranges.may_hold(each.file) and partitions.may_hold(each.file)]


class _Ranges:
    """Key ranges, looked at as far as the key has the primary key's first columns."""

    def __init__(self, keys: GivenKeys, shape: Shape) -> None:
        prefix = list(takewhile(lambda name: _is_ranged(keys, name), shape.key))
        self._width = len(prefix)
        self._types = shape.key_types[: self._width]
        self._keys = comparables(sort_by_key(keys.table.select(prefix), prefix), prefix) if prefix else ()

    def may_hold(self, file: DataFile) -> bool:
        if not self._width:
            return True
        low, high = (decode_bound(self._types, bound and bound[: self._width]) for bound in (file.low, file.high))
        start, stop = slice_of(self._keys, self._width, low or None, high or None)
        return stop > start


def _is_ranged(keys: GivenKeys, name: str) -> bool:
    """Whether the bounds of a primary key's column say where keys may be: not if the keys are in the form of another collation."""
    column = next((column for column in keys.columns if column == name), None)
    return column is not None and column_collation(column) in (EXACT, column_collation(name))


class _Partitions:
    """Partition folders that stand for a column of the key."""

    def __init__(self, keys: GivenKeys, shape: Shape) -> None:
        self._fields = [(at, field.column) for at, field in enumerate(shape.partitioning) if _stands_for(field, keys)]
        self._keys = keys
        self._known: dict[tuple[int, str | None], bool] = {}

    def may_hold(self, file: DataFile) -> bool:
        return all(self._has(at, name, file.partition[at]) for at, name in self._fields if at < len(file.partition))

    def _has(self, at: int, name: str, text: str | None) -> bool:
        if (at, text) not in self._known:
            self._known[at, text] = text is not None and self._is_key(name, text)
        return self._known[at, text]

    def _is_key(self, name: str, text: str) -> bool:
        column = next(column for column in self._keys.columns if column == name)
        values = self._keys.table.column(column)
        try:
            value = value_of(text, values.type)
        except (ValueError, pa.ArrowException):
            return True  # a folder that says no value: reading the file says so
        return bool(pc.is_in(comparable_column(pa.repeat(value, 1), column), value_set=values.combine_chunks())[0].as_py())


def _stands_for(field: Any, keys: GivenKeys) -> bool:
    return field.transform == "identity" and field.column in keys.columns


def locate(engine: Engine, place: Place, shape: Shape, keys: GivenKeys, files: Sequence[PastFile]) -> list[Located]:
    """Those of the files that hold given keys, in the files' order. Only the key's columns are read.

    A file that has not all of them (written before the table had the column) holds none.
    """
    if not len(keys) or not files:
        return []
    shared = engine.share(keys.pack(), unpack_keys)
    bins = bins_of_slots(files, lambda each: each.file.size_bytes, engine.slots)
    found = chain(engine.map(_LocateTask(place, shape, shared), bins))
    order = {(each.file.path, each.version): at for at, each in enumerate(files)}
    return sorted(found, key=lambda located: order[located.path, located.version])


@dataclass(frozen=True)
class _LocateTask:
    place: Place
    shape: Shape
    shared: Shared[GivenKeys]

    def __call__(self, files: tuple[PastFile, ...]) -> list[Located]:
        keys = self.shared.get()
        found = [self._one(keys, each) for each in files]
        return [each for each in found if each is not None]

    def _one(self, keys: GivenKeys, each: PastFile) -> Located | None:
        counted = np.zeros(len(keys), np.int64)
        for rows in column_batches(self.place, self.shape, each, keys.columns):
            places = keys.places(rows)
            counted += np.bincount(places[places >= 0], minlength=len(keys))
        hits = np.flatnonzero(counted)
        return Located(each.file.path, each.version, hits, counted[hits]) if len(hits) else None


def column_batches(
    place: Place, shape: Shape, each: PastFile, columns: Sequence[str], *, lacking_is_null: bool = False
) -> Iterator[pa.Table]:
    """Some of a file's columns in the lake's types, batch by batch. If it lacks one of them: nothing, or null there."""
    wanted = tuple(column for column in (find(shape.schema, name) for name in columns) if column is not None)
    if len(wanted) < len(columns):
        return
    in_folder = {field.column for field in shape.partitioning if field.transform == "identity"}
    if all(column.name in in_folder for column in wanted):
        yield _from_folder(shape, each.file, wanted)  # no row needs to be read
        return
    opened = OpenFile.open(place, narrowed(shape, columns), each.file, version=each.version or None)
    there = in_folder | set(opened.parquet.schema_arrow.names)
    if lacking_is_null or all(column.name in there for column in wanted):
        yield from opened.key_batches()


def narrowed(shape: Shape, columns: Sequence[str]) -> Shape:
    """The shape with these columns as its key: what OpenFile reads as the key's columns."""
    return Shape(shape.table, shape.schema, tuple(columns), shape.partitioning, shape.empty_as_null)


def _from_folder(shape: Shape, file: DataFile, wanted: Schema) -> pa.Table:
    rows = pa.table({"": pa.nulls(file.rows)})
    return conform(with_partition_columns(rows, shape.partitioning, file.partition, shape.schema), wanted, file.path)
