"""Tables of one run at the same time: each on a lease, clients and a deadline of its own."""

from __future__ import annotations

import json
import threading
from dataclasses import replace
from datetime import datetime, timezone

import pytest

from glue_jobs import load_incremental
from glue_jobs.aws.clients import Deadline
from glue_jobs.core.paths import TablePath
from glue_jobs.core.settings import Settings
from glue_jobs.protocol.job_log import JobLog
from glue_jobs.protocol.lanes import in_lanes
from glue_jobs.protocol.table_run import JobContext
from tests.lake import DRIVER
from tests.spark.tables import WorkTable
from tests.work_tables import MakeTable

TOGETHER_SECONDS = 60  # by then the others are there, or never will be


def now() -> datetime:
    return datetime.now(timezone.utc)


@pytest.fixture
def tables(quick_table: MakeTable) -> list[WorkTable]:
    """Five loaded tables, each with a change that is not applied yet."""
    made = [quick_table() for _ in range(5)]
    for table in made:
        table.load([(1, "one", 1)])
        table.sync()
        table.cdc([("U", (1, "ONE", 2))])
    return made


@pytest.fixture
def context(tables: list[WorkTable]) -> JobContext:
    """What a run of these tables begins with."""
    table = tables[0]
    return JobContext("LoadIncremental", table.clients, Deadline(), table.state_table, Settings(), JobLog("run", now), now)


def run(tables: list[WorkTable], **settings: object) -> int:
    """LoadIncremental of all of them in one run."""
    environment = tables[0].environment
    argv = ["--path", ",".join(str(table.path) for table in tables), "--state_table", environment["DMSLAKE_STATE_TABLE"]]
    for name, value in {"driver_bytes": DRIVER, **settings}.items():
        argv += [f"--{name}", str(value)]
    return load_incremental.main(argv, environment)


def test_every_table_of_a_run_is_done(tables: list[WorkTable], capsys: pytest.CaptureFixture[str]) -> None:
    """Whatever worked at the same time; and each line of the log is a whole one."""
    assert run(tables, tables_at_once=3) == 0

    assert [table.rows() for table in tables] == [[(1, "ONE", 2)]] * 5
    lines = [json.loads(line) for line in capsys.readouterr().err.splitlines()]
    assert sorted(line["table"] for line in lines if line["phase"] == "committed") == sorted(str(table.path) for table in tables)


def test_one_table_stops_no_other(tables: list[WorkTable]) -> None:
    """Its failure is its own."""
    tables[2].put_raw("notes.txt", b"no DMS file")

    assert run(tables, tables_at_once=2) == 1

    assert [table.last_run()["outcome"] for table in tables] == ["committed", "committed", "blocked", "committed", "committed"]


def test_a_table_that_is_named_twice_is_done_once(tables: list[WorkTable]) -> None:
    """Two lanes on one table would be a run that meets itself."""
    assert run([tables[0], tables[0]], tables_at_once=2) == 0

    assert (tables[0].last_run()["change_count"], tables[0].item()["Fence"]) == (1, 3)


def test_tables_are_worked_on_at_the_same_time(tables: list[WorkTable], context: JobContext) -> None:
    """As many as are asked for, each with a deadline and a state table of its own; the codes come in the tables' order."""
    meeting, seen = threading.Barrier(2, timeout=TOGETHER_SECONDS), []

    def one(lane: JobContext, path: TablePath) -> int:
        meeting.wait()
        seen.append((id(lane.deadline), id(lane.clients), lane.clients.deadline is lane.deadline or lane is context))
        return [str(table.path) for table in tables].index(str(path))

    assert in_lanes(context, [table.path for table in tables[:4]], one, 2) == [0, 1, 2, 3]
    assert len({deadline for deadline, _, _ in seen}) == len({clients for _, clients, _ in seen}) == 2
    assert all(own for _, _, own in seen)


def test_one_at_a_time_needs_no_other_lane(tables: list[WorkTable], context: JobContext) -> None:
    """They come one after the other, in this thread."""
    threads = []

    def one(lane: JobContext, path: TablePath) -> int:
        threads.append((threading.current_thread(), lane))
        return 0

    assert in_lanes(context, [table.path for table in tables], one, 1) == [0] * 5
    assert threads == [(threading.current_thread(), context)] * 5


def test_an_interrupted_run_begins_no_further_table(tables: list[WorkTable], context: JobContext) -> None:
    """Those that were begun are ended first: their leases would be left behind."""
    begun = []

    def one(lane: JobContext, path: TablePath) -> int:
        begun.append(path)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        in_lanes(replace(context), [table.path for table in tables] * 20, one, 2)

    assert len(begun) < 100
