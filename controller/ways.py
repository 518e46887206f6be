"""The commands that undo a change, bring it back, or go back to its state."""

from __future__ import annotations

from controller.history import HEAD, LIVE, LOST, UNDONE, PastChange
from glue_jobs.core.history_table import is_changed_by
from glue_jobs.core.record import stands_for
from glue_jobs.core.state import TableState
from glue_jobs.core.undo import Read, undone_tail


def ways(state: TableState, read: Read | None, change: PastChange) -> list[tuple[str, str]]:
    """(what it does, the command) that undo the change, bring it back, or go back to it. read: the table's change records."""
    path, record = state.path.in_shell, change.record
    if change.standing == LOST or read is None:
        return []
    out = []
    took_files = record.erased and (record.superseded or is_changed_by(record))  # of the table or of its history: they are no more
    if change.standing in (HEAD, LIVE) and not took_files:
        out.append(("to undo it", f"dmslake rollback {path} --undo {record.id}"))
    tail = undone_tail(read, read(state.head)) if change.standing in (HEAD, UNDONE) else ()
    if change.standing == HEAD and stands_for(record) != record.id and tail:
        out.append(("to bring back what is undone", f"dmslake reapply {path}"))
    if record.id in {part.id for part in tail}:
        out.append(("to bring it back", f"dmslake reapply {path} {record.id}"))
    if change.standing != HEAD:
        out.append(("to go back to its state", f"dmslake rollback {path} --to {record.id} --dry-run"))
    return out
