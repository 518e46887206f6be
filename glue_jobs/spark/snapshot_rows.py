"""A snapshot's rows: raw files and, where a version is gone on from, its data files; ranked as any batch, written as any table."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from glue_jobs.core.csv_form import CsvForm
from glue_jobs.core.errors import TableBlocked, UsageError, blocked
from glue_jobs.core.partitioning import PartitionField, Partitioning
from glue_jobs.core.paths import S3Uri
from glue_jobs.core.raw_names import cdc_name
from glue_jobs.core.raw_reading import Reading
from glue_jobs.core.record import Counts, DataFile
from glue_jobs.core.schema import Column, Schema, find
from glue_jobs.core.schema_change import reconcile
from glue_jobs.core.settings import Settings
from glue_jobs.core.snapshot_plan import BY_COLUMN, Manifest, SnapshotPlan, Version, below, csv_columns, layout_of, with_inputs
from glue_jobs.core.snapshot_sources import RUN_DATE_COLUMN, Source, check_columns, date_folder, differences, output_schema
from glue_jobs.spark.arrow_types import UTC_MICROSECONDS, first_failing, null_where, shown
from glue_jobs.spark.dms_files import looks_like_timestamp
from glue_jobs.spark.engine import Engine, Engines
from glue_jobs.spark.locate import GivenKeys, candidates_by_range, locate
from glue_jobs.spark.net_changes import DELETE, OP, POSITION, ROW_BITS
from glue_jobs.spark.partition_columns import partition_values
from glue_jobs.spark.past import PastFile
from glue_jobs.spark.place import CLIENT_VARIABLES, Place, Shape
from glue_jobs.spark.raw_batch import Unit, check_images_of_load, read_heads, read_unit, units_of
from glue_jobs.spark.raw_file import RawHead
from glue_jobs.spark.rewrite import FileSource
from glue_jobs.spark.rows import may_move, ranked_rows
from glue_jobs.spark.sizes import expected_bytes
from glue_jobs.spark.table_rows import RowSource, TablePlan, write_table
from glue_jobs.spark.task_errors import brought_back
from glue_jobs.spark.timestamps import backward_steps

LOAD_TIME = pa.scalar(0, pa.int64()).cast(UTC_MICROSECONDS)  # 1970-01-01 00:00:00: a load row is the first version of its key
FILE_NAME = "part"  # data files' names begin with it
_TIME_LENGTH = len("yyyy-MM-dd HH:mm:ss.SSSSSS")


class SnapshotRows:
    """Writes the rows of a version: little work in the driver, everything else on Spark."""

    def __init__(self, settings: Settings, environment: Mapping[str, str] | None = None, engines: Engines | None = None) -> None:
        self._settings = settings
        self._engines = engines or Engines.of(settings.limits)
        self._environment = os.environ if environment is None else environment

    def __call__(self, plan: SnapshotPlan, version: Version) -> Manifest:
        try:
            with brought_back():
                return self._write(plan, version)
        except TableBlocked as error:
            todo = _todo(error.code)
            if todo is None:
                raise
            raise UsageError(error.message, error.code, todo) from error

    def _write(self, plan: SnapshotPlan, version: Version) -> Manifest:
        wish, source = plan.wish, plan.wish.source
        client = tuple((name, self._environment[name]) for name in CLIENT_VARIABLES if self._environment.get(name))
        to = wish.folder.join(version.prefix)
        settings = self._settings
        place = Place(client, source.path.bucket, to, FILE_NAME, settings.compression, settings.limits, source.before_images)
        base = plan.base.files if plan.base else ()
        heads = [replace(head, ordinal=head.ordinal + len(base)) for head in _heads(place, plan)]
        check_images_of_load(heads)
        schema = source.expected or (plan.base.schema if plan.base else heads[0].schema.columns)
        check_files(plan, schema, heads)
        check_columns(source, schema)
        reconcile(str(source.path), (), [(str(source.path), output_schema(source, schema))])  # names that differ by case
        if wish.by_run_date and any(column.name.lower() == RUN_DATE_COLUMN for column in schema):
            todo = "take --layout flat, or rename the column by a DMS transformation rule"
            raise UsageError(f"the table has a column {RUN_DATE_COLUMN!r}, as the partitions would have", "column-taken", todo)
        work = _Work(self._engines, place, wish.folder, source, schema, snapshot_shape(source, schema, wish.by_column), tuple(heads))
        kept, written = work.by_dates(base) if wish.by_column and plan.base else ((), work.all_rows(base))
        files = (*kept, *below(version.prefix, written))
        return self._manifest(plan, version, schema, files, work)

    def _manifest(self, plan: SnapshotPlan, version: Version, schema: Schema, files: tuple[DataFile, ...], work: _Work) -> Manifest:
        wish, source = plan.wish, plan.wish.source
        timestamp = source.timestamp_column
        cdc = [head for head in work.heads if cdc_name(head.file.key)]
        backward = sum(work.engine(0).map(partial(_backward, work.place, timestamp), cdc)) if timestamp else 0
        return Manifest(
            version=version,
            table=source.table,
            database=wish.database,
            run_id=self._settings.run_id,
            run_date=wish.run_date.isoformat(),
            time=version.time,
            layout=layout_of(wish),
            path=str(source.path),
            primary_keys=source.primary_keys,
            schema=schema,
            last_change_column=source.last_change_column,
            timestamp_column=timestamp,
            cdc_start_date=source.cdc_start_date.isoformat() if source.cdc_start_date else "",
            partition_date=source.partition_date if wish.by_column else "",
            mode=plan.mode,
            reason=plan.reason,
            base=plan.base.version.name if plan.base else "",
            inputs=with_inputs(plan, [head.input() for head in work.heads]),
            files=files,
            partitions=_partitions(plan, version, files),
            rows=sum(file.rows for file in files),
            counts=Counts(input_rows=sum(head.rows for head in work.heads), backward=backward, table_rows=sum(f.rows for f in files)),
            csv_columns=csv_columns(source),
            csv_delimiter=source.csv_delimiter,
            csv_null=source.csv_null,
            before_images=source.before_images,
        )


def _todo(code: str) -> str | None:
    """What to do about a raw file where the way out is not a lake table's item, as those who refuse it say; None where they are right."""
    if code.startswith("csv-") and code != "csv-value":
        return "correct schema of the source (columns of CSV files in the order of their fields), or timestamp_column"
    return {
        "bad-raw-file": "let DMS write the file again: reload the table",
        "before-image-unclear": "name before images by before_image_prefix of the source (as OLD_): one that no column of the table has",
    }.get(code)


def _backward(place: Place, timestamp: str, head: RawHead) -> int:
    return backward_steps(place, head, timestamp)


def _partitions(plan: SnapshotPlan, version: Version, files: Sequence[DataFile]) -> tuple[tuple[str | None, str], ...]:
    """The catalog's partitions of this version: folder value and location."""
    folder = plan.wish.folder
    if plan.wish.by_run_date:
        return ((plan.wish.run_date.isoformat(), str(folder.join(version.prefix))),)
    if layout_of(plan.wish) != BY_COLUMN:
        return ()
    found = {(file.partition[0], str(folder.join(file.path.rsplit("/", 1)[0] + "/"))) for file in files}
    if len({date for date, _ in found}) < len(found):
        raise AssertionError(f"a date has files of two versions: {sorted(map(str, found))}")  # one of them would vanish for readers
    return tuple(sorted(found, key=lambda pair: (pair[0] is None, pair[0] or "")))


def _heads(place: Place, plan: SnapshotPlan) -> list[RawHead]:
    """The heads of the raw files that are read. Types of CSV files come from the source's schema, else from the version before."""
    source = plan.wish.source
    lake = plan.base.schema if plan.base and not source.schema else ()
    form = CsvForm(source.schema, source.csv_delimiter, source.csv_null)
    return read_heads(place, plan.fresh, Reading(str(source.path), source.timestamp_column, lake, form))


def check_files(plan: SnapshotPlan, schema: Schema, heads: Sequence[RawHead]) -> None:
    """Refuse raw files whose columns are not those of the source, with every difference of every file (up to a few files)."""
    source = plan.wish.source
    wrong = [(head, differences(schema, head.schema.columns)) for head in heads]
    wrong = [(head, lines) for head, lines in wrong if lines]
    if not wrong:
        return
    shown_files = "; ".join(f"{head.file.base}: {', '.join(lines)}" for head, lines in wrong[:5])
    more = f"; and {len(wrong) - 5} more file(s)" if len(wrong) > 5 else ""
    found = f"of the version before ({plan.base.version.name})" if plan.base else f"of {heads[0].file.base}"
    stated = "of the sources file" if source.schema else found
    raise UsageError(
        f"the columns of {len(wrong)} raw file(s) of {source.path} are not those {stated}: {shown_files}{more}",
        "snapshot-schema",
        "correct schema of the source (a column that DMS adds as TimestampColumnName is named by timestamp_column), or reload the table",
    )


def snapshot_shape(source: Source, schema: Schema, by_column: bool) -> Shape:
    """The snapshot's columns and partitions. By a date that is not of type date, a column with the day stands behind."""
    columns = output_schema(source, schema)
    folder = date_folder(source, schema) if by_column else ""
    if folder and find(columns, folder) is None:
        columns = (*columns, Column(folder, "date"))
    partitioning: Partitioning = (PartitionField(folder),) if folder else ()
    return Shape(str(source.path), columns, source.primary_keys, partitioning)


@dataclass(frozen=True)
class SnapshotSource:
    """The rows of a piece of a raw file with what a snapshot adds: the time of the last change, and the day."""

    unit: Unit
    source: Source

    def __call__(self, place: Place, shape: Shape) -> Iterator[pa.Table]:
        for table in read_unit(place, shape, self.unit):
            yield with_added(table, shape, self.source, self.unit.head)


def with_added(table: pa.Table, shape: Shape, source: Source, head: RawHead) -> pa.Table:
    """Fill those columns of `shape` that no raw file has."""
    names = [column.name for column in shape.schema]
    if source.last_change_column in names:
        times = last_change(table, source, head)
        table = table.set_column(names.index(source.last_change_column), source.last_change_column, times)
    day = shape.partitioning[0].column if shape.partitioning else ""
    if day and day != source.partition_date:
        table = table.set_column(names.index(day), day, _days(table, source.partition_date, (head,)))
    return table


def last_change(table: pa.Table, source: Source, head: RawHead) -> Any:
    """When each row was changed: 1970 for load rows, the timestamp column's value, or the CDC file name's time without one."""
    name = cdc_name(head.file.key)
    if name is None:
        return pa.repeat(LOAD_TIME, table.num_rows)
    if not source.timestamp_column:
        return pa.repeat(pa.scalar(name.time, UTC_MICROSECONDS), table.num_rows)
    values = table[source.timestamp_column]
    if pt.is_timestamp(values.type):
        return values
    if table.num_rows and not looks_like_timestamp(values):
        raise _no_time(source.timestamp_column, values, head)
    try:
        return _parsed(values)
    except pa.ArrowInvalid:  # a text with the form of a time, such as 2024-02-31 00:00:00
        raise _no_time(source.timestamp_column, values, head) from None


def _parsed(values: Any) -> Any:
    """Texts as instants; digits below the microsecond are cut off."""
    return pc.utf8_slice_codeunits(values, 0, _TIME_LENGTH).cast(pa.timestamp("us")).cast(UTC_MICROSECONDS)


def _check_times(values: Any) -> None:
    if not looks_like_timestamp(values):
        raise pa.ArrowInvalid("no time")
    _parsed(values)


def _no_time(column: str, values: Any, head: RawHead) -> TableBlocked:
    row = first_failing(_check_times, values) or 0
    return blocked(
        "no-timestamp",
        f"a value of the timestamp column {column!r} is no time",
        where=f"file {head.where}",
        expected="yyyy-MM-dd HH:mm:ss with 0 to 9 digits behind",
        found=shown(values[row]),
        todo="correct timestamp_column of the source, or leave it out: then the time in the CDC file's name is taken",
    )


def _days(table: pa.Table, column: str, heads: Sequence[RawHead]) -> Any:
    """The day of a timestamp or of a text that begins with one; null for null, and for deletes, which go. heads: of the rows' files."""
    values = table[column]
    if pt.is_timestamp(values.type):
        return values.cast(pa.int64()).cast(pa.timestamp("us")).cast(pa.date32(), safe=False)
    gone = pc.equal(table[OP], pa.scalar(DELETE, pa.int8()))
    days = null_where(gone, pc.utf8_slice_codeunits(values, 0, len("yyyy-MM-dd")))
    try:
        return days.cast(pa.date32())
    except pa.ArrowInvalid:
        row = first_failing(lambda part: part.cast(pa.date32()), days) or 0
    ordinal = table[POSITION][row].as_py() >> ROW_BITS
    raise blocked(
        "no-date",
        f"a value of column {column!r} is no date",
        where=f"file {next(head.where for head in heads if head.ordinal == ordinal)}",
        expected="null or a text that begins yyyy-MM-dd",
        found=shown(values[row]),
        todo="correct partition_date of the source; or the value at the source, and reload the table in DMS: a file with such a value stops"
        " every run for which it counts (cdc_start_date)",
    )


@dataclass(frozen=True)
class BaseSource:
    """The rows of a data file of the version before: the lowest positions."""

    file: FileSource
    folder: S3Uri

    def __call__(self, place: Place, shape: Shape) -> Iterator[pa.Table]:
        return self.file(replace(place, lake=self.folder), shape)


@dataclass(frozen=True)
class _Work:
    """What the rows of one run need. place: of the new files; folder: which paths of data files are below."""

    engines: Engines
    place: Place
    folder: S3Uri
    source: Source
    schema: Schema
    shape: Shape
    heads: tuple[RawHead, ...]

    def engine(self, more_bytes: int) -> Engine:
        return self.engines.for_bytes(more_bytes + sum(head.size_bytes for head in self.heads))

    def all_rows(self, base: Sequence[DataFile]) -> list[DataFile]:
        """New data files with the winners of `base` and the raw files."""
        size = sum(file.size_bytes for file in base)
        sources: list[RowSource] = [BaseSource(FileSource(file, at, self.shape.partitioning), self.folder) for at, file in enumerate(base)]
        sources += [SnapshotSource(unit, self.source) for head in self.heads for unit in units_of(head)]
        rows = sum(file.rows for file in base) + sum(head.rows for head in self.heads)
        size_bytes = size + expected_bytes(self.place, self.shape, self.heads)
        plan = TablePlan(tuple(sources), True, size_bytes, rows, may_move=may_move(self.shape, self.heads))
        return write_table(self.engine(size), self.place, self.shape, plan)

    def by_dates(self, base: Sequence[DataFile]) -> tuple[tuple[DataFile, ...], list[DataFile]]:
        """(files of dates without a change, new files of all others)."""
        if not self.heads:
            return tuple(base), []
        dates = self._changed_dates(base)
        changed = [file for file in base if file.partition[0] in dates]
        return tuple(file for file in base if file.partition[0] not in dates), self.all_rows(changed)

    def _changed_dates(self, base: Sequence[DataFile]) -> set[str | None]:
        """The dates that changed rows had before, and those that they have now."""
        shape = self._narrow()
        engine = self.engine(sum(file.size_bytes for file in base))
        rows = ranked_rows(engine, self.place, shape, self.heads)
        kept = rows.filter(pc.not_equal(rows[OP], pa.scalar(DELETE, pa.int8())))
        now = dates_of(kept, shape, self.shape, self.source, self.heads)
        if may_move(shape, self.heads):
            # By these columns alone two moves of different rows may look as one that was sent again, and what stays as none.
            look = _DatesOf(self.place, shape, self.shape, self.source)
            now.update(*engine.map(look, [unit for head in self.heads for unit in units_of(head)]))
        keys, files = GivenKeys.of(rows, shape.key), [PastFile(file, "") for file in base]
        place = replace(self.place, lake=self.folder)
        found = locate(engine, place, self.shape, keys, candidates_by_range(keys, self.shape, files))
        paths = {each.path for each in found}
        return now | {file.partition[0] for file in base if file.path in paths}

    def _narrow(self) -> Shape:
        """Only the columns that say a row's key and date, as raw files have them."""
        wanted = {*self.shape.key, self.source.partition_date}
        return Shape(self.shape.table, tuple(column for column in self.schema if column.name in wanted), self.shape.key)


@dataclass(frozen=True)
class _DatesOf:
    """The dates of all rows of a piece of a raw file, those of deletes aside. narrow: the columns that are read."""

    place: Place
    narrow: Shape
    shape: Shape
    source: Source

    def __call__(self, unit: Unit) -> set[str | None]:
        found: set[str | None] = set()
        for table in read_unit(self.place, self.narrow, unit):
            kept = table.filter(pc.not_equal(table[OP], pa.scalar(DELETE, pa.int8())))
            found |= dates_of(kept, self.narrow, self.shape, self.source, (unit.head,))
        return found


def dates_of(kept: pa.Table, narrow: Shape, shape: Shape, source: Source, heads: Sequence[RawHead]) -> set[str | None]:
    """The dates of rows, as the folders of partitions have them. narrow: the rows' columns; shape: the snapshot's."""
    if not kept.num_rows:
        return set()
    field = shape.partitioning[0]
    if field.column != source.partition_date:
        kept = kept.append_column(field.column, _days(kept, source.partition_date, heads))
    values = partition_values(kept, (field,), (*narrow.schema, Column(field.column, "date")), False, shape.table)
    return set(pc.unique(values.column(0)).to_pylist())
