"""What the files of many tables say, for who looks at them every few seconds: read little by little."""

from __future__ import annotations

import itertools
import threading
import time
import zlib
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any

from controller.gather import Files, LeftForLater
from glue_jobs.core.limits import Limits
from glue_jobs.core.raw_names import RawListing
from glue_jobs.core.snapshot import Snapshot
from glue_jobs.core.state import TableState
from glue_jobs.protocol.history import read_outline
from glue_jobs.protocol.raw import list_raw

MOST_LISTED = 100  # tables whose raw files are listed anew in one look, about
LEAST_READ = 50  # tables that are read in each look, also where it should be short
OLD_SECONDS = 60.0  # a listing of this age is not shown again, where looks are rare


@dataclass(frozen=True)
class _Kept:
    state: TableState
    snapshot: Snapshot
    listing: RawListing
    at_seconds: float


class KeptFiles:
    """Snapshots and raw listings by table. May be used by several threads.

    A snapshot is read once, because a head's snapshot never changes, and without its files where there are many: who draws a table's files
    reads them for it, and memory does not grow with the tables. Raw files are listed anew at each look, while there are few tables;
    of more than `most_listed` in turns, so that a look costs the same. A table whose item has changed has its turn at once.
    """

    def __init__(self, most_listed: int = MOST_LISTED, least_read: int = LEAST_READ, clock: Callable[[], float] = time.monotonic) -> None:
        self._most_listed, self._least_read, self._clock = most_listed, least_read, clock
        self._kept: dict[str, _Kept] = {}
        self._looks = 0
        self._lock = threading.Lock()

    def look(self, within_seconds: float | None = None) -> Files:
        """What reads the tables' files for one look at all of them. within_seconds: from the first of them on; what is not known by then is
        left for another look (LeftForLater), what is known is shown as it was. A few tables are read however long it takes."""
        with self._lock:
            self._looks += 1
            look, turns = self._looks, -(-len(self._kept) // self._most_listed) or 1
        now, old = self._clock(), OLD_SECONDS * max(1, turns // 10)
        until: list[float] = []
        reads = itertools.count(1)

        def is_over() -> bool:
            if within_seconds is None:
                return False
            until[:] = until or [self._clock() + within_seconds]
            return next(reads) > self._least_read and self._clock() >= until[0]

        def read(s3: Any, state: TableState, limits: Limits) -> tuple[Snapshot, RawListing]:
            kept = self._kept.get(str(state.path))
            is_turn = (look + zlib.crc32(str(state.path).encode())) % turns == 0
            if kept is not None and kept.state == state and not is_turn and now - kept.at_seconds < old:
                return kept.snapshot, kept.listing
            if is_over():
                if kept is None or kept.state != state:
                    raise LeftForLater
                return kept.snapshot, kept.listing
            snapshot = _snapshot(s3, state, kept)
            listing = list_raw(s3, state, snapshot, limits)
            self._kept[str(state.path)] = _Kept(state, snapshot, listing, now)
            return snapshot, listing

        return read

    def keep(self, paths: Collection[str]) -> None:
        """Forget all tables but these: one that is looked at no more, because a person forgot or deactivated it, would stay for good."""
        for path in list(self._kept):
            if path not in paths:
                self._kept.pop(path, None)


def _snapshot(s3: Any, state: TableState, kept: _Kept | None) -> Snapshot:
    if not state.head:
        return Snapshot()
    if kept is not None and (kept.state.head, kept.state.out_path) == (state.head, state.out_path):
        return kept.snapshot
    return read_outline(s3, state.lake, state.head)
