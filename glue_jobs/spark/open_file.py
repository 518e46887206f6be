"""A data file of the lake opened for work on its rows: whole in memory, or in pieces and by ranges."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import partial

import pyarrow as pa
import pyarrow.parquet as pq

from glue_jobs.aws.copies import ObjectRange, Source
from glue_jobs.aws.objects import read_bytes
from glue_jobs.aws.ranged import open_object
from glue_jobs.core.errors import TableBlocked
from glue_jobs.core.record import DataFile
from glue_jobs.core.verify import change_in_name
from glue_jobs.spark.arrow_types import conform
from glue_jobs.spark.column_hashes import Hashes
from glue_jobs.spark.data_file_reader import dictionary_columns, read_columns, read_encoded, read_rows
from glue_jobs.spark.data_file_writer import ROW_GROUP_BYTES, stored_footer
from glue_jobs.spark.encoded_texts import may_have_unused_values
from glue_jobs.spark.kept_property import kept_property
from glue_jobs.spark.key_filter_bits import hashes_of, packed
from glue_jobs.spark.partition_columns import with_partition_columns
from glue_jobs.spark.place import Place, Shape
from glue_jobs.spark.row_batches import decoded_bytes
from glue_jobs.spark.side_by_side import in_order
from glue_jobs.spark.stored_groups import LEAST_STORED_BYTES, Described, described_groups

# A file that is small only because it is compressed well is read in pieces.
WHOLE_RATIO = 4
CHUNK_BYTES = 4 * 1024 * 1024  # of a row group that is copied: several requests at a time


@dataclass(frozen=True)
class OpenFile:
    """A data file opened: small ones lie in memory, big ones are read by ranges.

    whole: its rows are taken all at once. renames: new name → name in older files, for a change that renames a column. version: of the key,
    for a file that is hidden. encoded: the columns whose texts `batches` leaves as they are stored, because their dictionary is small;
    none of the key's, which are compared.
    """

    place: Place
    shape: Shape
    file: DataFile
    parquet: pq.ParquetFile
    whole: bool
    renames: tuple[tuple[str, str], ...] = ()
    version: str | None = None
    encoded: frozenset[str] = frozenset()

    @classmethod
    def open(
        cls,
        place: Place,
        shape: Shape,
        file: DataFile,
        renames: tuple[tuple[str, str], ...] = (),
        version: str | None = None,
        encoded: bool = False,
    ) -> OpenFile:
        """encoded: whether texts may stay as they are stored. Raises TableBlocked where the file is gone, changed or damaged."""
        limit = place.limits.stream_file_bytes
        bucket, key = place.lake.bucket, place.lake.key + file.path
        with _told_of_the_lake(shape.table):
            source = open_object(place.s3, bucket, key, file.size_bytes, etag=file.etag or None, version=version, whole_up_to=limit)
            keys = {dict(renames).get(name, name) for name in shape.key}
            parquet, texts = read_encoded(source, file.path, file.size_bytes > limit, keys if encoded else None)
            # Of two row groups of ours that follow each other the rows take more than one may, whatever their dictionaries make of them;
            # unless one ended early, before a row group that was copied: then a file is read in pieces that need not be.
            least = parquet.num_row_groups // 2 * ROW_GROUP_BYTES if change_in_name(file.path) else 0
            is_whole = file.size_bytes <= limit and max(least, decoded_bytes(parquet)) <= WHOLE_RATIO * limit
            new_names = {old: new for new, old in renames}
            encoded_texts = frozenset(new_names.get(name, name) for name in texts)
            return cls(place, shape, file, parquet, is_whole, renames, version, encoded_texts)

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
            yield from self.some_columns(self.shape.key, groups)

    def group_hashes(self, number: int) -> Iterator[Hashes]:
        """Of the keys of a row group, for key filters; of a file that does not lie in memory."""
        return (hashes_of(rows, self.shape) for rows in self.some_columns(self.shape.key, [number]))

    def group_section(self, number: int) -> bytes | None:
        """What key filters keep of the keys of a row group."""
        return packed(list(self.group_hashes(number)))

    def some_columns(self, names: Sequence[str], groups: Sequence[int] | None = None) -> Iterator[pa.Table]:
        """Some of the table's columns, as `batches` has all. groups: row groups, None for all or where the file is in memory."""
        for table in self._tables(self._stored_names(names), groups):
            yield self._conformed(table, names)

    @kept_property
    def _keys(self) -> pa.Table:
        """Of a file that lies in memory: who searches it, and then takes its rows, has them decoded once."""
        (table,) = self.some_columns(self.shape.key)
        return table

    def _stored_names(self, names: Sequence[str]) -> list[str]:
        """What the columns are called in the file; those it hasn't are left out."""
        stored = [dict(self.renames).get(name, name) for name in names]
        return [name for name in stored if name in self.parquet.schema_arrow.names]

    def _column_names(self) -> list[str] | None:
        """Those of the shape's columns that the file has, as they stand there; None where it has no other ones, or none of them."""
        wanted = {dict(self.renames).get(column.name, column.name) for column in self.shape.schema}
        there = [name for name in self.parquet.schema_arrow.names if name in wanted]
        return there if 0 < len(there) < len(self.parquet.schema_arrow.names) else None

    def _conformed(self, table: pa.Table, names: Sequence[str]) -> pa.Table:
        schema = tuple(column for column in self.shape.schema if column.name in names)
        return conform(self._complete(table), schema, self.file.path)

    @kept_property
    def storable(self) -> dict[int, Described]:
        """The row groups that may stand in the file's replacement as they stand here, by their numbers; none of a file in memory."""
        if self.whole or self.parquet.num_row_groups < 2 or self.file.size_bytes <= self.place.limits.stream_file_bytes:
            return {}
        footer = stored_footer(self.parquet, self.shape.file_schema)
        if footer is None or (not change_in_name(self.file.path) and may_have_unused_values(self.parquet.metadata)):
            return {}  # in a dictionary what was deleted would stay, where no erase looks for it
        groups = described_groups(footer)
        return {number: group for number, group in groups.items() if group.stop - group.start >= LEAST_STORED_BYTES}

    def range_of(self, start: int, stop: int) -> ObjectRange:
        """Some of the file's bytes, to be put into another file."""
        key = self.place.lake.key + self.file.path
        source = Source(self.place.lake.bucket, key, self.version, self.file.etag or None)
        return ObjectRange(source, start, stop, partial(self._chunks, source))

    def _chunks(self, source: Source, start: int, stop: int) -> AbstractContextManager[Iterator[bytes]]:
        """A few megabytes at a time; the next ones are on their way."""

        def fetch(span: tuple[int, int]) -> bytes:
            with _told_of_the_lake(self.shape.table):
                return read_bytes(self.place.s3, source.bucket, source.key, source.version, *span, source.etag)

        spans = [(at, min(at + CHUNK_BYTES, stop)) for at in range(start, stop, CHUNK_BYTES)]
        return in_order(fetch, spans, lambda span: span[1] - span[0])

    def batches(self, groups: Sequence[int] | None = None) -> Iterator[pa.Table]:
        """All of the table's columns, in the lake's types and order; those the file hasn't are null. groups: row groups, None for all."""
        names = set(self._stored_names(self.shape.key))
        others = [name for name in self.parquet.schema_arrow.names if name not in names]
        if "_keys" in self.__dict__ and others:
            yield self._as_the_lake(self._with_keys(others))
        else:
            for table in self._tables(self._column_names(), groups, ahead=True):
                yield self._as_the_lake(self._complete(table))

    def _as_the_lake(self, rows: pa.Table) -> pa.Table:
        return conform(rows, self.shape.schema, self.file.path, encoded=self.encoded)

    def _with_keys(self, others: list[str]) -> pa.Table:
        """The other columns are read, those of the key are there."""
        (table,) = self._tables(others)
        rows = self._complete(table)
        for name in self.shape.key:
            if name not in rows.column_names:  # a partition column is there already
                rows = rows.append_column(name, self._keys[name])
        return rows

    def _tables(self, columns: list[str] | None, groups: Sequence[int] | None = None, ahead: bool = False) -> Iterator[pa.Table]:
        where = f"s3://{self.place.lake.bucket}/{self.place.lake.key}{self.file.path}"
        with _told_of_the_lake(self.shape.table):
            if self.whole:
                names = self.parquet.schema_arrow.names if columns is None else columns
                yield read_columns(self.parquet, names, where)
            else:
                yield from read_rows(self.parquet, columns, where, groups=groups, ahead=ahead)

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
