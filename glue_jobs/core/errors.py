"""The errors of dmslake, grouped by what the caller does next.

    DmslakeError
    ├── RetryLater            nothing is wrong with the table: run again
    │   ├── LeaseHeld         another run works on the table (exit 4)
    │   ├── LeaseLost         we paused too long and somebody took over
    │   └── CommitRefused     the state moved between our plan and our commit
    ├── TableBlocked          this table waits for a person, the others go on (exit 1)
    ├── UsageError            fix the call (exit 2)
    ├── ConfigurationError    fix settings, credentials, buckets (exit 3)
    └── DifferenceFound       a check found what it was looking for (exit 5)

Every error can be pickled, because it may be raised in a Spark task and read in the driver.
"""

from __future__ import annotations

import re
import shlex
from typing import Any

_PLACEHOLDER = re.compile(r"\bPATH\b")


class DmslakeError(Exception):
    """Any failure that dmslake can put into words.

    `code` is a short stable name for programs, `message` says what happened and where, `todo` says what a person can do.
    """

    exit_code = 1

    def __init__(self, message: str, code: str = "", todo: str = "") -> None:
        super().__init__(message, code, todo)
        self.message = message
        self.code = code or type(self).__name__
        self.todo = todo

    def __str__(self) -> str:
        return f"{self.message}\n  what to do: {self.todo}" if self.todo else self.message

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.message, self.code, self.todo)


class RetryLater(DmslakeError):
    """Nothing is wrong with the table; the same call may succeed later."""


class LeaseHeld(RetryLater):
    """Another run holds the table's lease."""

    exit_code = 4


class LeaseLost(RetryLater):
    """Our lease was taken over, or its deadline passed before we could renew it."""


class CommitRefused(RetryLater):
    """The condition of the commit point did not hold: head, cursor or a person's attribute changed meanwhile."""


class TableBlocked(DmslakeError):
    """The table can't go on without a person; nothing of it was changed."""


class UsageError(DmslakeError):
    """The call's words are wrong."""

    exit_code = 2


class ConfigurationError(DmslakeError):
    """Settings, credentials or AWS resources are missing or unsuitable."""

    exit_code = 3


class DifferenceFound(DmslakeError):
    """A check ran to its end and found a difference."""

    exit_code = 5


def name_table(error: DmslakeError, path: str) -> DmslakeError:
    """The error itself, with the table's path in its way out instead of PATH, so that the command in it can be pasted."""
    error.todo = _PLACEHOLDER.sub(lambda _: shlex.quote(path), error.todo)
    return error


def to_install(extra: str) -> str:
    """What to do where packages of an extra are missing: dmslake is installed from its checkout."""
    return f"in dmslake's checkout: pip install --editable '.[{extra}]'"


def blocked(code: str, what: str, *, where: str = "", expected: str = "", found: str = "", todo: str | None = None) -> TableBlocked:
    """A TableBlocked whose message holds the parts in the order a reader wants them."""
    parts = [what]
    if where:
        parts.append(f"where: {where}")
    if expected:
        parts.append(f"expected: {expected}")
    if found:
        parts.append(f"found: {found}")
    return TableBlocked("; ".join(parts), code, todo or "")
