"""A run of the job Snapshot: what it would read, or the run itself and the manifest it leaves."""

from __future__ import annotations

import json
from dataclasses import dataclass

from controller.dispatch import RunOutcome
from controller.plan import SNAPSHOT, PlannedRun, Problem
from controller.session import Session
from glue_jobs.aws.translate import translated
from glue_jobs.core.limits import Limits
from glue_jobs.core.snapshot_inputs import quiet_since
from glue_jobs.core.snapshot_plan import Manifest, SnapshotPlan
from glue_jobs.core.snapshot_sources import SnapshotWish, wish_arguments
from glue_jobs.protocol.snapshot import find_manifest, look

FAILURES = (1, 2, 3, 4, 5)  # exit codes that say something


@dataclass(frozen=True)
class Snapshotted:
    """How the run ended. manifest: what it made, None where it failed."""

    outcome: RunOutcome
    manifest: Manifest | None = None

    @property
    def problem(self) -> Problem | None:
        """Why it failed, None where it did not."""
        if self.manifest is not None:
            return None
        if self.outcome.problem is not None:
            return self.outcome.problem
        message = self.outcome.message or "the run ended without a manifest"
        return _logged(message) or Problem("no-result", message, "read the run's log; readers see the version before")

    @property
    def exit_code(self) -> int:
        """The job's, where a job can have ended so; 1 for a process that was killed, whose code is that of its end."""
        if self.problem is None:
            return 0
        code = self.outcome.problem.exit_code if self.outcome.problem else self.outcome.exit_code
        return code if code in FAILURES else 1


def _logged(message: str) -> Problem | None:
    """The error that the job has logged, where its last lines are the message, as a local run's are."""
    for line in reversed(message.splitlines()):
        try:
            error = json.loads(line)["error"]
            return Problem(str(error["code"]), str(error["message"]), str(error["todo"]))
        except (ValueError, LookupError, TypeError):  # a line of anything else
            continue
    return None


def planned_run(wish: SnapshotWish, limits: Limits) -> PlannedRun:
    """The run of the job: it is told the whole wish, so that a sources file on this machine will do for a Glue job, and how long a load is
    waited for, where that is said: a look has gone by it."""
    told = wish_arguments(wish)
    if limits.load_quiet_minutes != Limits().load_quiet_minutes:
        told["load_quiet_minutes"] = str(limits.load_quiet_minutes)
    return PlannedRun(SNAPSHOT, (), 0, tuple(told.items()))


def plan_here(session: Session, wish: SnapshotWish) -> SnapshotPlan:
    """What the run would read. Nothing is written."""
    with translated():
        return look(session.clients, wish, quiet_since=quiet_since(session.settings.limits, session.host.now()))


def take_snapshot(session: Session, wish: SnapshotWish) -> Snapshotted:
    """Start the run, wait for it, and read the manifest it has written."""
    outcome = session.run_alone(planned_run(wish, session.settings.limits))
    if outcome.state != "SUCCEEDED":
        return Snapshotted(outcome)
    with translated():
        return Snapshotted(outcome, find_manifest(session.clients.s3, wish.folder, wish.run_date.isoformat(), outcome.run_id))
