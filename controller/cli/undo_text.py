"""The plan of a rollback or re-apply in words, and for JSON."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from controller.cli.output import View, count_text, labelled, size_text
from controller.history import shown_time, time_text
from controller.undoing import TableUndo
from glue_jobs.core.paths import TablePath
from glue_jobs.core.record import GOES_TO, ChangeRecord, Input
from glue_jobs.core.schema import Schema
from glue_jobs.core.undo import UndoPlan
from glue_jobs.protocol.undo import facts

MOST_SHOWN = 20  # changes, raw files, data files in a list for people
PLAN_COLUMNS = ("", "change", "time (UTC)", "kind", "ins", "upd", "del", "rows", "raw files")
MANY_COLUMNS = ("table", "to change", "goes", "back", "files", "copied", "rows", "after", "pending", "skipped")
MANY_OPTIONAL = (("copied",), ("skipped",), ("back",), ("files",), ("pending",))
_KEYS = ("PrimaryKey", "KeyCollation", "PartitionKey")


def undo_dict(undo: TableUndo) -> dict[str, Any]:
    """One table's plan for JSON."""
    if undo.plan is None:
        problem = undo.problem
        error = {"code": problem.code, "message": problem.message, "todo": problem.todo} if problem else None
        return {"path": undo.path, "error": error}
    data = {"path": undo.path, **facts(undo.plan), "to_time": undo.goal.time if undo.goal else "", "afterwards": afterwards(undo)}
    return {**data, "warnings": list(undo.warnings)}


def kind_text(record: ChangeRecord) -> str:
    """`incremental`, `rollback to <change>`, `lost: took back <change>`."""
    if record.lost:
        return f"{record.kind}: took back {record.lost}"
    return f"{record.kind} to {target_text(record)}" if record.kind in GOES_TO else record.kind


def target_text(record: ChangeRecord) -> str:
    """The change whose state a rollback or re-apply went to; '' for a change that went nowhere."""
    return str(record.details.get("state_of") or record.target or "the empty table") if record.kind in GOES_TO else ""


def count_cells(record: ChangeRecord) -> list[str]:
    """Rows inserted, updated, deleted, and of the table after it."""
    counts = record.counts
    return [count_text(counts.inserted), count_text(counts.updated), count_text(counts.deleted), f"{counts.table_rows:,}"]


def goal_text(undo: TableUndo) -> str:
    if undo.goal is None:
        return "to before its first change: the empty table"
    return f"to change {undo.goal.id}"


def show_one(undo: TableUndo) -> tuple[list[str], list[View], list[str]]:
    """Title, views and lines of one table's plan."""
    plan = undo.planned
    title = [f"{undo.path}: {plan.kind} {goal_text(undo)}"]
    if plan.is_nothing:
        return [*title, "nothing to do: the table already has that state"], [], []
    rows = [*_change_rows("goes", plan.undone), *_change_rows("comes back", tuple(reversed(plan.redone)))]
    if undo.goal is not None and undo.goal.id not in {record.id for record in (*plan.undone, *plan.redone)}:
        rows.append(_change_row("stays", undo.goal))
    more = max(0, len(plan.undone) - MOST_SHOWN) + max(0, len(plan.redone) - MOST_SHOWN)
    lines = [f"… and {more} more change(s): --output json lists all"] if more else []
    return title, [View(PLAN_COLUMNS, rows, (("raw files",), ("rows",)))], [*lines, *_fact_lines(undo, plan)]


def _change_rows(word: str, records: Sequence[ChangeRecord]) -> list[list[str]]:
    return [_change_row(word, record) for record in records[:MOST_SHOWN]]


def _change_row(word: str, record: ChangeRecord) -> list[str]:
    time = time_text(shown_time(record), "milliseconds")
    return [word, record.id, time, kind_text(record), *count_cells(record), str(len(record.inputs) or "")]


def _fact_lines(undo: TableUndo, plan: UndoPlan) -> list[str]:
    data = facts(plan)
    copied = f" ({size_text(plan.bytes_to_copy)} copied inside S3)" if plan.restored else ""
    pairs = [
        ("files", f"{len(plan.superseded)} superseded, {len(plan.restored)} restored{copied}, {data['files_kept']} kept"),
        ("partitions", f"{data['partitions']} touched" if plan.after.partitioning or plan.head.partitioning else ""),
        ("rows", f"{plan.head.rows:,} → {plan.goal.rows:,}"),
        ("cursor", _cursor_text(plan)),
        ("raw files", _inputs_text(plan.awaited, "pending again")),
        ("skipped", _inputs_text(plan.skipped, "left out for good")),
        ("columns", columns_text(plan.head.schema, plan.after.schema)),
        ("keys", ", ".join(f"{name} goes back to {plan.values[name]}" for name in _KEYS if name in plan.values)),
        ("afterwards", afterwards(undo)),
        ("to go back", way_back(undo)),
    ]
    return ["", *labelled(pairs)]


def _cursor_text(plan: UndoPlan) -> str:
    before, after = (cursor.rsplit("/", 1)[-1] or "(none)" for cursor in (plan.head.cursor, plan.after.cursor))
    return f"{before} → {after}" if before != after else f"{before}, as it is"


def _inputs_text(inputs: Sequence[Input], what: str) -> str:
    """`3 pending again: a.parquet … c.parquet`; '' for none."""
    if not inputs:
        return ""
    names = sorted(item.key.rsplit("/", 1)[-1] for item in inputs)
    return f"{len(names)} {what}: {', '.join(names) if len(names) <= 3 else f'{names[0]} … {names[-1]}'}"


def columns_text(before: Schema, after: Schema) -> str:
    """`+ name string, − flag int, id int → bigint`; '' if only their order differs, or nothing does."""
    old, new = ({column.name: column.type for column in schema} for schema in (before, after))
    if not old or not new:
        return ""
    parts = [f"+ {name} {new[name]}" for name in new if name not in old]
    parts += [f"− {name} {old[name]}" for name in old if name not in new]
    return ", ".join([*parts, *(f"{name} {old[name]} → {new[name]}" for name in new if name in old and old[name] != new[name])])


def afterwards(undo: TableUndo) -> str:
    """What happens next: the pause, or what the next run does."""
    plan, state = undo.planned, undo.state
    assert state is not None  # planned from it
    path = state.path.in_shell
    paused = str(plan.values.get("Paused", "" if plan.lifts_pause else state.paused))
    if plan.is_nothing:
        return ""
    if not state.active:
        return f"inactive as before: nothing more is applied until `dmslake activate {path}`"
    if paused:
        return f"paused: {paused}"
    files = f"applies {len(plan.awaited)} raw file(s) again" if plan.awaited else "goes on with new files"
    return f"{'the pause is lifted' if state.paused else 'active'}: the next run {files}"


def way_back(undo: TableUndo) -> str:
    """The command that gives the table the state it has now."""
    plan = undo.planned
    path, head = TablePath.parse(undo.path).in_shell, plan.head
    # Re-apply knows the undone tail of ordinary changes; any other state is gone back to by its id.
    if plan.kind == "rollback" and head.change == head.stands_for and not plan.redone and plan.undone:
        return f"dmslake reapply {path}"
    return f"dmslake rollback {path} --to {head.change}"


def short_line(undo: TableUndo) -> str:
    """The plan in one line, before it is carried out."""
    plan = undo.planned
    if plan.is_nothing:
        return f"{undo.path}: nothing to do, it already has that state"
    words = [f"{len(plan.undone)} change(s) go" if plan.undone else "", f"{len(plan.redone)} change(s) come back" if plan.redone else ""]
    files = f"{len(plan.superseded)} file(s) superseded, {len(plan.restored)} restored"
    rows = f"rows {plan.head.rows:,} → {plan.goal.rows:,}"
    return f"{undo.path}: {plan.kind} {goal_text(undo)}: {', '.join([*filter(None, words), files, rows])}"


def many_row(undo: TableUndo) -> list[str]:
    plan = undo.planned
    if plan.is_nothing:
        return [undo.path, "(as it is)", *[""] * (len(MANY_COLUMNS) - 2)]
    goal = plan.goal.change or "(empty)"
    files = " ".join(filter(None, [count_text(len(plan.restored), "+"), count_text(len(plan.superseded), "−")]))
    counts = [str(len(plan.undone) or ""), str(len(plan.redone) or ""), files, size_text(plan.bytes_to_copy)]
    rows = [f"{plan.head.rows:,}", f"{plan.goal.rows:,}"]
    return [undo.path, goal, *counts, *rows, str(len(plan.awaited) or ""), str(len(plan.skipped) or "")]


def done_lines(undo: TableUndo) -> list[str]:
    """What happens next, after it was carried out."""
    return ["", f"{undo.path}: {afterwards(undo)}", f"  to go back: {way_back(undo)}"]
