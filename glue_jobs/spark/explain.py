"""The life of a row: what each change did to one key, and the raw file and row that it came from. Arrow only.

Only those data files are read whose key range covers the key.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from glue_jobs.aws.ranged import open_object
from glue_jobs.core.collation import EXACT, collation_of
from glue_jobs.core.erasure import NOTHING_ERASED, Erased
from glue_jobs.core.errors import TableBlocked, UsageError
from glue_jobs.core.keys import decode_bound, slice_of
from glue_jobs.core.raw_names import is_csv
from glue_jobs.core.record import ChangeRecord, DataFile, Input
from glue_jobs.core.replay import renamed_column
from glue_jobs.core.schema import Schema, widened
from glue_jobs.core.undo import root
from glue_jobs.spark.arrow_types import arrow_schema, conform, lake_type_of, to_arrow
from glue_jobs.spark.data_file_reader import read_data_file, read_rows
from glue_jobs.spark.differences import comparable_schema
from glue_jobs.spark.dms_files import damage_named
from glue_jobs.spark.key_columns import comparables
from glue_jobs.spark.key_index import KeyIndex
from glue_jobs.spark.partition_columns import value_of, with_partition_columns
from glue_jobs.spark.past import find_versions
from glue_jobs.spark.place import Place
from glue_jobs.spark.plain_rows import plain_rows
from glue_jobs.spark.raw_search import GONE, THREADS, Source, source_of
from glue_jobs.spark.row_changes import differing

WHOLE_BYTES = 1 << 20  # a lake file up to this is fetched by one request; of others footer, key columns and one row group
FAR_YEAR = re.compile(r"(-\d{4,}|\d{5,})(-.*)")  # Arrow reads texts of years of four digits alone
CALENDAR_YEARS, CALENDAR_DAYS = 400, 146_097  # after so many the calendar begins anew
KEY_PART = 8  # about so many times as large as its key's columns is a Parquet file
DAY_MICROSECONDS = 86_400_000_000
REWRITES = frozenset({"schema", "widen", "repartition", "rekey", "cursor"})  # kinds that leave the rows as they are
INSERT, UPDATE, DELETE, UNKNOWN = "insert", "update", "delete", "unknown"
Values = dict[str, Any]


@dataclass(frozen=True)
class Step:
    """What one change did to the row. before, after: plain values, None where there was no row, or where it isn't known.

    changed: the columns that differ. gone: a data file of this change that may have the row and whose bytes are no more, '' for none.
    """

    record: ChangeRecord
    what: str
    before: Values | None = None
    after: Values | None = None
    changed: tuple[str, ...] = ()
    source: Source | None = None
    gone: str = ""


@dataclass(frozen=True)
class Life:
    """steps: oldest first. now: the row as it is, None if there is none. files: of the lake that were read."""

    steps: tuple[Step, ...]
    now: Values | None
    files: int


@dataclass(frozen=True)
class _Seen:
    """A row in a data file; its table holds one row, or none if the file has not the key. None: its bytes are no more."""

    file: DataFile
    row: pa.Table | None


def key_of(schema: Schema, key: Sequence[str], values: Sequence[str]) -> pa.Table:
    """The one key whose values are these texts, in the lake's types; binary is hexadecimal, times are UTC."""
    if not key:
        raise UsageError("the table has no primary key: its rows can't be told apart", "no-key", "`dmslake read PATH --where …` finds rows")
    if len(values) != len(key):
        raise UsageError(
            f"{len(values)} key value(s) for {','.join(key)}", "bad-key", "give one value for each key column, separated by commas"
        )
    columns = tuple(column for name in key for column in schema if column.name == name)
    return pa.table([_typed(*pair) for pair in zip(columns, values, strict=True)], schema=arrow_schema(columns))


def _typed(column: Any, text: str) -> pa.Array:
    kind = to_arrow(column.type)
    try:
        if pa.types.is_binary(kind):
            return pa.array([bytes.fromhex(text)], kind)
        if pa.types.is_timestamp(kind):
            text = text.replace("T", " ").removesuffix("Z")
        far = FAR_YEAR.fullmatch(text) if pa.types.is_temporal(kind) else None
        return pa.repeat(_far_time(int(far[1]), far[2], kind) if far else value_of(text, kind), 1)
    except (ValueError, OverflowError, pa.ArrowException) as error:
        raise UsageError(f"{text!r} is no key of column {column.name!r}", "bad-key", f"give a value of type {column.type}") from error


def _far_time(year: int, rest: str, kind: pa.DataType) -> pa.Scalar:
    """A date or a time of a year of more than four digits, or before the year 0. rest: what follows it in the text."""
    times, short = divmod(year - 2000, CALENDAR_YEARS)
    near, days = value_of(f"{2000 + short}{rest}", kind), times * CALENDAR_DAYS
    if pa.types.is_date(kind):
        return pa.scalar(near.value + days, pa.int32()).cast(kind)
    return pa.scalar(near.value + days * DAY_MICROSECONDS, pa.int64()).cast(kind)


def followed(records: Sequence[ChangeRecord], key: pa.Table) -> tuple[ChangeRecord, ...]:
    """The last of `records` (oldest first) that tell rows apart by the same key; before them the key was another one."""
    kept: list[ChangeRecord] = []
    collation = collation_of(records[-1].primary_key) if records else EXACT
    for record in reversed(records):
        kinds = [to_arrow(column.type) for name in key.column_names for column in record.schema if column.name == name]
        same = (
            list(record.primary_key) == key.column_names
            and collation_of(record.primary_key) == collation
            and all(kind == now or _widens(kind, now) for kind, now in zip(kinds, key.schema.types, strict=True))
        )
        if not same:
            break
        kept.append(record)
    return tuple(reversed(kept))


def bytes_of(records: Sequence[ChangeRecord], roots: dict[str, str], key: pa.Table) -> int:
    """The bytes of all files of which `life_of` may read a part: the data files whose key range covers the key, and the raw files of the
    changes that added or superseded one. Most are not read whole."""
    size, held = 0, set[str]()  # held: roots of files that may have had the row
    for record in records:
        covering = [file for file in record.added if _covers(record, file, key)]
        if covering or any(roots.get(path, path) in held for path in record.superseded):
            size += sum(file.size_bytes for file in covering)
            size += sum(_read_of(item) for item in (*record.inputs, *record.context) if not item.is_blank)
        held |= {root(file) for file in covering}
    return size


def _read_of(item: Input) -> int:
    """The bytes of a raw file that are read in the search for a key: of Parquet the key's columns, one in some."""
    return item.size_bytes if is_csv(item.key) else item.size_bytes // KEY_PART


def _widens(old: pa.DataType, new: pa.DataType) -> bool:
    """Whether a lake type of one kind grew into another."""
    before, after = lake_type_of(old) or "", lake_type_of(new) or ""
    return widened(before, after) == after


def life_of(
    place: Place,
    table: str,
    records: Sequence[ChangeRecord],
    roots: dict[str, str],
    key: pa.Table,
    erased: Erased = NOTHING_ERASED,
) -> Life:
    """The life of the row with `key`. records: those that the table's rows are made of, oldest first, all with that key's columns as
    primary key. roots: path → root, for data files that are copies. erased: versions that are for nobody any more."""
    wanted = [(record, file) for record in records for file in record.added if _covers(record, file, key)]
    versions = find_versions(place, [file for _, file in wanted], erased)

    def look(pair: tuple[ChangeRecord, DataFile]) -> _Seen:
        record, file = pair
        version = versions[file.path]
        try:
            return _Seen(file, None if version is None else _find_row(place, record, file, version, key))
        except TableBlocked as error:
            if error.code in GONE:  # since it was looked up
                return _Seen(file, None)
            raise

    with ThreadPoolExecutor(THREADS) as pool:
        seen = dict(zip(((record.id, file.path) for record, file in wanted), pool.map(look, wanted), strict=True))

    def trace(record: ChangeRecord, lives: bool = False) -> Source | None:
        return source_of(place, table, record, key, lives=lives)

    walk = _Walk(roots, trace)
    steps = []
    for record in records:
        found = [seen[record.id, file.path] for file in record.added if (record.id, file.path) in seen]
        step = walk.step(record, found)
        if step is not None:
            steps.append(step)
    touched = tuple(step if step.gone else replace(step, source=trace(step.record, step.after is not None)) for step in steps)
    return Life(touched, _plain(walk.row), len({file.path for _, file in wanted if versions[file.path] is not None}))


class _Walk:
    """The row from change to change. trace: finds a change's raw row of the key."""

    def __init__(self, roots: dict[str, str], trace: Callable[[ChangeRecord], Source | None]) -> None:
        self._roots, self._trace = roots, trace
        self.row: pa.Table | None = None
        self._schema: Schema = ()
        self._file = ""  # root of the file that has the row
        self._unsure: set[str] = set()  # roots of files that may have it, whose bytes are no more

    def step(self, record: ChangeRecord, found: Sequence[_Seen]) -> Step | None:
        """What the change did to the row, None for nothing."""
        before, schema, was_unsure = self.row, self._schema, bool(self._unsure)
        superseded = {self._roots.get(path, path) for path in record.superseded}
        if self._file in superseded:
            self.row, self._file = None, ""
        self._unsure -= superseded
        hit = next((each for each in found if each.row is not None and each.row.num_rows), None)
        gone = [each.file for each in found if each.row is None]
        if hit is not None:
            self.row, self._file, self._schema, self._unsure = hit.row, root(hit.file), record.schema, set()
        elif gone and self.row is None:
            return self._of_raw_file(record, before, gone, was_unsure)
        if was_unsure and self._unsure:
            return None
        return self._told(record, before, schema, was_unsure)

    def _of_raw_file(self, record: ChangeRecord, before: pa.Table | None, gone: Sequence[DataFile], was_unsure: bool) -> Step | None:
        """The data files that may have the row are no more: what the raw files say that the change did to it."""
        source = self._trace(record)
        there = before is not None or was_unsure
        if record.kind in REWRITES or (source is not None and not source.file and not source.missing):
            if before is not None:
                self.row, self._file = before, root(gone[0])
            self._unsure |= {root(file) for file in gone} if was_unsure else set()
            return None
        if source is not None and source.operation == DELETE and not source.missing:
            return Step(record, DELETE, _plain(before), source=source, gone=gone[0].path) if there else None
        self._unsure |= {root(file) for file in gone}
        return Step(record, UNKNOWN, _plain(before), source=source, gone=gone[0].path)

    def _told(self, record: ChangeRecord, before: pa.Table | None, schema: Schema, was_unsure: bool) -> Step | None:
        after = self.row
        if before is None and after is None:
            return Step(record, UNKNOWN) if was_unsure else None
        if before is None or after is None:
            what = UNKNOWN if was_unsure else INSERT if before is None else DELETE
            return Step(record, what, _plain(before), _plain(after))
        changed = _changed(_renamed(before, schema, record), after, record.schema)
        return Step(record, UPDATE, _plain(before), _plain(after), changed) if changed else None


def _renamed(row: pa.Table, schema: Schema, record: ChangeRecord) -> tuple[pa.Table, Schema]:
    """The row of before the change and its columns, under the names that they have since."""
    names = renamed_column(schema, record)
    if names is None:
        return row, schema
    before, now = names
    columns = tuple(replace(column, name=now) if column.name == before else column for column in schema)
    return row.rename_columns([column.name for column in columns]), columns


def _changed(before: tuple[pa.Table, Schema], after: pa.Table, new: Schema) -> tuple[str, ...]:
    """The columns whose values differ; one whose types have nothing in common differs."""
    schema, apart = comparable_schema(before[1], new)
    one, other = conform(before[0], schema, "before"), conform(after, schema, "after")
    differ = [column.name for column in schema if differing(one.select([column.name]), other.select([column.name]))[0].as_py()]
    return (*differ, *apart)


def _plain(row: pa.Table | None) -> Values | None:
    return None if row is None else dict(zip(row.column_names, plain_rows(row)[0], strict=True))


# --- the lake


def _covers(record: ChangeRecord, file: DataFile, key: pa.Table) -> bool:
    """Whether the key lies in the file's key range."""
    types = [column.type for name in record.primary_key for column in record.schema if column.name == name]
    start, stop = slice_of(
        comparables(key, record.primary_key), key.num_columns, decode_bound(types, file.low), decode_bound(types, file.high)
    )
    return stop > start


def _find_row(place: Place, record: ChangeRecord, file: DataFile, version: str, key: pa.Table) -> pa.Table:
    """The row of the key in a data file, in the columns that the table had then; a table without rows if it isn't there."""
    where = file.path
    source = open_object(place.s3, place.lake.bucket, place.lake.key + where, file.size_bytes, None, version, WHOLE_BYTES)
    parquet = read_data_file(source, where)
    index = KeyIndex(key, record.primary_key)
    keys = tuple(column for column in record.schema if column.name in key.column_names)

    def complete(rows: pa.Table, schema: Schema) -> pa.Table:
        return conform(with_partition_columns(rows, record.partitioning, file.partition, record.schema), schema, where)

    at = 0
    in_file = any(name in parquet.schema_arrow.names for name in key.column_names)
    for rows in read_rows(parquet, key.column_names if in_file else None, where):
        hits = pc.is_valid(index.positions(complete(rows, keys)))
        place_of = pc.index(hits, True).as_py()
        if place_of >= 0:
            with damage_named(where, "bad-data-file"):
                return complete(_row_at(parquet, at + place_of), record.schema)
        at += rows.num_rows
    return arrow_schema(record.schema).empty_table()


def _row_at(parquet: Any, row: int) -> pa.Table:
    """One row of a file; its row group is read."""
    for group in range(parquet.num_row_groups):
        count = parquet.metadata.row_group(group).num_rows
        if row < count:
            return parquet.read_row_group(group, use_threads=False).slice(row, 1)
        row -= count
    raise AssertionError("the row was found in this file")


def key_texts(key: pa.Table) -> Values:
    """The key as plain values."""
    return _plain(key) or {}
