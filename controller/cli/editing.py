"""`dmslake insert | update | delete`: rows by the table's primary key, as one change.

Rows of this machine are taken by this process; rows on S3 by the job Apply, wherever the setting `runner` has it run.
"""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import click

from controller.cli.applying import done_lines, record_of_run
from controller.cli.call import Call, Command, not_empty, one_table, warn, with_call
from controller.cli.looking import looking, need
from controller.cli.output import Answer, View, labelled, size_text
from controller.cli.running import REPORT_COLUMNS, report_lines, report_row, without_effect
from controller.editing import STDIN, RowsGiven, edit_counts, edit_facts, edit_run
from controller.session import Session
from glue_jobs.core.errors import UsageError, name_table
from glue_jobs.core.record import ChangeRecord
from glue_jobs.core.row_edit import DELETE, INSERT, UPDATE, RowEdit
from glue_jobs.core.settings import Settings
from glue_jobs.core.state import TableState
from glue_jobs.protocol.job import run_here

EDITED = 1
HERE = 1 << 62  # bytes: all of a dry run is done in this process


@dataclass(frozen=True)
class Wish:
    """What a person wants. give: makes the rows of an edit for settings, where they are of this process; None where an address has them."""

    edit: RowEdit
    dry_run: bool = False
    give: Callable[[RowEdit, Settings], Any] | None = None


def edit_options(upsert: str) -> Callable[[Command], Command]:
    """Add the options that the three commands share. upsert: what that option does here."""

    def add(command: Command) -> Command:
        command = click.option("--dry-run", is_flag=True, help="Show what would be done, and write nothing.")(command)
        command = click.option("--stage", is_flag=True, help="Do all but the commit: dmslake show | commit | discard.")(command)
        command = click.option("--upsert", is_flag=True, help=upsert)(command)
        command = click.option("--row", "texts", multiple=True, metavar="JSON", help="A row as a JSON object; may be repeated.")(command)
        rows = "JSON (a list, or an object per line), CSV or Parquet, here or on s3://; - is standard input, as JSON."
        made: Command = click.option("--rows", "where", default="", callback=not_empty, metavar="FILE", help=rows)(command)
        return made

    return add


@click.command("insert")
@click.argument("path")
@edit_options("Replace the rows of keys that the table has already; else they are an error.")
@with_call
def insert(call: Call, path: str, where: str, texts: tuple[str, ...], upsert: bool, stage: bool, dry_run: bool) -> int:
    """Insert rows into the table PATH, as one change, which can be undone like any other.

    Columns that are not given are null; the timestamp column, where the table has one, is then the time of the change.
    """
    return edit_rows(call, path, wish_for(RowEdit(INSERT, "", upsert, stage), RowsGiven(where.strip(), texts), dry_run, call))


@click.command("update")
@click.argument("path")
@edit_options("Insert rows whose key the table has not, null in the other columns; else they are an error.")
@with_call
def update(call: Call, path: str, where: str, texts: tuple[str, ...], upsert: bool, stage: bool, dry_run: bool) -> int:
    """Update rows of the table PATH, found by the primary key, as one change.

    The key and any other columns are given; columns that are not given keep their values. The key itself can't be changed.
    """
    return edit_rows(call, path, wish_for(RowEdit(UPDATE, "", upsert, stage), RowsGiven(where.strip(), texts), dry_run, call))


@click.command("delete")
@click.argument("path")
@edit_options("Leave keys aside that the table has not; else they are an error.")
@with_call
def delete(call: Call, path: str, where: str, texts: tuple[str, ...], upsert: bool, stage: bool, dry_run: bool) -> int:
    """Delete rows of the table PATH, found by the primary key, as one change.

    Only the key's columns are read. `dmslake apply` deletes by any columns, `dmslake erase` from the past too.
    """
    return edit_rows(call, path, wish_for(RowEdit(DELETE, "", upsert, stage), RowsGiven(where.strip(), texts), dry_run, call))


def wish_for(edit: RowEdit, rows: RowsGiven, dry_run: bool, call: Call) -> Wish:
    """The wish for rows that a person gives. Standard input is read here."""
    told = call.settings.runner if "runner" in call.given else ""
    edit = rows.check().on(edit, "" if dry_run else told)
    if edit.rows:
        return Wish(edit, dry_run, None if rows.is_on_s3 else _at)
    texts = [text.encode() for text in rows.texts] or [sys.stdin.buffer.read()]
    need("pyarrow", "numpy")
    files: Any = importlib.import_module("glue_jobs.spark.edit_files")
    name = "standard input" if rows.where == STDIN else "--row"
    objects = [row for text in texts for row in files.json_objects(name, text)]
    return Wish(edit, dry_run, lambda edit, settings: _job().edit_rows_of(objects, edit, settings))


def _at(edit: RowEdit, settings: Settings) -> Any:
    return _job().edit_rows_at(edit, settings)


def _job() -> Any:
    return importlib.import_module("glue_jobs.apply")


def edit_rows(call: Call, path: str, wish: Wish) -> int:
    """Do what is wished for, or look at it."""
    if wish.dry_run:
        return _look(call, path, wish)
    return _edit_by_job(call, path, wish.edit) if wish.give is None else _edit_here(call, path, wish)


def _look(call: Call, path: str, wish: Wish) -> int:
    """What the edit would do, found out in this process."""
    with looking(call, path) as looked:
        snapshot, state = looked.at("").snapshot, looked.state
        if snapshot.is_empty:
            raise _not_loaded(state)
        engine: Any = importlib.import_module("glue_jobs.spark.engine")
        make = _job().editing((wish.give or _at)(wish.edit, call.settings), wish.edit)
        plan = make(engine.Engines(HERE), looked.place, state, snapshot, looked.session.host.now())
        planning: Any = importlib.import_module("glue_jobs.spark.apply_plan")
        facts = {**planning.facts(plan), "bytes_rewritten": plan.size_bytes, **edit_counts(plan.counts())}
    data = {"rows": EDITED, "dry_run": True, "path": str(state.path), **facts}
    title = f"{state.path}: the {wish.edit.word} would do this; nothing was changed"
    return call.show(Answer(data, (), labelled(_pairs(facts)), [title]))


def _not_loaded(state: TableState) -> UsageError:
    todo = "`dmslake run PATH` loads it, once it is active" if state.has_source else "`dmslake create PATH …` makes an empty table"
    return UsageError(f"{state.path} was never loaded", "not-loaded", todo)


def _pairs(facts: Mapping[str, Any]) -> list[tuple[str, str]]:
    counts = ", ".join(f"{facts[name]:,} {name}" for name in ("inserted", "updated", "deleted") if facts[name])
    size = f" ({size_text(facts['bytes_rewritten'])})" if facts.get("bytes_rewritten") else ""
    return [
        ("given", f"{facts['rows_given']:,} row(s)"),
        ("rows", counts or "none is touched"),
        ("files", f"{facts['files_rewritten']:,} rewritten{size}"),
    ]


def _edit_here(call: Call, path: str, wish: Wish) -> int:
    """The edit in this process, under the table's lease. Its failure is raised."""
    need("pyarrow", "numpy")
    assert wish.give is not None
    call.settings.require("database")  # without it a new partition would be in no catalog, and no later run would look for it
    with call.session() as session:
        _, state = one_table(session, path, wants=lambda state: False)
        engine: Any = importlib.import_module("glue_jobs.spark.engine")
        engines, limits = engine.Engines.of(call.settings.limits), call.settings
        act = _job().Applying(_job().editing(wish.give(wish.edit, limits), wish.edit), engines, os.environ, wish.edit.stage)
        ended = run_here(session.job_context("Apply"), state.path, act)
        if ended.error is not None:
            raise name_table(ended.error, str(state.path))
        record = record_of_run(session, state, (act.change,) if act.change else (), wish.edit.stage and bool(act.change))
        warnings = _warnings(session, state)
    warn(warnings)
    data = {"rows": EDITED, "dry_run": False, "path": str(state.path), **_done(record)}
    lines = done_lines(state, record, _pairs(edit_facts(record)))[1:] if record else [f"{state.path}: no row has one of the keys"]
    return call.show(Answer(data, (), lines))


def _warnings(session: Session, state: TableState) -> list[str]:
    """What the run has to say, as it wrote it to the item."""
    item = session.table.get(str(state.path)) or {}
    last: Any = item.get("LastRun") or {}
    return [str(text) for text in last.get("warnings", ())] if isinstance(last, Mapping) else []


def _done(record: ChangeRecord | None) -> dict[str, Any]:
    return {"change": record.id, "staged": record.staged, **edit_facts(record)} if record else {"change": ""}


def _edit_by_job(call: Call, path: str, edit: RowEdit) -> int:
    with call.session() as session:
        session.check_runner()
        _, state = one_table(session, path, wants=lambda state: False)
        report = session.execute(edit_run(state, edit), session.host.now())
        record = record_of_run(session, state, report.tables[0].changes, edit.stage) if not report.exit_code else None
    warn((*without_effect(call), *report.warnings))
    lines = [*report_lines(report), *(done_lines(state, record, _pairs(edit_facts(record))) if record else ())]
    data = {**report.to_dict(), "rows": EDITED, "dry_run": False, "path": str(state.path), **_done(record)}
    call.output.show(Answer(data, [View(REPORT_COLUMNS, [report_row(table) for table in report.tables])], lines))
    return report.exit_code
