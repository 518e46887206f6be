"""A source table that is made up, and what happens in it: pure, and the same for the same seed."""

from __future__ import annotations

import random
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from infra.local.feed.kinds import KINDS, Kind

Row = dict[str, Any]
Key = tuple[Any, ...]

NULL_SHARE = 0.12
WINDOW_SECONDS = 50  # the commits of one call of `happen` lie so close together


@dataclass(frozen=True)
class SourceColumn:
    """A column of the source table. kind: a name in KINDS."""

    name: str
    kind: str

    @property
    def of(self) -> Kind:
        return KINDS[self.kind]


KEYS: dict[str, tuple[SourceColumn, ...]] = {
    "single": (SourceColumn("id", "int64"),),
    "composite": (SourceColumn("tenant", "tenant"), SourceColumn("id", "int32")),
}
COLUMNS = (
    SourceColumn("region", "region"),
    SourceColumn("day", "day"),
    SourceColumn("tiny", "int8"),
    SourceColumn("small", "int16"),
    SourceColumn("number", "int32"),
    SourceColumn("big", "int64"),
    SourceColumn("unsigned_tiny", "uint8"),
    SourceColumn("unsigned_small", "uint16"),
    SourceColumn("unsigned", "uint32"),
    SourceColumn("unsigned_big", "uint64"),
    SourceColumn("ratio", "float32"),
    SourceColumn("measure", "float64"),
    SourceColumn("price", "decimal(12,2)"),
    SourceColumn("exact", "decimal(38,10)"),
    SourceColumn("flag", "boolean"),
    SourceColumn("flag_text", "boolean-text"),
    SourceColumn("name", "text"),
    SourceColumn("raw", "binary"),
    SourceColumn("born", "date"),
    SourceColumn("clock", "time"),
    SourceColumn("seen_ms", "timestamp-ms"),
    SourceColumn("seen", "timestamp-us"),
    SourceColumn("body", "lob"),
)
ALTERS = ("widen", "drop", "add")


@dataclass(frozen=True)
class Change:
    """One change of one row, in the order of the source's log. row: whole, after an I or a U, before a D; before: of a U.

    columns: those of the table when it happened. sequence: counts all changes.
    """

    op: str
    row: Row
    before: Row | None
    committed_at: datetime
    sequence: int
    columns: tuple[SourceColumn, ...]


class Simulation:
    """The source table. rows: by key; columns: as they are now."""

    def __init__(self, seed: int, key: str = "single", *, inserts_only: bool = False, moves_keys: bool = False, ties: float = 0.5) -> None:
        """moves_keys: updates may change the key. ties: the share of changes that have the commit time of the one before."""
        self.key = tuple(column.name for column in KEYS[key])
        self.columns: tuple[SourceColumn, ...] = (*KEYS[key], *COLUMNS)
        self.rows: dict[Key, Row] = {}
        self._chance = random.Random(seed)
        self._inserts_only, self._moves_keys, self._ties = inserts_only, moves_keys, ties
        self._greatest = self._sequence = 0
        self._alters = seed + 2  # seed 1 begins with the first
        self._free: list[Key] = []  # of rows that were deleted: a key may come back

    def fill(self, count: int) -> None:
        """Rows that were there before anybody looked."""
        for _ in range(count):
            row = self._new_row()
            self.rows[self.key_of(row)] = row

    def key_of(self, row: Row) -> Key:
        return tuple(row[name] for name in self.key)

    def happen(self, count: int, at: datetime) -> list[Change]:
        """About `count` changes, committed within a minute from `at`: by whole seconds, many at the same, some before the one before,
        because a transaction's time is when it began."""
        changes: list[Change] = []
        seconds = 0
        while len(changes) < count:
            if self._chance.random() >= self._ties:
                seconds = WINDOW_SECONDS * len(changes) // count
            elif self._chance.random() < 0.1:
                seconds = max(0, seconds - 2)
            changes += self._one(at + timedelta(seconds=seconds))
        return changes

    def alter(self) -> str:
        """ALTER TABLE: a column grows, one goes, one is added, in turn; a sentence. DMS writes nothing about it."""
        what = ALTERS[self._alters % len(ALTERS)]
        self._alters += 1
        return {"widen": self._widen, "drop": self._drop, "add": self._add}[what]()

    # --- what happens

    def _one(self, at: datetime) -> list[Change]:
        what = self._chance.random()
        if self._inserts_only or not self.rows or what < 0.35:
            return self._insert(at)
        key = self._chance.choice(list(self.rows))
        if what < 0.75:
            return [self._update(key, self._touched(self.rows[key]), at)]
        if what < 0.85 and self._moves_keys:
            return [self._update(key, {**self.rows[key], **dict(zip(self.key, self._new_key(), strict=True))}, at)]
        self._free.append(key)
        return [self._change("D", self.rows.pop(key), None, at)]

    def _insert(self, at: datetime) -> list[Change]:
        row = self._new_row()
        late = {column.name: row[column.name] for column in self.columns if column.kind == "lob" and row[column.name] is not None}
        first = {**row, **dict.fromkeys(late)}
        self.rows[self.key_of(row)] = first
        changes = [self._change("I", first, None, at)]
        if late and not self._inserts_only:
            changes.append(self._update(self.key_of(row), row, at))
        return changes

    def _update(self, key: Key, row: Row, at: datetime) -> Change:
        before = self.rows.pop(key)
        self.rows[self.key_of(row)] = row
        return self._change("U", row, before, at)

    def _change(self, op: str, row: Row, before: Row | None, at: datetime) -> Change:
        self._sequence += 1
        return Change(op, row, before, at, self._sequence, self.columns)

    # --- rows

    def _new_row(self) -> Row:
        row = dict(zip(self.key, self._new_key(), strict=True))
        return {column.name: row[column.name] if column.name in row else self._value(column) for column in self.columns}

    def _new_key(self) -> Key:
        """The next number, or a key that was free again; two rows may differ only by the first part of their key."""
        free = [key for key in self._free if key not in self.rows]
        if free and self._chance.random() < 0.3:
            return self._chance.choice(free)
        if len(self.key) == 2 and self.rows and self._chance.random() < 0.3:
            number = self._chance.choice(list(self.rows))[1]
            beside = (KINDS["tenant"].make(self._chance), number)
            if beside not in self.rows:
                return beside
        self._greatest += 1
        return (self._greatest,) if len(self.key) == 1 else (KINDS["tenant"].make(self._chance), self._greatest)

    def _touched(self, row: Row) -> Row:
        data = [column for column in self.columns if column.name not in self.key]
        some = self._chance.sample(data, self._chance.randint(1, 4))
        return {**row, **{column.name: self._value(column) for column in some}}

    def _value(self, column: SourceColumn) -> Any:
        return None if self._chance.random() < NULL_SHARE else column.of.make(self._chance)

    # --- columns

    def _widen(self) -> str:
        grown = next((column for column in self.columns if column.of.grows and column.name not in self.key), None)
        if grown is None:
            return self._add()
        self.columns = tuple(replace(column, kind=column.of.grows) if column is grown else column for column in self.columns)
        return f"column {grown.name} grows from {grown.kind} to {grown.of.grows}"

    def _drop(self) -> str:
        gone = next((column for column in reversed(self.columns) if column.kind not in ("lob", "region", "day")), self.columns[-1])
        if gone.name in self.key:
            return self._add()
        self.columns = tuple(column for column in self.columns if column is not gone)
        self.rows = {key: {name: value for name, value in row.items() if name != gone.name} for key, row in self.rows.items()}
        return f"column {gone.name} is dropped"

    def _add(self) -> str:
        added = SourceColumn(f"added_{self._alters}", self._chance.choice(("text", "int32", "decimal(12,2)", "timestamp-us")))
        self.columns = (*self.columns, added)
        self.rows = {key: {**row, added.name: None} for key, row in self.rows.items()}
        return f"column {added.name} is added, {added.kind}"
