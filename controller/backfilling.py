"""A backfill of a history table, found out before its run is started, and the plan of that run. Reads only."""

from __future__ import annotations

from typing import Any

from controller.plan import BACKFILL, PlannedRun, RunPlan, TablePlan
from glue_jobs.core.backfill import Backfill
from glue_jobs.core.errors import DmslakeError
from glue_jobs.core.state import TableState
from glue_jobs.protocol.backfill import plan_backfill
from glue_jobs.protocol.history import check_not_behind, read_snapshot


def look(s3: Any, state: TableState) -> Backfill:
    """What a backfill of the table would do now. Raises DmslakeError for a table whose history can't be built anew."""
    if state.publishing:
        what = f"change {state.publishing} of {state.path} is not wholly published"
        raise DmslakeError(what, "unfinished-publish", "`dmslake run PATH` finishes it (also if the table is paused); then backfill")
    if not state.lease_owner:  # a run that is at work may commit between our reading the item and the records
        check_not_behind(s3, state.lake, state.head, state.fence, str(state.path))
    return plan_backfill(s3, state, read_snapshot(s3, state.lake, state.head))


def backfill_run(plan: Backfill) -> RunPlan:
    """The run of the job BackfillHistory."""
    path, facts = str(plan.state.path), plan.facts()
    table = TablePlan(
        path,
        "backfill-history",
        f"{facts['changes']} change(s), {facts['raw_files']} raw file(s)",
        BACKFILL,
        files=facts["raw_files"],
        bytes=facts["raw_bytes"],
        pending_bytes=facts["raw_bytes"],
        table_bytes=plan.snapshot.size_bytes,
    )
    return RunPlan((table,), (PlannedRun(BACKFILL, (path,), facts["raw_bytes"]),))
