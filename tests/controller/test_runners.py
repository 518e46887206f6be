"""The runner on this machine: a process per run, its arguments, its output and its end."""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from botocore.awsrequest import AWSResponse
from botocore.exceptions import ConnectionClosedError, EndpointConnectionError, HTTPClientError, ReadTimeoutError

from controller.plan import LOAD_INCREMENTAL, LOAD_INITIAL, PlannedRun
from controller.runners import GlueRunner, LocalRunner, Look, NoAnswer, job_arguments
from glue_jobs.aws.clients import Unanswered, make_clients
from glue_jobs.core.arguments import parse_arguments
from glue_jobs.core.limits import Limits
from glue_jobs.core.settings import Settings, read_settings
from tests.controller.world import ScriptedGlue

RUN = PlannedRun(LOAD_INCREMENTAL, ("bucket/dms/shop/a/", "bucket/dms/shop/b/"))
SETTINGS = Settings(raw="s3://bucket/dms/", lake="s3://lake/x/", database="-odd", limits=Limits(batch_files=7))


def end(runner: LocalRunner, job_run: str) -> Look:
    """The run's last look; a minute at most."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        look = runner.look(RUN, job_run)
        if look.has_ended:
            return look
        time.sleep(0.01)
    raise AssertionError("the run did not end")


def start(folder: Path, script: str, lines: list[tuple[str, str]], variables: dict[str, str] | None = None) -> tuple[LocalRunner, str]:
    (folder / "load_incremental.py").write_text(script, "utf-8")
    runner = LocalRunner(SETTINGS, {**os.environ, **(variables or {})}, lambda run, line: lines.append((run, line)), folder)
    return runner, runner.start(RUN, "run-1")


def test_the_script_gets_settings_and_environment(tmp_path: Path) -> None:
    """argv has paths, run id and settings; the environment is this one, and our modules can be imported."""
    lines: list[tuple[str, str]] = []
    script = (
        "import sys, os, json, glue_jobs.core.settings\nprint(json.dumps([sys.argv[1:], os.environ['MARK'], os.environ['DMSLAKE_RUNNER']]))"
    )

    runner, job_run = start(tmp_path, script, lines, {"MARK": "here"})
    look = end(runner, job_run)
    runner.close()

    assert look == Look("SUCCEEDED")
    ((run_id, line),) = lines
    argv, mark, runs_on = json.loads(line)
    assert (run_id, mark, runs_on) == ("run-1", "here", "local")
    settings = read_settings(parse_arguments(argv), {})
    assert (settings.paths, settings.run_id) == (RUN.paths, "run-1")
    assert (settings.lake, settings.database, settings.limits) == (SETTINGS.lake, "-odd", SETTINGS.limits)


def test_output_is_passed_on_and_a_failure_has_its_last_words(tmp_path: Path) -> None:
    """stdout and stderr reach the caller line by line; the message of a failed run is its exit code and last lines."""
    lines: list[tuple[str, str]] = []
    script = "import sys\nprint('out')\nprint('first\\nsecond', file=sys.stderr)\nsys.exit(4)"

    runner, job_run = start(tmp_path, script, lines)
    look = end(runner, job_run)
    runner.close()

    assert sorted(line for _, line in lines) == ["first", "out", "second"]
    assert (look.state, look.exit_code) == ("FAILED", 4)
    assert look.message.splitlines()[0] == "exit code 4"
    assert "second" in look.message


def test_a_run_whose_output_nobody_takes_goes_on(tmp_path: Path) -> None:
    """Its pipe is emptied all the same: it would wait at a full one for ever, and keep its tables' leases."""

    def broken(run: str, line: str) -> None:
        raise BrokenPipeError(32, "Broken pipe")

    (tmp_path / "load_incremental.py").write_text("for number in range(3000):\n    print(number, 'x' * 100)", "utf-8")
    runner = LocalRunner(SETTINGS, os.environ, broken, tmp_path)
    look = end(runner, runner.start(RUN, "run-1"))
    runner.close()

    assert look == Look("SUCCEEDED")


def test_a_killed_run_says_so(tmp_path: Path) -> None:
    """A signal is no exit code."""
    runner, job_run = start(tmp_path, "import os, signal\nos.kill(os.getpid(), signal.SIGKILL)", [])

    look = end(runner, job_run)
    runner.close()

    assert (look.state, look.message) == ("FAILED", "killed by signal 9")


def test_close_ends_what_still_runs(tmp_path: Path) -> None:
    """An interrupted controller leaves no process behind."""
    lines: list[tuple[str, str]] = []
    runner, job_run = start(tmp_path, "import os, time\nprint(os.getpid(), flush=True)\ntime.sleep(600)", lines)
    deadline = time.monotonic() + 60
    while not lines and time.monotonic() < deadline:
        time.sleep(0.01)
    assert runner.look(RUN, job_run) == Look("RUNNING")

    runner.close()

    with pytest.raises(ProcessLookupError):
        os.kill(int(lines[0][1]), 0)
    assert runner.look(RUN, job_run).exit_code == -15


def test_arguments_leave_out_what_a_job_has_no_use_for() -> None:
    """Neither the controller's settings nor defaults of limits travel."""
    names = set(parse_arguments(job_arguments(SETTINGS, RUN, "run-1")))

    assert names == {"path", "run_id", "lake", "state_table", "database", "compression", "batch_files"}


def test_no_more_processes_than_cores_bear(tmp_path: Path) -> None:
    """A run's JVM takes all cores; the setting bounds it too."""
    few = LocalRunner(Settings(limits=Limits(max_concurrent_runs=1)), {}, lambda run, line: None, tmp_path)
    many = LocalRunner(Settings(limits=Limits(max_concurrent_runs=10_000)), {}, lambda run, line: None, tmp_path)

    assert few.most_runs == 1
    assert 1 <= many.most_runs <= max(1, (os.cpu_count() or 1) // 2)


def test_the_scripts_of_the_package_are_run(tmp_path: Path) -> None:
    """Without a folder of its own the runner takes the entry scripts beside glue_jobs, with this Python."""
    runner = LocalRunner(SETTINGS, {}, lambda run, line: None)

    assert runner._scripts == Path(sys.modules["glue_jobs"].__file__ or "").parent


def test_glue_settings() -> None:
    """As many runs and as long a pause as the settings say, and never less than one run."""
    runner = GlueRunner(ScriptedGlue(), Settings(limits=Limits(max_concurrent_runs=0, wait_seconds=3)))

    assert (runner.most_runs, runner.pause_seconds) == (1, 3)


def test_a_start_without_an_answer_is_told_from_one_that_reached_nobody() -> None:
    """The first may have started the run; where nothing was sent, nothing was started."""
    unreached = EndpointConnectionError(endpoint_url="https://glue")
    runner = GlueRunner(ScriptedGlue(starts=[Unanswered("lost"), unreached]), Settings(job_prefix="prod-"))

    with pytest.raises(NoAnswer, match="whether it starts a run of prod-LoadIncremental"):
        runner.start(RUN, "run-1")
    with pytest.raises(EndpointConnectionError):
        runner.start(RUN, "run-1")


class HTTPStatusError(Exception):
    """An answer with this status."""

    def __init__(self, status: int) -> None:
        super().__init__(f"HTTP {status}")
        self.status = status


@pytest.mark.parametrize(
    "error",
    [
        ReadTimeoutError(endpoint_url="https://glue"),
        ConnectionClosedError(endpoint_url="https://glue"),
        HTTPClientError(error="the connection broke"),
        HTTPStatusError(500),
        HTTPStatusError(503),
    ],
    ids=str,
)
def test_a_start_without_an_answer_is_not_sent_again_by_the_client(error: Exception) -> None:
    """What a later attempt met would hide that the first one may have started a run. One that reached nobody is made again."""
    clients = make_clients({"AWS_ACCESS_KEY_ID": "k", "AWS_SECRET_ACCESS_KEY": "s", "AWS_ENDPOINT_URL": "http://127.0.0.1:9"})
    clients.max_attempts = 3
    answers = [EndpointConnectionError(endpoint_url="https://glue"), error, EndpointConnectionError(endpoint_url="https://glue")]

    def answer(**_: Any) -> AWSResponse:
        said = answers.pop(0)
        if isinstance(said, HTTPStatusError):
            return AWSResponse("https://glue", said.status, {}, SimpleNamespace(stream=lambda **_: iter([b"{}"])))
        raise said

    clients.glue.meta.events.register("before-send.glue.StartJobRun", answer)
    with pytest.raises(NoAnswer, match="whether it starts a run of LoadIncremental"):
        GlueRunner(clients.glue, SETTINGS).start(RUN, "run-1")

    assert len(answers) == 1


def test_a_start_that_glue_puts_off_is_sent_again_by_the_client() -> None:
    """It refused it: nothing was started, and the next attempt is the first that counts."""
    clients = make_clients({"AWS_ACCESS_KEY_ID": "k", "AWS_SECRET_ACCESS_KEY": "s", "AWS_ENDPOINT_URL": "http://127.0.0.1:9"})
    answers = [(400, b'{"__type": "ThrottlingException"}'), (200, b'{"JobRunId": "jr_1"}')]

    def answer(**_: Any) -> AWSResponse:
        status, body = answers.pop(0)
        return AWSResponse("https://glue", status, {}, SimpleNamespace(stream=lambda **_: iter([body])))

    clients.glue.meta.events.register("before-send.glue.StartJobRun", answer)

    assert (GlueRunner(clients.glue, SETTINGS).start(RUN, "run-1"), answers) == ("jr_1", [])


@pytest.mark.parametrize("job", [LOAD_INITIAL, LOAD_INCREMENTAL])
def test_arguments_are_the_same_for_both_jobs(job: str) -> None:
    """A run's paths are one argument, separated by commas."""
    assert job_arguments(SETTINGS, PlannedRun(job, RUN.paths), "r")[0] == "--path=bucket/dms/shop/a/,bucket/dms/shop/b/"


def test_sparks_own_progress_bar_is_left_out(tmp_path: Path) -> None:
    """Spark draws a bar over itself; only the other lines are passed on and kept."""
    lines: list[tuple[str, str]] = []
    script = "import sys\nsys.stderr.write('\\r[Stage 0:>    (0 + 1) / 1][Stage 1:>   (0 + 0) / 2]\\r      \\rdone\\n')\nsys.exit(1)"

    runner, job_run = start(tmp_path, script, lines)
    look = end(runner, job_run)
    runner.close()

    assert [line for _, line in lines] == ["done"]
    assert look.message == "exit code 1\ndone"
