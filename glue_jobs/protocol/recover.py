"""recover: Head and Fence of a table whose item went back (deleted, restored, overwritten), rebuilt from its change records.

If we die between the lease and the write, the item is as it was, with a greater fence; run it again.
"""

from __future__ import annotations

import secrets
import time
from dataclasses import dataclass, replace
from typing import Any

from glue_jobs.aws.clients import Clients, Deadline
from glue_jobs.aws.records import read_record
from glue_jobs.aws.state_table import StateTable
from glue_jobs.core.errors import LeaseLost, UsageError, blocked
from glue_jobs.core.limits import Limits
from glue_jobs.core.partitioning import partition_key_text
from glue_jobs.core.paths import TablePath
from glue_jobs.core.record import ChangeRecord
from glue_jobs.core.state import TableState, read_state
from glue_jobs.protocol.history import WENT_BACK, check_own, greatest_fence, last_begun, last_published, snapshot_of
from glue_jobs.protocol.lease import take_lease


@dataclass(frozen=True)
class Recovered:
    """What the item is set to. changed: whether that differs from what it has. lacking: the change's keys that the item does not name.
    paused: why the table waits for a person from then on, '' where it goes on as the item says."""

    path: str
    head_before: str
    head: str
    fence_before: int
    fence: int
    cursor: str
    last_full_load: str
    changed: bool
    lacking: tuple[tuple[str, str], ...] = ()
    paused: str = ""


def recover(clients: Clients, table: StateTable, path: TablePath, dry_run: bool, limits: Limits | None = None) -> Recovered:
    """Set Head, Fence, cursor and load date of `path` to those of its last published change; with dry_run only say so.

    Publishing is set too, so that the next run converges. Other attributes, a person's among them, stay as they are; but an item that was
    made anew gets the keys of the change, and one that was rolled back is paused, as the rollback had done. Records of another table are
    refused, whose item has their change as its own head.
    """
    state = _read(table, path)
    found = _find(clients.s3, state)
    if dry_run or not found.changed:
        return found
    seconds = (limits or Limits()).lease_seconds
    deadline = Deadline()
    item = table.get(str(path)) or {}
    lease = take_lease(table, deadline, item, secrets.token_hex(8), seconds, lambda: found.fence, time.sleep)
    try:
        # Once more: somebody else may have recovered the table while we looked, and a run gone on from there.
        found = _find(clients.s3, replace(read_state(lease.item), fence=read_state(item).fence))
        if not found.changed:
            return found
        values: dict[str, Any] = {"Head": found.head, "Publishing": found.head, "CatalogPending": found.head}
        values["LastIncrementalFile"] = found.cursor or f"{path}0.parquet"
        values.update({"LastFullLoadDate": found.last_full_load} if found.last_full_load else {})
        values.update(found.lacking)
        values.update({"Paused": found.paused} if found.paused else {})
        if not lease.rewrite(found.fence, values, ("Blocked",)):
            raise LeaseLost(f"another run took the lease of {path}", "lease-lost", "run again when it has ended")
    finally:
        lease.release()
    return found


def _read(table: StateTable, path: TablePath) -> TableState:
    item = table.get(str(path))
    if item is None:
        raise UsageError(f"no item for {path} in {table.name}", "unknown-table", "`dmslake tables` makes the missing items")
    state = read_state(item)
    if not state.out_path:
        raise blocked("no-out-path", "the item has no out_path", where=str(path), todo="set out_path to s3://bucket/prefix/schema/table/")
    return state


def _find(s3: Any, state: TableState) -> Recovered:
    known = greatest_fence(s3, state.lake)
    went_back = (state.fence or 0) < known or (state.blocked is not None and state.blocked.code == WENT_BACK)
    # A person asked for an adoption or a creation: where nothing else is known of the table, it is what was meant.
    head = max(last_published(s3, state.lake, went_back), state.head) or last_begun(s3, state.lake)
    if not head:
        raise UsageError(
            f"{state.path} has no change record of a change that was published", "nothing-to-recover", "the next run loads the table"
        )
    record = read_record(s3, state.lake, head)
    if head != state.head:  # a head that the item names already is the table's, whatever path it had then
        check_own(record, state.lake, str(state.path))
    # Of an item that has a head a person may have taken the keys away; the collation says which keys are one, and no command sets it.
    keys = () if state.head else (("PrimaryKey", ",".join(record.primary_key)), ("PartitionKey", partition_key_text(record.partitioning)))
    texts = (*keys, ("KeyCollation", record.key_collation))
    return Recovered(
        path=str(state.path),
        head_before=state.head,
        head=head,
        fence_before=state.fence or 0,
        fence=max(known, state.fence or 0) + 2,  # above ours, which is one more than the item's
        cursor=record.cursor_after,
        last_full_load=record.last_full_load,
        lacking=tuple((name, text) for name, text in texts if _is_said(text) and not _is_said(state.item.get(name))),
        changed=head > state.head or went_back,
        paused="" if state.paused else _pause(s3, state, record),
    )


def _pause(s3: Any, state: TableState, head: ChangeRecord) -> str:
    """Why the table must wait after its head `head`: what a rollback undid would be applied again by the next run."""
    awaited = len(snapshot_of(s3, state.lake, head).awaited)
    if not awaited and head.kind not in ("rollback", "reapply"):
        return ""
    then = f"applies {awaited} raw file(s) again" if awaited else "goes on with new files"
    return f"recovered at the {head.kind} {head.id}; `dmslake activate {state.path.in_shell}` {then}"


def _is_said(text: Any) -> bool:
    return str(text or "null").strip().lower() != "null"
