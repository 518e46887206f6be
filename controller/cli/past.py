"""`dmslake history | show`: the changes of a table, what became of them, and until when one can go back to them."""

from __future__ import annotations

import json
from typing import Any

import click

from controller.cli.call import MOST, Call, not_empty, one_table, warn, with_call
from controller.cli.change_text import change_lines, change_views
from controller.cli.output import Answer, View, labelled
from controller.cli.show_staged import check_rows_file, find_staged, show_staged, write_rows
from controller.cli.staged_text import staged_dict, staged_view
from controller.cli.undo_text import count_cells, target_text
from controller.history import NO, PastChange, Restorable, epoch_text, shown_time, time_text
from controller.past import Past, read_change, read_past
from controller.session import Session
from controller.staged import read_staged_changes
from controller.ways import ways
from glue_jobs.aws.erased import left_versions
from glue_jobs.aws.records import read_record
from glue_jobs.aws.translate import translated
from glue_jobs.core.errors import DmslakeError, name_table
from glue_jobs.core.ids import ChangeId
from glue_jobs.core.record import to_json
from glue_jobs.core.state import TableState
from glue_jobs.protocol.history import read_snapshot, snapshot_of
from glue_jobs.protocol.stage import StagedChange

HISTORY, SHOW = 1, 1
OPTIONAL = (("epoch",), ("files",), ("to",), ("rows",), ("ins", "upd", "del"))  # what a narrow terminal does without
COLUMNS = ("change", "time (UTC)", "epoch", "kind", "to", "ins", "upd", "del", "rows", "files", "standing", "restorable")


@click.command()
@click.argument("path")
@click.option("--limit", type=click.IntRange(1, MOST), default=20, show_default=True, metavar="N", help="So many changes, the newest.")
@click.option("--all", "all_changes", is_flag=True, help="All changes.")
@with_call
def history(call: Call, path: str, limit: int, all_changes: bool) -> int:
    """List the changes of the table PATH, newest first: what each did, whether its rows are in the table, and until when one can go
    back to it."""
    with call.session() as session:
        _, state = one_table(session, path, wants=lambda state: False)
        past, staged = _read(session, state, None if all_changes else limit)
    warn(_warnings(state, past))
    rows = [_row(change) for change in past.changes]
    lines = ["older changes: --limit N, or --all"] if past.more else []
    lines += _rule_lines(past)
    data = {
        "history": HISTORY, "path": str(state.path), "head": state.head, "changes": [_dict(change) for change in past.changes],
        "staged": [staged_dict(each) for each in staged],
        "more": past.more, "noncurrent_days": past.days, "looked_up": past.looked_up, "warnings": list(past.warnings),
    }  # fmt: skip
    call.output.show(Answer(data, [View(COLUMNS, rows, OPTIONAL).without_empty("to"), staged_view(staged)], lines))
    if past.problem is not None:
        raise name_table(past.problem, str(state.path))
    return 0


def _read(session: Session, state: TableState, limit: int | None) -> tuple[Past, list[StagedChange]]:
    """The changes, and the staged ones since the oldest of them. A table may have staged ones before its first change."""
    s3 = session.clients.s3
    try:
        with translated():
            if not state.head and state.out_path:
                staged = read_staged_changes(s3, state, None, ())
                if staged:
                    return Past(), staged
            past = read_past(s3, state, limit, session.host.now())
            landed = {change.record.id for change in past.changes}
            oldest = min(landed, default="") if past.more or past.problem is not None else ""
            return past, read_staged_changes(s3, state, past.lineage, landed, oldest)
    except DmslakeError as error:
        raise name_table(error, str(state.path)) from None


def _warnings(state: TableState, past: Past) -> list[str]:
    publishing = f"the step of change {state.publishing} is not finished; the next run does it" if state.publishing else ""
    return [*filter(None, [publishing]), *past.warnings]


def _rule_lines(past: Past) -> list[str]:
    """How the column `restorable` is to be read."""
    if past.days is None:
        return []
    lines = [f"the bucket keeps a hidden file's data for {past.days} day(s): `until` is when the first file of a change may be gone"]
    if not past.looked_up:
        lines.append("these are many files: whether their data is still there was not looked up in S3")
    return lines


def restorable_text(restorable: Restorable | None) -> str:
    if restorable is None:
        return ""
    return f"until {restorable.until:%Y-%m-%d}" if restorable.until else restorable.answer  # S3 expires data after a midnight UTC


def _row(change: PastChange) -> list[str]:
    record = change.record
    files = " ".join(text for text in (_signed("+", len(record.added)), _signed("−", len(record.superseded))) if text)
    times = [time_text(shown_time(record), "milliseconds"), epoch_text(record)]
    restorable = restorable_text(change.restorable)
    return [record.id, *times, record.kind, target_text(record), *count_cells(record), files, change.standing, restorable]


def _signed(sign: str, count: int) -> str:
    return f"{sign}{count:,}" if count else ""


def _dict(change: PastChange) -> dict[str, Any]:
    """One change for JSON."""
    record, counts = change.record, change.record.counts
    return {
        "change": record.id, "time": record.time, "epoch": float(epoch_text(record)), "kind": record.kind, "parent": record.parent,
        "target": record.target, "state_of": record.details.get("state_of", ""), "lost": record.lost, "run_id": record.run_id,
        "inserted": counts.inserted, "updated": counts.updated, "deleted": counts.deleted, "table_rows": counts.table_rows,
        "input_files": len(record.inputs), "files_added": len(record.added), "files_superseded": len(record.superseded),
        "bytes_added": sum(file.size_bytes for file in record.added), **_answer(change),
    }  # fmt: skip


def _answer(change: PastChange) -> dict[str, Any]:
    known = change.restorable
    until = known.until.isoformat() if known and known.until else None
    return {"standing": change.standing, "restorable": known.answer if known else None, "until": until}


@click.command()
@click.argument("path")
@click.argument("change")
@click.option(
    "--rows", default="", callback=not_empty, metavar="FILE",
    help="Write the row changes that a staged change keeps to FILE.parquet or FILE.csv.",
)  # fmt: skip
@with_call
def show(call: Call, path: str, change: str, rows: str) -> int:
    """Show one change of the table PATH: what it took, what it did, and how to undo it or go back to it; of a staged one what it would
    do, and until when it can be committed.

    With --output json its record as it is stored.
    """
    check_rows_file(rows)
    with call.session() as session:
        _, state = one_table(session, path, wants=lambda state: False)
        answer = _show(session, state, change.strip())
        if rows:
            write_rows(session.clients.s3, state, change.strip(), rows)
    return call.show(answer)


def _show(session: Session, state: TableState, change: str) -> Answer:
    s3 = session.clients.s3
    try:
        with translated():
            ChangeId.parse(change)
            staged = find_staged(s3, state, change)
            if staged is not None:
                return show_staged(s3, state, staged)
            past = read_change(s3, state, change, session.host.now())
            record = read_record(s3, state.lake, change)
            before = read_snapshot(s3, state.lake, record.parent)
            after = snapshot_of(s3, state.lake, record)
            left = len(left_versions(s3, state.lake, (record.id,))) if record.erased else 0
    except DmslakeError as error:
        raise name_table(error, str(state.path)) from None
    warn(_warnings(state, past))
    found = past.changes[-1]
    commands = ways(state, past.lineage, found)
    data = {"show": SHOW, "path": str(state.path), **_answer(found), "record": json.loads(to_json(record)), "commands": dict(commands)}
    lines = change_lines(state, record, before, after, found.standing, _restorable_words(found, past))
    if record.erased:
        data["erased_left"] = left
        lines.append(f"erased: {len(record.erased):,} version(s) on its list, {left:,} of them not removed yet")
    return Answer(data, (), [*lines, *change_views(record, before), "", *labelled(commands)])


def _restorable_words(change: PastChange, past: Past) -> str:
    known = change.restorable
    if known is None:
        return ""
    by_rule = "" if past.looked_up else " (by the bucket's rule; not looked up in S3)"
    if known.answer == NO:
        return "no: data of its files is gone" + by_rule
    return (f"until {time_text(known.until)} UTC" if known.until else known.answer) + by_rule
