"""Made-up rows that a table would take: by its columns' names and types, with keys that it has not. The same seed gives the same rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from random import Random
from typing import Any

import pyarrow as pa

from glue_jobs.core.schema import Column
from glue_jobs.core.snapshot import Snapshot
from glue_jobs.spark.arrow_types import arrow_schema, to_arrow
from glue_jobs.spark.feed_rows import NewKeys
from glue_jobs.spark.feed_source import Bronze
from glue_jobs.spark.feed_values import Values, moment_value, seeded_faker
from glue_jobs.spark.locate import column_batches
from glue_jobs.spark.partition_columns import value_of
from glue_jobs.spark.past import PastTable

NULL_SHARE = 0.1  # of the values of a column that may be null


def fake_rows(table: PastTable, snapshot: Snapshot, count: int, seed: int) -> pa.Table:
    """So many rows for the table as it is now. Times lie before its last change.

    UsageError, no-free-key, where the key's type has not so many values left; ConfigurationError without the package Faker.
    """
    values = Values(seeded_faker(seed), Random(seed))
    at = datetime.fromisoformat(snapshot.time.replace("Z", "+00:00")) if snapshot.time else datetime(2024, 1, 1, tzinfo=timezone.utc)
    keys = _new_keys(table, snapshot, values, at) if snapshot.primary_key else None
    maker = _Maker(snapshot, values, at, _folders(snapshot))
    rows = [{**maker.row(), **(keys.next(at) if keys else {})} for _ in range(count)]
    return pa.Table.from_pylist(rows, schema=arrow_schema(snapshot.schema))


def _new_keys(table: PastTable, snapshot: Snapshot, values: Values, at: datetime) -> NewKeys:
    columns = list(snapshot.primary_key)
    schema = tuple(column for column in snapshot.schema if column.name in columns)
    found = [rows for each in table.files for rows in column_batches(table.place, table.shape, each, columns)]
    rows = pa.concat_tables([arrow_schema(schema).empty_table(), *(rows.select([column.name for column in schema]) for rows in found)])
    return NewKeys(Bronze("the table", schema, snapshot.primary_key, rows, at), values)


def _folders(snapshot: Snapshot) -> dict[str, Sequence[str]]:
    """The values that partition columns have in the table: new rows have no others, where there are some."""
    found: dict[str, Sequence[str]] = {}
    for at, field in enumerate(snapshot.partitioning):
        texts = sorted({text for file in snapshot.files.values() if (text := file.partition[at]) is not None})
        if field.transform == "identity" and texts:
            found[field.column] = texts
    return found


@dataclass(frozen=True)
class _Maker:
    snapshot: Snapshot
    values: Values
    at: datetime
    folders: dict[str, Sequence[str]]

    def row(self) -> dict[str, Any]:
        """A row's values, the key aside."""
        return {column.name: self._value(column) for column in self.snapshot.schema if column.name not in self.snapshot.primary_key}

    def _value(self, column: Column) -> Any:
        random = self.values.random
        if column.name in self.folders:
            return value_of(random.choice(self.folders[column.name]), to_arrow(column.type))
        of_layout = [field.transform for field in self.snapshot.partitioning if field.column == column.name]
        is_time = column.name == self.snapshot.timestamp_column or any(part != "identity" for part in of_layout)
        if is_time:
            return moment_value(column.type, self.values.value(Column(column.name, "timestamp"), self.at))
        if not of_layout and random.random() < NULL_SHARE:
            return None
        return self.values.value(column, self.at)
