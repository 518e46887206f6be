"""Where job runs go: to Glue, or to a process on this machine. Both start a run and say how it stands; neither decides."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import threading
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from botocore.exceptions import ClientError

import glue_jobs
from controller.plan import ADOPT, APPLY, BACKFILL, ERASE, LOAD_INCREMENTAL, LOAD_INITIAL, ROLLBACK, SNAPSHOT, PlannedRun
from glue_jobs.aws.clients import Unanswered
from glue_jobs.aws.translate import RETRYABLE, error_code
from glue_jobs.core.errors import ConfigurationError, RetryLater
from glue_jobs.core.limits import Limits
from glue_jobs.core.settings import Settings, setting_names

RUNNING_STATES = frozenset({"STARTING", "RUNNING", "STOPPING", "WAITING"})
ENDED_STATES = frozenset({"SUCCEEDED", "FAILED", "STOPPED", "TIMEOUT", "ERROR", "EXPIRED"})
# Glue's ways to say "not now": too many runs of the job, of the account, or too many requests.
BACK_PRESSURE = RETRYABLE | {"ConcurrentRunsExceededException", "ResourceNumberLimitExceededException", "ServiceUnavailableException"}
LOCAL_SCRIPTS = {
    LOAD_INITIAL: "load_initial.py",
    LOAD_INCREMENTAL: "load_incremental.py",
    ROLLBACK: "rollback.py",
    APPLY: "apply.py",
    ERASE: "erase.py",
    ADOPT: "adopt.py",
    SNAPSHOT: "snapshot.py",
    BACKFILL: "backfill_history.py",
}
LINES_KEPT = 20
SPARK_BAR = re.compile(r"\s*(\[Stage \d+:.*\]\s*)*$")  # Spark's own progress bar, drawn again and again, and what wipes it out
NOT_FOR_JOBS = ("raw", "runner", "job_prefix")  # settings that only the controller uses

OnLine = Callable[[str, str], None]  # (run, line)


class BackPressure(RetryLater):
    """No run can be started just now."""


class NoAnswer(BackPressure):
    """It is not known whether the run was started: the request got no answer. Sent again with the same run id it does no harm, because the
    second run knows by it what the first has done (see glue_jobs.protocol.sent_twice). Snapshot does not: it makes two versions."""


@dataclass(frozen=True)
class Look:
    """How a run stands. state: Glue's word. exit_code: of a local process that ended."""

    state: str
    message: str = ""
    exit_code: int | None = None

    @property
    def is_known(self) -> bool:
        return self.state in RUNNING_STATES or self.state in ENDED_STATES

    @property
    def has_ended(self) -> bool:
        return self.state in ENDED_STATES


class Runner(ABC):
    """Starts job runs and looks at them. most_runs: at once; pause_seconds: between two looks."""

    most_runs: int
    pause_seconds: float

    @abstractmethod
    def start(self, run: PlannedRun, run_id: str) -> str:
        """Start a run and return the id to look it up by. Raises BackPressure if it can't be started now, NoAnswer if it may have been."""

    @abstractmethod
    def look(self, run: PlannedRun, job_run: str) -> Look:
        """How the run stands now."""

    @abstractmethod
    def close(self) -> None:
        """Called when the controller ends, also when it was interrupted."""


class GlueRunner(Runner):
    """Runs of Glue jobs. The settings stand in the jobs' default arguments; a run is given its paths, its id and its own arguments."""

    def __init__(self, glue: Any, settings: Settings) -> None:
        self._glue = glue
        self._prefix = settings.job_prefix
        self.most_runs = max(1, int(settings.limits.max_concurrent_runs))
        self.pause_seconds = settings.limits.wait_seconds

    def start(self, run: PlannedRun, run_id: str) -> str:
        name = self._prefix + run.job
        arguments = {"--path": ",".join(run.paths), "--run_id": run_id, **{f"--{name}": value for name, value in run.arguments}}
        try:
            return str(self._glue.start_job_run(JobName=name, Arguments=arguments)["JobRunId"])
        except Unanswered as error:
            raise NoAnswer(f"Glue did not answer whether it starts a run of {name}: {error}", "connection") from error
        except ClientError as error:
            code = error_code(error)
            if code in BACK_PRESSURE:
                raise BackPressure(f"Glue can't start a run of {name} now: {code}", code) from error
            if code == "EntityNotFoundException":
                raise ConfigurationError(
                    f"there is no Glue job {name}",
                    "no-job",
                    "deploy the jobs, or give the prefix of their names by --job-prefix, or take --runner local",
                ) from error
            raise

    def look(self, run: PlannedRun, job_run: str) -> Look:
        answer = self._glue.get_job_run(JobName=self._prefix + run.job, RunId=job_run)["JobRun"]
        return Look(str(answer.get("JobRunState", "")), str(answer.get("ErrorMessage", "")))

    def close(self) -> None:
        """Nothing: runs that were started go on without the controller."""


class LocalRunner(Runner):
    """Each run a process on this machine, against whatever endpoints are configured.

    A run has a JVM that uses all cores, so that only one runs at a time on up to three cores, and one more for every two further ones.
    """

    def __init__(self, settings: Settings, variables: Mapping[str, str], on_line: OnLine, scripts: Path | None = None) -> None:
        self._settings = settings
        self._variables = dict(variables)
        self._on_line = on_line
        self._scripts = scripts or Path(glue_jobs.__file__).parent
        self._processes: dict[str, tuple[subprocess.Popen[str], threading.Thread, deque[str]]] = {}
        self.most_runs = max(1, min(int(settings.limits.max_concurrent_runs), (os.cpu_count() or 1) // 2))
        self.pause_seconds = min(0.1, settings.limits.wait_seconds)

    def start(self, run: PlannedRun, run_id: str) -> str:
        script = self._scripts / LOCAL_SCRIPTS[run.job]
        process = subprocess.Popen(
            [sys.executable, str(script), *job_arguments(self._settings, run, run_id)],
            env=self._environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            encoding="utf-8",
            errors="replace",
        )
        lines: deque[str] = deque(maxlen=LINES_KEPT)
        reader = threading.Thread(target=self._read, args=(process, run_id, lines), daemon=True)
        reader.start()
        self._processes[run_id] = (process, reader, lines)
        return run_id

    def _environment(self) -> dict[str, str]:
        """This process's environment; the program's own folder is on the module path, installed or not."""
        root = str(Path(glue_jobs.__file__).parent.parent)
        parts = [root, *filter(None, self._variables.get("PYTHONPATH", "").split(os.pathsep))]
        # DMSLAKE_RUNNER tells the entry script that its exit code is read by us, not by Glue.
        return {**self._variables, "PYTHONPATH": os.pathsep.join(parts), "PYTHONUNBUFFERED": "1", "DMSLAKE_RUNNER": "local"}

    def _read(self, process: subprocess.Popen[str], run_id: str, lines: deque[str]) -> None:
        assert process.stdout is not None
        for line in process.stdout:
            text = line.rstrip("\n")
            if SPARK_BAR.match(text):
                continue
            lines.append(text)
            with suppress(OSError):  # nobody can be told, and the pipe is emptied all the same: the run would wait at a full one for ever
                self._on_line(run_id, text)

    def look(self, run: PlannedRun, job_run: str) -> Look:
        process, reader, lines = self._processes[job_run]
        code = process.poll()
        if code is None:
            return Look("RUNNING")
        reader.join(timeout=5)  # a grandchild may hold the pipe open; the run has ended all the same
        return Look("SUCCEEDED") if code == 0 else Look("FAILED", _last_words(code, lines), code)

    def close(self) -> None:
        """Ends the processes that still run: an interrupted controller leaves none behind. What they left is put right by the next run."""
        for process, _, _ in self._processes.values():
            if process.poll() is None:
                process.terminate()
        for process, reader, _ in self._processes.values():
            try:
                process.wait(timeout=10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            reader.join(timeout=5)
            if process.stdout is not None and not reader.is_alive():
                process.stdout.close()


def job_arguments(settings: Settings, run: PlannedRun, run_id: str) -> list[str]:
    """The arguments of a local run: its paths and id, every setting that differs from its default, and its own."""
    values: dict[str, Any] = {}
    for name in setting_names():
        holder = settings.limits if name in _LIMIT_NAMES else settings
        values[name] = getattr(holder, name)
    given = {name: str(value) for name, value in values.items() if value not in ("", None) and name not in NOT_FOR_JOBS}
    pairs = [(name, value) for name, value in given.items() if name not in _LIMIT_NAMES or value != str(getattr(Limits(), name))]
    words = [f"--{name}={value}" for name, value in (*pairs, *run.arguments)]
    return [f"--path={','.join(run.paths)}", f"--run_id={run_id}", *words]


_LIMIT_NAMES = frozenset(item.name for item in fields(Limits))


def _last_words(code: int, lines: Sequence[str]) -> str:
    ended = f"killed by signal {-code}" if code < 0 else f"exit code {code}"
    return "\n".join([ended, *[line for line in lines if line.strip()][-5:]])
