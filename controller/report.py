"""What a controller run did, per table: a versioned value for programs, and what its exit code is."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from typing import Any

from controller.dispatch import NOT_STARTED, UNKNOWN, Dispatched, RunOutcome
from controller.plan import LOAD_INCREMENTAL, LOAD_INITIAL, Problem, RunPlan, TablePlan

REPORT = 1
LEASE_HELD_EXIT = 4
LEASE_HELD = Problem("lease-held", "another run holds the table's lease", "nothing: run again later")
# Worst first: where several runs of one table went well, or only found its lease held, the report shows the first of these that occurred.
SEVERITY = ("failed", "refused", "blocked", "not-started", "lease-held", "staged", "committed", "waiting", "nothing")
GOOD = frozenset({"staged", "committed", "waiting", "nothing", "inactive", "paused"})  # a word that we don't know is not taken for good
CAUGHT_UP = frozenset({"committed", "nothing"})  # a run that ends so has taken all that was there, if it does not say that it leaves some
# What a plan's action without a job means as an outcome.
RESTS = {"up-to-date": "nothing", "no-files": "nothing", "reload-waits": "waiting", "inactive": "inactive", "paused": "paused"}
SUMMED = ("inserted", "updated", "deleted", "ignored", "input_rows", "files_added", "files_superseded", "bytes_added")


@dataclass(frozen=True)
class TableReport:
    """One table's part. outcome: of SEVERITY, or inactive, paused. staged: the change that a run prepared and did not commit; the counts
    are its. Counts are sums over the table's runs; table_rows is after the last.

    catalog_pending: a change that stands, and whose catalog step the last run could not do: the Glue table does not follow.
    lag_seconds: what is left after the runs, as the last plan of the table has it; 0 for one that caught up, whose raw files are not
    looked at again.
    """

    path: str
    action: str
    outcome: str
    reason: str = ""
    runs: tuple[str, ...] = ()
    changes: tuple[str, ...] = ()
    staged: str = ""
    catalog_pending: str = ""
    inserted: int = 0
    updated: int = 0
    deleted: int = 0
    ignored: int = 0
    input_rows: int = 0
    table_rows: int = 0
    files_added: int = 0
    files_superseded: int = 0
    bytes_added: int = 0
    seconds: float = 0.0
    lag_seconds: float = 0.0
    is_new: bool = False
    warnings: tuple[str, ...] = ()
    error: Problem | None = None

    @property
    def exit_code(self) -> int:
        if self.outcome == "lease-held":
            return LEASE_HELD_EXIT
        if self.outcome in GOOD:
            return 0
        return self.error.exit_code if self.error else 1


@dataclass(frozen=True)
class RunReport:
    """The report of a whole controller run."""

    run_id: str
    started: str
    seconds: float
    tables: tuple[TableReport, ...] = ()
    warnings: tuple[str, ...] = ()

    @property
    def totals(self) -> dict[str, int]:
        """Tables by outcome, and the sums of their counts."""
        sums = {name: sum(int(getattr(table, name)) for table in self.tables) for name in SUMMED}
        outcomes: dict[str, int] = {}
        for table in self.tables:
            outcomes[table.outcome] = outcomes.get(table.outcome, 0) + 1
        return {"tables": len(self.tables), **outcomes, **sums}

    @property
    def exit_code(self) -> int:
        """3: settings, credentials or jobs are wrong; 1: a table failed or is blocked; 4: only leases were held; 0: all else."""
        codes = {table.exit_code for table in self.tables} - {0}
        if codes <= {LEASE_HELD_EXIT}:
            return max(codes, default=0)
        return 3 if 3 in codes else 1

    @property
    def failures(self) -> tuple[str, ...]:
        """A sentence per table that failed or is blocked, the first with their number."""
        bad = [table for table in self.tables if table.exit_code not in (0, LEASE_HELD_EXIT)]
        texts = [f"{table.path} {table.outcome}: {table.error.message if table.error else ''}" for table in bad]
        return tuple(
            f"{len(bad)} of {len(self.tables)} table(s) failed, first {text}" if at == 0 else text for at, text in enumerate(texts)
        )

    def to_dict(self) -> dict[str, Any]:
        """For JSON, `report` first; counts of 0 and empty fields of tables are left out."""
        return {**self.head(), "tables": [table_dict(table) for table in self.tables]}

    def head(self) -> dict[str, Any]:
        """All but the tables."""
        return {
            "report": REPORT, "run_id": self.run_id, "started": self.started, "seconds": self.seconds, "exit_code": self.exit_code,
            "totals": self.totals, "warnings": list(self.warnings),
        }  # fmt: skip


def table_dict(table: TableReport) -> dict[str, Any]:
    """One table for JSON."""
    data = asdict(table)
    if table.error is not None:
        data["error"] = {"code": table.error.code, "message": table.error.message, "todo": table.error.todo}
    return {name: value for name, value in data.items() if value not in (0, "", (), None, False) or name in ("path", "outcome")}


def build_report(plan: RunPlan, done: Dispatched, run_id: str, started: datetime, ended: datetime) -> RunReport:
    """The report of a plan and of what became of it."""
    by_path: dict[str, list[RunOutcome]] = {}
    for outcome in done.outcomes:
        for path in outcome.run.paths:
            by_path.setdefault(path, []).append(outcome)
    tables = tuple(_table(table, by_path.get(table.path, []), done.replanned.get(table.path)) for table in plan.tables)
    seconds = round((ended - started).total_seconds(), 3)
    return RunReport(run_id, started.isoformat(timespec="seconds"), seconds, tables, (*plan.warnings, *done.warnings))


def _table(plan: TablePlan, outcomes: Sequence[RunOutcome], again: TablePlan | None) -> TableReport:
    """One table's part. again: what was planned for it last, if it was planned again."""
    last = plan if again is None else replace(again, is_new=plan.is_new)
    table = _of_runs(plan, outcomes, last) if outcomes else _unstarted(last)
    leaves = bool(outcomes) and bool(outcomes[-1].results.get(plan.path, {}).get("leaves"))
    return table if table.outcome in CAUGHT_UP and not leaves else replace(table, lag_seconds=last.lag_seconds or 0.0)


def _of_runs(plan: TablePlan, outcomes: Sequence[RunOutcome], last: TablePlan) -> TableReport:
    """A table for which runs were started, by its first plan or by a later one."""
    parts = [_part(plan if plan.job else last, outcome) for outcome in outcomes]
    # A run that ended without a result did no catalog step either.
    with_result = [part for part, outcome in zip(parts, outcomes) if plan.path in outcome.results]
    if last is not plan and last.problem is not None:
        parts.append(_unstarted(last))
    return replace(_merged(parts), catalog_pending=with_result[-1].catalog_pending if with_result else "")


def _unstarted(plan: TablePlan) -> TableReport:
    """A table for which no run was started."""
    if plan.problem is not None:
        outcome = "failed" if plan.action == "error" else "blocked"
        return TableReport(plan.path, plan.action, outcome, error=plan.problem, is_new=plan.is_new)
    return TableReport(plan.path, plan.action, RESTS.get(plan.action, "nothing"), plan.reason, is_new=plan.is_new)


def _part(plan: TablePlan, outcome: RunOutcome) -> TableReport:
    """What one run did to the table: its LastRun if the run wrote it, otherwise what the run's end tells."""
    base = TableReport(plan.path, plan.action, "failed", plan.reason, (outcome.run_id,) if outcome.run_id else (), is_new=plan.is_new)
    last = outcome.results.get(plan.path)
    if last is not None:
        return _from_last_run(base, last)
    if outcome.problem is not None:
        not_started = outcome.state == NOT_STARTED
        return replace(base, outcome="not-started", error=outcome.problem) if not_started else replace(base, error=_unread(plan, outcome))
    if outcome.exit_code == LEASE_HELD_EXIT or plan.path in outcome.held:
        return replace(base, outcome="lease-held", error=LEASE_HELD)
    return replace(base, error=_no_result(plan, outcome))


def _from_last_run(base: TableReport, last: Mapping[str, Any]) -> TableReport:
    error = last.get("error")
    problem = None
    if isinstance(error, Mapping):
        problem = Problem(str(error.get("code", "")), str(error.get("message", "")), str(error.get("todo", "")))
    counts: dict[str, Any] = {name: int(last.get(name) or 0) for name in (*SUMMED, "table_rows")}
    return replace(
        base,
        outcome=str(last.get("outcome", "failed")),
        changes=tuple(str(change) for change in last.get("changes") or ()),
        staged=str(last.get("staged") or ""),
        catalog_pending=str(last.get("catalog_pending") or ""),
        seconds=float(last.get("seconds") or 0.0),
        error=problem,
        warnings=tuple(str(text) for text in last.get("warnings") or ()),
        **counts,
    )


def _unread(plan: TablePlan, outcome: RunOutcome) -> Problem:
    """Why it can't be read what a run did. What is asked for again without a look may be done twice."""
    problem = outcome.problem
    assert problem is not None
    message = problem.message
    if outcome.job_run:
        ended = f"it ended {outcome.state}, and what it did can't be read"
        told = "how it ended can't be read, and it may go on" if outcome.state == UNKNOWN else ended
        message = f"{outcome.run.job} run {outcome.job_run} was started; {told}: {message}"
    return replace(problem, message=message, todo="; ".join(filter(None, (_look_first(plan, outcome), problem.todo))))


def _look_first(plan: TablePlan, outcome: RunOutcome) -> str:
    """Loads go on from what they find, whoever made it."""
    if outcome.run.job in (LOAD_INITIAL, LOAD_INCREMENTAL):
        return "the next run goes on from what this one has done"
    return f"before it is run again, look whether it is done: `dmslake history {shlex.quote(plan.path)}`"


def _no_result(plan: TablePlan, outcome: RunOutcome) -> Problem:
    where = f"{outcome.run.job} run {outcome.job_run or outcome.run_id}"
    if outcome.state == UNKNOWN:
        message = f"the {where} was started; how it ended can't be read, and it may go on, without a result for {plan.path} as yet"
        return Problem("no-result", f"{message}: {outcome.message}", f"{_look_first(plan, outcome)}; read the run's log")
    message = f"the {where} ended {outcome.state} without a result for {plan.path}"
    if outcome.message:
        message += f": {outcome.message}"
    code = {3: 3}.get(outcome.exit_code or 0, 1)
    return Problem("no-result", message, "read the run's log; nothing half-done is visible, and the next run goes on from the state", code)


def _merged(parts: list[TableReport]) -> TableReport:
    """Several runs of one table as one. A failure that a later run mended is only a warning."""
    caught_up = max((place for place, part in enumerate(parts) if part.outcome in CAUGHT_UP), default=0)
    told = _telling(parts, caught_up)
    mended = [part for part in parts[:caught_up] if _went_wrong(part)]
    texts = [f"{part.outcome} at first: {part.error.message if part.error else ''}; a later run mended it" for part in mended]
    last = next((part for part in reversed(parts) if part.changes or part.table_rows), parts[-1])
    sums: dict[str, Any] = {name: sum(int(getattr(part, name)) for part in parts) for name in SUMMED}
    return replace(
        parts[0],
        outcome=told.outcome,
        error=told.error,
        runs=tuple(run for part in parts for run in part.runs),
        changes=tuple(change for part in parts for change in part.changes),
        staged=next((part.staged for part in reversed(parts) if part.staged), ""),
        table_rows=last.table_rows,
        warnings=tuple(dict.fromkeys([*texts, *(text for part in parts for text in part.warnings)])),
        seconds=round(sum(part.seconds for part in parts), 3),
        **sums,
    )


def _telling(parts: Sequence[TableReport], caught_up: int) -> TableReport:
    """The part that tells how the table stands: the last that went wrong since one caught up; where none did, the first of SEVERITY."""
    wrong = [part for part in parts[caught_up:] if _went_wrong(part)]
    if wrong:
        return wrong[-1]
    left = [part for place, part in enumerate(parts) if place >= caught_up or part.outcome in GOOD]
    return min(left, key=lambda part: SEVERITY.index(part.outcome) if part.outcome in SEVERITY else 0)


def _went_wrong(part: TableReport) -> bool:
    """Whether a run failed, or the table is blocked. A lease that was held tells nothing of the table."""
    return part.outcome not in GOOD and part.outcome != "lease-held"
