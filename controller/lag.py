"""How far a lake table is behind its raw files, by the times in the names of CDC files, and how long these wait. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timezone

from glue_jobs.core.actions import Action, Finish, TakeBatch, TakeLoad
from glue_jobs.core.raw_names import RawFile, cdc_name, is_transactions
from glue_jobs.core.snapshot import Snapshot
from glue_jobs.core.state import TableState

LOAD_INCREMENTAL = "LoadIncremental"  # the job that takes CDC files


def lag_seconds(state: TableState, cdc: Sequence[RawFile], held_back: Action | None) -> float | None:
    """Seconds from the cursor, or without one from the first pending file, to the newest CDC file; None for a table never loaded.

    cdc: in the order of writing. held_back: what would be done if nothing stood in the way (`unhindered`). Transaction files of which a run
    saw that they have no row of the table move no cursor: what is older than such a run is not behind.
    """
    newest = next((name for file in reversed(cdc) if (name := cdc_name(file.key)) and not state.skips(file.key)), None)
    if newest is None or not state.head:
        return 0.0 if state.head else None
    since = cdc_name(state.cursor)
    if since is None and isinstance(held_back, TakeBatch) and held_back.files:
        since = cdc_name(held_back.files[0].key)
    if since is None:
        return 0.0
    return max(0.0, (newest.time - max(since.time, _looked(state))).total_seconds())


def waiting_seconds(state: TableState, head: Snapshot, action: Action, held_back: Action | None, now: datetime) -> float | None:
    """Seconds since the oldest file came that a run would take, or since the table's change that is unfinished; None if nothing waits.

    head: the table's. action: what a run would do now; held_back: what it would do if nothing stood in the way. Transaction files that a
    run has looked at wait for nothing: they have no row of the table.
    """
    since: datetime | None
    if isinstance(action, Finish):
        since = _time(head.time)  # not the last run's: each one that can't finish the change writes its own
    elif isinstance(held_back, (TakeBatch, TakeLoad)):
        looked = _looked(state)
        since = min((file.modified for file in held_back.files if not is_transactions(file.key) or file.modified > looked), default=None)
    else:
        since = None
    return None if since is None else max(0.0, (now - since).total_seconds())


def _looked(state: TableState) -> datetime:
    """When a run last took all that there was for a table with transaction files; long ago where none did, or there are none."""
    time, outcome = _last_run(state), state.last_run.get("outcome")
    all_taken = state.last_run.get("job") == LOAD_INCREMENTAL and outcome in ("committed", "nothing") and not state.paused
    if not (state.cdc_path and time and all_taken) or state.last_run.get("leaves"):
        return datetime(1, 1, 1, tzinfo=timezone.utc)
    return time


def _last_run(state: TableState) -> datetime | None:
    return _time(state.last_run.get("time"))


def _time(value: object) -> datetime | None:
    text = str(value or "")
    try:
        time = datetime.fromisoformat(text.replace("Z", "+00:00"))
    except ValueError:  # none, or what a person wrote
        return None
    return time if time.tzinfo else time.replace(tzinfo=timezone.utc)
