"""What the load jobs do in a table's run: plan, and take raw files or rewrite, until nothing of the job's kind is left."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from botocore.exceptions import BotoCoreError, ClientError

from glue_jobs.aws.catalog_table import check_owner
from glue_jobs.aws.objects import list_files
from glue_jobs.core.actions import Action, Finish, Rest, Stopped, TakeBatch, TakeLoad
from glue_jobs.core.awaited import FILE_GONE, gone_before_read, still_awaited, vanished
from glue_jobs.core.erasure import BACK, back_text
from glue_jobs.core.errors import TableBlocked
from glue_jobs.core.foreign_folder import check_alone
from glue_jobs.core.intake import mark_of, plan_table
from glue_jobs.core.load_plan import asks_reload, looks_back
from glue_jobs.core.paths import catalog_name
from glue_jobs.core.raw_gone import UNKNOWN_EXPIRY
from glue_jobs.core.raw_names import CdcName, RawFile, RawListing, cdc_name
from glue_jobs.core.replay import fold_of
from glue_jobs.core.snapshot import Snapshot, recalled
from glue_jobs.core.state import TableState
from glue_jobs.core.work import NothingForTable, Task, Work, Worker
from glue_jobs.protocol.history_table import check_free
from glue_jobs.protocol.job import Act
from glue_jobs.protocol.lineage import Lineage
from glue_jobs.protocol.raw import list_raw
from glue_jobs.protocol.stage import pause_for
from glue_jobs.protocol.table_run import TableRun

_MOVED = frozenset({FILE_GONE, "raw-file-changed"})


def take_with(worker: Worker, takes: tuple[type, ...], *, staging: bool = False) -> Act:
    """What a load job does in a table's run: `take_all` with this worker. staging: prepare the first change only, and pause."""

    def act(run: TableRun) -> None:
        run.staging = staging
        take_all(run, worker, takes)

    return act


def take_all(run: TableRun, worker: Worker, takes: tuple[type, ...]) -> None:
    """Everything there is to do for the kinds of actions in `takes`, in as many changes as it takes. Of CDC files what was there when the
    run began, or came late: where a change takes longer than DMS takes for a file, it would never end, and keep lease and worker."""
    run.open()
    blank: dict[str, str] = {}  # key and ETag of transaction files that were read and have no row of the table
    listed: _Listed | None = None
    last: CdcName | None = None
    while True:
        if listed is None:
            listed = _Listed.of(run)
            last = listed.last(run.state)
        elif not listed.holds(run):
            listed = _Listed.of(run)
        if listed.change == run.snapshot.change:
            run.snapshot = listed.snapshot
        listing = replace(listed.listing, blank=_still(blank, listed.listing))
        action = _plan(run, listing)
        if isinstance(action, Stopped):
            if listed.change != run.snapshot.change:
                listed = None  # the next run finds the block by what it lists then
                continue
            run.was_blocked = action.known
            raise TableBlocked(action.by.message, action.by.code, action.by.todo)
        if isinstance(action, Finish):
            run.finish()
            listed = None
            continue
        if isinstance(action, Rest) or not isinstance(action, takes):
            run.note = action.reason if isinstance(action, Rest) else f"not a job for {run.context.job}: {type(action).__name__}"
            return
        if isinstance(action, TakeBatch) and not action.late and _is_after(action.files[0], last):
            run.note, run.leaves = "what came since the run began is the next run's", True
            return
        try:
            _take(run, worker, action)
        except NothingForTable as found:
            blank.update({file.key: file.etag for file in listed.listing.cdc if file.key in found.keys})
            continue
        except TableBlocked as error:
            if error.code in _MOVED or listed.change != run.snapshot.change:
                _look_again(run, action, listing, error)
            raise
        if not isinstance(action, TakeBatch):
            listed = None
        if run.staging:
            pause_for(run, run.staged[-1])
            return


def _is_after(file: RawFile, last: CdcName | None) -> bool:
    """Whether the file came after the last that was there."""
    name = cdc_name(file.key)
    return last is not None and name is not None and name > last


def _look_again(run: TableRun, action: Action, before: RawListing, error: TableBlocked) -> None:
    """Sign the block with what the next run lists, and let it wait for files that are gone: that run would not miss them. Where the error
    is that they are, what is raised says so.

    Where a file was written anew since `before` was listed, the next run is to look at what is there now: the block has no plan's
    signature. If we die before it is written, nothing is known of the files that are gone, as where they went before any listing.
    """
    after = list_raw(run.s3, run.state, run.snapshot, run.context.settings.limits)
    _mark(run, after)
    gone = vanished(run.state, run.snapshot, action, before, after)
    run.awaited = {**(run.awaited or {}), **gone}
    if gone and error.code == FILE_GONE:
        raise gone_before_read(run.state, next(iter(gone.values()))) from error
    taken = action.files if isinstance(action, (TakeLoad, TakeBatch)) else ()
    etags = {file.key: file.etag for file in (*after.loads, *after.cdc)}
    if error.code in _MOVED or any(etags.get(file.key) != file.etag for file in taken):
        run.mark = ""


def _still(blank: Mapping[str, str], listing: RawListing) -> frozenset[str]:
    """Those of the files that were not written anew since."""
    return frozenset(file.key for file in listing.cdc if blank.get(file.key) == file.etag) if blank else frozenset()


def _take(run: TableRun, worker: Worker, action: Action) -> None:
    def work(change: str) -> Work:
        if run.snapshot.is_empty:
            _check_alone(run)
            _check_name(run)
        history = Snapshot()
        if run.state.keeps_history:
            history = run.history()
            if run.snapshot.history is None:
                check_free(run.s3, run.state.lake, str(run.state.path))
        return worker(Task(run.state, run.snapshot, action, change, run.context.settings, run.staging, history, run.context.clock()))

    record = run.change(work, action=type(action).__name__, **_sizes(action))
    if record.details.get(BACK):
        run.warnings.append(back_text(record.id, record.details[BACK]))


def _check_alone(run: TableRun) -> None:
    """Refuse a first change in a folder that holds objects and is shared with another item's: a reload would replace that table's files
    as another program's. An empty folder is not looked at further: what another table says of it in change records was found by `open`."""
    path, lake = run.state.path, run.state.lake
    if next(iter(list_files(run.s3, lake.bucket, lake.key)), None) is not None:
        wrong = f"if the other item is wrong, correct it, then `dmslake unblock {path.in_shell}`"
        check_alone(run.state, run.context.table.scan(), f"set out_path of {path.in_shell} to a folder of its own; {wrong}")


def _check_name(run: TableRun) -> None:
    """Refuse a first change under the catalog name of another table: a run sees no other item, and once both are loaded neither gives way.
    A catalog that doesn't answer holds up no load: its step comes after the commit, and tells."""
    database, name = run.context.settings.database, run.state.catalog_table or catalog_name(run.state.path)
    if not database:
        return
    try:
        check_owner(run.context.clients.glue, database, name, str(run.state.path))
    except TableBlocked:
        run.mark = ""  # it ends with another CatalogTable, or without that Glue table, and neither is in a plan's signature
        raise
    except (ClientError, BotoCoreError) as error:
        run.context.log.event("catalog-not-asked", table=name, error=str(error)[:500])


@dataclass(frozen=True)
class _Listed:
    """A table's raw files as they were listed, by what the item said then; snapshot: of then, with what the plan asks for. A backlog of
    batches is planned from one listing, and a small run ends without another: what came meanwhile is the next run's."""

    listing: RawListing
    at: datetime
    said: tuple[object, ...]
    snapshot: Snapshot

    @property
    def change(self) -> str:
        return self.snapshot.change

    def last(self, state: TableState) -> CdcName | None:
        """The place in the order of writing of the newest CDC file that a person does not leave out."""
        return next((cdc_name(file.key) for file in reversed(self.listing.cdc) if not state.skips(file.key)), None)

    @classmethod
    def of(cls, run: TableRun) -> _Listed:
        at = run.context.clock()
        listing = list_raw(run.s3, run.state, run.snapshot, run.context.settings.limits)
        return cls(listing, at, _said(run.state, run.snapshot), _whole(run, listing))

    def holds(self, run: TableRun) -> bool:
        """Whether a batch that was committed since is all that changed for a listing: it leaves out what an earlier cursor asks for."""
        is_young = run.context.clock() - self.at < timedelta(seconds=run.context.settings.limits.listing_seconds)
        return is_young and self.said == _said(run.state, run.snapshot) and run.state.cursor == run.snapshot.cursor


def _said(state: TableState, snapshot: Snapshot) -> tuple[object, ...]:
    return state.cdc_path, state.on_raw_files_gone, state.late_window_hours, state.has_source, asks_reload(state, snapshot)


def _whole(run: TableRun, listing: RawListing) -> Snapshot:
    """The run's snapshot. Where the plan looks back beyond it, the change records tell what it has left out: only a job reads them all."""
    if not looks_back(run.state, run.snapshot, listing):
        return run.snapshot
    return recalled(run.snapshot, fold_of(Lineage(run.s3, run.state.lake, run.snapshot.change), run.snapshot.stands_for))


def _plan(run: TableRun, listing: RawListing) -> Action:
    limits = run.context.settings.limits
    _mark(run, listing)
    if listing.expiry is not None and not listing.expiry.is_known and UNKNOWN_EXPIRY not in run.warnings:
        run.warnings.append(UNKNOWN_EXPIRY)
    # A catalog that fails is tried once per run; the files go on without it, and CatalogPending stays for the next run.
    state = replace(run.state, catalog_pending="") if run.catalog_failed else run.state
    return plan_table(state, run.snapshot, listing, run.context.clock(), limits)


def _mark(run: TableRun, listing: RawListing) -> None:
    run.mark = mark_of(run.state, listing, run.context.clock())
    run.awaited = still_awaited(run.state, run.snapshot, listing)


def _sizes(action: Action) -> dict[str, int]:
    if isinstance(action, (TakeLoad, TakeBatch)):
        return {"files": len(action.files), "bytes": sum(file.size for file in action.files)}
    return {}
