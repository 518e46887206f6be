"""What the tests of the capture do again and again."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from infra.local.capture import CaptureSummary
from tests.database.files import RawFiles

WAIT_SECONDS = 30.0
POLL_SECONDS = 0.2
"""InnoDB refreshes its lock tables only if nobody has read them for 0.1 s."""

Capture = Callable[..., CaptureSummary]


def run(connection: Any, *statements: str) -> None:
    """Execute the statements in order."""
    with connection.cursor() as cursor:
        for statement in statements:
            cursor.execute(statement)


def one(connection: Any, query: str) -> Any:
    """The only value that the query finds."""
    with connection.cursor() as cursor:
        cursor.execute(query)
        return cursor.fetchone()[0]


def ops(raw: RawFiles, table: str = "t") -> list[tuple[Any, ...]]:
    """(operation, id, v) of every row of the table's files, in order."""
    return [(row["Op"], row["id"], row["v"]) for row in raw.rows(table)]


def until(reached: Callable[[], bool]) -> None:
    """Wait for a condition; fail if it isn't reached in time."""
    deadline = time.monotonic() + WAIT_SECONDS
    while not reached():
        assert time.monotonic() < deadline, "the condition was not reached"
        time.sleep(POLL_SECONDS)
