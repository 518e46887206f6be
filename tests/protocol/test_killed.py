"""A job that is killed (`kill -9`, a real process) leaves, after the next run, the same lake as one that isn't."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.lake import DRIVER, LakeTable
from tests.protocol.conftest import AFTER, TableMaker
from tests.protocol.killed_job import MOMENTS
from tests.protocol.runs import facts, forget_lease

ROOT = Path(__file__).parent.parent.parent


def prepared(make_table: TableMaker, job: str) -> LakeTable:
    table = make_table()
    table.load([(1, "one"), (2, "two"), (3, "three")])
    if job == "LoadIncremental":
        assert table.run("LoadInitial") == 0
    table.cdc([("U", (1, "ONE")), ("D", (2, None)), ("I", (4, "four"))])
    return table


def run_until_killed(table: LakeTable, job: str, moment: str) -> int:
    """The job in a process of its own; its exit code, −9 if it was killed."""
    settings = {"driver_bytes": DRIVER, "state_table": table.state_table.name, "database": table.environment["DMSLAKE_DATABASE"]}
    argv = ["--path", str(table.path), *(word for name, value in settings.items() for word in (f"--{name}", value))]
    done = subprocess.run(
        [sys.executable, "-m", "tests.protocol.killed_job", job, moment, *argv],
        env={**os.environ, **table.environment, "PYTHONPATH": str(ROOT)},
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == -signal.SIGKILL, done.stderr[-2000:]
    return done.returncode


@pytest.mark.parametrize("job", ["LoadInitial", "LoadIncremental"])
@pytest.mark.parametrize("moment", list(MOMENTS))
def test_after_a_kill_the_next_run_makes_the_same_lake(make_table: TableMaker, job: str, moment: str) -> None:
    """Rows, cursor, folder and state, compared with a table whose job was left alone."""
    undisturbed, killed = prepared(make_table, job), prepared(make_table, job)
    undisturbed.sync()

    run_until_killed(killed, job, moment)
    before = killed.item()
    forget_lease(killed)
    killed.sync()

    assert before["LeaseOwner"]
    assert facts(killed) == facts(undisturbed)
    assert killed.rows() == AFTER
