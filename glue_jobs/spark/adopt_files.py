"""The Parquet files of another program, read for an adoption: footers, and the key columns of all rows. In the driver, by ranged
reads; memory depends neither on the table's size nor on the keys' width."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pyarrow.types as pt

from glue_jobs.aws.ranged import RangedFile
from glue_jobs.core.adoption import Adoption
from glue_jobs.core.dms_columns import OP_COLUMN
from glue_jobs.core.errors import TableBlocked, blocked
from glue_jobs.core.foreign_folder import Footer, folder_changed
from glue_jobs.core.keys import Bound, encode_bound
from glue_jobs.core.limits import Limits
from glue_jobs.core.partitioning import PartitionField, Partitioning, PartitionValues, folder_of
from glue_jobs.core.paths import S3Uri
from glue_jobs.core.raw_names import RawFile
from glue_jobs.core.record import DataFile
from glue_jobs.core.schema import Column, Schema, find
from glue_jobs.core.state import TableState
from glue_jobs.spark.arrow_types import conform, lake_type_of
from glue_jobs.spark.data_file_reader import read_rows
from glue_jobs.spark.dms_files import OPERATIONS, damage_named, dms_schema
from glue_jobs.spark.doubled_keys import BUCKET_ROWS, find_doubled
from glue_jobs.spark.first_filters import FirstFilters
from glue_jobs.spark.key_columns import bounds, normalised_keys
from glue_jobs.spark.key_filter_bits import hashes_of
from glue_jobs.spark.key_filters import keep_first
from glue_jobs.spark.key_hashes import Hashes, key_hashes
from glue_jobs.spark.partition_columns import with_partition_columns, written_text
from glue_jobs.spark.place import Shape
from glue_jobs.spark.plain_parquet import PlainParquet
from glue_jobs.spark.row_batches import group_rows
from glue_jobs.spark.verify_files import THREADS

FOOTER_THREADS = 16
_DELETED = OPERATIONS[2]
_LOAD_ANEW = "the table can't be adopted as it is: load it anew"
_MOVED = frozenset({"raw-file-gone", "raw-file-changed"})
_OF_DMS = frozenset({"unsupported-type", "reserved-column", "column-twice", "bad-data-file", "type-changed", "value-lost"})


class AdoptReader:
    """Reads the files of a folder that is to be adopted, as they were listed. threads, bucket_rows: as of verify_files."""

    key_filter_bytes = Limits().key_filter_bytes

    def __init__(self, threads: int = THREADS, bucket_rows: int = BUCKET_ROWS) -> None:
        self._threads, self._bucket_rows = threads, bucket_rows
        self._filters: dict[str, FirstFilters] = {}

    def footers(self, s3: Any, state: TableState, files: Mapping[str, RawFile]) -> list[Footer]:
        """The footers of the files (path → object). Raises TableBlocked naming the first that is no Parquet file that the lake can hold."""

        def read(path: str) -> Footer:
            where = str(state.lake.join(path))
            with _told_of_the_folder(where):
                parquet = _open(s3, state.lake, files[path], where)
                columns, left_out = _columns(parquet, where, state)
                return Footer(path, files[path], parquet.metadata.num_rows, columns, left_out, _unlike(parquet, columns))

        with ThreadPoolExecutor(FOOTER_THREADS) as pool:
            return list(pool.map(read, sorted(files)))

    def check_partitions(self, schema: Schema, partitioning: Partitioning, partitions: Iterable[PartitionValues]) -> None:
        """Refuse a folder whose text is no value of its column's type, or is spelled otherwise than dmslake spells that value."""
        for values in dict.fromkeys(partitions):
            for field, text in zip(partitioning, values, strict=True):
                written = written_text(field, text, schema)
                if written != text:
                    raise _spelled_otherwise(folder_of(partitioning, values), field, text, written)

    def raw_columns(self, s3: Any, state: TableState, file: RawFile) -> Schema:
        """The columns of one of the table's raw files in lake types."""
        bucket = state.path.bucket
        where = f"s3://{bucket}/{file.key}"
        with damage_named(where):
            parquet = PlainParquet(RangedFile(s3, bucket, file.key, file.size, etag=file.etag), coerce_int96_timestamp_unit="us")
        return dms_schema(parquet, where, patterns=state.before_images).columns

    def checked(self, s3: Any, adoption: Adoption) -> Adoption:
        """The adoption with each file's exact key bounds. Refuses null keys, keys that come twice, and rows marked as deleted."""
        lake, snapshot = adoption.state.lake, adoption.snapshot
        state = adoption.state
        filters = FirstFilters(Shape(str(state.path), adoption.schema, state.primary_key, state.partitioning), self.key_filter_bytes)
        self._filters[str(lake)] = filters
        keys = _Keys(s3, adoption, filters)
        found: list[DataFile] = []

        def hashed() -> Iterator[tuple[DataFile, Hashes]]:
            with ThreadPoolExecutor(self._threads) as pool:
                for file, hashes in _in_order(pool, keys, adoption.files, self._threads * 2):
                    found.append(file)
                    yield file, hashes

        doubled = find_doubled(s3, lake, snapshot, hashed(), adoption.rows, self._bucket_rows)
        if doubled:
            raise blocked(
                "key-not-unique",
                f"PrimaryKey {','.join(snapshot.primary_key)} is not unique, {len(doubled)} of the keys that come more than once:\n"
                + "\n".join(f"  {finding.found}; in {finding.where}" for finding in doubled),
                where=str(lake),
                todo="give the right --primary-key; if that is it, the table holds rows twice: load it anew",
            )
        return replace(adoption, files=tuple(found), keys_checked=True)

    def keep_filters(self, s3: Any, adoption: Adoption, change: str) -> str:
        """Keep the key filters of the files that `checked` read, for the first batch; what was wrong, '' for nothing."""
        lake = adoption.state.lake
        filters = self._filters.pop(str(lake), None)
        return "" if filters is None else keep_first(s3, lake, change, filters.shape, filters.made())


@dataclass(frozen=True)
class _Keys:
    """Reads the key columns (and `Op`) of the files of one adoption; used by many threads."""

    s3: Any
    adoption: Adoption
    filters: FirstFilters

    def read(self, file: DataFile) -> tuple[DataFile, Hashes]:
        """The file with its key bounds, and a hash of each row's key."""
        state, schema = self.adoption.state, self.adoption.schema
        where = str(state.lake.join(file.path))
        key_schema = tuple(column for column in schema if column.name in state.primary_key)
        hashes: list[Hashes] = [np.empty(0, np.uint64)]
        noted: list[Hashes] = []
        extremes: tuple[Bound, Bound] | None = None
        row = 0
        with _told_of_the_folder(where):
            parquet = _open(self.s3, state.lake, RawFile(state.lake.key + file.path, file.size_bytes, file.etag, _NO_TIME), where)
            has_op = OP_COLUMN in self.adoption.left_out and OP_COLUMN in parquet.schema_arrow.names
            wanted = [*state.primary_key, *([OP_COLUMN] if has_op else [])]
            # A key may stand in the folder's name only: then rows without any column are read, since each has that key.
            for table in read_rows(parquet, wanted, where) if wanted else ():
                _refuse_deleted(table, where, row)
                if state.primary_key:
                    keys = conform(with_partition_columns(table, state.partitioning, file.partition, schema), key_schema, where)
                    _refuse_nulls(keys, state.primary_key, where, row)
                    hashes.append(key_hashes(normalised_keys(keys, state.primary_key)))
                    extremes = _widened(extremes, bounds(keys, state.primary_key))
                    if self.filters.wanted:
                        noted.append(hashes_of(keys, self.filters.shape))
                row += table.num_rows
        found = np.concatenate(hashes)
        if state.primary_key and len(found) != file.rows:
            raise _other_rows(where, file.rows, len(found))
        bounded = self._bounded(file, extremes)
        self.filters.note(bounded, noted, group_rows(parquet))
        return bounded, found

    def _bounded(self, file: DataFile, extremes: tuple[Bound, Bound] | None) -> DataFile:
        if extremes is None:
            return file
        columns = [find(self.adoption.schema, name) for name in self.adoption.state.primary_key]
        types = [column.type for column in columns if column is not None]
        low, high = encode_bound(types, extremes[0], upper=False), encode_bound(types, extremes[1], upper=True)
        return replace(file, low=low, high=high)


_NO_TIME: Any = None  # a file that is read again: nobody asks when it was written


def _in_order(pool: ThreadPoolExecutor, keys: _Keys, files: Sequence[DataFile], ahead: int) -> Iterator[tuple[DataFile, Hashes]]:
    """The files' keys, in the files' order; at most `ahead` are begun before they are wanted."""
    waiting: deque[Future[tuple[DataFile, Hashes]]] = deque()
    for file in files:
        waiting.append(pool.submit(keys.read, file))
        if len(waiting) >= ahead:
            yield waiting.popleft().result()
    while waiting:
        yield waiting.popleft().result()


def _widened(one: tuple[Bound, Bound] | None, other: tuple[Bound, Bound] | None) -> tuple[Bound, Bound] | None:
    if one is None or other is None:
        return one or other
    return min(one[0], other[0]), max(one[1], other[1])


def _open(s3: Any, lake: S3Uri, file: RawFile, where: str) -> pq.ParquetFile:
    with damage_named(where, "not-parquet", "move the object out of the table's folder; if it is the table's, load the table anew"):
        source = RangedFile(s3, lake.bucket, file.key, file.size, etag=file.etag)
        parquet = PlainParquet(source, coerce_int96_timestamp_unit="us")
        _ = parquet.schema_arrow, parquet.num_row_groups
        return parquet


@contextmanager
def _told_of_the_folder(where: str) -> Iterator[None]:
    """Errors that speak of raw files and of DMS, in the words of an adoption."""
    try:
        yield
    except TableBlocked as error:
        if error.code in _MOVED:
            raise folder_changed(where) from error
        if error.code in _OF_DMS:
            raise TableBlocked(error.message, error.code, _LOAD_ANEW) from error
        raise


def _columns(parquet: pq.ParquetFile, where: str, state: TableState) -> tuple[Schema, tuple[str, ...]]:
    """(the table's columns, those left out). What DMS sends beside a row's values is no part of a table that it keeps up."""
    head = dms_schema(parquet, where, patterns=state.before_images)
    op = (head.op_column,) if head.op_column else ()
    if state.has_source or not head.excluded:
        return head.columns, (*op, *head.excluded)
    kinds = [(field.name, lake_type_of(field.type)) for field in parquet.schema_arrow if field.name not in op]
    return tuple(Column(name, kind) for name, kind in kinds if kind is not None), op


def _unlike(parquet: pq.ParquetFile, columns: Schema) -> tuple[str, ...]:
    """The columns that not every reader takes for the lake's type as they stand in the file: Trino and Athena read no time of day as a
    text and no unsigned number of 32 bits and more, Spark no nanoseconds."""
    names, there = {column.name for column in columns}, parquet.schema_arrow
    return tuple(f"{field.name} ({field.type})" for field in there if field.name in names and _is_unlike(field.type))


def _is_unlike(kind: pa.DataType) -> bool:
    return bool(pt.is_time(kind) or pt.is_uint32(kind) or pt.is_uint64(kind) or (pt.is_timestamp(kind) and kind.unit == "ns"))


def _spelled_otherwise(folder: str, field: PartitionField, text: str | None, written: str | None) -> TableBlocked:
    """text: of the folder, unescaped; written: as dmslake would write it."""
    return blocked(
        "adopt-layout",
        "a partition folder is spelled otherwise than dmslake spells its value: a row that changes would move to the other folder",
        where=f"folder {folder}",
        expected=folder_of((field,), (written,))[:-1],
        found=folder_of((field,), (text,))[:-1],
        todo=f"if the column is a text, give --column '{field.column}=string'; else load the table anew",
    )


def _other_rows(where: str, expected: int, found: int) -> TableBlocked:
    return blocked(
        "bad-data-file",
        "the file has another number of rows than its footer says, so that not all keys can be looked at",
        where=where,
        expected=f"{expected} rows",
        found=f"{found} rows",
        todo=_LOAD_ANEW,
    )


def _refuse_deleted(table: pa.Table, where: str, first_row: int) -> None:
    if OP_COLUMN not in table.column_names:
        return
    deleted = pc.equal(table.column(OP_COLUMN).cast(pa.string()), _DELETED)
    if pc.any(deleted).as_py():
        raise blocked(
            "deleted-row",
            f"a row is marked as deleted (Op = {_DELETED.as_py()}), and would count as a row of the table",
            where=f"{where}, row {first_row + pc.index(deleted, True).as_py()}",
            expected="I or U, or null",
            found=str(_DELETED.as_py()),
            todo=f"{_LOAD_ANEW}, or remove these rows from the file first",
        )


def _refuse_nulls(keys: pa.Table, key: Sequence[str], where: str, first_row: int) -> None:
    for name in key:
        values = keys.column(name)
        if values.null_count:
            raise blocked(
                "null-key",
                f"the key column {name!r} is null",
                where=f"{where}, row {first_row + pc.index(pc.is_null(values), True).as_py()}",
                expected="a value in every column of PrimaryKey",
                found="null",
                todo="give the right --primary-key, or load the table anew",
            )
