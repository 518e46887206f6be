"""Where figures come from: the machine and the versions of what ran on it."""

from __future__ import annotations

import os
import platform
import subprocess
from datetime import datetime, timezone
from importlib.metadata import PackageNotFoundError, version

import psutil

from benchmarks.folders import ROOT
from glue_jobs.spark.java import find_java_home

PACKAGES = ("dmslake", "pyspark", "pyarrow", "numpy", "boto3", "deltalake", "duckdb", "moto")


def describe() -> dict[str, str]:
    """What a reader of the figures must know, by name."""
    found = {
        "time": datetime.now(timezone.utc).strftime("%Y-%m-%d %H:%M UTC"),
        "commit": _said("git", "-C", str(ROOT), "describe", "--always", "--dirty"),
        "cores": f"{os.cpu_count()} × {_processor()}",
        "memory": f"{psutil.virtual_memory().total / 2**30:.0f} GiB",
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "java": find_java_home().rsplit("/", 1)[-1],
    }
    return {**found, **{name: _version(name) for name in PACKAGES}}


def program_state() -> str:
    """Which dmslake this is: the same for two commits that differ elsewhere, such as in docs. `…-dirty` with changes not committed."""
    dirty = _said("git", "-C", str(ROOT), "status", "--porcelain", "--", "glue_jobs")
    return _said("git", "-C", str(ROOT), "rev-parse", "--short", "HEAD:glue_jobs") + ("-dirty" if dirty else "")


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"


def _said(*command: str) -> str:
    try:
        return subprocess.run(command, capture_output=True, text=True, timeout=20, check=True).stdout.strip()
    except (OSError, subprocess.SubprocessError):
        return "unknown"


def _processor() -> str:
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as lines:
            return next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), platform.machine())
    except OSError:
        return platform.processor() or platform.machine()
