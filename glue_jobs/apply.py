"""Glue job Apply: rows of the tables in `--path` are corrected by a key that need not be unique, or edited by the primary key.

--key order_id      the columns by which rows are found, comma separated
--deletes ADDRESS   keys: every row of each goes
--updates ADDRESS   rows with all columns: for each of their keys they take the place of all rows that it has
--strict true       a key that no row has is an error

--edit WORD         in place of these: insert, update or delete rows by the primary key; an update need not say all columns
--rows ADDRESS      the rows: a JSON, CSV or Parquet file
--upsert true       what the table has, or has not, is replaced, inserted, or left aside

--stage true        do all but the commit: `dmslake show | commit | discard`
--dry_run true      only log what would be done
--from_change ID    only if that change is still the head

Either way it is one change of each table. An address is a Parquet or CSV file, or a folder of Parquet files, on S3. Keys of a correction
that no row has are reported; rows given for them are not inserted.

aws glue start-job-run --job-name Apply --arguments '{"--path": "bucket/prefix/schema/table", "--key": "id", "--deletes": "s3://…"}'

From Python, with two DataFrames of any size up to the setting `apply_bytes`:

    from glue_jobs.apply import apply_to_lake

    change = apply_to_lake(spark, "shop.orders", "id", deletes_df, updates_df)
"""

from __future__ import annotations

import os
import secrets
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from typing import Any, Callable

from glue_jobs.aws.clients import Deadline, make_clients
from glue_jobs.aws.state_table import StateTable
from glue_jobs.aws.translate import translated
from glue_jobs.core.arguments import read_flag
from glue_jobs.core.erasure import BACK, back_text
from glue_jobs.core.errors import CommitRefused, UsageError
from glue_jobs.core.given import check_key, read_correction, split_key
from glue_jobs.core.row_edit import RowEdit, read_row_edit
from glue_jobs.core.settings import Settings, read_settings
from glue_jobs.core.snapshot import Snapshot
from glue_jobs.core.state import TableState
from glue_jobs.core.work import Work
from glue_jobs.entry import run_as_script
from glue_jobs.protocol.as_of import visible_head
from glue_jobs.protocol.history import read_snapshot
from glue_jobs.protocol.history_table import check_free
from glue_jobs.protocol.job import Act, run_here, run_job
from glue_jobs.protocol.job_log import JobLog
from glue_jobs.protocol.lineage import Lineage
from glue_jobs.protocol.sent_twice import done_by_twin, said_done
from glue_jobs.protocol.table_run import JobContext, TableRun
from glue_jobs.spark.apply_plan import ApplyPlan, facts, plan_apply
from glue_jobs.spark.apply_rows import work_of
from glue_jobs.spark.edit_files import EditReader
from glue_jobs.spark.edit_plan import plan_edit, wanted_for
from glue_jobs.spark.edit_rows import Union, together
from glue_jobs.spark.edit_values import fitted_values
from glue_jobs.spark.engine import Engines
from glue_jobs.spark.given_frames import given_frames
from glue_jobs.spark.given_history import keeps_now, with_given
from glue_jobs.spark.given_rows import GivenRows, Reader, read_given
from glue_jobs.spark.place import CLIENT_VARIABLES, Place
from glue_jobs.spark.session import kept_settings
from glue_jobs.spark.task_errors import brought_back

# (s3, snapshot, table) → the rows of a correction for a table that looks so.
Give = Callable[[Any, Snapshot, str], GivenRows]
# (s3, snapshot, table) → the rows of an edit.
GiveRows = Callable[[Any, Snapshot, str], Union]
# (engines, place, state, snapshot, now) → what would be done.
MakePlan = Callable[[Engines, Place, TableState, Snapshot, datetime], ApplyPlan]


def correcting(give: Give, strict: bool = False) -> MakePlan:
    """The plan of a correction."""

    def plan(engines: Engines, place: Place, state: TableState, snapshot: Snapshot, _: datetime) -> ApplyPlan:
        return plan_apply(engines, place, state, snapshot, give(place.s3, snapshot, str(state.path)), strict=strict)

    return plan


def editing(give: GiveRows, edit: RowEdit) -> MakePlan:
    """The plan of an edit."""

    def plan(engines: Engines, place: Place, state: TableState, snapshot: Snapshot, now: datetime) -> ApplyPlan:
        return plan_edit(engines, place, state, snapshot, edit, give(place.s3, snapshot, str(state.path)), now)

    return plan


def edit_rows_at(edit: RowEdit, settings: Settings) -> GiveRows:
    """The rows of an edit that stand in files."""

    def give(s3: Any, snapshot: Snapshot, table: str) -> Union:
        wanted = wanted_for(snapshot, edit, table)
        return together(EditReader(s3, settings.limits.apply_bytes).fitted(edit.rows, wanted), wanted)

    return give


def edit_rows_of(rows: Any, edit: RowEdit, settings: Settings) -> GiveRows:
    """The rows of an edit that a program has: a DataFrame, an Arrow table, a dict of columns, a list of dicts."""

    def give(_: Any, snapshot: Snapshot, table: str) -> Union:
        wanted = wanted_for(snapshot, edit, table)
        return together([fitted_values(rows, wanted, settings.limits.apply_bytes)], wanted)

    return give


@dataclass
class Applying:
    """What the job does in a table's run. from_change: the head that a person was shown; on another one it is refused."""

    plan: MakePlan
    engines: Engines
    environment: Mapping[str, str]
    stage: bool = False
    dry_run: bool = False
    from_change: str = ""
    change: str = ""

    def __call__(self, run: TableRun) -> None:
        run.may_block = False
        run.staging = self.stage
        run.open()
        if not self.dry_run:
            done = done_by_twin(run, Lineage(run.s3, run.state.lake, run.snapshot.change), "apply", "edit")
            if done:
                self.change, run.note = done, said_done(done)
                return
            if run.unfinished:
                run.finish()
        if self.from_change and run.snapshot.change != self.from_change:
            raise _moved_on(run, self.from_change)
        snapshot = read_snapshot(run.s3, run.state.lake, visible_head(run.s3, run.state)) if self.dry_run else run.snapshot
        if snapshot.is_empty:
            what = f"{run.state.path} has no rows yet that could be corrected"
            raise UsageError(what, "not-loaded", "`dmslake run PATH` loads it, once it is active")
        with brought_back():
            plan = self.plan(self.engines, self._place(run), run.state, snapshot, run.context.clock())
            run.context.log.event("plan", dry_run=self.dry_run, **facts(plan))
            if self.dry_run:
                run.note = "dry run: nothing was changed"
                return
            if not (plan.located or len(plan.rows_in)):
                run.note = "no row of the table has one of the keys: nothing was changed"
                return
            record = run.wished(lambda change: self._work(run, plan, change), action="apply")
        self.change = record.id
        if len(plan.missing) and not plan.inserts:
            run.warnings.append(f"{len(plan.missing)} key(s) stand in no row; the change's record has the first of them")
        if record.details.get(BACK):
            run.warnings.append(back_text(record.id, record.details[BACK]))

    def _work(self, run: TableRun, plan: ApplyPlan, change: str) -> Work:
        rows = run.context.settings.limits.sample_rows if self.stage else 0
        place = self._place(run, change)
        work = work_of(self.engines, place, run.state, plan, staged_rows=rows)
        if not keeps_now(run.state, plan.snapshot):
            return work
        if plan.snapshot.history is None:
            check_free(run.s3, run.state.lake, str(run.state.path))
        return with_given(self.engines, place, run.state, plan, work, run.history(), run.context.clock())

    def _place(self, run: TableRun, change: str = "") -> Place:
        client = tuple((name, self.environment[name]) for name in CLIENT_VARIABLES if self.environment.get(name))
        settings = run.context.settings
        return Place(client, run.state.path.bucket, run.state.lake, change, settings.compression, settings.limits, run.state.before_images)


def _moved_on(run: TableRun, shown: str) -> CommitRefused:
    return CommitRefused(
        f"{run.state.path} has gone on since this was planned: its head was {shown}, now it is {run.snapshot.change}",
        "moved-on",
        "look again with --dry-run, then run again; nothing was changed",
    )


def main(argv: Sequence[str], environment: Mapping[str, str] | None = None) -> int:
    """Correct the tables in argv; the exit code of the job."""
    environment = os.environ if environment is None else environment

    def act(settings: Settings, given: Mapping[str, str]) -> Act:
        engines, dry_run, head = Engines.of(settings.limits), read_flag(given, "dry_run"), given.get("from_change", "")
        edit = read_row_edit(given)
        if edit is not None:
            return Applying(editing(edit_rows_at(edit, settings), edit), engines, environment, edit.stage, dry_run, head)
        correction = read_correction(given)

        def give(s3: Any, snapshot: Snapshot, table: str) -> GivenRows:
            return read_given(Reader(s3, settings.limits.apply_bytes), correction, snapshot, table)

        return Applying(correcting(give, correction.strict), engines, environment, correction.stage, dry_run, head)

    own = ("key", "deletes", "updates", "strict", "edit", "rows", "upsert", "stage", "dry_run", "from_change")
    return run_job("Apply", act, argv, environment, own=own)


# --- From Python


def apply_to_lake(
    spark: Any,
    path: str,
    key: str | Sequence[str],
    deletes_df: Any = None,
    updates_df: Any = None,
    *,
    strict: bool = False,
    stage: bool = False,
    environment: Mapping[str, str] | None = None,
    **settings: str,
) -> str:
    """Correct the table at `path` (bucket/prefix/schema/table, or schema.table where that is unique); the id of the change.

    deletes_df: rows that hold the key's columns, None for none; updates_df: rows with exactly the table's columns. Runs under the table's
    lease in this process, with this session, which keeps its settings. settings: as on the command line; else DMSLAKE_… variables, then
    defaults.
    """
    environment = os.environ if environment is None else environment
    columns = split_key(key) if isinstance(key, str) else tuple(key)
    check_key(columns)
    if deletes_df is None and updates_df is None:
        raise UsageError("no rows are given", "bad-argument", "give deletes_df, updates_df, or both")
    chosen = replace(read_settings(dict(settings), environment), run_id=secrets.token_hex(8))

    def give(_: Any, snapshot: Snapshot, table: str) -> GivenRows:
        limit = chosen.limits.apply_bytes
        return given_frames(columns, snapshot.schema, snapshot.primary_key, table, deletes_df, updates_df, limit)

    act = Applying(correcting(give, strict), Engines.of(chosen.limits, spark), environment, stage)
    with kept_settings(spark):
        return apply_here(act, path, chosen, environment)


def apply_here(act: Applying, path: str, settings: Settings, environment: Mapping[str, str]) -> str:
    """Run the act under the table's lease in this process; the id of the change, '' if there was none. Its failure is raised."""
    log = JobLog(settings.run_id, lambda: datetime.now(timezone.utc))
    with translated():
        deadline = Deadline()
        clients = make_clients(environment, deadline)
        table = StateTable(clients, settings.state_table)
        ended = run_here(JobContext("Apply", clients, deadline, table, settings, log, log.clock), table.find(path), act)
    if ended.error is not None:
        raise ended.error
    return act.change


if __name__ == "__main__":
    run_as_script(main, sys.argv[1:])
