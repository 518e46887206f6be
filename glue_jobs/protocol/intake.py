"""What the load jobs do in a table's run: plan, and take raw files or rewrite, until nothing of the job's kind is left."""

from __future__ import annotations

from dataclasses import replace

from glue_jobs.core.erasure import BACK, back_text
from glue_jobs.core.errors import TableBlocked
from glue_jobs.core.intake import Action, Finish, Rest, Stopped, TakeBatch, TakeLoad, plan_table, signature
from glue_jobs.core.raw_gone import UNKNOWN_EXPIRY
from glue_jobs.core.snapshot import Snapshot
from glue_jobs.core.work import NothingForTable, Task, Work, Worker
from glue_jobs.protocol.history_table import check_free
from glue_jobs.protocol.job import Act
from glue_jobs.protocol.raw import list_raw
from glue_jobs.protocol.stage import pause_for
from glue_jobs.protocol.table_run import TableRun


def take_with(worker: Worker, takes: tuple[type, ...], *, staging: bool = False) -> Act:
    """What a load job does in a table's run: `take_all` with this worker. staging: prepare the first change only, and pause."""

    def act(run: TableRun) -> None:
        run.staging = staging
        take_all(run, worker, takes)

    return act


def take_all(run: TableRun, worker: Worker, takes: tuple[type, ...]) -> None:
    """Everything there is to do for the kinds of actions in `takes`, in as many changes as it takes."""
    run.open()
    blank: frozenset[str] = frozenset()  # transaction files that were read and have no row of the table
    while True:
        action = _plan(run, blank)
        if isinstance(action, Stopped):
            run.was_blocked = action.known
            raise TableBlocked(action.by.message, action.by.code, action.by.todo)
        if isinstance(action, Finish):
            run.finish()
            continue
        if isinstance(action, Rest) or not isinstance(action, takes):
            run.note = action.reason if isinstance(action, Rest) else f"not a job for {run.context.job}: {type(action).__name__}"
            return
        try:
            _take(run, worker, action)
        except NothingForTable as found:
            blank |= found.keys
            continue
        if run.staging:
            pause_for(run, run.staged[-1])
            return


def _take(run: TableRun, worker: Worker, action: Action) -> None:
    def work(change: str) -> Work:
        history = Snapshot()
        if run.state.keeps_history:
            history = run.history()
            if run.snapshot.history is None:
                check_free(run.s3, run.state.lake, str(run.state.path))
        return worker(Task(run.state, run.snapshot, action, change, run.context.settings, run.staging, history, run.context.clock()))

    record = run.change(work, action=type(action).__name__, **_sizes(action))
    if record.details.get(BACK):
        run.warnings.append(back_text(record.id, record.details[BACK]))


def _plan(run: TableRun, blank: frozenset[str]) -> Action:
    limits = run.context.settings.limits
    listing = replace(list_raw(run.s3, run.state, run.snapshot, limits), blank=blank)
    run.mark = signature(run.state, listing)
    if listing.expiry is not None and not listing.expiry.is_known and UNKNOWN_EXPIRY not in run.warnings:
        run.warnings.append(UNKNOWN_EXPIRY)
    # A catalog that fails is tried once per run; the files go on without it, and CatalogPending stays for the next run.
    state = replace(run.state, catalog_pending="") if run.catalog_failed else run.state
    return plan_table(state, run.snapshot, listing, run.context.clock(), limits)


def _sizes(action: Action) -> dict[str, int]:
    if isinstance(action, (TakeLoad, TakeBatch)):
        return {"files": len(action.files), "bytes": sum(file.size for file in action.files)}
    return {}
