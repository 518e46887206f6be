"""Runs Glue jobs as subprocesses of this machine, and remembers what became of each run.

States: STARTING → RUNNING → SUCCEEDED | FAILED | TIMEOUT, and STOPPING → STOPPED after BatchStopJobRun. One thread
watches each process. A run is a process group of its own: what the script left behind (a JVM) ends with it.
"""

from __future__ import annotations

import collections
import contextlib
import datetime
import functools
import os
import secrets
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from infra.local import job_process
from infra.local.job_process import PYTHON_SHELL, Runtime

UNFINISHED = frozenset({"STARTING", "RUNNING", "STOPPING"})
_LOG_TAIL_LINES = 400
_END_SECONDS = 10.0


class RunRefused(Exception):
    """A request about runs that Glue answers with an error; `code` is the name of Glue's exception."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


@dataclass(frozen=True)
class JobDefinition:
    """What StartJobRun needs to know of a job."""

    name: str
    command: str
    script_location: str
    default_arguments: Mapping[str, str]
    non_overridable_arguments: Mapping[str, str]
    max_concurrent_runs: int
    timeout_minutes: float


@dataclass
class JobRun:
    """One run. Written under the runner's lock only; `log_file` is `<log folder>/<run id>.log`, standard output and error."""

    run_id: str
    job: JobDefinition
    arguments: dict[str, str]
    timeout_minutes: float
    log_file: Path
    started_on: datetime.datetime
    state: str = "STARTING"
    last_modified_on: datetime.datetime | None = None
    completed_on: datetime.datetime | None = None
    error_message: str | None = None
    process: subprocess.Popen[bytes] | None = field(default=None, repr=False)

    @property
    def execution_seconds(self) -> int:
        """Whole seconds since the start, until the end."""
        return round(((self.completed_on or _now()) - self.started_on).total_seconds())


class JobRunner:
    """All runs of one embedded AWS. `fetch_script` copies an `s3://` script to a local file."""

    def __init__(self, runtime: Runtime, fetch_script: Callable[[str, Path], None]) -> None:
        self.log_folder = runtime.folder / "logs"
        self.log_folder.mkdir(parents=True, exist_ok=True)
        self._runtime = runtime
        self._fetch_script = fetch_script
        self._runs: dict[str, list[JobRun]] = collections.defaultdict(list)
        self._threads: list[threading.Thread] = []
        self._lock = threading.RLock()
        self._closed = False

    def start(self, job: JobDefinition, given: Mapping[str, str], timeout_minutes: float | None) -> JobRun:
        """Starts a run and returns at once. Refused: as many runs unfinished as the job allows."""
        with self._lock:
            if self._closed:
                raise RunRefused("InternalServiceException", "the embedded AWS is stopping")
            unfinished = sum(run.state in UNFINISHED for run in self._runs[job.name])
            if unfinished >= job.max_concurrent_runs:
                raise RunRefused("ConcurrentRunsExceededException", f"Concurrent runs exceeded for {job.name}")
            run_id = f"jr_{secrets.token_hex(32)}"
            run = JobRun(
                run_id=run_id,
                job=job,
                arguments=job_process.merged_arguments(job.default_arguments, given, job.non_overridable_arguments),
                timeout_minutes=timeout_minutes or job.timeout_minutes,
                log_file=self.log_folder / f"{run_id}.log",
                started_on=_now(),
            )
            self._runs[job.name].append(run)
            thread = threading.Thread(target=self._supervise, args=(run,), name=f"{job.name} {run_id[:9]}", daemon=True)
            self._threads.append(thread)
            thread.start()
            return run

    def get(self, job_name: str, run_id: str) -> JobRun:
        """The run; refused if there is none."""
        with self._lock:
            for run in self._runs[job_name]:
                if run.run_id == run_id:
                    return run
        raise RunRefused("EntityNotFoundException", f"Job run {run_id} of job {job_name} not found.")

    def runs(self, job_name: str) -> list[JobRun]:
        """All runs of a job, the newest first."""
        with self._lock:
            return list(reversed(self._runs[job_name]))

    def stop(self, run: JobRun) -> None:
        """Kills the run's processes; its state is STOPPED once they are gone. Refused for a run that has ended."""
        with self._lock:
            if run.state not in UNFINISHED:
                raise RunRefused("InvalidInputException", f"Job run {run.run_id} has ended: {run.state}")
            self._change(run, "STOPPING")
            _kill(run.process)

    def close(self) -> None:
        """Stops every unfinished run and waits until all have ended."""
        with self._lock:
            self._closed = True
            threads = list(self._threads)
            for run in (run for runs in self._runs.values() for run in runs if run.state in UNFINISHED):
                self.stop(run)
        for thread in threads:
            thread.join(_END_SECONDS)

    def _supervise(self, run: JobRun) -> None:
        scratch = self._runtime.folder / "scratch" / run.run_id
        try:
            scratch.mkdir(parents=True)
            with run.log_file.open("ab") as log:
                state, message = self._run(run, scratch, log)
        # No process: script not found, no Java …; Glue shows a run that could not start so.
        except Exception as error:  # noqa: BLE001
            state, message = "FAILED", f"{type(error).__name__}: {error}"
        finally:
            shutil.rmtree(scratch, ignore_errors=True)
        with self._lock:
            if run.state == "STOPPING":
                state, message = "STOPPED", None
            run.completed_on = _now()
            run.error_message = message
            self._change(run, state)

    def _run(self, run: JobRun, scratch: Path, log: IO[bytes]) -> tuple[str, str | None]:
        command, environment = self._prepare(run, scratch)
        with self._lock:
            if run.state == "STOPPING":
                return "STOPPED", None
            run.process = process = subprocess.Popen(
                command,
                env=environment,
                cwd=scratch,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
            self._change(run, "RUNNING")
        timeout_seconds = run.timeout_minutes * self._runtime.seconds_per_timeout_minute
        try:
            exit_code = process.wait(timeout_seconds)
        except subprocess.TimeoutExpired:
            _kill(process)
            process.wait()
            return "TIMEOUT", f"Job run exceeded its timeout of {run.timeout_minutes:g} minutes"
        _kill(process)
        if exit_code == 0:
            return "SUCCEEDED", None
        return "FAILED", job_process.error_message(_tail(run.log_file), exit_code)

    def _prepare(self, run: JobRun, scratch: Path) -> tuple[list[str], dict[str, str]]:
        job = run.job
        script = self._script(job.script_location, scratch)
        environment = job_process.python_environment(self._runtime, os.environ)
        python = self._runtime.python_shell
        if job.command != PYTHON_SHELL:
            python = sys.executable
            extra_conf = job_process.settings_of_conf_argument(run.arguments.get("--conf", ""))
            environment |= job_process.spark_environment(self._runtime, _java_home(), scratch, extra_conf)
        arguments = {**job_process.arguments_of_glue(job.command, job.name, run.run_id), **run.arguments}
        return job_process.command_line(python, script, arguments), environment

    def _script(self, location: str, scratch: Path) -> Path:
        """A copy of the script, alone in a folder: as on Glue, nothing beside it can be imported by accident."""
        target = scratch / location.rpartition("/")[2]
        if location.startswith("s3://"):
            self._fetch_script(location, target)
            return target
        source = self._runtime.code_folder / location
        if not source.is_file():
            raise FileNotFoundError(f"script {location}: no such file below {self._runtime.code_folder}")
        shutil.copyfile(source, target)
        return target

    def _change(self, run: JobRun, state: str) -> None:
        run.state = state
        run.last_modified_on = _now()


@functools.cache
def _java_home() -> str:
    # Imported when the first Spark job runs: the rest of the embedded AWS needs no Java.
    from glue_jobs.spark.java import find_java_home

    return find_java_home()


def _kill(process: subprocess.Popen[bytes] | None) -> None:
    """Ends all processes of the run, also those that outlived the script."""
    if process is not None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)


def _tail(log_file: Path) -> Sequence[str]:
    with log_file.open(encoding="utf-8", errors="replace") as lines:
        return list(collections.deque(lines, maxlen=_LOG_TAIL_LINES))


def _now() -> datetime.datetime:
    return datetime.datetime.now(datetime.timezone.utc)
