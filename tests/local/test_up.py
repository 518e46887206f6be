"""`dmslake up`: prints what works, stays, and stops cleanly."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from infra.local.session import embedded_client

ROOT = Path(__file__).parents[2]
UP = "import sys; from infra.local.up import run_up; sys.exit(run_up(lambda line: print(line, flush=True), schedule=True))"


class Up:
    """A running `dmslake up` and what it has printed."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process
        self.lines: list[str] = []
        assert process.stdout is not None
        for line in process.stdout:
            self.lines.append(line.rstrip("\n"))
            if "Ctrl-C" in line:
                break

    @property
    def commands(self) -> list[str]:
        """The `aws` commands."""
        return [line for line in self.lines if line.startswith("aws ")]

    @property
    def port(self) -> int:
        """The server's."""
        return urlsplit(re.findall(r"http://\S+\d", self.lines[0])[0]).port or 0

    def shell(self, command: str) -> subprocess.CompletedProcess[str]:
        """Pastes everything that was printed before the commands into a shell, then one command."""
        before = self.lines[: self.lines.index(self.commands[0])]
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        return subprocess.run(
            ["/bin/sh", "-ec", "\n".join([*before, command])],
            env={"PATH": path, "AWS_PROFILE": "of-the-shell", "AWS_PAGER": ""},
            capture_output=True,
            text=True,
            timeout=120,
        )


@pytest.fixture
def up() -> Iterator[Up]:
    """`dmslake up`, as the command calls it."""
    process = subprocess.Popen(
        [sys.executable, "-c", UP],
        env={**os.environ, "PYTHONPATH": str(ROOT), "AWS_PROFILE": "of-the-shell"},
        stdout=subprocess.PIPE,
        text=True,
    )
    running = Up(process)
    yield running
    process.terminate()
    process.wait(60)
    assert process.stdout is not None
    process.stdout.close()


def test_printed_commands_work(up: Up) -> None:
    """A pasted environment and each of the three commands: an edited row, a started run, a listing."""
    edited, started, listed = (up.shell(command) for command in up.commands)
    row = up.shell("aws dynamodb scan --table-name DMSCDC_Controller --output text").stdout
    runs = up.shell("aws glue get-job-runs --job-name Controller --query 'JobRuns[].Id' --output text").stdout

    assert [(edited.returncode, edited.stderr), (started.returncode, started.stderr)] == [(0, ""), (0, "")]
    assert (listed.returncode, listed.stderr, listed.stdout) == (0, "", "")
    assert "dmslake-raw/dms/shop/orders/" in row
    assert "PRIMARYKEY\tid" in row
    assert runs.strip() in started.stdout
    assert runs.startswith("jr_")


def test_schedule_is_looked_at(up: Up) -> None:
    """It is said when the controller is started next; a trigger that is made meanwhile is seen."""
    (stands,) = [line for line in up.lines if line.startswith("# cron(")]
    glue = embedded_client("glue", f"http://127.0.0.1:{up.port}")
    glue.create_trigger(Name="wrong", Type="SCHEDULED", Schedule="cron(x)", StartOnCreation=True, Actions=[{"JobName": "Controller"}])
    assert up.process.stdout is not None

    assert re.fullmatch(r"# cron\(0 \* \* \* \? \*\) \(UTC\) starts Controller, next at \d{4}-\d\d-\d\d \d\d:00", stands)
    assert "'cron(x)' is no schedule" in up.process.stdout.readline()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_signal_stops_it_cleanly(up: Up, number: signal.Signals) -> None:
    """Ctrl-C or SIGTERM: exit code 0, nobody listens any more."""
    before = _answers(up.port)
    up.process.send_signal(number)
    code = up.process.wait(60)

    assert (before, code, _answers(up.port)) == (True, 0, False)


def _answers(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), timeout=5).close()
    except OSError:
        return False
    return True
