"""The overview from what was gathered: how each table stands in one word, why, and who comes first. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from controller.gather import Facts, Gathered
from controller.pages.steps import Walk, bars, when
from controller.pages.views import STATES, Overview, TableRow, Totals
from controller.status import BEHIND, TableStatus
from glue_jobs.core.erasure import unfinished_text
from glue_jobs.core.errors import UsageError
from glue_jobs.core.paths import TablePath
from glue_jobs.core.state import TableState

WAITING = "reload-waits"  # of TableStatus: behind, and nothing is wrong
NOT_FINISHED = "a run committed change {}, and its files become visible now; if no run goes on, the next one finishes it"
RUNNING = "a run has its lease, or was killed with it: then the next run takes it over"
NO_FILES = "DMS has written no file for it yet"


def overview_of(gathered: Gathered, statuses: Sequence[TableStatus], walks: Mapping[str, Walk], unread: int = 0) -> Overview:
    """walks: path → the last changes of a table, for those of which they were read; unread: for how many they were not."""
    facts = {fact.path: fact for fact in gathered.tables}
    rows = [row_of(facts[status.path], status, walks.get(status.path)) for status in statuses]
    return Overview(gathered.now, tuple(sorted(rows, key=_first)), totals(rows), gathered.warnings, unread)


def totals(rows: Sequence[TableRow]) -> Totals:
    """The sums of all rows."""
    states = Counter(row.state for row in rows)
    lags = [row.lag_seconds for row in rows if row.lag_seconds is not None and row.state != "inactive"]
    return Totals(
        len(rows),
        sum(row.rows for row in rows),
        sum(row.bytes for row in rows),
        sum(row.files for row in rows),
        {word: states[word] for word in STATES if states[word]},
        max(lags, default=None),
    )


def _first(row: TableRow) -> tuple[Any, ...]:
    """What sorts the rows: those that need a person, by their state, the one furthest behind first."""
    return not row.needs_person, STATES.index(row.state), not row.failed, -(row.lag_seconds or 0.0), row.name, row.path


def row_of(fact: Facts, status: TableStatus, walked: Walk | None = None) -> TableRow:
    """One table's row."""
    state, reason, todo = _standing(fact, status)
    newest = walked.changes[0].step if walked and walked.changes else None
    return TableRow(
        path=fact.path,
        name=_name(fact),
        state=state,
        reason=reason,
        todo=todo,
        lag_seconds=status.lag_seconds,
        pending_files=status.pending_files,
        pending_bytes=status.pending_bytes,
        change=fact.state.head if fact.state and not fact.is_unread else "",
        kind=newest.kind if newest and fact.state and newest.change == fact.state.head else "",
        time=when(fact.snapshot.time),
        rows=status.rows,
        bytes=status.bytes,
        files=status.files,
        recent=bars(walked) if walked else (),
        failed=_failed(status),
        notices=tuple(_notices(status)),
    )


def _name(fact: Facts) -> str:
    if fact.state is not None:
        return fact.state.path.name
    try:
        return TablePath.parse(fact.path).name
    except UsageError:
        return fact.path


def _standing(fact: Facts, status: TableStatus) -> tuple[str, str, str]:
    """(state, reason, todo)."""
    state = fact.state
    if status.is_bad or state is None:
        problem = status.problem
        return "blocked", problem.message if problem else status.reason, problem.todo if problem else ""
    if state.publishing:
        return "publishing", NOT_FINISHED.format(state.publishing), ""
    # Before the lease: a run that was killed leaves it, and none that would take it over is started for such a table.
    if status.state == "paused":
        told = "`dmslake " in status.reason  # of a pause by a rollback or a staged change
        return "paused", status.reason, "" if told else f"`dmslake activate {state.path.in_shell}` lets it go on"
    if state.lease_owner:
        return "running", RUNNING, ""
    if status.state == "inactive":
        key = "" if state.has_key else " --primary-key COLUMNS"
        return "inactive", _why_inactive(state), f"`dmslake activate {state.path.in_shell}{key}`"
    if status.state in BEHIND or status.state == WAITING or status.pending_files:
        return "behind", status.reason or _pending(status), ""
    if status.state == "unread":
        return "unread", "its files are being read", ""
    return "fine", NO_FILES if status.state == "no-files" else "", ""


def _why_inactive(state: TableState) -> str:
    return "it was kept up, and is not any more" if state.head else "nobody has said that it should be kept up"


def _pending(status: TableStatus) -> str:
    files = status.pending_files
    return f"{files:,} raw file{'' if files == 1 else 's'} {'waits' if files == 1 else 'wait'}" if files else ""


def _failed(status: TableStatus) -> str:
    if status.is_out_of_catalog:
        return "; ".join((status.reason, *status.warnings))
    error = None if status.is_bad else status.last_error
    if error is None:
        return ""
    message, todo = (str(error.get(name) or "") for name in ("message", "todo"))
    return (message or "without a message") + (f"; what to do: {todo}" if todo else "")


def _notices(status: TableStatus) -> list[str]:
    """What is said of a table whatever its state is."""
    erasing = unfinished_text(status.erasing) + ": `dmslake erase PATH --resume`" if status.erasing else ""
    gone = status.raw_files_gone if status.state != "truncate-due" else ""
    return [text for text in (erasing, gone) if text]
