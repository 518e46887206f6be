"""One table in one job run: the order of effects from lease to catalog, in one place.

    lease → converge what is unfinished → (decide → work → record → commit → converge → catalog) … → result → release

A run that is `staging` ends a change after its record: stage.py says what becomes of it.

What is decided, and how often, is the job's: intake.py takes raw files, undo.py goes back and forth, repair.py mends the folder.
What a crash between two steps leaves is written in lease.py, commit.py and converge.py; whatever it is, the next run's first
two steps put it right.
"""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial
from typing import Any, Callable

from glue_jobs.aws.buckets import check_lifecycle, check_versioning
from glue_jobs.aws.catalog_table import fence_of
from glue_jobs.aws.clients import Clients, Deadline
from glue_jobs.aws.records import read_record, write_attachment, write_record
from glue_jobs.aws.state_table import OnItem, StateTable
from glue_jobs.core.awaited import BEFORE_PLAN, awaited_after, awaited_by, waiting_for
from glue_jobs.core.errors import DmslakeError, LeaseLost, RetryLater, TableBlocked, blocked
from glue_jobs.core.history_table import history_catalog_name, history_lake, history_record, is_changed_by
from glue_jobs.core.ids import ChangeId
from glue_jobs.core.intake import blocked_by
from glue_jobs.core.paths import S3Uri, catalog_name, changes_folder
from glue_jobs.core.record import GOES_TO, ChangeRecord, Input, summary
from glue_jobs.core.settings import Settings
from glue_jobs.core.snapshot import Snapshot, apply
from glue_jobs.core.staged import as_committed, as_staged, commit_of
from glue_jobs.core.state import TableState, read_state
from glue_jobs.core.work import Work
from glue_jobs.protocol.commit import answered, commit, make_record
from glue_jobs.protocol.converge import UploadsGone, converge, in_parallel
from glue_jobs.protocol.history import WENT_BACK, check_not_behind, head_fence, read_snapshot, snapshot_of
from glue_jobs.protocol.history_table import abort_change, folders_beside
from glue_jobs.protocol.job_log import JobLog
from glue_jobs.protocol.lease import Lease
from glue_jobs.protocol.publish import given_back, undo_of_lost, update_catalog

BY_A_PERSON = (*GOES_TO, "apply", "edit", "erase")  # kinds of changes that no run makes by itself


_SETS_LOAD_DATE = frozenset({"full-load", "adopt", "lost", "rollback", "reapply"})  # what these say of the load holds


@dataclass(frozen=True)
class JobContext:
    """What a job run brings: clients, settings, clock. job: LoadInitial, LoadIncremental …; it decides which actions are done."""

    job: str
    clients: Clients
    deadline: Deadline
    table: StateTable
    settings: Settings
    log: JobLog
    clock: Callable[[], datetime]
    wait: Callable[[float], None] = time.sleep
    nonce: Callable[[], str] = lambda: secrets.token_hex(4)


@dataclass
class TableRun:
    """The run of one table under a held lease. After each commit `state` is read anew and `snapshot` moves on."""

    context: JobContext
    lease: Lease
    state: TableState
    snapshot: Snapshot = field(default_factory=Snapshot)
    changes: list[ChangeRecord] = field(default_factory=list)
    staging: bool = False  # changes are prepared up to the commit, for a person to look at
    staged: list[ChangeRecord] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    note: str = ""
    leaves: bool = False  # files to the next run, that came since this one began
    _counter: int = 0
    catalog_failed: bool = False
    mark: str = ""  # of the plan that a block is found by
    awaited: Mapping[str, Input] | None = None  # raw files that a block waits for, by the plan; None: as the item's block has them
    was_blocked: bool = False  # by what stands in the item already
    may_block: bool = True  # whether an error makes the table wait for a person; a refused wish only fails

    @property
    def s3(self) -> Any:
        return self.context.clients.s3

    def open(self) -> None:
        """Check the lake's bucket and that the item did not go back, and read the head's snapshot."""
        state = self.state
        if not state.out_path:
            raise blocked(
                "no-out-path", "the item has no out_path", where=str(state.path), todo="set out_path to s3://bucket/prefix/schema/table/"
            )
        s3, lake = self.s3, state.lake  # made before the threads start
        looks: list[Callable[[], Any]] = [
            partial(check_versioning, s3, lake.bucket),
            partial(check_lifecycle, s3, lake.bucket, *(folder.key for folder in self._folders())),
            partial(check_not_behind, s3, lake, state.head, _fence_before(state), str(state.path)),
            partial(read_snapshot, s3, lake, state.head),
        ]
        # One after the other they would be four waits for S3 instead of one. The first that fails is told, in this order.
        _, warnings, _, self.snapshot = in_parallel(lambda look: look(), looks, len(looks))
        self.warnings += warnings

    def _folders(self) -> Iterator[S3Uri]:
        """All folders whose objects the table lives by."""
        yield from (self.state.lake, changes_folder(self.state.lake))
        if self.state.keeps_history:
            yield from (history_lake(self.state.lake), changes_folder(history_lake(self.state.lake)))

    @property
    def unfinished(self) -> bool:
        """Whether a publish or catalog step waits. A catalog that failed is tried once per run: the rest goes on without it."""
        return bool(self.state.publishing or (self.state.catalog_pending and not self.catalog_failed))

    def change(self, make: Callable[[str], Work], **facts: Any) -> ChangeRecord:
        """One change: work, record, commit, converge, catalog; where the run is staging, work and record only.

        make: the work for a new change id; facts: of it, for the log.
        """
        started, before = time.monotonic(), self.snapshot
        change = self._next_id()
        self.context.log.event("work", change=change, **facts)
        work = make(change)
        work = replace(work, details={**work.details, "seconds": round(time.monotonic() - started, 3)})
        self.lease.check()
        if self.staging:
            return self._stage(work, change)
        record = self._commit(work, change)
        # Going back or forth may change columns and layout as no single change does: then every partition is looked at.
        reshaped = (before.schema, before.partitioning) != (self.snapshot.schema, self.snapshot.partitioning)
        self._publish(record, redo=False, everything=work.kind in GOES_TO and reshaped)
        self.context.log.event("committed", seconds=round(time.monotonic() - started, 3), **summary(record))
        return record

    def wished(self, make: Callable[[str], Work], **facts: Any) -> ChangeRecord:
        """A change that a person asked for and no run makes by itself: RetryLater (uploads-gone) where it had to be taken back."""
        record = self.change(make, **facts)
        if not self.staging and self.snapshot.change != record.id:
            raise RetryLater(
                f"the uploads of the {record.kind} {record.id} of {self.state.path} were gone before it was published; it was taken back",
                "uploads-gone",
                "run it again: the table is as it was",
            )
        return record

    def _next_id(self) -> str:
        self._counter += 1
        return str(ChangeId(self.lease.fence, self._counter, self.context.nonce()))

    def _stage(self, work: Work, change: str) -> ChangeRecord:
        """Keep the change for a person to look at: its uploads wait, nobody reads its record, the table stays as it is."""
        record = as_staged(self._record(work, change), work, self.state)
        self._attach(work, record)
        write_record(self.s3, self.state.lake, record)
        self.staged.append(record)
        self.context.log.event("staged", **summary(record))
        return record

    def change_of_staged(self, staged: ChangeRecord) -> ChangeRecord:
        """The change that commits a staged one, whose uploads were found to be there: record, commit, converge, catalog."""
        values, requests = commit_of(staged, self.state)
        change, now = self._next_id(), self.context.clock()
        before = answered(self.state, self.snapshot, (*requests, *values))
        record = as_committed(staged, change, now=now, run_id=self.context.settings.run_id, before=before)
        self._land(record, {**self._values(record), **values}, requests)
        self._publish(record, redo=False)
        self.context.log.event("committed", staged_as=staged.id, **summary(record))
        return record

    def _commit(self, work: Work, change: str, given_back: Mapping[str, Any] | None = None) -> ChangeRecord:
        record = self._record(work, change)
        self._attach(work, record)
        return self._land(record, {**self._values(record), **work.values, **(given_back or {})}, work.requests)

    def _record(self, work: Work, change: str) -> ChangeRecord:
        now = self.context.clock()
        hours = self.state.window_hours(self.context.settings.limits.late_window_hours)
        return make_record(self.state, self.snapshot, work, change, now=now, run_id=self.context.settings.run_id, window_hours=hours)

    def _attach(self, work: Work, record: ChangeRecord) -> None:
        """Write what stands beside the record, before it."""
        for ending, data in work.attachments.items():
            write_attachment(self.s3, self.state.lake, record.id, ending, data)
        if work.history is not None:
            beside = history_record(record, work.history, self.history())
            write_record(self.s3, S3Uri.folder(beside.lake), beside)

    def history(self) -> Snapshot:
        """The snapshot of the history table that belongs to the head, the empty one where there is none."""
        at = self.snapshot.history
        return read_snapshot(self.s3, history_lake(self.state.lake), at.change) if at is not None else Snapshot()

    def _land(self, record: ChangeRecord, values: Mapping[str, Any], requests: tuple[str, ...]) -> ChangeRecord:
        """Commit the record, and go on from its snapshot. requests: attributes that the commit removes."""
        is_by_hand = self.state.blocked is not None and self.state.blocked.is_by_hand
        stays_blocked = is_by_hand or awaited_after(self._awaited(), record)
        remove = (*(() if stays_blocked else ("Blocked",)), *requests)
        database = bool(self.context.settings.database)  # without one the run could only leave the step to others, or throw it away
        after = commit(self.s3, self.context.table, self.lease, self.state, record, values, remove, has_catalog_step=database)
        self.snapshot = apply(self.snapshot, record)
        self.changes.append(record)
        self._go_on_from(after)
        return record

    def _awaited(self) -> Mapping[str, Input]:
        return awaited_by(self.state, self.snapshot) if self.awaited is None else self.awaited

    def _values(self, record: ChangeRecord) -> Mapping[str, Any]:
        """The attributes that the commit sets beside Head: the cursor and load date go with the files, in the same write."""
        values: dict[str, Any] = {"CatalogTable": self.state.catalog_table or catalog_name(self.state.path)}
        if record.inputs or record.cursor_after != self.snapshot.cursor:  # else a cursor that a person moved stays for the next batch
            values["LastIncrementalFile"] = record.cursor_after or f"{self.state.path}0.parquet"
        # A date that a person set back asks for a load until there was one.
        if record.last_full_load and (record.kind in _SETS_LOAD_DATE or record.last_full_load != self.snapshot.last_full_load):
            values["LastFullLoadDate"] = record.last_full_load
        return values

    def _go_on_from(self, item: Mapping[str, Any]) -> None:
        """The item as our own write under the fence left it; read, where its answer was lost."""
        if item:
            self.state = read_state(item)
        else:
            self._reread()

    def _reread(self) -> None:
        """The item as it is now. Raises LeaseLost if another run took the lease: what we have read before is no longer what is true."""
        self.state = read_state(self.context.table.get(str(self.state.path)) or {})
        if self.state.fence != self.lease.fence:
            raise self._lease_lost()

    def _lease_lost(self) -> LeaseLost:
        return LeaseLost(f"another run took the lease of {self.state.path}", "lease-lost", "nothing to do: it goes on from here")

    def finish(self) -> None:
        """Do again what an earlier run may have left half done. A lost change is taken back."""
        head = read_record(self.s3, self.state.lake, self.state.head)
        self.context.log.event("finish", change=head.id, publishing=self.state.publishing, catalog=self.state.catalog_pending)
        self._publish(head, redo=bool(self.state.publishing), everything=True)

    def _publish(self, record: ChangeRecord, *, redo: bool, everything: bool = False) -> None:
        if self.state.publishing:
            try:
                converge(self.s3, self.state.lake, record, redo=redo, beside=folders_beside(self.s3, self.state.lake, record))
            except UploadsGone as error:
                self._take_back(record, error)
                return
            self.lease.check()
            self._clear(self.context.table.clear_publishing, self.state.publishing)
        self._catalog(record, everything)

    def _clear(self, clear: Callable[[str, int, str, OnItem], bool], change: str) -> None:
        """Say that a step is done. change: as the item has it, which need not be the head if a person saved an older form; the step
        was done for the head, and that is all there is to do."""
        if not change:
            return
        after: dict[str, Any] = {}
        if not clear(str(self.state.path), self.lease.fence, change, after.update):
            raise self._lease_lost()
        self._go_on_from(after)

    def _take_back(self, lost: ChangeRecord, error: UploadsGone) -> None:
        self.context.log.event("uploads-gone", change=lost.id, message=error.message)
        before = read_snapshot(self.s3, self.state.lake, lost.parent)
        work = undo_of_lost(self.s3, self.state, lost, before)
        abort_change(self.s3, self.state.lake, lost)
        self.snapshot = snapshot_of(self.s3, self.state.lake, lost)
        record = self._commit(work, self._next_id(), given_back(self.state, lost))
        ends = ": do it again" if lost.staged_as or lost.kind in BY_A_PERSON else " and is done again"
        self.warnings.append(f"the uploads of change {lost.id} were gone before they were published; it was taken back{ends}")
        self._publish(record, redo=True, everything=True)

    def pause(self, reason: str) -> None:
        """Pause the table. A pause that a person set or lifted since the item was read stays as it is."""
        seen = {"Paused": self.state.item.get("Paused")}
        self.context.table.write_under_fence(str(self.state.path), self.lease.fence, {"Paused": reason}, unchanged=seen)
        self._reread()

    def redo_catalog(self) -> None:
        """The catalog step once more, with every partition."""
        self._catalog(read_record(self.s3, self.state.lake, self.state.head, with_checkpoint=False), everything=True)
        self._reread()

    def _catalog(self, record: ChangeRecord, everything: bool) -> None:
        """The catalog step. A failure doesn't undo the change: CatalogPending stays, and the next run does it again."""
        if not self.context.settings.database:
            self._leave_catalog()
            return
        if not self.snapshot.is_empty:  # an empty table keeps the columns it had
            # Also what comes back may be missing there: a Glue table that was made anew meanwhile has the partitions of that time's files.
            files = self.snapshot.files.values() if everything or self.catalog_failed else record.added
            partitions = {file.partition for file in files}
            name = self.state.catalog_table or catalog_name(self.state.path)
            # Partitions keep columns of their own. A load may have any columns, and one before which the table was emptied is no first.
            words = ("columns_added", "columns_widened", "renamed")
            changed = record.kind in ("full-load", "adopt", "repartition") or any(word in record.details for word in words)
            refresh = everything or self.catalog_failed or changed
            try:
                self._update_catalog(name, self.state, self.snapshot, partitions, refresh)
                self._history_catalog(name, record, refresh, everything or self.catalog_failed)
            except LeaseLost:
                raise
            except Exception as error:  # noqa: BLE001 - whatever it is, the change stands and the report says so
                self.warnings.append(f"catalog table {name} was not updated ({type(error).__name__}: {error}); the next run tries again")
                self.catalog_failed = True
                self.context.log.event("catalog-failed", change=record.id, error=str(error)[:500])
                return
        self._clear(self.context.table.clear_catalog_pending, self.state.catalog_pending)

    def _leave_catalog(self) -> None:
        """Leave an unfinished catalog step to a run that knows the database."""
        if self.state.catalog_pending and not self.catalog_failed:
            what = f"the catalog step of change {self.state.catalog_pending} is left to a run that is given the database"
            self.warnings.append(f"{what}; where the table is to be in no catalog, remove the attribute CatalogPending from its item")
            self.catalog_failed = True

    def _update_catalog(self, name: str, state: TableState, snapshot: Snapshot, partitions: set[Any], refresh: bool) -> None:
        """`update_catalog` under our fence. Where the Glue table has a greater one and the item still has ours, the item has forgotten
        leases (it was lost, or restored from a backup): then ours is raised above the Glue table's, or nobody would ever write it again.
        """
        glue, database = self.context.clients.glue, self.context.settings.database
        if update_catalog(glue, database, name, state, snapshot, partitions, self.lease.fence, refresh):
            return
        found = fence_of(glue, database, name)
        if not self.lease.move_on(found):
            raise self._lease_lost()
        self.state = replace(self.state, fence=self.lease.fence)
        self.context.log.event("fence-raised", table=name, found=found, fence=self.lease.fence)
        if not update_catalog(glue, database, name, state, snapshot, partitions, self.lease.fence, refresh):
            raise RetryLater(f"the Glue table {database}.{name} was written by others all the time", "catalog-busy", "run again")

    def _history_catalog(self, name: str, record: ChangeRecord, refresh: bool, everything: bool) -> None:
        """The same for the history table, where the change touched it or all is to be looked at."""
        changed = is_changed_by(record)
        if self.snapshot.history is None or not (changed or everything):
            return
        history = self.history()
        refresh = refresh or record.kind in ("history", *GOES_TO)  # columns that it did not have, or has no more, while it was not kept
        lake = history_lake(self.state.lake)
        files = history.files.values() if everything else read_record(self.s3, lake, changed, with_checkpoint=False).added
        partitions = {file.partition for file in files}
        self._update_catalog(history_catalog_name(name), replace(self.state, out_path=str(lake)), history, partitions, refresh)

    def blocked_value(self, error: TableBlocked) -> str:
        """The attribute Blocked for an error of this run.

        What was found before there was a plan has a signature that no plan has: it is looked at anew by every run, since neither
        item nor raw files need to change for it to be gone.
        """
        by = waiting_for(blocked_by(error, self.mark or BEFORE_PLAN), self._awaited())
        return json.dumps({"code": by.code, "message": by.message[:900], "todo": by.todo, "signature": by.signature})


def _fence_before(state: TableState) -> int | None:
    """The fence that no record after the head may be above. Once such a record was found the item's own says nothing more: the runs that
    are refused since have raised it."""
    if state.head and state.blocked is not None and state.blocked.code == WENT_BACK:
        return min(state.fence or 0, head_fence(state.head))
    return state.fence


def describe(error: DmslakeError) -> dict[str, str]:
    """An error for LastRun and reports, at most 1 KB of message."""
    return {"code": error.code, "message": error.message[:1000], "todo": error.todo[:500]}
