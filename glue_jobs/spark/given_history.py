"""The history table's part of a change that a person makes: the rows that go and come are versions from the time of the change on."""

from __future__ import annotations

from datetime import datetime

from glue_jobs.core.snapshot import Snapshot
from glue_jobs.core.state import TableState
from glue_jobs.core.work import Work
from glue_jobs.spark.apply_plan import ApplyPlan
from glue_jobs.spark.engine import Engines
from glue_jobs.spark.history_passes import Batch
from glue_jobs.spark.history_table import Keeping, micros
from glue_jobs.spark.locate import GivenKeys, packed
from glue_jobs.spark.place import Place
from glue_jobs.spark.row_events import Events, GivenEvents, GoneEvents


def keeps_now(state: TableState, snapshot: Snapshot) -> bool:
    """Whether the history goes with a person's change. One that is behind, or not begun while the table has rows, is brought up to
    date by the next run of LoadIncremental, as if the rows had changed then."""
    begun = not snapshot.files if snapshot.history is None else not snapshot.history.is_stale
    return state.keeps_history and bool(snapshot.primary_key) and begun


def with_given(engines: Engines, place: Place, state: TableState, plan: ApplyPlan, work: Work, history: Snapshot, now: datetime) -> Work:
    """The change with what it does to the history table, whose snapshot is `history`. place: of the lake table, with the change's id."""
    keeping = Keeping.of(engines, place, plan.snapshot, history, work, str(state.path), state.empty_partition)
    at, rows = micros(now), plan.updates
    named, kept = plan.given.keys.pack(), GivenKeys.of(rows, plan.shape.key).pack()
    held = [plan.snapshot.files[each.path] for each in plan.located if len(each.hits)]
    events: tuple[Events, ...] = tuple(GoneEvents(file, named, kept, at) for file in held)
    if rows.num_rows:
        events += (GivenEvents(packed(rows), at),)
    return keeping.kept(events, Batch(), int(plan.before.sum()) + rows.num_rows)
