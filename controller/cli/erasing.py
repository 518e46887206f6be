"""`dmslake erase`: rows of given keys, and all that S3 keeps of them, removed for good; first shown, then asked, then done by the job
Erase."""

from __future__ import annotations

import importlib
import json
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import click

from controller.cli.call import Call, not_empty, one_table, warn, with_call
from controller.cli.confirming import confirmed
from controller.cli.looking import need
from controller.cli.output import Answer, View, labelled, say, size_text
from controller.cli.running import REPORT_COLUMNS, report_lines, report_row, without_effect
from controller.erasing import erase_run, left, look, reachable, resume_run
from controller.plan import RunPlan
from controller.report import RunReport
from controller.session import Session
from glue_jobs.aws.translate import translated
from glue_jobs.core.erase_plan import ErasePlan
from glue_jobs.core.errors import DmslakeError, UsageError, name_table
from glue_jobs.core.given import split_key
from glue_jobs.core.record import ErasedVersion
from glue_jobs.core.state import TableState

ERASE = 1
SHOWN = 5  # versions that are named
HERE = 1 << 62  # bytes: the look is done in this process
FOR_GOOD = "these versions can't be brought back by anybody"


@click.command()
@click.argument("path")
@click.option("--keys", default="", callback=not_empty, metavar="FILE", help="The keys to erase: Parquet, CSV, or a folder of Parquet.")
@click.option("--key", default="", callback=not_empty, metavar="A,B", help="The columns by which rows are found; else the primary key.")
@click.option(
    "--list", "list_to", default="", callback=not_empty, metavar="FILE",
    help="Write every version that would be removed there, as JSON lines.",
)  # fmt: skip
@click.option("--yes", is_flag=True, help="Don't ask.")
@click.option("--resume", is_flag=True, help="Remove what an earlier erase left; no keys are given.")
@click.option("--dry-run", is_flag=True, help="Show what would be done, and change nothing.")
@with_call
def erase(call: Call, path: str, keys: str, key: str, list_to: str, yes: bool, resume: bool, dry_run: bool) -> int:
    """Erase the rows of some keys from the table PATH, and every data version that still holds one, for good.

    What is removed is shown first; the run does that and nothing else, or refuses. As-of reads, rollbacks and repairs that would need an
    erased version say so afterwards. docs/erase.md says what an erase does not reach: DMS's own files, above all. FILE is s3://… or,
    with --runner local, a path of this machine; CSV has a line of names.
    """
    _check(keys, key, list_to, resume)
    need("pyarrow", "numpy")
    with call.session() as session:
        if not dry_run:
            session.check_runner()
        _, state = one_table(session, path, wants=lambda state: False)
        try:
            with translated():
                if resume:
                    return _resume(call, session, state, yes, dry_run)
                return _erase(call, session, state, keys, key, list_to, yes, dry_run)
        except DmslakeError as error:
            raise name_table(error, str(state.path)) from None


def _check(keys: str, key: str, list_to: str, resume: bool) -> None:
    if resume == bool(keys):
        todo = "give --keys FILE, or --resume alone to end an erase that was begun"
        raise UsageError("--resume takes no keys" if resume else "no keys are given", "bad-argument", todo)
    if resume and (key or list_to):
        raise UsageError("--resume takes neither --key nor --list", "bad-argument", "an erase that was begun knows its list")


def _erase(call: Call, session: Session, state: TableState, keys: str, key: str, list_to: str, yes: bool, dry_run: bool) -> int:
    started = session.host.now()
    where = keys if dry_run else reachable(keys, call.settings.runner)
    columns = split_key(key)
    settings = replace(call.settings, limits=replace(call.settings.limits, driver_bytes=HERE))
    rows: Any = importlib.import_module("glue_jobs.spark.erase_rows")
    plan = look(session.clients.s3, state, rows.RowEraser(settings, session.host.variables, where, columns))
    if list_to:
        write_list(Path(list_to), plan.versions)
    title = f"{state.path}: erase {plan.found_keys:,} key(s) ({', '.join(plan.columns)})"
    if dry_run:
        return call.show(Answer(_data(state, plan, True), (), _lines(state, plan), [title, "nothing was changed"]))
    say(title, *_lines(state, plan))
    if not confirmed(yes, f"remove {len(plan.versions):,} version(s) for good?", FOR_GOOD):
        say("nothing was erased")
        return 1
    report = session.execute(erase_run(state, where, columns, plan), started)
    return _show(call, report, {"plan": _data(state, plan, False)})


def _resume(call: Call, session: Session, state: TableState, yes: bool, dry_run: bool) -> int:
    started = session.host.now()
    versions = left(session.clients.s3, state)
    data = {"erase": ERASE, "dry_run": dry_run, "path": str(state.path), "left": len(versions), "erasing": state.erasing}
    lines = _version_lines(state, versions)
    if dry_run or not (versions or state.erasing):
        return call.show(Answer(data, (), lines, [f"{state.path}: {len(versions):,} erased version(s) left to remove"]))
    say(*lines)
    if not confirmed(yes, f"remove {len(versions):,} version(s) for good?", FOR_GOOD):
        say("nothing was removed")
        return 1
    plan: RunPlan = resume_run(state)
    return _show(call, session.execute(plan, started), {"plan": data})


def _show(call: Call, report: RunReport, more: dict[str, Any]) -> int:
    warn((*without_effect(call), *report.warnings))
    lines = [*report_lines(report), *(["what an erase does not reach: docs/erase.md"] if not report.exit_code else [])]
    call.output.show(Answer({**report.to_dict(), **more}, [View(REPORT_COLUMNS, [report_row(table) for table in report.tables])], lines))
    return report.exit_code


def write_list(file: Path, versions: Sequence[ErasedVersion]) -> None:
    """The exact list, a JSON object in each line."""
    try:
        file.write_text("".join(json.dumps(asdict(each)) + "\n" for each in versions))
    except OSError as error:
        raise UsageError(f"{file} can't be written: {error.strerror}", "bad-argument", "give --list another file") from error


def _lines(state: TableState, plan: ErasePlan) -> list[str]:
    missing = plan.keys - plan.found_keys
    others = f"{len(plan.unsearched):,} object(s) of others or damaged, first {plan.unsearched[0]}" if plan.unsearched else ""
    pairs = [
        ("head", plan.head),
        ("rows", f"{plan.rows:,} erased from the table"),
        ("files", f"{len(plan.files):,} rewritten" if plan.files else "none is rewritten: only older versions hold the key(s)"),
        ("history", _history_text(plan)),
        ("versions", f"{len(plan.versions):,} removed for good, {size_text(plan.size_bytes)}"),
        ("searched", f"{plan.searched:,} version(s)"),
        ("not found", f"{missing:,} key(s)" if missing else ""),
        ("no such column", f"{plan.lacking:,} version(s) have not all key columns: they were not matched" if plan.lacking else ""),
        ("not searched", others),
        ("before", f"the erase {state.erasing} is ended first" if state.erasing else ""),
    ]
    return [*labelled(pairs), *_version_lines(state, plan.versions)]


def _history_text(plan: ErasePlan) -> str:
    """What happens to the history table; '' where no version in its files has a key."""
    return f"{plan.history_rows:,} row version(s) erased, {len(plan.history_files):,} file(s) rewritten" if plan.history_files else ""


def _version_lines(state: TableState, versions: Sequence[ErasedVersion]) -> list[str]:
    lines = [f"  s3://{state.lake.bucket}/{each.key}  {each.version}" for each in versions[:SHOWN]]
    more = len(versions) - SHOWN
    return [*lines, *([f"  … and {more:,} more (--list FILE writes all)"] if more > 0 else [])]


def _data(state: TableState, plan: ErasePlan, dry_run: bool) -> dict[str, Any]:
    return {
        "erase": ERASE,
        "dry_run": dry_run,
        "path": str(state.path),
        "head": plan.head,
        "columns": list(plan.columns),
        **plan.facts(),
        "digest": plan.digest,
        "first": [asdict(each) for each in plan.versions[:SHOWN]],
    }
