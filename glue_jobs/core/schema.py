"""The lake's types and schemas. A schema is an ordered tuple of columns; types are written as Spark, Hive and Athena write them."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace

SIMPLE_TYPES = (
    "boolean",
    "tinyint",
    "smallint",
    "int",
    "bigint",
    "float",
    "double",
    "string",
    "binary",
    "date",
    "timestamp",
)
_DECIMAL = re.compile(r"decimal\((\d{1,2}),(\d{1,2})\)")
_INTEGERS = ("tinyint", "smallint", "int", "bigint")

# The types of DMS's own, as its guide has them for Parquet → the Arrow type that a file's column is read as. docs/types.md shows this very
# table, with the lake's type for each.
DMS_TO_ARROW: dict[str, str] = {
    "BOOLEAN": "bool",
    "INT1": "int8",
    "INT2": "int16",
    "INT4": "int32",
    "INT8": "int64",
    "UINT1": "uint8",
    "UINT2": "uint16",
    "UINT4": "uint32",
    "UINT8": "uint64",
    "REAL4": "float",
    "REAL8": "double",
    "NUMERIC": "decimal128(38, 10)",
    "DATE": "date32[day]",
    "TIME": "time32[ms]",
    "DATETIME": "timestamp[us]",
    "DATETIME, ParquetTimestampInMillisecond": "timestamp[ms]",
    "STRING": "string",
    "WSTRING": "string",
    "CLOB": "string",
    "NCLOB": "string",
    "BYTES": "binary",
    "BLOB": "binary",
}
# What a raw file's column is read as (the name of its Arrow type) → the lake's type. docs/types.md shows this table too.
# Parametrised types (decimal, timestamp, dictionary) are handled in `lake_type`.
ARROW_TO_LAKE: dict[str, str] = {
    "bool": "boolean",
    "int8": "tinyint",
    "int16": "smallint",
    "int32": "int",
    "int64": "bigint",
    "uint8": "smallint",
    "uint16": "int",
    "uint32": "bigint",
    "uint64": "decimal(20,0)",
    "halffloat": "float",
    "float": "float",
    "double": "double",
    "string": "string",
    "large_string": "string",
    "string_view": "string",
    "binary": "binary",
    "large_binary": "binary",
    "binary_view": "binary",
    "date32[day]": "date",
    "date64[ms]": "date",
    "time32[s]": "string",
    "time32[ms]": "string",
    "time64[us]": "string",
    "time64[ns]": "string",
}


@dataclass(frozen=True)
class OldName:
    """A name that a column has in raw files up to the cursor `until`: it was renamed when they were applied."""

    name: str
    until: str


@dataclass(frozen=True)
class Column:
    """A column of a lake table. `absent`: the source has not sent it lately; the lake keeps it, new rows have null. `added`: it came after
    the load, so that its place here need not be its place at the source. `older`: its names before it was renamed, since the load."""

    name: str
    type: str
    absent: bool = False
    added: bool = field(default=False, compare=False)
    older: tuple[OldName, ...] = field(default=(), compare=False)


Schema = tuple[Column, ...]


def decimal_parts(type_name: str) -> tuple[int, int] | None:
    """(precision, scale) of a decimal type, else None."""
    match = _DECIMAL.fullmatch(type_name)
    return (int(match.group(1)), int(match.group(2))) if match else None


# Columns that stand beside the lake's in a job.
_OWN_COLUMNS = re.compile(r"__(op|row|before_.*|position|code|late|at|at_max|order|p\d+)", re.DOTALL)
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")


def is_column_name(name: str) -> bool:
    """Whether a lake table can have a column of this name. Control characters in one are a sign of damage, too."""
    return bool(name) and not _OWN_COLUMNS.fullmatch(name) and not _CONTROL.search(name)


def is_type(text: str) -> bool:
    parts = decimal_parts(text)
    return text in SIMPLE_TYPES or (parts is not None and 1 <= parts[0] <= 38 and parts[1] <= parts[0])


def lake_type(arrow_type: str) -> str | None:
    """The lake's type for an Arrow type's text (`str(pyarrow_type)`), or None if the lake can't hold it."""
    if arrow_type in ARROW_TO_LAKE:
        return ARROW_TO_LAKE[arrow_type]
    if arrow_type.startswith("timestamp["):
        return "timestamp"
    match = re.fullmatch(r"decimal\d+\((\d+), (-?\d+)\)", arrow_type)
    if match and int(match.group(2)) >= 0 and int(match.group(1)) <= 38:
        return f"decimal({match.group(1)},{match.group(2)})"
    if arrow_type.startswith("dictionary<values="):
        return lake_type(arrow_type[len("dictionary<values=") :].split(",", 1)[0])
    return None


def widened(old: str, new: str) -> str | None:
    """The type that holds every value of both without loss, if it is `old` or a safe widening of it; else None."""
    if old == new:
        return old
    if old in _INTEGERS and new in _INTEGERS:
        return max(old, new, key=_INTEGERS.index)
    if {old, new} == {"float", "double"}:
        return "double"
    first, second = decimal_parts(old), decimal_parts(new)
    if first and second and first[1] == second[1]:
        return f"decimal({max(first[0], second[0])},{first[1]})"
    return None


def takes_texts(old: str, new: str) -> bool:
    """Whether a column of the lake takes up texts that say its values: PostgreSQL's booleans, which DMS sends as texts."""
    return old == "boolean" and new == "string"


def with_said_booleans(schema: Schema, said: Schema) -> Schema:
    """A Parquet file's columns; those of texts that a person says are boolean are that."""
    booleans = {column.name for column in said if column.type == "boolean"}
    return tuple(
        replace(column, type="boolean") if column.name in booleans and takes_texts("boolean", column.type) else column for column in schema
    )


def find(schema: Schema, name: str) -> Column | None:
    return next((column for column in schema if column.name == name), None)


def names(schema: Schema) -> tuple[str, ...]:
    return tuple(column.name for column in schema)
