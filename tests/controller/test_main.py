"""The Glue job Controller: argv to report lines and exit code."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from controller.host import Host
from controller.main import job_settings, main
from glue_jobs.core.errors import UsageError
from tests.controller.world import World, table_path

ORDERS, STORES = table_path("orders"), table_path("stores")
LOAD = "LOAD00000001.parquet"
ARGV = [
    "--raw",
    "s3://raw-bucket/dms/",
    "--lake=s3://lake-bucket/lake/",
    "--wait_seconds=0",
    "--JOB_NAME",
    "Controller",
    "--job-language",
    "python",
]


@pytest.fixture
def jobs(world: World) -> World:
    """A world with the two jobs."""
    for name in ("LoadInitial", "LoadIncremental"):
        world.clients.glue.create_job(Name=name, Role="r", Command={"Name": "glueetl", "ScriptLocation": "s3://x/y.py"})
    return world


def run_main(
    world: World, capsys: pytest.CaptureFixture[str], argv: list[str], job: Callable[[], None] = lambda: None
) -> tuple[int, list[Any]]:
    """The exit code and stdout's lines; `job` acts at the first pause, when the runs have been started."""
    host = world.host(lambda seconds: job())
    code = main(argv, host)
    return code, [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def test_a_run_reports_line_by_line(jobs: World, capsys: pytest.CaptureFixture[str]) -> None:
    """A line per table and one with the totals, each a JSON object with the report's version, then one for CloudWatch; fine is 0."""
    jobs.put_raw(ORDERS, LOAD)
    jobs.put_item(ORDERS)
    jobs.put_raw(STORES, LOAD)

    code, lines = run_main(jobs, capsys, ARGV, lambda: jobs.write_result(str(ORDERS), "run-1", inserted=3))

    assert code == 0
    assert [line.get("report") for line in lines] == [1, 1, 1, None]
    assert [line["table"]["outcome"] for line in lines[:2]] == ["committed", "inactive"]
    assert lines[0]["table"]["inserted"] == 3
    assert lines[2]["totals"]["committed"] == 1
    assert lines[2]["exit_code"] == 0
    assert [lines[3][name] for name in ("Installation", "Runs", "TablesFailed")] == ["DMSCDC_Controller", 1, 0]


def test_a_failed_table_fails_the_job(jobs: World, capsys: pytest.CaptureFixture[str]) -> None:
    """A run without a result is a failure, so that the Glue run is FAILED."""
    jobs.put_raw(ORDERS, LOAD)
    jobs.put_item(ORDERS)

    code = main(ARGV, jobs.host())

    printed = capsys.readouterr()
    assert code == 1
    assert json.loads(printed.out.splitlines()[0])["table"]["error"]["code"] == "no-result"
    assert printed.err.splitlines()[-1].startswith(f"1 of 1 table(s) failed, first {ORDERS} failed: ")


def test_a_held_lease_does_not_fail_the_job(jobs: World, capsys: pytest.CaptureFixture[str]) -> None:
    """A second controller is harmless and must not raise alarms."""
    jobs.put_raw(ORDERS, LOAD)
    jobs.put_item(ORDERS, LeaseOwner="another")

    code, lines = run_main(jobs, capsys, ARGV)

    assert code == 0
    assert lines[0]["table"]["outcome"] == "lease-held"
    assert lines[1]["exit_code"] == 4


def test_only_the_given_paths(jobs: World, capsys: pytest.CaptureFixture[str]) -> None:
    """--path limits the run, as it does on the command line."""
    for path in (ORDERS, STORES):
        jobs.put_item(path)

    _, lines = run_main(jobs, capsys, [*ARGV, f"--path={STORES}"])

    assert [line["table"]["path"] for line in lines[:-1]] == [str(STORES)]


@pytest.mark.parametrize(
    ("argv", "code", "name"),
    [
        ([], 3, "missing-setting"),
        (["--raw", "s3://raw-bucket/dms/"], 3, "missing-setting"),
        ([*ARGV, "--runner", "moon"], 2, "bad-setting"),
        (["stray"], 2, "bad-argument"),
        ([*ARGV, "--path", "nowhere"], 2, "unknown-table"),
        (["--raw", "s3://no-such-bucket/", "--lake", "s3://lake-bucket/"], 3, "no-bucket"),
        (["--raw", "s3://raw-bucket/", "--lake", "s3://raw-bucket/lake/"], 3, "bucket-not-versioned"),
        ([*ARGV, "--runner=local"], 3, "missing-setting"),
    ],
)
def test_errors_are_words_and_codes(world: World, capsys: pytest.CaptureFixture[str], argv: list[str], code: int, name: str) -> None:
    """A wrong call is 2, configuration is 3; the error is a JSON line on stdout and the last line of stderr."""
    found = main(argv, world.host())

    printed = capsys.readouterr()
    (line,) = printed.out.splitlines()
    assert (found, json.loads(line)["error"]["code"], json.loads(line)["exit_code"]) == (code, name, code)
    assert json.loads(line)["error"]["message"] in printed.err.splitlines()[-1]


def test_wrong_credentials_are_configuration(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    """An unknown profile is said in words."""
    host = replace(world.host(), variables={"AWS_PROFILE": "nobody-has-this", "AWS_REGION": "us-east-1"})

    assert main(ARGV, host) == 3
    assert "nobody-has-this" in capsys.readouterr().err


def test_a_defect_has_its_trace_in_the_log(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    """What nobody foresaw exits with 1 and can be found."""

    def broken() -> str:
        raise ZeroDivisionError("a defect")

    world.put_item(ORDERS, Publishing="x", Head="x")
    host: Host = replace(world.host(), new_id=broken)

    assert main(ARGV, host) == 1
    assert "a defect" in capsys.readouterr().err
    assert any("ZeroDivisionError" in details.get("trace", "") for _, details in world.events)


def test_the_samples_arguments_are_understood() -> None:
    """--bucket and --prefix of the AWS sample are the raw folder."""
    settings = job_settings(["--bucket", "raw-bucket", "--prefix", "dms/", "--lake", "s3://lake-bucket/"], {})

    assert settings.raw == "s3://raw-bucket/dms"


def test_environment_stands_behind_arguments() -> None:
    """DMSLAKE_… variables fill what no argument gives."""
    settings = job_settings(["--lake", "s3://a-lake/"], {"DMSLAKE_LAKE": "s3://other/", "DMSLAKE_RAW": "s3://raw-bucket/"})

    assert (settings.lake, settings.raw) == ("s3://a-lake/", "s3://raw-bucket/")


@pytest.mark.parametrize("path", ["", " ", " , ", "\t"])
def test_an_empty_path_is_not_all_tables(path: str) -> None:
    """As of a variable that is not set."""
    with pytest.raises(UsageError, match="--path is empty"):
        job_settings(["--path", path, "--lake", "s3://a-lake/"], {})


def test_a_bad_raw_is_refused() -> None:
    """Not an S3 address."""
    with pytest.raises(UsageError):
        job_settings(["--raw", "raw-bucket/dms"], {})


def test_nothing_of_the_command_line_is_needed() -> None:
    """A Python shell has neither click nor rich."""
    names = ["click", "rich", "pyspark", "pyarrow", "moto"]
    code = f"import sys, controller.main; print([name for name in {names} if name in sys.modules])"

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)

    assert done.stdout.strip() == "[]"
