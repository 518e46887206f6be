"""`dmslake reload | widen | schema | repartition | unblock | recover`: a person asks for something that is done to one table."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, replace

import click

from controller import edits
from controller.cli.call import Call, Command, not_empty, one_table, with_call
from controller.cli.output import Answer, View, say
from controller.cli.running import run_and_show
from controller.edits import Edit
from controller.session import Session
from glue_jobs.aws.translate import translated
from glue_jobs.core.errors import UsageError
from glue_jobs.core.schema import Schema
from glue_jobs.core.state import TableState
from glue_jobs.protocol.history import read_outline
from glue_jobs.protocol.recover import recover as recover_table


def write_edit(session: Session, state: TableState, edit: Edit) -> Answer:
    """Write the edit to the table's item; what was done and what happens next."""
    path = str(state.path)
    with translated():
        session.table.set_attributes(path, edit.values, edit.remove)
    return Answer({"path": path, "set": edit.values, "removed": list(edit.remove), "messages": list(edit.lines)}, (), edit.lines)


def run_option(command: Command) -> Command:
    """Add `--run`: do it now."""
    made: Command = click.option("--run", "run_now", is_flag=True, help="Do it now: dmslake run PATH.")(command)
    return made


def _ask(call: Call, path: str, make: Callable[[TableState], Edit], run_now: bool) -> int:
    """Make an edit of one table's item, and run the table if that is wanted; with --output json then only the run's report is printed."""
    with call.session() as session:
        _, state = one_table(session, path, wants=lambda state: False)
        answer = write_edit(session, state, make(state))
    if not run_now:
        return call.show(answer)
    say(*answer.lines)
    return run_and_show(Call(replace(call.settings, paths=(str(state.path),)), call.output))


def _columns(call: Call, path: str) -> tuple[str, Schema]:
    """(the table's path, the columns of its head, none of a table that was never loaded). No raw file is looked for."""
    with call.session() as session, translated():
        _, state = one_table(session, path, wants=lambda state: False)
        return str(state.path), read_outline(session.clients.s3, state.lake, state.head).schema if state.head else ()


@click.command()
@click.argument("path")
@run_option
@with_call
def reload(call: Call, path: str, run_now: bool) -> int:
    """Load the table PATH again from its load files, as one change."""
    return _ask(call, path, edits.reload, run_now)


@click.command()
@click.argument("path")
@run_option
@with_call
def widen(call: Call, path: str, run_now: bool) -> int:
    """Rewrite the table PATH in the wider types that its raw files need (only asked for above a size, see widen_bytes)."""
    return _ask(call, path, edits.widen, run_now)


@click.command()
@click.argument("path")
@click.option(
    "--partition-key", metavar="C", callback=not_empty, help="The new PartitionKey: columns or year(c), month(c), day(c); null: none."
)
@run_option
@with_call
def repartition(call: Call, path: str, partition_key: str | None, run_now: bool) -> int:
    """Rewrite the table PATH in the layout of its PartitionKey, as one change."""
    schema = _columns(call, path)[1] if partition_key else ()
    return _ask(call, path, lambda state: edits.repartition(state, partition_key, schema), run_now)


@click.command()
@click.argument("path")
@click.option("--accept", is_flag=True, help="The column that vanished was dropped, the one that appeared was added.")
@click.option("--rename", "renames", multiple=True, metavar="OLD=NEW", help="The column OLD is named NEW now; one at a time.")
@run_option
@with_call
def schema(call: Call, path: str, accept: bool, renames: tuple[str, ...], run_now: bool) -> int:
    """Show the columns of the table PATH, or say what a change of columns meant."""
    if accept and renames:
        raise UsageError("--accept and --rename exclude each other", "two-answers", "give one of them")
    if len(renames) > 1:
        raise UsageError(f"{len(renames)} renames are given", "two-answers", "give one --rename, and the next one when a run has done it")
    if accept:
        return _ask(call, path, edits.accept_schema, run_now)
    named, columns = _columns(call, path)
    if renames:
        return _ask(call, path, lambda now: edits.rename_column(now, renames[0], [column.name for column in columns]), run_now)
    data = {"path": named, "columns": [{"name": column.name, "type": column.type} for column in columns]}
    lines = [] if columns else [f"{named} was never loaded: it has no columns yet"]
    return call.show(Answer(data, [View(("column", "type"), [(column.name, column.type) for column in columns])], lines))


@click.command()
@click.argument("path")
@click.option(
    "--skip-file", "skip_files", multiple=True, metavar="NAME",
    help="Leave this raw file out for good: by its name, or its path below the table's folder; may stand several times.",
)  # fmt: skip
@run_option
@with_call
def unblock(call: Call, path: str, skip_files: tuple[str, ...], run_now: bool) -> int:
    """Try the blocked table PATH again."""
    return _ask(call, path, lambda state: edits.unblock(state, skip_files), run_now)


@click.command()
@click.argument("path")
@click.option("--dry-run", is_flag=True, help="Only say what would be written.")
@with_call
def recover(call: Call, path: str, dry_run: bool) -> int:
    """Set PATH's item to what its change records say, after it was deleted or restored from a backup.

    That is Head, Fence, cursor and load date, and the keys where the item has none. A table whose head is a rollback, or has raw files that
    were applied once and are pending again, is paused. Records of another table that has the same lake folder are refused.
    """
    with call.session() as session, translated():
        _, state = one_table(session, path, wants=lambda state: False)
        found = recover_table(session.clients, session.table, state.path, dry_run, call.settings.limits)
    if not found.changed:
        line = f"{found.path}: its item is not behind its change records; nothing to recover"
    elif dry_run:
        line = f"{found.path}: Head would be set to {found.head} (now {found.head_before or 'none'}), Fence to {found.fence}"
    else:
        line = f"{found.path}: Head is {found.head} (was {found.head_before or 'none'}), Fence is {found.fence}"
    lines = [line]
    if found.changed and found.paused:
        lines.append(f"{found.path}: it {'would be' if dry_run else 'is'} paused: {found.paused}")
    elif found.changed and not dry_run:
        lines.append(edits.RUN_NEXT.format(path=state.path.in_shell))
    return call.show(Answer({"dry_run": dry_run, **asdict(found)}, (), lines))
