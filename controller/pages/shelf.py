"""Changes read from their records, and kept: a record is written once, so what was read of it stays true."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from itertools import takewhile
from typing import Any

from controller.gather import in_threads
from controller.pages.steps import Kept, Place, Walk, keep, start, walk
from glue_jobs.aws.records import list_records, read_record
from glue_jobs.core.errors import TableBlocked
from glue_jobs.core.ids import ChangeId
from glue_jobs.core.paths import S3Uri
from glue_jobs.core.record import ChangeRecord

MOST_KEPT = 20_000  # changes, some kilobytes each
READ_AHEAD = 64  # ids behind a change that is missing: about as many records of its ancestors


class Shelf:
    """Changes by lake folder and id. May be used by several threads."""

    def __init__(self, s3: Any, most_kept: int = MOST_KEPT) -> None:
        self._s3, self._most_kept = s3, most_kept
        self._kept: OrderedDict[tuple[str, str], Kept] = OrderedDict()
        self._lock = threading.Lock()

    def has(self, lake: S3Uri, change: str) -> bool:
        """Whether the change was read before."""
        with self._lock:
            return (str(lake), change) in self._kept

    def put(self, lake: S3Uri, record: ChangeRecord) -> Kept:
        """Keep the change of a record that was read for something else."""
        kept = keep(record)
        with self._lock:
            self._kept[str(lake), record.id] = kept
            self._kept.move_to_end((str(lake), record.id))
            while len(self._kept) > self._most_kept:
                self._kept.popitem(last=False)
        return kept

    def get(self, lake: S3Uri, change: str) -> Kept:
        """One change; TableBlocked, code record-gone or bad-record, if its record can't be read."""
        with self._lock:
            found = self._kept.get((str(lake), change))
            if found is not None:
                self._kept.move_to_end((str(lake), change))
                return found
        return self.put(lake, read_record(self._s3, lake, change, with_checkpoint=False))

    def reader(self, lake: S3Uri, count: int, at_once: bool = True) -> Callable[[str], Kept]:
        """Reads changes by id for a walk back through up to `count` of them: where one is missing, those before it come with it.

        at_once: many at a time; otherwise one after the other, for a caller that reads of many tables at a time.
        """
        ahead = max(2, min(count + 1, READ_AHEAD))

        def read(change: str) -> Kept:
            if not self.has(lake, change):
                self._read_ahead(lake, change, ahead, at_once)
            return self.get(lake, change)

        return read

    def walk(self, lake: S3Uri, head: str, place: Place | None, count: int, at_once: bool = True) -> Walk:
        """`count` changes of the table with that head, from a place on, by default from the head. Its requests depend on `count`, not
        on how long the history is."""
        read = self.reader(lake, count, at_once)
        return walk(read, head, place or start(read(head).record), count)

    def _read_ahead(self, lake: S3Uri, change: str, count: int, at_once: bool) -> None:
        """Read up to `count` changes with ids up to this one, many at a time. What can't be read is left to whoever needs it."""
        listed = takewhile(lambda each: each <= change, list_records(self._s3, lake, _some_before(change, count)))
        ids = [each for each in listed if not self.has(lake, each)][-count:]
        (in_threads if at_once else _in_turn)(lambda each: self._read_or_leave(lake, each), ids)

    def _read_or_leave(self, lake: S3Uri, change: str) -> None:
        try:
            self.get(lake, change)
        except TableBlocked:
            return


def _in_turn(work: Callable[[str], None], items: Sequence[str]) -> list[None]:
    return list(map(work, items))


def _some_before(change: str, count: int) -> str:
    """What sorts before about `count` ids up to this one: of the same lease where it made so many, otherwise of so many leases."""
    at = ChangeId.parse(change)
    if at.counter > count:
        return f"{at.fence:010d}-{at.counter - count:06d}"
    return f"{max(0, at.fence - count):010d}"
