"""`dmslake status`: how each table stands."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

import click

from controller.cli.call import Call, not_empty, warn, with_call
from controller.cli.output import Answer, View, count_text, duration_text, problem_lines, say, size_text
from controller.cli.running import activate_lines
from controller.gather import no_items
from controller.status import STATUS, TableStatus, check, join_statuses, read_status, status_dict, status_of, wants_files, with_storage
from glue_jobs.core.erasure import unfinished_text
from glue_jobs.protocol.storage import Storage

COLUMNS = ("table", "state", "lag", "pending", "size", "rows", "files", "bytes", "last run")
STORAGE_COLUMNS = ("table", "bytes", "noncurrent", "of files", "kept for", "back to", "change")


@click.command()
@click.argument("paths", nargs=-1, metavar="[PATH]...", callback=not_empty)
@click.option("--check", "is_check", is_flag=True, help="Exit with 1 if a table is blocked or behind, or the catalog does not follow.")
@click.option(
    "--max-lag", "max_lag_seconds", type=click.FloatRange(0), default=0.0, metavar="SECONDS", show_default=True,
    help="Seconds of lag, and of waiting, that --check lets pass.",
)  # fmt: skip
@click.option("--storage", is_flag=True, help="Show the bytes that old versions take, and how far back one can go: lists all versions.")
@with_call
def status(call: Call, paths: tuple[str, ...], is_check: bool, max_lag_seconds: float, storage: bool) -> int:
    """Show for all tables, or those named, how far they are behind the newest raw file, their last run, and what is blocked."""
    with call.session() as session:
        question = {"everything": True, "wants": wants_files, "discover": bool(call.settings.raw), "must_exist": is_check}
        if storage:  # needs the tables' snapshots
            gathered = session.gather(paths, **question)
            tables = with_storage(session.clients.s3, gathered, read_status(gathered))
        else:
            gathered, found = session.survey(status_of, paths, **question)
            tables = join_statuses(gathered, found)
    warn(gathered.warnings)
    if is_check and not gathered.has_items:
        raise no_items(call.settings.state_table)
    failed = check(tables, max_lag_seconds)
    data = {"status": STATUS, "tables": [status_dict(table) for table in tables], "failed": failed, "warnings": list(gathered.warnings)}
    views = [View(COLUMNS, [_row(table) for table in tables])]
    if storage:
        views = [View(STORAGE_COLUMNS, [_storage_row(table, table.storage) for table in tables if table.storage is not None])]
    call.output.show(Answer(data, views, _lines(tables)))
    if is_check and failed:
        say(f"{len(failed)} table(s) blocked, behind, or not in the catalog: {', '.join(failed)}")
    return 1 if is_check and failed else 0


def _row(table: TableStatus) -> list[str]:
    last = table.last_run or {}
    run = " ".join(str(last[name]) for name in ("time", "outcome") if last.get(name))
    pending = [duration_text(table.lag_seconds), count_text(table.pending_files), size_text(table.pending_bytes)]
    return [table.path, table.state, *pending, count_text(table.rows), count_text(table.files), size_text(table.bytes), run]


def _storage_row(table: TableStatus, kept: Storage) -> list[str]:
    days = "for good" if kept.kept_known else "not known"
    days = days if kept.kept_days is None else f"{kept.kept_days} d"
    hidden = [size_text(kept.noncurrent_bytes) or "0 B", count_text(kept.noncurrent_files)]
    return [table.path, size_text(table.bytes), *hidden, days, kept.oldest_time or "the head only", kept.oldest_change or table.head]


def _lines(tables: Sequence[TableStatus]) -> list[str]:
    lines: list[str] = []
    for table in tables:
        error = table.last_error
        if table.problem is not None:
            lines += problem_lines(table.path, table.state, table.problem.message, table.problem.todo)
        elif error is not None:
            lines += problem_lines(table.path, "the last run failed", str(error.get("message", "")), str(error.get("todo", "")))
        elif table.state in ("paused", "reload-waits", "unfinished", "truncate-due"):
            lines.append(f"{table.path}: {table.reason}")
        if table.state == "unfinished":
            lines += [f"warning: {table.path}: {text}" for text in table.warnings]
        if table.erasing:
            lines.append(f"{table.path}: {unfinished_text(table.erasing)}: `dmslake erase {shlex.quote(table.path)} --resume`")
        if table.raw_files_gone and table.state != "truncate-due":
            lines.append(f"{table.path}: {table.raw_files_gone}")
    return lines + activate_lines([(table.path, bool(table.head or table.primary_key)) for table in tables if table.state == "inactive"])
