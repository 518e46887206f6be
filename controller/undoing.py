"""What a rollback or re-apply would do to each table, found out before any run is started, and the plan of runs for it. Reads only."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from controller.gather import Facts, in_threads
from controller.plan import ROLLBACK, RunPlan, TablePlan, pack_runs
from controller.raw_scope import RawScope
from glue_jobs.aws.buckets import check_lake_bucket
from glue_jobs.aws.records import read_record
from glue_jobs.aws.translate import aws_error
from glue_jobs.core.errors import DmslakeError, UsageError, name_table
from glue_jobs.core.limits import Limits
from glue_jobs.core.paths import S3Uri, TablePath
from glue_jobs.core.record import ChangeRecord
from glue_jobs.core.state import TableState
from glue_jobs.core.undo import UndoPlan, Wish, parse_to
from glue_jobs.protocol.history import check_not_behind, read_snapshot
from glue_jobs.protocol.undo import prepare

ALL_UNDONE = "all"  # of the job's --reapply


@dataclass(frozen=True)
class TableUndo:
    """One table's part. plan: None where it is refused, with the reason in problem. goal: the change gone to, None for before the first."""

    path: str
    state: TableState | None = None
    plan: UndoPlan | None = None
    goal: ChangeRecord | None = None
    warnings: tuple[str, ...] = ()
    problem: DmslakeError | None = None

    @property
    def planned(self) -> UndoPlan:
        """The plan of a table that is not refused."""
        assert self.plan is not None, self.problem
        return self.plan


def check_for_many(wish: Wish) -> None:
    """UsageError for a wish that can mean only one table: each has changes of its own."""
    if not wish.to or not isinstance(parse_to(wish.to), datetime):
        raise UsageError(
            "a change id, `previous` and --undo mean one table",
            "needs-time",
            "several tables go back together to a time: --to 2024-05-01T12:00:00Z, or epoch seconds",
        )


def loaded_in_scope(facts: Sequence[Facts], scope: RawScope | None, lake: str) -> list[Facts]:
    """The tables that --all means: those below --raw, and without source those below --lake, that were ever loaded, active or not, and
    those whose item can't be read. scope: None for all with a source. An item whose key is no table's path is none of these: no job finds
    it, so that there is nothing to undo."""
    paths = [(fact, _table_path(fact)) for fact in facts if fact.state is None or fact.state.head]
    return [fact for fact, path in paths if path and _is_meant(fact.state, path, scope, lake)]


def _is_meant(state: TableState | None, path: TablePath, scope: RawScope | None, lake: str) -> bool:
    """Whether a table is in the scope, or below the lake if it has no source. Of an item that can't be read either counts, since the path
    of a table without a source is its folder in the lake."""
    folder = state.out_path if state is not None else f"s3://{path}"
    if (state is None or not state.has_source) and lake and folder.startswith(str(S3Uri.folder(lake))):
        return True
    return (state is None or state.has_source) and (scope is None or scope.has(path))


def left_out(facts: Sequence[Facts]) -> list[str]:
    """A warning for each item whose key is no table's path."""
    todo = "it is no table's path: delete the item"
    return [f"the item with the key {fact.path!r} is left out, {todo}" for fact in facts if _table_path(fact) is None]


def _table_path(fact: Facts) -> TablePath | None:
    try:
        return TablePath.parse(fact.path)
    except UsageError:
        return None


def plan_undos(s3: Any, facts: Sequence[Facts], wish: Wish) -> list[TableUndo]:
    """What the wish means for each table. One table's refusal is its `problem`."""
    return in_threads(lambda fact: _plan_undo(s3, fact, wish), facts)


def _plan_undo(s3: Any, fact: Facts, wish: Wish) -> TableUndo:
    state = fact.state
    if state is None:
        return TableUndo(fact.path, problem=fact.problem or DmslakeError("the item can't be read"))
    try:
        return _planned(s3, state, wish)
    except Exception as error:  # noqa: BLE001 - one table's failure becomes its own refusal, the others are planned all the same
        return TableUndo(fact.path, state, problem=name_table(aws_error(error), fact.path))


def _planned(s3: Any, state: TableState, wish: Wish) -> TableUndo:
    if not state.head:
        raise UsageError(f"{state.path} has no change yet", "not-loaded", "`dmslake run PATH` loads it, once it is active")
    warnings = check_lake_bucket(s3, state.lake.bucket, state.lake.key)
    if not state.lease_owner:  # a run that is at work may commit between our reading the item and the records
        check_not_behind(s3, state.lake, state.head, state.fence, str(state.path))
    plan = prepare(s3, state, read_snapshot(s3, state.lake, state.head), wish).plan
    goal = read_record(s3, state.lake, plan.goal.change, with_checkpoint=False) if plan.goal.change else None
    if state.publishing:
        warnings.append(f"the step of change {state.publishing} was not finished; the run finishes it first, and then plans anew")
    return TableUndo(str(state.path), state, plan, goal, tuple(warnings))


def definite(wish: Wish, undo: TableUndo) -> Wish:
    """The wish as it was understood: the run is told the very change that was shown."""
    goal = undo.planned.goal.change
    if wish.reapply is not None:
        return replace(wish, reapply=goal)
    if wish.to and not isinstance(parse_to(wish.to), datetime):
        return replace(wish, to=goal) if goal else replace(wish, to="", undo=undo.planned.undone[-1].id)
    return wish


def job_arguments(wish: Wish) -> tuple[tuple[str, str], ...]:
    """The wish as arguments of the job Rollback."""
    pairs = [("to", wish.to), ("undo", wish.undo)]
    if wish.reapply is not None:
        pairs.append(("reapply", wish.reapply or ALL_UNDONE))
    pairs += [("resume", "true" if wish.resume else ""), ("skip", "true" if wish.skip else "")]
    return tuple((name, value) for name, value in pairs if value)


def undo_runs(undos: Sequence[TableUndo], wish: Wish, limits: Limits) -> RunPlan:
    """The runs for tables none of which is refused; one that already has the wanted state needs none."""
    tables = tuple(_table_plan(undo.path, undo.planned) for undo in undos)
    is_one = len(undos) == 1 and not undos[0].planned.is_nothing
    arguments = job_arguments(wish)
    if is_one:  # what was shown is what is done: not if another change was committed meanwhile
        arguments = (*job_arguments(definite(wish, undos[0])), ("from_change", undos[0].planned.head.change))
    return RunPlan(tables, pack_runs(tables, limits, arguments), tuple(f"{undo.path}: {text}" for undo in undos for text in undo.warnings))


def _table_plan(path: str, plan: UndoPlan) -> TablePlan:
    if plan.is_nothing:
        return TablePlan(path, "up-to-date", "the table already has that state")
    size = plan.bytes_to_copy
    return TablePlan(
        path,
        plan.kind,
        f"to change {plan.goal.change}" if plan.goal.change else "to before the first change",
        ROLLBACK,
        files=len(plan.restored),
        bytes=size,
        pending_bytes=size,
        table_bytes=plan.head.size_bytes,
    )
