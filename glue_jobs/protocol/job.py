"""A job run: the tables named by `--path`, some at a time, each with its own lease, changes, result and failure."""

from __future__ import annotations

import io
import os
import secrets
import sys
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from typing import Any, Callable

from glue_jobs.aws.clients import Deadline, make_clients
from glue_jobs.aws.state_table import StateTable
from glue_jobs.aws.translate import translated
from glue_jobs.core.arguments import check_known, parse_arguments
from glue_jobs.core.errors import CommitRefused, DmslakeError, LeaseHeld, TableBlocked, UsageError, name_table
from glue_jobs.core.paths import TablePath
from glue_jobs.core.printable import error_lines
from glue_jobs.core.settings import Settings, read_settings
from glue_jobs.core.state import read_state
from glue_jobs.protocol.history import greatest_fence
from glue_jobs.protocol.job_log import JobLog
from glue_jobs.protocol.lanes import in_lanes
from glue_jobs.protocol.lease import Lease, take_lease
from glue_jobs.protocol.table_run import JobContext, TableRun, describe

# Arguments of the AWS sample's jobs: the table is taken from the first two; the others live elsewhere now.
_SAMPLE_ARGUMENTS = {
    "folder": "give it as part of --path",
    "out_path": "it stands in the item's attribute out_path",
    "partitionKey": "it stands in the item's attribute PartitionKey",
    "primaryKey": "it stands in the item's attribute PrimaryKey",
    "lastIncrementalFile": "it stands in the item's attribute LastIncrementalFile",
    "newIncrementalFile": "the job finds the files itself",
}
_OF_THE_SAMPLE = ("bucket", "prefix", "table")


def job_settings(given: Mapping[str, str], environment: Mapping[str, str]) -> Settings:
    """The settings of a job run. The sample's --bucket and --prefix are taken as the path, its other arguments are refused."""
    texts: dict[str, Any] = dict(given)
    for name, answer in _SAMPLE_ARGUMENTS.items():
        if name in texts:
            raise UsageError(f"the argument --{name} is not taken", "sample-argument", answer)
    if "bucket" in texts and not texts.get("path"):
        texts["path"] = f"{texts['bucket']}/{texts.get('prefix', '').strip('/')}/{texts.get('table', '')}".rstrip("/")
    settings = read_settings(texts, environment)
    run_id = settings.run_id or texts.get("JOB_RUN_ID") or secrets.token_hex(8)
    if not settings.paths:
        raise UsageError("no table is given", "no-path", "give --path bucket/prefix/schema/table, several separated by commas")
    return replace(settings, run_id=run_id)


# What a job does in a table's run; made from its settings and its arguments.
Act = Callable[[TableRun], None]
MakeAct = Callable[[Settings, Mapping[str, str]], Act]


def run_job(
    job: str,
    make_act: MakeAct,
    argv: Sequence[str],
    environment: Mapping[str, str] | None = None,
    *,
    own: Sequence[str],
    side_by_side: bool = False,
) -> int:
    """Run `job` for the tables in `argv`; the exit code. One table's failure never stops another's.

    own: the arguments that the job has besides those of all jobs. side_by_side: up to `tables_at_once` tables at a time, for a job whose
    Act may be called by several threads.

    4 (lease held) only if nothing else went wrong; a Glue entry script turns it into 0, because a second start is harmless.
    """
    environment = os.environ if environment is None else environment
    log = JobLog("", _now)
    try:
        with translated():
            given = parse_arguments(argv)
            settings = job_settings(given, environment)
            check_known(given, (*own, *_OF_THE_SAMPLE))
            log = JobLog(settings.run_id, _now)
            deadline = Deadline()
            clients = make_clients(environment, deadline)
            table = StateTable(clients, settings.state_table)
            context = JobContext(job, clients, deadline, table, settings, log, _now)
            act = make_act(settings, given)
            paths = list(dict.fromkeys(table.find(text) for text in settings.paths))
    except DmslakeError as error:
        log.event("failed", error=describe(error))
        print(*error_lines(error), sep="\n", file=sys.stderr)
        return error.exit_code
    most = settings.limits.tables_at_once if side_by_side else 1
    return worst(in_lanes(context, paths, lambda lane, path: run_table(lane, path, act), most))


def worst(codes: Sequence[int]) -> int:
    """The exit code of several tables: configuration before failure before a held lease before fine."""
    return next((code for code in (3, 2, 1, 4) if code in codes), 0)


def _now() -> datetime:
    return datetime.now(timezone.utc)


@dataclass(frozen=True)
class Ended:
    """How a table's run in this process ended. code: its exit code; error: why it failed, None where it did not."""

    code: int = 0
    error: DmslakeError | None = None

    @classmethod
    def by(cls, error: DmslakeError) -> Ended:
        return cls(error.exit_code, error)


def run_table(context: JobContext, path: TablePath, act: Act) -> int:
    """One table from lease to release; its result goes to LastRun, its error to Blocked or LastRun. Returns its exit code."""
    return _run(context, path, act).code


def run_here(context: JobContext, path: TablePath, act: Act) -> Ended:
    """Run one table for a command: its result goes to LastRun as that of any run, its log nowhere, unless a defect of ours ended it."""
    lines = io.StringIO()
    ended = _run(replace(context, log=JobLog(context.settings.run_id, context.clock, lines)), path, act)
    if ended.error is not None and ended.error.code == "unexpected":
        print(lines.getvalue(), end="", file=sys.stderr)
    return ended


def _run(context: JobContext, path: TablePath, act: Act) -> Ended:
    log = context.log.of(str(path))
    context = replace(context, log=log)
    started = time.monotonic()
    try:
        with translated():
            lease, run = _take(context, path)
    except LeaseHeld as error:
        log.event("lease-held", message=error.message)
        return Ended.by(error)
    except Exception as error:  # noqa: BLE001 - this table's failure, not the run's
        return Ended.by(_fail(log, error))
    try:
        failure: DmslakeError | None = None
        try:
            with translated():
                act(run)
        except Exception as error:  # noqa: BLE001 - the one broad except per table: it becomes the table's report
            failure = _fail(log, error)
        _write_result(context, lease, run, failure, time.monotonic() - started)
        return Ended.by(failure) if failure else Ended()
    finally:
        lease.release()


def _take(context: JobContext, path: TablePath) -> tuple[Lease, TableRun]:
    table, settings = context.table, context.settings
    item = table.get(str(path))
    if item is None:
        raise UsageError(f"no item for {path} in {settings.state_table}", "unknown-table", "`dmslake tables` lists the tables")
    state = read_state(item)

    def first_fence() -> int:
        return greatest_fence(context.clients.s3, state.lake) + 1 if state.out_path else 1

    lease = take_lease(table, context.deadline, item, secrets.token_hex(8), settings.limits.lease_seconds, first_fence, context.wait)
    try:
        taken = read_state(lease.item)
    except BaseException:
        lease.release()
        raise
    before = replace(taken, fence=lease.fence - 1)  # the greatest fence given out before ours
    return lease, TableRun(context, lease, before)


def _fail(log: JobLog, error: Exception) -> DmslakeError:
    """The error as one of ours; one that we did not foresee keeps its type's name and its trace goes to the log."""
    if isinstance(error, DmslakeError):
        name_table(error, log.table)
        log.event("blocked" if isinstance(error, TableBlocked) else "failed", error=describe(error))
        return error
    import traceback

    log.event("failed", error=f"{type(error).__name__}: {error}"[:2000], trace=traceback.format_exc()[-4000:])
    return DmslakeError(f"{type(error).__name__}: {error}"[:900], "unexpected", "see the run's log; the table was not changed by this step")


def _write_result(context: JobContext, lease: Lease, run: TableRun, failure: DmslakeError | None, seconds: float) -> None:
    """Blocked, then LastRun by the write that gives the lease back. Without the lease nothing is written: its new holder reports."""
    values: dict[str, Any] = {} if _is_told(run, failure) else {"LastRun": _last_run(context, run, failure, seconds)}
    try:
        if isinstance(failure, TableBlocked) and run.may_block and not run.was_blocked:
            # A block by hand must not become one of ours, which ends by itself. One that a person lifts meanwhile is to be tried again.
            value, seen = {"Blocked": run.blocked_value(failure)}, {"Blocked": run.state.item.get("Blocked")}
            context.table.write_under_fence(lease.path, lease.fence, value, unchanged=seen)
        lease.end(values)
    except Exception as error:  # noqa: BLE001 - the result is for people; the table itself is fine without it
        context.log.event("result-not-written", error=str(error)[:500])


def _is_told(run: TableRun, failure: DmslakeError | None) -> bool:
    """Whether the item already has this run's result: of its twin (see `sent_twice`), after which there was nothing left to do."""
    last = run.state.last_run
    is_of_twin = last.get("run_id") == run.context.settings.run_id and last.get("outcome") in ("committed", "staged")
    is_finished_since = bool(last.get("catalog_pending")) and not run.state.catalog_pending
    return is_of_twin and not (failure or run.changes or run.staged or is_finished_since)


def _last_run(context: JobContext, run: TableRun, failure: DmslakeError | None, seconds: float) -> dict[str, Any]:
    totals: Counter[str] = Counter()
    for record in (*run.changes, *run.staged):
        counts = record.counts
        totals.update(inserted=counts.inserted, updated=counts.updated, deleted=counts.deleted, ignored=counts.ignored)
        totals.update(input_rows=counts.input_rows, backward=counts.backward)
        totals.update(files_added=len(record.added), files_superseded=len(record.superseded))
        totals.update(bytes_added=sum(file.size_bytes for file in record.added))
    outcome = "staged" if run.staged else "committed" if run.changes else "nothing"
    if failure is not None:
        is_refusal = isinstance(failure, (TableBlocked, UsageError, CommitRefused)) and not (run.may_block or run.changes)
        outcome = "blocked" if isinstance(failure, TableBlocked) and run.may_block else "refused" if is_refusal else "failed"
    result: dict[str, Any] = {
        "run_id": context.settings.run_id,
        "job": context.job,
        "outcome": outcome,
        "changes": [record.id for record in run.changes][-20:],
        "change_count": len(run.changes),
        **({"staged": run.staged[-1].id} if run.staged else {}),
        # The change stands, and yet its partitions may be seen by nobody who asks the catalog: the controller raises an alarm.
        **({"catalog_pending": run.state.catalog_pending} if run.catalog_failed and run.state.catalog_pending else {}),
        **({"leaves": True} if run.leaves else {}),
        "note": run.note,
        **{name: totals.get(name, 0) for name in _TOTALS},
        "table_rows": run.snapshot.rows,
        "table_files": len(run.snapshot.files),
        "table_bytes": run.snapshot.size_bytes,
        "seconds": round(seconds, 3),
        "warnings": [text[:300] for text in run.warnings][:5],
        "time": context.clock().strftime("%Y-%m-%dT%H:%M:%SZ"),
    }
    return {**result, "error": describe(failure)} if failure is not None else result


_TOTALS = (
    "inserted", "updated", "deleted", "ignored", "input_rows", "backward", "files_added", "files_superseded", "bytes_added",
)  # fmt: skip
