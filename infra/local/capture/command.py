"""The `capture` command without its command line."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Sequence
from contextlib import redirect_stdout
from typing import Any

import boto3

from glue_jobs.core.printable import error_lines
from infra.local.capture.errors import CaptureError
from infra.local.capture.session import CaptureOptions, CaptureSummary, capture

_INTERRUPTED = 130
_GOES_ON = "interrupted; the next capture goes on from the saved position"
_BROKE_OFF = (
    "interrupted in the full load: run it again with --full-load, before any `dmslake run` takes what is there for the whole tables"
)


def run_capture(
    mysql: str,
    raw: str,
    full_load: bool = False,
    follow: bool = False,
    interval_seconds: float = 60.0,
    timestamp_column: str | None = None,
    echo: Callable[[str], None] = print,
    *,
    tables: Sequence[str] | None = None,
    before_images: bool = False,
    s3_client: Any = None,
    stop: threading.Event | None = None,
) -> int:
    """Capture and tell what was written, a line per table; the exit code (0, 1 failed, 2 usage, 3 set-up, 130 Ctrl-C).

    An error is told by `echo` too, as other commands word theirs; where `echo` prints, it goes to stderr. Without `s3_client` the
    environment's credentials and endpoints are used. Ctrl-C is how a following capture ends, but for its full load: 0.
    """
    stands = "interrupted: nothing was changed" if full_load else _GOES_ON

    def begin() -> None:
        nonlocal stands
        stands = _BROKE_OFF

    def tell(part: CaptureSummary) -> None:
        nonlocal stands
        stands = _GOES_ON  # the full load is the first that is told
        _tell(part, echo)

    options = CaptureOptions(tables=tuple(tables) if tables else None, timestamp_column=timestamp_column, before_images=before_images)
    try:
        capture(
            mysql,
            raw,
            s3_client=s3_client or boto3.client("s3"),
            full_load=full_load,
            follow=follow,
            interval_seconds=interval_seconds,
            options=options,
            stop=stop,
            on_round=tell,
            on_load=begin,
        )
    except KeyboardInterrupt:
        if follow and stands == _GOES_ON:
            echo("stopped; the next capture goes on from the saved position")
            return 0
        with redirect_stdout(sys.stderr):
            echo(stands)
        return _INTERRUPTED
    except CaptureError as error:
        with redirect_stdout(sys.stderr):
            for line in error_lines(error, "dmslake: "):
                echo(line)
        return error.exit_code
    return 0


def _tell(part: CaptureSummary, echo: Callable[[str], None]) -> None:
    for warning in part.warnings:
        echo(f"warning: {warning}")
    for name, table in sorted(part.tables.items()):
        echo(f"{name}: {table}")
    if not part.tables:
        echo("no changes")
    echo(f"captured up to binlog position {part.position}")
