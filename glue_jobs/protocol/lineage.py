"""A table's change records on the way back from its head, each read once; and where a person's wish to go leads."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from itertools import takewhile
from typing import Any

from glue_jobs.aws.records import list_records, read_record
from glue_jobs.core.errors import TableBlocked, UsageError
from glue_jobs.core.ids import ChangeId
from glue_jobs.core.paths import S3Uri
from glue_jobs.core.record import ChangeRecord, stands_for
from glue_jobs.core.undo import PREVIOUS, Wish, parse_to, record_time, rows_path, undone_tail

FOLLOW_ONE_BY_ONE = 6  # records; a walk that goes on is worth a listing
READ_AT_ONCE = 64
NEAR_FENCES = 256  # leases back to which the names of records are listed first; only a walk that goes further lists them all
READ_THREADS = 16
HISTORY_TODO = "`dmslake history PATH` lists the changes"


class Lineage:
    """The change records of one table by id, without their checkpoints. A walk reads them one after the other, many at a time where
    it is a long one."""

    def __init__(self, s3: Any, lake: S3Uri, head: str) -> None:
        self._s3, self._lake, self.head = s3, lake, head
        self._records: dict[str, ChangeRecord] = {}
        self._ids: list[str] | None = None
        self._listed_after = ""
        self._misses = 0

    def __call__(self, change: str) -> ChangeRecord:
        if change not in self._records:
            self._misses += 1
            if self._misses > FOLLOW_ONE_BY_ONE:
                self._read_ahead(change)
        if change not in self._records:
            self._records[change] = read_record(self._s3, self._lake, change, with_checkpoint=False)
        return self._records[change]

    def _read_ahead(self, change: str) -> None:
        """Read the records up to `change` that come next on the way back. One that can't be read is reported by whoever needs it."""
        if self._ids is None:
            fence = ChangeId.parse(change).fence - NEAR_FENCES
            self._list_after(f"{fence:010d}" if fence > 0 else "")
        wanted = self._wanted(change)
        if len(wanted) < READ_AT_ONCE and self._listed_after:
            self._list_after("")
            wanted = self._wanted(change)
        with ThreadPoolExecutor(READ_THREADS) as pool:
            for record in pool.map(self._read_or_none, wanted):
                if record is not None:
                    self._records[record.id] = record

    def _list_after(self, after: str) -> None:
        self._ids, self._listed_after = list(list_records(self._s3, self._lake, after)), after

    def _wanted(self, change: str) -> list[str]:
        return [name for name in self._ids or () if name <= change and name not in self._records][-READ_AT_ONCE:]

    def _read_or_none(self, change: str) -> ChangeRecord | None:
        try:
            return read_record(self._s3, self._lake, change, with_checkpoint=False)
        except TableBlocked:
            return None

    def back(self, after: str = "") -> Iterator[ChangeRecord]:
        """The head's record, its parent's, and so on; only those with an id greater than `after`."""
        change = self.head
        while change > after:
            record = self(change)
            yield record
            change = record.parent

    def landed(self, change: str) -> ChangeRecord:
        """The record of `change`, which is the head or an ancestor of it and was published; UsageError if it is none."""
        lost = set()
        for record in self.back():
            lost.add(record.lost)
            if record.id <= change:
                if record.id != change:
                    break
                if change in lost:
                    raise UsageError(f"change {change} was taken back before it was published", "lost-change", HISTORY_TODO)
                return record
        raise UsageError(f"no change {change} of this table took effect", "unknown-change", HISTORY_TODO)

    def at(self, moment: datetime) -> str:
        """The change that was the head at that time, '' if there was none yet. One that was lost before it was published never was."""
        lost = set()
        for record in self.back():
            lost.add(record.lost)
            if record_time(record) <= moment and record.id not in lost:
                return record.id
        return ""


def find_goal(lineage: Lineage, wish: Wish) -> str:
    """The change whose state a person wants, '' for the empty table before the first; UsageError if there is none such."""
    if not lineage.head:
        raise UsageError("the table has no change yet", "not-loaded", "`dmslake run PATH` loads it, once it is active")
    if wish.reapply is not None:
        return _goal_of_reapply(lineage, wish.reapply)
    if wish.undo:
        return _parent_of_live(lineage, wish.undo)
    return find_state(lineage, wish.to)


def find_state(lineage: Lineage, text: str) -> str:
    """The change whose state a change id, `previous` or a time means, '' for the empty table."""
    to = parse_to(text)
    if isinstance(to, datetime):
        return lineage.at(to)
    if to != PREVIOUS:
        return lineage.landed(to).id
    last = stands_for(lineage(lineage.head))
    if not last:
        raise UsageError("every change is undone already", "nothing-to-undo", "`dmslake reapply PATH` brings them back")
    return lineage(last).parent


def _parent_of_live(lineage: Lineage, change: str) -> str:
    """The parent of a change that is to be undone; refused if its rows are gone already and going back would drop others'."""
    record = lineage.landed(change)
    if record.lost:
        raise UsageError(
            f"change {change} took back one that was never published: there is nothing to go back to", "lost-change", HISTORY_TODO
        )
    if stands_for(record) == change:
        path = takewhile(lambda part: part.id >= change, rows_path(lineage, stands_for(lineage(lineage.head))))
        if all(part.id != change for part in path):
            raise UsageError(f"change {change} is undone already", "nothing-to-undo", HISTORY_TODO)
    return record.parent


def _goal_of_reapply(lineage: Lineage, change: str) -> str:
    tail = undone_tail(lineage, lineage(lineage.head))
    if not change:
        if not tail:
            raise UsageError("nothing is undone that could be re-applied", "nothing-to-reapply", HISTORY_TODO)
        return tail[-1].id
    lineage.landed(change)
    if change not in {record.id for record in tail}:
        raise UsageError(
            f"change {change} can't be re-applied: it is not undone, or other changes came after its undo",
            "not-in-tail",
            f"`dmslake rollback PATH --to {change} --dry-run` shows what going back to its state would drop",
        )
    return change
