"""What goes to stderr while a command works: bars on a terminal, lines elsewhere."""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, TextIO

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TaskID, TextColumn, TimeElapsedColumn

from glue_jobs.core.printable import printable

MOST_CHARS = 200  # of a message; the report has all of it
SAID = {"run-started": "started", "run-ended": "ended", "back-pressure": "waits", "look-failed": "can't be looked at"}


class LineProgress:
    """A log (see controller.host): one line of text per event, output of job runs as it is.

    Once a line can't be written, because nobody reads any more or a disk is full, it is silent for good: the runs that it tells of go on,
    and must be waited for.
    """

    def __init__(self, stream: TextIO | None = None) -> None:
        self._stream = stream or sys.stderr
        self._is_silent = False
        self._lock = threading.Lock()

    def __call__(self, event: str, details: Mapping[str, Any]) -> None:
        text = printable(str(details["line"])) if event == "output" else sentence(event, details)
        with self._lock:
            if not text or self._is_silent:
                return
            try:
                print(text, file=self._stream, flush=True)
            except OSError:
                self._is_silent = True

    def close(self) -> None:
        """Nothing to end."""


class BarProgress:
    """A log that draws a bar of tables done while job runs go on. Output of job runs scrolls above it. A terminal that is gone holds up
    no run."""

    def __init__(self, stream: TextIO | None = None) -> None:
        console = Console(file=stream or sys.stderr, markup=False, highlight=False)
        columns = (
            SpinnerColumn(),
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("tables"),
            TimeElapsedColumn(),
        )
        self._progress = Progress(*columns, console=console, transient=True)
        self._task: TaskID | None = None
        self._total = 0
        self._running: dict[str, str] = {}
        self._lock = threading.Lock()

    def __call__(self, event: str, details: Mapping[str, Any]) -> None:
        with self._lock, suppress(OSError):
            if event == "output":
                self._progress.console.print(printable(shorter(str(details["line"]))), style="dim")
            elif event == "run-started":
                self._running[str(details["run"])] = str(details["job"])
                self._total += len(details["tables"])
                self._draw(0)
            elif event == "run-ended":
                self._running.pop(str(details["run"]), None)
                self._draw(len(details["tables"]))
            elif sentence(event, details):
                self._progress.console.print(sentence(event, details))

    def _draw(self, done: int) -> None:
        if self._task is None:
            self._progress.start()
            self._task = self._progress.add_task("", total=None)
        words = ", ".join(sorted(set(self._running.values()))) or "waiting"
        self._progress.update(self._task, description=words, total=self._total, advance=done)

    def close(self) -> None:
        with suppress(OSError):
            self._progress.stop()


def make_progress() -> LineProgress | BarProgress:
    """Bars where a person watches."""
    return BarProgress() if sys.stderr.isatty() else LineProgress()


def sentence(event: str, details: Mapping[str, Any]) -> str:
    """An event for people, as one line; '' for one that only programs want."""
    return printable(_words(event, details))


def _words(event: str, details: Mapping[str, Any]) -> str:
    if event == "planned":
        return f"{details['tables']} table(s), {details['runs']} run(s) to start" if details["runs"] else ""
    if event == "run-state":
        return "" if details["known"] else f"{details['job']} run {details['run']} is in the unknown state {details['state']!r}, waiting on"
    if event not in SAID:
        return ""
    message = str(details.get("message") or "").split("\n")[0]
    words = [str(details.get("state") or ""), shorter(message)[:MOST_CHARS]]
    return f"{details['job']} run {details['run']} {SAID[event]}: {' '.join(filter(None, words)) or _tables(details)}"


def _tables(details: Mapping[str, Any]) -> str:
    """The run's only table, or how many it has."""
    tables = details["tables"]
    return str(tables[0]) if len(tables) == 1 else f"{len(tables)} tables"


def shorter(line: str) -> str:
    """A job's JSON log line as words; any other line as it is."""
    try:
        data = json.loads(line)
        words = [str(data.pop("table", "")), str(data.pop("phase", data.pop("event", "")))]
    except (ValueError, AttributeError, TypeError):
        return line
    rest = [f"{name}={value}" for name, value in data.items() if name not in ("time", "run")]
    return " ".join(filter(None, [*words, *rest]))
