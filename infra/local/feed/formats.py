"""The bytes of a file: Parquet as DMS writes it, Parquet as others do, CSV. A new form is a new entry in FORMATS."""

from __future__ import annotations

import csv
import gzip
import io
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from glue_jobs.core.dms_columns import BEFORE_PREFIX, OP_COLUMN, SEQUENCE_COLUMN
from glue_jobs.core.errors import UsageError
from glue_jobs.spark.dms_writer import DmsRow, dms_parquet, dms_table
from infra.local.feed.kinds import Kind
from infra.local.feed.simulation import SourceColumn

NULL = "NULL"
"""DMS's default `CsvNullValue`."""


@dataclass(frozen=True)
class Sheet:
    """A file's rows before they are bytes. Values of rows are by column: those of `columns`, `AR_H_CHANGE_SEQ`, `BI_…`.

    header: of CSV, whether the first line has the names.
    """

    columns: tuple[SourceColumn, ...]
    rows: Sequence[DmsRow]
    timestamp_column: str = ""
    with_op: bool = True
    change_sequence: bool = False
    before_images: bool = False
    header: bool = False

    def fields(self) -> list[tuple[str, Kind | None]]:
        """The data columns in their order; None: a text."""
        found: list[tuple[str, Kind | None]] = [(column.name, column.of) for column in self.columns]
        if self.change_sequence:
            found.append((SEQUENCE_COLUMN, None))
        if self.before_images:
            found += [(BEFORE_PREFIX + column.name, column.of) for column in self.columns]
        return found

    def table(self) -> pa.Table:
        """As DMS lays out the columns of a Parquet file."""
        schema = pa.schema([(name, pa.string() if kind is None else kind.arrow) for name, kind in self.fields()])
        return dms_table(schema, self.rows, timestamp_column=self.timestamp_column or None, with_op=self.with_op)


@dataclass(frozen=True)
class Format:
    """encode: the bytes of a file with this `ending`."""

    ending: str
    encode: Callable[[Sheet], bytes]


def _by_pyarrow(**options: Any) -> Callable[[Sheet], bytes]:
    def encode(sheet: Sheet) -> bytes:
        table, stream = sheet.table(), io.BytesIO()
        pq.write_table(table, stream, **{name: value(table) if callable(value) else value for name, value in options.items()})
        return stream.getvalue()

    return encode


def _delta_encodings(table: pa.Table) -> dict[str, str]:
    """What Parquet 2.0 has for whole numbers and for texts; PLAIN for what has no delta."""
    found = {}
    for at, field in enumerate(table.schema):
        if pa.types.is_integer(field.type) or pa.types.is_temporal(field.type):
            found[field.name] = "DELTA_BINARY_PACKED"
        elif pa.types.is_string(field.type) or pa.types.is_binary(field.type):
            found[field.name] = ("DELTA_BYTE_ARRAY", "DELTA_LENGTH_BYTE_ARRAY")[at % 2]
        elif pa.types.is_floating(field.type):
            found[field.name] = "BYTE_STREAM_SPLIT"
    return found


def _by_pandas(sheet: Sheet) -> bytes:
    """As a person would write it who has the rows in pandas: with pandas's metadata, dictionaries and logical types."""
    import pandas

    stream = io.BytesIO()
    sheet.table().to_pandas(types_mapper=pandas.ArrowDtype).to_parquet(stream, engine="pyarrow")
    return stream.getvalue()


def csv_bytes(sheet: Sheet, before: Sequence[str] = ()) -> bytes:
    """As DMS writes CSV: `\\n`, quoted where RFC 4180 asks for it, null as the bare word NULL. An empty text is quoted, and so is a text
    that reads NULL: else nobody could tell them from null. before: fields between the operation and the row's own.
    """
    fields, lines = sheet.fields(), []
    if sheet.header:
        names = [OP_COLUMN] * sheet.with_op + [sheet.timestamp_column] * bool(sheet.timestamp_column) + [name for name, _ in fields]
        lines.append(",".join(map(_quoted, names)))
    for row in sheet.rows:
        if not isinstance(row.values, dict):
            raise TypeError("rows of a sheet have their values by name")
        texts = [row.op or NULL] * sheet.with_op + [_quoted(text) for text in before]
        texts += [str(row.committed_at)] * bool(sheet.timestamp_column)
        texts += [_field(row.values.get(name), kind) for name, kind in fields]
        lines.append(",".join(texts))
    return "".join(f"{line}\n" for line in lines).encode()


def _field(value: Any, kind: Kind | None) -> str:
    return NULL if value is None else _quoted(str(value) if kind is None else kind.to_text(value))


def _quoted(text: str) -> str:
    if text not in ("", NULL) and text.strip() == text and not any(mark in text for mark in ',"\r\n'):
        return text
    stream = io.StringIO()
    csv.writer(stream, quoting=csv.QUOTE_ALL, lineterminator="").writerow([text])
    return stream.getvalue()


def zipped(data: bytes) -> bytes:
    """gzip, without the time, so that the same rows are the same bytes."""
    return gzip.compress(data, 6, mtime=0)


@dataclass(frozen=True)
class Forms:
    """What the files of a feed are like: file after file takes the next of `formats`."""

    meaning: str
    formats: tuple[Format, ...]


_DMS = Format(".parquet", lambda sheet: dms_parquet(sheet.table()))
_CSV = Format(".csv", csv_bytes)
_ZIPPED_CSV = Format(".csv.gz", lambda sheet: zipped(csv_bytes(sheet)))

FORMATS: dict[str, Forms] = {
    "parquet": Forms("Parquet 1.0 as DMS writes it: converted types only, uncompressed, no statistics on decimals", (_DMS,)),
    "parquet-gzip": Forms(
        "the same with GZIP (`CompressionType`)", (Format(".parquet", lambda sheet: dms_parquet(sheet.table(), compression="gzip")),)
    ),
    "parquet-2.0": Forms(
        "data pages v2 and delta encodings (`ParquetVersion=parquet_2_0`)",
        (
            Format(
                ".parquet",
                _by_pyarrow(
                    version="2.6", data_page_version="2.0", compression="gzip", use_dictionary=False, column_encoding=_delta_encodings
                ),
            ),
        ),
    ),
    "parquet-snappy": Forms("as pyarrow writes it", (Format(".parquet", _by_pyarrow(compression="snappy")),)),
    "parquet-pandas": Forms("as pandas writes it: its metadata, dictionaries, logical types", (Format(".parquet", _by_pandas),)),
    "csv": Forms("CSV (`DataFormat=csv`)", (_CSV,)),
    "csv.gz": Forms("the same with GZIP", (_ZIPPED_CSV,)),
    "mixed": Forms("one file after the other: Parquet, CSV, CSV with GZIP", (_DMS, _CSV, _ZIPPED_CSV)),
}
"""By name."""


def read_format(name: str) -> tuple[Format, ...]:
    """Raises UsageError on an unknown name."""
    if name not in FORMATS:
        raise UsageError(f"--format: {name!r} is none of {', '.join(FORMATS)}", "bad-feed")
    return FORMATS[name].formats
