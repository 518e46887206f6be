"""JSON-line logs of the jobs: one object a line, on stderr, with run id, table, change and phase. Never row values or secrets."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Callable, TextIO


@dataclass(frozen=True)
class JobLog:
    """Writes log lines. `clock` gives the time of a line; json.dumps escapes line breaks, so that a name can't forge a line."""

    run_id: str
    clock: Callable[[], datetime]
    stream: TextIO = field(default_factory=lambda: sys.stderr)
    table: str = ""

    def of(self, table: str) -> JobLog:
        return JobLog(self.run_id, self.clock, self.stream, table)

    def event(self, phase: str, **values: Any) -> None:
        """One line. Values must be numbers, short texts, or lists of them."""
        line = {"time": self.clock().strftime("%Y-%m-%dT%H:%M:%S.%fZ"), "run": self.run_id, "table": self.table, "phase": phase, **values}
        self.stream.write(json.dumps(line, default=str) + "\n")  # in one piece: tables that are worked on at once write here
        self.stream.flush()
