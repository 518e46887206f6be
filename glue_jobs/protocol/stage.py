"""Staged changes: made up to the record, committed or discarded by a person later, each in a run of its own.

    stage     work → attachments → record (`staged`, its parent is the head) → pause, where a load job did it
    commit    lease → converge what is unfinished → check → record (`staged_as`, a new id, the time is now) → commit → converge → catalog
    discard   lease → converge what is unfinished → check → mark → abort the uploads → lift the pause

A staged change is waiting as long as its parent is the head and its uploads are there. Its record is never the head; the change that
commits it has an id of its own, because ids sort by commit and a record's key is written once. The data files keep the names that they
were uploaded under: they begin with the staged change's id.

If we die …                                  then
  before the staged change's record          orphan uploads, which nobody sees, and perhaps attachments that no record names
  after it, before the pause                 a staged change of a table that is not paused: the next scheduled run may do the same work
                                             as a change of its own, and `commit` then says that it came between
  in commit, before the conditional update   the staged change waits on; perhaps a record nobody points to. Its uploads are never
                                             aborted here, also if the update is known to be refused
  in commit, after the conditional update    the change counts; `Publishing` tells the next run to converge, or `commit` again does
  in discard, after its mark                 the change can't be committed any more; `discard` again aborts what is left of its uploads,
                                             or the bucket's rule does, and lifts the pause
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from glue_jobs.aws.buckets import abort_days
from glue_jobs.aws.records import read_record, write_attachment
from glue_jobs.aws.uploads import abort_upload, has_parts, list_open_uploads
from glue_jobs.core.errors import CommitRefused, DmslakeError, LeaseLost, TableBlocked, UsageError
from glue_jobs.core.history_table import history_lake
from glue_jobs.core.ids import ChangeId
from glue_jobs.core.paths import S3Uri
from glue_jobs.core.record import ChangeRecord
from glue_jobs.core.staged import edited_since, is_paused_for, pause_text
from glue_jobs.core.state import TableState, said
from glue_jobs.protocol.converge import in_parallel
from glue_jobs.protocol.history import DISCARDED, is_discarded
from glue_jobs.protocol.history_table import uploads_of
from glue_jobs.protocol.lineage import HISTORY_TODO, Lineage
from glue_jobs.protocol.table_run import TableRun

MARGIN = timedelta(days=1)  # before the bucket's rule may abort an upload: time for the commit to make it visible
NAMED = 3  # changes that a refusal names
WAITING, OVERTAKEN, COMMITTED, GONE = "waiting", "overtaken", "committed", "gone"
OpenUploads = Mapping[tuple[str, str], datetime]  # (key, upload id) → when it was started


@dataclass(frozen=True)
class StagedChange:
    """A staged change and what became of it. standing: waiting; overtaken (its parent is not the head any more); committed; discarded; or
    gone (uploads are no more). between: the changes that came after its parent, the oldest first. until: when the bucket's rule may
    have aborted its uploads, less a margin; None: it waits for good.
    """

    record: ChangeRecord
    standing: str
    committed_as: str = ""
    between: tuple[str, ...] = ()
    until: datetime | None = None


def pause_for(run: TableRun, staged: ChangeRecord) -> None:
    """Pause the table, so that no scheduled run overtakes its staged change. A pause that a person set meanwhile stays."""
    state = run.state
    run.note = f"change {staged.id} is staged"
    item = run.context.table.get(str(state.path)) or {}
    paused = item.get("Paused")
    if said(item, "Paused"):
        return
    text = pause_text(staged.id, state.path.in_shell)
    _write_pause(run, paused, text, f"change {staged.id} is staged, the table not paused")


def _write_pause(run: TableRun, before: Any, pause: str, todo: str) -> bool:
    """Set or, where it is '', lift the pause; False if a person has set another one since it was read, which stays."""
    table, path = run.context.table, str(run.state.path)
    values, remove = ({"Paused": pause}, ()) if pause else ({}, ("Paused",))
    if table.write_under_fence(path, run.lease.fence, values, remove, unchanged={"Paused": before}):
        return True
    if int((table.get(path) or {}).get("Fence", 0)) != run.lease.fence:
        raise LeaseLost(f"another run took the lease of {path}", "lease-lost", todo)
    return False


# --- what became of staged changes


def read_staged(s3: Any, lake: S3Uri, change: str) -> ChangeRecord:
    """The record of a staged change; UsageError if there is no such change, or it is an ordinary one."""
    ChangeId.parse(change)
    try:
        record = read_record(s3, lake, change)
    except TableBlocked as error:
        if error.code != "record-gone":
            raise
        raise UsageError(f"no change {change} of this table was staged", "unknown-change", HISTORY_TODO) from None
    if not record.staged:
        staged = f": it commits the staged change {record.staged_as}" if record.staged_as else ""
        raise UsageError(f"change {change} is not a staged one{staged}", "not-staged", HISTORY_TODO)
    return record


def list_uploads(s3: Any, lake: S3Uri) -> dict[tuple[str, str], datetime]:
    """The open uploads in the table's folder, and in that of its history table."""
    found = [upload for folder in (lake, history_lake(lake)) for upload in list_open_uploads(s3, folder.bucket, folder.key)]
    return {(upload.key, upload.id): upload.started for upload in found}


def look_at(s3: Any, lake: S3Uri, lineage: Lineage, record: ChangeRecord, uploads: OpenUploads) -> StagedChange:
    """What became of the staged change `record`, as far as its records and the open uploads of the table tell."""
    between, lost = [], set()
    for later in lineage.back(after=record.parent):
        lost.add(later.lost)
        if later.staged_as == record.id and later.id not in lost:
            return StagedChange(record, COMMITTED, later.id)
        between.append(later.id)
    if is_discarded(s3, lake, record.id):
        return StagedChange(record, DISCARDED)
    keys = [(key, upload.id) for key, upload in uploads_of(s3, lake, record)]
    if any(key not in uploads for key in keys):
        return StagedChange(record, GONE, between=tuple(reversed(between)))
    until = _until(s3, lake, [uploads[key] for key in keys])
    return StagedChange(record, OVERTAKEN if between else WAITING, between=tuple(reversed(between)), until=until)


def _until(s3: Any, lake: S3Uri, started: list[datetime]) -> datetime | None:
    days = abort_days(s3, lake.bucket, lake.key) if started else None
    return None if days is None else min(started) + timedelta(days=days) - MARGIN


# --- commit


@dataclass
class CommitStaged:
    """What `dmslake commit` does in a table's run; afterwards it knows the change that it made, or found unfinished and finished."""

    change: str
    record: ChangeRecord | None = None
    warnings: list[str] = field(default_factory=list)

    def __call__(self, run: TableRun) -> None:
        run.may_block = False
        run.open()
        self.warnings = run.warnings
        staged = read_staged(run.s3, run.state.lake, self.change)
        if run.unfinished:
            head = Lineage(run.s3, run.state.lake, run.snapshot.change)(run.snapshot.change)
            run.finish()
            if head.staged_as == staged.id and run.snapshot.change == head.id:
                self.record = head  # an earlier call committed it
                return
        check_can_commit(run, staged)
        record = run.change_of_staged(staged)
        if run.snapshot.change != record.id:
            raise DmslakeError(
                f"change {record.id}, which committed the staged change {staged.id}, was taken back: uploads were gone before they were"
                " published; the table is as it was before",
                "staged-gone",
                f"stage it again; then `dmslake activate {run.state.path.in_shell}` if the table is still paused",
            )
        self.record = record


def check_can_commit(run: TableRun, staged: ChangeRecord) -> None:
    """Refuse a staged change that is none any more, or that was made of a table other than this one now is."""
    s3, state = run.s3, run.state
    uploads = list_uploads(s3, state.lake)
    found = look_at(s3, state.lake, Lineage(s3, state.lake, run.snapshot.change), staged, uploads)
    again = "stage it again: " + discard_todo(state, staged.id)
    if found.standing == COMMITTED:
        raise UsageError(f"the staged change {staged.id} was committed as change {found.committed_as}", "already-committed", "nothing")
    if found.standing == DISCARDED:
        raise UsageError(f"the staged change {staged.id} was discarded", "already-discarded", "stage it again")
    if found.between:
        names = ", ".join(found.between[:NAMED]) + (", …" if len(found.between) > NAMED else "")
        came = f"{len(found.between)} change(s) came between: {names}"
        raise CommitRefused(f"the staged change {staged.id} was made of another state of the table; {came}", "staged-overtaken", again)
    edited = edited_since(staged, state)
    if edited:
        name, then, now = edited[0]
        raise CommitRefused(
            f"the table's item was edited since change {staged.id} was staged: {name} was {then or '(not set)'}, now it is"
            f" {now or '(not set)'}",
            "staged-edited",
            f"set it back, or {again}",
        )
    if found.standing == GONE or not _have_parts(s3, state.lake, staged):
        raise CommitRefused(f"uploads of the staged change {staged.id} are gone or not what they were", "staged-gone", again)
    if found.until is not None and run.context.clock() > found.until:
        raise CommitRefused(
            f"the staged change {staged.id} could be committed until {found.until:%Y-%m-%d %H:%M} UTC: from then on the bucket's rule may"
            " abort its uploads any moment",
            "staged-too-old",
            again,
        )


def _have_parts(s3: Any, lake: S3Uri, staged: ChangeRecord) -> bool:
    """Whether each upload has the parts that the record says, and no others."""
    return all(in_parallel(lambda file: has_parts(s3, lake.bucket, file[0], file[1]), uploads_of(s3, lake, staged)))


def discard_todo(state: TableState, change: str) -> str:
    return f"`dmslake discard {state.path.in_shell} {change}`"


# --- discard


@dataclass
class DiscardStaged:
    """What `dmslake discard` does in a table's run. kind: of the staged change; aborted: uploads that were still open."""

    change: str
    kind: str = ""
    aborted: int = 0
    lifted: bool = False
    warnings: list[str] = field(default_factory=list)

    def __call__(self, run: TableRun) -> None:
        run.may_block = False
        run.open()
        self.warnings = run.warnings
        if run.unfinished:
            run.finish()
        s3, lake = run.s3, run.state.lake
        staged = read_staged(s3, lake, self.change)
        self.kind = staged.kind
        uploads = list_uploads(s3, lake)
        found = look_at(s3, lake, Lineage(s3, lake, run.snapshot.change), staged, uploads)
        if found.standing == COMMITTED:
            raise UsageError(
                f"the staged change {staged.id} was committed as change {found.committed_as}",
                "already-committed",
                f"`dmslake rollback {run.state.path.in_shell} --undo {found.committed_as}`",
            )
        if found.standing != DISCARDED:
            run.lease.check()
            write_attachment(s3, lake, staged.id, DISCARDED, b"")
        left = [(key, upload.id) for key, upload in uploads_of(s3, lake, staged) if (key, upload.id) in uploads]
        run.lease.check()
        in_parallel(lambda upload: abort_upload(s3, lake.bucket, *upload), left)
        self.aborted = len(left)
        self._lift(run, staged.id)

    def _lift(self, run: TableRun, change: str) -> None:
        """The pause that was set for this change; another reason stays."""
        if is_paused_for(run.state, change):
            self.lifted = _write_pause(run, run.state.item["Paused"], "", "run again when it has ended")
