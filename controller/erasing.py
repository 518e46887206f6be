"""An erase, found out before its run is started, and the plan of that run. Reads only."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from controller.plan import ERASE, PlannedRun, RunPlan, TablePlan
from glue_jobs.aws.erased import left_versions
from glue_jobs.core.erase_plan import ErasePlan
from glue_jobs.core.errors import DmslakeError, UsageError
from glue_jobs.core.given import key_text
from glue_jobs.core.record import ErasedVersion
from glue_jobs.core.state import TableState
from glue_jobs.protocol.erase_search import Eraser, plan_erase
from glue_jobs.protocol.history import check_not_behind, read_snapshot


def look(s3: Any, state: TableState, eraser: Eraser) -> ErasePlan:
    """What an erase of the table would do now. Raises DmslakeError for a table that can't be looked at or has none of the keys."""
    if not state.head:
        raise UsageError(f"{state.path} has no change yet", "not-loaded", "`dmslake run PATH` loads it, once it is active")
    if state.publishing:
        what = f"change {state.publishing} of {state.path} is not wholly published"
        raise DmslakeError(what, "unfinished-publish", "`dmslake run PATH` finishes it (also if the table is paused); then erase")
    if not state.lease_owner:  # a run that is at work may commit between our reading the item and the records
        check_not_behind(s3, state.lake, state.head, state.fence, str(state.path))
    return plan_erase(s3, state, read_snapshot(s3, state.lake, state.head), eraser).plan


def left(s3: Any, state: TableState) -> tuple[ErasedVersion, ...]:
    """What earlier erases have not removed yet."""
    erases = read_snapshot(s3, state.lake, state.head).erases if state.head else ()
    return tuple(each for each, _ in left_versions(s3, state.lake, erases))


def reachable(keys: str, runner: str) -> str:
    """The address as a run can read it; UsageError for a file of this machine that a Glue job is to read."""
    if keys.startswith("s3://"):
        return keys
    if runner == "glue":
        raise UsageError(
            f"a Glue job can't read {keys}, a file of this machine", "not-on-s3", "put it into S3 and give s3://…, or --runner local"
        )
    return str(Path(keys).expanduser().resolve())


def erase_run(state: TableState, keys: str, columns: tuple[str, ...], plan: ErasePlan) -> RunPlan:
    """The run that does what was shown, and nothing if the table, the keys or the list are others by then."""
    pairs = [("erase_keys", keys), ("key", key_text(columns)), ("from_change", plan.head), ("shown", plan.digest)]
    return _run(state, f"{plan.rows} row(s), {len(plan.versions)} version(s)", tuple((name, value) for name, value in pairs if value))


def resume_run(state: TableState) -> RunPlan:
    """The run that removes what earlier erases left."""
    return _run(state, "what is left of an erase", (("resume", "true"),))


def _run(state: TableState, reason: str, arguments: tuple[tuple[str, str], ...]) -> RunPlan:
    path = str(state.path)
    return RunPlan((TablePlan(path, "erase", reason, ERASE),), (PlannedRun(ERASE, (path,), 0, arguments),))
