"""Erasing rows of given keys: which versions hold them, and the head's files without them.

Every version is looked into by itself, whatever columns and types it has: only where a record knows it, with its key range or its
partition, and these say that it can't hold a key, it is not read.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from itertools import product
from typing import Any
from urllib.parse import unquote

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from glue_jobs.aws.ranged import open_object
from glue_jobs.core.bins import bins_of_slots
from glue_jobs.core.collation import collated_as, is_same_key
from glue_jobs.core.erase_plan import FileShape, Found, Hit, Holdings, Rewritten, Searchable, own_hits
from glue_jobs.core.errors import TableBlocked, UsageError
from glue_jobs.core.partitioning import NULL_FOLDER, values_of
from glue_jobs.core.record import Counts, DataFile
from glue_jobs.core.schema import Column, find
from glue_jobs.core.settings import Settings
from glue_jobs.core.snapshot import Snapshot
from glue_jobs.core.state import TableState
from glue_jobs.spark.arrow_types import conform, lake_type_of
from glue_jobs.spark.data_file_reader import read_columns, read_data_file, read_rows
from glue_jobs.spark.engine import Engines, Shared, chain
from glue_jobs.spark.erased_keys import texts_of_keys
from glue_jobs.spark.given_rows import Reader, refuse_nulls
from glue_jobs.spark.history_files import only_open
from glue_jobs.spark.locate import GivenKeys, Places, candidates_by_range, unpack_keys
from glue_jobs.spark.open_file import OpenFile
from glue_jobs.spark.partition_columns import value_of
from glue_jobs.spark.past import PastFile
from glue_jobs.spark.place import CLIENT_VARIABLES, Place, Shape
from glue_jobs.spark.retyped import places_of_retyped
from glue_jobs.spark.task_errors import brought_back
from glue_jobs.spark.write_files import Rows, WriteOptions, write_tables

READ_THREADS = 8  # of one task; versions are many and mostly small
_GONE = frozenset({"raw-file-gone"})


class RowEraser:
    """Erases the rows of the keys in a file that a person gives. keys: its address; columns: those of the key, () for the primary key."""

    def __init__(self, settings: Settings, environment: Mapping[str, str], keys: str, columns: tuple[str, ...] = ()) -> None:
        self._engines = Engines.of(settings.limits)
        self._settings, self._environment = settings, environment
        self._where, self._columns = keys, columns
        self._keys: GivenKeys | None = None

    def read_keys(self, state: TableState, shape: FileShape) -> None:
        """Read the keys against the columns and the key of the lake table."""
        columns = collated_as(self._columns or shape.primary_key, shape.primary_key)
        if not columns:
            raise UsageError(f"{state.path} has no primary key", "no-key", "give --key with the columns by which rows are found")
        reader = Reader(self._place(state, "").s3, self._settings.limits.apply_bytes)
        pieces = reader.keys(self._where, columns, shape.schema, str(state.path))
        for piece in pieces:
            refuse_nulls(piece, columns, "key")
        keys = GivenKeys.of(pa.concat_tables([piece.rows.select(list(columns)) for piece in pieces]), columns)
        if not len(keys):
            raise UsageError(f"{self._where} has no key", "given-not-read", "give a file with one row for each key")
        self._keys = keys

    def search(self, state: TableState, holdings: Holdings) -> Found:
        """The versions that hold one of the keys."""
        assert self._keys is not None, "the keys are read first"
        place, keys = self._place(state, ""), self._keys
        wanted = [item for item in holdings.searchable if may_hold(keys, str(state.path), item)]
        engine = self._engines.for_files(sum(item.held.size_bytes for item in wanted))
        shared = engine.share(keys.pack(), unpack_keys)
        task = _SearchTask(place, shared)
        bins = bins_of_slots(wanted, lambda item: item.held.size_bytes, engine.slots)
        with brought_back():
            looks = chain(engine.map(task, bins))
        return Found(
            columns=keys.columns,
            texts=tuple(texts_of_keys(keys.table)),
            hits=tuple(Hit(look.item, look.keys, look.rows) for look in looks if look.keys),
            searched=len(holdings.searchable),
            read=len(wanted),
            lacking=sum(look.lacks for look in looks),
            unlike=tuple(sorted({look.item.held.key for look in looks if look.unlike})),
            engine=self._engines.names,
        )

    def rewrite(self, state: TableState, snapshot: Snapshot, found: Found, change: str, *, is_history: bool = False) -> Rewritten:
        """The snapshot's files among the hits without these rows."""
        assert self._keys is not None, "the keys are read first"
        place = self._place(state, change)
        shape = Shape(str(state.path), snapshot.schema, snapshot.primary_key, snapshot.partitioning, True)
        chosen = {hit.item.path: (hit.item, "") for hit in found.hits if hit.item.path in snapshot.files}
        chosen.update((path, (hit.item, hit.item.held.version)) for path, hit in own_hits(snapshot.files, found.hits).items())
        files = [_HeadFile(PastFile(snapshot.files[path], version), item) for path, (item, version) in sorted(chosen.items())]
        engine = self._engines.for_files(sum(each.size_bytes for each in files))
        task = _RewriteTask(place, shape, engine.share(self._keys.pack(), unpack_keys), only_open if is_history else None)
        bins = bins_of_slots(files, lambda each: each.size_bytes, engine.slots)
        with brought_back():
            done = chain(engine.map(task, bins))
        deleted = sum(rows for _, rows in done)
        return Rewritten(tuple(chain(added for added, _ in done)), tuple(sorted(chosen)), Counts(deleted=deleted))

    def _place(self, state: TableState, change: str) -> Place:
        client = tuple((name, self._environment[name]) for name in CLIENT_VARIABLES if self._environment.get(name))
        return Place(client, state.path.bucket, state.lake, change, self._settings.compression, self._settings.limits, state.before_images)


# --- searching


def may_hold(keys: GivenKeys, table: str, item: Searchable) -> bool:
    """Whether a version may hold one of the keys, by what its record says. Where that had other columns, it may."""
    if item.file is None or item.shape is None or not _same_columns(keys, item.shape):
        return True
    shape = Shape(table, item.shape.schema, item.shape.primary_key, item.shape.partitioning)
    return bool(candidates_by_range(keys, shape, [PastFile(item.file, item.held.version)]))


def _same_columns(keys: GivenKeys, shape: FileShape) -> bool:
    kinds = {field.name: lake_type_of(field.type) for field in keys.table.schema}
    return all((column := find(shape.schema, name)) is not None and column.type == kind for name, kind in kinds.items())


@dataclass(frozen=True)
class _Look:
    """What a version holds. keys: positions. lacks: it has not all key columns; unlike: it could not be read or compared."""

    item: Searchable
    keys: tuple[int, ...] = ()
    rows: int = 0
    lacks: bool = False
    unlike: bool = False


@dataclass(frozen=True)
class _SearchTask:
    place: Place
    shared: Shared[GivenKeys]

    def __call__(self, items: tuple[Searchable, ...]) -> list[_Look]:
        keys = self.shared.get()
        with ThreadPoolExecutor(READ_THREADS) as pool:
            return list(pool.map(lambda item: self._look(keys, item), items))

    def _look(self, keys: GivenKeys, item: Searchable) -> _Look:
        held, where = item.held, f"s3://{self.place.lake.bucket}/{item.held.key}"
        limit = self.place.limits.stream_file_bytes
        try:
            source = open_object(self.place.s3, self.place.lake.bucket, held.key, held.size_bytes, version=held.version, whole_up_to=limit)
            parquet = read_data_file(source, where)
            return _VersionRows(item, parquet, held.size_bytes <= limit, where).look(keys)
        except TableBlocked as error:  # a version that expired meanwhile holds nothing; one that is damaged is told
            return _Look(item, unlike=error.code not in _GONE)


@dataclass(frozen=True)
class _VersionRows:
    """The rows of one version, opened."""

    item: Searchable
    parquet: pq.ParquetFile
    whole: bool
    where: str

    def look(self, keys: GivenKeys) -> _Look:
        """Which of the keys stand in it. Keys that a person named by hand are kept in the form that the collation gave them then."""
        found = self._look(keys)
        shape = self.item.shape
        then = collated_as(keys.columns, shape.primary_key) if shape is not None and not self.item.path else keys.columns
        if is_same_key(then, keys.columns):
            return found
        folded = GivenKeys.of(keys.table, then)
        more = self._look(folded)
        also = np.flatnonzero(np.isin(folded.places(keys.table), more.keys))
        return replace(found, keys=tuple(sorted({*found.keys, *map(int, also)})), rows=max(found.rows, more.rows))

    def _look(self, keys: GivenKeys) -> _Look:
        folder = _folder_values(self.item)
        choices = _names(self.item, keys.columns, {*self.parquet.schema_arrow.names, *folder})
        if not all(choices):
            return _Look(self.item, lacks=True)
        hits, rows = np.zeros(len(keys), bool), 0
        for columns in self._batches(tuple(dict.fromkeys(chain(choices))), folder):
            found = _found(keys, choices, columns)
            if found is None:
                return _Look(self.item, unlike=True)
            rows += int((found >= 0).any(axis=0).sum())
            hits[found[found >= 0]] = True
        return _Look(self.item, tuple(int(at) for at in np.flatnonzero(hits)), rows)

    def _batches(self, names: Sequence[str], folder: Mapping[str, str | None]) -> Iterator[dict[str, Any]]:
        """Batches of the columns of these names: Arrow arrays, or the text of the folder with the number of rows."""
        in_file = [name for name in names if name in self.parquet.schema_arrow.names]
        if not in_file:
            yield {name: pa.repeat(pa.scalar(folder[name], pa.string()), self.parquet.metadata.num_rows) for name in names}
            return
        tables = iter([read_columns(self.parquet, in_file, self.where)]) if self.whole else read_rows(self.parquet, in_file, self.where)
        for table in tables:
            repeated = {name: pa.repeat(pa.scalar(folder[name], pa.string()), table.num_rows) for name in names if name not in in_file}
            yield {**repeated, **{name: table.column(name) for name in in_file}}


def _names(item: Searchable, columns: Sequence[str], there: Collection[str]) -> list[tuple[str, ...]]:
    """For each key column the names under which the version may have it: where a record knows its columns, the one that it has, and
    those of before a rename that a history table, which was not kept then, has beside it. there: the columns that the version has."""
    schema = item.shape.schema if item.shape is not None else ()

    def of(name: str) -> tuple[str, ...]:
        older = item.older.get(name, ())
        if find(schema, name) is not None:
            older = tuple(each for each in older if (column := find(schema, each)) is not None and column.absent)
        return tuple(each for each in (name, *older) if each in there)

    return [of(name) for name in columns]


def _folder_values(item: Searchable) -> dict[str, str | None]:
    """Column → text, for columns that stand in the folder's name."""
    if not item.path:
        return {}
    if item.shape is not None:
        pairs = zip(item.shape.partitioning, values_of(item.path, item.shape.partitioning), strict=False)
        return {field.column: text for field, text in pairs if field.transform == "identity"}
    parts = [part.partition("=") for part in item.path.split("/")[:-1] if "=" in part]
    return {unquote(name): None if text == NULL_FOLDER else unquote(text) for name, _, text in parts}


def _found(keys: GivenKeys, choices: Sequence[Sequence[str]], columns: Mapping[str, Any]) -> Places | None:
    """For each choice of names, and in it for each row, the place of its key, −1 for none; None where the values can't be compared."""
    found = [_places(keys, [columns[name] for name in chosen]) for chosen in product(*choices)]
    return None if any(places is None for places in found) else np.stack([places for places in found if places is not None])


def _places(keys: GivenKeys, columns: Sequence[Any]) -> Places | None:
    """For each row the place of its key, −1 for none; None where the values can't be compared."""
    try:
        typed = [_typed(column, field) for column, field in zip(columns, keys.table.schema, strict=True)]
        return keys.places(pa.table(typed, names=list(keys.columns)))
    except (TableBlocked, ValueError, OverflowError, pa.ArrowException):
        return places_of_retyped(keys, columns)


def _typed(values: Any, field: pa.Field) -> Any:
    """The values in the key's type. Raises where one would be another one, or says none."""
    if values.type.equals(field.type):
        return values
    if pa.types.is_string(values.type):
        encoded = (values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values).dictionary_encode()
        read = [value_of(text, field.type).as_py() for text in encoded.dictionary.to_pylist()]
        return pa.array(read, field.type).take(encoded.indices)
    column = Column(field.name, lake_type_of(field.type) or "")
    return conform(pa.table([values], names=[field.name]), (column,), "").column(0)


# --- the head's files


@dataclass(frozen=True)
class _HeadFile:
    """A file of the head's snapshot, and what the search knew of it."""

    past: PastFile
    item: Searchable

    @property
    def size_bytes(self) -> int:
        return self.past.file.size_bytes


@dataclass(frozen=True)
class _RewriteTask:
    """ranged: which rows a file's key range is of, None for all."""

    place: Place
    shape: Shape
    shared: Shared[GivenKeys]
    ranged: Rows | None = None

    def __call__(self, files: tuple[_HeadFile, ...]) -> list[tuple[list[DataFile], int]]:
        keys = self.shared.get()
        return [self._one(keys, each) for each in files]

    def _one(self, keys: GivenKeys, each: _HeadFile) -> tuple[list[DataFile], int]:
        """(the file without the rows, how many went); no file where no row is left."""
        file = each.past.file
        opened = OpenFile.open(self.place, self.shape, file, version=each.past.version or None)
        choices = _names(each.item, keys.columns, {*opened.parquet.schema_arrow.names, *_folder_values(each.item)})
        gone = 0

        def kept() -> Iterator[pa.Table]:
            nonlocal gone
            for table in opened.batches():
                found = _found(keys, choices, dict(zip(table.column_names, table.columns, strict=True)))
                goes = np.zeros(table.num_rows, bool) if found is None else (found >= 0).any(axis=0)
                gone += int(goes.sum())
                yield table.filter(pa.array(~goes))

        options = WriteOptions(opened.dictionary, split=False, ranged=self.ranged)
        added = write_tables(self.place, self.shape, file.partition, kept(), options)
        return added, gone
