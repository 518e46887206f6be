"""Which state a reader sees: the snapshot as of a change or a time. A reader has no lease, and never finishes what a run left.

While the head is being published (`Publishing` stands) its files may not all be there. The reader waits a little, then reads the
state before it. Where the head takes back a lost change, that state was never complete; but the head's own files all were there
before, so the head itself is read.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Callable

from glue_jobs.aws.records import read_record
from glue_jobs.aws.state_table import StateTable
from glue_jobs.core.errors import UsageError
from glue_jobs.core.paths import TablePath
from glue_jobs.core.record import ChangeRecord
from glue_jobs.core.snapshot import Snapshot
from glue_jobs.core.state import TableState, read_state
from glue_jobs.protocol.history import snapshot_of
from glue_jobs.protocol.lineage import Lineage, find_state

LOOKS = 5
PAUSE_SECONDS = 0.5


@dataclass(frozen=True)
class Reading:
    """What a reader sees of a table. record: of the change read, None for the empty table before the first one."""

    state: TableState
    snapshot: Snapshot
    record: ChangeRecord | None = None


def look(s3: Any, table: StateTable, path: TablePath, as_of: str, wait: Callable[[float], None]) -> Reading:
    """The table as of `as_of`: '' for now, a change id, `previous`, an ISO time or epoch seconds. Reads only.

    The snapshot's `erases` are those up to now. Raises UsageError where there is no such table or change.
    """
    state = _settled(table, path, wait)
    head = visible_head(s3, state)
    change = find_state(Lineage(s3, state.lake, head), as_of) if head and as_of else head
    if not change:
        return Reading(state, Snapshot())
    record = read_record(s3, state.lake, change)
    snapshot = snapshot_of(s3, state.lake, record)
    if change != head:  # what was erased later is for no reader of the past
        snapshot = replace(snapshot, erases=read_record(s3, state.lake, head, with_checkpoint=False).erases)
    return Reading(state, snapshot, record)


def _settled(table: StateTable, path: TablePath, wait: Callable[[float], None]) -> TableState:
    """The item once nothing is being published, or as it is after a few looks."""
    for attempt in range(LOOKS):
        if attempt:
            wait(PAUSE_SECONDS)
        item = table.get(str(path))
        if item is None:
            raise UsageError(f"no item for {path} in {table.name}", "unknown-table", "`dmslake tables` lists the tables")
        state = read_state(item)
        if not state.publishing:
            break
    return state


def visible_head(s3: Any, state: TableState) -> str:
    """The newest change all of whose files are there."""
    if not state.publishing or not state.head:
        return state.head
    head = read_record(s3, state.lake, state.head, with_checkpoint=False)
    return head.id if head.lost else head.parent
