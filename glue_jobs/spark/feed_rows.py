"""The rows of a made-up change feed, as DMS would send them, and the rows that a table must have after them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from random import Random
from typing import Any
from uuid import UUID

import pyarrow as pa

from glue_jobs.core.cells import INTEGER_BITS
from glue_jobs.core.dms_names import timestamp_text
from glue_jobs.core.errors import UsageError
from glue_jobs.core.feed_plan import DELETE, INSERT, UPDATE, Counts, PlannedFile, Step, count_changes, plan_feed
from glue_jobs.core.feed_wish import FeedWish
from glue_jobs.core.schema import Column, decimal_parts
from glue_jobs.spark.arrow_types import arrow_schema, to_arrow
from glue_jobs.spark.dms_writer import with_dms_columns
from glue_jobs.spark.feed_source import Bronze
from glue_jobs.spark.feed_values import Values, moment_value, seeded_faker
from glue_jobs.spark.key_columns import sort_by_key
from glue_jobs.spark.plain_rows import plain_rows

ATTEMPTS = 200  # for a value that differs, or a key that is free

Row = dict[str, Any]  # Python values, or those that the table has as Arrow's: Python's dates end at the year 9999


@dataclass(frozen=True)
class FeedFile:
    """A file of a feed. path: below the staging folder; rows: with `Op` and the timestamp column in front."""

    path: str
    rows: pa.Table


@dataclass
class MadeFeed:
    """A feed on its way: files are made when asked for, in their order."""

    bronze: Bronze
    wish: FeedWish
    counts: Counts
    start: datetime
    plan: tuple[PlannedFile, ...]
    values: Values
    _now: dict[tuple[str, int], Row | None] = field(default_factory=dict)
    _places: list[int] = field(default_factory=list)
    _keys: NewKeys | None = None

    def files(self) -> Iterator[FeedFile]:
        """The files, oldest first. Can be gone through once: values are made on the way."""
        self._places = self.values.random.sample(range(self.bronze.rows.num_rows), self.counts.updates + self.counts.deletes)
        self._keys = NewKeys(self.bronze, self.values)
        for file in self.plan:
            rows = [self._row(step) for step in file.steps]
            ops, times = [step.operation for step in file.steps], [timestamp_text(step.at) for step in file.steps]
            table = pa.Table.from_pylist(rows, schema=arrow_schema(self.bronze.schema))
            yield FeedFile(file.path, with_dms_columns(table, ops, times, self.wish.timestamp_column))

    def expected(self) -> pa.Table:
        """The rows of the table after the whole feed, in the order of their keys."""
        touched = pa.array(sorted(self._places), pa.int64())
        everyone = pa.array(range(self.bronze.rows.num_rows), pa.int64())
        kept = self.bronze.rows.filter(pa.compute.invert(pa.compute.is_in(everyone, value_set=touched)))
        rows = [row for row in self._now.values() if row is not None]
        schema = arrow_schema(self.bronze.schema)
        return sort_by_key(pa.concat_tables([kept.cast(schema), pa.Table.from_pylist(rows, schema=schema)]), self.bronze.key)

    def _row(self, step: Step) -> Row:
        """The row image that the step sends: after it, or for a delete the last one before."""
        who = (step.of, step.row)
        if step.operation == INSERT:
            image = self._inserted(step.at)
        else:
            image = self._now.get(who) or self._there(self._places[step.row])
        if step.operation == UPDATE:
            image = self._updated(image, step.at)
        self._now[who] = None if step.operation == DELETE else image
        return image

    def _there(self, place: int) -> Row:
        rows = self.bronze.rows
        return {name: rows.column(name)[place] for name in rows.column_names}

    def _inserted(self, at: datetime) -> Row:
        assert self._keys is not None
        key = self._keys.next(at)
        return {column.name: key[column.name] if column.name in key else self._fresh(column, at) for column in self.bronze.schema}

    def _fresh(self, column: Column, at: datetime) -> Any:
        """A new row's value: null as often as in the table."""
        if column.name in (self.wish.created_column, self.wish.modified_column):
            moment = moment_value(column.type, at)
            if moment is not None:
                return moment
        rows = self.bronze.rows
        nulls = rows.column(column.name).null_count
        if nulls and self.values.random.random() < nulls / rows.num_rows:
            return None
        return self.values.value(column, at)

    def _updated(self, before: Row, at: datetime) -> Row:
        """The row with other values in one or some columns; `modified` says when, the key and `created` stay."""
        free, moments = changeable(self.bronze, self.wish)
        chosen = self.values.random.sample(free, self.values.random.randint(1, min(3, len(free)))) if free else ()
        news = {column.name: self._other(column, before[column.name], at) for column in chosen}
        return {**before, **news, **{column.name: moment_value(column.type, at) for column in moments}}

    def _other(self, column: Column, before: Any, at: datetime) -> Any:
        """A value that isn't the one before."""
        for _ in range(ATTEMPTS):
            value = self.values.value(column, at)
            both = pa.array([value, before], to_arrow(column.type))
            if not both[0].equals(both[1]):
                return value
        raise UsageError(
            f"no value could be made for column {column.name!r} that is not {value!r}", "nothing-to-update", "leave the column out: --drop"
        )


def changeable(bronze: Bronze, wish: FeedWish) -> tuple[list[Column], list[Column]]:
    """(columns that an update gives any other value, columns in which it writes its time)."""
    fixed = {*bronze.key, wish.created_column}
    moments = [
        column
        for column in bronze.schema
        if column.name == wish.modified_column and column.name not in fixed and column.type in ("timestamp", "date", "string")
    ]
    return [column for column in bronze.schema if column.name not in fixed and column not in moments], moments


def make_feed(bronze: Bronze, wish: FeedWish) -> MadeFeed:
    """The feed that the wish asks for; UsageError where the table has nothing for it."""
    counts = count_changes(wish.making, bronze.rows.num_rows, bronze.name)
    free, moments = changeable(bronze, wish)
    if counts.updates and not free and not moments:
        found = f"{bronze.name} has no columns but its key and {wish.created_column!r}: nothing can be updated"
        raise UsageError(found, "nothing-to-update", "give --updates 0")
    random, start = Random(wish.making.seed), wish.making.start or bronze.time.replace(microsecond=0)
    plan = plan_feed(counts, wish.making, start, wish.file_name, random)
    return MadeFeed(bronze, wish, counts, start, plan, Values(seeded_faker(wish.making.seed), random))


class NewKeys:
    """Keys that no row of the table has, nor had another insert of the feed."""

    def __init__(self, bronze: Bronze, values: Values) -> None:
        self._columns = tuple(next(column for column in bronze.schema if column.name == name) for name in bronze.key)
        self._values, self._bronze = values, bronze
        self._counted = _counted_column(self._columns)
        self._seen: set[tuple[Any, ...]] = set()  # as plain_rows has them
        self._last = 0
        rows = bronze.rows.select(list(bronze.key))
        if self._counted is not None:
            self._last = int(pa.compute.max(rows.column(self._counted.name)).as_py() or 0)
        else:
            self._seen = set(plain_rows(rows))

    def next(self, at: datetime) -> Row:
        """The next key's columns. A whole number counts on from the greatest; other columns of a composite key are taken from some row."""
        if self._counted is None:
            for _ in range(ATTEMPTS):
                key = {column.name: self._made(column, at) for column in self._columns}
                (plain,) = plain_rows(pa.Table.from_pylist([key], schema=arrow_schema(self._columns)))
                if plain not in self._seen:
                    self._seen.add(plain)
                    return key
            raise self._none_free()
        self._last += 1
        if self._last > _greatest(self._counted):
            raise self._none_free()
        return {column.name: self._count(column, at) for column in self._columns}

    def _count(self, column: Column, at: datetime) -> Any:
        rows = self._bronze.rows
        if column is self._counted:
            return self._last
        if not rows.num_rows:
            return self._made(column, at)
        return rows.column(column.name)[self._values.random.randrange(rows.num_rows)]

    def _made(self, column: Column, at: datetime) -> Any:
        if column.type == "string":
            return str(UUID(int=self._values.random.getrandbits(128), version=4))
        return self._values.value(column, at)

    def _none_free(self) -> UsageError:
        named = ", ".join(f"{column.name} {column.type}" for column in self._columns)
        return UsageError(f"no free key could be made for {self._bronze.name} ({named})", "no-free-key", "ask for fewer new rows")


def _counted_column(columns: Sequence[Column]) -> Column | None:
    """The last key column that holds whole numbers."""
    whole = [column for column in columns if column.type in INTEGER_BITS or (decimal_parts(column.type) or (0, 1))[1] == 0]
    return whole[-1] if whole else None


def _greatest(column: Column) -> int:
    parts = decimal_parts(column.type)
    return 10 ** parts[0] - 1 if parts else (1 << INTEGER_BITS[column.type]) - 1
