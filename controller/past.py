"""A table's past read from its change records and from S3: as much of it as is asked for. Reads only."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from typing import Any

from botocore.exceptions import ClientError

from controller.history import Need, PastChange, Restorable, beside, find_needs, read_restorable, standings
from glue_jobs.aws.buckets import noncurrent_days
from glue_jobs.aws.erased import read_erased
from glue_jobs.aws.translate import ACCESS_DENIED, error_code
from glue_jobs.core.erasure import Erased
from glue_jobs.core.errors import DmslakeError, TableBlocked, UsageError
from glue_jobs.core.history_table import history_lake
from glue_jobs.core.paths import S3Uri
from glue_jobs.core.record import ChangeRecord, stands_for
from glue_jobs.core.snapshot import Snapshot
from glue_jobs.core.state import TableState
from glue_jobs.core.undo import root, rows_path
from glue_jobs.protocol.history import read_snapshot
from glue_jobs.protocol.history_table import snapshot_at
from glue_jobs.protocol.lineage import HISTORY_TODO, Lineage
from glue_jobs.protocol.restore import erased_file, find_sources

MOST_LOOKED_UP = 2000  # hidden files whose data is looked up in S3; for more the bucket's rule is believed


@dataclass(frozen=True)
class Past:
    """Changes from the head on, newest first. more: there are older ones.

    days: for which the bucket keeps hidden data, None for good. looked_up: whether S3 was asked for every hidden file.
    problem: why the walk ended early.
    """

    changes: tuple[PastChange, ...] = ()
    head: Snapshot = Snapshot()
    lineage: Lineage | None = None
    more: bool = False
    days: int | None = None
    looked_up: bool = False
    warnings: tuple[str, ...] = ()
    problem: DmslakeError | None = None


def read_past(s3: Any, state: TableState, limit: int | None, now: datetime) -> Past:
    """The last `limit` changes, None for all. A record that can't be read ends the walk."""
    lineage = _lineage(s3, state)
    records: list[ChangeRecord] = []
    problem: DmslakeError | None = None
    try:
        for record in islice(lineage.back(), None if limit is None else limit + 1):
            records.append(record)  # one by one: those before an unreadable one are kept
    except TableBlocked as error:
        problem = error
    if not records:
        assert problem is not None
        raise problem
    shown = records if limit is None else records[:limit]
    past = _judge(s3, state, lineage, shown, None, now)
    return Past(past.changes, past.head, lineage, len(records) > len(shown), past.days, past.looked_up, past.warnings, problem)


def read_change(s3: Any, state: TableState, change: str, now: datetime) -> Past:
    """The past down to one change, the last of `changes`; UsageError if no such change took effect. Only that one is judged whole."""
    lineage = _lineage(s3, state)
    records: list[ChangeRecord] = []
    for record in lineage.back():
        if record.id < change:
            break
        records.append(record)
    if not records or records[-1].id != change:
        raise UsageError(f"no change {change} of this table took effect", "unknown-change", HISTORY_TODO)
    return _judge(s3, state, lineage, records, len(records) - 1, now)


def _lineage(s3: Any, state: TableState) -> Lineage:
    if not state.head:
        raise UsageError(f"{state.path} has no change yet", "not-loaded", "`dmslake run PATH` loads it, once it is active")
    return Lineage(s3, state.lake, state.head)


def _judge(s3: Any, state: TableState, lineage: Lineage, records: Sequence[ChangeRecord], only: int | None, now: datetime) -> Past:
    """The records with their standing and whether one can go back to them; only: the place that is asked for, None for all."""
    oldest, rows_of = records[-1].id, stands_for(records[0])
    words = standings(records, state.head, _live(lineage, rows_of, oldest))
    warnings: list[str] = []
    days = _days(s3, state.lake, warnings)
    head = read_snapshot(s3, state.lake, state.head)
    answers: Sequence[Restorable | None] = [None] * len(records)
    looked_up = False
    try:
        needs = _needs(s3, state.lake, records, head)
    except TableBlocked as error:
        warnings.append(f"it isn't known which changes can be gone back to: {error.message}")
    else:
        if only is not None:
            needs = {folder: [need for need in some if need.first <= only <= need.last] for folder, some in needs.items()}
        missing = _missing(s3, state.lake, needs, head.erases)
        looked_up = missing is not None
        answers = read_restorable(len(records), [need for some in needs.values() for need in some], days, now, missing)
    changes = (PastChange(record, word, None if word == "lost" else answer) for record, word, answer in zip(records, words, answers))
    return Past(tuple(changes), head, lineage, False, days, looked_up, tuple(warnings))


def _live(lineage: Lineage, change: str, oldest: str) -> set[str]:
    """The changes from `oldest` on that the rows of `change` are made of."""
    live = set()
    try:
        for part in rows_path(lineage, change):
            if part.id < oldest:
                break
            live.add(part.id)
    except TableBlocked:
        pass  # a record further back than those that are shown: what is shown ends before it
    return live


def _days(s3: Any, lake: S3Uri, warnings: list[str]) -> int | None:
    try:
        return noncurrent_days(s3, lake.bucket, lake.key)
    except ClientError as error:
        if error_code(error) not in ACCESS_DENIED:
            raise
        warnings.append(f"the lifecycle rules of {lake.bucket} can't be read (s3:GetLifecycleConfiguration is denied): no end is shown")
        return None


def _needs(s3: Any, lake: S3Uri, records: Sequence[ChangeRecord], head: Snapshot) -> dict[S3Uri, list[Need]]:
    """The hidden files that returns to `records` need, by folder: the lake table's, and the history table's where there is one."""
    oldest = read_snapshot(s3, lake, records[-1].id)
    needs = {lake: find_needs(records, head, oldest)}
    if head.history is not None:
        folder = history_lake(lake)
        own = beside(records, Lineage(s3, folder, head.history.change))
        needs[folder] = find_needs(own, snapshot_at(s3, lake, head), snapshot_at(s3, lake, oldest))
    return needs


def _missing(s3: Any, lake: S3Uri, needs: Mapping[S3Uri, Sequence[Need]], erases: Sequence[str]) -> set[str] | None:
    """Paths of the needed files that S3 has no more; None where they are too many to ask. No path is in both folders."""
    files = {folder: {need.file.path: need.file for need in some} for folder, some in needs.items() if some}
    if sum(map(len, files.values())) > MOST_LOOKED_UP:
        return None
    erased = read_erased(s3, lake, erases if files else ())
    return {file.path for folder, some in files.items() for file in find_sources(s3, folder, some.values(), erased)[1]}


def find_eraser(s3: Any, lake: S3Uri, head: Snapshot, goal: Snapshot) -> str:
    """The erase that took bytes which a return to `goal` would need, '' for none. Only files on the list of an erase are looked up."""
    if not head.erases:
        return ""
    erased = read_erased(s3, lake, head.erases)
    taken = _taken(s3, lake, head, goal, erased)
    return taken or _taken(s3, history_lake(lake), snapshot_at(s3, lake, head), snapshot_at(s3, lake, goal), erased)


def _taken(s3: Any, folder: S3Uri, head: Snapshot, goal: Snapshot, erased: Erased) -> str:
    kept = {root(file) for file in head.files.values()}
    listed = [file for file in goal.files.values() if root(file) not in kept and erased_file(folder, [file], erased)]
    gone = find_sources(s3, folder, listed, erased)[1]
    found = erased_file(folder, gone, erased)
    return found[1] if found else ""
