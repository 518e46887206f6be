"""Programs of this machine that some tests need and that no Python package brings."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path

NO_PATH = "/usr/local/bin:/usr/bin:/usr/local/sbin:/usr/sbin"
PYTHON39_STARTS = "import sys, venv, ensurepip; sys.exit(sys.version_info[:2] != (3, 9))"


@cache
def find_python39() -> Path | None:
    """The first Python 3.9 that really starts: on PATH or among pyenv's versions. A pyenv shim may refuse to start."""
    return next((path for path in _python39_candidates() if _starts_as_python39(path)), None)


@cache
def find_mariadbd() -> Path | None:
    """MariaDB's server, on PATH or where Debian puts it (which is not on every user's PATH)."""
    found = shutil.which("mariadbd", path=f"{os.environ.get('PATH', '')}:{NO_PATH}")
    return Path(found) if found else None


def _python39_candidates() -> Iterator[Path]:
    for folder in os.environ.get("PATH", NO_PATH).split(os.pathsep):
        yield Path(folder or ".", "python3.9")
    for root in (os.environ.get("PYENV_ROOT"), os.path.expanduser("~/.pyenv")):
        if root:
            yield from sorted(Path(root, "versions").glob("3.9*/bin/python3.9"), reverse=True)


def _starts_as_python39(path: Path) -> bool:
    if not os.access(path, os.X_OK):
        return False
    done = subprocess.run([path, "-c", PYTHON39_STARTS], capture_output=True, timeout=60, check=False)
    return done.returncode == 0
