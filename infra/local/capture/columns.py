"""Columns of a source table: their types as DMS maps them, and their values from SELECT and from the binlog.

| MySQL, MariaDB | in the file |
| --- | --- |
| tinyint (also `(1)`, boolean), smallint, mediumint, int, bigint | INT8, 16, 32, 32, 64; unsigned: UINT8, 16, 32, 32, 64 |
| decimal(p,s) | decimal(p,s); p over 38: string |
| float, double | FLOAT, DOUBLE |
| date | DATE |
| datetime, timestamp | TIMESTAMP_MICROS (timestamp in UTC) |
| time | string `[-]HH:mm:ss[.fff]`: its range, -838 to 838 hours, is wider than a time of day |
| year | INT16 |
| char, varchar, text, enum, set, json | string |
| binary, varbinary, blob, geometry | binary |
| bit(1) | BOOLEAN; bit(n): binary, big-endian |

Dates that are none (0000-00-00, 2024-00-10, 2024-02-30) become null, as in DMS's own files: no Parquet type can say them.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa
from pymysqlreplication.constants import FIELD_TYPE, NONE_SOURCE

from infra.local.capture.errors import CaptureError, SetupError

Convert = Callable[[Any], Any]

_MAX_PRECISION = 38
_INTEGERS = {"tinyint": 8, "smallint": 16, "mediumint": 32, "int": 32, "bigint": 64}
_TEXTS = frozenset(["char", "varchar", "tinytext", "text", "mediumtext", "longtext", "enum", "set", "json"])
_BLOBS = frozenset(["binary", "varbinary", "tinyblob", "blob", "mediumblob", "longblob", "geometry", "point"])
_BLOBS |= {"linestring", "polygon", "multipoint", "multilinestring", "multipolygon", "geometrycollection"}
_UNREADABLE_CHARSETS = frozenset(["utf16", "utf32"])
"""Python's codecs of these names use another byte order than the server."""
_OTHER_CHARSET = "leave the table out, or give the column another character set and run with --full-load"

_BINLOG_KINDS = {
    FIELD_TYPE.TINY: "tinyint",
    FIELD_TYPE.SHORT: "smallint",
    FIELD_TYPE.INT24: "mediumint",
    FIELD_TYPE.LONG: "int",
    FIELD_TYPE.LONGLONG: "bigint",
    FIELD_TYPE.FLOAT: "float",
    FIELD_TYPE.DOUBLE: "double",
    FIELD_TYPE.NEWDECIMAL: "decimal",
    FIELD_TYPE.DATE: "date",
    FIELD_TYPE.DATETIME: "datetime",
    FIELD_TYPE.DATETIME2: "datetime",
    FIELD_TYPE.TIMESTAMP: "timestamp",
    FIELD_TYPE.TIMESTAMP2: "timestamp",
    FIELD_TYPE.TIME: "time",
    FIELD_TYPE.TIME2: "time",
    FIELD_TYPE.YEAR: "year",
    FIELD_TYPE.BIT: "bit",
    FIELD_TYPE.ENUM: "enum",
    FIELD_TYPE.SET: "set",
    FIELD_TYPE.JSON: "json",
    FIELD_TYPE.GEOMETRY: "geometry",
}


@dataclass(frozen=True)
class SourceColumn:
    """A column as the stand-in writes it; equal whether it was read from information_schema or from the binlog."""

    name: str
    type: pa.DataType


def described_column(row: dict[str, Any]) -> SourceColumn:
    """The column of a row of `information_schema.columns` (keys in lower case)."""
    return SourceColumn(row["column_name"], _arrow_type(row["data_type"], _Described(row)))


def select_expression(row: dict[str, Any], quoted: str) -> str:
    """What to SELECT for the column: a FLOAT as a double, since the server prints floats with 6 digits only."""
    return f"({quoted} + 0e0)" if row["data_type"] == "float" else quoted


def select_converter(row: dict[str, Any]) -> Convert | None:
    """From what PyMySQL gives for the column in a SELECT to its value; None: it is the value already."""
    kind = row["data_type"]
    if kind in ("date", "datetime", "timestamp"):
        return _null_if_text
    if kind == "bit":
        return _bit_of(row["numeric_precision"], lambda value: int.from_bytes(value, "big"))
    if kind == "decimal" and row["numeric_precision"] > _MAX_PRECISION:
        return _plain_number
    return None


def logged_column(column: Any) -> SourceColumn:
    """The column of a table map event of the binlog."""
    if not column.name:
        raise CaptureError(
            "binlog: the events carry no column names, they were written before binlog_row_metadata was FULL",
            "binlog-metadata",
            "run with --full-load to start behind them",
        )
    return SourceColumn(column.name, _arrow_type(_logged_kind(column), _Logged(column)))


def logged_converter(column: Any) -> Callable[[Any, Any], Any]:
    """From (value, why it is None) as the binlog reader gives them for the column to its value."""
    convert = _logged_value(column)
    empty_set = _logged_kind(column) == "set"

    def value_of(value: Any, none_source: Any) -> Any:
        if value is not None:
            return convert(value) if convert else value
        if none_source == NONE_SOURCE.COLS_BITMAP:
            raise CaptureError(
                f"binlog: column {column.name} is missing in a row image",
                "binlog-row-image",
                "a session has changed its binlog_row_image: have it set to FULL, then run with --full-load",
            )
        return "" if empty_set and none_source == NONE_SOURCE.EMPTY_SET else None

    return value_of


class _Described:
    """What the type mapping asks about a column, from information_schema."""

    def __init__(self, row: dict[str, Any]) -> None:
        self.name = row["column_name"]
        self.unsigned = "unsigned" in row["column_type"]
        self.precision, self.scale = row["numeric_precision"], row["numeric_scale"]
        self.bits = row["numeric_precision"]


class _Logged:
    """The same from a table map event."""

    def __init__(self, column: Any) -> None:
        self.name = column.name
        self.unsigned = column.unsigned
        self.precision, self.scale = getattr(column, "precision", 0), getattr(column, "decimals", 0)
        self.bits = getattr(column, "bits", 0)


def _arrow_type(kind: str, facts: _Described | _Logged) -> pa.DataType:
    if kind in _INTEGERS:
        return getattr(pa, f"{'u' if facts.unsigned else ''}int{_INTEGERS[kind]}")()
    if kind == "decimal":
        too_wide = facts.precision > _MAX_PRECISION
        return pa.string() if too_wide else pa.decimal128(facts.precision, facts.scale)
    if kind == "bit":
        return pa.bool_() if facts.bits == 1 else pa.binary()
    if kind in _TEXTS or kind == "time":
        return pa.string()
    if kind in _BLOBS:
        return pa.binary()
    simple = {
        "float": pa.float32(),
        "double": pa.float64(),
        "date": pa.date32(),
        "datetime": pa.timestamp("us"),
        "timestamp": pa.timestamp("us"),
        "year": pa.int16(),
    }
    if kind not in simple:
        raise SetupError(
            f"column {facts.name}: type {kind} has no mapping: its table can't be one of --tables",
            "unknown-type",
            "leave the table out, or give the column another type",
        )
    return simple[kind]


def _logged_kind(column: Any) -> str:
    if column.type in (FIELD_TYPE.VARCHAR, FIELD_TYPE.VAR_STRING, FIELD_TYPE.STRING, FIELD_TYPE.BLOB):
        if column.character_set_name in _UNREADABLE_CHARSETS:
            raise SetupError(
                f"column {column.name}: character set {column.character_set_name} can't be read", "unknown-charset", _OTHER_CHARSET
            )
        return "blob" if column.character_set_name == "binary" else "text"
    try:
        return _BINLOG_KINDS[column.type]
    except KeyError:
        raise CaptureError(
            f"binlog: column {column.name} has type number {column.type}, which is not known",
            "unknown-type",
            "leave the table out, or give the column another type and run with --full-load",
        ) from None


def _logged_value(column: Any) -> Convert | None:
    """The reader gives empty bytes as an empty str: `value or b""`."""
    kind = _logged_kind(column)
    if kind == "text":
        return _text
    if kind == "blob":
        size = column.max_length if column.type == FIELD_TYPE.STRING else 0
        return lambda value: (value or b"").ljust(size, b"\0")  # BINARY(n): the binlog drops the padding
    if kind == "timestamp":
        return lambda value: None if value == _ZERO_TIMESTAMP else value
    if kind == "time":
        return lambda value: _time_text(value, getattr(column, "fsp", 0))
    if kind == "year":
        return lambda value: 0 if value == _ZERO_YEAR else value
    if kind == "bit":
        return _bit_of(column.bits, lambda digits: int(digits, 2))
    if kind == "set":
        return lambda value: ",".join(label for label in column.set_values if label in value)
    if kind == "json":
        return lambda value: json.dumps(_decoded(value), ensure_ascii=False)
    if kind == "decimal":
        return _plain_number if column.precision > _MAX_PRECISION else None
    return None


_ZERO_TIMESTAMP = datetime(1970, 1, 1)  # noqa: DTZ001  the reader's values are naive UTC; 0 stands for 0000-00-00
_ZERO_YEAR = 1900  # YEAR starts at 1901; the reader adds 1900 to the stored 0 of year 0000


def _null_if_text(value: Any) -> Any:
    """PyMySQL gives a date that is none as text."""
    return None if isinstance(value, str) else value


def _bit_of(bits: int, number_of: Callable[[Any], int]) -> Convert:
    if bits == 1:
        return lambda value: bool(number_of(value))
    return lambda value: number_of(value).to_bytes((bits + 7) // 8, "big")


def _plain_number(value: Decimal) -> str:
    return f"{value:f}"


def _text(value: Any) -> str:
    if isinstance(value, bytes):
        raise CaptureError(f"binlog: text in a character set that can't be read: {value[:40]!r}", "unknown-charset", _OTHER_CHARSET)
    return str(value)


def _time_text(value: timedelta, digits: int) -> str:
    """As the server prints a TIME(digits)."""
    microseconds = abs(value) // timedelta(microseconds=1)
    seconds, fraction = divmod(microseconds, 1_000_000)
    text = f"{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}"
    text += f".{fraction:06d}"[: digits + 1] if digits else ""
    return ("-" if value < timedelta(0) else "") + text


def _decoded(value: Any) -> Any:
    if isinstance(value, bytes):
        return value.decode("utf-8")
    if isinstance(value, dict):
        return {_decoded(key): _decoded(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_decoded(item) for item in value]
    return value
