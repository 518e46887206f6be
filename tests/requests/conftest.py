"""The calls of the scenario, played once in a process of its own."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from pathlib import Path

import pytest

from tests.requests.recorder import Call

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="session")
def calls(tmp_path_factory: pytest.TempPathFactory) -> list[Call]:
    """Every request that the jobs, the controller and some commands make."""
    file = tmp_path_factory.mktemp("requests") / "calls"
    done = subprocess.run(
        [sys.executable, "-m", "tests.requests.scenario", str(file)],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )
    assert done.returncode == 0, (done.stdout + done.stderr)[-3000:]
    found: list[Call] = pickle.loads(file.read_bytes())
    return found
