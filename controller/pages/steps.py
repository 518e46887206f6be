"""Change records made small enough to keep many of them: the step that a page shows, and what following the table's rows needs. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from controller.history import HEAD, LIVE, LOST, STEP, UNDONE
from controller.pages.views import Bar, SchemaStep, Step
from glue_jobs.core.collation import key_text
from glue_jobs.core.errors import UsageError
from glue_jobs.core.ids import ChangeId
from glue_jobs.core.partitioning import partition_key_text
from glue_jobs.core.record import GOES_TO, ChangeRecord, stands_for
from glue_jobs.core.schema import Schema, find
from glue_jobs.core.undo import record_time

_KEPT_DETAILS = ("state_of", "renamed")
_NO_GOAL = "the empty table"


@dataclass(frozen=True)
class Kept:
    """A change. step: without its standing. record: without its lists of files, so that thousands can be kept."""

    step: Step
    record: ChangeRecord


def keep(record: ChangeRecord) -> Kept:
    """The change of a record."""
    details = {name: record.details[name] for name in _KEPT_DETAILS if name in record.details}
    thin = replace(
        record, inputs=(), context=(), skipped=(), added=(), superseded=(), checkpoint=None, chain=(), erased=(), erased_keys=None,
        details=details, generation=replace(record.generation, loads=()),
    )  # fmt: skip
    return Kept(step_of(record), thin)


def step_of(record: ChangeRecord, standing: str = "") -> Step:
    """The step of a whole record."""
    written = [file for file in record.added if file.upload is not None and not file.origin]
    counts = record.counts
    return Step(
        change=record.id,
        kind=record.kind,
        time=record_time(record),
        standing=standing,
        inserted=counts.inserted,
        updated=counts.updated,
        deleted=counts.deleted,
        table_rows=counts.table_rows,
        input_files=len(record.inputs),
        input_bytes=sum(item.size_bytes for item in record.inputs),
        files_added=len(record.added),
        files_copied=sum(bool(file.origin) for file in record.added),
        files_superseded=len(record.superseded),
        rows_written=sum(file.rows for file in written),
        bytes_written=sum(file.size_bytes for file in written),
        seconds=_seconds(record),
        target=goal_of(record),
        lost=record.lost,
    )


def _seconds(record: ChangeRecord) -> float | None:
    seconds = record.details.get("seconds")
    return float(seconds) if isinstance(seconds, (int, float)) else None


def goal_of(record: ChangeRecord) -> str:
    """The change whose state a rollback or re-apply gave the table; '' for a change that went nowhere."""
    return str(record.details.get("state_of") or record.target or _NO_GOAL) if record.kind in GOES_TO else ""


@dataclass(frozen=True)
class Place:
    """A place in a table's history, from which a page goes back. change: the next one to show; rows: the next ordinary change that the
    head's rows are made of, '' for none; lost: a change that a newer one took back, '' for none."""

    change: str
    rows: str = ""
    lost: str = ""

    def __str__(self) -> str:
        return ".".join((self.change, self.rows, self.lost)).rstrip(".")

    @classmethod
    def parse(cls, text: str) -> Place:
        """The place in the text of one; UsageError for anything else."""
        parts = text.split(".")
        if len(parts) > 3:
            raise UsageError(f"not a place in a table's history: {text[:80]!r}", "bad-place", "begin at the table's page")
        for part in filter(None, parts):
            ChangeId.parse(part[:80])
        return cls(*parts)


@dataclass(frozen=True)
class Walk:
    """A stretch of history, newest first. older: the place where it goes on, None at the first change. standings: one of each."""

    changes: tuple[Kept, ...]
    standings: tuple[str, ...]
    older: Place | None = None

    @property
    def steps(self) -> tuple[Step, ...]:
        return tuple(replace(each.step, standing=standing) for each, standing in zip(self.changes, self.standings))


def start(head: ChangeRecord) -> Place:
    """The place of the head."""
    return Place(head.id, stands_for(head))


def walk(read: Callable[[str], Kept], head: str, begin: Place, count: int) -> Walk:
    """`count` changes from a place on. read: a change by its id, with its errors; one past the last is read too."""
    changes: list[Kept] = []
    words: list[str] = []
    place = begin
    while place.change and len(changes) < count:
        kept = read(place.change)
        record = kept.record
        changes.append(kept)
        words.append(_standing(record, head, place))
        rows = place.rows
        if record.id == rows:
            rows = stands_for(read(record.parent).record) if record.parent else ""
        place = Place(record.parent, rows, record.lost)
    return Walk(tuple(changes), tuple(words), place if place.change else None)


def _standing(record: ChangeRecord, head: str, place: Place) -> str:
    if record.id == head:
        return HEAD
    if record.id == place.lost:
        return LOST
    if record.kind in GOES_TO:
        return STEP
    return LIVE if record.id == place.rows else UNDONE


def bars(walked: Walk) -> tuple[Bar, ...]:
    """The changes as bars, oldest first."""
    pairs = zip(reversed(walked.changes), reversed(walked.standings))
    return tuple(bar(kept.step, standing) for kept, standing in pairs)


def bar(step: Step, standing: str) -> Bar:
    return Bar(step.change, step.kind, step.inserted, step.updated, step.deleted, standing in (UNDONE, LOST))


def schema_steps(walked: Walk) -> tuple[SchemaStep, ...]:
    """The changes of a stretch that changed columns, key or partitions, newest first. The oldest is only known to have done so where it
    is the table's first."""
    changes = [each.record for each in walked.changes]
    pairs: list[tuple[ChangeRecord, ChangeRecord | None]] = list(zip(changes, changes[1:]))
    if changes and not changes[-1].parent:
        pairs.append((changes[-1], None))
    found = ((record, record_time(record), form_texts(before, record)) for record, before in pairs)
    return tuple(SchemaStep(record.id, time, texts) for record, time, texts in found if texts)


def form_texts(before: ChangeRecord | None, after: ChangeRecord) -> tuple[str, ...]:
    """How a change changed the table's form, a sentence each; none for one that emptied the table or brought it back."""
    if before is None or not before.schema or not after.schema:
        columns = f"{len(after.schema)} column{'' if len(after.schema) == 1 else 's'}"
        return (f"begins with {columns}",) if after.schema and (before is None or not before.schema) else ()
    texts = [*_columns(before.schema, after.schema)]
    forms = [
        ("primary key", key_text(before.primary_key) or "none", key_text(after.primary_key) or "none"),
        ("partitions", partition_key_text(before.partitioning), partition_key_text(after.partitioning)),
    ]
    return (*texts, *(f"{what}: {was} → {now}" for what, was, now in forms if was != now))


def _columns(old: Schema, new: Schema) -> Sequence[str]:
    added = [f"column {column.name} ({column.type}) added" for column in new if find(old, column.name) is None]
    dropped = [f"column {column.name} dropped" for column in old if find(new, column.name) is None]
    pairs = [(was, column) for column in new if (was := find(old, column.name)) is not None]
    changed = [f"column {column.name}: {was.type} → {column.type}" for was, column in pairs if was.type != column.type]
    absent = [f"column {column.name} is no longer sent by the source" for was, column in pairs if column.absent and not was.absent]
    back = [f"column {column.name} is sent again" for was, column in pairs if was.absent and not column.absent]
    return [*added, *dropped, *changed, *absent, *back]


def when(text: str) -> datetime | None:
    """A record's time; None for none."""
    return datetime.fromisoformat(text.replace("Z", "+00:00")) if text else None
