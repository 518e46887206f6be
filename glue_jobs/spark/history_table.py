"""Keeping the history table in step with a change of the lake table: its part of the change, as uploads that are not completed."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime

import pyarrow as pa

from glue_jobs.core.actions import Action, Rewrite, SyncHistory, TakeBatch, TakeLoad
from glue_jobs.core.collation import is_same_key
from glue_jobs.core.errors import blocked
from glue_jobs.core.history_table import PARTITIONING, columns_after, history_lake
from glue_jobs.core.schema import Schema, find
from glue_jobs.core.snapshot import Snapshot
from glue_jobs.core.work import HistoryWork, Task, Work
from glue_jobs.spark.arrow_types import arrow_schema
from glue_jobs.spark.engine import Engines
from glue_jobs.spark.history_files import Edits, Renames, write_edits
from glue_jobs.spark.history_passes import Batch, Outcome, Passes, Rule, Whole, in_one_go, in_passes, passes_for, piece_by_piece
from glue_jobs.spark.history_rekey import ends_of_rekey
from glue_jobs.spark.late_versions import Late
from glue_jobs.spark.place import Place, Shape
from glue_jobs.spark.raw_batch import Taken, units_of
from glue_jobs.spark.row_events import Events, LiveEvents, RawEvents, Source, read_time


def with_history(engines: Engines, place: Place, task: Task, taken: Taken) -> Work:
    """The change with what it does to the history table."""
    work = taken.work
    renames = _renames(task.action)
    before = replace(task.history, schema=_renamed(task.history.schema, renames, str(task.state.path)))
    keeping = Keeping.of(engines, place, task.snapshot, before, work, str(task.state.path), task.state.empty_partition)
    if isinstance(task.action, Rewrite):
        return keeping.rewritten(task, task.action, renames)
    events, rule = _happened(task, taken)
    rows = sum(head.rows for head in taken.heads)
    if isinstance(task.action, SyncHistory):
        rows = task.snapshot.rows
    is_new = not task.history.files and (isinstance(task.action, SyncHistory) or work.counts.inserted == work.counts.input_rows)
    return keeping.kept(events, rule, rows, unique=isinstance(rule, Whole) and is_new)


def _happened(task: Task, taken: Taken) -> tuple[tuple[Events, ...], Rule]:
    """What a change without a Rewrite brings, and how it is to be read."""
    raw = tuple(RawEvents(unit) for head in taken.heads for unit in units_of(head))
    now = micros(task.now)
    if isinstance(task.action, TakeLoad):
        first = read_time(taken.first_time)
        return raw, Whole(first if first is not None else micros(min(file.modified for file in task.action.files)))
    if isinstance(task.action, SyncHistory):
        return tuple(LiveEvents(file, now) for file in task.snapshot.files.values()), Whole(now)
    late = tuple(head.ordinal for head in taken.heads if head.late)
    is_batch = isinstance(task.action, TakeBatch)  # one without a row changes nothing, a truncate everything
    return raw, Late(late) if late else Batch() if is_batch else Whole(now)


@dataclass(frozen=True)
class Keeping:
    """A change of a table with a history. place, shape: of the history; source: of the lake table; before: the history's snapshot;
    retyped: columns of its files have another type from now on."""

    engines: Engines
    place: Place
    shape: Shape
    source: Source
    before: Snapshot
    lake: Snapshot
    work: Work
    retyped: bool

    @classmethod
    def of(cls, engines: Engines, place: Place, lake: Snapshot, before: Snapshot, work: Work, table: str, empty_partition: str) -> Keeping:
        """lake, before: the snapshots of the lake table and of its history before the change. Raises TableBlocked where the columns make a
        history impossible."""
        columns = columns_after(before.schema, work.schema, table)
        as_null = empty_partition.lower() == "null"
        return cls(
            engines,
            replace(place, lake=history_lake(place.lake)),
            Shape(table, columns, work.primary_key, PARTITIONING, True),
            Source(place, Shape(table, work.schema, work.primary_key, work.partitioning, as_null), columns, work.timestamp_column),
            before,
            lake,
            work,
            any((old := find(before.schema, column.name)) is not None and old.type != column.type for column in columns),
        )

    def kept(self, events: tuple[Events, ...], rule: Rule, rows: int, *, unique: bool = False) -> Work:
        """The change with the versions that come of these events. rows: how many these are; unique: no key comes twice, and none has a
        version yet."""
        size = sum(each.size_bytes for each in events)
        files = tuple(self.before.files.values())
        ends = Edits()
        rekeyed = bool(files) and not is_same_key(self.before.primary_key, self.shape.key)  # by a reload, or while the history was not kept
        if rekeyed:
            assert isinstance(rule, Whole), "a batch does not see the versions of another key: the change that brought it has marked that"
            ends = ends_of_rekey(self.engines, self.place, self.shape, files, rule.gone_at)
        passes = Passes(self.place, self.shape, self.source, files, events, rule, ends.closed)
        engine = self.engines.for_bytes(size)
        most = max(rows, self.lake.rows) if rule.all_keys else rows
        count = passes_for(most, max(size, self.lake.size_bytes * rule.all_keys), len(self.shape.schema), engine.slots, self._memory)
        if count == 1:
            outcome = in_one_go(self.engines, passes)
        elif unique:
            outcome = piece_by_piece(engine, passes)
        else:
            outcome = in_passes(engine, passes, count)
        return self._with(replace(outcome, edits=Edits.joined([outcome.edits, ends])), rekeyed=rekeyed)

    def rewritten(self, task: Task, action: Rewrite, renames: Renames) -> Work:
        """The change with the history's files in the table's new columns or with its new key, and with the versions of rows it changed."""
        if self.work.counts.updated and task.snapshot.history is not None and not task.snapshot.history.is_stale:
            return self._made_null(task)
        rekeyed = not is_same_key(self.before.primary_key, self.shape.key)  # a repartition, too, takes the key that the item has by now
        if task.snapshot.history is None or (action.kind == "repartition" and not rekeyed):
            return self.work
        nothing = arrow_schema(self.shape.schema).empty_table()
        edits = Edits()
        if rekeyed:
            edits = ends_of_rekey(self.engines, self.place, self.shape, tuple(self.before.files.values()), micros(task.now))
        done = self._with(Outcome(edits, nothing), everything=bool(renames), renames=renames, rekeyed=rekeyed)
        assert done.history is not None
        return replace(done, history=replace(done.history, is_stale=task.snapshot.history.is_stale))

    def _made_null(self, task: Task) -> Work:
        """The change with versions of the rows in which an empty text becomes null: of the change's time, since the source told none."""
        now = micros(task.now)
        events = tuple(LiveEvents(file, now, self.lake.partitioning) for file in self.lake.files.values())
        return replace(self, source=replace(self.source, timestamp="")).kept(events, Whole(now), self.lake.rows)

    @property
    def _memory(self) -> int:
        return self.place.limits.replay_bytes

    def _with(self, outcome: Outcome, *, everything: bool = False, renames: Renames = (), rekeyed: bool = False) -> Work:
        files = tuple(self.before.files.values())
        also = [number for number, file in enumerate(files) if everything or self.retyped or (rekeyed and file.low is not None)]
        size = outcome.rows.nbytes + sum(files[number].size_bytes for number in {*also, *outcome.edits.files()})
        engine = self.engines.for_bytes(size)
        added, superseded = write_edits(engine, self.place, self.shape, files, outcome.edits, outcome.rows, also=also, renames=renames)
        history = HistoryWork(
            schema=self.shape.schema,
            primary_key=self.shape.key,
            added=(*outcome.files, *added),
            superseded=tuple(superseded),
            inserted=outcome.inserted,
            closed=len(outcome.edits.closed),
        )
        return replace(self.work, history=history)


def _renames(action: Action) -> Renames:
    """(new name, old name) of the column that the action renames."""
    if not isinstance(action, Rewrite) or action.kind != "schema":
        return ()
    old, _, new = (part.strip() for part in action.value.partition("="))
    return ((new, old),)


def _renamed(before: Schema, renames: Renames, table: str) -> Schema:
    """The history's columns under their new names."""
    for new, old in renames:
        if find(before, new) is not None:
            raise blocked(
                "history-column-clash",
                f"can't rename {old!r} to {new!r}: a reload left out a column of that name, and versions from before it have its values",
                where=table,
                expected="a name that no column of the history table has",
                found=new,
                todo="take another name, or set the attribute History to 'false'",
            )
        before = tuple(replace(column, name=new) if column.name == old else column for column in before)
    return before


def micros(moment: datetime) -> int:
    """Microseconds since 1970."""
    return int(pa.scalar(moment, pa.timestamp("us", "UTC")).value)
