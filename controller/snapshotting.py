"""A run of the job Snapshot: what it would read, or the run itself and the manifest it leaves."""

from __future__ import annotations

from dataclasses import dataclass

from controller.dispatch import RunOutcome
from controller.plan import SNAPSHOT, PlannedRun
from controller.session import Session
from glue_jobs.aws.translate import translated
from glue_jobs.core.snapshot_plan import Manifest, SnapshotPlan
from glue_jobs.core.snapshot_sources import SnapshotWish, wish_arguments
from glue_jobs.protocol.snapshot import find_manifest, look


@dataclass(frozen=True)
class Snapshotted:
    """How the run ended. manifest: what it made, None where it failed."""

    outcome: RunOutcome
    manifest: Manifest | None = None

    @property
    def message(self) -> str:
        """Why it failed, '' where it did not."""
        problem = self.outcome.problem
        return "" if self.manifest else problem.message if problem else self.outcome.message or "the run ended without a manifest"

    @property
    def exit_code(self) -> int:
        if self.manifest is not None:
            return 0
        return self.outcome.problem.exit_code if self.outcome.problem else self.outcome.exit_code or 1


def planned_run(wish: SnapshotWish) -> PlannedRun:
    """The run of the job: it is told the whole wish, so that a sources file on this machine will do for a Glue job."""
    return PlannedRun(SNAPSHOT, (), 0, tuple(wish_arguments(wish).items()))


def plan_here(session: Session, wish: SnapshotWish) -> SnapshotPlan:
    """What the run would read. Nothing is written."""
    with translated():
        return look(session.clients, wish)


def take_snapshot(session: Session, wish: SnapshotWish) -> Snapshotted:
    """Start the run, wait for it, and read the manifest it has written."""
    outcome = session.run_alone(planned_run(wish))
    if outcome.state != "SUCCEEDED":
        return Snapshotted(outcome)
    with translated():
        return Snapshotted(outcome, find_manifest(session.clients.s3, wish.folder, wish.run_date.isoformat(), outcome.run_id))
