"""`dmslake apply`: rows of one table deleted or replaced by a key that need not be unique; looked at first, or done by the job Apply."""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

import click

from controller.applying import apply_run, counted, reachable, record_facts
from controller.cli.call import Call, not_empty, one_table, warn, with_call
from controller.cli.looking import Looked, looking
from controller.cli.output import Answer, View, labelled, size_text
from controller.cli.running import REPORT_COLUMNS, report_lines, report_row, without_effect
from controller.session import Session
from glue_jobs.aws.records import read_record
from glue_jobs.aws.translate import translated
from glue_jobs.core.errors import UsageError
from glue_jobs.core.given import Correction, key_text, split_key
from glue_jobs.core.record import ChangeRecord
from glue_jobs.core.state import TableState, read_state

APPLIED = 1
HERE = 1 << 62  # bytes: all of a dry run is done in this process


@click.command("apply")
@click.argument("path")
@click.option(
    "--deletes", default="", callback=not_empty, metavar="FILE", help="Keys of which every row goes: Parquet, CSV, or a folder of Parquet."
)
@click.option(
    "--updates", default="", callback=not_empty, metavar="FILE", help="Rows, all columns, that take the place of all rows of their keys."
)
@click.option("--key", required=True, metavar="A,B", help="The columns by which rows are found; several rows may have the same key.")
@click.option("--strict", is_flag=True, help="A key that no row has is an error, and nothing is changed.")
@click.option("--stage", is_flag=True, help="Do all but the commit: dmslake show | commit | discard.")
@click.option("--dry-run", is_flag=True, help="Show what would be done, and write nothing.")
@with_call
def apply(call: Call, path: str, deletes: str, updates: str, key: str, strict: bool, stage: bool, dry_run: bool) -> int:
    """Correct rows of the table PATH as one change, which can be undone like any other.

    Every row of a key in --deletes goes; all rows of a key in --updates are replaced by the rows given for it, more or fewer. A key that
    no row has is reported, and rows given for it are not inserted. FILE is s3://… or, with --runner local, a path of this machine. CSV
    has a line of names, nothing for null and "" for an empty text.
    """
    correction = Correction(split_key(key), deletes.strip(), updates.strip(), strict, stage).check()
    if dry_run:
        return _look(call, path, correction)
    return _apply(call, path, reachable(correction, call.settings.runner))


def _look(call: Call, path: str, correction: Correction) -> int:
    """What the correction would do, found out in this process."""
    with looking(call, path) as looked:
        facts = _planned(call, looked, correction)
    data = {"apply": APPLIED, "dry_run": True, "path": str(looked.state.path), "key": list(correction.key), **facts}
    title = f"{looked.state.path}: a correction by {key_text(correction.key)} would do this; nothing was changed"
    return call.show(Answer(data, (), labelled(_pairs(facts)), [title]))


def _planned(call: Call, looked: Looked, correction: Correction) -> dict[str, Any]:
    given_rows: Any = importlib.import_module("glue_jobs.spark.given_rows")
    planning: Any = importlib.import_module("glue_jobs.spark.apply_plan")
    engine: Any = importlib.import_module("glue_jobs.spark.engine")
    snapshot = looked.at("").snapshot
    path = looked.state.path
    if snapshot.is_empty:
        raise UsageError(f"{path} has no rows yet that could be corrected", "not-loaded", "`dmslake run PATH` loads it, once it is active")
    reader = given_rows.Reader(looked.session.clients.s3, call.settings.limits.apply_bytes)
    given = given_rows.read_given(reader, correction, snapshot, str(path))
    plan = planning.plan_apply(engine.Engines(HERE), looked.place, looked.state, snapshot, given, strict=correction.strict)
    return {**planning.facts(plan), "bytes_rewritten": plan.size_bytes, **counted(asdict(plan.counts()))}


def _pairs(facts: Mapping[str, Any]) -> list[tuple[str, str]]:
    """A correction in words."""
    first, missing = facts.get("keys_not_found_first") or (), facts["keys_not_found"] or 0
    more = "; …" if len(first) < missing else ""
    kinds = [(facts["keys_deleted"], "deleted"), (facts["keys_updated"], "updated")]
    counts = ", ".join(f"{facts[name]:,} {name}" for name in ("inserted", "updated", "deleted") if facts[name])
    size = f" ({size_text(facts['bytes_rewritten'])})" if facts.get("bytes_rewritten") else ""
    return [
        ("rows matched", f"{facts['rows_matched_before']:,} before, {facts['rows_after']:,} after"),
        ("keys", ", ".join(f"{number:,} {word}" for number, word in kinds if number)),
        ("not found", f"{missing:,} key(s): {'; '.join(first)}{more}" if missing else ""),
        ("rows", counts),
        ("files", f"{facts['files_rewritten']:,} rewritten{size}"),
    ]


def _apply(call: Call, path: str, correction: Correction) -> int:
    with call.session() as session:
        session.check_runner()
        _, state = one_table(session, path, wants=lambda state: False)
        report = session.execute(apply_run(state, correction), session.host.now())
        record = record_of_run(session, state, report.tables[0].changes, correction.stage) if not report.exit_code else None
    warn((*without_effect(call), *report.warnings))
    done = {"change": record.id, "staged": record.staged, "key": list(correction.key), **record_facts(record)} if record else {}
    lines = [*report_lines(report), *(done_lines(state, record, _pairs(record_facts(record))) if record else ())]
    data = {**report.to_dict(), "apply": APPLIED, "dry_run": False, "path": str(state.path), **done}
    call.output.show(Answer(data, [View(REPORT_COLUMNS, [report_row(table) for table in report.tables])], lines))
    return report.exit_code


def record_of_run(session: Session, state: TableState, changes: tuple[str, ...], staged: bool) -> ChangeRecord | None:
    """The record of the change that the run made or staged."""
    with translated():
        now = read_state(session.table.get(str(state.path)) or dict(state.item))
        change = str(now.last_run.get("staged", "")) if staged else changes[-1] if changes else ""
        return read_record(session.clients.s3, state.lake, change, with_checkpoint=False) if change else None


def done_lines(state: TableState, record: ChangeRecord, pairs: Sequence[tuple[str, str]]) -> list[str]:
    """What was done, and what can be done about it."""
    path = state.path.in_shell
    ways = [("to undo it", f"dmslake rollback {path} --undo {record.id}")]
    if record.staged:
        ways = [(f"to {word} it", f"dmslake {word} {path} {record.id}") for word in ("commit", "discard")]
        ways.insert(0, ("to look at it", f"dmslake show {path} {record.id}"))
    return ["", *labelled([("staged" if record.staged else "change", record.id), *pairs, *ways])]
