"""Start the planned runs, a few at a time, wait for them and collect what they did. IO; decides nothing but when to look again."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from controller.host import Host
from controller.plan import LOAD_INITIAL, PlannedRun, Problem, RunPlan, TablePlan, pack_runs
from controller.problems import problem_of
from controller.runners import BackPressure, Look, NoAnswer, Runner
from glue_jobs.core.errors import DmslakeError, RetryLater
from glue_jobs.core.limits import Limits

GIVE_UP_LOOKS = 360  # looks at a run in a state nobody knows, or at a Glue that starts nothing: an hour at the default pause
FAILED_LOOKS = 12  # consecutive looks that fail
# For so long a start that got no answer is sent again: of two runs with one id the second knows the first, which it looks for among the
# changes of the last two hours.
UNANSWERED_SECONDS = 1800.0
NOT_STARTED = "NOT_STARTED"
UNKNOWN = "UNKNOWN"
LANDED = frozenset({"committed", "nothing"})


@dataclass(frozen=True)
class RunOutcome:
    """How one run ended. state: Glue's word, NOT_STARTED, or UNKNOWN where we gave up looking, or don't know whether it was started
    (without job_run).

    results: path → the table's LastRun, where this run wrote it. held: paths without one whose lease another run holds, or held meanwhile,
    as far as that can be told.
    """

    run: PlannedRun
    run_id: str
    state: str
    job_run: str = ""
    message: str = ""
    seconds: float = 0.0
    exit_code: int | None = None
    problem: Problem | None = None
    results: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    held: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Dispatched:
    """All runs in the order in which they ended. replanned: path → its plan after its first run, where one was made."""

    outcomes: tuple[RunOutcome, ...] = ()
    replanned: Mapping[str, TablePlan] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()


@dataclass
class _Going:
    """A started run. strange, failed: consecutive looks that showed an unknown state, or failed."""

    run: PlannedRun
    run_id: str
    job_run: str
    since: datetime
    state: str = ""
    strange: int = 0
    failed: int = 0


class Dispatch:
    """One controller run's job runs.

    plan_again: the plan of some tables as they are now. read_items: the state items of some tables, by path.
    """

    def __init__(
        self,
        runner: Runner,
        host: Host,
        limits: Limits,
        plan_again: Callable[[Sequence[str]], RunPlan],
        read_items: Callable[[Sequence[str]], Mapping[str, Mapping[str, Any]]],
    ) -> None:
        self._runner = runner
        self._host = host
        self._limits = limits
        self._plan_again = plan_again
        self._read_items = read_items
        self._queue: list[PlannedRun] = []
        self._ids: dict[PlannedRun, str] = {}  # of those in the queue that were tried
        self._unanswered: dict[str, datetime] = {}  # run id → when it was first asked for, without an answer
        self._going: list[_Going] = []
        self._outcomes: list[RunOutcome] = []
        self._actions: dict[str, str] = {}
        self._leases: dict[str, tuple[str, int]] = {}
        self._started: set[tuple[str, str, str]] = set()
        self._replanned: dict[str, TablePlan] = {}
        self._warnings: list[str] = []
        self._count = 0
        self._refused = 0
        self._first: tuple[PlannedRun, ...] = ()
        self._planned_at = host.now()

    def execute(self, plan: RunPlan, controller_run: str) -> Dispatched:
        """Run it all to the end. Ends because each (table, job, action) of a plan starts once, other tables are planned again only while a
        run of the first plan goes on (that one only waits is not enough: what is planned again starts before it), and waiting without an
        answer is bounded."""
        self._first, self._planned_at = plan.runs, self._host.now()
        self._enqueue(plan.runs, plan.tables)
        if self._runner.most_runs == 1:  # loads can leave no place to the others
            self._let_others_pass()
        try:
            while self._queue or self._going:
                self._start_some(controller_run)
                if self._queue or self._going:
                    self._host.wait(self._runner.pause_seconds)
                for going in list(self._going):
                    self._look(going)
                self._plan_others()
        finally:
            self._runner.close()
        return Dispatched(tuple(self._outcomes), dict(self._replanned), tuple(self._warnings))

    def _enqueue(self, runs: Iterable[PlannedRun], tables: Iterable[TablePlan]) -> None:
        self._queue.extend(runs)
        for table in tables:
            self._actions[table.path] = table.action
            self._leases[table.path] = table.lease
            if table.job:
                self._started.add((table.path, table.job, table.action))

    def _let_others_pass(self) -> None:
        """Put the loads that wait behind the runs of other jobs; each keeps its order."""
        self._queue.sort(key=lambda run: run.job == LOAD_INITIAL)

    def _start_some(self, controller_run: str) -> None:
        """Start what has room. A job that is refused now is passed over until the next look: the other jobs may have room."""
        refused: dict[str, BackPressure] = {}
        while (place := self._next_place(refused)) is not None:
            run = self._queue[place]
            run_id = self._id_of(run, controller_run)
            try:
                job_run = self._start(run, run_id)
            except BackPressure as error:
                refused[run.job] = error
                self._log("back-pressure", run, run_id, message=error.message)
                continue
            except Exception as error:  # noqa: BLE001 - a run that can't be started is its tables' failure, the other runs go on
                self._drop(place, problem_of(error), run_id)
                continue
            self._take(place)
            self._going.append(_Going(run, run_id, job_run, self._host.now()))
            self._log("run-started", run, run_id, job_run=job_run)
        self._refused = self._refused + 1 if refused and not self._going else 0
        if self._refused >= GIVE_UP_LOOKS:
            self._give_up(next(iter(refused.values())))

    def _id_of(self, run: PlannedRun, controller_run: str) -> str:
        """The id of a run in the queue, the same at each try: a try that got no answer may have started it."""
        if run not in self._ids:
            self._count += 1
            self._ids[run] = f"{controller_run}-{self._count}"
        return self._ids[run]

    def _start(self, run: PlannedRun, run_id: str) -> str:
        """The id to look it up by. Not tried again where the first try got no answer long ago: the run would not know what that one did."""
        first = self._unanswered.get(run_id)
        if first is not None and (self._host.now() - first).total_seconds() >= UNANSWERED_SECONDS:
            raise RetryLater(f"none came within {UNANSWERED_SECONDS / 60:.0f} minutes", "not-started", "run again")
        try:
            return self._runner.start(run, run_id)
        except NoAnswer:
            self._unanswered.setdefault(run_id, self._host.now())
            raise

    def _take(self, place: int) -> PlannedRun:
        """The run at that place of the queue, which waits no more."""
        run = self._queue.pop(place)
        self._ids.pop(run, None)
        return run

    def _drop(self, place: int, problem: Problem, run_id: str = "") -> None:
        """End a run that can't be started. Where it was asked for without an answer, it may have been started all the same."""
        tried = self._ids.get(self._queue[place], "")
        run = self._take(place)
        if tried not in self._unanswered:
            self._end(RunOutcome(run, run_id, NOT_STARTED, problem=problem))
            return
        message = f"it is not known whether {run.job} run {tried} was started, because a request for it got no answer: {problem.message}"
        then = "run again" if problem.code == "not-started" else problem.todo
        todo = f"look for a run with --run_id {tried} among the job's last runs in Glue; {then}"
        self._end(RunOutcome(run, tried, UNKNOWN, problem=Problem("start-not-known", message, todo, problem.exit_code)))

    def _next_place(self, refused: Collection[str]) -> int | None:
        """The place in the queue of the first run that has room. Loads, which may take hours, leave a place to the other jobs."""
        most = self._runner.most_runs
        if len(self._going) >= most:
            return None
        loads = sum(going.run.job == LOAD_INITIAL for going in self._going)
        closed = {*refused, LOAD_INITIAL} if loads >= max(1, most - 1) else refused
        return next((place for place, run in enumerate(self._queue) if run.job not in closed), None)

    def _give_up(self, error: BackPressure) -> None:
        """Nothing of ours runs and yet nothing could be started for long: leave the rest to the next controller run."""
        message = f"gave up after {GIVE_UP_LOOKS} tries: {error.message}"
        problem = Problem("not-started", message, "nothing: the next controller run tries again")
        while self._queue:
            self._drop(0, problem)

    def _look(self, going: _Going) -> None:
        try:
            look = self._runner.look(going.run, going.job_run)
        except (ClientError, BotoCoreError, DmslakeError) as error:
            going.failed += 1
            self._log("look-failed", going.run, going.run_id, message=str(error))
            if going.failed >= FAILED_LOOKS:
                self._ended(going, Look(UNKNOWN, f"its state can't be read: {error}"))
            return
        going.failed = 0
        going.strange = 0 if look.is_known else going.strange + 1
        if look.state != going.state:
            self._log("run-state", going.run, going.run_id, state=look.state, known=look.is_known)
            going.state = look.state
        if look.has_ended:
            self._ended(going, look)
        elif going.strange >= GIVE_UP_LOOKS:
            self._ended(going, Look(UNKNOWN, f"it stays in the unknown state {look.state!r}"))

    def _ended(self, going: _Going, look: Look) -> None:
        self._going.remove(going)
        seconds = (self._host.now() - going.since).total_seconds()
        outcome = RunOutcome(going.run, going.run_id, look.state, going.job_run, look.message, seconds, look.exit_code)
        try:
            outcome = _with_results(outcome, self._read_items(going.run.paths), going.since, self._leases)
        except (ClientError, BotoCoreError, DmslakeError) as error:
            outcome = replace(outcome, problem=problem_of(error))
        self._end(outcome)
        self._follow(outcome)

    def _end(self, outcome: RunOutcome) -> None:
        self._outcomes.append(outcome)
        message = outcome.problem.message if outcome.problem else outcome.message
        self._log("run-ended", outcome.run, outcome.run_id, state=outcome.state, seconds=round(outcome.seconds, 3), message=message)

    def _follow(self, outcome: RunOutcome) -> None:
        """Plan again the tables that landed and may have work for the other job: after a load, and after an unfinished step."""
        run = outcome.run
        landed = [path for path in run.paths if outcome.results.get(path, {}).get("outcome") in LANDED]
        paths = [path for path in landed if run.job == LOAD_INITIAL or self._actions.get(path) == "finish"]
        if not paths:
            return
        try:
            plan = self._plan_again(paths)
        except (ClientError, BotoCoreError, DmslakeError) as error:
            self._warnings.append(f"{', '.join(paths)} could not be planned again, the next run goes on: {problem_of(error).message}")
            return
        self._replanned.update({table.path: table for table in plan.tables})
        fresh = [table for table in plan.tables if self._is_follow_up(table, run.job)]
        self._enqueue(pack_runs(fresh, self._limits), fresh)
        self._let_others_pass()

    def _plan_others(self) -> None:
        """A first load may take hours, and only one controller runs at a time: meanwhile the other tables are not to stand still.

        Loads that wait are no reason to wait: they may do so for hours, too. Planned are all tables, because two may want the same place;
        of those that are worked on, or wait, the plan is not taken.
        """
        every = self._limits.replan_seconds
        is_long = any(going.run is run for going in self._going for run in self._first)
        others_wait = any(run.job != LOAD_INITIAL for run in self._queue)
        if not every or not is_long or others_wait or (self._host.now() - self._planned_at).total_seconds() < every:
            return
        self._planned_at = self._host.now()
        busy = {path for run in (*self._queue, *(going.run for going in self._going)) for path in run.paths}
        if not self._actions.keys() - busy:
            return
        try:
            plan = self._plan_again(tuple(self._actions))
        except (ClientError, BotoCoreError, DmslakeError) as error:
            self._warnings.append(f"the tables that are not being worked on could not be planned again: {problem_of(error).message}")
            return
        others = [table for table in plan.tables if table.path not in busy]
        self._replanned.update({table.path: table for table in others})
        self._started = {each for each in self._started if each[0] in busy}
        self._enqueue(pack_runs(others, self._limits), others)
        self._let_others_pass()

    def _is_follow_up(self, table: TablePlan, job: str) -> bool:
        return table.job not in ("", job) and (table.path, table.job, table.action) not in self._started

    def _log(self, event: str, run: PlannedRun, run_id: str, **details: Any) -> None:
        self._host.log(event, {"job": run.job, "run": run_id, "tables": list(run.paths), **details})


def _with_results(
    outcome: RunOutcome, items: Mapping[str, Mapping[str, Any]], since: datetime, leases: Mapping[str, tuple[str, int]]
) -> RunOutcome:
    """The outcome with what its tables' items say. since: when the run was started; leases: path → the lease when it was planned.

    An item written by another run says nothing about this one, but that another one had the lease, if it has ended only since.
    """
    results = {path: item["LastRun"] for path, item in items.items() if _run_id(item) == outcome.run_id}

    def is_held(path: str, item: Mapping[str, Any]) -> bool:
        owner = str(item.get("LeaseOwner") or "")
        if not owner:
            return _last_time(item) >= _text_of(since)
        before, beat = leases.get(path, ("", 0))
        # A run that was killed leaves its lease: whoever had it before must have given a sign of life since.
        return outcome.state == "SUCCEEDED" or (owner == before and int(item.get("LeaseBeat") or 0) != beat)

    return replace(outcome, results=results, held=frozenset(path for path in items if path not in results and is_held(path, items[path])))


def _text_of(time: datetime) -> str:
    """As LastRun has it."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ")


def _last_time(item: Mapping[str, Any]) -> str:
    last = item.get("LastRun")
    return str(last.get("time", "")) if isinstance(last, Mapping) else ""


def _run_id(item: Mapping[str, Any]) -> str:
    last = item.get("LastRun")
    return str(last.get("run_id", "")) if isinstance(last, Mapping) else ""
