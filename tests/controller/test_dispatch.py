"""Dispatch: at most so many runs, back-pressure, every state of Glue, results from LastRun, follow-ups."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from datetime import timedelta
from itertools import pairwise
from typing import Any

import pytest
from botocore.exceptions import EndpointConnectionError

from controller.dispatch import FAILED_LOOKS, GIVE_UP_LOOKS, NOT_STARTED, UNKNOWN, Dispatch, Dispatched
from controller.plan import LOAD_INCREMENTAL, LOAD_INITIAL, ROLLBACK, PlannedRun, Problem, RunPlan, TablePlan
from controller.runners import GlueRunner, Runner
from glue_jobs.aws.clients import Unanswered
from glue_jobs.core.errors import RetryLater
from glue_jobs.core.limits import Limits
from glue_jobs.core.paths import TablePath
from glue_jobs.core.settings import Settings
from tests.controller.world import SETTINGS, ScriptedGlue, World, client_error, table_path

UNANSWERED = Unanswered("the answer was lost")
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


def test_a_start_without_an_answer_is_sent_again_under_its_id(tables: World) -> None:
    """Glue may have started it, and the second run of that id then finds its work done; no other run has the id."""
    glue = ScriptedGlue(starts=[UNANSWERED, None, None])
    loads, changes = apply_plan(PATHS[0], job=LOAD_INITIAL, action="load"), apply_plan(PATHS[1])

    done = dispatch(tables, glue, RunPlan((*loads.tables, *changes.tables), (*loads.runs, *changes.runs)))

    assert glue.started == [(LOAD_INCREMENTAL, (PATHS[1],), "run-2"), (LOAD_INITIAL, (PATHS[0],), "run-1")]
    assert [outcome.state for outcome in done.outcomes] == ["SUCCEEDED", "SUCCEEDED"]


@pytest.mark.parametrize(
    ("after", "exit_code", "said"),
    [
        ([UNANSWERED] * GIVE_UP_LOOKS, 1, f"gave up after {GIVE_UP_LOOKS} tries"),
        ([client_error("ConcurrentRunsExceededException")] * GIVE_UP_LOOKS, 1, f"gave up after {GIVE_UP_LOOKS} tries"),
        ([client_error("AccessDeniedException")], 3, "AccessDeniedException"),
        ([EndpointConnectionError(endpoint_url="https://glue")], 3, "Could not connect"),
    ],
    ids=["silent", "busy", "denied", "unreached"],
)
def test_a_start_without_an_answer_may_have_been_one(tables: World, after: list[Exception], exit_code: int, said: str) -> None:
    """Whatever comes then: it is not reported as not started. A run that was never asked for is."""
    glue = ScriptedGlue(starts=[UNANSWERED, *after])

    done = dispatch(tables, glue, apply_plan(PATHS[0], PATHS[1]))

    outcome = done.outcomes[0]
    assert (outcome.state, outcome.run_id, outcome.job_run) == (UNKNOWN, "run-1", "")
    assert outcome.problem is not None
    assert (outcome.problem.code, outcome.problem.exit_code) == ("start-not-known", exit_code)
    assert outcome.problem.message.startswith("it is not known whether LoadIncremental run run-1 was started")
    assert said in outcome.problem.message
    assert "--run_id run-1" in outcome.problem.todo
    assert done.outcomes[1].state == (NOT_STARTED if exit_code == 1 else "SUCCEEDED")


def test_a_start_without_an_answer_is_not_sent_again_for_ever(tables: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Hours later the second run would not know what the first has done, and would do it again."""
    monkeypatch.setattr("controller.dispatch.UNANSWERED_SECONDS", 5.0)
    busy = [client_error("ConcurrentRunsExceededException")] * 4
    glue = ScriptedGlue(starts=[UNANSWERED, *busy])

    done = dispatch(tables, glue, apply_plan(PATHS[0]))

    assert (glue.starts, glue.started, tables.waits) == ([], [], 5)
    assert [outcome.state for outcome in done.outcomes] == [UNKNOWN]


def test_a_start_that_reaches_nobody_was_none(tables: World) -> None:
    """Nothing was sent that could have started a run."""
    done = dispatch(tables, ScriptedGlue(starts=[EndpointConnectionError(endpoint_url="https://glue")]), apply_plan(PATHS[0]))

    (outcome,) = done.outcomes
    assert (outcome.state, outcome.problem and outcome.problem.code) == (NOT_STARTED, "unreachable")


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


@pytest.mark.parametrize("state", ["SUCCEEDED", "FAILED"])
@pytest.mark.parametrize(("seconds", "held"), [(-60, False), (60, True)])
def test_a_lease_that_was_held_and_is_given_back_is_no_missing_result(tables: World, seconds: int, held: bool, state: str) -> None:
    """A run that finds its table taken ends without a result, and the one that had it may end before the item is read."""
    ended = (tables.host().now() + timedelta(seconds=seconds)).strftime("%Y-%m-%dT%H:%M:%SZ")
    tables.table.set_attributes(PATHS[0], {"LastRun": {"run_id": "another", "outcome": "committed", "time": ended}})

    done = dispatch(tables, ScriptedGlue(looks=[state]), apply_plan(PATHS[0]))

    assert (PATHS[0] in done.outcomes[0].held) == held


@pytest.mark.parametrize(
    ("planned", "state", "held"),
    [
        (("somebody", 4), "FAILED", True),
        (("somebody", 5), "FAILED", False),
        (("", 0), "FAILED", False),
        (("who ended", 4), "FAILED", False),
        (("", 0), "SUCCEEDED", True),
    ],
)
def test_a_lease_that_is_left_by_a_killed_run_is_a_missing_result(tables: World, planned: tuple[str, int], state: str, held: bool) -> None:
    """Unless somebody had it before the run was started, and gave a sign of life since. planned: who had it then, and the last sign."""
    ended = (tables.host().now() + timedelta(seconds=60)).strftime("%Y-%m-%dT%H:%M:%SZ")
    last = {"run_id": "another", "outcome": "committed", "time": ended}
    tables.table.set_attributes(PATHS[0], {"LeaseOwner": "somebody", "LeaseBeat": 5, "LastRun": last})
    plan = apply_plan(PATHS[0])

    done = dispatch(tables, ScriptedGlue(looks=[state]), replace(plan, tables=(replace(plan.tables[0], lease=planned),)))

    assert (PATHS[0] in done.outcomes[0].held) == held


def test_a_table_that_another_run_holds_is_no_failure_of_the_run(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of two small tables one fails; a long run has the lease of the other before and after it, so that they share no run."""
    wrong, busy = (table_path(name) for name in ("a", "b"))
    world.put_loaded(wrong, "LOAD00000001.parquet")
    world.put_loaded(busy, "LOAD00000001.parquet", LeaseOwner="somebody", LeaseBeat=1)
    for path in (wrong, busy):
        world.put_raw(path, "20240501-010000000.parquet")
    glue = ScriptedGlue(looks=["FAILED"])

    def meanwhile(job: str, paths: tuple[str, ...], run_id: str) -> None:
        if paths == (str(wrong),):
            world.write_result(str(wrong), run_id, "failed")
        world.table.set_attributes(str(busy), {"LeaseBeat": 2})

    glue.on_start = meanwhile
    monkeypatch.setattr(world.clients, "glue", glue)

    _, report = world.session(replace(SETTINGS, limits=Limits(wait_seconds=0))).run()

    assert sorted(paths for _, paths, _ in glue.started) == [(str(wrong),), (str(busy),)]
    assert {table.path: table.outcome for table in report.tables} == {str(wrong): "failed", str(busy): "lease-held"}


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

    assert len(asked) == 2
    assert [(job, paths) for job, paths, _ in glue.started] == [
        (LOAD_INITIAL, (PATHS[0],)), (LOAD_INCREMENTAL, (PATHS[1],)), (LOAD_INCREMENTAL, (PATHS[1],)),
    ]  # fmt: skip
    assert [outcome.state for outcome in done.outcomes] == ["SUCCEEDED"] * 3


class TimedGlue(ScriptedGlue):
    """A Glue by the world's clock: a run of a job takes so many seconds. full: jobs of which no run can be started just now."""

    def __init__(self, world: World, seconds: dict[str, int], full: Collection[str] = ()) -> None:
        super().__init__()
        self._world, self._seconds, self._full = world, seconds, full
        self._ends: dict[str, int] = {}
        self.lines: list[tuple[int, str, tuple[str, ...]]] = []  # when a run began, its job and tables
        self.most_of: Counter[str] = Counter()  # runs at the same time, by job
        self._going_of: Counter[str] = Counter()

    def start_job_run(self, JobName: str, Arguments: dict[str, str]) -> dict[str, Any]:  # noqa: N803 - AWS's names
        if JobName in self._full:
            raise client_error("ConcurrentRunsExceededException")
        answer = super().start_job_run(JobName, Arguments)
        self._ends[answer["JobRunId"]] = self._world.waits + self._seconds[JobName]
        self.lines.append((self._world.waits, JobName, tuple(Arguments["--path"].split(","))))
        self._going_of[JobName] += 1
        self.most_of[JobName] = max(self.most_of[JobName], self._going_of[JobName])
        return answer

    def get_job_run(self, JobName: str, RunId: str) -> dict[str, Any]:  # noqa: N803 - AWS's names
        if self._world.waits < self._ends[RunId]:
            return {"JobRun": {"JobRunState": "RUNNING"}}
        self._going_of[JobName] -= 1
        return super().get_job_run(JobName, RunId)

    def starts_of(self, job: str) -> list[int]:
        """When runs of the job began, in seconds."""
        return [at for at, name, _ in self.lines if name == job]

    def look(self, paths: Sequence[str]) -> RunPlan:
        """What a look in between finds: loads that have not ended are still to be done, and the other tables, large ones, have changes."""
        ended = {path for at, job, some in self.lines if at + self._seconds[job] <= self._world.waits for path in some}
        loads = [TablePlan(path, "load", job=LOAD_INITIAL) for path in paths if path in LOADS and path not in ended]
        large = Limits().small_table_bytes
        others = [TablePlan(path, "apply", job=LOAD_INCREMENTAL, table_bytes=large) for path in paths if path not in LOADS]
        return RunPlan((*loads, *others))


LOADS = [str(table_path(f"load{number:02}")) for number in range(12)]


def many_loads(*others: TablePlan) -> RunPlan:
    """A run for each first load, and tables for which there is nothing to do at first."""
    loads = apply_plan(*LOADS, job=LOAD_INITIAL, action="load")
    return RunPlan((*loads.tables, *others), loads.runs)


def idle(paths: Sequence[str]) -> tuple[TablePlan, ...]:
    return nothing_more(paths).tables


def timed(world: World, glue: TimedGlue, plan: RunPlan, most: int, again: Callable[[Sequence[str]], RunPlan] | None = None) -> Dispatched:
    """The end of a plan whose other tables are planned again each 100 seconds."""
    machine = Dispatch(runner_of(glue, most), world.host(), Limits(replan_seconds=100), again or glue.look, lambda paths: {})
    return machine.execute(plan, "run")


def test_more_loads_than_places_do_not_hold_up_the_other_tables(world: World) -> None:
    """They leave a place to the others, which get their changes each hour though loads wait; each load is started once."""
    glue = TimedGlue(world, {LOAD_INITIAL: 200, LOAD_INCREMENTAL: 10})

    done = timed(world, glue, many_loads(*idle(PATHS[:1])), most=5)

    assert glue.most_of[LOAD_INITIAL] == 4
    assert [at // 100 for at in glue.starts_of(LOAD_INCREMENTAL)] == [1, 2, 3, 4, 5]
    assert sorted(path for _, job, paths in glue.lines if job == LOAD_INITIAL for path in paths) == LOADS
    assert {outcome.state for outcome in done.outcomes} == {"SUCCEEDED"}


def test_changes_do_not_wait_for_loads_that_wait_in_their_turn(world: World) -> None:
    """Runs of both jobs, planned at the same time: the place that loads leave is taken at once."""
    glue = TimedGlue(world, {LOAD_INITIAL: 200, LOAD_INCREMENTAL: 10})
    changes = apply_plan(*PATHS)
    plan = many_loads(*changes.tables)

    timed(world, glue, RunPlan(plan.tables, (*plan.runs, *changes.runs)), most=5, again=nothing_more)

    assert glue.starts_of(LOAD_INCREMENTAL) == [0, 10, 20, 30]


def test_with_one_place_changes_come_before_the_loads_that_wait(world: World) -> None:
    """As on a laptop: loads can leave none, so the others go first, at the beginning and after each load."""
    glue = TimedGlue(world, {LOAD_INITIAL: 200, LOAD_INCREMENTAL: 10})
    changes = apply_plan(*PATHS)
    plan = many_loads(*changes.tables)

    timed(world, glue, RunPlan(plan.tables, (*plan.runs, *changes.runs)), most=1)

    jobs = [job for _, job, _ in glue.lines]
    assert jobs[:6] == [LOAD_INCREMENTAL] * 4 + [LOAD_INITIAL, LOAD_INCREMENTAL]
    assert all(pair != (LOAD_INITIAL, LOAD_INITIAL) for pair in pairwise(jobs))
    assert jobs.count(LOAD_INITIAL) == len(LOADS)


def test_what_follows_a_load_comes_before_the_loads_that_wait(world: World) -> None:
    """A table that is loaded has its changes taken; it does not wait for all other loads."""
    world.put_item(TablePath.parse(LOADS[0]))
    glue = TimedGlue(world, {LOAD_INITIAL: 20, LOAD_INCREMENTAL: 10})
    glue.on_start = lambda job, paths, run_id: world.write_result(LOADS[0], run_id) if paths == (LOADS[0],) else None

    def again(paths: Sequence[str]) -> RunPlan:
        return RunPlan(tuple(TablePlan(path, "apply", job=LOAD_INCREMENTAL) for path in paths))

    machine = Dispatch(runner_of(glue, 1), world.host(), Limits(replan_seconds=0), again, world.table.batch_get)
    machine.execute(many_loads(), "run")

    assert [(job, paths) for _, job, paths in glue.lines][:3] == [
        (LOAD_INITIAL, (LOADS[0],)), (LOAD_INCREMENTAL, (LOADS[0],)), (LOAD_INITIAL, (LOADS[1],)),
    ]  # fmt: skip


@pytest.mark.parametrize("most", [1, 2])
def test_changes_that_take_longer_than_the_hour_do_not_keep_loads_from_starting(world: World, most: int) -> None:
    """What is planned again goes before a load that waits, so a load must have begun before anything is planned again: it ends."""
    glue = TimedGlue(world, {LOAD_INITIAL: 120, LOAD_INCREMENTAL: 110})

    done = timed(world, glue, many_loads(*idle(PATHS[:2])), most=most)

    assert len(glue.starts_of(LOAD_INITIAL)) == len(LOADS)
    assert {outcome.state for outcome in done.outcomes} == {"SUCCEEDED"}


def test_a_job_that_is_refused_does_not_hold_up_another(world: World) -> None:
    """All runs that Glue allows of LoadInitial are somebody else's: LoadIncremental has places of its own, and is started at once."""
    glue = TimedGlue(world, {LOAD_INITIAL: 200, LOAD_INCREMENTAL: 10}, full={LOAD_INITIAL})
    changes = apply_plan(*PATHS)
    plan = many_loads(*changes.tables)

    done = timed(world, glue, RunPlan(plan.tables, (*plan.runs, *changes.runs)), most=5)

    assert glue.starts_of(LOAD_INCREMENTAL) == [0] * 4
    states = Counter((outcome.run.job, outcome.state) for outcome in done.outcomes)
    assert states == {(LOAD_INCREMENTAL, "SUCCEEDED"): 4, (LOAD_INITIAL, NOT_STARTED): len(LOADS)}
    assert GIVE_UP_LOOKS <= world.waits < GIVE_UP_LOOKS + 50


def test_both_jobs_refused_are_given_up_as_one(world: World) -> None:
    """Passes are counted, not refusals, so that two jobs have no less time than one."""
    glue = TimedGlue(world, {}, full={LOAD_INITIAL, LOAD_INCREMENTAL})
    changes = apply_plan(*PATHS)

    done = timed(world, glue, RunPlan(changes.tables, (PlannedRun(LOAD_INITIAL, (LOADS[0],)), *changes.runs)), most=5)

    assert [outcome.state for outcome in done.outcomes] == [NOT_STARTED] * 5
    assert world.waits == GIVE_UP_LOOKS - 1


def test_a_table_that_gives_way_to_one_that_waits_is_not_started_in_between(world: World) -> None:
    """Two tables that want one place are told apart only where both are looked at, so all are, and the plan of busy ones is left."""
    glue = TimedGlue(world, {LOAD_INITIAL: 200, LOAD_INCREMENTAL: 10})

    def again(paths: Sequence[str]) -> RunPlan:
        clash = set(LOADS) <= set(paths)
        blocked = TablePlan(PATHS[0], "blocked", problem=Problem("lake-folder-taken", "the lake folder is a load's"))
        return RunPlan((*glue.look(LOADS).tables, blocked if clash else TablePlan(PATHS[0], "load", job=LOAD_INITIAL)))

    done = timed(world, glue, many_loads(*idle(PATHS[:1])), most=5, again=again)

    assert (PATHS[0],) not in [paths for _, _, paths in glue.lines]
    assert done.replanned[PATHS[0]].action == "blocked"
    assert LOADS[-1] not in done.replanned


def test_a_table_that_is_forgotten_meanwhile_does_not_hold_up_the_others(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor does an item whose key is no path: each hour the changes of the third table are taken."""
    load, gone, other = (table_path(name) for name in ("a", "b", "c"))
    world.put_raw(load, "LOAD00000001.parquet")
    world.put_item(load)
    for path in (gone, other):
        world.put_loaded(path, "LOAD00000001.parquet")
    world.table.create({"path": "junk"})
    glue = TimedGlue(world, {LOAD_INITIAL: 250, LOAD_INCREMENTAL: 10})

    def meanwhile(job: str, paths: tuple[str, ...], run_id: str) -> None:
        world.clients.dynamodb.delete_item(TableName=world.table.name, Key={"path": {"S": str(gone)}})
        world.put_raw(other, "20240501-010000000.parquet")

    glue.on_start = meanwhile
    monkeypatch.setattr(world.clients, "glue", glue)
    settings = replace(SETTINGS, limits=Limits(wait_seconds=0, replan_seconds=100))
    _, report = world.session(settings).run()

    assert [(job, paths) for _, job, paths in glue.lines] == [
        (LOAD_INITIAL, (str(load),)), (LOAD_INCREMENTAL, (str(other),)), (LOAD_INCREMENTAL, (str(other),)),
    ]  # fmt: skip
    assert report.warnings == ()


def test_runs_that_a_person_asked_for_bring_no_others(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """A rollback of many tables may take hours; those that are done are not brought forth again meanwhile."""
    done, long = (table_path(name) for name in ("a", "b"))
    for path in (done, long):
        world.put_loaded(path, "LOAD00000001.parquet")
        world.put_raw(path, "20240501-010000000.parquet")
    glue = TimedGlue(world, {ROLLBACK: 250, LOAD_INCREMENTAL: 10})
    monkeypatch.setattr(world.clients, "glue", glue)
    session = world.session(replace(SETTINGS, limits=Limits(wait_seconds=0, replan_seconds=100, max_concurrent_runs=1)))
    plan = RunPlan(
        tuple(TablePlan(str(path), "rollback", job=ROLLBACK) for path in (done, long)),
        tuple(PlannedRun(ROLLBACK, (str(path),)) for path in (done, long)),
    )

    session.execute(plan, session.host.now())

    assert [job for _, job, _ in glue.lines] == [ROLLBACK, ROLLBACK]


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
