"""The commit: write the change record, then the one conditional update after which the change counts.

If we die …                      then
  before the record              orphan uploads, which nobody sees
  after the record               a record nobody points to
  after the conditional update   the change counts; `Publishing` tells the next run to converge
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any

import botocore.exceptions

import glue_jobs
from glue_jobs.aws.records import write_record
from glue_jobs.aws.state_table import Commit, StateTable
from glue_jobs.core.errors import CommitRefused, LeaseLost
from glue_jobs.core.history_table import history_after
from glue_jobs.core.raw_names import cdc_name
from glue_jobs.core.record import ChangeRecord
from glue_jobs.core.snapshot import CHECKPOINT_ALWAYS_FILES, TOTALS, Snapshot, apply, checkpoint_due, checkpoint_of, totals_of
from glue_jobs.core.state import PERSON_ATTRIBUTES, TableState
from glue_jobs.core.work import Work
from glue_jobs.protocol.history import is_landed
from glue_jobs.protocol.history_table import abort_change
from glue_jobs.protocol.lease import Lease

BESIDE = ("Blocked", "CatalogTable")  # attributes of ours that a person may set too: the commit writes over what was read only


def make_record(
    state: TableState, parent: Snapshot, work: Work, change: str, *, now: datetime, run_id: str, window_hours: float
) -> ChangeRecord:
    """The record of `work` on top of `parent`. A batch moves the cursor on, from where the item has it: only a person moves it back."""
    before, after_batch = cdc_name(state.cursor), cdc_name(work.cursor_after)
    if work.kind == "incremental" and before is not None and (after_batch is None or after_batch < before):
        raise AssertionError(f"a batch would move the cursor back from {state.cursor} to {work.cursor_after or 'none'}")
    files = len(parent.files) - len(work.superseded) + len(work.added)
    record = ChangeRecord(
        id=change,
        parent=parent.change,
        kind=work.kind,
        table=str(state.path),
        lake=str(state.lake),
        time=now.strftime("%Y-%m-%dT%H:%M:%S.%fZ"),
        run_id=run_id,
        program=glue_jobs.__version__,
        generation=work.generation,
        inputs=work.inputs,
        context=work.context,
        skipped=work.skipped,
        counts=work.counts,
        added=work.added,
        superseded=work.superseded,
        schema=work.schema,
        primary_key=work.primary_key,
        partitioning=work.partitioning,
        timestamp_column=work.timestamp_column,
        cursor_before=state.cursor,
        cursor_after=work.cursor_after,
        last_full_load=work.last_full_load,
        chain=parent.chain,
        lost=work.lost,
        target=work.target,
        given=work.given,
        erased=work.erased,
        erased_keys=work.erased_keys,
        erases=_erases(parent, work, change),
        history=history_after(parent, work, change),
        details={**work.details, **answered(state, parent, (*work.requests, *work.values))},
    )
    after = apply(parent, record)
    if work.like is not None:
        like = work.like
        after = replace(after, applied=like.applied, skipped=like.skipped, known_from=like.known_from, awaited=like.awaited)
    rows = replace(record.counts, table_rows=after.rows)
    superseded = (*record.superseded, *work.taken_over)
    # What is awaited anew may come from inputs that the stored parent has left out.
    special = work.like is not None or bool(work.taken_over) or not parent.change or not parent.awaited.keys() >= after.awaited.keys()
    due = special or checkpoint_due(parent, files)
    checkpoint = checkpoint_of(after, window_hours) if due else None
    details = {**record.details, TOTALS: totals_of(after)} if files > CHECKPOINT_ALWAYS_FILES else record.details
    return replace(record, counts=rows, superseded=superseded, checkpoint=checkpoint, details=details)


def _erases(parent: Snapshot, work: Work, change: str) -> tuple[str, ...]:
    """The erases up to the change. One that was taken back before it was published never was."""
    before = tuple(erase for erase in parent.erases if erase != work.lost)
    return (*before, change) if work.erased_keys is not None else before


def answered(state: TableState, parent: Snapshot, overwritten: Iterable[str]) -> dict[str, Any]:
    """The detail `before`: what a person had set that this commit overwrites, so that a lost change can give it back.

    overwritten: the attributes that the change itself sets or removes.
    """
    names = [*overwritten]
    if state.cursor != parent.cursor:
        names.append("LastIncrementalFile")
    if parent.last_full_load and state.last_full_load_text < parent.last_full_load:
        names.append("LastFullLoadDate")
    before = {name: str(state.item[name]) for name in dict.fromkeys(names) if state.item.get(name) is not None}
    return {"before": before} if before else {}


def commit(
    s3: Any,
    table: StateTable,
    lease: Lease,
    state: TableState,
    record: ChangeRecord,
    values: Mapping[str, Any],
    remove: tuple[str, ...],
    *,
    has_catalog_step: bool = True,
) -> Mapping[str, Any]:
    """Write the record and move Head to it; returns only if the change landed, with the item as the commit left it, empty where the answer
    was lost. What stands beside the record is written before.

    values, remove: attributes set and removed by the same update. Raises CommitRefused, after aborting the uploads, if the
    change is known not to have landed (those of a staged change stay: it can still be committed later); LeaseLost if that can't be
    known because another run has the fence.
    """
    write_record(s3, state.lake, record)
    request = Commit(
        fence=lease.fence,
        parent=record.parent,
        change=record.id,
        publishing_expected=state.publishing,
        unchanged={name: state.item.get(name) for name in (*PERSON_ATTRIBUTES, *BESIDE)},
        values=values,
        remove=remove,
        has_catalog_step=has_catalog_step,
    )
    after: dict[str, Any] = {}
    try:
        if table.commit(record.table, request, after.update):
            return after
    except (botocore.exceptions.BotoCoreError, botocore.exceptions.ClientError):
        pass  # the answer was lost or an error: it may have landed, so read back
    # Also a plain refusal is read back: botocore may have sent the update twice, and the first one may have landed.
    if not _landed(s3, table, lease, state, record):
        if not record.staged_as:
            abort_change(s3, state.lake, record)
        raise CommitRefused(
            f"change {record.id} of {record.table} was not committed: the item was edited or another run committed meanwhile",
            "commit-refused",
            "run again; nothing was changed",
        )
    return {}


def _landed(s3: Any, table: StateTable, lease: Lease, state: TableState, record: ChangeRecord) -> bool:
    """Whether the change is the head or an ancestor of it.

    'No' is known only once the fence is no longer the one the update was sent with: a delayed request could still land.
    """
    sent_with = lease.fence
    for _ in range(2):
        item = table.get(record.table) or {}
        if is_landed(s3, state.lake, str(item.get("Head") or ""), record.id):
            if int(item.get("Fence", 0)) != lease.fence:
                raise LeaseLost(f"change {record.id} landed, and another run took over after it", "lease-lost", "nothing to do")
            return True
        if int(item.get("Fence", 0)) != sent_with:
            return False
        lease.move_on()
    return False
