"""A version of a table from which a change feed is made: its rows in the lake's types, by key, each key once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

import pyarrow as pa
import pyarrow.compute as pc

from glue_jobs.core.errors import TableBlocked, UsageError
from glue_jobs.core.feed_wish import FeedWish
from glue_jobs.core.schema import Column, Schema, find, names
from glue_jobs.spark.arrow_types import conform, lake_type_of
from glue_jobs.spark.dms_files import OP_COLUMN
from glue_jobs.spark.key_columns import normalised_keys, sort_by_key
from glue_jobs.spark.plain_rows import plain_rows
from glue_jobs.spark.row_changes import KIND


@dataclass(frozen=True)
class Bronze:
    """name: for messages. rows: in the order of their keys, in the types of schema, without the columns that DMS never sends.

    time: when the version was made.
    """

    name: str
    schema: Schema
    key: tuple[str, ...]
    rows: pa.Table
    time: datetime


@dataclass(frozen=True)
class Between:
    """What one version did: inserts, updates and deletes as glue_jobs.spark.row_changes has them. time: when it was made."""

    time: datetime
    schema: Schema
    changes: pa.Table


class FeedSource(Protocol):
    """A table that has versions."""

    def bronze(self, version: str) -> Bronze:
        """The table as of a version, '' for the usual one."""
        ...

    def exact(self, version: str) -> str:
        """The version that stays what it is while others come, '' for the last one."""
        ...

    def between(self, start: str, end: str) -> Iterator[Between]:
        """What each version after `start` up to `end` did, oldest first."""
        ...


def make_bronze(name: str, rows: pa.Table, key: Sequence[str], wish: FeedWish, time: datetime) -> Bronze:
    """The version's rows as the feed needs them; UsageError for columns that can't be sent and for keys that are none."""
    schema = feed_schema(name, rows.schema, key, wish)
    sent = sort_by_key(conformed(name, rows, schema), key)
    check_keys(name, sent, key)
    return Bronze(name, schema, tuple(key), sent, time)


def feed_schema(name: str, found: pa.Schema, key: Sequence[str], wish: FeedWish) -> Schema:
    """The columns that are sent, in the table's order."""
    columns = []
    for field in found:
        if field.name in wish.drop and field.name not in key:
            continue
        kind = lake_type_of(field.type)
        if kind is None:
            todo = "leave the column out: --drop, columns separated by commas"
            raise UsageError(f"column {field.name!r} of {name}: DMS has no files with {field.type}", "unsupported-type", todo)
        columns.append(Column(field.name, kind))
    schema = tuple(columns)
    for column in (OP_COLUMN, wish.timestamp_column, KIND):
        if find(schema, column):
            todo = "leave it out: --drop; the timestamp column may have another name: --timestamp-column"
            raise UsageError(f"{name} has a column {column!r}, which the feed itself needs", "reserved-column", todo)
    missing = [column for column in key if not find(schema, column)]
    if missing:
        said = f"{name} has no key column {missing[0]!r}; its columns are {', '.join(names(schema))}"
        raise UsageError(said, "no-key-column", "give the columns of its primary key: --primary-key")
    return schema


def conformed(name: str, rows: pa.Table, schema: Schema) -> pa.Table:
    """The rows in the types of `schema`; what would be lost is an error of the call here, since no table is blocked by it."""
    try:
        return conform(rows, schema, name).combine_chunks()
    except TableBlocked as error:
        raise UsageError(error.message, error.code, "leave the column out: --drop, columns separated by commas") from error


def check_keys(name: str, rows: pa.Table, key: Sequence[str]) -> None:
    """UsageError for a null in a key, or a key that two rows have."""
    for column in key:
        if rows.column(column).null_count:
            found = f"{name}: {rows.column(column).null_count} row(s) have no value in the key column {column!r}"
            raise UsageError(found, "null-key", "give the columns of its primary key: --primary-key")
    keys = normalised_keys(rows, key)
    counts = keys.group_by(keys.column_names).aggregate([([], "count_all")])
    twice = counts.filter(pc.greater(counts["count_all"], 1)).slice(0, 1)
    if twice.num_rows:
        value = ", ".join(f"{column} = {text}" for column, text in zip(key, *plain_rows(twice.select(list(key))), strict=True))
        said = f"{name}: {twice['count_all'][0]} rows have the key {value}"
        raise UsageError(said, "key-not-unique", "give all columns of its primary key: --primary-key a,b")
