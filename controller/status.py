"""How each table stands: state, lag, what is pending, the last run, what is blocked and the way out. Reads only."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from typing import Any

from controller.gather import Facts, Gathered, in_threads
from controller.lag import lag_seconds, waiting_seconds
from controller.plan import Problem, both_actions, find_clashes
from controller.problems import problem_of
from glue_jobs.core.actions import Action, Finish, Rest, Rewrite, Stopped, TakeBatch, TakeLoad, Truncate
from glue_jobs.core.awaited import BEFORE_PLAN, mark_in
from glue_jobs.core.errors import DmslakeError
from glue_jobs.core.limits import Limits
from glue_jobs.core.raw_gone import gone_text
from glue_jobs.core.state import BlockedBy, TableState
from glue_jobs.protocol.storage import Storage, read_storage

STATUS = 1
BEHIND = frozenset({"behind", "unfinished", "not-loaded", "reload-due", "requested", "truncate-due"})


@dataclass(frozen=True)
class TableStatus:
    """One table. lag_seconds: from the cursor to the newest raw CDC file, by their names; None where nothing can be compared.
    waiting_seconds: since the oldest raw file that a run would take came, by S3's clock, or since the change that is not finished; None
    where nothing waits.

    state: inactive, paused, blocked, error, no-files, not-loaded, unfinished, requested, reload-due, truncate-due, reload-waits,
    behind, up-to-date; unread where its files were left for another look, and only its item is known.
    """

    path: str
    state: str
    lag_seconds: float | None = None
    waiting_seconds: float | None = None
    pending_files: int = 0
    pending_bytes: int = 0
    rows: int = 0
    files: int = 0
    bytes: int = 0
    head: str = ""
    cursor: str = ""
    primary_key: tuple[str, ...] = ()
    out_path: str = ""
    reason: str = ""
    last_run: dict[str, Any] | None = None
    problem: Problem | None = None
    erasing: str = ""  # an erase whose versions are not all removed yet
    raw_files_gone: str = ""  # what a person should know of raw files that are gone since they were applied
    storage: Storage | None = None  # only where it was asked for

    @property
    def is_bad(self) -> bool:
        """Whether a person must do something."""
        return self.state in ("blocked", "error")

    @property
    def is_out_of_catalog(self) -> bool:
        """Whether the last run tried the catalog step and it failed, as the next one will unless a person does something."""
        return self.state == "unfinished" and bool((self.last_run or {}).get("catalog_pending"))

    @property
    def warnings(self) -> tuple[str, ...]:
        """What the last run had to say."""
        said = (self.last_run or {}).get("warnings")
        return tuple(map(str, said)) if isinstance(said, (list, tuple)) else ()

    @property
    def last_error(self) -> Mapping[str, Any] | None:
        """That of the last run, if it failed: its message and todo. What a person asked for and was refused says nothing of the table."""
        last = self.last_run or {}
        error = last.get("error")
        return error if isinstance(error, dict) and last.get("outcome") != "refused" else None


def read_status(gathered: Gathered) -> tuple[TableStatus, ...]:
    """The status of all gathered tables."""
    return join_statuses(gathered, [status_of(fact, gathered.now, gathered.limits) for fact in gathered.tables])


def join_statuses(gathered: Gathered, tables: Sequence[TableStatus]) -> tuple[TableStatus, ...]:
    """The status of all gathered tables, each of which was looked at for itself."""
    clashes = find_clashes(gathered.tables, gathered.siblings, gathered.others)
    return tuple(
        replace(table, state="blocked", problem=clashes[table.path]) if table.path in clashes and table.state != "error" else table
        for table in tables
    )


def with_storage(s3: Any, gathered: Gathered, tables: Sequence[TableStatus]) -> tuple[TableStatus, ...]:
    """The same with what S3 keeps of each loaded table: a listing of all its versions. One that fails makes its table an error."""
    facts = {fact.path: fact for fact in gathered.tables}

    def add(table: TableStatus) -> TableStatus:
        state = facts[table.path].state
        if state is None or not table.head:
            return table
        try:
            return replace(table, storage=read_storage(s3, state.lake, facts[table.path].snapshot))
        except Exception as error:  # noqa: BLE001 - one table's failure becomes its own line, the others are shown all the same
            failure = problem_of(error)
            return replace(table, state="error", reason=failure.message, problem=failure)

    return tuple(in_threads(add, tables))


def check(tables: Sequence[TableStatus], most_lag_seconds: float) -> list[str]:
    """The paths of the tables that are blocked or whose catalog step fails, or that are behind by the given lag or more; those, too, for
    which something waits as long: a table that was never loaded has no lag, and one whose source fell silent keeps a small one."""

    def is_behind(table: TableStatus) -> bool:
        return table.state in BEHIND and max(table.lag_seconds or 0.0, table.waiting_seconds or 0.0) >= most_lag_seconds

    return [table.path for table in tables if table.is_bad or table.is_out_of_catalog or is_behind(table)]


def status_dict(table: TableStatus) -> dict[str, Any]:
    """One table for JSON."""
    data = asdict(table)
    problem = data.pop("problem")
    blocked = {name: problem[name] for name in ("code", "message", "todo")} if problem else None
    return {**data, "primary_key": list(table.primary_key), "blocked": blocked}


def wants_files(state: TableState) -> bool:
    """Which tables' raw files a status looks at: those that are kept up, and those that were loaded once."""
    return bool(state.active or state.head)


def status_of(fact: Facts, now: datetime, limits: Limits) -> TableStatus:
    """How one table stands, as if there were no other."""
    state = fact.state
    if state is None or fact.problem is not None:
        failure = Problem.of(fact.problem or DmslakeError("the item can't be read"))
        return TableStatus(fact.path, "error", reason=failure.message, problem=failure)
    if fact.is_unread:
        return _of_item(state)
    action, held_back = both_actions(state, fact, now, limits)
    # A run that can't finish a change writes down why, and the next one tries to finish it all the same.
    by = action.by if isinstance(action, Stopped) else state.blocked if isinstance(action, Finish) or _stopped_before_plan(state) else None
    problem = _problem(by)
    files, size = _pending(held_back)
    return TableStatus(
        fact.path,
        "blocked" if problem else _word(action, bool(state.head)),
        lag_seconds=lag_seconds(state, fact.listing.cdc, held_back),
        waiting_seconds=waiting_seconds(state, fact.snapshot, action, held_back, now),
        pending_files=files,
        pending_bytes=size,
        rows=fact.snapshot.rows,
        files=fact.snapshot.file_count,
        bytes=fact.snapshot.size_bytes,
        head=state.head,
        cursor=state.cursor,
        primary_key=state.primary_key,
        out_path=state.out_path,
        reason=action.reason if isinstance(action, (Rest, Finish, TakeLoad, Rewrite, Truncate)) else "",
        last_run=dict(state.last_run) or None,
        problem=problem,
        erasing=state.erasing,
        raw_files_gone=gone_text(state, fact.snapshot, fact.listing),
    )


def _of_item(state: TableState) -> TableStatus:
    """What the item alone tells."""
    problem = _problem(state.blocked)
    return TableStatus(
        str(state.path),
        "blocked" if problem else "paused" if state.paused else "unread",
        head=state.head,
        cursor=state.cursor,
        primary_key=state.primary_key,
        out_path=state.out_path,
        reason=state.paused if not problem else "",
        last_run=dict(state.last_run) or None,
        problem=problem,
        erasing=state.erasing,
    )


def _stopped_before_plan(state: TableState) -> bool:
    """Whether the last run was stopped by what no plan looks at: each run tries again, and what it finds is no matter of the raw files."""
    rests = bool(state.paused) or (state.has_source and not state.active)
    by, outcome = state.blocked, state.last_run.get("outcome")
    return not rests and by is not None and mark_in(by) == BEFORE_PLAN and outcome == "blocked"


def _problem(by: BlockedBy | None) -> Problem | None:
    return Problem(by.code, by.message, by.todo) if by else None


def _word(action: Action, is_loaded: bool) -> str:
    if isinstance(action, Rest):
        return action.code
    if isinstance(action, Finish):
        return "unfinished"
    if isinstance(action, Rewrite):
        return "requested"
    if isinstance(action, Truncate):
        return "truncate-due"
    if not is_loaded:
        return "not-loaded"
    return "reload-due" if isinstance(action, TakeLoad) else "behind"


def _pending(action: Action | None) -> tuple[int, int]:
    """Files and bytes that wait."""
    if isinstance(action, TakeLoad):
        return len(action.files), sum(file.size for file in action.files)
    if isinstance(action, TakeBatch):
        return len(action.files) + action.remaining, sum(file.size for file in action.files) + action.remaining_bytes
    return 0, 0
