"""Reads of AWS for those who look on: whoever asks the same at the same time shares one read, and nobody waits for ever."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Hashable
from typing import Any, TypeVar

from glue_jobs.aws.clients import Clients
from glue_jobs.core.errors import RetryLater

_T = TypeVar("_T")
MOST_AT_ONCE = 8
FORGOTTEN_SECONDS = 60.0  # after which an answer that nobody fetched is not shown any more


class LookingClients(Clients):
    """The clients of who looks on: soon told that AWS does not answer, and asked again a moment later."""

    max_attempts = 3


class NoAnswerYet(RetryLater):
    """The read goes on: who asks again gets its answer, once there is one."""


def _not_yet(message: str) -> NoAnswerYet:
    return NoAnswerYet(message, "no-answer-yet", "wait; if it stays so: `dmslake doctor`")


class Reads:
    """Answers by key. An answer, an error too, is handed out for `kept_seconds`; who asks waits for `wait_seconds` at most.

    Reads are daemon threads, so that a hanging one does not keep the process. clock: monotonic seconds.
    """

    def __init__(
        self,
        kept_seconds: float = 1.0,
        wait_seconds: float = 15.0,
        most_at_once: int = MOST_AT_ONCE,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._kept_seconds, self._wait_seconds, self._most, self._clock = kept_seconds, wait_seconds, most_at_once, clock
        self._reads: dict[Hashable, _Read] = {}
        self._lock = threading.Lock()

    def ask(self, key: Hashable, read: Callable[[], _T]) -> _T:
        """What `read` returns or raises, now or a moment ago. Raises NoAnswerYet if that takes too long."""
        found = self._find(key, read)
        if not found.over.wait(self._wait_seconds):
            raise _not_yet(f"AWS has not answered within {self._wait_seconds:.0f} s; reading goes on")
        found.is_fetched = True
        if found.error is not None:
            raise found.error
        answer: _T = found.answer
        return answer

    def are_going_on(self) -> bool:
        """Whether a read has not ended."""
        with self._lock:
            return any(not read.over.is_set() for read in self._reads.values())

    def _find(self, key: Hashable, read: Callable[[], Any]) -> _Read:
        """The read of this key that is under way or still fresh, or a new one."""
        with self._lock:
            self._reads = {known: other for known, other in self._reads.items() if self._is_shown(other)}
            if key not in self._reads:
                if sum(not other.over.is_set() for other in self._reads.values()) >= self._most:
                    raise _not_yet(f"{self._most} pages are being read, and AWS has answered none of them yet")
                self._reads[key] = _Read(read, self._clock)
            return self._reads[key]

    def _is_shown(self, read: _Read) -> bool:
        if not read.over.is_set():
            return True
        return self._clock() - read.ended < (self._kept_seconds if read.is_fetched else FORGOTTEN_SECONDS)


class _Read:
    """One read in a thread of its own, begun when it is made."""

    def __init__(self, read: Callable[[], Any], clock: Callable[[], float]) -> None:
        self.over = threading.Event()
        self.ended = 0.0
        self.is_fetched = False
        self.answer: Any = None
        self.error: Exception | None = None
        self._read, self._clock = read, clock
        threading.Thread(target=self._run, daemon=True).start()

    def _run(self) -> None:
        try:
            self.answer = self._read()
        except Exception as error:  # noqa: BLE001 - it is raised again where it was asked for
            self.error = error
        finally:
            self.ended = self._clock()
            self.over.set()
