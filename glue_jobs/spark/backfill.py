"""A history table built anew: the changes that the table's rows come from, made again with the rules by which a history is kept.

A pass makes the versions of a part of the keys, so that memory does not grow with the table; it reads all raw files. What comes out is
made equal to the rows that the table has: what the changes don't say (rows whose bytes were erased, a table that was changed by hand)
becomes a version of now.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from glue_jobs.core.backfill import Backfill, rekeyed
from glue_jobs.core.collation import is_same_key
from glue_jobs.core.errors import blocked
from glue_jobs.core.history_table import DELETE, OPERATION, PARTITIONING, history_lake, unchanged
from glue_jobs.core.record import ChangeRecord, DataFile
from glue_jobs.core.replay import ADOPT, BY_HAND, ERASE, FULL_LOAD, INCREMENTAL, LATE, cut_at, renamed_column, steps_of
from glue_jobs.core.settings import Settings
from glue_jobs.core.undo import record_time
from glue_jobs.core.work import HistoryWork, Work
from glue_jobs.spark.arrow_types import arrow_schema, conform
from glue_jobs.spark.engine import Engine, Engines, chain
from glue_jobs.spark.history_files import Edits, edited, is_open, write_rows
from glue_jobs.spark.history_passes import Batch, Rule, Whole, passes_for
from glue_jobs.spark.history_rekey import ends_by_key
from glue_jobs.spark.history_table import micros
from glue_jobs.spark.late_versions import Late
from glue_jobs.spark.locate import GivenKeys
from glue_jobs.spark.past import PastFile
from glue_jobs.spark.place import CLIENT_VARIABLES, Place, Shape
from glue_jobs.spark.raw_batch import units_of
from glue_jobs.spark.raw_file import RawHead
from glue_jobs.spark.replay import adopted_files
from glue_jobs.spark.replay_rows import Part, ReplayRows, by_name, in_threads_ahead, without_erased
from glue_jobs.spark.row_events import LiveEvents, RawEvents, Source, commit_times, deletes_of, entries, keys_of, read_time
from glue_jobs.spark.row_versions import AT, ORDER, with_place
from glue_jobs.spark.task_errors import brought_back
from glue_jobs.spark.timestamps import find_timestamp

REASON = "built anew from the raw files"


class HistoryBuilder:
    """Builds histories in a job run."""

    def __init__(self, settings: Settings, environment: Mapping[str, str] | None = None) -> None:
        self._settings = settings
        self._engines = Engines.of(settings.limits)
        self._environment = os.environ if environment is None else environment

    def __call__(self, plan: Backfill, change: str, now: datetime) -> Work:
        """The change: the lake table stays, its history is replaced."""
        client = tuple((name, self._environment[name]) for name in CLIENT_VARIABLES if self._environment.get(name))
        limits = self._settings.limits
        place = Place(client, plan.state.path.bucket, plan.state.lake, change, self._settings.compression, limits, plan.state.before_images)
        size = sum(item.size_bytes for item in plan.rebuild.inputs.values()) + plan.snapshot.size_bytes
        with brought_back():
            engine = self._engines.for_bytes(size)
            rows, columns = plan.rebuild.rows + plan.snapshot.rows, len(plan.rebuild.columns[-1])
            count = passes_for(rows, size, columns, engine.slots, limits.replay_bytes)
            _check_passes(plan, count)
            build = Build(place, plan, _gone_at(engine, place, plan), micros(now))
            written = engine.map(build, [Part(number, count) for number in range(count)])
        files, versions = chain(files for files, _ in written), sum(rows for _, rows in written)
        work = unchanged(plan.snapshot, REASON)
        return replace(
            work,
            history=HistoryWork(
                schema=plan.rebuild.columns[-1],
                primary_key=plan.snapshot.primary_key,
                added=tuple(files),
                superseded=tuple(plan.history.files),
                inserted=versions,
            ),
            details={**work.details, **plan.facts(), "versions": versions, "passes": count, "engine": self._engines.names},
        )


def _check_passes(plan: Backfill, count: int) -> None:
    if count > 1 and rekeyed(plan.rebuild.records):
        raise blocked(
            "backfill-not-possible",
            "the history can't be built anew: PrimaryKey was changed, so that it can't be made for a part of the keys at a time",
            where=str(plan.state.path),
            expected=f"memory for {plan.rebuild.rows:,} rows (setting replay_bytes)",
            todo="give a greater --replay-bytes on workers that have it; nothing was changed",
        )


def _gone_at(engine: Engine, place: Place, plan: Backfill) -> dict[str, int]:
    """Reload → when it began, in microseconds since 1970: rows that it does not have went then."""
    raw = ReplayRows(place, str(plan.state.path), plan.fold, ())
    found = {}
    for record in plan.rebuild.records[1:]:
        if record.kind == FULL_LOAD:
            heads = raw.heads_of(record, record.inputs)
            _, first = find_timestamp(engine, place, record.timestamp_column, heads) if record.timestamp_column else ("", "")
            time = read_time(first)
            found[record.id] = time if time is not None else micros(min(head.file.modified for head in heads))
    return found


@dataclass(frozen=True)
class Build:
    """A task: the versions of a part of the keys, written. place: of the lake table, with the change's id. now: in microseconds since
    1970, of what no change tells."""

    place: Place
    plan: Backfill
    gone_at: Mapping[str, int]
    now: int

    def __call__(self, part: Part) -> tuple[list[DataFile], int]:
        rows = Versions(self, part).made()
        schema, key = self.plan.rebuild.columns[-1], self.plan.snapshot.primary_key
        shape = Shape(str(self.plan.state.path), schema, key, PARTITIONING, True)
        return write_rows(replace(self.place, lake=history_lake(self.place.lake)), shape, rows), rows.num_rows


class Versions:
    """The versions of a part of the keys, change by change."""

    def __init__(self, build: Build, part: Part) -> None:
        self._build, self._part, self._place = build, part, build.place
        plan = build.plan
        self._table, self._head, self._fold = str(plan.state.path), plan.snapshot, plan.fold
        self._steps = cut_at(steps_of(plan.rebuild.records), [erase.id for erase in plan.erases])
        self._columns = {record.id: columns for record, columns in zip(plan.rebuild.records, plan.rebuild.columns, strict=True)}
        adopted: Sequence[PastFile] = adopted_files(self._place, self._fold)[0]
        self._raw = ReplayRows(self._place, self._table, self._fold, adopted)

    def made(self) -> pa.Table:
        """All versions, those that are open being the table's rows."""
        there, before = pa.table({}), self._steps[0][-1]
        erases = list(self._build.plan.erases)
        for step in self._steps:
            there = self._carried(there, before, step[-1])
            while erases and erases[0].id < step[0].id:  # what comes after it, the source has anew
                there = self._without(there, erases.pop(0))
            there = self._after(there, step)
            before = step[-1]
        for erase in erases:
            there = self._without(there, erase)
        columns = self._build.plan.rebuild.columns[-1]
        head = self._head
        shape = Shape(self._table, head.schema, head.primary_key, head.partitioning, True)
        source = Source(self._place, shape, columns, head.timestamp_column)
        live = (rows for file in head.files.values() for rows in LiveEvents(file, self._build.now)(source))
        return _ruled(there, self._entries(source, live), Whole(self._build.now), source)

    def _without(self, there: pa.Table, erase: ChangeRecord) -> pa.Table:
        """The versions without those of keys that were erased by a change which is none of the steps."""
        keys = erase.erased_keys
        if keys is None or not there.num_rows:
            return there
        lacking = [name for name in keys.columns if name not in there.column_names]
        if lacking:
            raise blocked(
                "backfill-not-possible",
                f"the history can't be built anew without the keys that change {erase.id} erased: they are of a column that was renamed by"
                " a change which a rollback has undone",
                where=self._table,
                expected=", ".join(keys.columns),
                found=f"no column {', '.join(lacking)}",
                todo="rename the column again (`dmslake schema PATH --rename old=new`), then backfill; nothing was changed",
            )
        return without_erased(there, keys)

    def _carried(self, there: pa.Table, before: ChangeRecord, record: ChangeRecord) -> pa.Table:
        """The versions so far, in the columns of after the change, and with its key. before: the change before it, or the first itself."""
        names = renamed_column(before.schema, record)
        if names:
            there = there.rename_columns([names[1] if name == names[0] else name for name in there.column_names])
        columns = self._columns[record.id]
        there = conform(there, columns, self._table) if there.num_columns else arrow_schema(columns).empty_table()
        if is_same_key(before.primary_key, record.primary_key):
            return there
        return _rekeyed(there, record.primary_key, self._time(record))  # not only by a rekey: a reload may bring another key, too

    def _time(self, record: ChangeRecord) -> int:
        """Of what no row tells: when a reload began, or when any other change was made."""
        return self._build.gone_at.get(record.id, micros(record_time(record)))

    def _after(self, there: pa.Table, step: Sequence[ChangeRecord]) -> pa.Table:
        record = step[-1]
        source, time = self._source(record), self._time(record)
        if record.kind == ERASE and record.erased_keys is not None:
            return without_erased(there, record.erased_keys)
        if record.kind == FULL_LOAD:
            rule: Rule = Whole(time)
            return _ruled(there, self._entries(source, self._of_raw(step, self._raw.heads_of(record, record.inputs))), rule, source)
        if record.kind == INCREMENTAL:
            return _ruled(there, self._entries(source, self._of_raw(step, self._raw.ordered(step))), Batch(), source)
        if record.kind == LATE:
            late = frozenset(item.key for item in record.inputs)
            heads = self._raw.heads_of(record, sorted((*record.context, *record.inputs), key=by_name), late)
            rule = Late(tuple(head.ordinal for head in heads if head.late))
            return _ruled(there, self._entries(source, self._of_raw(step, heads)), rule, source)
        if record.kind == ADOPT:
            return _ruled(there, self._entries(source, self._of_adopted(source, time)), Whole(time), source)
        if record.kind == "truncate":
            return _ruled(there, self._entries(source, ()), Whole(time), source)
        if record.kind == "repartition" and record.counts.updated:  # an empty text in a column that folders name became null
            source = replace(source, timestamp="")
            return _ruled(there, self._entries(source, [self._of_alive(source, there, time)]), Whole(time), source)
        if record.kind in BY_HAND and record.given and record.id not in self._fold.gone:
            return _ruled(there, self._of_person(source, record, there, time), Batch(), source)
        return there

    def _source(self, record: ChangeRecord) -> Source:
        shape = Shape(self._table, record.schema, record.primary_key, record.partitioning, True)
        return Source(replace(self._place, change=record.id), shape, self._columns[record.id], record.timestamp_column)

    def _entries(self, source: Source, tables: Iterable[pa.Table]) -> pa.Table:
        """Those of the part."""
        nothing = arrow_schema(source.schema).append(pa.field(ORDER, pa.int64())).append(pa.field(AT, pa.int64())).empty_table()
        return pa.concat_tables([nothing, *(self._part.of(rows, source.shape.key) for rows in tables)])

    def _of_raw(self, step: Sequence[ChangeRecord], heads: Sequence[RawHead]) -> Iterator[pa.Table]:
        """The rows of raw files, each as of the change that took it."""
        taken = {item.key: record for record in step for item in record.inputs}

        def read(event: RawEvents) -> list[pa.Table]:
            source = self._source(taken.get(event.unit.head.file.key, step[-1]))
            return [self._part.of(rows, source.shape.key) for rows in event(source)]

        for tables in in_threads_ahead(read, [RawEvents(unit) for head in heads for unit in units_of(head)]):
            yield from tables

    def _of_adopted(self, source: Source, time: int) -> Iterator[pa.Table]:
        for rows in self._raw.adopted_rows(source.shape):
            yield entries(source, rows, False, commit_times(rows, source.timestamp, time), 0)

    def _of_alive(self, source: Source, there: pa.Table, time: int) -> pa.Table:
        """The rows of the open versions, as the table has them after the change."""
        rows = there.filter(pc.and_(pa.array(is_open(there)), pc.not_equal(there[OPERATION], DELETE)))
        return entries(source, conform(rows, source.shape.schema, self._table), False, time, 0)

    def _of_person(self, source: Source, record: ChangeRecord, there: pa.Table, time: int) -> pa.Table:
        """The rows that went because their key was named, and those that came."""
        assert record.given is not None
        named, came = self._raw.of_person(record, record.given)
        key = source.shape.key
        alive = there.filter(pc.and_(pa.array(is_open(there)), pc.not_equal(there[OPERATION], DELETE)))
        kept = GivenKeys.of(came, key)
        gone = alive.filter(pa.array((named.places(alive) >= 0) & (kept.places(alive) < 0)))
        given = self._entries(source, [entries(source, came, False, time, 0)])
        return pa.concat_tables([deletes_of(source, gone, time), given])


def _ruled(there: pa.Table, found: pa.Table, rule: Rule, source: Source) -> pa.Table:
    """The versions after entries. there: all versions so far, in the history's columns."""
    key = source.shape.key
    found = rule.kept(found, key)
    mask = keys_of([found], key).places(there) >= 0
    if rule.all_keys:
        mask |= pc.not_equal(there[OPERATION], DELETE).to_numpy(zero_copy_only=False)
    if not rule.closed_too:
        mask &= is_open(there)
    places = np.flatnonzero(mask)
    old = with_place(there.take(pa.array(places)), pa.array(np.full(len(places), -1)), places)
    outcome = rule(source, key, found, old)
    return pa.concat_tables([*edited(iter([there]), outcome.edits), outcome.rows.cast(there.schema)])


def _rekeyed(there: pa.Table, key: tuple[str, ...], now: int) -> pa.Table:
    """The versions after the key has changed: each new key has one that is open."""
    places = np.flatnonzero(is_open(there))
    latest = there.take(pa.array(places)).append_column(AT, pa.array(places))
    edits: Edits = ends_by_key(latest, key, now)
    return pa.concat_tables(list(edited(iter([there]), edits)))
