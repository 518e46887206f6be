"""Where figures come from: the machine and the versions of what ran on it."""

from __future__ import annotations

import hashlib
import os
import platform
import re
import subprocess
from datetime import datetime, timezone
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import psutil

from benchmarks.contenders.contender import S3A
from benchmarks.contenders.registry import module_of
from benchmarks.folders import ROOT
from glue_jobs.spark.java import find_java_home

CONTENDERS = ROOT / "benchmarks" / "contenders"
# The code that measures, and that of dmslake with what runs its jobs.
MEASURING = ("benchmarks/data", "benchmarks/measuring", "benchmarks/server")
OURS = ("glue_jobs", "infra/local")
_OTHER_MODULE = re.compile(r"from benchmarks\.contenders\.(\w+) import")
PACKAGES = ("dmslake", "pyspark", "pyarrow", "numpy", "boto3", "deltalake", "duckdb", "moto")


def describe() -> dict[str, str]:
    """What a reader of the figures must know, by name."""
    found = {
        "time": datetime.now(timezone.utc).strftime("%Y-%m-%d %H:%M UTC"),
        "commit": _commit(),
        "cores": f"{os.cpu_count()} × {_processor()}",
        "memory": f"{psutil.virtual_memory().total / 2**30:.0f} GiB",
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "java": find_java_home().rsplit("/", 1)[-1],
    }
    return {**found, **{name: _version(name) for name in PACKAGES}, "hadoop-aws": S3A[0].rsplit(":", 1)[1]}


def program_state(contender: str) -> str:
    """Which program a contender's figures are of: a hash of all code that takes part, as it stands in the working tree. What is committed
    or not does not matter, nor what others or the pages are made of."""
    chosen = {path for folder in MEASURING for path in (ROOT / folder).rglob("*.py")} | _modules_of(contender)
    if contender == "ours":
        chosen |= {path for folder in OURS for path in (ROOT / folder).rglob("*.py")}
    found = hashlib.sha256()
    for path in sorted(chosen):
        found.update(f"{path.relative_to(ROOT)}\0".encode() + path.read_bytes() + b"\0")
    return found.hexdigest()[:12]


def _modules_of(contender: str) -> set[Path]:
    """The contender's own module, and those of the others that it builds upon."""
    found: set[Path] = set()
    waiting = [CONTENDERS / f"{module_of(contender)}.py"]
    while waiting:
        path = waiting.pop()
        if path not in found:
            found.add(path)
            waiting += [CONTENDERS / f"{name}.py" for name in _OTHER_MODULE.findall(path.read_text())]
    return found


def _commit() -> str:
    """`…-dirty` where something but the results is not committed."""
    git = ("git", "-C", str(ROOT))
    dirty = _said(*git, "status", "--porcelain", "--", ".", ":!benchmarks/results")
    return _said(*git, "rev-parse", "--short", "HEAD") + ("-dirty" if dirty else "")


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
