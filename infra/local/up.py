"""`dmslake up`: an embedded AWS to try things on, until Ctrl-C."""

from __future__ import annotations

import json
import shlex
import signal
import threading
from collections.abc import Callable
from datetime import datetime, timezone
from pathlib import Path
from types import FrameType
from typing import Any

from infra.local.embedded import EmbeddedAws
from infra.local.schedule import Scheduler, how_it_stands

_EXAMPLE_TABLE = "shop/orders/"


def run_up(echo: Callable[[str], None], port: int = 0, folder: Path | None = None, schedule: bool = False) -> int:
    """Starts an embedded AWS, says how to reach it, and stays until SIGINT or SIGTERM; returns the exit code.

    `port` 0 takes a free one. `folder` keeps the logs of the runs; without it they go with the server. `schedule` has the
    scheduled trigger of the stack start the controller when it is due.
    """
    asked_to_stop = threading.Event()
    previous = _on_signals(asked_to_stop)
    try:
        with EmbeddedAws(port=port, folder=folder) as aws:
            for line in introduction(aws, schedule):
                echo(line)
            scheduler = Scheduler(aws.client("glue"), _now, echo) if schedule else None
            # A wait without a limit can't be interrupted by a signal on every system.
            while not asked_to_stop.wait(1.0):
                if scheduler is not None:
                    scheduler.tick()
            echo("# stopping")
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
    return 0


def introduction(aws: EmbeddedAws, schedule: bool = False) -> list[str]:
    """What `dmslake up` prints: lines for a shell, comments included, so that all of it can be pasted."""
    return [
        f"# The embedded AWS is at {aws.endpoint_url}; logs of the job runs are in {aws.log_folder}",
        "# Paste this into the shell that shall use it:",
        "unset AWS_PROFILE AWS_SESSION_TOKEN DMSLAKE_JOB_PREFIX",
        *(f"export {name}={shlex.quote(value)}" for name, value in aws.environment().items()),
        "",
        "# Then, for example: edit a table's DynamoDB row, start a job run, list the lake",
        *example_commands(aws),
        "",
        *how_it_stands(aws.client("glue"), _now(), schedule),
        "# Ctrl-C stops it and forgets everything.",
    ]


def example_commands(aws: EmbeddedAws) -> list[str]:
    """Three `aws` commands that work as they are once the environment is exported; each is one line."""
    path = f"{aws.raw_bucket}/{aws.raw_prefix}{_EXAMPLE_TABLE}"
    edit = shlex.join(
        [
            *("aws", "dynamodb", "update-item", "--table-name", aws.state_table),
            *("--key", json.dumps({"path": {"S": path}})),
            *("--update-expression", "SET ActiveFlag = :active, PrimaryKey = :key"),
            *("--expression-attribute-values", json.dumps({":active": {"S": "true"}, ":key": {"S": "id"}})),
        ]
    )
    return [
        edit,
        "aws glue start-job-run --job-name Controller",
        f"aws s3 ls s3://{aws.lake_bucket} --recursive",
    ]


def _now() -> datetime:
    return datetime.now(timezone.utc)


def _on_signals(event: threading.Event) -> dict[signal.Signals, Any]:
    """Makes SIGINT and SIGTERM set `event`; returns what they did before. Outside the main thread nothing is changed."""
    if threading.current_thread() is not threading.main_thread():
        return {}

    def stop(number: int, frame: FrameType | None) -> None:
        event.set()

    return {number: signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGTERM)}
