"""One change in words: its record, what became of it, and the commands that undo it or bring it back."""

from __future__ import annotations

import json
from collections.abc import Sequence

from controller.cli.output import View, aligned, count_text, labelled, size_text
from controller.cli.staged_text import rows_text
from controller.cli.undo_text import MOST_SHOWN, columns_text, kind_text
from controller.history import HEAD, LIVE, LOST, UNDONE, epoch_text
from glue_jobs.core.collation import key_text
from glue_jobs.core.ids import CHANGE_CHARS, change_of_record
from glue_jobs.core.partitioning import partition_key_text
from glue_jobs.core.record import ChangeRecord, DataFile, Input
from glue_jobs.core.snapshot import Snapshot
from glue_jobs.core.state import TableState
from glue_jobs.core.undo import record_time

STANDING_WORDS = {
    HEAD: "head: the table has its state",
    LIVE: "live: its rows are in the table",
    UNDONE: "undone: its rows are not in the table",
    LOST: "lost: taken back before it was published, because its uploads were gone",
    "step": "a step between states; the table has gone on since",
    "waiting": "staged: it waits for a person to commit or discard it; readers see nothing of it",
    "overtaken": "staged, and can't be committed any more: the table has gone on since",
    "committed": "staged, and committed as a change of its own",
    "discarded": "staged, and discarded",
    "gone": "staged, and can't be committed any more: its uploads are gone",
}
# Details that other lines tell, or that only programs want.
TOLD = frozenset("undone redone undone_count redone_count state_of rows_before before commit item rows_kept rows_changed".split())


def change_lines(state: TableState, record: ChangeRecord, before: Snapshot, after: Snapshot, standing: str, restorable: str) -> list[str]:
    """Everything of a change but its lists."""
    counts = record.counts
    rows = [(counts.inserted, "inserted"), (counts.updated, "updated"), (counts.deleted, "deleted"), (counts.ignored, "ignored")]
    done = ", ".join(f"{number:,} {word}" for number, word in rows if number)
    cursor_before, cursor_after = _name(before.cursor), _name(after.cursor)
    pairs = [
        ("table", str(state.path)),
        ("change", record.id),
        ("parent", record.parent or "(none: the first)"),
        ("kind", kind_text(record)),
        ("time", f"{record_time(record):%Y-%m-%d %H:%M:%S.%f} UTC, epoch {epoch_text(record)}"),
        ("run", " ".join(filter(None, [record.run_id, f"(dmslake {record.program})" if record.program else ""]))),
        ("standing", STANDING_WORDS[standing]),
        ("restorable", restorable),
        ("rows", f"{before.rows:,} → {after.rows:,}{': ' if done else ''}{done}"),
        ("read", f"{counts.input_rows:,} row(s) from {len(record.inputs)} raw file(s)" if record.inputs else ""),
        ("backward", f"{counts.backward:,} row(s) with a commit time before their predecessor's" if counts.backward else ""),
        ("files", _files_text(record, after)),
        ("generation", _generation_text(record, before)),
        ("cursor", cursor_after if cursor_before == cursor_after else f"{cursor_before} → {cursor_after}"),
        ("key", _differs(_key(before), _key(after), before.is_empty)),
        ("partitions", _differs(partition_key_text(before.partitioning), partition_key_text(after.partitioning), before.is_empty)),
        ("columns", columns_text(before.schema, after.schema) or f"{len(after.schema)}"),
        ("undone", _changes_text(record, "undone")),
        ("brought back", _changes_text(record, "redone")),
        ("found by", ", ".join(record.given.key) if record.given else ""),
        ("given", ", ".join(record.given.attachments) if record.given else ""),
        ("staged as", record.staged_as),
        ("row changes", rows_text(record)),
        *((name.replace("_", " "), _detail(value)) for name, value in record.details.items() if name not in TOLD),
    ]
    return labelled(pairs)


def _name(cursor: str) -> str:
    return cursor.rsplit("/", 1)[-1] or "(none)"


def _files_text(record: ChangeRecord, after: Snapshot) -> str:
    added = f"{len(record.added):,} added ({size_text(sum(file.size_bytes for file in record.added))})" if record.added else "0 added"
    return f"{added}, {len(record.superseded):,} superseded; {len(after.files):,} in the table ({size_text(after.size_bytes) or '0 B'})"


def _generation_text(record: ChangeRecord, before: Snapshot) -> str:
    now, was = record.generation.number, before.generation.number
    return f"{now}" if now == was or before.is_empty else f"{was} → {now}"


def _key(snapshot: Snapshot) -> str:
    return key_text(snapshot.primary_key) or "null"


def _differs(before: str, after: str, is_first: bool) -> str:
    """`before → after`, or only the latter; '' for none."""
    if before != after and not is_first:
        return f"{before} → {after}"
    return after if after != "null" else ""


def _changes_text(record: ChangeRecord, name: str) -> str:
    """`2 change(s): <the first named>, …`; '' for none."""
    count, ids = record.details.get(f"{name}_count", 0), record.details.get(name, ())
    return f"{count} change(s): {', '.join(ids[:2])}{', …' if count > 2 else ''}" if count else ""


def _detail(value: object) -> str:
    if isinstance(value, (list, tuple)):
        return ", ".join(map(str, value))
    return json.dumps(value, ensure_ascii=False, default=str) if isinstance(value, dict) else str(value)


def change_views(record: ChangeRecord, before: Snapshot) -> list[str]:
    """The change's lists, the first of each at most."""
    lines = _input_lines("took", record.inputs) + _input_lines("ranked again with", record.context)
    lines += _input_lines("left out for good", record.skipped)
    added = [[file.path, count_text(file.rows), size_text(file.size_bytes), _origin(file)] for file in record.added]
    lines += _list_lines("added", ("file", "rows", "bytes", "copy of a file of"), added)
    gone = [(path, before.files.get(path)) for path in record.superseded]
    superseded = [[path, count_text(file.rows) if file else "", size_text(file.size_bytes) if file else ""] for path, file in gone]
    return lines + _list_lines("superseded", ("file", "rows", "bytes"), superseded)


def _origin(file: DataFile) -> str:
    """The change whose file's bytes a restored file has; a file that is named otherwise by its path."""
    base = file.origin.rsplit("/", 1)[-1]
    return change_of_record(f"{base[:CHANGE_CHARS]}.json") or file.origin


def _input_lines(what: str, inputs: Sequence[Input]) -> list[str]:
    rows = [[item.key.rsplit("/", 1)[-1], f"{item.rows:,}" if item.rows >= 0 else "", size_text(item.size_bytes)] for item in inputs]
    return _list_lines(f"raw files {what}", ("raw file", "rows", "bytes"), rows)


def _list_lines(what: str, columns: tuple[str, ...], rows: Sequence[Sequence[str]]) -> list[str]:
    """A list with its heading; columns that are empty throughout are left out."""
    if not rows:
        return []
    view = View(columns, rows[:MOST_SHOWN]).without_empty(*columns)
    more = [f"  … and {len(rows) - MOST_SHOWN:,} more: --output json lists all"] if len(rows) > MOST_SHOWN else []
    return ["", f"{what} ({len(rows):,})", *(f"  {line}" for line in aligned(view)), *more]
