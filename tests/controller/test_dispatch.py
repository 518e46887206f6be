"""Dispatch: at most so many runs, back-pressure, every state of Glue, results from LastRun, follow-ups."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import pytest

from controller.dispatch import FAILED_LOOKS, GIVE_UP_LOOKS, NOT_STARTED, UNKNOWN, Dispatch, Dispatched
from controller.plan import LOAD_INCREMENTAL, LOAD_INITIAL, PlannedRun, RunPlan, TablePlan
from controller.runners import GlueRunner, Runner
from glue_jobs.core.errors import RetryLater
from glue_jobs.core.limits import Limits
from glue_jobs.core.settings import Settings
from tests.controller.world import ScriptedGlue, World, client_error, table_path

PATHS = [str(table_path(name)) for name in ("a", "b", "c", "d")]


def runner_of(glue: ScriptedGlue, most: int = 5, prefix: str = "") -> Runner:
    return GlueRunner(glue, Settings(job_prefix=prefix, limits=Limits(max_concurrent_runs=most, wait_seconds=0)))


def apply_plan(*paths: str, job: str = LOAD_INCREMENTAL, action: str = "apply") -> RunPlan:
    """A run for each path."""
    tables = tuple(TablePlan(path, action, job=job) for path in paths)
    return RunPlan(tables, tuple(PlannedRun(job, (path,), 0) for path in paths))


def nothing_more(paths: Sequence[str]) -> RunPlan:
    return RunPlan(tuple(TablePlan(path, "up-to-date") for path in paths))


def dispatch(world: World, glue: ScriptedGlue, plan: RunPlan, most: int = 5, again: object = nothing_more) -> Dispatched:
    machine = Dispatch(runner_of(glue, most), world.host(), Limits(), again, world.table.batch_get)  # type: ignore[arg-type]
    return machine.execute(plan, "run")


@pytest.fixture
def tables(world: World) -> World:
    """Four tables with items."""
    for name in ("a", "b", "c", "d"):
        world.put_item(table_path(name))
    return world


def test_a_run_gets_paths_and_an_id(tables: World) -> None:
    """Nothing else travels in the arguments; the job's name has its prefix."""
    glue = ScriptedGlue()
    plan = RunPlan((), (PlannedRun(LOAD_INCREMENTAL, (PATHS[0], PATHS[1])),))

    Dispatch(runner_of(glue, prefix="prod-"), tables.host(), Limits(), nothing_more, tables.table.batch_get).execute(plan, "run")

    assert glue.started == [("prod-LoadIncremental", (PATHS[0], PATHS[1]), "run-1")]


def test_at_most_so_many_runs_at_once(tables: World) -> None:
    """Four runs with two places: never three at once, and all are done."""
    glue = ScriptedGlue(looks=["STARTING", "RUNNING", "STOPPING", "WAITING"])

    done = dispatch(tables, glue, apply_plan(*PATHS), most=2)

    assert glue.most_going == 2
    assert [outcome.state for outcome in done.outcomes] == ["SUCCEEDED"] * 4
    assert [run_id for _, _, run_id in glue.started] == ["run-1", "run-2", "run-3", "run-4"]


@pytest.mark.parametrize("code", ["ConcurrentRunsExceededException", "ThrottlingException", "ResourceNumberLimitExceededException"])
def test_back_pressure_waits_and_goes_on(tables: World, code: str) -> None:
    """A start that Glue refuses for now is tried again, under the same id."""
    glue = ScriptedGlue(starts=[client_error(code), client_error(code), None])

    done = dispatch(tables, glue, apply_plan(PATHS[0]))

    assert [outcome.state for outcome in done.outcomes] == ["SUCCEEDED"]
    assert glue.started == [(LOAD_INCREMENTAL, (PATHS[0],), "run-1")]
    assert tables.waits == 3


def test_endless_back_pressure_is_given_up(tables: World) -> None:
    """Where nothing of ours runs and nothing can be started for long, the tables are left to the next controller run."""
    glue = ScriptedGlue(starts=[client_error("ConcurrentRunsExceededException")] * (GIVE_UP_LOOKS + 5))

    done = dispatch(tables, glue, apply_plan(PATHS[0], PATHS[1]))

    assert [outcome.state for outcome in done.outcomes] == [NOT_STARTED, NOT_STARTED]
    assert done.outcomes[0].problem is not None
    assert "ConcurrentRunsExceeded" in done.outcomes[0].problem.message


def test_waiting_for_runs_of_our_own_is_no_reason_to_give_up(tables: World) -> None:
    """Nor is one refusal more after the last of them ended."""
    refused = client_error("ConcurrentRunsExceededException")
    glue = ScriptedGlue(starts=[None, *[refused] * (GIVE_UP_LOOKS + 2)], looks=["RUNNING"] * GIVE_UP_LOOKS)

    done = dispatch(tables, glue, apply_plan(PATHS[0], PATHS[1]))

    assert [outcome.state for outcome in done.outcomes] == ["SUCCEEDED", "SUCCEEDED"]


@pytest.mark.parametrize(
    ("code", "exit_code"), [("EntityNotFoundException", 3), ("AccessDeniedException", 3), ("InvalidInputException", 1)]
)
def test_a_run_that_cant_start_stops_no_other(tables: World, code: str, exit_code: int) -> None:
    """A missing job or a missing right is the tables' problem, as configuration; the next run is started."""
    glue = ScriptedGlue(starts=[client_error(code), None])

    done = dispatch(tables, glue, apply_plan(PATHS[0], PATHS[1]))

    first, second = done.outcomes
    assert first.state == NOT_STARTED
    assert first.problem is not None
    assert first.problem.exit_code == exit_code
    assert second.state == "SUCCEEDED"


@pytest.mark.parametrize("state", ["FAILED", "STOPPED", "TIMEOUT", "ERROR", "EXPIRED"])
def test_terminal_states(tables: World, state: str) -> None:
    """Each ends the run, with Glue's message."""
    done = dispatch(tables, ScriptedGlue(looks=["RUNNING", state]), apply_plan(PATHS[0]))

    assert [(outcome.state, outcome.message) for outcome in done.outcomes] == [(state, f"ended {state}")]


def test_an_unknown_state_is_waited_out(tables: World) -> None:
    """A word that Glue may invent is logged as unknown and taken for running."""
    done = dispatch(tables, ScriptedGlue(looks=["NEW_WORD", "NEW_WORD", "SUCCEEDED"]), apply_plan(PATHS[0]))

    assert done.outcomes[0].state == "SUCCEEDED"
    assert [details["known"] for event, details in tables.events if event == "run-state"] == [False, True]


def test_an_unknown_state_that_stays_is_reported(tables: World) -> None:
    """It isn't waited for without end."""
    done = dispatch(tables, ScriptedGlue(looks=["NEW_WORD"] * (GIVE_UP_LOOKS + 1)), apply_plan(PATHS[0]))

    assert done.outcomes[0].state == UNKNOWN
    assert "NEW_WORD" in done.outcomes[0].message


def test_failed_looks_are_repeated(tables: World) -> None:
    """A look that is throttled doesn't lose the run."""
    looks = [client_error("ThrottlingException", "GetJobRun")] * (FAILED_LOOKS - 1)

    done = dispatch(tables, ScriptedGlue(looks=[*looks, "RUNNING", *looks, "SUCCEEDED"]), apply_plan(PATHS[0]))

    assert done.outcomes[0].state == "SUCCEEDED"


def test_looks_that_keep_failing_are_given_up(tables: World) -> None:
    """A run whose state can't be read is reported as such."""
    done = dispatch(tables, ScriptedGlue(looks=[client_error("AccessDeniedException", "GetJobRun")] * FAILED_LOOKS), apply_plan(PATHS[0]))

    assert done.outcomes[0].state == UNKNOWN
    assert "AccessDenied" in done.outcomes[0].message


def test_results_come_from_last_run_of_this_run(tables: World) -> None:
    """What another run wrote says nothing about this one; who holds the lease is remembered."""
    glue = ScriptedGlue()
    glue.on_start = lambda job, paths, run_id: tables.write_result(paths[0], run_id if paths[0] == PATHS[0] else "another", inserted=7)
    tables.table.set_attributes(PATHS[1], {"LeaseOwner": "somebody"})

    done = dispatch(tables, glue, apply_plan(PATHS[0], PATHS[1]))

    first, second = done.outcomes
    assert first.results[PATHS[0]]["inserted"] == 7
    assert second.results == {}
    assert second.held == {PATHS[1]}


@pytest.mark.parametrize(("seconds", "held"), [(-60, False), (60, True)])
def test_a_lease_that_was_held_and_is_given_back_is_no_missing_result(tables: World, seconds: int, held: bool) -> None:
    """A run that finds its table taken ends without a result, and the one that had it may end before the item is read."""
    ended = (tables.host().now() + timedelta(seconds=seconds)).strftime("%Y-%m-%dT%H:%M:%SZ")
    tables.table.set_attributes(PATHS[0], {"LastRun": {"run_id": "another", "outcome": "committed", "time": ended}})

    done = dispatch(tables, ScriptedGlue(), apply_plan(PATHS[0]))

    assert (PATHS[0] in done.outcomes[0].held) == held


def test_a_long_load_does_not_hold_up_the_other_tables(tables: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """They are planned again each hour that it takes; the load itself is started once, and when it has ended nothing is planned again."""
    load = PlannedRun(LOAD_INITIAL, (PATHS[0],))
    first = RunPlan((TablePlan(PATHS[0], "load", job=LOAD_INITIAL), TablePlan(PATHS[1], "up-to-date")), (load,))
    asked: list[tuple[str, ...]] = []

    def again(paths: Sequence[str]) -> RunPlan:
        asked.append(tuple(paths))
        return apply_plan(*paths)

    glue = ScriptedGlue()

    def look(JobName: str, RunId: str) -> dict[str, Any]:  # noqa: N803 - AWS's names
        goes_on = JobName == LOAD_INITIAL and tables.waits < 250
        return {"JobRun": {"JobRunState": "RUNNING" if goes_on else "SUCCEEDED"}}

    monkeypatch.setattr(glue, "get_job_run", look)
    machine = Dispatch(runner_of(glue), tables.host(), Limits(replan_seconds=100), again, tables.table.batch_get)

    done = machine.execute(first, "run")

    assert asked == [(PATHS[1],), (PATHS[1],)]
    assert [job for job, _, _ in glue.started] == ["LoadInitial", "LoadIncremental", "LoadIncremental"]
    assert [outcome.state for outcome in done.outcomes] == ["SUCCEEDED"] * 3


def test_a_round_in_between_that_can_not_be_planned_is_a_warning(tables: World) -> None:
    """The long run goes on, and is reported."""

    def again(paths: Sequence[str]) -> RunPlan:
        raise RetryLater("S3 is busy", "aws-busy")

    first = RunPlan(tuple(TablePlan(path, "load", job=LOAD_INITIAL) for path in PATHS[:2]), (PlannedRun(LOAD_INITIAL, (PATHS[0],)),))
    machine = Dispatch(
        runner_of(ScriptedGlue(looks=["RUNNING"] * 150)), tables.host(), Limits(replan_seconds=100), again, tables.table.batch_get
    )

    done = machine.execute(first, "run")

    assert [outcome.state for outcome in done.outcomes] == ["SUCCEEDED"]
    assert done.warnings == ("the tables that are not being worked on could not be planned again: S3 is busy",)


def test_unreadable_results_are_a_problem(tables: World) -> None:
    """The run's end is reported though its items can't be read."""

    def refuse(paths: Sequence[str]) -> dict[str, dict[str, object]]:
        raise RetryLater("DynamoDB is busy", "aws-busy")

    done = Dispatch(runner_of(ScriptedGlue()), tables.host(), Limits(), nothing_more, refuse).execute(apply_plan(PATHS[0]), "run")

    assert done.outcomes[0].problem is not None
    assert done.outcomes[0].problem.code == "aws-busy"


def committing(world: World) -> ScriptedGlue:
    """A Glue whose runs commit for every table."""
    glue = ScriptedGlue()
    glue.on_start = lambda job, paths, run_id: [world.write_result(path, run_id) for path in paths] and None
    return glue


def test_incremental_follows_a_load_that_landed(tables: World) -> None:
    """The tables of a load are planned again and their CDC files applied within the same controller run, once."""
    glue = committing(tables)
    asked: list[tuple[str, ...]] = []

    def again(paths: Sequence[str]) -> RunPlan:
        asked.append(tuple(paths))
        found = tuple(
            TablePlan(path, "apply" if path == PATHS[0] else "up-to-date", job=LOAD_INCREMENTAL if path == PATHS[0] else "")
            for path in paths
        )
        return RunPlan(found)

    plan = RunPlan(
        tuple(TablePlan(path, "load", job=LOAD_INITIAL) for path in PATHS[:2]), (PlannedRun(LOAD_INITIAL, (PATHS[0], PATHS[1])),)
    )
    done = dispatch(tables, glue, plan, again=again)

    assert [(job, paths) for job, paths, _ in glue.started] == [(LOAD_INITIAL, (PATHS[0], PATHS[1])), (LOAD_INCREMENTAL, (PATHS[0],))]
    assert asked == [(PATHS[0], PATHS[1])]
    assert done.replanned[PATHS[1]].action == "up-to-date"


def test_a_load_follows_an_unfinished_step(tables: World) -> None:
    """After a publish was finished by LoadIncremental, a pending reload is done in the same controller run, and what follows that."""
    glue = committing(tables)
    next_actions = [("reload", LOAD_INITIAL), ("apply", LOAD_INCREMENTAL)]

    def again(paths: Sequence[str]) -> RunPlan:
        action, job = next_actions.pop(0)
        return RunPlan((TablePlan(PATHS[0], action, job=job),))

    dispatch(tables, glue, apply_plan(PATHS[0], action="finish"), again=again)

    assert [job for job, _, _ in glue.started] == [LOAD_INCREMENTAL, LOAD_INITIAL, LOAD_INCREMENTAL]


def test_nothing_starts_twice(tables: World) -> None:
    """A table that always seems to need both jobs is started once for each action: the loop ends."""
    glue = committing(tables)

    def again(paths: Sequence[str]) -> RunPlan:
        job = LOAD_INCREMENTAL if glue.started[-1][0] == LOAD_INITIAL else LOAD_INITIAL
        return RunPlan((TablePlan(PATHS[0], "finish" if job == LOAD_INCREMENTAL else "load", job=job),))

    dispatch(tables, glue, apply_plan(PATHS[0], job=LOAD_INITIAL, action="load"), again=again)

    assert [job for job, _, _ in glue.started] == [LOAD_INITIAL, LOAD_INCREMENTAL]


def test_a_load_that_failed_has_no_follow_up(tables: World) -> None:
    """Only tables that landed are planned again."""
    glue = ScriptedGlue()
    glue.on_start = lambda job, paths, run_id: tables.write_result(paths[0], run_id, "failed")

    done = dispatch(tables, glue, apply_plan(PATHS[0], job=LOAD_INITIAL, action="load"), again=None)

    assert len(glue.started) == 1
    assert done.replanned == {}


def test_a_failing_replan_is_a_warning(tables: World) -> None:
    """What landed stays reported; the next controller run goes on."""

    def again(paths: Sequence[str]) -> RunPlan:
        raise client_error("SlowDown", "ListObjectsV2")

    done = dispatch(tables, committing(tables), apply_plan(PATHS[0], job=LOAD_INITIAL, action="load"), again=again)

    assert done.outcomes[0].results[PATHS[0]]["outcome"] == "committed"
    assert PATHS[0] in done.warnings[0]


def test_against_motos_glue(tables: World) -> None:
    """The calls are those that a Glue answers: moto starts the run and ends it SUCCEEDED."""
    tables.clients.glue.create_job(Name=LOAD_INCREMENTAL, Role="r", Command={"Name": "glueetl", "ScriptLocation": "s3://x/y.py"})

    done = dispatch(tables, tables.clients.glue, apply_plan(PATHS[0]))  # type: ignore[arg-type]

    assert done.outcomes[0].state == "SUCCEEDED"
    assert done.outcomes[0].job_run.startswith("jr_")


def test_a_job_that_motos_glue_lacks(tables: World) -> None:
    """The error names the job and what to do."""
    done = dispatch(tables, tables.clients.glue, apply_plan(PATHS[0]))  # type: ignore[arg-type]

    problem = done.outcomes[0].problem
    assert problem is not None
    assert problem.code == "no-job"
    assert "LoadIncremental" in problem.message
