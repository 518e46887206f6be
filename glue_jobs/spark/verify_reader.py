"""One data file, read: do footer, statistics and key bounds say what the change record says?

The footer and the key columns are fetched, by ranged reads.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pyarrow.types as pt

from glue_jobs.aws.ranged import RangedFile
from glue_jobs.aws.versions import key_versions
from glue_jobs.core.collation import column_collation
from glue_jobs.core.errors import TableBlocked
from glue_jobs.core.keys import Bound, decode_bound
from glue_jobs.core.partitioning import file_columns
from glue_jobs.core.paths import S3Uri
from glue_jobs.core.record import DataFile
from glue_jobs.core.schema import find, widened
from glue_jobs.core.snapshot import Snapshot
from glue_jobs.core.undo import root
from glue_jobs.core.verify import DIFFERENCE, Finding, change_in_name
from glue_jobs.spark.arrow_types import conform, lake_type_of, to_arrow
from glue_jobs.spark.data_file_reader import read_data_file, read_rows
from glue_jobs.spark.key_columns import bounds, comparable, normalised_keys
from glue_jobs.spark.key_hashes import Hashes, key_hashes
from glue_jobs.spark.partition_columns import with_partition_columns

TODO = "find out who wrote it; roll the table back to a change before this file came, or reload it"
_GONE = ("raw-file-gone", "raw-file-changed")


@dataclass(frozen=True)
class Checked:
    """One file. hashes: of its rows' keys, in order; bytes_read: at least those of footer and key columns; living: of a history's file,
    for each hash whether the version is no delete, None for all."""

    file: DataFile
    findings: tuple[Finding, ...] = ()
    hashes: Hashes = field(default_factory=lambda: np.empty(0, np.uint64))
    rows: int = 0
    bytes_read: int = 0
    living: np.ndarray[Any, np.dtype[np.bool_]] | None = None

    @property
    def keys(self) -> Hashes:
        """The hashes of the keys of rows that the table has."""
        return self.hashes if self.living is None else self.hashes[self.living]


def range_of(snapshot: Snapshot, file: DataFile) -> tuple[Bound | None, Bound | None]:
    types = _key_types(snapshot)
    return decode_bound(types, file.low), decode_bound(types, file.high)


def _key_types(snapshot: Snapshot) -> list[str]:
    columns = [find(snapshot.schema, name) for name in snapshot.primary_key]
    return [column.type for column in columns if column is not None]


class Reader:
    """Reads and checks the files of one snapshot; used by many threads."""

    def __init__(self, s3: Any, lake: S3Uri, snapshot: Snapshot) -> None:
        self.s3, self.lake, self.snapshot = s3, lake, snapshot
        self.key = snapshot.primary_key
        self._columns = {column.name: column.type for column in file_columns(snapshot.schema, snapshot.partitioning)}
        self.key_schema = tuple(column for column in snapshot.schema if column.name in self.key)

    def key_of(self, file: DataFile) -> tuple[str, ...]:
        """The key columns that the file must have."""
        return self.key

    def where(self, file: DataFile) -> str:
        return str(self.lake.join(file.path))

    def check(self, file: DataFile) -> Checked:
        """The file as it stands; where it was hidden since it was listed, its data version."""
        try:
            return self.checked(file)
        except TableBlocked as error:
            if error.code in _GONE:
                return self._checked_version(file)
            return Checked(file, (self._as_finding(file, error),))

    def _checked_version(self, file: DataFile) -> Checked:
        versions = key_versions(self.s3, self.lake.bucket, self.lake.key + file.path)
        ids = [entry.version_id for entry in versions.data if entry.size == file.size_bytes and file.etag in ("", entry.etag)]
        try:
            return self.checked(file, ids[0]) if ids else Checked(file, (self._vanished(file),))
        except TableBlocked as error:
            return Checked(file, (self._as_finding(file, error),))

    def _vanished(self, file: DataFile) -> Finding:
        found = "it vanished while it was to be read, and no data version is left"
        return Finding("missing-file", DIFFERENCE, self.where(file), f"{file.rows} rows", found, "verify again")

    def _as_finding(self, file: DataFile, error: TableBlocked) -> Finding:
        return Finding("wrong-file", DIFFERENCE, self.where(file), f"{file.rows} rows that can be read", error.message, error.todo or TODO)

    def open(self, file: DataFile, version: str | None = None) -> pq.ParquetFile:
        key = self.lake.key + file.path
        source = RangedFile(self.s3, self.lake.bucket, key, file.size_bytes, etag=file.etag or None, version=version)
        return read_data_file(source, file.path)

    def checked(self, file: DataFile, version: str | None = None) -> Checked:
        parquet = self.open(file, version)
        wrong = [*self.of_footer(file, parquet)]
        read = fetched(parquet, set(self.key))
        if wrong or not self.key:
            return Checked(file, self.wrong(file, wrong), rows=parquet.metadata.num_rows, bytes_read=read)
        hashes, found = [np.empty(0, np.uint64)], None
        for table in self.keys(file, parquet):
            if any(column.null_count for column in table.itercolumns()):
                wrong.append(("a key in every row", "a null in a key column"))
                break
            found = wider_bounds(found, bounds(table, self.key))
            hashes.append(key_hashes(normalised_keys(table, self.key)))
        low, high = range_of(self.snapshot, file)
        if found is not None:
            wrong += outside(found, low, high, "keys")
        return Checked(file, self.wrong(file, wrong), np.concatenate(hashes), parquet.metadata.num_rows, read)

    def keys(self, file: DataFile, parquet: pq.ParquetFile) -> Iterator[pa.Table]:
        """The key columns, in pieces, those that stand in the folder's name with them."""
        for table in read_rows(parquet, self.key, file.path):
            whole = with_partition_columns(table, self.snapshot.partitioning, file.partition, self.snapshot.schema)
            yield conform(whole, self.key_schema, file.path)

    def wrong(self, file: DataFile, wrong: Iterable[tuple[str, str]]) -> tuple[Finding, ...]:
        return tuple(Finding("wrong-file", DIFFERENCE, self.where(file), expected, found, TODO) for expected, found in wrong)

    def of_footer(self, file: DataFile, parquet: pq.ParquetFile) -> Iterator[tuple[str, str]]:
        """(expected, found) for what the footer says otherwise. A file may lack columns that came after it, but no key column.

        One that another program wrote may have columns that are not the table's, and narrower types.
        """
        adopted = not change_in_name(root(file))
        if parquet.metadata.num_rows != file.rows:
            yield f"{file.rows} rows", f"{parquet.metadata.num_rows} rows in the footer"
        physical = parquet.schema_arrow
        for name in sorted({name for name in physical.names if physical.names.count(name) > 1}):
            yield "each column once", f"the column {name!r} twice"
        for column in physical:
            wanted, kind = self._columns.get(column.name), lake_type_of(column.type)
            if wanted is None and adopted:
                continue
            if wanted is None:
                yield "the table's columns", f"a column {column.name!r}, which the table has not in its files"
            elif kind != wanted and not (adopted and kind and widened(kind, wanted) == wanted):
                yield f"{column.name} {wanted}", f"{column.name} {kind or column.type}"
        for name in self.key_of(file):
            if name in self._columns and name not in physical.names:
                yield f"the key column {name}", "no such column in the file"
        if not adopted:  # other writers cut long texts in them
            yield from self.of_statistics(file, parquet)

    def of_statistics(self, file: DataFile, parquet: pq.ParquetFile) -> Iterator[tuple[str, str]]:
        """The first key column's least and greatest value, as far as the footer says them."""
        if not self.key or self.key[0] not in self._columns or self.key[0] not in parquet.schema_arrow.names:
            return
        kind = to_arrow(self._columns[self.key[0]])
        if column_collation(self.key[0]) and pt.is_string(kind):  # a footer says the texts as they are, the record the form of them
            return
        low, high = range_of(self.snapshot, file)
        for found in _statistics(parquet, self.key[0], kind):
            yield from outside(found, low and low[:1], high and high[:1], "statistics")


def fetched(parquet: pq.ParquetFile, names: set[str]) -> int:
    """Bytes of the footer and of the columns with these names."""
    metadata = parquet.metadata
    groups = (metadata.row_group(index) for index in range(metadata.num_row_groups))
    chunks = (group.column(index) for group in groups for index in range(group.num_columns))
    return int(metadata.serialized_size) + sum(chunk.total_compressed_size for chunk in chunks if chunk.path_in_schema in names)


def _statistics(parquet: pq.ParquetFile, name: str, kind: pa.DataType) -> Iterator[tuple[Bound, Bound]]:
    """(least, greatest) of the column in each row group that says them in a form that can be compared.

    Not of floats: of infinite values the writer says a finite least one, of NaN nothing.
    """
    if pt.is_floating(kind):
        return
    index = parquet.schema_arrow.names.index(name)
    for number in range(parquet.metadata.num_row_groups):
        statistics = parquet.metadata.row_group(number).column(index).statistics
        if statistics is None or not statistics.has_min_max:
            continue
        raw = pt.is_date(kind) or pt.is_timestamp(kind)  # Python's own dates end at the year 9999
        least, most = (statistics.min_raw, statistics.max_raw) if raw else (statistics.min, statistics.max)
        try:
            yield (_value(least, kind),), (_value(most, kind),)
        except (pa.ArrowException, TypeError, ValueError):
            continue


def _value(value: Any, kind: pa.DataType) -> Any:
    return int(value) if pt.is_date(kind) or pt.is_timestamp(kind) else comparable(pa.scalar(value, kind))


def wider_bounds(one: tuple[Bound, Bound] | None, other: tuple[Bound, Bound] | None) -> tuple[Bound, Bound] | None:
    if one is None or other is None:
        return one or other
    return min(one[0], other[0]), max(one[1], other[1])


def outside(found: tuple[Bound, Bound], low: Bound | None, high: Bound | None, what: str) -> Iterator[tuple[str, str]]:
    if (low is not None and found[0] < low) or (high is not None and found[1][: len(high)] > high):
        yield f"{what} between the bounds that the record gives", f"{what} outside of them: a merge would pass over rows of this file"
