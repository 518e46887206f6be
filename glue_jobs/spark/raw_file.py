"""One raw file, Parquet or CSV: what it says of itself, and its rows. Nobody else needs to know which of the two it is."""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import pyarrow as pa

from glue_jobs.aws.ranged import open_object
from glue_jobs.core.csv_columns import form_used
from glue_jobs.core.csv_form import DETAIL
from glue_jobs.core.dms_columns import OP_COLUMN, before_images
from glue_jobs.core.paths import TablePath
from glue_jobs.core.raw_names import RawFile, is_csv, is_transactions, load_number
from glue_jobs.core.raw_reading import Reading
from glue_jobs.core.record import Input
from glue_jobs.core.schema import Schema, with_said_booleans
from glue_jobs.core.work import input_of
from glue_jobs.spark.arrow_types import LostDigits, least_row_bytes, to_arrow
from glue_jobs.spark.csv_bytes import CsvFile
from glue_jobs.spark.csv_files import CsvHead, csv_excluded, read_csv, scan_csv
from glue_jobs.spark.dms_files import DmsSchema, dms_schema, open_dms, read_dms, refuse_reserved, valued_images
from glue_jobs.spark.kept_bytes import KeptBytes
from glue_jobs.spark.place import Place
from glue_jobs.spark.row_batches import DECODED_RATIO, decoded_bytes

KEPT_BYTES = 32 * 1024 * 1024
WHOLE_BYTES = 64 * 1024 * 1024  # up to so many a file is fetched by one request where most of its columns are read
FOOTER_BYTES = 256 * 1024  # of a file that is larger only the end is fetched where its columns are asked for


@dataclass(frozen=True)
class CsvParts:
    """How a CSV file is read: what was found of it, and its form. only: as of CsvFile."""

    head: CsvHead
    delimiter: str
    null: str
    only: tuple[str, str] | None = None
    empty_is_text: bool = False


@dataclass(frozen=True)
class RawHead:
    """A raw file and what its footer says; of a CSV file, what its rows say. ordinal: its place in the change's order; late: it came
    behind the cursor. unpacked_bytes: of its rows, of this table alone."""

    file: RawFile
    schema: DmsSchema
    ordinal: int
    late: bool = False

    where: str = ""  # s3:// address, for messages
    csv: CsvParts | None = None
    unpacked_bytes: int = 0

    @property
    def rows(self) -> int:
        return self.schema.rows

    @property
    def size_bytes(self) -> int:
        """The file's, or, where it is packed better than files usually are, what it would have if it were not: by this one knows what its
        rows weigh in memory. There a null takes as much as a value."""
        return max(self.file.size, max(self.unpacked_bytes, self.rows * least_row_bytes(self.schema.columns)) // DECODED_RATIO)

    def input(self) -> Input:
        return input_of(self.file, self.rows)


@dataclass(frozen=True)
class HeadOf:
    """Looks at raw files; also as a task. late: the keys of those that came behind the cursor. keeps: the same process reads their rows
    next, so that they are fetched once."""

    place: Place
    reading: Reading
    late: frozenset[str] = frozenset()
    keeps: bool = False

    def __call__(self, pair: tuple[int, RawFile]) -> RawHead:
        """The head of a file with its place in the order. Raises TableBlocked that names the file."""
        ordinal, file = pair
        where, is_load = address(self.place, file), load_number(file.key) is not None
        if not is_csv(file.key):
            source = open_raw(self.place, file, keep=True) if self.keeps else _open_footer(self.place, file)
            parquet = open_dms(source, where)
            renamed = self.reading.renamed(where, parquet.schema_arrow.names, self.place.before_images)
            schema = dms_schema(parquet, where, self.reading.timestamp_column, self.place.before_images, renamed)
            valued = valued_images(source, parquet, schema, where) if is_load else ()
            schema = replace(schema, columns=with_said_booleans(schema.columns, self.reading.form.schema), valued=valued)
            return RawHead(file, schema, ordinal, file.key in self.late, where, unpacked_bytes=decoded_bytes(parquet))
        form = self.reading.form
        data = open_raw(self.place, file, keep=self.keeps)
        # A look takes the first row and then all rows: of a small file one request is enough.
        source_of = partial(io.BytesIO, data.getvalue()) if isinstance(data, io.BytesIO) else _Opener(self.place, file)
        source = CsvFile(source_of, where, form.delimiter, form.null, only_of(self.reading, file), form.empty_is_text)
        head = scan_csv(source, self.reading, self.place.before_images, with_images=is_load)
        parts = CsvParts(head, form.delimiter, form.null, source.only, form.empty_is_text)
        schema = _csv_schema(head, where, self.place.before_images)
        return RawHead(file, schema, ordinal, file.key in self.late, where, parts, head.taken_bytes)


@dataclass(frozen=True)
class _Opener:
    place: Place
    file: RawFile

    def __call__(self) -> Any:
        return open_raw(self.place, self.file)


def only_of(reading: Reading, file: RawFile) -> tuple[str, str] | None:
    """(schema, table) whose rows are taken, of a file that has the rows of several tables; None of all others. Both are spelled as the
    table's folders are."""
    if not is_transactions(file.key):
        return None
    path = TablePath.parse(reading.table)
    return path.schema, path.table


def csv_form(reading: Reading, heads: Sequence[RawHead]) -> dict[str, Any]:
    """The details of a change that took these files: of CSV files the form, so that they are read the same way again."""
    return {DETAIL: form_used(reading).details()} if any(head.csv is not None for head in heads) else {}


def address(place: Place, file: RawFile) -> str:
    """The file's s3:// address."""
    return f"s3://{place.raw_bucket}/{file.key}"


def _kept_name(place: Place, file: RawFile) -> tuple[str, ...]:
    """Of a file in one change: the next one asks S3 again, which may say that the file is gone."""
    return place.change, place.raw_bucket, file.key, file.etag


_KEPT = KeptBytes(KEPT_BYTES)


def open_raw(place: Place, file: RawFile, *, keep: bool = False, whole_up_to: int = 0) -> Any:
    """The raw file's bytes, as they were when it was listed. keep: they are wanted again, by this process and for this change.
    whole_up_to: fetch all of it up to so many bytes, if that is more than the limits say."""
    kept = _KEPT.get(_kept_name(place, file)) if place.change else None
    if kept is not None:
        return io.BytesIO(kept)
    whole_up_to = max(whole_up_to, place.limits.stream_file_bytes)
    source = open_object(place.s3, place.raw_bucket, file.key, file.size, etag=file.etag, whole_up_to=whole_up_to)
    if keep and place.change and isinstance(source, io.BytesIO):
        _KEPT.put(_kept_name(place, file), source.getvalue())
    return source


def _open_footer(place: Place, file: RawFile) -> Any:
    """The same for somebody who reads nothing but the footer: one request for the file's end."""
    return open_object(place.s3, place.raw_bucket, file.key, file.size, etag=file.etag, whole_up_to=FOOTER_BYTES)


def read_raw(
    place: Place,
    head: RawHead,
    *,
    columns: Schema,
    row_groups: Sequence[int] | None = None,
    before: Sequence[str] = (),
    lost: LostDigits | None = None,
) -> Iterator[pa.Table]:
    """The rows of a raw file as `read_dms` gives them. row_groups: only these; a CSV file has one."""
    patterns = place.before_images
    if head.csv is None:
        is_most = row_groups is None and 2 * len(columns) >= len(head.schema.physical)
        source = open_raw(place, head.file, whole_up_to=WHOLE_BYTES if is_most else 0)
        renamed = head.schema.renamed
        return read_dms(
            source, head.where, columns=columns, row_groups=row_groups, before=before, lost=lost, patterns=patterns, renamed=renamed
        )
    parts = head.csv
    file = CsvFile(_Opener(place, head.file), head.where, parts.delimiter, parts.null, parts.only, parts.empty_is_text)
    return read_csv(file, parts.head, columns=columns, before=before, lost=lost, patterns=patterns)


def _csv_schema(head: CsvHead, where: str, patterns: Sequence[str]) -> DmsSchema:
    """What a CSV file says, as a Parquet file's footer says it."""
    fields = [name for name in head.columns.fields if name]
    for column in head.columns.columns:
        refuse_reserved(column.name, f"file {where}")
    kinds = {column.name: to_arrow(column.type) for column in head.columns.columns}
    images = before_images(fields, patterns)
    return DmsSchema(
        op_column=OP_COLUMN if OP_COLUMN in fields else None,
        timestamp_column=head.columns.timestamp,
        timestamp_confirmed=head.columns.confirmed,
        columns=head.columns.columns,
        excluded=csv_excluded(head, patterns),
        physical=pa.schema([(name, kinds.get(name, pa.string())) for name in fields]),
        rows=head.rows,
        row_groups=1,
        images=images,
        valued=tuple(column for column, image in images.items() if head.facts_of(image).valued),
    )
