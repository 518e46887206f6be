"""The run of the job Apply for a correction of one table, and what its change's record tells of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from controller.plan import APPLY, PlannedRun, RunPlan, TablePlan
from glue_jobs.core.errors import UsageError
from glue_jobs.core.given import Correction, key_text
from glue_jobs.core.paths import S3Uri
from glue_jobs.core.record import ChangeRecord
from glue_jobs.core.state import TableState

FACTS = (
    "rows_matched_before", "rows_after", "keys_deleted", "keys_updated", "keys_not_found", "keys_not_found_first", "files_rewritten",
)  # fmt: skip


def reachable(correction: Correction, runner: str) -> Correction:
    """The correction with addresses that the run can read; UsageError for a file of this machine that a Glue job is to read."""
    for text in (correction.deletes, correction.updates):
        if text and runner == "glue" and not text.startswith("s3://"):
            raise UsageError(
                f"a Glue job can't read {text}, a file of this machine",
                "not-on-s3",
                "put it into S3 and give s3://bucket/key, or give --runner local",
            )
        if text.startswith("s3://"):
            S3Uri.parse(text)  # an address that is none is no reason to start a job
    return replace(correction, deletes=_whole(correction.deletes), updates=_whole(correction.updates))


def _whole(text: str) -> str:
    return str(Path(text).expanduser().resolve()) if text and not text.startswith("s3://") else text


def apply_run(state: TableState, correction: Correction) -> RunPlan:
    """The run that applies a correction to one table."""
    path = str(state.path)
    table = TablePlan(path, "apply", f"a correction by {key_text(correction.key)}", APPLY)
    return RunPlan((table,), (PlannedRun(APPLY, (path,), 0, correction.arguments()),))


def record_facts(record: ChangeRecord) -> dict[str, Any]:
    """What a correction did, by its record; as `facts` of a planned one."""
    return {**{name: record.details.get(name) for name in FACTS}, **counted(asdict(record.counts))}


def counted(counts: Mapping[str, int]) -> dict[str, int]:
    """The counts that a correction has."""
    return {name: counts[name] for name in ("inserted", "updated", "deleted")}
