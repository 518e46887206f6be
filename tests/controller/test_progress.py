"""What goes to stderr while runs go on."""

from __future__ import annotations

import io
from collections.abc import Mapping
from typing import Any

import pytest

from controller.cli.progress import BarProgress, LineProgress, sentence, shorter

RUN: Mapping[str, Any] = {"job": "LoadInitial", "run": "run-1", "tables": ["b/s/a/", "b/s/b/"]}


@pytest.mark.parametrize(
    ("event", "details", "text"),
    [
        ("planned", {"tables": 3, "runs": 2}, "3 table(s), 2 run(s) to start"),
        ("planned", {"tables": 3, "runs": 0}, ""),
        ("run-started", RUN, "LoadInitial run run-1 started: 2 tables"),
        ("run-started", {**RUN, "tables": ["b/s/a/"]}, "LoadInitial run run-1 started: b/s/a/"),
        ("run-ended", {**RUN, "state": "FAILED", "message": "exit code 1\na trace"}, "LoadInitial run run-1 ended: FAILED exit code 1"),
        ("run-ended", {**RUN, "state": "SUCCEEDED", "message": ""}, "LoadInitial run run-1 ended: SUCCEEDED"),
        ("run-state", {**RUN, "state": "RUNNING", "known": True}, ""),
        ("run-state", {**RUN, "state": "ODD", "known": False}, "LoadInitial run run-1 is in the unknown state 'ODD', waiting on"),
        ("something-new", RUN, ""),
    ],
)
def test_sentence(event: str, details: Mapping[str, Any], text: str) -> None:
    """An event in one short line; nothing for what only programs want."""
    assert sentence(event, details) == text


def test_long_messages_are_cut() -> None:
    """The report has all of it."""
    assert len(sentence("run-ended", {**RUN, "state": "FAILED", "message": "x" * 5000})) < 300


@pytest.mark.parametrize(
    ("line", "text"),
    [
        ('{"time": "t", "run": "r", "table": "b/s/a/", "phase": "work", "files": 3}', "b/s/a/ work files=3"),
        ("plain words", "plain words"),
        ("3", "3"),
        ("", ""),
    ],
)
def test_shorter(line: str, text: str) -> None:
    """A job's log line as words, anything else as it is."""
    assert shorter(line) == text


def test_lines_for_a_pipe() -> None:
    """Events as sentences, a job's output verbatim."""
    stream = io.StringIO()
    log = LineProgress(stream)

    log("run-started", RUN)
    log("output", {"run": "run-1", "line": '{"phase": "work"}'})
    log("run-state", {**RUN, "state": "RUNNING", "known": True})
    log.close()

    assert stream.getvalue().splitlines() == ["LoadInitial run run-1 started: 2 tables", '{"phase": "work"}']


class Broken(io.StringIO):
    """A stream that takes nothing; tries: how often it was asked to."""

    def __init__(self, error: OSError) -> None:
        super().__init__()
        self.error, self.tries = error, 0

    def write(self, text: str) -> int:
        self.tries += 1
        raise self.error


@pytest.mark.parametrize("error", [BrokenPipeError(32, "Broken pipe"), OSError(28, "No space left on device")], ids=["pipe", "disk"])
def test_a_log_that_can_not_be_written_is_silent_for_good(error: OSError) -> None:
    """The runs of which it tells go on."""
    stream = Broken(error)
    log = LineProgress(stream)

    for _ in range(3):
        log("run-started", RUN)
        log("output", {"run": "run-1", "line": "words"})
    log.close()

    assert stream.tries == 1


def test_bars_on_a_terminal_that_is_gone_hold_up_no_run() -> None:
    """As of a closed window: each write fails, and so does the end."""
    stream = Broken(OSError(5, "Input/output error"))
    log = BarProgress(stream)

    log("run-started", RUN)
    log("output", {"run": "run-1", "line": "words"})
    log("run-ended", {**RUN, "state": "SUCCEEDED", "message": ""})
    log.close()

    assert stream.tries


def test_bars_for_a_terminal() -> None:
    """The bar counts tables; output scrolls above it, brackets in it are no markup."""
    stream = io.StringIO()
    log = BarProgress(stream)

    log("run-started", RUN)
    log("run-started", {**RUN, "run": "run-2", "tables": ["b/s/c/"]})
    log("output", {"run": "run-1", "line": "[bold]words"})
    log("run-ended", {**RUN, "state": "SUCCEEDED", "message": ""})
    task = log._progress.tasks[0]
    log.close()

    assert (task.completed, task.total) == (2, 3)
    assert "[bold]words" in stream.getvalue()
