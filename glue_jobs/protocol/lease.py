"""The lease: a time-limited right to commit to one table, and the fence that every write under it carries."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Callable

from glue_jobs.aws.clients import Deadline, clock_seconds
from glue_jobs.aws.state_table import StateTable
from glue_jobs.core.errors import LeaseHeld
from glue_jobs.core.state import said

RENEWALS_PER_LEASE = 3
# A connection may hang while others answer: a renewal is given up in time for two more on other connections before the lease is over.
ANSWERS_PER_LEASE = 6
RETRIES_PER_LEASE = 12
LOOKS_PER_LEASE = 10


@dataclass
class Lease:
    """A held lease. It renews itself in a thread until it is released; `fence` may move on (see `move_on`).

    item: the table's item as it was when the lease was taken, which is what a run plans with.
    """

    table: StateTable
    deadline: Deadline
    path: str
    owner: str
    fence: int
    seconds: float
    item: Mapping[str, Any] = field(default_factory=dict)
    _stop: threading.Event = field(default_factory=threading.Event)
    _moving: threading.Lock = field(default_factory=threading.Lock)  # a renewal must not go out with a fence that just moved on
    _beat: int = 1
    _is_over: bool = False  # it was given back

    def start(self, taken_at: float) -> Lease:
        self.deadline.set(taken_at + self.seconds)
        threading.Thread(target=self._renew_until_stopped, name=f"lease {self.path}", daemon=True).start()
        return self

    def _renew_until_stopped(self) -> None:
        pause, table = self.seconds / RENEWALS_PER_LEASE, self.table.impatient(self.seconds / ANSWERS_PER_LEASE)
        while not self._stop.wait(pause):
            asked_at = clock_seconds()
            self._beat += 1
            pause = self.seconds / RETRIES_PER_LEASE
            try:
                with self._moving:
                    renewed = table.renew(self.path, self.owner, self.fence, self._beat)
                pause = self.seconds / RENEWALS_PER_LEASE
                if renewed:
                    if not self._stop.is_set():
                        self.deadline.set(asked_at + self.seconds)
                elif not self._stop.is_set():
                    self.deadline.set(0.0)  # somebody took over: stop every later write at once
                    return
            except Exception:  # noqa: BLE001 - no answer is no renewal; the deadline runs on and stops us in time
                continue

    def check(self) -> None:
        """Raise LeaseLost if the deadline is over; called before each effect that no botocore handler sees."""
        self.deadline.check()

    def move_on(self, above: int = 0) -> bool:
        """Raise the fence by one, or to one above `above`, after which nothing that was sent under the old one can land. False if it was
        not ours."""
        with self._moving:
            fence = max(self.fence, above) + 1
            if not self.table.move_fence(self.path, self.fence, fence) and not self._is_at(fence):
                return False
            self.fence = fence
            return True

    def rewrite(self, fence: int, values: Mapping[str, Any], remove: Sequence[str] = ()) -> bool:
        """Move to this fence, and set and remove attributes, in one write. False if the fence was not ours."""
        with self._moving:
            if not self.table.write_under_fence(self.path, self.fence, {**values, "Fence": fence}, remove) and not self._is_at(fence):
                return False
            self.fence = fence
            return True

    def _is_at(self, fence: int) -> bool:
        """Whether we moved to this fence although the write was refused: its answer was lost, and what was sent again found it moved."""
        item = self.table.get(self.path) or {}
        return (item.get("Fence"), item.get("LeaseOwner")) == (fence, self.owner)

    def end(self, values: Mapping[str, Any]) -> None:
        """Write the run's result and give the lease back, in one request. Raises what became of it; then `release` tries once more."""
        self._stop.set()
        if not self.table.release(self.path, self.owner, self.fence, values):
            # Taken over, where this is refused as well; or a person took our name from the item.
            self.table.write_under_fence(self.path, self.fence, values)
        self._is_over = True

    def release(self) -> None:
        """Give the lease back, unless `end` did. A failure is no harm: the next run waits it out."""
        self._stop.set()
        if not self._is_over:
            with contextlib.suppress(Exception):
                self.table.release(self.path, self.owner, self.fence)
        self.deadline.set(None)


def take_lease(
    table: StateTable,
    deadline: Deadline,
    item: Mapping[str, Any],
    owner: str,
    seconds: float,
    first_fence: Callable[[], int],
    wait: Callable[[float], None],
) -> Lease:
    """The lease on the table of `item` (as just read). first_fence: the fence of an item that never had one.

    A lease that another run holds is watched for at most its own length, by looking for a changed value, never at a clock:
    renewed or released meanwhile → LeaseHeld; unchanged → its owner is dead, it is taken over.
    """
    path = str(item["path"])
    if item.get("LeaseOwner"):
        item = _watch(table, item, wait)
    seen = item.get("Fence")
    fence = int(seen or 0) + 1 if said(item, "Fence") else first_fence()
    taken_at = clock_seconds()
    taken: dict[str, Any] = {}
    if not table.take_lease(path, item, owner, fence, seconds, taken.update):
        raise LeaseHeld(f"another run took the lease of {path} just now", "lease-held", "run again later")
    return Lease(table, deadline, path, owner, fence, seconds, taken).start(taken_at)


def _watch(table: StateTable, item: Mapping[str, Any], wait: Callable[[float], None]) -> Mapping[str, Any]:
    """The item as it still stands after its lease's length without a sign of life; raises LeaseHeld on any sign.

    By a clock that stops while this machine sleeps: an owner on the same one has slept too, and is to have its time after waking.
    """
    path, length = str(item["path"]), float(item.get("LeaseSeconds") or 60.0)
    until = time.monotonic() + length * 1.05
    while True:
        wait(min(length / LOOKS_PER_LEASE, max(0.0, until - time.monotonic())))
        now = table.get(path) or {}
        if any(now.get(name) != item.get(name) for name in ("LeaseOwner", "LeaseBeat", "Fence")):
            raise LeaseHeld(f"another run works on {path} (owner {item.get('LeaseOwner')})", "lease-held", "run again when it has ended")
        if time.monotonic() >= until:
            return now
