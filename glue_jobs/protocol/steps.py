"""The states that a table had one after the other, rollbacks included: what row changes are made from."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from glue_jobs.core.errors import UsageError
from glue_jobs.core.paths import S3Uri
from glue_jobs.core.record import ChangeRecord
from glue_jobs.core.snapshot import Snapshot, apply
from glue_jobs.protocol.history import read_snapshot
from glue_jobs.protocol.lineage import HISTORY_TODO, Lineage


@dataclass(frozen=True)
class States:
    """`first` and the states after it, oldest first. Each is made of the one before whenever it is its turn, so that two of them are in
    memory, not all. They don't tell which raw files the table had taken: row changes ask for none, and these grow with every change.

    records: of the changes after `first`. lost: those that were taken back before they were published, and never were a state. erases:
    of each state, None for those of its own time.
    """

    first: Snapshot
    records: tuple[ChangeRecord, ...] = ()
    lost: frozenset[str] = frozenset()
    erases: tuple[str, ...] | None = None

    def __iter__(self) -> Iterator[Snapshot]:
        state = _without_inputs(self.first)
        yield self._shown(state)
        for record in self.records:
            state = _without_inputs(apply(state, record))
            if record.id not in self.lost:
                yield self._shown(state)

    def _shown(self, state: Snapshot) -> Snapshot:
        return state if self.erases is None else replace(state, erases=self.erases)


def _without_inputs(state: Snapshot) -> Snapshot:
    return replace(state, applied={}, skipped={}, awaited={})


def states_between(s3: Any, lake: S3Uri, lineage: Lineage, start: str, end: str) -> States:
    """The snapshot of `start` ('' for before the first change) and of every change after it up to `end`.

    Both are the lineage's head or ancestors of it. A change that was taken back before it was published never was a state.
    """
    if end < start:
        raise UsageError(f"change {end or '(none)'} is before {start}", "bad-order", f"give the older one first; {HISTORY_TODO}")
    records = list(lineage.back(after=start))[::-1]
    lost = frozenset(record.lost for record in records)
    return States(read_snapshot(s3, lake, start), tuple(record for record in records if record.id <= end), lost)
