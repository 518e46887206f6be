"""A real Python 3.9 with the wheel in it, as Glue's Python shell has it."""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.machine import find_python39

ROOT = Path(__file__).parents[2]

# The newest boto3 that Python 3.9 can have, and the one that is there before anything is installed (botocore 1.24.21).
NEWEST_BOTO3 = "boto3==1.42.97"
PREINSTALLED_BOTO3 = "boto3==1.21.21"

# What of our own environment must not reach the other Python.
NOT_INHERITED = ("PYTHON", "AWS_", "DMSLAKE_", "VIRTUAL_ENV")


@dataclass(frozen=True)
class Python39:
    """A Python 3.9 whose only packages are boto3 and the wheel, without extras."""

    executable: Path
    packages: Path

    def environment(self, added: Mapping[str, str] | None = None) -> dict[str, str]:
        """This process's environment without its Python and AWS settings, with the wheel on the path."""
        kept = {name: value for name, value in os.environ.items() if not name.startswith(NOT_INHERITED)}
        return {**kept, "PYTHONPATH": str(self.packages), **(added or {})}

    def run39(
        self, code_or_args: str | Sequence[str], env: Mapping[str, str] | None = None, *, timeout_seconds: int = 120
    ) -> subprocess.CompletedProcess[str]:
        """Runs source text, or arguments such as ("-m", "controller.main"), in a folder without our checkout.

        The caller judges `returncode`, `stdout` and `stderr`; nothing is raised but a timeout.
        """
        args = ["-c", code_or_args] if isinstance(code_or_args, str) else list(code_or_args)
        return subprocess.run(
            [self.executable, *args],
            cwd=self.packages,
            env=self.environment(env),
            capture_output=True,
            text=True,
            timeout=timeout_seconds,
            check=False,
        )


def environment_with(boto3: str) -> Path:
    """The Python of a virtual environment that holds boto3 alone, kept in .cache; two sessions wait for each other."""
    folder = ROOT / ".cache" / f"python3.9-{boto3}"
    folder.parent.mkdir(exist_ok=True)
    executable, stamp = folder / "bin" / "python", folder / "complete"
    with open(f"{folder}.lock", "w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (stamp.exists() and executable.exists()):
            found = find_python39()
            assert found is not None, "tests/conftest.py leaves this folder out where there is no Python 3.9"
            shutil.rmtree(folder, ignore_errors=True)
            call(found, "-m", "venv", folder)
            call(executable, "-m", "pip", "install", "--quiet", boto3)
            stamp.touch()
    return executable


def call(executable: Path, *args: str | Path) -> None:
    """Runs that Python, outside our own packages, and fails with all it said."""
    command = [executable, *args]
    env = {name: value for name, value in os.environ.items() if name not in {"PYTHONPATH", "PYTHONHOME"}}
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=240, check=False)
    assert done.returncode == 0, f"{' '.join(map(str, command))}\n{done.stdout}{done.stderr}"
