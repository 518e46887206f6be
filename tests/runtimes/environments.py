"""Virtual environments of other Pythons and packages, made once per set of versions and kept in .cache."""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
from pathlib import Path

ROOT = Path(__file__).parents[2]
INSTALL_SECONDS = 600  # pyspark is 300 MB


def environment_of(python: Path, name: str, packages: tuple[str, ...]) -> Path:
    """The `bin` folder of an environment with these packages and nothing else; two sessions wait for each other."""
    digest = hashlib.sha256("\n".join(packages).encode()).hexdigest()[:8]
    folder = ROOT / ".cache" / "runtimes" / f"{name}-{digest}"
    folder.parent.mkdir(parents=True, exist_ok=True)
    executable, stamp = folder / "bin" / "python", folder / "complete"
    with open(f"{folder}.lock", "w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (stamp.exists() and executable.exists()):
            shutil.rmtree(folder, ignore_errors=True)
            call(python, "-m", "venv", folder)
            call(executable, "-m", "pip", "install", "--quiet", *packages)
            stamp.touch()
    return folder / "bin"


def call(executable: Path, *args: str | Path) -> None:
    """Runs that Python, outside our own packages, and fails with all it said."""
    command = [executable, *args]
    env = {name: value for name, value in os.environ.items() if name not in {"PYTHONPATH", "PYTHONHOME"}}
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=INSTALL_SECONDS, check=False)
    assert done.returncode == 0, f"{' '.join(map(str, command))}\n{done.stdout}{done.stderr}"
