"""What a controller takes from the machine it runs on: clock, pause, ids, environment and a log. Tests give their own."""

from __future__ import annotations

import os
import sys
import time
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import Any, TextIO

from glue_jobs.core.printable import json_text

Log = Callable[[str, Mapping[str, Any]], None]  # (event, what is known of it)


@dataclass(frozen=True)
class Host:
    """now: aware, UTC. new_id: a fresh run id. log: (event, details); also called by the threads that read job output."""

    now: Callable[[], datetime]
    wait: Callable[[float], None]
    new_id: Callable[[], str]
    variables: Mapping[str, str]
    log: Log


def this_machine(log: Log) -> Host:
    """The real clock, pause, ids and environment."""
    return Host(
        now=lambda: datetime.now(timezone.utc),
        wait=time.sleep,
        new_id=lambda: f"{datetime.now(timezone.utc):%Y%m%dT%H%M%S}-{uuid.uuid4().hex[:8]}",
        variables=os.environ,
        log=log,
    )


def json_log(stream: TextIO | None = None) -> Log:
    """A log of JSON lines; default stderr."""

    def write(event: str, details: Mapping[str, Any]) -> None:
        line = {"time": datetime.now(timezone.utc).isoformat(timespec="milliseconds"), "event": event, **details}
        print(json_text(line), file=stream or sys.stderr, flush=True)

    return write
