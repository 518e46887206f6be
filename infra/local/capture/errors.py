"""What can go wrong in a capture, grouped by what the caller does next."""

from __future__ import annotations

from glue_jobs.core.errors import DmslakeError


class CaptureError(DmslakeError):
    """The capture stopped; what it had written stays valid and the next run goes on from the saved position."""


class UsageError(CaptureError):
    """The call itself is wrong: fix the arguments."""

    exit_code = 2


class SetupError(CaptureError):
    """The database server, its settings or the bucket don't allow a capture: fix them, then run again."""

    exit_code = 3
