"""A real Python 3.9 with the wheel in it, as Glue's Python shell has it."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.machine import find_python39
from tests.runtimes.environments import environment_of

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
    """The Python of a virtual environment that holds boto3 alone."""
    found = find_python39()
    assert found is not None, "tests/conftest.py leaves these files out where there is no Python 3.9"
    return environment_of(found, f"python3.9-{boto3}", (boto3,)) / "python"
