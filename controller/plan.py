"""From gathered facts to a plan: one action per table, packed into job runs. Pure; `--dry-run` prints the very plan that `run` executes."""

from __future__ import annotations

import traceback
from collections import defaultdict
from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import PurePath
from typing import Any

from controller.gather import Facts, Gathered
from controller.lag import lag_seconds
from glue_jobs.core.actions import Action, Finish, Rest, Rewrite, Stopped, SyncHistory, TakeBatch, TakeLoad, Truncate
from glue_jobs.core.bins import groups
from glue_jobs.core.errors import DmslakeError
from glue_jobs.core.history_table import history_lake
from glue_jobs.core.intake import plan_table
from glue_jobs.core.limits import Limits
from glue_jobs.core.paths import catalog_name
from glue_jobs.core.state import TableState

LOAD_INITIAL = "LoadInitial"
LOAD_INCREMENTAL = "LoadIncremental"
ROLLBACK = "Rollback"  # no plan of a controller run has it: only a person starts it
APPLY, ERASE, ADOPT = "Apply", "Erase", "Adopt"  # nor any of these
BACKFILL = "BackfillHistory"
SNAPSHOT, GENERATE_FEED = "Snapshot", "GenerateFeed"  # of no table's item
JOBS = (LOAD_INITIAL, LOAD_INCREMENTAL, ROLLBACK, APPLY, ERASE, ADOPT, BACKFILL)  # in this order a plan starts them


@dataclass(frozen=True)
class Problem:
    """Why a table can't go on, and what a person can do. exit_code: of a command that ends with it."""

    code: str
    message: str
    todo: str = ""
    exit_code: int = 1

    @classmethod
    def of(cls, error: DmslakeError) -> Problem:
        return cls(error.code, error.message, error.todo, error.exit_code)


@dataclass(frozen=True)
class TablePlan:
    """What is decided for one table. action: a word for it; job: '' where no run is started.

    files, bytes: of the next action; pending_bytes: of all that waits, as far as it is known; table_bytes: of the head's snapshot.
    lag_seconds: as status has it, of an active table that is not paused; None where nothing can be compared. lease: who had the table's
    lease then, and the last sign of life. has_key: whether the item names a key, or the table was loaded, with one or without.
    """

    path: str
    action: str
    reason: str = ""
    job: str = ""
    files: int = 0
    bytes: int = 0
    pending_bytes: int = 0
    table_bytes: int = 0
    problem: Problem | None = None
    is_new: bool = False
    lag_seconds: float | None = None
    lease: tuple[str, int] = ("", 0)
    has_key: bool = False


@dataclass(frozen=True)
class PlannedRun:
    """One job run to start: its job, its tables and the bytes they wait for. arguments: (name, value) beside path and run id."""

    job: str
    paths: tuple[str, ...]
    pending_bytes: int = 0
    arguments: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class RunPlan:
    """The whole decision: every table's, and the runs in the order in which they start, as far as there is room."""

    tables: tuple[TablePlan, ...] = ()
    runs: tuple[PlannedRun, ...] = ()
    warnings: tuple[str, ...] = ()

    def run_of(self, path: str) -> int | None:
        """The place of the run that a table is in, counted from 1."""
        return next((place for place, run in enumerate(self.runs, 1) if path in run.paths), None)


def plan_run(gathered: Gathered) -> RunPlan:
    """The plan for all gathered tables. Two tables that would write to the same place are both refused."""
    return join_plans(gathered, [plan_one(fact, gathered.now, gathered.limits) for fact in gathered.tables])


def join_plans(gathered: Gathered, planned: Sequence[TablePlan]) -> RunPlan:
    """The plan for all gathered tables, of which each is `planned` for itself."""
    clashes = find_clashes(gathered.tables, gathered.siblings, gathered.others)
    tables = tuple(
        replace(table, action="blocked", job="", problem=clashes[table.path]) if table.path in clashes else table for table in planned
    )
    return RunPlan(tables, pack_runs(tables, gathered.limits), gathered.warnings)


def plan_one(fact: Facts, now: datetime, limits: Limits) -> TablePlan:
    """What is decided for one table, as if there were no other."""
    base = TablePlan(fact.path, "error", table_bytes=fact.snapshot.size_bytes, is_new=fact.is_new)
    if fact.problem is not None or fact.state is None:
        problem = Problem.of(fact.problem or DmslakeError("the item could not be read"))
        return replace(base, reason=problem.message, problem=problem)
    try:
        return _planned(base, fact, fact.state, now, limits)
    except Exception as error:  # noqa: BLE001 - one table's failure becomes its own report, the others go on
        place = traceback.extract_tb(error.__traceback__)[-1]
        found = f"{type(error).__name__} in {PurePath(place.filename).name}, line {place.lineno}: {error}"[:900]
        return replace(base, reason=found, problem=Problem("unexpected", found, "an error of dmslake, which stops this table: report it"))


def _planned(base: TablePlan, fact: Facts, state: TableState, now: datetime, limits: Limits) -> TablePlan:
    action, held_back = both_actions(state, fact, now, limits)
    is_kept_up = state.active and not state.paused
    return replace(
        base,
        **_in_words(action),
        job=job_of(_behind_catalog(state, action, held_back)),
        pending_bytes=pending_bytes(fact, held_back),
        lag_seconds=lag_seconds(state, fact.listing.cdc, held_back) if is_kept_up else None,
        problem=Problem(action.by.code, action.by.message, action.by.todo) if isinstance(action, Stopped) else None,
        lease=(state.lease_owner, state.lease_beat),
        has_key=state.has_key,
    )


def both_actions(state: TableState, fact: Facts, now: datetime, limits: Limits) -> tuple[Action, Action]:
    """(a table's next action, what it would be if no unfinished step, pause or known block stood before it), planned once."""
    action = plan_table(state, fact.snapshot, fact.listing, now, limits)
    known = isinstance(action, Stopped) and action.known
    if not (known or isinstance(action, Finish) or (isinstance(action, Rest) and action.code == "paused")):
        return action, action
    free = replace(state, publishing="", catalog_pending="", paused="", blocked=None)
    return action, plan_table(free, fact.snapshot, fact.listing, now, limits)


def _behind_catalog(state: TableState, action: Action, held_back: Action) -> Action:
    """The action that the table's job is for. A catalog step that fails is tried by each job and keeps none from going on with its own kind
    of action: while it is all that is left to finish, the job of what comes next is started, or that would wait as long as it fails."""
    return held_back if isinstance(action, Finish) and not state.publishing and job_of(held_back) else action


def job_of(action: Action) -> str:
    """The job that does an action; '' for none."""
    if isinstance(action, TakeLoad):
        return LOAD_INITIAL
    return LOAD_INCREMENTAL if isinstance(action, (TakeBatch, Finish, Rewrite, Truncate, SyncHistory)) else ""


def _in_words(action: Action) -> dict[str, Any]:
    """action, reason, files and bytes of a TablePlan."""
    if isinstance(action, Rest):
        return {"action": action.code, "reason": action.reason}
    if isinstance(action, Stopped):
        return {"action": "blocked", "reason": action.by.message}
    if isinstance(action, Finish):
        return {"action": "finish", "reason": action.reason}
    if isinstance(action, Rewrite):
        return {"action": action.kind, "reason": action.reason}
    if isinstance(action, Truncate):
        return {"action": "truncate", "reason": action.reason}
    if isinstance(action, SyncHistory):
        return {"action": "history", "reason": action.reason}
    size = sum(file.size for file in action.files)
    if isinstance(action, TakeLoad):
        return {"action": "reload" if action.reload else "load", "reason": action.reason, "files": len(action.files), "bytes": size}
    return {"action": "apply-late" if action.late else "apply", "reason": _batch_reason(action), "files": len(action.files), "bytes": size}


def _batch_reason(action: TakeBatch) -> str:
    if action.late:
        return f"{len(action.files)} CDC file(s) came late, ranked again with {len(action.context)} applied before"
    more = f", {action.remaining} more after this batch" if action.remaining else ""
    skipped = f", {len(action.skipped)} skipped" if action.skipped else ""
    return f"{len(action.files)} CDC file(s) pending{more}{skipped}"


def unhindered(fact: Facts, gathered: Gathered) -> Action | None:
    """What would be done for the table if no unfinished step, pause or known block stood before it; None if that isn't known."""
    if fact.state is None or fact.problem is not None:
        return None
    return both_actions(fact.state, fact, gathered.now, gathered.limits)[1]


def pending_bytes(fact: Facts, action: Action) -> int:
    """All bytes that wait for the table whose action it is; a rewrite's are those of the table itself."""
    if isinstance(action, TakeLoad):
        return sum(file.size for file in action.files)
    if isinstance(action, TakeBatch):
        return action.size_bytes + action.remaining_bytes
    return fact.snapshot.size_bytes if isinstance(action, (Rewrite, SyncHistory)) else 0


def pack_runs(tables: Iterable[TablePlan], limits: Limits, arguments: tuple[tuple[str, str], ...] = ()) -> tuple[PlannedRun, ...]:
    """The runs for the tables that have a job, each run with the same `arguments`.

    The rule: a table smaller than `small_table_bytes` with at most `packed_pending_bytes` waiting shares a run with others of the same
    job, until the run has `packed_run_bytes` waiting or `packed_run_tables` tables. Any other table has a run of its own; so has one whose
    lease is still held: what killed the run that took it may do so again, and would keep the tables behind it from their turn each time.
    First LoadInitial, then LoadIncremental, then Rollback; of a job, runs with the most bytes first, because they end last.
    """
    runs: list[PlannedRun] = []
    for job in JOBS:
        chosen = sorted((table for table in tables if table.job == job), key=lambda table: table.path)
        small = [table for table in chosen if is_small(table, limits)]
        lists = [[table] for table in chosen if not is_small(table, limits)]
        lists += groups(small, lambda table: table.pending_bytes, limits.packed_run_bytes, max(1, int(limits.packed_run_tables)))
        of_job = [
            PlannedRun(job, tuple(table.path for table in some), sum(table.pending_bytes for table in some), arguments) for some in lists
        ]
        runs += sorted(of_job, key=lambda run: -run.pending_bytes)
    return tuple(runs)


def is_small(table: TablePlan, limits: Limits) -> bool:
    """Whether a table may share a run."""
    is_left = bool(table.lease[0])
    return not is_left and table.table_bytes < limits.small_table_bytes and table.pending_bytes <= limits.packed_pending_bytes


def find_clashes(facts: Sequence[Facts], siblings: Sequence[Facts] = (), others: Sequence[TableState] = ()) -> dict[str, Problem]:
    """The active tables that would write where another one writes: the same catalog name or lake folder, or a folder inside the other's.

    Of two with the same catalog name, one that was never loaded gives way to one that was; otherwise both are refused. Of two with one
    folder both are refused; one that was never loaded also where the other is loaded and not active, since that one's files are there.
    On siblings nothing is decided, nor on others, which are those of another controller and may have another catalog: of them only the
    folders count.
    """
    out: dict[str, Problem] = {}
    active = [fact for fact in (*facts, *siblings) if fact.state is not None and fact.state.active]
    decided = {fact.path for fact in facts}
    by_name: dict[str, list[Facts]] = defaultdict(list)
    for fact in active:
        by_name[_catalog_name(fact)].append(fact)
    for name, group in by_name.items():
        loaded = [fact for fact in group if fact.state and fact.state.head]
        for fact in group if len(group) > 1 else ():
            if fact.path in decided and (len(loaded) != 1 or fact not in loaded):
                naming = [other.path for other in group if other is not fact]
                out[fact.path] = _clash("catalog-name-taken", f"the catalog table {name}", fact.path, naming)
    states = [fact.state for fact in (*facts, *siblings) if fact.state is not None]
    for state, sharing in _same_folders([state for state in (*states, *others) if state.active or state.head]):
        writing = [str(other.path) for other in sharing if other.active or not state.head]
        if state.active and writing and str(state.path) in decided:
            out[str(state.path)] = _clash("lake-folder-taken", f"the lake folder {state.out_path}", str(state.path), writing)
    return {**out, **_history_clashes([*states, *others], decided)}


def _history_clashes(states: Sequence[TableState], decided: Container[str]) -> dict[str, Problem]:
    """The tables that were never loaded and whose folder is that of another one's history, or their history's that of another one: loaded
    by one run, neither would find the other's files there. One that is loaded goes on: its own run finds what is wrong."""
    places: dict[str, dict[str, TableState]] = defaultdict(dict)
    histories = set()
    for state in states:
        if state.out_path and (state.active or state.head):
            places[str(state.lake)][str(state.path)] = state
            if state.keeps_history:
                folder = str(history_lake(state.lake))
                places[folder][str(state.path)] = state
                histories.add(folder)
    out = {}
    for folder in histories:
        for path, state in places[folder].items():
            rest = [other for other in places[folder] if other != path]
            if rest and state.active and not state.head and path in decided:
                out[path] = _clash("lake-folder-taken", f"the lake folder {folder}", path, rest)
    return out


def _catalog_name(fact: Facts) -> str:
    assert fact.state is not None
    return fact.state.catalog_table or catalog_name(fact.state.path)


def _same_folders(states: Iterable[TableState]) -> list[tuple[TableState, list[TableState]]]:
    """Tables whose lake folder is, or is inside, or holds another one's, each with those others."""
    known = sorted((state for state in states if state.out_path), key=lambda state: (state.out_path, str(state.path)))
    out: dict[str, tuple[TableState, list[TableState]]] = {}
    open_folders: list[TableState] = []
    for state in known:
        while open_folders and not state.out_path.startswith(open_folders[-1].out_path):
            open_folders.pop()
        for other in open_folders:
            out.setdefault(str(state.path), (state, []))[1].append(other)
            out.setdefault(str(other.path), (other, []))[1].append(state)
        open_folders.append(state)
    return list(out.values())


def _clash(code: str, what: str, path: str, others: Sequence[str]) -> Problem:
    attribute = "out_path" if code == "lake-folder-taken" else "CatalogTable"
    return Problem(
        code,
        f"{what} would be written by {path} and by {', '.join(others)}",
        "`dmslake deactivate` one of them, that which was never loaded if another was; "
        f"or set {attribute} of one, before its first load, to a name of its own",
    )
