"""A table's past as rows for a person: what became of each change, and until when one can go back to it. Pure.

A change can be gone back to as long as S3 keeps the data of the files that it had and the head has not. They were hidden when a later
change superseded them, and the bucket's lifecycle rule keeps a hidden file's data for a number of days.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta, timezone

from glue_jobs.core.history_table import is_changed_by
from glue_jobs.core.record import GOES_TO, ChangeRecord, DataFile
from glue_jobs.core.snapshot import Snapshot
from glue_jobs.core.undo import Read, record_time, root

HEAD, LIVE, UNDONE, STEP, LOST = "head", "live", "undone", "step", "lost"
YES, UNTIL, NO = "yes", "until", "no"


@dataclass(frozen=True)
class Restorable:
    """Whether one can go back to a change. answer: yes (its files are all in the table, or kept for good), until, no."""

    answer: str
    until: datetime | None = None


@dataclass(frozen=True)
class Need:
    """A hidden file that returns to some changes need: those in the places first to last of the history, newest first."""

    file: DataFile
    hidden_at: datetime
    first: int
    last: int


@dataclass(frozen=True)
class PastChange:
    """One change of a history. standing: head; live (its rows are in the table); undone; lost (taken back before it was published);
    step (a rollback, re-apply, repair, or the taking back of a lost change). restorable: None where it isn't known or can't be meant.
    """

    record: ChangeRecord
    standing: str
    restorable: Restorable | None = None


def standings(records: Sequence[ChangeRecord], head: str, live: Collection[str]) -> list[str]:
    """What became of each change. records: newest first, the head among them. live: the ids that the head's rows are made of."""
    lost = {record.lost for record in records}
    return [_standing(record, head, live, lost) for record in records]


def _standing(record: ChangeRecord, head: str, live: Collection[str], lost: Collection[str]) -> str:
    if record.id == head:
        return HEAD
    if record.id in lost:
        return LOST
    if record.kind in GOES_TO:
        return STEP
    return LIVE if record.id in live else UNDONE


def beside(records: Sequence[ChangeRecord], read: Read) -> list[ChangeRecord]:
    """The records with the files that their changes added to the history table and superseded there, in the place of the lake table's.

    read: the history table's records.
    """
    return [_beside(record, read) for record in records]


def _beside(record: ChangeRecord, read: Read) -> ChangeRecord:
    change = is_changed_by(record)
    if not change:
        return replace(record, added=(), superseded=())
    own = read(change)
    return replace(record, added=own.added, superseded=own.superseded)


def find_needs(records: Sequence[ChangeRecord], head: Snapshot, oldest: Snapshot) -> list[Need]:
    """The hidden files that a return to one of `records` (from the head on, newest first) needs, the last hidden first.

    oldest: the snapshot of the last record. A lost change and the one that took it back moved no file.
    """
    files = {**oldest.files, **{file.path: file for record in records for file in record.added}}
    kept = {root(file) for file in head.files.values()}
    lost = {record.lost for record in records}
    needs: list[Need] = []
    open_needs: dict[str, int] = {}
    for place, record in enumerate(records[:-1]):
        if record.lost or record.id in lost:
            continue
        for file in record.added:
            if file.path in open_needs:
                at = open_needs.pop(file.path)
                needs[at] = replace(needs[at], last=place)
        for path in record.superseded:
            if path in files and root(files[path]) not in kept:
                open_needs[path] = len(needs)
                needs.append(Need(files[path], record_time(record), place + 1, len(records) - 1))
    return [need for need in needs if need.first <= need.last]


def read_restorable(
    count: int, needs: Sequence[Need], days: int | None, now: datetime, missing: Collection[str] | None = None
) -> list[Restorable]:
    """For each of `count` changes whether one can go back to it.

    days: how long the bucket keeps hidden data, None for good. missing: paths of the needed files that S3 has no more; None: nobody
    looked, so that the bucket's rule alone decides.
    """
    begins, ends = defaultdict(list), defaultdict(list)
    for need in needs:
        begins[need.first].append(need)
        ends[need.last + 1].append(need)
    current: dict[str, datetime] = {}  # in the order of hiding, the last hidden first
    gone: set[str] = set()
    out = []
    for place in range(count):
        for need in ends[place]:
            current.pop(need.file.path, None)
            gone.discard(need.file.path)
        for need in begins[place]:
            current[need.file.path] = need.hidden_at
            if missing is not None and need.file.path in missing:
                gone.add(need.file.path)
        earliest = current[next(reversed(current))] if current else None
        out.append(_restorable(earliest, days, now, bool(gone), missing is not None))
    return out


def _restorable(hidden_at: datetime | None, days: int | None, now: datetime, is_gone: bool, is_looked_up: bool) -> Restorable:
    if is_gone:
        return Restorable(NO)
    if hidden_at is None or days is None:
        return Restorable(YES)
    until = hidden_at + timedelta(days=days)
    return Restorable(UNTIL, until) if is_looked_up or until > now else Restorable(NO)


def shown_time(record: ChangeRecord) -> datetime:
    """The change's time for a person."""
    return rounded_up(record_time(record))


def rounded_up(moment: datetime) -> datetime:
    """A change's time in whole milliseconds: `--to` and `--as-of` with what a person copies mean this change, not the one before."""
    rest = moment.microsecond % 1000
    return moment + timedelta(microseconds=1000 - rest) if rest else moment


def time_text(moment: datetime, timespec: str = "seconds") -> str:
    """A time in UTC, as `--to` takes it."""
    utc = moment.astimezone(timezone.utc).replace(tzinfo=None)
    return utc.isoformat(" ", timespec=timespec)


def epoch_text(record: ChangeRecord) -> str:
    return f"{shown_time(record).timestamp():.3f}"
