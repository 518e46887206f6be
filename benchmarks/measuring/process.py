"""The side of a run that starts a contender's process, asks it for one thing after the other, and measures."""

from __future__ import annotations

import contextlib
import json
import os
import queue
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from benchmarks.data.prepared import Prepared
from benchmarks.folders import ROOT
from benchmarks.measuring.memory import PeakMemory
from benchmarks.server.counts import Counts
from benchmarks.server.stand import Stand

STEP_SECONDS = 1800.0


class StepFailed(RuntimeError):
    """A contender failed, died or took too long; the message is its own."""


@dataclass(frozen=True)
class Step:
    """What one request took. seconds: from the request to the answer, and for the first of a process from its start. peak_bytes: of all
    its processes. counts: what the S3 server was asked meanwhile, None where it does not count."""

    value: Any
    seconds: float
    peak_bytes: int
    counts: Counts | None


class Worker:
    """A contender in a fresh process: `with Worker(…) as worker: worker.ask(…)`. What it prints is added to `log`."""

    def __init__(self, stand: Stand, contender: str, prepared: Prepared, log: Path) -> None:
        self._stand = stand
        self._opening = {
            "name": contender,
            "environment": stand.environment,
            "base": asdict(prepared.base),
            "workload": prepared.workload,
        }
        self._log_path = log

    def __enter__(self) -> Worker:
        self._log_path.parent.mkdir(parents=True, exist_ok=True)
        self._scratch = tempfile.mkdtemp(prefix="bench-")
        self._counted = self._stand.counts()
        self._started: float | None = time.perf_counter()
        with self._log_path.open("ab") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "benchmarks.measuring.worker"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                cwd=ROOT,
                env={**_environment(self._stand.environment), "TMPDIR": self._scratch},
                start_new_session=True,
            )
        self._answers: queue.Queue[str] = queue.Queue()
        threading.Thread(target=self._listen, daemon=True).start()
        self._memory = PeakMemory(self._process.pid)
        return self

    def __exit__(self, *_: object) -> None:
        self._memory.close()
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.close()
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)  # the JVM would outlive its Python
        self._process.wait()
        shutil.rmtree(self._scratch, ignore_errors=True)

    def ask(self, do: str, table: str, batch: int = 0) -> Step:
        """Have the contender do one thing. Raises StepFailed."""
        before = self._stand.counts() if self._started is None else self._counted
        self._memory.take()
        started, self._started = self._started or time.perf_counter(), None
        answer = self._answer({"do": do, "table": table, "batch": batch, "contender": self._opening})
        seconds = time.perf_counter() - started
        after = self._stand.counts()
        counts = after.since(before) if after is not None and before is not None else None
        return Step(answer, seconds, self._memory.take(), counts)

    def _answer(self, request: Mapping[str, Any]) -> Any:
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps(request) + "\n")
            self._process.stdin.flush()
            line = self._answers.get(timeout=STEP_SECONDS)
        except (BrokenPipeError, queue.Empty) as error:
            raise StepFailed(f"no answer to {request['do']} within {STEP_SECONDS:g} s; log: {self._log_path}") from error
        if not line:
            raise StepFailed(f"the process ended during {request['do']}; log: {self._log_path}")
        answer = json.loads(line)
        if "error" in answer:
            raise StepFailed(f"{request['do']}: {answer['error']}")
        return answer["value"]

    def _listen(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._answers.put(line)
        self._answers.put("")


def _environment(servers: Mapping[str, str]) -> dict[str, str]:
    """This process's, less what a person's shell says of AWS and Spark, and with the servers'."""
    dropped = ("AWS_", "SPARK_", "PYSPARK_", "DMSLAKE_", "HADOOP_")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(dropped)}
    return {**kept, **servers, "PYTHONPATH": str(ROOT)}
