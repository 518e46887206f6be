"""StartJobRun really runs the job: arguments, environment, states, limits, logs."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from infra.local.embedded import EmbeddedAws, EmbeddedAwsError
from infra.local.job_table import Job
from tests.local.jobs import until


def result_of(aws: EmbeddedAws, run: dict[str, Any]) -> dict[str, Any]:
    """What the job `echo.py` saw."""
    assert run["JobRunState"] == "SUCCEEDED", run
    log = aws.log_file(run["Id"]).read_text()
    return dict(json.loads(log.partition("RESULT ")[2]))


def as_pairs(argv: list[str]) -> dict[str, str]:
    """The arguments after the script, as names and values."""
    return dict(zip(argv[1::2], argv[2::2], strict=True))


def test_given_arguments_lie_over_the_defaults(aws: EmbeddedAws) -> None:
    """A Spark job is given the job's arguments, the run's over them, and Glue's own."""
    run = aws.run_job("Echo", {"--mode": "given", "--path": "a b,c", "--empty": ""})
    given = as_pairs(result_of(aws, run)["argv"])

    assert given == {
        "--JOB_NAME": "Echo",
        "--JOB_ID": "j_Echo",
        "--JOB_RUN_ID": run["Id"],
        "--job-bookmark-option": "job-bookmark-disable",
        "--raw": aws.raw,
        "--lake": aws.lake,
        "--state_table": aws.state_table,
        "--database": aws.database,
        "--wait_seconds": "0.2",
        "--batch": "7",
        "--mode": "given",
        "--path": "a b,c",
        "--empty": "",
    }
    assert {"--mode": "given", "--batch": "7"}.items() <= run["Arguments"].items()


def test_python_shell_job_is_given_no_job_name(aws: EmbeddedAws) -> None:
    """A Python shell script that asks for JOB_NAME would fail on AWS, so it fails here."""
    given = as_pairs(result_of(aws, aws.run_job("Controller"))["argv"])

    assert not [name for name in given if name.startswith("--JOB_")]
    assert given["--state_table"] == aws.state_table


def test_spark_job_finds_java_python_and_four_attempts_in_its_environment(aws: EmbeddedAws) -> None:
    """The environment of a Spark job names the master, the workers' Python, and the server."""
    env = result_of(aws, aws.run_job("Echo"))["env"]

    assert f"--master local[{aws.cores},4] " in env["PYSPARK_SUBMIT_ARGS"].replace("'", "")
    assert env["PYSPARK_SUBMIT_ARGS"].endswith(" pyspark-shell")
    assert "spark.sql.session.timeZone=UTC" in env["PYSPARK_SUBMIT_ARGS"]
    assert env["PYSPARK_PYTHON"] == sys.executable
    assert (Path(env["JAVA_HOME"]) / "bin" / "java").exists()
    assert env["AWS_ENDPOINT_URL"] == aws.endpoint_url


def test_settings_of_the_shell_do_not_reach_a_job(scripts: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A job sees neither the person's AWS profile nor a dmslake setting: on Glue it would not either."""
    for name in ("AWS_PROFILE", "AWS_SESSION_TOKEN", "DMSLAKE_RAW", "SPARK_HOME", "PYTHONSTARTUP"):
        monkeypatch.setenv(name, "of-the-shell")
    monkeypatch.setenv("LANG", "C.UTF-8")
    with EmbeddedAws(jobs=(Job("Controller", "pythonshell", "echo.py", 1),), code_folder=scripts) as aws:
        env = result_of(aws, aws.run_job("Controller"))["env"]

    assert "of-the-shell" not in env.values()
    assert env["LANG"] == "C.UTF-8"


def test_script_runs_alone_in_a_folder_with_shim_and_code_on_the_path(aws: EmbeddedAws, scripts: Path) -> None:
    """Nothing beside the script can be imported by accident; what it needs is on the path."""
    seen = result_of(aws, aws.run_job("Controller"))

    assert Path(seen["argv"][0]).parent == Path(seen["cwd"])
    assert str(scripts) in seen["path"]
    assert any(entry.endswith("awsglue_shim") for entry in seen["path"])
    assert not Path(seen["cwd"]).exists()


def test_run_reads_and_writes_the_server_that_started_it(aws: EmbeddedAws) -> None:
    """boto3 in a job needs no setting."""
    run = aws.run_job("S3")

    assert run["JobRunState"] == "SUCCEEDED", run
    assert aws.client("s3").get_object(Bucket=aws.lake_bucket, Key="from-job")["Body"].read() == b"seen"


def test_spark_job_retries_tasks(aws: EmbeddedAws) -> None:
    """The first attempt of every task fails, the second succeeds; the shim gives session and arguments."""
    run = aws.run_job("Sql", {"--rows": "10"})
    log = aws.log_file(run["Id"]).read_text()

    assert run["JobRunState"] == "SUCCEEDED", log
    assert f"RESULT total=45 master=local[{aws.cores},4] zone=UTC run={run['Id']}" in log


def test_failed_run_shows_the_exception(aws: EmbeddedAws) -> None:
    """ErrorMessage is the last exception; the whole traceback is in the log, whose folder GetJobRun names."""
    run = aws.run_job("Fail")

    assert run["JobRunState"] == "FAILED"
    assert run["ErrorMessage"] == "ValueError: no such table: shop.orders"
    log = (Path(run["LogGroupName"]) / f"{run['Id']}.log").read_text()
    assert log.startswith("before\nTraceback")
    assert run["CompletedOn"] >= run["StartedOn"]


@pytest.mark.parametrize(
    ("code", "state", "message"),
    [
        ("0", "SUCCEEDED", None),
        ("None", "SUCCEEDED", None),
        ("3", "FAILED", "exit code 3"),
        ("'lake bucket has no versioning'", "FAILED", "lake bucket has no versioning"),
        ("__import__('os').kill(__import__('os').getpid(), 9)", "FAILED", "killed by signal 9"),
    ],
)
def test_exit_code_decides(aws: EmbeddedAws, code: str, state: str, message: str | None) -> None:
    """Exit code 0 is success, everything else a failure that says how it ended."""
    run = aws.run_job("Exits", {"--code": code})

    assert (run["JobRunState"], run.get("ErrorMessage")) == (state, message)


def test_missing_script_fails_the_run(aws: EmbeddedAws) -> None:
    """StartJobRun succeeds, the run fails: as on AWS."""
    run = aws.run_job("Missing")

    assert run["JobRunState"] == "FAILED"
    assert "nowhere.py" in run["ErrorMessage"]


def test_script_can_stand_in_a_bucket(aws: EmbeddedAws) -> None:
    """ScriptLocation is an `s3://` address, as deployed jobs have it."""
    aws.client("s3").put_object(Bucket=aws.raw_bucket, Key="code/uploaded.py", Body=b"print('from the bucket')")
    run = aws.run_job("FromBucket")

    assert run["JobRunState"] == "SUCCEEDED", run
    assert aws.log_file(run["Id"]).read_text() == "from the bucket\n"


def test_more_runs_than_allowed_are_refused_and_stopped_runs_make_room(aws: EmbeddedAws) -> None:
    """MaxConcurrentRuns is enforced; BatchStopJobRun ends all processes of a run."""
    glue = aws.client("glue")
    ids = [glue.start_job_run(JobName="Waits")["JobRunId"] for _ in range(2)]
    until(lambda: all(aws.log_file(run_id).exists() and aws.log_file(run_id).read_text() for run_id in ids), "started")
    running = glue.get_job_run(JobName="Waits", RunId=ids[0])["JobRun"]
    with pytest.raises(glue.exceptions.ConcurrentRunsExceededException, match="Concurrent runs exceeded for Waits"):
        glue.start_job_run(JobName="Waits")
    children = [int(aws.log_file(run_id).read_text().split()[1]) for run_id in ids]
    answer = glue.batch_stop_job_run(JobName="Waits", JobRunIds=[*ids, "jr_unknown"])
    ended = [aws.wait_for_run("Waits", run_id) for run_id in ids]
    again = glue.start_job_run(JobName="Waits")["JobRunId"]
    glue.batch_stop_job_run(JobName="Waits", JobRunIds=[again])
    aws.wait_for_run("Waits", again)

    assert running["JobRunState"] == "RUNNING"
    assert "CompletedOn" not in running
    assert [stopped["JobRunId"] for stopped in answer["SuccessfulSubmissions"]] == ids
    assert [error["ErrorDetail"]["ErrorCode"] for error in answer["Errors"]] == ["EntityNotFoundException"]
    assert [(run["JobRunState"], "ErrorMessage" in run) for run in ended] == [("STOPPED", False)] * 2
    until(lambda: not any(_is_running(child) for child in children), "the children of the stopped runs end")


def test_run_that_takes_too_long_is_ended(aws: EmbeddedAws) -> None:
    """A run over its Timeout is TIMEOUT, and its processes are gone."""
    glue = aws.client("glue")
    run_id = glue.start_job_run(JobName="Waits", Timeout=2)["JobRunId"]
    run = aws.wait_for_run("Waits", run_id)

    assert run["JobRunState"] == "TIMEOUT"
    assert run["ErrorMessage"] == "Job run exceeded its timeout of 2 minutes"


def test_job_runs_are_listed_newest_first_in_pages(aws: EmbeddedAws) -> None:
    """GetJobRuns has every run once, over pages."""
    started = [aws.run_job("Exits", {"--code": "0"})["Id"] for _ in range(3)]
    pages = list(aws.client("glue").get_paginator("get_job_runs").paginate(JobName="Exits", PaginationConfig={"PageSize": 2}))
    listed = [run["Id"] for page in pages for run in page["JobRuns"]]

    assert listed[:3] == list(reversed(started))
    assert len(listed) == len(set(listed))
    assert {len(page["JobRuns"]) for page in pages[:-1]} == {2}


def test_unknown_job_and_unknown_run_are_not_found(aws: EmbeddedAws) -> None:
    """Both are EntityNotFoundException, which is what the controller handles."""
    glue = aws.client("glue")

    with pytest.raises(glue.exceptions.EntityNotFoundException, match="NoSuchJob"):
        glue.start_job_run(JobName="NoSuchJob")
    with pytest.raises(glue.exceptions.EntityNotFoundException, match="jr_unknown"):
        glue.get_job_run(JobName="Echo", RunId="jr_unknown")


def test_arguments_that_glue_would_refuse_are_refused(aws: EmbeddedAws) -> None:
    """A list of files as an argument fails here too."""
    glue = aws.client("glue")

    with pytest.raises(glue.exceptions.InvalidInputException, match="262144"):
        glue.start_job_run(JobName="Echo", Arguments={"--files": "f" * 262_144})


def test_stop_of_the_server_ends_its_runs(scripts: Path, tmp_path: Path) -> None:
    """No process of a run outlives the embedded AWS; logs in a given folder stay."""
    aws = EmbeddedAws(jobs=(Job("Waits", "pythonshell", "waits.py", 1),), code_folder=scripts, folder=tmp_path / "work")
    with aws:
        run_id = aws.client("glue").start_job_run(JobName="Waits")["JobRunId"]
        log = aws.log_file(run_id)
        until(lambda: log.exists() and log.read_text().endswith("\n"), "the job started")
        child = int(log.read_text().split()[1])

    until(lambda: not _is_running(child), "the job's child ends")
    assert log.exists()


def test_a_relative_folder_is_one_of_the_person_s(scripts: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run has a working folder of its own, and finds its script all the same; its log is where the person looks."""
    monkeypatch.chdir(tmp_path)
    jobs = (Job("Controller", "pythonshell", "echo.py", 1),)
    with EmbeddedAws(jobs=jobs, code_folder=scripts, folder=Path("work")) as aws:
        run = aws.run_job("Controller")
        seen = result_of(aws, run)

    assert Path(seen["cwd"]).is_relative_to(tmp_path / "work")
    assert (tmp_path / "work" / "logs" / f"{run['Id']}.log").exists()


def test_wait_that_is_too_short_names_the_log(aws: EmbeddedAws) -> None:
    """A wait has a deadline, and says where to look."""
    glue = aws.client("glue")
    run_id = glue.start_job_run(JobName="Waits")["JobRunId"]

    with pytest.raises(EmbeddedAwsError, match=rf"after 0 s; its log: .*{run_id}\.log"):
        aws.wait_for_run("Waits", run_id, timeout_seconds=0)
    glue.batch_stop_job_run(JobName="Waits", JobRunIds=[run_id])
    aws.wait_for_run("Waits", run_id)


def test_python_shell_job_runs_on_the_python_that_was_given(scripts: Path, tmp_path: Path) -> None:
    """`python_shell` replaces the Python of Python shell jobs only."""
    python = tmp_path / "other-python"
    python.write_text(f'#!/bin/sh\necho other python\nexec {sys.executable} "$@"\n')
    python.chmod(0o755)
    jobs = (Job("Shell", "pythonshell", "echo.py", 1), Job("Spark", "glueetl", "echo.py", 1))
    with EmbeddedAws(jobs=jobs, code_folder=scripts, python_shell=str(python)) as aws:
        logs = [aws.log_file(aws.run_job(job.name)["Id"]).read_text() for job in jobs]

    assert [log.startswith("other python\n") for log in logs] == [True, False]


def _is_running(pid: int) -> bool:
    """Whether the process exists and is no zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False
