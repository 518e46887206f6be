"""DMS's Parquet files: what their columns are, and their rows in the lake's types with operation and row number.

Whatever is wrong with a file comes out as TableBlocked that names it; damage as code `bad-raw-file`. Errors of the storage
below (a lost connection, an object that changed) pass through as they are: the file may be fine.
"""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pyarrow.types as pt

from glue_jobs.aws.ranged import RangedFile
from glue_jobs.core.dms_columns import BEFORE_IMAGES, before_images, excluded_columns
from glue_jobs.core.dms_columns import BEFORE_PREFIX as BEFORE_PREFIX
from glue_jobs.core.dms_columns import OP_COLUMN as OP_COLUMN
from glue_jobs.core.dms_columns import SEQUENCE_COLUMN as SEQUENCE_COLUMN
from glue_jobs.core.errors import TableBlocked, blocked
from glue_jobs.core.schema import Column, Schema, find, is_column_name
from glue_jobs.spark.arrow_types import LostDigits, lake_type_of, only_index
from glue_jobs.spark.column_buffers import buffer_bytes
from glue_jobs.spark.held_ranges import windows
from glue_jobs.spark.plain_parquet import PlainParquet
from glue_jobs.spark.row_batches import batch_rows_of
from glue_jobs.spark.row_marks import BEFORE, OP, ROW, RowMarks
from glue_jobs.spark.row_marks import OPERATIONS as OPERATIONS

_NO_DAMAGE = (pa.ArrowMemoryError, pa.ArrowCapacityError, pa.ArrowCancelled)
_TIMESTAMP = r"^\d{4}-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01]) ([01]\d|2[0-3]):[0-5]\d:[0-5]\d(\.\d{1,9})?$"
_NEW_COPY = "let DMS write the file again (reload the table), or skip it: `dmslake unblock PATH --skip-file NAME`"
NOT_RENAMED: Mapping[str, str] = {}
_RENAME = "leave out or rename the column by a DMS transformation rule, then reload the table"


@dataclass(frozen=True)
class DmsSchema:
    """What a DMS file's footer says.

    columns: what the lake takes up, in lake types, the timestamp column included. timestamp_column: the one named by the
    person, or, while `timestamp_confirmed` is false, only the candidate by its place. excluded: columns that the lake does not
    take up (before images, the change sequence); `Op` is not among them. images: column → its before image. renamed: the file's
    name → the lake's, of columns that were renamed in the lake since the file was written; all other names here are the lake's. valued:
    of a load file, the columns whose before image has a value in some row (`valued_images`).
    """

    op_column: str | None
    timestamp_column: str | None
    timestamp_confirmed: bool
    columns: Schema
    excluded: tuple[str, ...]
    physical: pa.Schema
    rows: int
    row_groups: int
    images: Mapping[str, str] = field(default_factory=dict)
    renamed: Mapping[str, str] = field(default_factory=dict)
    valued: tuple[str, ...] = ()

    def confirmed(self, values: pa.Array | pa.ChunkedArray) -> DmsSchema:
        """The same with the candidate taken as the timestamp column, or dropped; values: that column of this file."""
        if self.timestamp_confirmed or self.timestamp_column is None:
            return self
        name = self.timestamp_column if looks_like_timestamp(values) else None
        return replace(self, timestamp_column=name, timestamp_confirmed=name is not None)


def open_dms(file: Any, name: str) -> pq.ParquetFile:
    """The Parquet file in `file` (bytes behind a file object, or a path). name: for messages."""
    if isinstance(file, pq.ParquetFile):
        return file
    with damage_named(name):
        if isinstance(file, io.BytesIO):
            file = pa.BufferReader(file.getvalue())  # nothing is copied, and nothing asks Python for the next bytes
        metadata = pq.read_metadata(file)
        each_bytes = buffer_bytes(metadata.num_columns) if isinstance(file, RangedFile) else 0
        parquet = PlainParquet(file, metadata=metadata, coerce_int96_timestamp_unit="us", buffer_size=each_bytes)
        _ = parquet.schema_arrow, parquet.num_row_groups  # a footer can be damaged in parts that are read later
        return parquet


@contextmanager
def damage_named(name: str, code: str = "bad-raw-file", todo: str = _NEW_COPY) -> Iterator[None]:
    """Turns what pyarrow says about a damaged file into TableBlocked."""
    try:
        yield
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        if not _is_damage(error):
            raise
        raise blocked(
            code,
            "the file can't be read as Parquet",
            where=f"file {name}",
            expected="a whole Parquet file",
            found=" ".join(str(error).split())[:300],
            todo=todo,
        ) from error


def _is_damage(error: Exception) -> bool:
    """pyarrow's own OSErrors have no errno; those of files and sockets do, or are of a subclass. Where memory runs out, or an array can't
    hold what a file has, the file is whole."""
    if isinstance(error, _NO_DAMAGE):
        return False
    return not isinstance(error, OSError) or (type(error) is OSError and error.errno is None)


def dms_schema(
    parquet: pq.ParquetFile,
    name: str,
    timestamp_attribute: str = "",
    patterns: Sequence[str] = BEFORE_IMAGES,
    renamed: Mapping[str, str] = NOT_RENAMED,
) -> DmsSchema:
    """What the columns of a DMS file are. timestamp_attribute: the table's attribute TimestampColumn, '' if it has none. patterns: of the
    names of before images. renamed: as of DmsSchema.

    Raises TableBlocked for a type that the lake can't hold, a name that stands there twice, or one that we need ourselves.
    """
    physical = pa.schema([each.with_name(renamed.get(each.name, each.name)) for each in parquet.schema_arrow])
    for column in physical:
        only_index(physical, column.name, name)
    op_column = OP_COLUMN if OP_COLUMN in physical.names and lake_type_of(physical.field(OP_COLUMN).type) == "string" else None
    excluded, images = excluded_columns(physical.names, patterns), before_images(physical.names, patterns)
    columns = tuple(_lake_column(each, name) for each in physical if each.name != op_column and each.name not in excluded)
    timestamp, confirmed = _timestamp_column(columns, timestamp_attribute)
    rows, groups = parquet.metadata.num_rows, parquet.metadata.num_row_groups
    return DmsSchema(op_column, timestamp, confirmed, columns, excluded, physical, rows, groups, images, renamed)


def valued_images(file: Any, parquet: pq.ParquetFile, schema: DmsSchema, name: str) -> tuple[str, ...]:
    """Columns whose before image has a value in some row, if there are any: as the footer says, else as the first such rows do.

    file: what `parquet` reads.
    """
    told = {column: _told_of(parquet.metadata, schema.physical.names, image) for column, image in schema.images.items()}
    valued = tuple(column for column, is_valued in told.items() if is_valued)
    unknown = {column: schema.images[column] for column, is_valued in told.items() if is_valued is None}
    if valued or not unknown:
        return valued
    for batch in read_batches(file, parquet, list(unknown.values()), range(schema.row_groups), name, schema.renamed):
        valued = tuple(column for column, image in unknown.items() if has_value(batch.column(image)))
        if valued:
            return valued
    return ()


def _told_of(metadata: pq.FileMetaData, names: Sequence[str], image: str) -> bool | None:
    """Whether a column has a value, None where the footer doesn't say: without statistics, or in a file with nested columns."""
    if metadata.num_columns != len(names):
        return None
    chunks = [metadata.row_group(number).column(names.index(image)) for number in range(metadata.num_row_groups)]
    told = [_has_value(chunk) for chunk in chunks]
    return True if True in told else None if None in told else False


def _has_value(chunk: pq.ColumnChunkMetaData) -> bool | None:
    """The same of a row group. Writers leave long texts out of the statistics."""
    found = chunk.statistics if chunk.is_stats_set else None
    if found is None or not found.has_null_count:
        return None
    if found.null_count == chunk.num_values:
        return False
    return True if chunk.physical_type != "BYTE_ARRAY" else bool(found.max_raw) if found.has_min_max else None


def has_value(values: pa.Array) -> bool:
    """Whether one is neither null nor an empty text, which may stand for null."""
    if pt.is_dictionary(values.type):
        values = values.dictionary_decode()
    kind = values.type
    if pt.is_string(kind) or pt.is_large_string(kind) or pt.is_binary(kind) or pt.is_large_binary(kind):
        return bool(pc.any(pc.greater(pc.binary_length(values), 0)).as_py())
    return bool(values.null_count < len(values))


def _lake_column(field: pa.Field, name: str) -> Column:
    refuse_reserved(field.name, f"file {name}")
    kind = lake_type_of(field.type)
    if kind is None:
        raise blocked(
            "unsupported-type",
            f"column {field.name!r} has a type that the lake can't hold",
            where=f"file {name}",
            expected="a type that DMS writes (docs/types.md)",
            found=str(field.type),
            todo=_RENAME,
        )
    return Column(field.name, kind)


def refuse_reserved(column: str, where: str) -> None:
    """Raise for a column name that no lake table can have. where: it stands, in words. Control characters are a sign of damage, too."""
    if not is_column_name(column):
        raise blocked("reserved-column", f"the column name {column!r} can't be used", where=where, todo=_RENAME)


def _timestamp_column(columns: Schema, attribute: str) -> tuple[str | None, bool]:
    """(name, whether it is sure)."""
    if attribute:
        found = find(columns, attribute)
        return (attribute, True) if found else (None, False)
    first = columns[0] if columns else None
    return (first.name, False) if first is not None and first.type == "string" else (None, False)


def looks_like_timestamp(values: pa.Array | pa.ChunkedArray) -> bool:
    """Whether there are values and each reads as `yyyy-MM-dd HH:mm:ss` with 0–9 fraction digits; null does not."""
    if len(values) == 0 or values.null_count or lake_type_of(values.type) != "string":
        return False
    return bool(pc.all(pc.match_substring_regex(values.cast(pa.string()), _TIMESTAMP)).as_py())


def read_dms(
    file: Any,
    name: str,
    *,
    columns: Schema,
    row_groups: Sequence[int] | None = None,
    before: Sequence[str] = (),
    patterns: Sequence[str] = BEFORE_IMAGES,
    renamed: Mapping[str, str] = NOT_RENAMED,
    lost: LostDigits | None = None,
) -> Iterator[pa.Table]:
    """The rows of a DMS file in their order, in pieces: `columns` (the lake's; null where the file lacks one), then `__op` (int8:
    0 insert, 1 update, 2 delete) and `__row` (int64, from 0 in the file).

    row_groups: only these, ascending. before: columns of `columns` whose before image is wanted: each comes as a last column
    `__before_<name>` in its column's type, null where the file has none. patterns: of the names of before images. renamed: as of DmsSchema.
    """
    parquet = open_dms(file, name)
    shape = dms_schema(parquet, name, patterns=patterns, renamed=renamed)
    images = {BEFORE + column: shape.images[column] for column in before if column in shape.images}
    marks = RowMarks(
        name, shape.op_column, images, tuple(replace(column, name=BEFORE + column.name) for column in columns if column.name in before)
    )
    wanted = {column.name for column in columns} | {shape.op_column, *images.values()}
    for group, first in _group_starts(parquet, range(parquet.num_row_groups) if row_groups is None else row_groups):
        row = first
        chosen = [column for column in shape.physical.names if column in wanted]
        for batch in read_batches(file, parquet, chosen, group, name, renamed):
            yield marks.lake_rows(batch, columns, row, lost)
            row += batch.num_rows
        _check_rows(row - first, sum(parquet.metadata.row_group(index).num_rows for index in group), name)


def _group_starts(parquet: pq.ParquetFile, groups: Sequence[int]) -> Iterator[tuple[list[int], int]]:
    """Runs of row groups that follow on each other, each with the number of its first row in the file."""
    sizes = [parquet.metadata.row_group(index).num_rows for index in range(parquet.num_row_groups)]
    run: list[int] = []
    for index in groups:
        if run and index != run[-1] + 1:
            yield run, sum(sizes[: run[0]])
            run = []
        run.append(index)
    if run:
        yield run, sum(sizes[: run[0]])


def read_batches(
    file: Any, parquet: pq.ParquetFile, columns: Sequence[str], groups: Sequence[int], name: str, renamed: Mapping[str, str] = NOT_RENAMED
) -> Iterator[pa.RecordBatch]:
    """Some columns of the row groups, in pieces. file: what `parquet` reads; if it fetches ranges, it is told which. renamed: the file's
    name → that in `columns` and in what comes."""
    if renamed:
        in_file = {new: old for old, new in renamed.items()}
        for batch in read_batches(file, parquet, [in_file.get(column, column) for column in columns], groups, name):
            yield pa.RecordBatch.from_arrays(batch.columns, names=[renamed.get(column, column) for column in batch.schema.names])
        return
    if not isinstance(file, RangedFile):
        yield from _batches(parquet, groups, columns, name)
        return
    for some, ranges in windows(parquet.metadata, groups, columns):
        file.hold(ranges)
        yield from _batches(parquet, some, columns, name)
    file.hold(())


def _batches(parquet: pq.ParquetFile, groups: Sequence[int], columns: Sequence[str], name: str) -> Iterator[pa.RecordBatch]:
    with damage_named(name):
        batches = parquet.iter_batches(batch_rows_of(parquet, groups), row_groups=list(groups), columns=list(columns), use_threads=False)
    while True:
        with damage_named(name):
            batch = next(batches, None)
        if batch is None:
            return
        yield batch


def _check_rows(found: int, expected: int, name: str) -> None:
    if found != expected:
        raise blocked(
            "bad-raw-file",
            "the file has not the rows that its footer says",
            where=f"file {name}",
            expected=f"{expected} rows",
            found=f"{found}",
            todo=_NEW_COPY,
        )


def check_keys(table: pa.Table, key: Sequence[str], name: str) -> None:
    """Refuse rows (of `read_dms`) without a whole key. Deletes carry nothing but the key, so only its columns are looked at."""
    missing = [column for column in key if column not in table.column_names]
    if missing:
        raise _no_key_column(key, missing, [column for column in table.column_names if column not in (OP, ROW)], name)
    for column in key:
        values = table.column(column)
        if not values.null_count:
            continue
        row = pc.index(pc.is_null(values), True).as_py()
        number = table.column(ROW)[row].as_py() if ROW in table.column_names else row
        raise blocked(
            "null-key",
            f"the key column {column!r} is null",
            where=f"file {name}, row {number}",
            expected="a value in every column of PrimaryKey",
            found="null",
            todo="correct the attribute PrimaryKey of the table's item, or skip the file: `dmslake unblock PATH --skip-file NAME`",
        )


def check_key_columns(schema: DmsSchema, key: Sequence[str], name: str) -> None:
    """Refuse a file that lacks a key column: read as null, it would be reported as a null key."""
    names = [column.name for column in schema.columns]
    missing = [column for column in key if column not in names]
    if missing:
        raise _no_key_column(key, missing, names, name)


def check_before_images(schema: DmsSchema, lake: Schema, key: Sequence[str], name: str, patterns: Sequence[str]) -> None:
    """Refuse a file of changes with a column that has the name of a key column's before image and does not stand where DMS puts one.

    As a column of the source's own it would leave the old row of each key that changed. lake: one that the table has already, from its
    load, is the source's own; where it stands as a before image does, its values would be taken for old keys.
    """
    for column, image in schema.images.items():
        if find(lake, image) is not None:
            raise blocked(
                "before-image-unclear",
                f"column {image!r} stands where the before image of {column!r} would, and is one of the table's own",
                where=f"file {name}",
                expected="before images that the lake has no columns for",
                found=", ".join(schema.physical.names),
                todo="if it is the source's own, set the attribute BeforeImagePrefix to one that no column has; if it is a before image"
                " now, reload the table in DMS",
            )
    for column in key:
        for image in (pattern.replace("*", column) for pattern in patterns):
            if find(schema.columns, image) is not None and find(lake, image) is None:
                raise blocked(
                    "before-image-unclear",
                    f"column {image!r} could be the before image of the key column {column!r}, or a column of the source's own",
                    where=f"file {name}",
                    expected="before images as the last columns",
                    found=", ".join(schema.physical.names),
                    todo="if it is a before image, correct the DMS task, which adds columns after it, and reload the table; if it is the "
                    "source's own, set the attribute BeforeImagePrefix to one that no column has",
                )


def _no_key_column(key: Sequence[str], missing: Sequence[str], names: Sequence[str], name: str) -> TableBlocked:
    return blocked(
        "no-key-column",
        f"the key column {', '.join(map(repr, missing))} is not there",
        where=f"file {name}",
        expected=f"PrimaryKey {', '.join(key)}",
        found=", ".join(names),
        todo="correct the attribute PrimaryKey of the table's item, or skip the file: `dmslake unblock PATH --skip-file NAME`",
    )
