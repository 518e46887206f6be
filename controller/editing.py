"""Rows inserted, updated and deleted by a command: where they come from, the run of the job Apply, and what its record tells."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from controller.applying import counted
from controller.plan import APPLY, PlannedRun, RunPlan, TablePlan
from glue_jobs.core.errors import UsageError
from glue_jobs.core.paths import S3Uri
from glue_jobs.core.record import ChangeRecord, Counts
from glue_jobs.core.row_edit import RowEdit
from glue_jobs.core.state import TableState

STDIN = "-"


@dataclass(frozen=True)
class RowsGiven:
    """What a person says of the rows. where: an address, or `-` for standard input; texts: rows as JSON."""

    where: str = ""
    texts: tuple[str, ...] = ()

    def check(self) -> RowsGiven:
        """The rows themselves; UsageError for none, or for both."""
        if bool(self.where) == bool(self.texts):
            todo = """give --rows FILE, --rows - for standard input, or --row '{"id": 1}', which may be repeated"""
            raise UsageError("no rows are given" if not self.where else "--rows with --row", "bad-argument", todo)
        return self

    @property
    def is_on_s3(self) -> bool:
        return self.where.startswith("s3://")

    def on(self, edit: RowEdit, told_runner: str) -> RowEdit:
        """The edit with the address of the rows. told_runner: what the person said by --runner, '' for nothing; UsageError where a Glue job
        is to read a file of this machine."""
        if self.is_on_s3:
            S3Uri.parse(self.where)  # an address that is none is no reason to start a job
            return replace(edit, rows=self.where)
        if told_runner == "glue":
            todo = "put them into S3 and give --rows s3://bucket/key, or leave out --runner glue: then this process does it"
            raise UsageError("a Glue job can't read rows of this machine", "not-on-s3", todo)
        is_file = bool(self.where) and self.where != STDIN
        return replace(edit, rows=str(Path(self.where).expanduser().resolve()) if is_file else "")


def edit_run(state: TableState, edit: RowEdit) -> RunPlan:
    """The run of the job Apply that edits one table."""
    path = str(state.path)
    table = TablePlan(path, edit.word, f"rows to {edit.word}", APPLY)
    return RunPlan((table,), (PlannedRun(APPLY, (path,), 0, edit.arguments()),))


def edit_facts(record: ChangeRecord) -> dict[str, Any]:
    """What an edit did, by its record."""
    names = ("edit", "rows_given", "files_rewritten")
    return {**{name: record.details.get(name) for name in names}, **edit_counts(record.counts)}


def edit_counts(counts: Counts) -> dict[str, int]:
    """The counts that an edit has."""
    return counted({"inserted": counts.inserted, "updated": counts.updated, "deleted": counts.deleted})
