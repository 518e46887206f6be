"""Programs of this machine that some tests need and that no Python package brings."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path

NO_PATH = "/usr/local/bin:/usr/bin:/usr/local/sbin:/usr/sbin"
STARTS = "import sys, venv, ensurepip; sys.exit('%d.%d' % sys.version_info[:2] != sys.argv[1])"


def find_python39(environment: Mapping[str, str] = os.environ) -> Path | None:
    """The Python of Glue's Python shell."""
    return find_python("3.9", environment)


def find_python(version: str, environment: Mapping[str, str] = os.environ) -> Path | None:
    """The first Python of a version such as 3.9 that really starts: on PATH or among pyenv's. A pyenv shim may refuse to start."""
    return next((path for path in _candidates(version, environment) if _starts_as(version, path)), None)


def find_mariadbd(environment: Mapping[str, str] = os.environ) -> Path | None:
    """MariaDB's server, on PATH or where Debian puts it (which is not on every user's PATH)."""
    found = shutil.which("mariadbd", path=f"{environment.get('PATH', '')}:{NO_PATH}")
    return Path(found) if found else None


def find_chromium(environment: Mapping[str, str] = os.environ) -> tuple[Path, Path] | None:
    """Chromium and the driver of its version, both on PATH or where Debian puts them."""
    path = f"{environment.get('PATH', '')}:{NO_PATH}"
    browser, driver = shutil.which("chromium", path=path), shutil.which("chromedriver", path=path)
    return (Path(browser), Path(driver)) if browser and driver else None


def _candidates(version: str, environment: Mapping[str, str]) -> Iterator[Path]:
    for folder in environment.get("PATH", NO_PATH).split(os.pathsep):
        yield Path(folder or ".", f"python{version}")
    home = environment.get("HOME") or os.path.expanduser("~")
    for root in (environment.get("PYENV_ROOT"), f"{home}/.pyenv"):
        if root:
            yield from sorted(Path(root, "versions").glob(f"{version}.*/bin/python{version}"), reverse=True)


def _starts_as(version: str, path: Path) -> bool:
    if not os.access(path, os.X_OK):
        return False
    done = subprocess.run([path, "-c", STARTS, version], capture_output=True, timeout=60, check=False)
    return done.returncode == 0
