"""Starts job runs as processes and reads what they say: for benchmarks of dmslake alone."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.folders import ROOT
from benchmarks.within.requests import Call
from glue_jobs.spark.java import find_java_home
from infra.local.job_process import Runtime, spark_environment


@dataclass(frozen=True)
class JobRun:
    """What one process did. Times are those of time.time; seconds: from its start to its end. spark_seconds: what the start of Spark took,
    by its parts; nothing where none was started."""

    started: float
    began: float
    imported: float
    main: float
    ended: float
    cpu_seconds: float
    peak_bytes: int
    spark_seconds: Mapping[str, float]
    calls: tuple[Call, ...]
    log: str

    @property
    def seconds(self) -> float:
        return self.ended - self.started


def run_job(job: str, environment: Mapping[str, str], paths: str, *, latency_seconds: float = 0.0, **settings: object) -> JobRun:
    """Run glue_jobs/<job>.py for `paths` (the argument --path) in a fresh process; RuntimeError with its log's end if it fails."""
    with tempfile.TemporaryDirectory(prefix="bench-job-") as folder:
        says = Path(folder) / "says.json"
        words = [f"--path={paths}", *(f"--{name}={value}" for name, value in settings.items())]
        variables = {
            **{name: value for name, value in os.environ.items() if not name.startswith(("AWS_", "DMSLAKE_", "SPARK_", "PYSPARK_"))},
            **spark_environment(Runtime(Path(folder), driver_memory="2g"), find_java_home(), Path(folder)),
            **environment,
            "BENCH_STARTED": repr(time.time()),
            "BENCH_LATENCY": repr(latency_seconds),
        }
        command = [sys.executable, "-m", "benchmarks.within.run_job", str(says), job, *words]
        done = subprocess.run(command, env=variables, cwd=ROOT, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise RuntimeError(f"{job} ended with {done.returncode}: {done.stderr[-3000:]}")
        said: dict[str, Any] = json.loads(says.read_text())
    calls = tuple(Call(**call) for call in said.pop("calls"))
    said.pop("code")
    return JobRun(calls=calls, log=done.stderr, **said)
