"""Going back and forth in a table's history: what a person asks for, and what the change that does it holds. Pure.

History only grows: rollback and re-apply are new changes whose snapshot has the rows of an older one. So there are two ways to
walk back from a change: by `parent`, through all that happened; and by what its rows are made of, through the ordinary changes
only (`rows_path`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from typing import Any, Callable

from glue_jobs.core.collation import collation_of
from glue_jobs.core.errors import UsageError
from glue_jobs.core.ids import ChangeId
from glue_jobs.core.load_plan import leaves_out
from glue_jobs.core.partitioning import partition_key_text
from glue_jobs.core.raw_names import CdcName, cdc_name, is_ahead
from glue_jobs.core.record import ChangeRecord, DataFile, Generation, Input, stands_for
from glue_jobs.core.snapshot import Snapshot
from glue_jobs.core.state import NO_CURSOR_FILE, NO_LOAD_DATE, TableState

PREVIOUS = "previous"
PAUSED_BY_US = "rolled back"  # how the reason of our pauses begins: a re-apply of everything lifts only those
_BEFORE = " (paused before: {})"
_EPOCH = re.compile(r"\d{9,11}(\.\d+)?")
_DIGITS = re.compile(r"(?!\d{8}$)\d+([.,]\d+)?")  # but for 20240501
Read = Callable[[str], ChangeRecord]


@dataclass(frozen=True)
class Wish:
    """What a person asks for: one of `to` (a change id, `previous`, an ISO time, epoch seconds: that change stays), `undo` (a change
    id: its parent stays) and `reapply` (a change id, '' for all that is undone). resume: no pause afterwards. skip: the cursor stays.
    """

    to: str = ""
    undo: str = ""
    reapply: str | None = None
    resume: bool = False
    skip: bool = False

    def check(self) -> Wish:
        """The wish itself; UsageError if it can't be meant."""
        if sum((bool(self.to), bool(self.undo), self.reapply is not None)) != 1:
            raise UsageError(
                "it is not said where to go, or more than once",
                "no-goal",
                "give one of --to CHANGE|previous|TIME and --undo CHANGE; or `dmslake reapply PATH [CHANGE]`",
            )
        if self.skip and self.reapply is not None:
            raise UsageError("--skip leaves out what a rollback undoes; a re-apply undoes nothing", "bad-argument", "leave out --skip")
        if self.to:
            parse_to(self.to)
        for text in (self.undo, self.reapply):
            if text:
                ChangeId.parse(text)
        return self


def parse_to(text: str) -> str | datetime:
    """A change id or `previous` as it is, a time as an aware datetime; UsageError for anything else. A time without zone is UTC."""
    text = text.strip()
    if text == PREVIOUS:
        return text
    if _EPOCH.fullmatch(text):
        return datetime.fromtimestamp(float(text), timezone.utc)
    if _DIGITS.fullmatch(text):  # Python reads some as days of other centuries: epoch milliseconds would take a table back to nothing
        raise UsageError(f"the time is unclear: {text!r}", "bad-goal", "give 2024-05-01T12:00:00, 20240501, or epoch seconds (10 digits)")
    try:
        moment = datetime.fromisoformat(re.sub(r"[zZ]$", "+00:00", text))
    except ValueError:
        pass
    else:
        return moment.astimezone(timezone.utc) if moment.tzinfo else moment.replace(tzinfo=timezone.utc)
    try:
        return str(ChangeId.parse(text))
    except UsageError as error:
        raise UsageError(
            f"neither a change id nor a time: {text!r}",
            "bad-goal",
            "give a change id (`dmslake history PATH`), previous, a time like 2024-05-01T12:00:00Z, or epoch seconds",
        ) from error


def record_time(record: ChangeRecord) -> datetime:
    """When the change was made, as its record says."""
    return datetime.fromisoformat(record.time.replace("Z", "+00:00"))


def rows_parent(read: Read, record: ChangeRecord) -> str:
    """The ordinary change whose rows an ordinary change started from, '' for the first."""
    return stands_for(read(record.parent)) if record.parent else ""


def rows_path(read: Read, change: str) -> Iterator[ChangeRecord]:
    """The ordinary changes that made the rows of the ordinary change `change`, itself first."""
    while change:
        record = read(change)
        yield record
        change = rows_parent(read, record)


def rows_apart(read: Read, here: str, there: str) -> tuple[tuple[ChangeRecord, ...], tuple[ChangeRecord, ...]]:
    """(ordinary changes that the rows of `here` have and those of `there` lack, newest first; the other way round, oldest first)."""
    undone: list[ChangeRecord] = []
    redone: list[ChangeRecord] = []
    while here != there:  # ids sort by commit, and a change's rows come from an earlier one
        if here > there:
            undone.append(read(here))
            here = rows_parent(read, undone[-1])
        else:
            redone.append(read(there))
            there = rows_parent(read, redone[-1])
    return tuple(undone), tuple(reversed(redone))


def undone_tail(read: Read, head: ChangeRecord) -> tuple[ChangeRecord, ...]:
    """The changes that a re-apply would bring back, oldest first: those that the last ordinary change was built on and the table's
    rows lack, itself included, as long as nothing but rollbacks came after it. A lost change was never published: it is passed over."""
    last, lost = head, {head.lost}
    while stands_for(last) != last.id or last.id in lost:
        if not last.parent:
            return ()
        last = read(last.parent)
        lost.add(last.lost)
    undone, redone = rows_apart(read, stands_for(head), last.id)
    return () if undone else redone


def root(file: DataFile) -> str:
    """The path of the file that a job once wrote and whose bytes this one has."""
    return file.origin or file.path


@dataclass(frozen=True)
class UndoPlan:
    """A rollback or re-apply as it will be done. restored: files of the goal to copy; superseded: paths of the head's files that go.

    goal: the snapshot gone to. after: the snapshot that the table will have, its files aside. undone: changes whose rows go, newest
    first; redone: those that come back, oldest first. awaited: raw files that are pending again. skipped: raw files left out for good.
    """

    kind: str
    head: Snapshot
    goal: Snapshot
    after: Snapshot
    undone: tuple[ChangeRecord, ...]
    redone: tuple[ChangeRecord, ...]
    restored: tuple[DataFile, ...]
    superseded: tuple[str, ...]
    awaited: tuple[Input, ...]
    skipped: tuple[Input, ...]
    values: Mapping[str, Any]
    lifts_pause: bool

    @property
    def bytes_to_copy(self) -> int:
        return sum(file.size_bytes for file in self.restored)

    @property
    def is_nothing(self) -> bool:
        """Whether the table already is where it should go: the same rows at the same place in the raw files."""
        head, after = self.head, self.after
        if head.change == self.goal.change:
            return True
        same_rows = head.stands_for == self.goal.stands_for and not self.restored and not self.superseded
        same_place = (head.cursor, set(head.skipped)) == (after.cursor, set(after.skipped)) and head.generation.is_same(after.generation)
        return same_rows and same_place


def plan_undo(
    state: TableState,
    head: Snapshot,
    goal: Snapshot,
    since: Sequence[ChangeRecord],
    undone: tuple[ChangeRecord, ...],
    redone: tuple[ChangeRecord, ...],
    wish: Wish,
    *,
    left: bool = False,
    older: Older | None = None,
) -> UndoPlan:
    """The plan to give the table the state of `goal`. since: all records after the goal's, the head's first. left: changes stay undone.
    older: what the goal's changes took, needed where `asks_older`."""
    goal = replace(goal, generation=_with_left_out(goal.generation, head.generation))
    roots = {root(file) for file in head.files.values()}
    wanted = {root(file) for file in goal.files.values()}

    def is_pending(item: Input) -> bool:
        return _is_pending(state, goal, item, older)

    taken = {**goal.awaited, **head.awaited, **_taken_since(since, is_pending)}
    pending = {key: item for key, item in taken.items() if is_pending(item)}
    # Nothing waits for a transaction file without a row of the table.
    awaited = {key: item for key, item in pending.items() if not item.is_blank}
    after = _skipping(head, goal, pending) if wish.skip else replace(goal, awaited=awaited, generation=_generation(head, goal, since))
    is_whole = wish.reapply is not None and not pending and not left and state.paused.startswith(PAUSED_BY_US)
    lifts = wish.resume or is_whole
    values = {**_values(state, head, after, goal, wish, lifts), **_keys_back(state, head, goal, since)}
    return UndoPlan(
        kind="rollback" if wish.reapply is None else "reapply",
        head=head,
        goal=goal,
        after=after,
        undone=undone,
        redone=redone,
        restored=tuple(file for _, file in sorted(goal.files.items()) if root(file) not in roots),
        superseded=tuple(sorted(path for path, file in head.files.items() if root(file) not in wanted)),
        awaited=tuple(item for _, item in sorted(after.awaited.items())),
        skipped=tuple(item for key, item in sorted(after.skipped.items()) if key not in goal.skipped and key not in head.skipped),
        values=values,
        lifts_pause=lifts and "Paused" not in values,
    )


def _taken_since(since: Iterable[ChangeRecord], is_pending: Callable[[Input], bool]) -> dict[str, Input]:
    """The raw files that changes took or passed over, from the last full load on that will be done again: it brings whatever was
    before it. A load of files that the goal has already, asked for by a person, will not."""
    found: dict[str, Input] = {}
    for record in since:
        for item in (*record.inputs, *record.skipped):
            found.setdefault(item.key, item)
        if record.kind == "full-load" and any(map(is_pending, record.inputs)):
            break
    return found


def _generation(head: Snapshot, goal: Snapshot, since: Iterable[ChangeRecord]) -> Generation:
    """The goal's. The empty table keeps which CDC files belong to the load that is pending again, the last one: older ones would put
    older rows in the place of the load's."""
    if not goal.is_empty:
        return goal.generation
    last = next((record.generation for record in since if record.kind == "full-load"), head.generation)
    return replace(goal.generation, cdc_from=last.cdc_from)


def _with_left_out(generation: Generation, head: Generation) -> Generation:
    """With what the head knows of load files that a person leaves out: it is of the raw files, not of the rows."""
    known = {item.key: item for item in (*generation.left_out, *head.left_out)}
    return replace(generation, left_out=tuple(item for _, item in sorted(known.items())))


def asks_older(goal: Snapshot, since: Iterable[ChangeRecord]) -> bool:
    """Whether changes after the goal took CDC files from before what its snapshot tells of, as behind a cursor that was moved back."""
    items = (item for record in since for item in (*record.inputs, *record.skipped))
    return any((name := cdc_name(item.key)) is not None and name.digits < goal.known_from for item in items)


@dataclass(frozen=True)
class Older:
    """What the records tell of the CDC files from before the goal's `known_from`: those that its changes took or passed over. since: of
    files up to this cursor they tell nothing, as of those that an adopted table had."""

    inputs: Mapping[str, Input]
    since: str = ""

    @classmethod
    def of(cls, records: Iterable[ChangeRecord], since: str) -> Older:
        """records: those that the goal's rows come from, oldest first."""
        took = {item.key: item for record in records for item in (*record.inputs, *record.context, *record.skipped)}
        return cls(took, since)

    def tells_of(self, name: CdcName) -> bool:
        return is_ahead(name, cdc_name(self.since))


def _is_pending(state: TableState, goal: Snapshot, item: Input, older: Older | None) -> bool:
    """Whether a run will take the raw file when the table is in the goal's state."""
    known = goal.applied.get(item.key) or goal.skipped.get(item.key)
    known = known or next((load for load in goal.generation.loads if load.key == item.key), None)
    name = cdc_name(item.key)
    is_known = name is None or name.digits >= goal.known_from or is_ahead(name, cdc_name(goal.cursor))
    if not is_known and name is not None and older is not None:
        known, is_known = older.inputs.get(item.key), older.tells_of(name)
    if (known and item.matches(known.etag)) or leaves_out(state, goal.generation, item.key, item.etag):
        return False
    return is_known and _is_of(item.key, goal.generation)


def _skipping(head: Snapshot, goal: Snapshot, pending: Mapping[str, Input]) -> Snapshot:
    """The goal's rows at the head's place in the raw files: what was taken in between is skipped. Where the goal is further on (what it
    took was undone before) its own place is kept, since its files must not be taken twice."""
    generation = max(head, goal, key=lambda at: (at.generation.cdc_from, at.last_full_load, at.generation.number)).generation
    is_goals = goal.generation.is_same(generation)
    passed = {key: item for key, item in pending.items() if key not in head.awaited}
    skipped = {**(goal.skipped if is_goals else head.applied), **head.skipped, **passed}
    applied = {key: item for key, item in goal.applied.items() if is_goals or _is_of(key, generation)}
    has = {key: item.etag for key, item in applied.items()}
    cursors = [at.cursor for at in (head, goal) if at.generation.is_same(generation) or _is_of(at.cursor, generation)]
    return replace(
        goal,
        cursor=max(cursors, key=lambda cursor: cdc_name(cursor) or CdcName("", "")),
        generation=replace(generation, left_out=goal.generation.left_out),
        last_full_load=max(head.last_full_load, goal.last_full_load),
        applied=applied,
        skipped={key: item for key, item in skipped.items() if not item.matches(has.get(key)) and _is_of(key, generation)},
        awaited={key: item for key, item in head.awaited.items() if key in pending},
        known_from=goal.known_from if is_goals else max(goal.known_from, head.known_from),
    )


def _is_of(key: str, generation: Generation) -> bool:
    """Whether the raw file is no CDC file of an earlier generation."""
    name = cdc_name(key)
    return name is None or name.digits >= generation.cdc_from


def _values(state: TableState, head: Snapshot, after: Snapshot, goal: Snapshot, wish: Wish, lifts: bool) -> dict[str, Any]:
    """The item's attributes that go with the files: the place in the raw files, and the pause."""
    values: dict[str, Any] = {}
    if not wish.skip:
        values["LastIncrementalFile"] = after.cursor or f"{state.path}{NO_CURSOR_FILE}"
        values["LastFullLoadDate"] = after.last_full_load or NO_LOAD_DATE
    elif after.last_full_load == head.last_full_load and "LastFullLoadDate" in state.item:
        values["LastFullLoadDate"] = state.item["LastFullLoadDate"]  # an older date asks for a reload, and still does
    ours, own = _split_pause(state.paused)
    if lifts and own and not wish.resume:
        values["Paused"] = own
    elif not lifts and (wish.reapply is None or ours):
        values["Paused"] = pause_reason(state, after, goal) + (_BEFORE.format(own) if own else "")
    return values


def _keys_back(state: TableState, head: Snapshot, goal: Snapshot, since: Iterable[ChangeRecord]) -> dict[str, str]:
    """The keys of the goal for the item. Those that a person has edited since the table last had rows are the person's."""
    last: Snapshot | ChangeRecord = head if not head.is_empty else next((record for record in since if record.schema), head)
    values: dict[str, str] = {}
    if goal.schema and last.schema:
        if state.primary_key == last.primary_key != goal.primary_key:
            values["PrimaryKey"] = ",".join(goal.primary_key) or "null"
        collations = [collation_of(each.primary_key) for each in (state, last, goal)]
        if collations[0] == collations[1] != collations[2]:
            values["KeyCollation"] = str(collations[2]) or "null"
        if state.partitioning == last.partitioning != goal.partitioning:
            values["PartitionKey"] = partition_key_text(goal.partitioning)
    return values


def _split_pause(text: str) -> tuple[bool, str]:
    """(whether the pause is one of ours, the reason that a person had given before or instead)."""
    if not text.startswith(PAUSED_BY_US):
        return False, text
    _, found, rest = text.partition(_BEFORE.partition("{")[0])
    return True, rest[:-1] if found else ""


def pause_reason(state: TableState, after: Snapshot, goal: Snapshot) -> str:
    """Why the table is paused after a rollback, and what lifting the pause does."""
    where = f"to change {goal.change}" if goal.change else "to before its first change"
    files = len(after.awaited)
    then = f"applies {files} raw file(s) again" if files else "goes on with new files"
    return f"{PAUSED_BY_US} {where}; `dmslake activate {state.path.in_shell}` {then}"
