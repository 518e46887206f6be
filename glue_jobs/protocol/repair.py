"""repair: the folder and the catalog made what the head's snapshot says, by exact lists out of the records. Others' objects stay.

What is done, in this order, and each of it only if it is needed:
  finish      a publish or catalog step that a run left
  complete    uploads of the head's files that never became visible, whichever change made them
  restore     the head's files that are hidden or overwritten come back as copies under new keys, as one change of kind `repair`
  hide        our files that must not be visible: superseded by a change on the lineage, or of a change that never landed
  catalog     table, columns and partitions
As in converge nothing is hidden before all that should be visible is. Where a file's bytes are gone, the repair ends before `restore`:
a visible stray may be the last that holds its rows. Dying in between leaves a table that is better than before; run it again.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from glue_jobs.aws.erased import read_erased
from glue_jobs.aws.objects import hide
from glue_jobs.aws.records import read_record
from glue_jobs.aws.uploads import list_open_uploads
from glue_jobs.aws.versions import versions_of
from glue_jobs.core.erasure import Erased
from glue_jobs.core.errors import DmslakeError
from glue_jobs.core.history_table import history_lake
from glue_jobs.core.paths import S3Uri, TablePath
from glue_jobs.core.record import ChangeRecord, DataFile
from glue_jobs.core.snapshot import Snapshot
from glue_jobs.core.state import TableState, read_state
from glue_jobs.core.verify import Folder, change_in_name, compare_folder
from glue_jobs.core.work import HistoryWork, Work
from glue_jobs.protocol.converge import Folder as Published
from glue_jobs.protocol.converge import UploadsGone, converge
from glue_jobs.protocol.history import check_not_behind, snapshot_of
from glue_jobs.protocol.job import run_here
from glue_jobs.protocol.restore import Source, aborted_on_error, copy_files, find_sources
from glue_jobs.protocol.table_run import JobContext, TableRun
from glue_jobs.protocol.verify import Place, of_catalog
from glue_jobs.protocol.verify_folder import GONE, HistoryLook, in_publish, list_folder, look_at_history, sort_strays

NAMED = 3  # files that an error names


@dataclass(frozen=True)
class RepairPlan:
    """What a repair does. finish: what is unfinished; complete: files of the head that were never made visible; hide: path → why;
    restore: files of the head that come back; gone: those that can't; catalog: codes of what differs there.
    """

    finish: str = ""
    complete: tuple[DataFile, ...] = ()
    hide: dict[str, str] = field(default_factory=dict)
    restore: tuple[DataFile, ...] = ()
    sources: dict[str, Source] = field(default_factory=dict)
    gone: tuple[DataFile, ...] = ()
    catalog: tuple[str, ...] = ()
    history: HistoryRepair | None = None

    @property
    def is_nothing(self) -> bool:
        own = self.finish or self.complete or self.hide or self.restore or self.gone or self.catalog
        return not own and (self.history is None or self.history.plan.is_nothing)

    @property
    def cannot(self) -> tuple[DataFile, ...]:
        """The files that can't be restored, the history table's among them."""
        return (*self.gone, *(self.history.plan.gone if self.history else ()))

    def steps(self) -> list[str]:
        """The plan for people, in the order in which it is done."""
        steps = [f"finish {self.finish}"] if self.finish else []
        plans = [(self, ""), *([(self.history.plan, " of the history table")] if self.history else [])]
        for plan, whose in plans:
            steps += [f"complete the upload of {file.path}{whose}" for file in plan.complete]
        if self.cannot:
            return [
                *steps,
                *(f"can't restore {file.path}{whose}: its data version is no more" for plan, whose in plans for file in plan.gone),
            ]
        for plan, whose in plans:
            steps += [f"restore {file.path}{whose} ({file.rows} rows, {file.size_bytes} bytes)" for file in plan.restore]
            steps += [f"hide {path}{whose} ({why})" for path, why in plan.hide.items()]
        codes = [*self.catalog, *(self.history.plan.catalog if self.history else ())]
        return [*steps, *([f"write the catalog ({', '.join(codes)})"] if codes else [])]


@dataclass(frozen=True)
class HistoryRepair:
    """What a repair does to the history table."""

    look: HistoryLook
    plan: RepairPlan


def plan_repair(place: Place, state: TableState, head: ChangeRecord, snapshot: Snapshot) -> RepairPlan:
    """What a repair would do for the table as it stands. Reads only."""
    check_not_behind(place.s3, state.lake, state.head, state.fence, str(state.path))
    # The records of erases are the table's own, whichever folder their versions are in.
    erased = functools.cache(lambda: read_erased(place.s3, state.lake, snapshot.erases))
    plan = _plan_folder(place, state, head, snapshot, compare_folder(snapshot, list_folder(place.s3, state.lake)), erased)
    if snapshot.history is None:
        return plan
    look = look_at_history(place.s3, state, head, snapshot.history)
    beside = _plan_folder(place, look.state, look.record, look.snapshot, look.folder, erased)
    return replace(plan, history=HistoryRepair(look, replace(beside, finish="")))


def _plan_folder(
    place: Place, state: TableState, head: ChangeRecord, snapshot: Snapshot, folder: Folder, erased: Callable[[], Erased]
) -> RepairPlan:
    s3, lake = place.s3, state.lake
    awaited = in_publish(state, head)
    missing = [file for file in folder.missing if file.path not in awaited]
    complete = _never_visible(s3, lake, missing)
    waiting = {file.path for file in complete}
    wanted = [file for file in missing if file.path not in waiting] + [file for file, _ in folder.overwritten if file.path not in awaited]
    sources, gone = find_sources(s3, lake, wanted, erased()) if wanted else ({}, ())
    unknown = [path for path in folder.unknown if path not in awaited]
    return RepairPlan(
        finish=_unfinished(place, state),
        complete=complete,
        hide=dict(sort_strays(s3, lake, state.head, unknown).ours) if unknown else {},
        restore=tuple(wanted),
        sources=sources,
        gone=gone,
        catalog=_catalog_codes(place, state, snapshot),
    )


def _unfinished(place: Place, state: TableState) -> str:
    if state.publishing:
        return f"the publish of {state.publishing}"
    return "the catalog step" if state.catalog_pending and place.database else ""


def _never_visible(s3: Any, lake: S3Uri, missing: Sequence[DataFile]) -> tuple[DataFile, ...]:
    """The missing files that were never visible and whose upload is still open, as the changes that wrote them record them."""
    if not missing:
        return ()
    still_open = {upload.key for upload in list_open_uploads(s3, lake.bucket, lake.key)}
    without = {file.path for file in missing if lake.key + file.path in still_open}
    uploaded: dict[str, DataFile] = {}
    for change in sorted({change_in_name(path) for path in without} - {""}):
        added = read_record(s3, lake, change, with_checkpoint=False).added
        uploaded.update({file.path: file for file in added if file.upload is not None and file.path in without})
    seen = versions_of(s3, lake.bucket, [lake.key + path for path in uploaded])
    return tuple(file for path, file in uploaded.items() if not (seen[lake.key + path].data or seen[lake.key + path].marked))


def _catalog_codes(place: Place, state: TableState, snapshot: Snapshot) -> tuple[str, ...]:
    if not place.database or state.publishing or state.catalog_pending:
        return ()
    return tuple(finding.code for finding in of_catalog(place, state, snapshot) if finding.is_difference)


@dataclass
class Repair:
    """What the command does in a table's run; afterwards it knows the plan that it carried out."""

    plan: RepairPlan = RepairPlan()
    finished: str = ""
    change: str = ""
    warnings: list[str] = field(default_factory=list)

    def __call__(self, run: TableRun) -> None:
        run.may_block = False
        run.open()
        if not run.state.head:
            run.note = "nothing to do: the table was never loaded"
            return
        if run.unfinished:
            publishing, pending = run.state.publishing, run.state.catalog_pending
            run.finish()
            self.finished = publishing or ("" if run.catalog_failed else pending)
        self.warnings = run.warnings
        head = read_record(run.s3, run.state.lake, run.state.head)
        self.plan = plan_repair(_place(run), run.state, head, run.snapshot)
        run.context.log.event("plan", steps=self.plan.steps())
        self._carry_out(run, head)

    def _carry_out(self, run: TableRun, head: ChangeRecord) -> None:
        plan = self.plan
        beside = plan.history
        if plan.complete or (beside and beside.plan.complete):
            plan = self.plan = self._complete(run, head)
            beside = plan.history
        if plan.cannot:
            raise _gone(run.state.lake, plan)
        if plan.restore or (beside and beside.plan.restore):
            self.change = run.wished(lambda change: _work(run, plan, change), action="repair").id
        for lake, one in ((run.state.lake, plan), *([(beside.look.state.lake, beside.plan)] if beside else [])):
            if one.hide:
                run.lease.check()
                hide(run.s3, lake.bucket, [lake.key + path for path in one.hide])
        if plan.catalog or (beside and beside.plan.catalog):
            run.redo_catalog()

    def _complete(self, run: TableRun, head: ChangeRecord) -> RepairPlan:
        """Converge narrowed to the uploads that are wanted; those that are gone are found to have no source."""
        run.lease.check()
        beside = self.plan.history
        folders = [Published(beside.look.state.lake, _narrowed(beside.look.record, beside.plan))] if beside else []
        try:
            converge(run.s3, run.state.lake, _narrowed(head, self.plan), redo=True, beside=folders)
        except UploadsGone:
            left = plan_repair(_place(run), run.state, head, run.snapshot)
            history = replace(left.history, plan=_given_up(left.history.plan)) if left.history else None
            return replace(_given_up(left), history=history)
        return self.plan


def _narrowed(record: ChangeRecord, plan: RepairPlan) -> ChangeRecord:
    """The record with the uploads that the plan completes, whichever change's they are, and nothing to hide."""
    return replace(record, added=plan.complete, superseded=())


def _given_up(plan: RepairPlan) -> RepairPlan:
    """The plan after uploads were found to be gone: what still waits for one has no source."""
    return replace(plan, complete=(), gone=(*plan.gone, *plan.complete))


def _place(run: TableRun) -> Place:
    context = run.context
    database = context.settings.database
    return Place(run.s3, context.clients.glue if database else None, context.table, database)


def _work(run: TableRun, plan: RepairPlan, change: str) -> Work:
    """The change: the head's snapshot with copies in place of what is not there. All else stays, what a person has asked for too."""
    snapshot = run.snapshot
    kept = {name: run.state.item[name] for name in ("LastFullLoadDate",) if name in run.state.item}
    added = copy_files(run.s3, run.state.lake, plan.restore, plan.sources, change)
    with aborted_on_error(run.s3, run.state.lake, added):
        history = _history_work(run, plan.history, change) if plan.history else None
    return Work(
        kind="repair",
        target=snapshot.stands_for,
        like=snapshot,
        added=added,
        superseded=tuple(sorted(file.path for file in plan.restore)),
        history=history,
        history_at=snapshot.history,
        schema=snapshot.schema,
        primary_key=snapshot.primary_key,
        partitioning=snapshot.partitioning,
        generation=snapshot.generation,
        timestamp_column=snapshot.timestamp_column,
        cursor_after=snapshot.cursor,
        last_full_load=snapshot.last_full_load,
        values=kept,
        details={"state_of": snapshot.change, "bytes_copied": sum(file.size_bytes for file in plan.restore)},
    )


def _history_work(run: TableRun, repair: HistoryRepair, change: str) -> HistoryWork | None:
    """The history table's snapshot with copies in place of what is not there; None where all is there."""
    plan, snapshot, at = repair.plan, repair.look.snapshot, run.snapshot.history
    if not plan.restore:
        return None
    return HistoryWork(
        schema=snapshot.schema,
        primary_key=snapshot.primary_key,
        added=copy_files(run.s3, repair.look.state.lake, plan.restore, plan.sources, change),
        superseded=tuple(sorted(file.path for file in plan.restore)),
        target=snapshot.stands_for,
        is_stale=at is not None and at.is_stale,
    )


def _gone(lake: S3Uri, plan: RepairPlan) -> DmslakeError:
    places = [str(lake.join(file.path)) for file in plan.gone]
    places += [str(history_lake(lake).join(file.path)) for file in (plan.history.plan.gone if plan.history else ())]
    names = ", ".join(places[:NAMED])
    more = f" and {len(places) - NAMED} more" if len(places) > NAMED else ""
    return DmslakeError(f"{len(places)} data file(s) can't be restored, so none was: {names}{more}", "version-gone", GONE)


@dataclass(frozen=True)
class Repaired:
    """How a repair ended. code: the exit code of its run; steps: what was done, or would be; change: the change it made, if any."""

    code: int = 0
    steps: tuple[str, ...] = ()
    change: str = ""
    warnings: tuple[str, ...] = ()
    error: DmslakeError | None = None


def preview_repair(place: Place, path: TablePath) -> Repaired:
    """What a repair would do now; reads only, without a lease."""
    state = read_state(place.table.get(str(path)) or {"path": str(path)})
    if not state.head:
        return Repaired()
    head = read_record(place.s3, state.lake, state.head)
    plan = plan_repair(place, state, head, snapshot_of(place.s3, state.lake, head))
    return Repaired(steps=tuple(plan.steps()), error=_gone(state.lake, plan) if plan.cannot else None)


def repair_table(context: JobContext, path: TablePath) -> Repaired:
    """Repair one table in this process, under its lease; its result goes to LastRun as that of any run."""
    act = Repair()
    ended = run_here(context, path, act)
    steps = [f"finished change {act.finished}"] if act.finished else []
    steps += act.plan.steps()
    return Repaired(ended.code, tuple(steps), act.change, tuple(act.warnings), ended.error)
