"""How far a lake table is behind its raw files, by the times in the names of CDC files. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from glue_jobs.core.intake import Action, TakeBatch
from glue_jobs.core.raw_names import RawFile, cdc_name
from glue_jobs.core.state import TableState


def lag_seconds(state: TableState, cdc: Sequence[RawFile], held_back: Action | None) -> float | None:
    """Seconds from the cursor, or without one from the first pending file, to the newest CDC file; None for a table never loaded.

    held_back: what would be done if nothing stood in the way (`unhindered`).
    """
    newest = max((name for name in (cdc_name(file.key) for file in cdc) if name), default=None)
    if newest is None or not state.head:
        return 0.0 if state.head else None
    since = cdc_name(state.cursor)
    if since is None and isinstance(held_back, TakeBatch) and held_back.files:
        since = cdc_name(held_back.files[0].key)
    return max(0.0, (newest.time - since.time).total_seconds()) if since is not None else 0.0
