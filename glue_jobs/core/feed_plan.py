"""When which row changes in a made-up feed, and what its files are called. Pure: randomness comes in as `random.Random(seed)`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from typing import Any

from glue_jobs.core.dms_names import cdc_file_name
from glue_jobs.core.errors import UsageError
from glue_jobs.core.feed_wish import SAMPLE, Making

INSERT, UPDATE, DELETE = "I", "U", "D"
NEW, OLD = "new", "old"


@dataclass(frozen=True)
class Counts:
    """Keys by what happens to them. deletes: of rows that were there; deleted_inserts: of the inserted ones."""

    inserts: int
    updates: int
    updated_twice: int
    deletes: int
    deleted_inserts: int

    @property
    def steps(self) -> int:
        """Rows of the feed."""
        return self.inserts + self.updates + self.updated_twice + self.deletes + self.deleted_inserts


@dataclass(frozen=True)
class Step:
    """One row of the feed: what happens when to which key. row: among the inserted ones, or among those chosen of the source."""

    operation: str
    of: str  # NEW or OLD
    row: int
    at: datetime


@dataclass(frozen=True)
class PlannedFile:
    """A file of the feed. path: below the staging folder."""

    path: str
    steps: tuple[Step, ...]


def count_changes(making: Making, rows: int, name: str) -> Counts:
    """The counts for a table of `rows` rows; UsageError where they can't be had."""
    inserts, updates, all_deletes = making.inserts.of(rows), making.updates.of(rows), making.deletes.of(rows)
    if not rows and (updates or all_deletes or not inserts):
        todo = "take another version; or make only inserts: --inserts 10 --updates 0 --deletes 0"
        raise UsageError(f"{name} has no rows that could change", "empty-source", todo)
    if making.deleted_inserts is None:
        deleted_inserts = min(1, inserts, all_deletes)
    else:
        deleted_inserts = making.deleted_inserts.of(inserts)
        if deleted_inserts > min(inserts, all_deletes):
            found = f"{deleted_inserts} inserted keys are to be deleted, of {inserts} inserts and {all_deletes} deletes"
            raise UsageError(found, "bad-argument", "give less as --deleted-inserts, or more inserts and deletes")
    twice, deletes = making.updated_twice.of(updates), all_deletes - deleted_inserts
    if twice > updates:
        raise UsageError(f"{twice} of {updates} updated keys are to be updated twice", "bad-argument", "give less as --updated-twice")
    if updates + deletes > rows:
        found = f"{updates} updates and {deletes} deletes of {rows} rows of {name}"
        raise UsageError(found, "too-many-changes", "a key is updated or deleted, not both: give less")
    return Counts(inserts, updates, twice, deletes, deleted_inserts)


def plan_feed(counts: Counts, making: Making, start: datetime, file_name: str, random: Any) -> tuple[PlannedFile, ...]:
    """The files, oldest first; one without any row is left out, as DMS does. A row's time lies in its file's interval."""
    steps = _steps(counts, _times(counts.steps, making, start, random), random)
    interval = timedelta(seconds=making.interval_seconds)
    by_file: dict[int, list[Step]] = {}
    for step in steps:
        by_file.setdefault((step.at - start) // interval, []).append(step)
    names = FeedNames(file_name)
    return tuple(PlannedFile(names.next(start + (place + 1) * interval), tuple(found)) for place, found in sorted(by_file.items()))


def _times(number: int, making: Making, start: datetime, random: Any) -> list[datetime]:
    """So many different times, in order, microseconds apart at least."""
    try:
        span = int(making.files * making.interval_seconds * 1_000_000)
        _ = start + timedelta(microseconds=span + 1_000_000)
    except OverflowError:
        raise UsageError("the feed would end after the year 9999", "bad-argument", "give an earlier --start, or less --files") from None
    if number > span:
        raise UsageError(f"{number} changes do not fit into {span} microseconds", "bad-argument", "give more --files or --interval-seconds")
    return [start + timedelta(microseconds=place) for place in sorted(random.sample(range(span), number))]


def _steps(counts: Counts, times: Sequence[datetime], random: Any) -> list[Step]:
    """What happens at each time: all keys mixed, the steps of each in their order."""
    lives: dict[tuple[str, int], str] = {}
    for row in range(counts.inserts):
        lives[NEW, row] = INSERT + DELETE if row < counts.deleted_inserts else INSERT
    for row in range(counts.updates + counts.deletes):
        lives[OLD, row] = DELETE if row >= counts.updates else UPDATE * 2 if row < counts.updated_twice else UPDATE
    turns = [who for who, life in lives.items() for _ in life]
    random.shuffle(turns)
    done: dict[tuple[str, int], int] = {}
    steps = []
    for who, at in zip(turns, times):
        place = done.get(who, 0)
        steps.append(Step(lives[who][place], who[0], who[1], at))
        done[who] = place + 1
    return steps


class FeedNames:
    """Paths of a feed's files below its folder, each later than the one before, whatever the times are."""

    def __init__(self, file_name: str) -> None:
        self._sample = file_name == SAMPLE
        self._last: datetime | None = None

    def next(self, when: datetime) -> str:
        """The path of a file written at `when`."""
        utc = when.astimezone(timezone.utc)
        utc = utc.replace(microsecond=0 if self._sample else utc.microsecond // 1000 * 1000)
        if self._last is not None and utc <= self._last:
            utc = self._last + timedelta(seconds=1 if self._sample else 0.001)
        self._last = utc
        if self._sample:
            return f"{utc.year}/{utc.month}/{utc.day}/{utc:%Y%m%d_%H%M%S}.parquet"
        return f"{utc:%Y/%m/%d}/{cdc_file_name(utc)}"
