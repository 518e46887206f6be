"""`dmslake plan | run`: what would be done, and doing it."""

from __future__ import annotations

import os
import shlex
from collections.abc import Sequence
from dataclasses import fields, replace
from typing import Any

import click

from controller.cli.call import Call, not_empty, warn, with_call
from controller.cli.output import Answer, View, count_text, duration_text, problem_lines, size_text
from controller.plan import RunPlan, TablePlan
from controller.report import RunReport, TableReport
from glue_jobs.core.errors import UsageError
from glue_jobs.core.limits import Limits

PLAN = 1
# Limits that no job heeds: of packing tables into runs, and of starting runs and waiting for them.
CONTROLLER_LIMITS = frozenset(
    {"small_table_bytes", "packed_pending_bytes", "packed_run_bytes", "packed_run_tables"}
    | {"max_concurrent_runs", "replan_seconds", "wait_seconds"}
)
# Settings that only the jobs heed, or heed as well. (Raw, lake, state table, database: doctor compares them.)
JOB_SETTINGS = frozenset({"compression", *(item.name for item in fields(Limits))} - CONTROLLER_LIMITS)


@click.command()
@click.argument("paths", nargs=-1, metavar="[PATH]...", callback=not_empty)
@with_call
def plan(call: Call, paths: tuple[str, ...]) -> int:
    """Show what a run would do, and write nothing: the same as `dmslake run --dry-run`."""
    return show_plan(_narrowed(call, paths))


@click.command()
@click.argument("paths", nargs=-1, metavar="[PATH]...", callback=not_empty)
@click.option("--dry-run", is_flag=True, help="Show what would be done, and write nothing.")
@click.option("--stage", is_flag=True, help="Prepare the next change of each named table for a look at it; commit nothing, and pause.")
@with_call
def run(call: Call, paths: tuple[str, ...], dry_run: bool, stage: bool) -> int:
    """Bring all active tables, or those named, up to what DMS has written: one run of the controller."""
    call = _narrowed(call, paths)
    if stage and not call.settings.paths:
        raise UsageError("--stage pauses tables until a person has looked, and none is named", "no-table", "name them: run PATH --stage")
    return show_plan(call) if dry_run else run_and_show(call, stage)


def _narrowed(call: Call, paths: Sequence[str]) -> Call:
    return replace(call, settings=replace(call.settings, paths=split_paths(paths)))


def split_paths(paths: Sequence[str]) -> tuple[str, ...]:
    """The tables named on the command line, also by comma."""
    return tuple(part.strip() for path in paths for part in path.split(",") if part.strip())


def show_plan(call: Call) -> int:
    """Plan and print the plan."""
    with call.session() as session:
        planned = session.plan(create=False)
    warn(planned.warnings)
    return call.show(
        Answer(plan_data(planned), [View(PLAN_COLUMNS, [_plan_row(planned, table) for table in planned.tables])], _plan_lines(planned))
    )


def run_and_show(call: Call, stage: bool = False) -> int:
    """Run and print the report; its exit code."""
    with call.session() as session:
        planned, report = session.run(stage=stage)
    warn((*without_effect(call), *report.warnings))
    idle = {table.path for table in report.tables if table.outcome == "inactive"}
    lines = report_lines(report, [(table.path, table.has_key) for table in planned.tables if table.path in idle])
    call.output.show(Answer(report.to_dict(), [View(REPORT_COLUMNS, [report_row(table) for table in report.tables])], lines))
    return report.exit_code


def without_effect(call: Call) -> list[str]:
    """A warning about settings from here that the jobs would heed if they were told: Glue jobs get a path and a run id and nothing else."""
    options = {name: f"--{name.replace('_', '-')}" for name in call.given}
    variables = {name: f"DMSLAKE_{name.upper()}" for name in JOB_SETTINGS if os.environ.get(f"DMSLAKE_{name.upper()}")}
    given = {name: text for name, text in sorted({**variables, **options}.items()) if name in JOB_SETTINGS}
    if call.settings.runner != "glue" or not given:
        return []
    return [f"{', '.join(given.values())}: Glue jobs take this from their default arguments (--{next(iter(given))}), not from here"]


PLAN_COLUMNS = ("table", "action", "files", "bytes", "job", "run", "reason")


def _plan_row(planned: RunPlan, table: TablePlan) -> list[str]:
    run_number = planned.run_of(table.path)
    size = size_text(table.bytes)
    return [table.path, table.action, count_text(table.files), size, table.job, str(run_number or ""), table.reason]


def plan_data(planned: RunPlan) -> dict[str, Any]:
    """The plan for JSON."""
    tables = []
    for table in planned.tables:
        problem = table.problem
        error = {"code": problem.code, "message": problem.message, "todo": problem.todo} if problem else None
        tables.append(
            {"path": table.path, "action": table.action, "reason": table.reason, "job": table.job, "run": planned.run_of(table.path),
             "files": table.files, "bytes": table.bytes, "pending_bytes": table.pending_bytes, "is_new": table.is_new, "error": error}
        )  # fmt: skip
    runs = [
        {"run": place, "job": run.job, "paths": list(run.paths), "pending_bytes": run.pending_bytes}
        for place, run in enumerate(planned.runs, 1)
    ]
    return {"plan": PLAN, "tables": tables, "runs": runs, "warnings": list(planned.warnings)}


def _plan_lines(planned: RunPlan) -> list[str]:
    lines = [
        line
        for table in planned.tables
        if table.problem
        for line in problem_lines(table.path, table.action, table.problem.message, table.problem.todo)
    ]
    lines += activate_lines([(table.path, table.has_key) for table in planned.tables if table.action == "inactive"])
    return [*lines, "", f"{len(planned.runs)} run(s) would be started for {sum(len(run.paths) for run in planned.runs)} table(s)"]


REPORT_COLUMNS = ("table", "action", "outcome", "inserted", "updated", "deleted", "ignored", "rows", "files", "seconds", "change")


def report_row(table: TableReport) -> list[str]:
    """A table's row under REPORT_COLUMNS."""
    files = " ".join(filter(None, [count_text(table.files_added, "+"), count_text(table.files_superseded, "−")]))
    counts = [count_text(table.inserted), count_text(table.updated), count_text(table.deleted), count_text(table.ignored)]
    seconds = f"{table.seconds:.1f}" if table.seconds else ""
    change = table.staged or (table.changes[-1] if table.changes else "")
    return [table.path, table.action, table.outcome, *counts, count_text(table.table_rows), files, seconds, change]


def report_lines(report: RunReport, idle: Sequence[tuple[str, bool]] = ()) -> list[str]:
    """What stands below the report's table. idle: the tables that are not kept up, as `activate_lines` takes them."""
    lines: list[str] = []
    for table in report.tables:
        if table.error is not None:
            lines += problem_lines(table.path, table.outcome, table.error.message, table.error.todo)
        lines += [f"warning: {table.path}: {text}" for text in table.warnings]
        if table.catalog_pending:
            behind = f"the Glue table does not have the change {table.catalog_pending} yet"
            lines.append(f"catalog: {table.path}: {behind}; each run tries again")
    lines += staged_lines(report)
    lines += activate_lines(idle)
    totals = report.totals
    outcomes = ", ".join(f"{totals[name]} {name}" for name in totals if name in {table.outcome for table in report.tables})
    rows = f"{totals['inserted']:,} inserted, {totals['updated']:,} updated, {totals['deleted']:,} deleted"
    return [*lines, "", f"{totals['tables']} table(s): {outcomes or 'nothing to do'}; {rows}; {duration_text(report.seconds)}"]


def staged_lines(report: RunReport) -> list[str]:
    """What can be done with the changes that wait for a person."""
    words = [f"{shlex.quote(table.path)} {table.staged}" for table in report.tables if table.staged]
    lines = [f"to look at it: dmslake show {each}; then dmslake commit {each}, or dmslake discard {each}" for each in words]
    return ["", *lines] if lines else []


def activate_lines(tables: Sequence[tuple[str, bool]]) -> list[str]:
    """How to activate the tables that are not: (path, whether its key is known), as it is of one that was loaded, or whose item names it.
    Of such a one the pasted command must not change the key."""
    commands = [(f"  dmslake activate {shlex.quote(path)}", has_key) for path, has_key in tables]
    known = [command for command, has_key in commands if has_key]
    new = [f"{command} --primary-key id" for command, has_key in commands if not has_key]
    lines = ["", "to have a table kept up with the key that it has:", *known] if known else []
    return lines + (["", "to have a table kept up, name its key columns (id is an example):", *new] if new else [])
