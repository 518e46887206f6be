"""Waiting for a condition, with a deadline."""

from __future__ import annotations

import time
from collections.abc import Callable

DEADLINE_SECONDS = 60.0


def until(condition: Callable[[], bool], what: str) -> None:
    """Waits until `condition` holds; fails after a minute."""
    deadline = time.monotonic() + DEADLINE_SECONDS
    while not condition():
        assert time.monotonic() < deadline, f"not within {DEADLINE_SECONDS:g} s: {what}"
        time.sleep(0.01)
