"""`dmslake snapshot`: what is shown before, what the run is told, and the Glue job from start to end."""

from __future__ import annotations

import json
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from controller.dispatch import RunOutcome
from controller.plan import Problem
from controller.runners import job_arguments
from controller.snapshotting import Snapshotted, planned_run
from glue_jobs.aws.clients import Clients
from glue_jobs.core.arguments import parse_arguments
from glue_jobs.core.limits import Limits
from glue_jobs.core.settings import Settings
from glue_jobs.core.snapshot_sources import read_wish
from infra.local.embedded import EmbeddedAws
from tests.controller.past_world import Command
from tests.snapshots import LAST_DAY, SnapshotTable

RUN = planned_run(read_wish({"table": "o", "path": "s3://raw/o/", "primary_keys": "id", "to": "s3://out/"}, {}, date(2024, 5, 1)), Limits())
LOGGED = json.dumps({"phase": "failed", "error": {"code": "no-raw-files", "message": "no file", "todo": "correct the path"}})
READ_THE_LOG = "read the run's log; readers see the version before"
LOAD = [("I", (1, "a", date(2024, 1, 1)), "2030-01-01 00:00:00"), ("I", (2, "b", None), "2030-01-01 00:00:00")]


@pytest.fixture
def table(embedded_aws: EmbeddedAws, lake_clients: Clients) -> SnapshotTable:
    """Two rows loaded and one changed, on the embedded AWS."""
    table = SnapshotTable(lake_clients, embedded_aws.environment(), embedded_aws.raw, embedded_aws.lake)
    table.put("LOAD00000001.parquet", LOAD)
    table.put("20240501-000000000.parquet", [("U", (1, "A", date(2024, 1, 1)), "2024-05-01 00:00:00")])
    return table


def write_sources(table: SnapshotTable, folder: Path) -> str:
    """A sources file on this machine."""
    file = folder / "sources.yaml"
    entry: dict[str, Any] = {"path": str(table.path), "primary_keys": ["id"], "timestamp_column": "ts"}
    entry["schema"] = {"day": "date", "name": "string", "id": "bigint"}
    file.write_text("tables:\n  orders: " + json.dumps(entry))
    return str(file)


def test_a_dry_run_says_what_would_be_read(table: SnapshotTable, lake_command: Command, tmp_path: Path) -> None:
    """And writes nothing."""
    words = ("snapshot", "orders", "--sources", write_sources(table, tmp_path), "--to", table.out, "--database", table.database)

    done = lake_command(*words, "--run-date", LAST_DAY, "--dry-run")
    data = lake_command(*words, "--run-date", "2024-04-30", "--full", "--dry-run", "--output", "json")

    lines = [" ".join(line.split()) for line in done.out.splitlines()]
    assert lines == [
        "orders: a snapshot would be made of this; nothing was written",
        f"as of {LAST_DAY}, flat, in {table.database}.orders_snapshot",
        "raw files 1 load file(s), 1 CDC file(s)",
        "mode full: there is no version before",
        lines[4],
    ]
    assert lines[4].startswith("to read 2 file(s), ")
    assert (data.code, "no load file counts" in data.err, table.keys()) == (1, True, [])


def test_a_local_run_is_shown_by_its_manifest(table: SnapshotTable, lake_command: Command, tmp_path: Path) -> None:
    """For people and for programs; a second one goes on from the first."""
    words = ("snapshot", "orders", "--sources", write_sources(table, tmp_path), "--to", table.out, "--database", table.database)

    first = lake_command(*words, "--run-date", LAST_DAY)
    again = lake_command(*words, "--run-date", LAST_DAY, "--keep", "1", "--output", "json")

    lines = [" ".join(line.split()) for line in first.out.splitlines()]
    assert (first.code, again.code) == (0, 0), first.err + again.err
    for line in ("rows 2", "mode full: there is no version before", "read 3 row(s) of 2 raw file(s) that count"):
        assert line in lines
    said = again.json
    assert (said["outcome"], said["mode"], said["rows"], said["inputs"], said["files_written"]) == ("committed", "incremental", 2, 2, 1)
    assert table.location() == f"{table.folder}version={said['version']}/"
    assert [(row["id"], row["name"]) for row in table.rows()] == [(1, "A"), (2, "b")]


def test_a_run_that_fails_is_shown_with_its_reason(table: SnapshotTable, lake_command: Command) -> None:
    """The exit code is the job's, and so are the error's code and the way out."""
    given = ["--path", str(table.path), "--primary-keys", "nr", "--to", table.out, "--database", table.database]

    done = lake_command("snapshot", "orders", *given, "--run-date", LAST_DAY)
    data = lake_command("snapshot", "orders", *given, "--run-date", LAST_DAY, "--output", "json")

    assert (done.code, data.code) == (2, 2), done.out
    lines = done.out.splitlines()
    assert lines[:3] == ["orders: the snapshot was not made", "", "failed: orders"]
    assert lines[3].startswith("  primary_keys names the column 'nr'")
    error = data.json["error"]
    assert (data.json["outcome"], error["message"]) == ("failed", lines[3].strip())
    assert lines[4:] == [f"  what to do: {error['todo']}"]
    assert error["code"] == "unknown-column"


def test_glue_runs_the_job_from_start_to_end(table: SnapshotTable, embedded_aws: EmbeddedAws) -> None:
    """By StartJobRun with Spark at work; a refusal is the run's error message."""
    given = {f"--{name}": value for name, value in table.arguments(layout="dated", partition_date="day").items()}

    done = embedded_aws.run_job("Snapshot", {**given, "--driver_bytes": "0"})
    refused = embedded_aws.run_job("Snapshot", {**given, "--schema": "id bigint, day date, label string"})

    assert done["JobRunState"] == "SUCCEEDED", embedded_aws.log_file(done["Id"]).read_text()
    assert [(row["id"], row["name"], row["day"]) for row in table.rows()] == [
        (1, "A", "2024-01-01"),
        (2, "b", "__HIVE_DEFAULT_PARTITION__"),
    ]
    assert table.manifest().run_id == done["Id"]
    assert refused["JobRunState"] == "FAILED"
    assert refused["ErrorMessage"].startswith("snapshot-schema: the columns of 2 raw file(s)")


def test_the_run_is_told_the_whole_wish() -> None:
    """Its own arguments win over the settings of the same name."""
    given = {"table": "orders", "path": "s3://raw/o/", "primary_keys": "id", "to": "s3://out/", "database": "mine", "keep": "2"}
    wish = read_wish(given, {}, date(2024, 5, 1))

    words = job_arguments(Settings(database="theirs"), planned_run(wish, Limits()), "run-1")

    assert read_wish(parse_arguments(words), {}, date(1999, 1, 1)) == wish
    assert dict(planned_run(wish, Limits(load_quiet_minutes=0)).arguments)["load_quiet_minutes"] == "0"


def test_a_run_without_a_manifest_has_failed() -> None:
    """Whatever its state says. What the job has logged of its error is the error."""
    silent = Snapshotted(RunOutcome(RUN, "r", "SUCCEEDED"))
    unstarted = Snapshotted(RunOutcome(RUN, "r", "NOT_STARTED", problem=Problem("no-job", "there is no Glue job", "deploy", 3)))
    failed = Snapshotted(RunOutcome(RUN, "r", "FAILED", message="exit code 2", exit_code=2))
    refused = Snapshotted(RunOutcome(RUN, "r", "FAILED", message=f"exit code 2\nnext\n{LOGGED}\n[1]", exit_code=2))

    assert [(each.exit_code, each.problem) for each in (silent, unstarted, failed, refused)] == [
        (1, Problem("no-result", "the run ended without a manifest", READ_THE_LOG)),
        (3, Problem("no-job", "there is no Glue job", "deploy", 3)),
        (2, Problem("no-result", "exit code 2", READ_THE_LOG)),
        (2, Problem("no-raw-files", "no file", "correct the path")),
    ]


@pytest.mark.parametrize(("code", "told"), [(-9, 1), (137, 1), (6, 1), (0, 1), (None, 1), (3, 3), (5, 5)])
def test_a_code_of_no_command_is_1(code: int | None, told: int) -> None:
    """A process that was killed ends with the signal's number below 0."""
    assert Snapshotted(RunOutcome(RUN, "r", "FAILED", message="killed by signal 9", exit_code=code)).exit_code == told


def test_a_run_that_could_not_be_started_is_told_with_its_way_out(table: SnapshotTable, lake_command: Command) -> None:
    """For people and for programs."""
    given = ["--path", str(table.path), "--primary-keys", "id", "--to", table.out, "--database", table.database]
    words = ["snapshot", "orders", *given, "--run-date", LAST_DAY, "--runner", "glue", "--job-prefix", "nobody-"]

    done, data = lake_command(*words), lake_command(*words, "--output", "json")

    assert (done.code, data.code, data.json["error"]["code"]) == (3, 3, "no-job")
    assert f"  {data.json['error']['message']}" in done.out.splitlines()
    assert f"  what to do: {data.json['error']['todo']}" in done.out.splitlines()
