"""A history table built anew from the raw files: look (reads only, also for a dry run), then do it as one change of kind `history`.

If we die …                     then
  before the commit             nothing was changed
  after it                      the change counts; the next run publishes both folders, of which only the history's has new files
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Protocol

from glue_jobs.aws.erased import erase_records
from glue_jobs.core.backfill import Backfill, Rebuild, rebuild_for
from glue_jobs.core.erasure import Erased, erased_by
from glue_jobs.core.errors import UsageError
from glue_jobs.core.intake import history_due
from glue_jobs.core.paths import changes_folder
from glue_jobs.core.replay import ADOPT, Fold, gone_attachments, inputs_of
from glue_jobs.core.snapshot import Snapshot
from glue_jobs.core.state import TableState
from glue_jobs.core.undo import rows_path
from glue_jobs.core.work import Work
from glue_jobs.protocol.history import read_snapshot
from glue_jobs.protocol.history_table import check_free, snapshot_at
from glue_jobs.protocol.job import Act
from glue_jobs.protocol.lineage import Lineage
from glue_jobs.protocol.raw import etags_of
from glue_jobs.protocol.sent_twice import done_by_twin, said_done
from glue_jobs.protocol.table_run import TableRun


class Builder(Protocol):
    """Reads raw files, writes the history's data files as uploads that are not completed. Never touches the state."""

    def __call__(self, plan: Backfill, change: str, now: datetime) -> Work: ...


def plan_backfill(s3: Any, state: TableState, snapshot: Snapshot) -> Backfill:
    """What a backfill of the table would do. Reads only. Raises TableBlocked, code backfill-not-possible, that says what it lacks."""
    if not state.head or snapshot.is_empty:
        raise UsageError(f"{state.path} has no change yet", "not-loaded", "`dmslake run PATH` loads it, and begins the history with it")
    if not state.keeps_history:
        what = f"the item of {state.path} does not say that a history is kept"
        raise UsageError(what, "no-history", "set its attribute History to 'true', then backfill")
    history_due(state, snapshot)
    records = list(rows_path(Lineage(s3, state.lake, snapshot.change), snapshot.stands_for))[::-1]
    listed: Mapping[str, str] = {}
    if state.has_source:
        listed = etags_of(s3, state.path.raw, inputs_of(records))
    rebuild = rebuild_for(str(state.path), state.path.raw.bucket, records, listed)
    if snapshot.history is None:
        check_free(s3, state.lake, str(state.path))
    erases = erase_records(s3, state.lake, snapshot.erases) if snapshot.erases else []
    made_again = {record.id for record in rebuild.records}
    apart = tuple(record for record in sorted(erases, key=lambda record: record.id) if record.id not in made_again)
    fold = _fold(s3, state, snapshot, rebuild, erased_by(erases))
    return Backfill(state, snapshot, snapshot_at(s3, state.lake, snapshot), rebuild, fold, apart)


def _fold(s3: Any, state: TableState, snapshot: Snapshot, rebuild: Rebuild, erased: Erased) -> Fold:
    records = rebuild.records
    folder = changes_folder(state.lake)
    keys = {name: folder.join(name).key for record in records if record.given for name in record.given.attachments}
    adopted = tuple(read_snapshot(s3, state.lake, records[0].id).files.values()) if records[0].kind == ADOPT else ()
    return Fold(snapshot, records, erased, dict(gone_attachments(records, erased, keys)), adopted)


def backfill_with(build: Builder, dry_run: bool) -> Act:
    """What the job BackfillHistory does in a table's run."""

    def act(run: TableRun) -> None:
        run.may_block = False
        run.open()
        done = "" if dry_run else done_by_twin(run, Lineage(run.s3, run.state.lake, run.snapshot.change), "history")
        if done:
            run.note = said_done(done)
            return
        if run.unfinished and not dry_run:
            run.finish()
        plan = plan_backfill(run.s3, run.state, run.snapshot)
        run.context.log.event("plan", dry_run=dry_run, **plan.facts())
        if plan.rebuild.left_out:
            run.warnings.append(left_out_text(plan.rebuild))
        if dry_run:
            run.note = "dry run: nothing was changed"
            return
        record = run.wished(lambda change: build(plan, change, run.context.clock()), action="history")
        versions = record.details["versions"]
        run.note = f"{versions} row version(s) of {len(plan.rebuild.records)} change(s), from {plan.rebuild.records[0].id} on"

    return act


def left_out_text(rebuild: Rebuild) -> str:
    """Why the history does not go back to the table's first change."""
    begins = f"the history begins with change {rebuild.records[0].id}"
    return f"{begins}: {rebuild.left_out} change(s) before it can't be made again ({rebuild.why})"
