"""The report: outcomes per table, sums, exit codes."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest

from controller.cli.running import report_lines
from controller.dispatch import NOT_STARTED, UNKNOWN, Dispatched, RunOutcome
from controller.plan import APPLY, LOAD_INCREMENTAL, LOAD_INITIAL, PlannedRun, Problem, RunPlan, TablePlan
from controller.report import RunReport, TableReport, build_report
from tests.controller.world import NOW

A, B = "bucket/dms/shop/a/", "bucket/dms/shop/b/"


def ended(*paths: str, job: str = LOAD_INCREMENTAL, run_id: str = "run-1", state: str = "SUCCEEDED", **values: Any) -> RunOutcome:
    return RunOutcome(PlannedRun(job, paths), run_id, state, **values)


def result(outcome: str = "committed", **values: Any) -> dict[str, Any]:
    return {"run_id": "run-1", "outcome": outcome, "changes": ["c1"], "seconds": 2.0, **values}


def report_of(
    *outcomes: RunOutcome, tables: tuple[TablePlan, ...] = (TablePlan(A, "apply", job=LOAD_INCREMENTAL),), **more: Any
) -> RunReport:
    return build_report(RunPlan(tables), Dispatched(outcomes, **more), "run", NOW, NOW + timedelta(seconds=3))


def test_counts_come_from_last_run() -> None:
    """What the job wrote of itself is the table's report."""
    last = result(inserted=3, updated=2, deleted=1, files_added=4, files_superseded=5, table_rows=30, bytes_added=99, warnings=["look"])

    (table,) = report_of(ended(A, results={A: last})).tables

    assert (table.outcome, table.inserted, table.updated, table.deleted) == ("committed", 3, 2, 1)
    assert (table.files_added, table.files_superseded, table.table_rows, table.bytes_added) == (4, 5, 30, 99)
    assert (table.changes, table.runs, table.seconds, table.warnings) == (("c1",), ("run-1",), 2.0, ("look",))
    assert table.exit_code == 0


def test_two_runs_of_one_table_are_one_report() -> None:
    """A load and the batch after it: sums, both changes, the rows after the last."""
    load = ended(A, job=LOAD_INITIAL, results={A: result(inserted=10, table_rows=10)})
    batch = ended(A, run_id="run-2", results={A: result(changes=["c2"], inserted=2, deleted=1, table_rows=11)})

    (table,) = report_of(load, batch).tables

    assert (table.inserted, table.deleted, table.table_rows) == (12, 1, 11)
    assert (table.changes, table.runs) == (("c1", "c2"), ("run-1", "run-2"))


def test_the_worst_of_two_runs_is_the_outcome() -> None:
    """A load that landed and a batch that is blocked: blocked, with the load's counts."""
    error = {"code": "type-changed", "message": "id was int", "todo": "reload"}
    load = ended(A, job=LOAD_INITIAL, results={A: result(inserted=10)})
    batch = ended(A, run_id="run-2", state="FAILED", results={A: result("blocked", changes=[], error=error)})

    (table,) = report_of(load, batch).tables

    assert (table.outcome, table.error, table.inserted) == ("blocked", Problem("type-changed", "id was int", "reload"), 10)


def test_a_block_found_after_the_load_is_reported() -> None:
    """The second plan's problem is the table's."""
    again = TablePlan(A, "blocked", problem=Problem("foreign-raw-file", "notes.txt"))

    (table,) = report_of(ended(A, job=LOAD_INITIAL, results={A: result()}), replanned={A: again}).tables

    assert (table.outcome, table.error) == ("blocked", Problem("foreign-raw-file", "notes.txt"))


@pytest.mark.parametrize(
    ("again", "word", "exit_code"),
    [
        (TablePlan(A, "blocked", problem=Problem("x", "y")), "blocked", 1),
        (TablePlan(A, "error", problem=Problem("x", "y", exit_code=3)), "failed", 3),
        (TablePlan(A, "reload-waits"), "waiting", 0),
    ],
)
def test_a_table_without_a_run_stands_as_it_was_planned_last(again: TablePlan, word: str, exit_code: int) -> None:
    """It was up to date when the run began, and an hour later it was not."""
    first = TablePlan(A, "up-to-date", is_new=True)

    report = report_of(tables=(first,), replanned={A: again})

    (table,) = report.tables
    assert (table.outcome, table.error, table.action, table.is_new) == (word, again.problem, again.action, True)
    assert report.exit_code == exit_code


def test_an_error_of_the_first_plan_that_is_gone_fails_nothing() -> None:
    """AWS was busy when the run began; an hour later the table is up to date, or its changes are taken."""
    busy = TablePlan(A, "error", "busy", problem=Problem("aws-busy", "busy"))
    later = {A: TablePlan(A, "apply", "2 CDC file(s) pending", LOAD_INCREMENTAL)}

    idle = report_of(tables=(busy,), replanned={A: TablePlan(A, "up-to-date")})
    taken = report_of(ended(A, results={A: result()}), tables=(busy,), replanned=later)

    assert [(report.tables[0].outcome, report.exit_code) for report in (idle, taken)] == [("nothing", 0), ("committed", 0)]
    assert (taken.tables[0].action, taken.tables[0].reason, taken.tables[0].error) == ("apply", "2 CDC file(s) pending", None)


@pytest.mark.parametrize(
    ("outcomes", "word", "exit_code"),
    [
        (("failed", "committed"), "committed", 0),
        (("failed", "blocked", "nothing"), "nothing", 0),
        (("committed", "failed", "committed", "nothing"), "committed", 0),
        (("lease-held", "committed"), "committed", 0),
        (("committed", "blocked"), "blocked", 1),
        (("failed", "committed", "blocked"), "blocked", 1),
        (("failed", "blocked"), "blocked", 1),
        (("blocked", "failed"), "failed", 1),
        (("failed", "waiting"), "failed", 1),
        (("failed", "lease-held"), "failed", 1),
        (("committed", "lease-held"), "lease-held", 4),
        (("committed", "waiting"), "committed", 0),
    ],
)
def test_runs_of_one_table_one_after_the_other(outcomes: tuple[str, ...], word: str, exit_code: int) -> None:
    """As when the tables are planned again each hour: what a later run mended is over, what no run mended stays, the last of it first."""
    runs = [ended(A, run_id=f"run-{number}", results={A: result(each)}) for number, each in enumerate(outcomes)]

    report = report_of(*runs)

    assert (report.tables[0].outcome, report.exit_code, len(report.tables[0].runs)) == (word, exit_code, len(outcomes))


def test_what_was_mended_is_a_warning() -> None:
    """The failed run is in the list of runs, and why it failed is said."""
    error = {"code": "x", "message": "out of memory", "todo": "a larger worker"}
    failed = ended(A, state="FAILED", results={A: result("failed", changes=[], error=error, warnings=["look"])})
    mended = ended(A, run_id="run-2", results={A: result(changes=["c2"])})

    (table,) = report_of(failed, mended).tables

    assert (table.error, table.runs, table.changes) == (None, ("run-1", "run-2"), ("c2",))
    assert table.warnings == ("failed at first: out of memory; a later run mended it", "look")


@pytest.mark.parametrize(
    ("outcomes", "again", "lag"),
    [
        ((), None, 60.0),
        ((), 90.0, 90.0),
        (("failed",), 90.0, 90.0),
        (("failed", "committed"), 90.0, 0.0),
        (("committed",), None, 0.0),
    ],
)
def test_the_lag_that_is_left_is_of_the_last_plan(outcomes: tuple[str, ...], again: float | None, lag: float) -> None:
    """A table that caught up has none."""
    first = TablePlan(A, "blocked", lag_seconds=60.0, problem=Problem("x", "y"))
    replanned = {} if again is None else {A: TablePlan(A, "blocked", lag_seconds=again, problem=None if outcomes else Problem("x", "y"))}

    report = report_of(*[ended(A, results={A: result(each)}) for each in outcomes], tables=(first,), replanned=replanned)

    assert report.tables[0].lag_seconds == lag


def test_a_run_that_leaves_files_to_the_next_one_has_not_caught_up() -> None:
    """Where a change takes hours, DMS has written for as long by its end."""
    plan = TablePlan(A, "take-batch", lag_seconds=7200.0)

    lags = [report_of(ended(A, results={A: result(leaves=leaves)}), tables=(plan,)).tables[0].lag_seconds for leaves in (True, False)]

    assert lags == [7200.0, 0.0]


def test_a_table_that_was_held_does_not_fail_with_another_of_its_run() -> None:
    """A run ends as the worst of its tables; of the other one nobody must do anything."""
    tables = tuple(TablePlan(path, "apply", job=LOAD_INCREMENTAL) for path in (A, B))
    failed = result("failed", error={"code": "x", "message": "y"})

    report = report_of(ended(A, B, state="FAILED", results={A: failed}, held=frozenset({B})), tables=tables)

    assert [table.outcome for table in report.tables] == ["failed", "lease-held"]
    assert (report.exit_code, len(report.failures)) == (1, 1)


@pytest.mark.parametrize(
    ("outcome", "word", "exit_code"),
    [
        (ended(A), "failed", 1),
        (ended(A, state="TIMEOUT", message="timed out"), "failed", 1),
        (ended(A, held=frozenset({A})), "lease-held", 4),
        (ended(A, state="FAILED", exit_code=4), "lease-held", 4),
        (ended(A, state="FAILED", held=frozenset({A})), "lease-held", 4),
        (ended(A, state="FAILED"), "failed", 1),
        (ended(A, state="FAILED", exit_code=3, message="no credentials"), "failed", 3),
        (ended(A, state=NOT_STARTED, problem=Problem("no-job", "no job", "deploy", 3)), "not-started", 3),
        (ended(A, state=NOT_STARTED, problem=Problem("not-started", "gave up")), "not-started", 1),
        (ended(A, problem=Problem("aws-busy", "busy")), "failed", 1),
        (ended(A, results={A: result("nothing")}), "nothing", 0),
        (ended(A, results={A: result("failed", error={"code": "x", "message": "y"})}), "failed", 1),
        (ended(A, results={A: result("blocked")}), "blocked", 1),
        (ended(A, results={A: result("lease-held")}), "lease-held", 4),
        (ended(A, results={A: result("waiting")}), "waiting", 0),
        (ended(A, results={A: result("something new")}), "something new", 1),
    ],
)
def test_outcome_and_exit_code(outcome: RunOutcome, word: str, exit_code: int) -> None:
    """What a run's end means for its table, and for the caller."""
    report = report_of(outcome)

    assert report.tables[0].outcome == word
    assert report.exit_code == exit_code


def test_no_result_names_run_state_and_message() -> None:
    """A run that died says where to look."""
    (table,) = report_of(ended(A, state="TIMEOUT", job_run="jr_1", message="timed out")).tables

    assert table.error is not None
    for words in ("jr_1", "TIMEOUT", "timed out", A):
        assert words in table.error.message


@pytest.mark.parametrize(
    ("state", "job_run", "said"),
    [
        (UNKNOWN, "jr_1", "LoadIncremental run jr_1 was started; how it ended can't be read, and it may go on: the token has expired"),
        (
            "SUCCEEDED",
            "jr_1",
            "LoadIncremental run jr_1 was started; it ended SUCCEEDED, and what it did can't be read: the token has expired",
        ),
        (UNKNOWN, "", "the token has expired"),
    ],
)
def test_a_run_of_which_nothing_can_be_read_is_not_to_be_repeated_blindly(state: str, job_run: str, said: str) -> None:
    """It may have done its work: rows would be inserted twice. Code and exit code are those of what kept us from reading."""
    problem = Problem("credentials", "the token has expired", "renew the AWS credentials", 3)

    tables = [report_of(ended(A, job=job, state=state, job_run=job_run, problem=problem)).tables[0] for job in (APPLY, LOAD_INCREMENTAL)]

    look = f"before it is run again, look whether it is done: `dmslake history {A}`; renew the AWS credentials"
    goes_on = "the next run goes on from what this one has done; renew the AWS credentials"
    assert [table.error for table in tables] == [
        Problem("credentials", said.replace("LoadIncremental", "Apply"), look, 3),
        Problem("credentials", said, goes_on, 3),
    ]
    assert {(table.outcome, table.exit_code) for table in tables} == {("failed", 3)}


def test_a_run_whose_end_can_not_be_read_may_go_on() -> None:
    """Its table's item has nothing of it yet."""
    (table,) = report_of(ended(A, state=UNKNOWN, job_run="jr_1", message="its state can't be read")).tables

    assert table.error is not None
    assert (table.outcome, table.error.code) == ("failed", "no-result")
    for words in ("LoadIncremental run jr_1 was started", "it may go on", "its state can't be read"):
        assert words in table.error.message
    assert table.error.todo == "the next run goes on from what this one has done; read the run's log"


@pytest.mark.parametrize(
    ("plan", "word", "exit_code"),
    [
        (TablePlan(A, "up-to-date"), "nothing", 0),
        (TablePlan(A, "no-files"), "nothing", 0),
        (TablePlan(A, "reload-waits"), "waiting", 0),
        (TablePlan(A, "inactive"), "inactive", 0),
        (TablePlan(A, "paused"), "paused", 0),
        (TablePlan(A, "blocked", problem=Problem("x", "y")), "blocked", 1),
        (TablePlan(A, "error", problem=Problem("x", "y", exit_code=3)), "failed", 3),
    ],
)
def test_tables_without_a_run(plan: TablePlan, word: str, exit_code: int) -> None:
    """Inactive, paused and idle tables are fine; blocked and unreadable ones are not."""
    report = report_of(tables=(plan,))

    assert report.tables[0].outcome == word
    assert report.exit_code == exit_code


@pytest.mark.parametrize(("codes", "exit_code"), [((), 0), ((0, 0), 0), ((0, 4), 4), ((4, 1), 1), ((2, 4), 1), ((1, 3, 4), 3)])
def test_exit_code_of_several_tables(codes: tuple[int, ...], exit_code: int) -> None:
    """Configuration before failure before a held lease."""
    words = {0: "committed", 1: "failed", 2: "failed", 3: "failed", 4: "lease-held"}
    tables = tuple(TableReport(A, "apply", words[code], error=Problem("x", "y", exit_code=code)) for code in codes)

    assert RunReport("run", "", 0, tables).exit_code == exit_code


def test_a_catalog_step_that_is_left_is_reported_beside_the_change() -> None:
    """The change stands: it is committed, and the caller need do nothing; JSON names it."""
    report = report_of(ended(A, results={A: result(catalog_pending="c1")}))

    assert (report.tables[0].outcome, report.tables[0].catalog_pending, report.exit_code) == ("committed", "c1", 0)
    assert report.to_dict()["tables"][0]["catalog_pending"] == "c1"
    assert f"catalog: {A}: the Glue table does not have the change c1 yet; each run tries again" in report_lines(report)


@pytest.mark.parametrize(
    ("second", "left"),
    [
        (ended(A, run_id="run-2", results={A: result()}), ""),
        (ended(A, run_id="run-2", results={A: result(catalog_pending="c2")}), "c2"),
        (ended(A, run_id="run-2", state="FAILED"), "c1"),
    ],
    ids=["done", "left again", "no result"],
)
def test_the_last_result_says_whether_a_catalog_step_is_left(second: RunOutcome, left: str) -> None:
    """What the load left, the batch after it may have done; a run that died has done nothing."""
    load = ended(A, job=LOAD_INITIAL, results={A: result(catalog_pending="c1")})

    assert report_of(load, second).tables[0].catalog_pending == left


def test_json_has_its_version_first_and_sums() -> None:
    """Programs find the version, the exit code, the totals, and per table what is not empty."""
    tables = (TablePlan(A, "apply", job=LOAD_INCREMENTAL), TablePlan(B, "inactive", "ActiveFlag is not true"))

    data = json.loads(json.dumps(report_of(ended(A, results={A: result(inserted=3)}), tables=tables).to_dict()))

    assert next(iter(data)) == "report"
    assert (data["report"], data["run_id"], data["exit_code"], data["seconds"]) == (1, "run", 0, 3.0)
    assert data["totals"] == {
        "tables": 2, "committed": 1, "inactive": 1, "inserted": 3, "updated": 0, "deleted": 0, "ignored": 0, "input_rows": 0,
        "files_added": 0, "files_superseded": 0, "bytes_added": 0,
    }  # fmt: skip
    assert data["tables"][1] == {"path": B, "action": "inactive", "outcome": "inactive", "reason": "ActiveFlag is not true"}
