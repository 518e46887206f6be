"""A change's page: its record, the state before it, what became of it, and the commands for a person."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from botocore.exceptions import ClientError

from controller.history import HEAD, LOST, PastChange, time_text
from controller.pages.rows import RowReader
from controller.pages.shelf import READ_AHEAD, Shelf
from controller.pages.steps import start, step_of
from controller.pages.steps import walk as walk_back
from controller.pages.views import ChangePage, Command, Files, ListedFile
from controller.past import find_eraser
from controller.session import Session
from controller.staged import look_at_all
from controller.ways import ways
from glue_jobs.aws.buckets import noncurrent_days
from glue_jobs.aws.records import read_record
from glue_jobs.aws.translate import ACCESS_DENIED, error_code
from glue_jobs.core.collation import key_text
from glue_jobs.core.errors import DmslakeError, TableBlocked, UsageError
from glue_jobs.core.ids import CHANGE_CHARS, ChangeId, change_of_name
from glue_jobs.core.partitioning import partition_key_text
from glue_jobs.core.paths import S3Uri
from glue_jobs.core.record import ChangeRecord, DataFile, Input
from glue_jobs.core.snapshot import Snapshot
from glue_jobs.core.state import TableState
from glue_jobs.protocol.history import read_snapshot, snapshot_of
from glue_jobs.protocol.lineage import HISTORY_TODO
from glue_jobs.protocol.stage import WAITING

LISTED = 50  # files of each list
MOST_WALKED = 500  # changes from the head on among which the change is looked for
STAGED = "staged"
# Details that the page tells otherwise, or that only programs want.
TOLD = frozenset("undone redone undone_count redone_count state_of rows_before before commit item rows_kept rows_changed seconds".split())
VALUES = frozenset({"keys_not_found_first"})  # details that are values of rows
LONGEST_DETAIL = 2000
RULE_KEPT = timedelta(minutes=5)


class ChangeReader:
    """Reads changes' pages; what it learns of changes stays on the shelf."""

    def __init__(self, session: Session, shelf: Shelf, rows: RowReader) -> None:
        self._s3, self._shelf, self._rows = session.clients.s3, shelf, rows
        self._rules: dict[tuple[str, str], tuple[datetime, int | None]] = {}  # bucket and folder → when its rule was read, its days

    def page(self, state: TableState, change: str, now: datetime, rows: int) -> ChangePage:
        """The page of one change with up to `rows` rows of each kind, 0 for no value of a row. UsageError, code unknown-change, if no such
        change took effect or is staged."""
        ChangeId.parse(change)
        record = self._record(state, change)
        standing, after_it, looked = self._standing(state, record)
        before, after = read_snapshot(self._s3, state.lake, record.parent), snapshot_of(self._s3, state.lake, record)
        sample, note = self._sample(state, record, before, after, rows)
        known = PastChange(record, standing)
        commands = self._staged_commands(state, record) if record.staged else self._commands(state, known) if standing else []
        return ChangePage(
            path=str(state.path),
            name=state.path.name,
            step=step_of(record, standing),
            now=now,
            parent=record.parent,
            rows_before=before.rows,
            restorable="" if record.staged or standing == LOST else self._restorable(state, standing, after, after_it, now),
            facts=tuple(facts_of(record, before, after, with_values=rows > 0)),
            lists=tuple(lists_of(record, before)),
            rows=sample,
            rows_note=note,
            rows_command=rows_command(state, record),
            commands=tuple(commands),
            warnings=tuple(looked),
        )

    def _record(self, state: TableState, change: str) -> ChangeRecord:
        if not state.out_path:
            raise UsageError(f"{state.path} has no change yet", "unknown-change", HISTORY_TODO)
        try:
            record = read_record(self._s3, state.lake, change)
        except TableBlocked as error:
            if error.code != "record-gone":
                raise
            raise UsageError(f"no change {change} of this table is known", "unknown-change", HISTORY_TODO) from None
        if not record.staged:
            self._shelf.put(state.lake, record)
        return record

    def _standing(self, state: TableState, record: ChangeRecord) -> tuple[str, datetime | None, list[str]]:
        """(what became of it, '' where that was not looked up; the time of the change after it; what to say of that)."""
        if record.staged:
            return STAGED, None, []
        if not state.head or record.id > state.head:
            raise UsageError(f"change {record.id} never took effect", "unknown-change", HISTORY_TODO)
        read = self._shelf.reader(state.lake, READ_AHEAD)
        place, next_time = start(read(state.head).record), None
        for _ in range(MOST_WALKED):
            if not place.change or place.change < record.id:
                raise UsageError(f"change {record.id} never took effect", "unknown-change", HISTORY_TODO)
            walked = walk_back(read, state.head, place, 1)
            (step,) = walked.steps
            if step.change == record.id:
                return step.standing, next_time, []
            if walked.older is None:
                break
            place, next_time = walked.older, step.time
        else:
            return "", None, [f"More than {MOST_WALKED} changes came after it: what became of it was not looked up."]
        raise UsageError(f"change {record.id} never took effect", "unknown-change", HISTORY_TODO)

    def _commands(self, state: TableState, change: PastChange) -> list[Command]:
        read = self._shelf.reader(state.lake, READ_AHEAD)
        return [Command(does, line) for does, line in ways(state, lambda each: read(each).record, change)]

    def _staged_commands(self, state: TableState, record: ChangeRecord) -> list[Command]:
        (staged,) = look_at_all(self._s3, state, None, [record])
        path = state.path.in_shell
        commit = [Command("to commit it", f"dmslake commit {path} {record.id}")] if staged.standing == WAITING else []
        return [*commit, Command("to see what became of it, or until when it can be committed", f"dmslake show {path} {record.id}")]

    def _restorable(self, state: TableState, standing: str, after: Snapshot, hidden_at: datetime | None, now: datetime) -> str:
        """Whether one can go back to it, by the bucket's rule and the lists of erases: no other file is looked up."""
        if standing == HEAD:
            return "the table has this state"
        try:
            erase = self._eraser(state, after)
            if erase:
                return f"no: data of its files was erased for good by change {erase}"
            days = self._days(state.lake, now)
        except TableBlocked as error:
            return f"not known: {error.message}"
        except ClientError as error:
            if error_code(error) not in ACCESS_DENIED:
                raise
            return "not known: the bucket's lifecycle rules can't be read"
        if days is None:
            return "yes: the bucket keeps hidden data for good"
        if hidden_at is None:
            return f"the bucket keeps hidden data for {days} days"
        until = hidden_at + timedelta(days=days)
        if until > now:
            return f"yes, at least until {time_text(until, 'minutes')} UTC"
        return f"perhaps not: the bucket keeps hidden data for {days} days; a rollback with --dry-run tells"

    def _eraser(self, state: TableState, after: Snapshot) -> str:
        """The erase that took what a return to a state needs, '' for none. Of a table without an erase no more is read."""
        if not self._shelf.get(state.lake, state.head).record.erases:
            return ""
        return find_eraser(self._s3, state.lake, read_snapshot(self._s3, state.lake, state.head), after)

    def _days(self, lake: S3Uri, now: datetime) -> int | None:
        """For how long the bucket keeps hidden data at least, None for good; a rule is read once in a while."""
        found = self._rules.get((lake.bucket, lake.key))
        if found is None or now - found[0] > RULE_KEPT:
            found = now, noncurrent_days(self._s3, lake.bucket, lake.key)
            self._rules[lake.bucket, lake.key] = found
        return found[1]

    def _sample(self, state: TableState, record: ChangeRecord, before: Snapshot, after: Snapshot, rows: int) -> tuple[Any, str]:
        if not (record.added or record.superseded):
            return None, "It changed no row."
        if not rows:
            return None, "Row values are not shown here."
        if record.staged or record.id == state.publishing:
            return None, "Its data files are not visible yet."
        head = self._shelf.get(state.lake, state.head).record  # what was erased since is for no reader
        seen = [replace(snapshot, erases=head.erases) for snapshot in (before, after)]
        try:
            return self._rows.sample(state, seen[0], seen[1], rows)
        except DmslakeError as error:
            return None, f"They can't be read: {error.message}."


def rows_command(state: TableState, record: ChangeRecord) -> str:
    """The command that shows the rows that a change changed."""
    path = state.path.in_shell
    if record.staged:
        return f"dmslake show {path} {record.id} --rows rows.csv"
    if not record.parent:
        return f"dmslake read {path} --as-of {record.id} --limit 20"
    return f"dmslake diff {path} {record.parent} {record.id}"


def facts_of(record: ChangeRecord, before: Snapshot, after: Snapshot, *, with_values: bool) -> list[tuple[str, str]]:
    """What else the record says, as labels and texts; values of rows only where they are wanted."""
    counts, told = record.counts, TOLD if with_values else TOLD | VALUES
    generation = (before.generation.number, record.generation.number)
    pairs = [
        ("run", " ".join(filter(None, (record.run_id, f"(dmslake {record.program})" if record.program else "")))),
        ("updates and deletes left out, for want of a key", f"{counts.ignored:,}" if counts.ignored else ""),
        ("rows with a commit time before their predecessor's", f"{counts.backward:,}" if counts.backward else ""),
        ("generation", _pair(*(str(number) for number in generation)) if before.change else str(generation[1])),
        ("cursor", _pair(_base(before.cursor), _base(after.cursor))),
        ("primary key", _pair(key_text(before.primary_key), key_text(after.primary_key))),
        ("partitions", _pair(_partitions(before), _partitions(after))),
        ("undone", _changes(record, "undone")),
        ("brought back", _changes(record, "redone")),
        ("rows found by", ", ".join(record.given.key) if record.given else ""),
        ("was staged as", record.staged_as),
        *((name.replace("_", " "), _detail(value)) for name, value in record.details.items() if name not in told),
    ]
    return [(label, text) for label, text in pairs if text]


def _pair(before: str, after: str) -> str:
    return after if before == after or not before else f"{before} → {after or 'none'}"


def _base(cursor: str) -> str:
    return cursor.rsplit("/", 1)[-1]


def _partitions(snapshot: Snapshot) -> str:
    return partition_key_text(snapshot.partitioning) if snapshot.partitioning else ""


def _changes(record: ChangeRecord, name: str) -> str:
    count, ids = record.details.get(f"{name}_count", 0), record.details.get(name, ())
    return f"{count} change(s): {', '.join(map(str, ids[:3]))}{', …' if count > 3 else ''}" if count else ""


def _detail(value: object) -> str:
    text = ", ".join(map(str, value)) if isinstance(value, (list, tuple)) else ""
    text = text or (json.dumps(value, ensure_ascii=False, default=str) if isinstance(value, dict) else str(value))
    return text[:LONGEST_DETAIL]


def lists_of(record: ChangeRecord, before: Snapshot) -> list[Files]:
    """The lists of files, cut off."""
    superseded = [(path, before.files.get(path)) for path in record.superseded[:LISTED]]
    gone = tuple(ListedFile(path, file.rows if file else None, file.size_bytes if file else None) for path, file in superseded)
    lists = [
        _inputs("Raw files that it took", record.inputs),
        _inputs("Raw files ranked again with them", record.context),
        _inputs("Raw files left out for good", record.skipped),
        Files("Data files added", len(record.added), tuple(map(_added, record.added[:LISTED]))),
        Files("Data files superseded", len(record.superseded), gone),
    ]
    return [each for each in lists if each.total]


def _inputs(title: str, inputs: Sequence[Input]) -> Files:
    files = (ListedFile(item.key.rsplit("/", 1)[-1], item.rows if item.rows >= 0 else None, item.size_bytes) for item in inputs[:LISTED])
    return Files(title, len(inputs), tuple(files))


def _added(file: DataFile) -> ListedFile:
    origin = change_of_name(file.origin.rsplit("/", 1)[-1][:CHANGE_CHARS]) or file.origin
    return ListedFile(file.path, file.rows, file.size_bytes, origin)
