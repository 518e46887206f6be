"""`dmslake rollback | reapply`: go back to an earlier change, or forth again; first shown, then done by the job Rollback."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import click

from controller.cli.call import Call, Command, not_empty, warn, with_call
from controller.cli.output import Answer, View, problem_lines, say
from controller.cli.running import REPORT_COLUMNS, report_lines, report_row, split_paths, without_effect
from controller.cli.undo_text import MANY_COLUMNS, MANY_OPTIONAL, done_lines, many_row, short_line, show_one, undo_dict
from controller.session import Session
from controller.undoing import TableUndo, check_for_many, left_out, loaded_in_scope, plan_undos, undo_runs
from glue_jobs.aws.translate import translated
from glue_jobs.core.errors import UsageError, name_table
from glue_jobs.core.settings import Settings
from glue_jobs.core.undo import Wish
from glue_jobs.protocol.job import worst

UNDO = 1


def _common(command: Command) -> Command:
    for option in (
        click.option("--dry-run", is_flag=True, help="Show what would be done, and write nothing."),
        click.option("--resume", is_flag=True, help="Leave the table active instead of paused."),
    ):
        command = option(command)
    return command


@click.command()
@click.argument("paths", nargs=-1, metavar="[PATH]...", callback=not_empty)
@click.option(
    "--to", default="", callback=not_empty, metavar="CHANGE|previous|TIME",
    help="This change stays: an id, that before the last, or as of a time.",
)  # fmt: skip
@click.option("--undo", default="", callback=not_empty, metavar="CHANGE", help="This change goes, with all later ones.")
@click.option(
    "--all", "all_tables", is_flag=True, help="All loaded tables below --raw, and those without source below --lake; with --to TIME."
)
@click.option("--skip", is_flag=True, help="Keep the cursor: the raw files of what is undone are left out for good.")
@_common
@with_call
def rollback(call: Call, paths: tuple[str, ...], to: str, undo: str, all_tables: bool, skip: bool, resume: bool, dry_run: bool) -> int:
    """Give the table PATH the state of an earlier change, as one new change: files, columns and cursor.

    TIME is ISO 8601 (UTC where it has no zone) or epoch seconds. With several tables or --all nothing is started if one is refused.
    """
    chosen = split_paths(paths)
    if all_tables == bool(chosen):
        what = "--all and PATH exclude each other" if chosen else "it is not said which tables"
        raise UsageError(what, "no-table", "name them, or give --all for all loaded ones; `dmslake tables` lists them")
    wish = Wish(to=to.strip(), undo=undo.strip(), resume=resume, skip=skip)
    return _undo(call, chosen, wish, dry_run)


@click.command()
@click.argument("path")
@click.argument("change", required=False, default="", callback=not_empty)
@_common
@with_call
def reapply(call: Call, path: str, change: str, resume: bool, dry_run: bool) -> int:
    """Bring back what was rolled back of the table PATH: up to CHANGE, or all of it, as one new change."""
    return _undo(call, (path,), Wish(reapply=change.strip(), resume=resume), dry_run)


def _undo(call: Call, paths: Sequence[str], wish: Wish, dry_run: bool) -> int:
    """Plan for all tables (none named: all loaded ones); refused for one means done for none."""
    _check(wish, paths)
    with call.session() as session:
        if not dry_run:
            session.check_runner()
        started = session.host.now()
        undos = _plan(session, paths, wish)
        refused = [undo for undo in undos if undo.problem is not None]
        if refused:
            return _show_refused(call, undos, refused, dry_run)
        runs = undo_runs(undos, wish, call.settings.limits)
        if dry_run or not runs.runs:
            warn(runs.warnings)
            return call.show(_planned_answer(undos, dry_run))
        say(*map(short_line, undos))
        report = session.execute(runs, started)
    warn((*without_effect(call), *report.warnings))
    done = {table.path for table in report.tables if table.outcome == "committed"}
    lines = [*report_lines(report), *(line for undo in undos if undo.path in done for line in done_lines(undo))]
    data = {**report.to_dict(), "undo": UNDO, "dry_run": False, "plans": [undo_dict(undo) for undo in undos]}
    call.output.show(Answer(data, [View(REPORT_COLUMNS, [report_row(table) for table in report.tables])], lines))
    return report.exit_code


def _check(wish: Wish, paths: Sequence[str]) -> None:
    try:
        wish.check()
        if len(paths) != 1:
            check_for_many(wish)
    except UsageError as error:
        raise (name_table(error, paths[0]) if len(paths) == 1 else error) from None


def _plan(session: Session, paths: Sequence[str], wish: Wish) -> list[TableUndo]:
    gathered = session.gather(paths, alone=True, everything=True, discover=False, wants=lambda state: False, must_exist=True)
    facts = gathered.tables
    if not paths:
        warn(left_out(facts))
        facts = tuple(loaded_in_scope(facts, gathered.scope, session.settings.lake))
        if not facts:
            raise _no_table(session.settings, len(gathered.tables))
    with translated():
        return plan_undos(session.clients.s3, facts, wish)


def _no_table(settings: Settings, items: int) -> UsageError:
    """The error of --all where that means no table: to go back with none of them is not what a person wants."""
    raw, lake = settings.raw or "(not set)", settings.lake or "(not set)"
    return UsageError(
        f"--all means no table: of the {items} item(s) in the state table {settings.state_table} none is of a loaded table below "
        f"--raw {raw}, or of one without source below --lake {lake}",
        "no-table",
        "correct --raw, --lake, --state-table or AWS_REGION; `dmslake tables` lists the tables",
    )


def _show_refused(call: Call, undos: Sequence[TableUndo], refused: Sequence[TableUndo], dry_run: bool) -> int:
    """All refusals; the error itself where only one table was asked for."""
    problems = [undo.problem for undo in refused if undo.problem is not None]
    if len(undos) == 1:
        raise problems[0]
    lines = [
        line
        for undo in refused
        if undo.problem is not None
        for line in problem_lines(undo.path, "refused", undo.problem.message, undo.problem.todo)
    ]
    lines += ["", f"{len(refused)} of {len(undos)} table(s) refused: nothing was changed"]
    call.output.show(Answer({**_data(undos, dry_run), "refused": True}, [], lines))
    return worst([problem.exit_code for problem in problems]) or 1


def _planned_answer(undos: Sequence[TableUndo], dry_run: bool) -> Answer:
    data = _data(undos, dry_run)
    if len(undos) == 1:
        title, views, lines = show_one(undos[0])
        return Answer(data, views, lines, title)
    going = sum(1 for undo in undos if undo.plan and not undo.plan.is_nothing)
    lines = ["", f"{going} of {len(undos)} loaded table(s) would change"]
    return Answer(data, [View(MANY_COLUMNS, [many_row(undo) for undo in undos], MANY_OPTIONAL).without_empty("back", "skipped")], lines)


def _data(undos: Sequence[TableUndo], dry_run: bool) -> dict[str, Any]:
    return {"undo": UNDO, "dry_run": dry_run, "tables": [undo_dict(undo) for undo in undos]}
