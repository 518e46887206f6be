"""What happened to rows, as entries of row_versions: from raw files, from the rows of a lake table, from rows that a person gave."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from glue_jobs.core.history_table import CHANGE, DELETE, FLAG, OPERATION, SOURCE_FILE, SOURCE_ROW, UPDATE, VALID_FROM
from glue_jobs.core.partitioning import Partitioning
from glue_jobs.core.raw_names import cdc_name
from glue_jobs.core.record import DataFile
from glue_jobs.core.schema import Schema
from glue_jobs.spark.arrow_types import UTC_MICROSECONDS, conform, null_where
from glue_jobs.spark.locate import GivenKeys, unpack_keys
from glue_jobs.spark.net_changes import DELETE as DELETED
from glue_jobs.spark.net_changes import OP, POSITION, ROW_BITS, STEPS
from glue_jobs.spark.open_file import OpenFile
from glue_jobs.spark.partition_columns import as_stored
from glue_jobs.spark.place import Place, Shape
from glue_jobs.spark.raw_batch import Unit, read_unit
from glue_jobs.spark.raw_file import RawHead
from glue_jobs.spark.row_versions import NEW, ORDER, with_place

_TIME = r"^\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d(\.\d{1,9})?$"
_MICROSECOND_DIGITS = len("yyyy-MM-dd HH:mm:ss.ffffff")


@dataclass(frozen=True)
class Source:
    """What reading entries needs to know. lake: where the lake table's files are, and its shape, as they are before the change and for rows
    that it brings; schema: the history table's; timestamp: the name of the column that has the commit time, '' if none has.
    """

    lake: Place
    shape: Shape
    schema: Schema
    timestamp: str = ""


class Events(Protocol):
    """A picklable piece of work that yields entries."""

    size_bytes: int

    def __call__(self, source: Source) -> Iterator[pa.Table]: ...


@dataclass(frozen=True)
class RawEvents:
    """The rows of a piece of a raw file, each an entry."""

    unit: Unit

    @property
    def size_bytes(self) -> int:
        head, groups = self.unit.head, self.unit.row_groups
        return head.size_bytes if groups is None else head.size_bytes * len(groups) // max(1, head.schema.row_groups)

    def __call__(self, source: Source) -> Iterator[pa.Table]:
        head = self.unit.head
        for rows in read_unit(source.lake, source.shape, self.unit):
            times = commit_times(rows, source.timestamp, began(head))
            numbers = pc.divide(pc.bit_wise_and(rows[POSITION], (1 << ROW_BITS) - 1), STEPS)
            yield entries(source, rows, pc.equal(rows[OP], DELETED), times, rows[POSITION], (head.file.base, numbers))


@dataclass(frozen=True)
class LiveEvents:
    """The rows of a data file of the lake table, each as if it were written now. otherwise: the commit time of a row that tells none;
    partitioning: the file's, where the change gives the table another."""

    file: DataFile
    otherwise: int
    partitioning: Partitioning | None = None

    @property
    def size_bytes(self) -> int:
        return self.file.size_bytes

    def __call__(self, source: Source) -> Iterator[pa.Table]:
        shape = source.shape if self.partitioning is None else replace(source.shape, partitioning=self.partitioning)
        for rows in OpenFile.open(source.lake, shape, self.file).batches():
            times = commit_times(rows, source.timestamp, self.otherwise)
            yield entries(source, rows, False, times, 0)


@dataclass(frozen=True)
class GivenEvents:
    """Rows that a person gave, packed: each takes its key's place."""

    rows: bytes
    now: int

    @property
    def size_bytes(self) -> int:
        return len(self.rows)

    def __call__(self, source: Source) -> Iterator[pa.Table]:
        rows = conform(pa.ipc.open_stream(self.rows).read_all(), source.shape.schema, "given rows")
        yield entries(source, rows, False, self.now, 0)


@dataclass(frozen=True)
class GoneEvents:
    """The rows of a data file that go because a person named their key. keys: packed, those named; kept: packed, the primary keys of rows
    that were given for them and take their place."""

    file: DataFile
    keys: bytes
    kept: bytes
    now: int

    @property
    def size_bytes(self) -> int:
        return self.file.size_bytes

    def __call__(self, source: Source) -> Iterator[pa.Table]:
        named, kept = unpack_keys(self.keys), unpack_keys(self.kept)
        for rows in OpenFile.open(source.lake, source.shape, self.file).batches():
            gone = rows.filter(pa.array((named.places(rows) >= 0) & (kept.places(rows) < 0)))
            yield entries(source, gone, True, self.now, 0)


def began(head: RawHead) -> int:
    """The commit time, in microseconds since 1970, of rows that tell none: of a CDC file its name's, of a load file when it was written."""
    name = cdc_name(head.file.key)
    if name is None:
        return int(head.file.modified.timestamp() * 1_000_000)
    return int(name.time.timestamp()) * 1_000_000 + int(name.digits[14:20])


def commit_times(rows: pa.Table, column: str, otherwise: int) -> pa.ChunkedArray:
    """The commit time of each row: the column's, `otherwise` (microseconds since 1970) where it says none that can be read."""
    fallback = pa.scalar(otherwise, pa.int64()).cast(UTC_MICROSECONDS)
    if column not in rows.column_names:
        return pa.chunked_array([pa.repeat(fallback, rows.num_rows)])
    values = rows[column]
    if pt.is_string(values.type):
        values = _read_times(values)
    elif not pt.is_timestamp(values.type):
        return pa.chunked_array([pa.repeat(fallback, rows.num_rows)])
    return pc.fill_null(values.cast(UTC_MICROSECONDS), fallback)


def _read_times(texts: pa.ChunkedArray) -> pa.ChunkedArray:
    """DMS's texts as instants, null where a text is none; digits below the microsecond are cut off."""
    looks = pc.match_substring_regex(texts, _TIME)
    cut = pc.utf8_slice_codeunits(null_where(pc.invert(looks), texts), 0, _MICROSECOND_DIGITS)
    try:
        return cut.cast(pa.timestamp("us")).cast(UTC_MICROSECONDS)
    except pa.ArrowInvalid:  # a day that no month has; such texts are few
        distinct = pc.unique(cut)
        known = pa.array([_read_one(text) for text in distinct.to_pylist()], UTC_MICROSECONDS)
        return known.take(pc.index_in(cut, value_set=distinct))


def read_time(text: str) -> int | None:
    """A DMS text as microseconds since 1970, None where it is no time."""
    times = _read_times(pa.chunked_array([[text]], pa.string()))
    return times.cast(pa.int64())[0].as_py()


def _read_one(text: str | None) -> Any:
    try:
        return None if text is None else pa.scalar(text).cast(pa.timestamp("us")).cast(UTC_MICROSECONDS).as_py()
    except (pa.ArrowInvalid, ValueError):
        return None


def entries(source: Source, rows: pa.Table, deletes: Any, times: Any, order: Any, origin: tuple[str, Any] | None = None) -> pa.Table:
    """Rows (in the lake's columns) as new entries. deletes: whether each is one; times: instants, or one in microseconds; origin: the raw
    file's name and each row's number in it, None for rows that are from none."""
    count = rows.num_rows
    rows = as_stored(rows.select([column.name for column in source.shape.schema]), source.shape)
    kinds = pc.if_else(deletes, DELETE, UPDATE)
    own: dict[str, Any] = {
        OPERATION: kinds if isinstance(kinds, pa.ChunkedArray) else pa.repeat(kinds, count),
        VALID_FROM: pa.repeat(pa.scalar(times, pa.int64()).cast(UTC_MICROSECONDS), count) if isinstance(times, int) else times,
        FLAG: pa.repeat(pa.scalar(1, pa.int32()), count),
        CHANGE: pa.repeat(pa.scalar(source.lake.change), count),
        SOURCE_FILE: pa.nulls(count, pa.string()) if origin is None else pa.repeat(pa.scalar(origin[0]), count),
        SOURCE_ROW: pa.nulls(count, pa.int64()) if origin is None else origin[1],
    }
    for name, values in own.items():
        rows = rows.append_column(name, values)
    placed = pa.repeat(pa.scalar(order, pa.int64()), count) if isinstance(order, int) else order
    return with_place(conform(rows, source.schema, source.shape.table), placed, np.full(count, NEW, np.int64))


def deletes_of(source: Source, versions: pa.Table, now: int) -> pa.Table:
    """Entries that end the keys of these rows of the history table."""
    rows = conform(versions, source.shape.schema, source.shape.table)
    return entries(source, rows, True, now, 0)


def keys_of(tables: Sequence[pa.Table], key: Sequence[str]) -> GivenKeys:
    """The keys of all rows, each once."""
    return GivenKeys.of(pa.concat_tables([table.select(list(key)) for table in tables]), key)


def last_of_each(rows: pa.Table, key: Sequence[str]) -> pa.Table:
    """The last entry of each key, by order."""
    if not rows.num_rows:
        return rows
    order = np.lexsort((rows[ORDER].to_numpy(), codes := GivenKeys.of(rows, key).places(rows)))
    last = np.append(codes[order][1:] != codes[order][:-1], True)
    return rows.take(pa.array(np.sort(order[last])))
