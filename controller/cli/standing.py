"""`dmslake status`: how each table stands."""

from __future__ import annotations

from collections.abc import Sequence

import click

from controller.cli.call import Call, warn, with_call
from controller.cli.output import Answer, View, count_text, duration_text, problem_lines, size_text
from controller.cli.running import activate_lines
from controller.status import STATUS, TableStatus, check, read_status, status_dict, wants_files
from glue_jobs.core.erasure import unfinished_text

COLUMNS = ("table", "state", "lag", "pending", "size", "rows", "files", "bytes", "last run")


@click.command()
@click.argument("paths", nargs=-1, metavar="[PATH]...")
@click.option("--check", "is_check", is_flag=True, help="Exit with 1 if a table is blocked or behind.")
@click.option("--max-lag", "max_lag_seconds", type=click.FloatRange(0), default=0.0, metavar="SECONDS", help="What --check lets pass.")
@with_call
def status(call: Call, paths: tuple[str, ...], is_check: bool, max_lag_seconds: float) -> int:
    """Show for all tables, or those named, how far they are behind the newest raw file, their last run, and what is blocked."""
    with call.session() as session:
        gathered = session.gather(paths, everything=True, wants=wants_files, discover=bool(call.settings.raw))
    tables = read_status(gathered)
    warn(gathered.warnings)
    failed = check(tables, max_lag_seconds)
    data = {"status": STATUS, "tables": [status_dict(table) for table in tables], "failed": failed, "warnings": list(gathered.warnings)}
    call.output.show(Answer(data, [View(COLUMNS, [_row(table) for table in tables])], _lines(tables)))
    if is_check and failed:
        click.echo(f"{len(failed)} table(s) blocked or behind: {', '.join(failed)}", err=True)
    return 1 if is_check and failed else 0


def _row(table: TableStatus) -> list[str]:
    last = table.last_run or {}
    run = " ".join(str(last[name]) for name in ("time", "outcome") if last.get(name))
    pending = [duration_text(table.lag_seconds), count_text(table.pending_files), size_text(table.pending_bytes)]
    return [table.path, table.state, *pending, count_text(table.rows), count_text(table.files), size_text(table.bytes), run]


def _lines(tables: Sequence[TableStatus]) -> list[str]:
    lines: list[str] = []
    for table in tables:
        error = (table.last_run or {}).get("error")
        if table.problem is not None:
            lines += problem_lines(table.path, table.state, table.problem.message, table.problem.todo)
        elif isinstance(error, dict):
            lines += problem_lines(table.path, "the last run failed", str(error.get("message", "")), str(error.get("todo", "")))
        elif table.state in ("paused", "reload-waits", "unfinished", "truncate-due"):
            lines.append(f"{table.path}: {table.reason}")
        if table.erasing:
            lines.append(f"{table.path}: {unfinished_text(table.erasing)}: `dmslake erase {table.path} --resume`")
        if table.raw_files_gone and table.state != "truncate-due":
            lines.append(f"{table.path}: {table.raw_files_gone}")
    return lines + activate_lines([table.path for table in tables if table.state == "inactive"])
