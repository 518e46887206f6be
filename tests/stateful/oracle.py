"""What a lake table must be after whatever happened to it, as plain dicts: every change with a copy of all that goes back and forth.

It knows the rules as the documentation states them, and nothing of files, requests or leases. One load file, CDC files whose
content never changes, everything by name.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import takewhile
from typing import Any

LOAD = "LOAD00000001.parquet"
Row = tuple[str, int, tuple[Any, ...]]  # operation, key, the other columns
Rows = Mapping[int, tuple[Any, ...]]
Names = frozenset[str]


@dataclass(frozen=True)
class RawFile:
    """A delivered file. first: of a load, the digits of the first CDC name that belongs to it."""

    name: str
    etag: str
    rows: tuple[Row, ...]
    first: str = ""

    @property
    def mark(self) -> tuple[str, str]:
        return self.name, self.etag


@dataclass(frozen=True)
class State:
    """All of a table that a rollback takes back. base: the rows that `applied` came on top of. generation: (number, load's ETag,
    first digits). awaited: marks of files that were taken once and must be taken again. corrected: the rows are not those of files only."""

    rows: Rows = field(default_factory=dict)
    base: Rows = field(default_factory=dict)
    cursor: str = ""
    generation: tuple[int, str, str] = (0, "", "")
    applied: Names = frozenset()
    skipped: Names = frozenset()
    awaited: frozenset[tuple[str, str]] = frozenset()
    loaded: bool = False
    corrected: bool = False


@dataclass(frozen=True)
class Item:
    """What a person sees and edits. ours: paused by a rollback; own: by a person (or because a rollback was lost); waits: for this staged
    change."""

    cursor: str = ""
    ours: bool = False
    own: bool = False
    waits: str = ""
    reload_waits: bool = False

    @property
    def paused(self) -> bool:
        return self.ours or self.own or self.waits != ""

    @property
    def active(self) -> Item:
        return replace(self, ours=False, own=False, waits="")


@dataclass(frozen=True)
class Step:
    """A change that must come next. took: marks of the files it takes or passes over; rows_of: of a rollback, the ordinary change
    whose rows the table has after it. lifts: it commits a staged change, and lifts its pause."""

    kind: str
    inputs: tuple[str, ...]
    took: tuple[tuple[str, str], ...]
    after: State
    item: Item
    rows_of: str | None = None
    lifts: bool = False


@dataclass(frozen=True)
class Refusal:
    """A wish that must be refused, with one of these codes."""

    codes: tuple[str, ...]


@dataclass(frozen=True)
class Change:
    """A change that took effect. rows_of: the ordinary change whose rows the table has after it, itself for one."""

    id: str
    parent: str
    kind: str
    took: tuple[tuple[str, str], ...]
    state: State
    rows_of: str
    item_before: Item
    lifts: bool = False
    lost: bool = False

    @property
    def is_ordinary(self) -> bool:
        return self.rows_of == self.id


@dataclass(frozen=True)
class Wish:
    """to, undo: change ids (`previous` for to); reapply: a change id or `all`."""

    to: str = ""
    undo: str = ""
    reapply: str = ""
    resume: bool = False
    skip: bool = False

    def arguments(self) -> dict[str, str]:
        given = {"to": self.to, "undo": self.undo, "reapply": self.reapply}
        flags = {"resume": "true" if self.resume else "", "skip": "true" if self.skip else ""}
        return {name: value for name, value in {**given, **flags}.items() if value}


@dataclass(frozen=True)
class Correction:
    """Rows that a person gives, by the first of the other columns. deletes: its values that go; updates: key → the other columns."""

    deletes: frozenset[str]
    updates: Rows


@dataclass(frozen=True)
class Op:
    """A job that is run, with the wish of a rollback and the change that it leads to, found before anything else is done.

    correction: of an apply; erased: the keys of an erase; given: further arguments.
    """

    job: str
    wish: Wish | None = None
    goal: str | Refusal = ""
    correction: Correction | None = None
    erased: frozenset[int] = frozenset()
    given: Mapping[str, str] = field(default_factory=dict)

    @property
    def is_asked_once(self) -> bool:
        return self.wish is not None or self.correction is not None or bool(self.erased)


def digits(name: str) -> str:
    return name[:8] + name[9:].partition(".")[0]


def changed(rows: Rows, changes: Iterable[Row]) -> dict[int, tuple[Any, ...]]:
    """The rows after the changes, in their order."""
    after = dict(rows)
    for operation, key, values in changes:
        if operation == "D":
            after.pop(key, None)
        else:
            after[key] = values
    return after


def _trimmed(state: State) -> State:
    """Without what was taken or skipped beyond the cursor: it is pending again."""
    if not state.cursor:
        return state
    applied, skipped = (frozenset(name for name in names if name <= state.cursor) for names in (state.applied, state.skipped))
    return replace(state, applied=applied, skipped=skipped)


@dataclass
class Oracle:
    """The table's history as it must be. head: '' before the first change."""

    raw: dict[str, RawFile] = field(default_factory=dict)
    item: Item = Item()
    changes: dict[str, Change] = field(default_factory=dict)
    head: str = ""

    @property
    def state(self) -> State:
        return self.state_of(self.head)

    def state_of(self, change: str) -> State:
        return self.changes[change].state if change else State()

    def rows_of(self, files: Iterable[str]) -> list[Row]:
        return [row for name in sorted(files) for row in self.raw[name].rows]

    def land(self, change: str, step: Step) -> None:
        """The change `step` took effect under this id."""
        rows_of = change if step.rows_of is None else step.rows_of
        self.changes[change] = Change(change, self.head, step.kind, step.took, step.after, rows_of, self.item, step.lifts)
        self.head, self.item = change, step.item

    def take_back(self, change: str) -> None:
        """The head was lost before it was published: a change of its own goes back to before it."""
        lost = self.changes[self.head]
        before = self.state_of(lost.parent)
        inputs = frozenset(lost.took) if lost.is_ordinary else frozenset()
        inputs = frozenset(mark for mark in inputs if mark[0] not in lost.state.skipped)
        after = replace(before, awaited=before.awaited | inputs)
        item = self.item
        if item.cursor == lost.state.cursor:
            item = replace(item, cursor=lost.item_before.cursor)
        if not lost.is_ordinary or lost.lifts:
            item = replace(item.active, own=True)
        self.changes[lost.id] = replace(lost, lost=True)
        rows_of = self.changes[lost.parent].rows_of if lost.parent else ""
        self.changes[change] = Change(change, lost.id, "lost", (), after, rows_of, self.item)
        self.head, self.item = change, item

    # --- what must come next

    def predict(self, op: Op) -> Step | Refusal | None:
        """The next change of a job's run; None: there is nothing to do for it."""
        if op.wish is not None:
            return op.goal if isinstance(op.goal, Refusal) else self._undo(op.wish, op.goal)
        if op.correction is not None:
            return self._correct(op.correction)
        if op.erased:
            rows = {key: values for key, values in self.state.rows.items() if key not in op.erased}
            return Step("erase", (), (), replace(self.state, rows=rows, corrected=True), self.item)
        if op.job == "Adopt":
            load = self.raw[LOAD]
            rows = changed({}, load.rows)
            after = State(rows, rows, "", (1, load.etag, ""), loaded=True)
            return None if self.head else Step("adopt", (), (), after, self.item)
        if op.job == "Commit":
            return None
        step = None if self.item.paused else self.load_due() or self._batch()
        is_load = step is not None and step.kind == "full-load"
        return step if is_load == (op.job == "LoadInitial") else None

    def _correct(self, given: Correction) -> Step | Refusal:
        """Every row of a value that goes, and of one that rows are given for, makes place for these; values that no row has don't count."""
        head = self.state
        found = {values[0] for values in head.rows.values()}
        live = found & (given.deletes | {values[0] for values in given.updates.values()})
        if not head.loaded or not live:
            return Refusal(("no-key-found",) if head.loaded else ("not-loaded",))
        rest = {key: values for key, values in head.rows.items() if values[0] not in live}
        written = {key: values for key, values in given.updates.items() if values[0] in live}
        if set(rest) & set(written):
            return Refusal(("key-taken",))
        return Step("apply", (), (), replace(head, rows={**rest, **written}, corrected=True), self.item)

    def load_due(self) -> Step | None:
        """The load that must come first; of kind `waits` where its time has not come."""
        head, load = self.state, self.raw.get(LOAD)
        if load is None or (head.loaded and load.etag == head.generation[1]):
            return None
        if head.loaded and self.item.reload_waits:
            return Step("waits", (), (), head, self.item)
        rows = changed({}, load.rows)
        awaited = frozenset(mark for mark in head.awaited if mark[0] != LOAD and digits(mark[0]) >= load.first)
        after = State(rows, rows, "", (head.generation[0] + 1, load.etag, load.first), awaited=awaited, loaded=True)
        return Step("full-load", (LOAD,), (load.mark,), after, replace(self.item, cursor=""))

    def sort_out(self) -> tuple[list[str], list[str], list[str]]:
        """(pending, late, passed over by a person who moved the cursor) of the generation's CDC files."""
        head, cursor = self.state, self.item.cursor
        moved = cursor != head.cursor
        pending, late, passed = [], [], []
        for name in sorted(self.raw):
            if name == LOAD or digits(name) < head.generation[2]:
                continue
            is_new = name not in head.applied | head.skipped
            if name > cursor and (moved or is_new):
                pending.append(name)
            elif name <= cursor and is_new:
                (passed if moved and name > head.cursor else late).append(name)
        return pending, late, passed

    def _batch(self) -> Step | None:
        if LOAD not in self.raw:
            return None
        pending, late, passed = self.sort_out()
        head, taken = self.state, late or pending
        if not taken:
            return None
        if late:
            # Only the keys whose last change, of all applied and late files, stands in a late one: what came since, a correction among
            # it, stays as it is for the others.
            since = sorted({*late, *(name for name in head.applied if name >= late[0])})
            last = {key: name for name in since for _, key, _ in self.rows_of([name])}
            rows = changed(head.rows, [row for row in self.rows_of(late) if last[row[1]] in late])
            cursor = self.item.cursor
        else:
            rows, cursor = changed(head.rows, self.rows_of(pending)), pending[-1]
        applied, skipped = head.applied | frozenset(taken), (head.skipped | frozenset(passed)) - frozenset(taken)
        over = {mark[0] for mark in head.awaited if head.cursor < mark[0] <= cursor}
        awaited = frozenset(mark for mark in head.awaited if mark[0] not in {*applied, *skipped, *over})
        after = _trimmed(replace(head, rows=rows, cursor=cursor, applied=applied, skipped=skipped, awaited=awaited))
        took = tuple(self.raw[name].mark for name in (*taken, *passed))
        return Step("late" if late else "incremental", tuple(taken), took, after, replace(self.item, cursor=cursor))

    # --- back and forth

    def back(self, change: str) -> Iterator[Change]:
        while change:
            yield self.changes[change]
            change = self.changes[change].parent

    def rows_path(self, ordinary: str) -> list[str]:
        """The ordinary changes that made the rows of one, itself first."""
        path = []
        while ordinary:
            path.append(ordinary)
            parent = self.changes[ordinary].parent
            ordinary = self.changes[parent].rows_of if parent else ""
        return path

    def tail(self) -> list[str]:
        """The undone changes that a re-apply may bring back, oldest first."""
        last = next((change.id for change in self.back(self.head) if change.is_ordinary and not change.lost), "")
        have, all_of_it = self.rows_path(self.changes[self.head].rows_of), self.rows_path(last)
        return [] if set(have) - set(all_of_it) else [change for change in reversed(all_of_it) if change not in have]

    def goal(self, wish: Wish) -> str | Refusal:
        """The change whose state is wanted, '' for the empty table."""
        if not self.head:
            return Refusal(("not-loaded",))
        named = self.changes.get(wish.to) or self.changes.get(wish.undo) or self.changes.get(wish.reapply)
        if named and named.lost:
            return Refusal(("lost-change",))
        live = self.rows_path(self.changes[self.head].rows_of)
        if wish.reapply:
            tail = self.tail()
            if wish.reapply == "all":
                return tail[-1] if tail else Refusal(("nothing-to-reapply",))
            return wish.reapply if wish.reapply in tail else Refusal(("not-in-tail",))
        if wish.to == "previous":
            return self.changes[live[0]].parent if live else Refusal(("nothing-to-undo",))
        if wish.undo:
            assert named is not None
            return Refusal(("nothing-to-undo",)) if named.is_ordinary and named.id not in live else named.parent
        return wish.to

    def _undo(self, wish: Wish, found: str) -> Step | Refusal | None:
        if found and self.changes[found].lost:
            return Refusal(("version-gone", "pending-file-gone", "skip-of-load"))  # lost by the very run
        head, goal = self.state, self.state_of(found)
        rows_of = self.changes[found].rows_of if found else ""
        pending = self._pending_again(found)
        after = self._skipping(goal, pending) if wish.skip else replace(goal, awaited=frozenset(pending))
        same = (head.cursor, head.generation, head.applied, head.skipped) == (after.cursor, after.generation, after.applied, after.skipped)
        if same and rows_of == self.changes[self.head].rows_of:
            return None
        if wish.skip and not goal.loaded:
            return Refusal(("skip-of-load",))
        if not wish.skip and any(name not in self.raw or self.raw[name].etag != etag for name, etag in pending):
            return Refusal(("pending-file-gone",))
        kind = "reapply" if wish.reapply else "rollback"
        took = tuple((name, self.raw[name].etag) for name in sorted(after.skipped - goal.skipped - head.skipped) if name in self.raw)
        return Step(kind, (), took, after, self._item_after(wish, after, bool(pending)), rows_of)

    def _pending_again(self, goal: str) -> set[tuple[str, str]]:
        """The marks of files that were taken or awaited and will be taken (again) from the goal's state."""
        to = self.state_of(goal)
        since = list(takewhile(lambda change: change.id > goal, self.back(self.head)))
        loads = (at for at, change in enumerate(since) if change.kind == "full-load" and (LOAD, to.generation[1]) not in change.took)
        load = next(loads, len(since))  # it is due again, and brings all that was before it
        marks = {**dict(to.awaited), **dict(self.state.awaited)}
        for change in reversed(since[: load + 1]):
            marks.update(change.took)
        marks = {name: etag for name, etag in marks.items() if name == LOAD or digits(name) >= to.generation[2]}
        return {mark for mark in marks.items() if mark[0] not in to.applied | to.skipped and mark != (LOAD, to.generation[1])}

    def _skipping(self, goal: State, pending: set[tuple[str, str]]) -> State:
        """The goal's rows at the head's place: what was taken in between is left out for good. A goal that is further on keeps its own."""
        head = self.state
        generation = max(head, goal, key=lambda at: (at.generation[2], at.generation[0])).generation
        is_goals = goal.generation == generation
        passed = {name for name, _ in pending - head.awaited}
        skipped = (goal.skipped if is_goals else head.applied) | head.skipped | passed
        of_it = frozenset(name for name in goal.applied | skipped if name != LOAD and digits(name) >= generation[2])
        after = replace(goal, generation=generation, awaited=head.awaited & frozenset(pending))
        after = replace(after, applied=goal.applied & of_it, skipped=(skipped & of_it) - goal.applied)
        cursors = [at.cursor for at in (head, goal) if at.generation == generation or digits(at.cursor) >= generation[2]]
        after = replace(after, cursor=max(cursors))
        return _trimmed(after if is_goals else replace(after, base=goal.rows))

    def _item_after(self, wish: Wish, after: State, waits: bool) -> Item:
        item = self.item if wish.skip else replace(self.item, cursor=after.cursor)
        if wish.resume:
            return item.active
        if not wish.reapply:
            return replace(item, ours=True)
        return item if waits else replace(item, ours=False)
