"""The states that a table had one after the other, rollbacks included: what row changes are made from."""

from __future__ import annotations

from typing import Any

from glue_jobs.core.errors import UsageError
from glue_jobs.core.paths import S3Uri
from glue_jobs.core.snapshot import Snapshot, apply
from glue_jobs.protocol.history import read_snapshot
from glue_jobs.protocol.lineage import HISTORY_TODO, Lineage


def states_between(s3: Any, lake: S3Uri, lineage: Lineage, start: str, end: str) -> list[Snapshot]:
    """The snapshot of `start` ('' for before the first change) and of every change after it up to `end`, oldest first.

    Both are the lineage's head or ancestors of it. A change that was taken back before it was published never was a state.
    """
    if end < start:
        raise UsageError(f"change {end or '(none)'} is before {start}", "bad-order", f"give the older one first; {HISTORY_TODO}")
    records = list(lineage.back(after=start))
    lost = {record.lost for record in records}
    states = [read_snapshot(s3, lake, start)]
    shown = states[:1]
    for record in reversed(records):
        if record.id > end:
            break
        states.append(apply(states[-1], record))
        if record.id not in lost:
            shown.append(states[-1])
    return shown
