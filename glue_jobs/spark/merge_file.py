"""Merging net changes into one data file: rows of changed keys are replaced where they stand, or dropped. Arrow only.

The order of rows in a file is kept, so that a file sorted by key stays sorted.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from functools import cached_property, partial
from itertools import groupby
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from glue_jobs.aws.objects import read_bytes
from glue_jobs.aws.ranged import open_object
from glue_jobs.core.errors import TableBlocked
from glue_jobs.core.keys import Bound
from glue_jobs.core.record import DataFile
from glue_jobs.core.verify import change_in_name
from glue_jobs.spark.arrow_types import conform
from glue_jobs.spark.data_files import ROW_GROUP_BYTES, dictionary_columns, read_columns, read_data_file, read_rows, stored_footer
from glue_jobs.spark.key_columns import KeyIndex, bounds, take
from glue_jobs.spark.net_changes import DELETE, NetChanges
from glue_jobs.spark.partition_columns import with_partition_columns
from glue_jobs.spark.place import Place, Shape
from glue_jobs.spark.row_batches import BATCH_ROWS, decoded_bytes
from glue_jobs.spark.side_by_side import in_order
from glue_jobs.spark.stored_groups import LEAST_STORED_BYTES, StoredGroup, bytes_of
from glue_jobs.spark.thrift_compact import Struct

# Rows that stay are passed on as they lie if their runs are at least so long on average; writing shorter ones costs more than copying all.
LEAST_RUN_ROWS = 1024
# A file that is small only because it is compressed well is read in pieces.
WHOLE_RATIO = 4
CHUNK_BYTES = 4 * 1024 * 1024  # of a row group that is copied: several requests at a time


@dataclass
class Tally:
    """What merging found: positions in the net changes that hit a row, and those whose new image belongs to another partition. dropped:
    how many rows went, deleted or moved; a key that stands twice in a table counts twice."""

    hits: list[np.ndarray[Any, Any]] = field(default_factory=list)
    moved: list[np.ndarray[Any, Any]] = field(default_factory=list)
    dropped: int = 0

    def all_hits(self) -> np.ndarray[Any, Any]:
        return _joined(self.hits)

    def all_moved(self) -> np.ndarray[Any, Any]:
        return _joined(self.moved)


def _joined(parts: list[np.ndarray[Any, Any]]) -> np.ndarray[Any, Any]:
    return np.unique(np.concatenate(parts)) if parts else np.empty(0, np.int64)


@dataclass(frozen=True)
class OpenFile:
    """A data file opened for merging: small ones lie in memory, big ones are read by ranges.

    whole: its rows are taken all at once. renames: new name → name in older files, for a change that renames a column. version: of the key,
    for a file that is hidden.
    """

    place: Place
    shape: Shape
    file: DataFile
    parquet: pq.ParquetFile
    whole: bool
    renames: tuple[tuple[str, str], ...] = ()
    version: str | None = None

    @classmethod
    def open(
        cls, place: Place, shape: Shape, file: DataFile, renames: tuple[tuple[str, str], ...] = (), version: str | None = None
    ) -> OpenFile:
        limit = place.limits.stream_file_bytes
        bucket, key = place.lake.bucket, place.lake.key + file.path
        with _told_of_the_lake(shape.table):
            source = open_object(place.s3, bucket, key, file.size_bytes, etag=file.etag or None, version=version, whole_up_to=limit)
            parquet = read_data_file(source, file.path, streamed=file.size_bytes > limit)
            # Of two row groups of ours that follow each other the rows take more than one may, whatever their dictionaries make of them.
            least = parquet.num_row_groups // 2 * ROW_GROUP_BYTES if change_in_name(file.path) else 0
            is_whole = file.size_bytes <= limit and max(least, decoded_bytes(parquet)) <= WHOLE_RATIO * limit
            return cls(place, shape, file, parquet, is_whole, renames, version)

    @property
    def dictionary(self) -> list[str]:
        """The columns that have a dictionary here, which the replacement should have as well."""
        return [self._new_name(name) for name in dictionary_columns(self.parquet)]

    def _new_name(self, name: str) -> str:
        return next((new for new, old in self.renames if old == name), name)

    def key_batches(self, groups: Sequence[int] | None = None) -> Iterator[pa.Table]:
        """The key columns, in the file's order; one table of a file that lies in memory. groups: row groups, of one that doesn't."""
        if self.whole:
            yield self._keys
        else:
            for table in self._tables(self._key_names(), groups):
                yield self._conformed_keys(table)

    @cached_property
    def _keys(self) -> pa.Table:
        """Of a file that lies in memory: who searches it, and then takes its rows, has them decoded once."""
        (table,) = self._tables(self._key_names())
        return self._conformed_keys(table)

    def _key_names(self) -> list[str]:
        """As they stand in the file."""
        names = [dict(self.renames).get(name, name) for name in self.shape.key]
        return [name for name in names if name in self.parquet.schema_arrow.names]

    def _column_names(self) -> list[str] | None:
        """Those of the shape's columns that the file has, as they stand there; None where it has no other ones, or none of them."""
        wanted = {dict(self.renames).get(column.name, column.name) for column in self.shape.schema}
        there = [name for name in self.parquet.schema_arrow.names if name in wanted]
        return there if 0 < len(there) < len(self.parquet.schema_arrow.names) else None

    def _conformed_keys(self, table: pa.Table) -> pa.Table:
        schema = tuple(column for column in self.shape.schema if column.name in self.shape.key)
        return conform(self._complete(table), schema, self.file.path)

    @cached_property
    def storable(self) -> dict[int, Struct]:
        """The descriptions of the row groups that may stand in the file's replacement as they stand here, by their numbers."""
        footer = None if self.whole or self.parquet.num_row_groups < 2 else stored_footer(self.parquet, self.shape.file_schema)
        found: dict[int, Struct] = {}
        for number, group in enumerate([] if footer is None else footer.children(4)):
            span = bytes_of(group)
            if span is not None and span[1] - span[0] >= LEAST_STORED_BYTES:
                found[number] = group
        return found

    def chunks(self, start: int, stop: int) -> AbstractContextManager[Iterator[bytes]]:
        """The file's bytes from `start` up to `stop`, a few megabytes at a time; the next ones are on their way."""

        def fetch(span: tuple[int, int]) -> bytes:
            with _told_of_the_lake(self.shape.table):
                key = self.place.lake.key + self.file.path
                return read_bytes(self.place.s3, self.place.lake.bucket, key, self.version, *span, self.file.etag or None)

        spans = [(at, min(at + CHUNK_BYTES, stop)) for at in range(start, stop, CHUNK_BYTES)]
        return in_order(fetch, spans, lambda span: span[1] - span[0])

    def batches(self, groups: Sequence[int] | None = None) -> Iterator[pa.Table]:
        """All of the table's columns, in the lake's types and order; those the file hasn't are null. groups: row groups, None for all."""
        names = set(self._key_names())
        others = [name for name in self.parquet.schema_arrow.names if name not in names]
        if "_keys" in self.__dict__ and others:
            yield conform(self._with_keys(others), self.shape.schema, self.file.path)
        else:
            for table in self._tables(self._column_names(), groups):
                yield conform(self._complete(table), self.shape.schema, self.file.path)

    def _with_keys(self, others: list[str]) -> pa.Table:
        """The other columns are read, those of the key are there."""
        (table,) = self._tables(others)
        rows = self._complete(table)
        for name in self.shape.key:
            if name not in rows.column_names:  # a partition column is there already
                rows = rows.append_column(name, self._keys[name])
        return rows

    def _tables(self, columns: list[str] | None, groups: Sequence[int] | None = None) -> Iterator[pa.Table]:
        where = f"s3://{self.place.lake.bucket}/{self.place.lake.key}{self.file.path}"
        with _told_of_the_lake(self.shape.table):
            if self.whole:
                names = self.parquet.schema_arrow.names if columns is None else columns
                yield read_columns(self.parquet, names, where)
            else:
                yield from read_rows(self.parquet, columns, where, groups=groups)

    def _complete(self, table: pa.Table) -> pa.Table:
        if self.renames:
            table = table.rename_columns([self._new_name(name) for name in table.column_names])
        return with_partition_columns(table, self.shape.partitioning, self.file.partition, self.shape.schema)


@contextmanager
def _told_of_the_lake(table: str) -> Iterator[None]:
    """A file that is gone or changed is one of the lake's here, not one of DMS's: somebody deleted or overwrote it."""
    try:
        yield
    except TableBlocked as error:
        todo = f"`dmslake verify {shlex.quote(table)} --repair` restores data files that a person deleted; find out who writes there"
        if error.code == "raw-file-gone":
            raise TableBlocked(error.message, "data-file-gone", todo) from error
        if error.code == "raw-file-changed":
            raise TableBlocked(error.message, "data-file-changed", todo) from error
        raise


class FileMerge:
    """The merge of net changes into one data file. A file that lies in memory is searched once, whatever is asked of it.

    Only the net changes between `start` and `stop` lie in the file's key range. by_piece: look at each piece's own range first; where the
    file is sorted by key, a large batch is then not hashed anew for each piece.
    """

    def __init__(self, opened: OpenFile, net: NetChanges) -> None:
        self._opened, self._net = opened, net
        self._start, self._stop = net.slice_for(opened.file) if net.shape.key else (0, 0)
        self._by_piece = not opened.whole and self._stop - self._start >= BATCH_ROWS
        self._code = net.code_of(opened.file.partition)
        self._found: np.ndarray[Any, Any] | None = None

    def has_hits(self) -> bool:
        """Whether any row of the file has a changed key. Reads the key columns only, and stops at the first hit; of a row group where the
        others may be kept."""
        if self._stop <= self._start:
            return False
        if self._opened.storable:
            return len(self._unchanged) < self._opened.parquet.num_row_groups
        return any((found >= 0).any() for found in self._searched())

    def locate(self, tally: Tally) -> None:
        """Count the file's hits without writing anything."""
        if self._stop > self._start:
            for found in self._searched():
                _note_hits(found, self._net, self._code, tally)

    def rows(self, tally: Tally) -> Iterator[pa.Table]:
        """The file's rows after the net changes, in the file's order, in pieces."""
        yield from self._rows(tally, None)

    def pieces(self, tally: Tally) -> Iterator[pa.Table | StoredGroup]:
        """The same after `has_hits` said yes, but row groups without a changed key as they are stored, where that can be."""
        stored = self._unchanged.keys() & self._opened.storable.keys() if self._opened.storable else set()
        for is_stored, groups in groupby(range(self._opened.parquet.num_row_groups), stored.__contains__):
            if is_stored:
                yield from map(self._stored, groups)
            else:
                yield from self._rows(tally, list(groups) if stored else None)

    def _rows(self, tally: Tally, groups: Sequence[int] | None) -> Iterator[pa.Table]:
        for table in self._opened.batches(groups):
            if self._stop <= self._start:
                yield table
                continue
            positions = self._positions(table) if self._found is None else self._found
            dropped = _note_hits(positions, self._net, self._code, tally)
            yield _replaced(table, positions, dropped, self._net)

    def _stored(self, number: int) -> StoredGroup:
        described, (low, high) = self._opened.storable[number], self._unchanged[number]
        span = bytes_of(described)
        assert span is not None  # or it would not be storable
        rows = self._opened.parquet.metadata.row_group(number).num_rows
        keys, chunks = partial(self._opened.key_batches, [number]), partial(self._opened.chunks, *span)
        return StoredGroup(rows, low, high, *span, described, keys, chunks)

    @cached_property
    def _unchanged(self) -> dict[int, tuple[Bound, Bound]]:
        """The row groups without a changed key, each with its key range."""
        found: dict[int, tuple[Bound, Bound]] = {}
        for number in range(self._opened.parquet.num_row_groups):
            ranges = self._ranges_without_hit(number)
            if ranges:
                found[number] = min(low for low, _ in ranges), max(high for _, high in ranges)
        return found

    def _ranges_without_hit(self, number: int) -> list[tuple[Bound, Bound]]:
        """The key ranges of a row group's pieces; none where a row has a changed key. It is not read further then."""
        ranges: list[tuple[Bound, Bound]] = []
        for keys in self._opened.key_batches([number]):
            if (self._positions(keys) >= 0).any():
                return []
            found = bounds(keys, self._opened.shape.key)
            ranges += [] if found is None else [found]
        return ranges

    def _searched(self) -> Iterator[np.ndarray[Any, Any]]:
        """The positions of all rows, a piece at a time; a file in memory is one piece."""
        for keys in self._opened.key_batches():
            found = self._positions(keys)
            if self._opened.whole:
                self._found = found
            yield found

    @cached_property
    def _index(self) -> KeyIndex:
        return self._net.index.slice(self._start, self._stop)

    def _positions(self, rows: pa.Table) -> np.ndarray[Any, Any]:
        """For each row the place of its key in the net changes, −1 for none."""
        index, start = self._index, self._start
        if self._by_piece:
            low, high = self._net.slice_of_rows(rows)
            if high == low:
                return np.full(rows.num_rows, -1, np.int64)
            if (high - low) * 2 < len(index):
                index, start = self._net.index.slice(low, high), low
        found = index.positions(rows)
        if isinstance(found, pa.ChunkedArray):
            found = found.combine_chunks()
        places = found.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int64)
        return np.where(places >= 0, places + start, -1)


def _note_hits(positions: np.ndarray[Any, Any], net: NetChanges, code: int, tally: Tally) -> np.ndarray[Any, Any]:
    """Record hits and moves; for each row whether it is dropped (deleted, or its new image belongs elsewhere)."""
    hit = positions >= 0
    safe = np.where(hit, positions, 0)
    deleted = hit & (net.ops[safe] == DELETE)
    moved = hit & ~deleted & (net.codes[safe] != code)
    if hit.any():
        tally.hits.append(positions[hit])
    if moved.any():
        tally.moved.append(positions[moved])
    dropped = deleted | moved
    tally.dropped += int(np.count_nonzero(dropped))
    return dropped


def _replaced(table: pa.Table, positions: np.ndarray[Any, Any], dropped: np.ndarray[Any, Any], net: NetChanges) -> pa.Table:
    """The rows that stay, those of changed keys with their new image in the same place."""
    replaced = (positions >= 0) & ~dropped
    if not replaced.any():
        return table.filter(pa.array(~dropped)) if dropped.any() else table
    images = take(net.images, pa.array(positions[replaced]))
    touched = np.flatnonzero(replaced | dropped)
    if len(touched) * LEAST_RUN_ROWS <= table.num_rows:
        return pa.concat_tables(_runs(table, touched, dropped, images))
    order = np.arange(table.num_rows, dtype=np.int64)
    order[replaced] = table.num_rows + np.arange(int(replaced.sum()), dtype=np.int64)
    return take(pa.concat_tables([table, images]).combine_chunks(), pa.array(order[~dropped]))


def _runs(table: pa.Table, touched: np.ndarray[Any, Any], dropped: np.ndarray[Any, Any], images: pa.Table) -> Iterator[pa.Table]:
    """The rows between the touched ones as they lie in memory, and the new images between them: nothing but the images is copied."""
    start = image = 0
    for row in touched.tolist():
        yield table.slice(start, row - start)
        if not dropped[row]:
            yield images.slice(image, 1)
            image += 1
        start = row + 1
    yield table.slice(start)
