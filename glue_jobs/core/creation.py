"""An empty table that a person makes: its columns, key and layout, checked, and the first change that has them. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from glue_jobs.core.errors import TableBlocked, UsageError
from glue_jobs.core.partitioning import (
    PartitionField,
    Partitioning,
    check_partitioning,
    parse_partition_key,
    partition_key_text,
)
from glue_jobs.core.paths import S3Uri, TablePath, has_catalog_name, is_name, lake_folder
from glue_jobs.core.record import ChangeRecord, Generation
from glue_jobs.core.schema import SIMPLE_TYPES, Column, Schema, find, is_column_name, is_type
from glue_jobs.core.work import Work

KIND = "create"
BAD = "bad-schema"
# A column of `--schema`: its name, in backticks or double quotes where it is no plain word, and its type.
_COLUMN = re.compile(r"""\s*(?:`([^`]+)`|"([^"]+)"|([^\s,`"()]+))\s+([A-Za-z]+\s*(?:\(\s*\d+\s*(?:,\s*\d+\s*)?\))?)\s*(,|$)""")


@dataclass(frozen=True)
class Definition:
    """What a table is to be. timestamp_column: the one that edits set to their time, '' for none."""

    schema: Schema
    primary_key: tuple[str, ...] = ()
    partitioning: Partitioning = ()
    timestamp_column: str = ""

    def work(self) -> Work:
        """The first change. Its commit writes the same to the item, which is what later changes are held against."""
        return Work(
            kind=KIND,
            schema=self.schema,
            primary_key=self.primary_key,
            partitioning=self.partitioning,
            generation=Generation(1),
            timestamp_column=self.timestamp_column,
            values={
                "PrimaryKey": ",".join(self.primary_key) or "null",
                "PartitionKey": partition_key_text(self.partitioning),
                "TimestampColumn": self.timestamp_column or "null",
                "ActiveFlag": "true",
            },
        )

    def is_of(self, record: ChangeRecord) -> bool:
        """Whether the record is of the creation of just this table."""
        made = (record.kind, record.schema, record.primary_key, record.partitioning, record.timestamp_column)
        return made == (KIND, self.schema, self.primary_key, self.partitioning, self.timestamp_column)


def define(schema: Schema, primary_key: Sequence[str], partition_key: str | None = None, timestamp_column: str = "") -> Definition:
    """The definition; UsageError where it contradicts itself. partition_key: as in an item, 'null' for none; if None, year and month of
    the timestamp column."""
    _check_columns(schema)
    for name in primary_key:
        if "," in name or find(schema, name) is None:
            raise _bad(f"the key column {name!r} is none of the columns {_names(schema)}", "give --primary-key a,b")
    if len(set(primary_key)) < len(primary_key):
        raise _bad(f"a key column comes twice: {', '.join(primary_key)}", "name each column once")
    column = find(schema, timestamp_column)
    if timestamp_column and (column is None or column.type not in ("timestamp", "string")):
        found = f"the timestamp column {timestamp_column!r} is {column.type if column else 'none of the columns'}"
        raise _bad(found, "give --timestamp-column with a column of type timestamp or string")
    return Definition(schema, tuple(primary_key), _partitioning(schema, partition_key, timestamp_column), timestamp_column)


def _check_columns(schema: Schema) -> None:
    if not schema:
        raise _bad("the table has no columns", "give --schema 'id bigint, name string'")
    for column in schema:
        if not column.name or column.name != column.name.strip() or not is_type(column.type):
            types = f"{', '.join(SIMPLE_TYPES)}, decimal(p,s)"
            raise _bad(
                f"the column {column.name!r} has the type {column.type!r}", f"the types are {types}; names have no blanks at the ends"
            )
        if not is_column_name(column.name):
            raise _bad(f"the column name {column.name!r} can't be used", "the program needs names like this one itself; name it otherwise")
    lower = [column.name.lower() for column in schema]
    twice = next((name for name in lower if lower.count(name) > 1), None)
    if twice is not None:
        raise _bad(f"two columns are called {twice!r}; names that differ only by case are one to Athena", "rename one of them")


def _partitioning(schema: Schema, text: str | None, timestamp_column: str) -> Partitioning:
    if text is None:
        parts = ("year", "month") if timestamp_column else ()
        fields: Partitioning = tuple(PartitionField(timestamp_column, part) for part in parts)
    else:
        fields = () if text.strip().lower() in ("", "null") else _parsed(text)
    try:
        check_partitioning(fields, schema, "the new table")
    except TableBlocked as error:
        raise UsageError(error.message, error.code, "correct --partition-key") from error
    return fields


def _parsed(text: str) -> Partitioning:
    try:
        return parse_partition_key(text)
    except TableBlocked as error:
        raise UsageError(error.message, error.code, "give columns or year(c), month(c), day(c), separated by commas") from error


def _bad(what: str, todo: str) -> UsageError:
    return UsageError(what, BAD, todo)


def _names(schema: Schema) -> str:
    return ", ".join(column.name for column in schema)


# --- as a person writes it


def read_schema(text: str) -> Schema:
    """The columns in `id bigint, price decimal(12,2)`, or in a JSON text: an object name → type, or a list of {"name", "type"}."""
    if text.lstrip().startswith(("{", "[")):
        return schema_of(_json(text))
    columns: list[tuple[str, str]] = []
    at = 0
    while at < len(text.rstrip()):
        match = _COLUMN.match(text, at)
        if match is None:
            raise _bad(f"the schema can't be read from {text[at : at + 40]!r} on", "write it as 'id bigint, price decimal(12,2)'")
        columns.append((match.group(1) or match.group(2) or match.group(3), match.group(4)))
        at = match.end()
    return schema_of(columns)


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError as error:
        raise _bad(f"the schema is no JSON: {error}", 'write it as {"id": "bigint"}') from error


def schema_of(columns: Any) -> Schema:
    """The columns of a mapping name → type, of pairs, or of mappings with `name` and `type`."""
    try:
        return tuple(Column(str(name), re.sub(r"\s", "", str(kind)).lower()) for name, kind in _pairs(columns))
    except (TypeError, ValueError, LookupError) as error:
        raise _bad(f"the schema can't be read: {type(error).__name__} {error}", 'write it as {"id": "bigint"}, or as pairs') from error


def _pairs(columns: Any) -> Iterable[tuple[Any, Any]]:
    if isinstance(columns, Mapping):
        return list(columns.items())
    return [(each["name"], each["type"]) if isinstance(each, Mapping) else (each[0], each[1]) for each in columns]


def table_path(text: str, lake: str) -> TablePath:
    """Where a new table is: a folder, or schema.table below the setting lake. UsageError for names that no table can have."""
    if "/" in text:
        path = TablePath.parse(text)
    else:
        schema, dot, table = text.partition(".")
        if not (schema and dot and table and lake):
            todo = "give s3://bucket/prefix/schema/table/, or schema.table with --lake s3://bucket/prefix/"
            raise UsageError(f"not a place for a table: {text!r}", "bad-path", todo)
        folder = lake_folder(lake, TablePath("", f"{schema}/", f"{table}/"))
        path = TablePath.parse(str(S3Uri(folder.bucket, folder.key)))
    if not (is_name(path.schema) and is_name(path.table) and "," not in str(path) and has_catalog_name(path)):
        raise UsageError(f"no table can be called {path.name!r}", "bad-path", "begin names with a letter or digit, without commas")
    return path
