"""One controller run from its settings to its report: gather, plan, dispatch, report. The same for Glue and the command line."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, TypeVar

from controller.dispatch import Dispatch, Dispatched, RunOutcome
from controller.gather import Facts, Gathered, Question, gather, read_outlines, survey
from controller.host import Host
from controller.plan import LOAD_INCREMENTAL, LOAD_INITIAL, PlannedRun, RunPlan, join_plans, plan_one
from controller.report import RunReport, build_report
from controller.runners import GlueRunner, LocalRunner, Runner
from glue_jobs.aws.buckets import check_lake_bucket
from glue_jobs.aws.clients import Clients, Deadline, make_clients, translated
from glue_jobs.aws.state_table import StateTable
from glue_jobs.core.errors import ConfigurationError
from glue_jobs.core.limits import Limits
from glue_jobs.core.paths import S3Uri
from glue_jobs.core.settings import Settings
from glue_jobs.protocol.job_log import JobLog
from glue_jobs.protocol.table_run import JobContext

STAGE = ("stage", "true")  # argument of the load jobs
_R = TypeVar("_R")


@dataclass(frozen=True)
class Session:
    """Settings, host and clients of one call."""

    settings: Settings
    host: Host
    clients: Clients
    table: StateTable

    def gather(self, paths: Sequence[str] = (), **question: Any) -> Gathered:
        """Everything about the tables in scope, or about those of `paths`; AWS errors in our words."""
        with translated():
            return gather(self.clients, self.table, Question(self.settings, tuple(paths), **question), self.host.now())

    def survey(
        self, digest: Callable[[Facts, datetime, Limits], _R], paths: Sequence[str] = (), **question: Any
    ) -> tuple[Gathered, tuple[_R, ...]]:
        """The same without the tables' files, and what `digest` makes of each table, which has raw files and an outline of the lake's."""
        now, limits = self.host.now(), self.settings.limits
        with translated():
            asked = Question(self.settings, tuple(paths), **{"files": read_outlines, **question})
            return survey(self.clients, self.table, asked, now, lambda fact: digest(fact, now, limits))

    def plan(self, *, create: bool) -> RunPlan:
        """The plan of this call. create: write the state table and the items that are missing; otherwise nothing is written."""
        self._check()
        plan = join_plans(*self.survey(plan_one, self.settings.paths, create=create))
        return RunPlan(plan.tables, plan.runs, (*plan.warnings, *self._lake_warnings()))

    def run(self, *, stage: bool = False) -> tuple[RunPlan, RunReport]:
        """Plan, execute, report. stage: prepare the next change of each table, and commit nothing."""
        started = self.host.now()
        plan = self.plan(create=True)
        if stage:
            plan = replace(plan, runs=tuple(replace(run, arguments=(*run.arguments, STAGE)) for run in plan.runs))
        return plan, self.execute(plan, started)

    def job_context(self, job: str) -> JobContext:
        """Of a table's run in this process, with clients of its own that stop writing once its lease is over."""
        deadline = Deadline()
        clients = make_clients(self.host.variables, deadline)
        settings = replace(self.settings, run_id=self.settings.run_id or self.host.new_id())
        table = StateTable(clients, settings.state_table)
        return JobContext(job, clients, deadline, table, settings, JobLog(settings.run_id, self.host.now), self.host.now)

    def execute(self, plan: RunPlan, started: datetime) -> RunReport:
        """Start the plan's runs, wait for them and report."""
        run_id = self.settings.run_id or self.host.new_id()
        self.host.log("planned", {"run": run_id, "tables": len(plan.tables), "runs": len(plan.runs)})
        done = self._dispatch(plan, run_id) if plan.runs else Dispatched()
        return build_report(plan, done, run_id, started, self.host.now())

    def run_alone(self, run: PlannedRun) -> RunOutcome:
        """Run one job run that is of no table's item, and wait for its end."""
        dispatch = Dispatch(self._runner(), self.host, self.settings.limits, lambda paths: RunPlan(), lambda paths: {})
        return dispatch.execute(RunPlan((), (run,)), self.settings.run_id or self.host.new_id()).outcomes[0]

    def _check(self) -> None:
        if not self.settings.paths:
            self.settings.require("raw", "lake")
        self.check_runner()

    def check_runner(self) -> None:
        """Refuse before anything is read what would only fail when a run is started."""
        if self.settings.runner == "local":
            self.settings.require("database")

    def _lake_warnings(self) -> tuple[str, ...]:
        """Refuse a lake bucket that can't keep our promises; what can't be checked is a warning."""
        if not self.settings.lake:
            return ()
        with translated():
            lake = S3Uri.folder(self.settings.lake)
            return tuple(check_lake_bucket(self.clients.s3, lake.bucket, lake.key))

    def _dispatch(self, plan: RunPlan, run_id: str) -> Dispatched:
        staging = any(STAGE in run.arguments for run in plan.runs)

        def plan_again(paths: Sequence[str]) -> RunPlan:
            return RunPlan() if staging else join_plans(*self.survey(plan_one, keys=tuple(paths)))  # what comes next would not be staged

        limits = self.settings.limits
        if any(run.job not in (LOAD_INITIAL, LOAD_INCREMENTAL) for run in plan.runs):
            limits = replace(limits, replan_seconds=0)  # a person asked for these runs, and for no others
        return Dispatch(self._runner(), self.host, limits, plan_again, self.table.batch_get).execute(plan, run_id)

    def _runner(self) -> Runner:
        if self.settings.runner == "glue":
            return GlueRunner(self.clients.glue, self.settings)
        return LocalRunner(self.settings, self.host.variables, lambda run, line: self.host.log("output", {"run": run, "line": line}))


def open_session(settings: Settings, host: Host, connect: Callable[[Mapping[str, str]], Clients] = make_clients) -> Session:
    """A session with clients made from the host's environment."""
    if not settings.state_table:
        raise ConfigurationError("the setting state_table is empty", "missing-setting", "give --state-table")
    with translated():
        clients = connect(host.variables)
    return Session(settings, host, clients, StateTable(clients, settings.state_table))
