"""Two images of a table, and what differs between them, row by row. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

Row = Mapping[str, Any]
Rows = Mapping[Any, Row]
"""Key → row."""

_SHOWN_DIFFERENCES = 5


@dataclass(frozen=True)
class RowChange:
    """What happened to one key. before: None for an insert; after: None for a delete."""

    key: Any
    before: Row | None
    after: Row | None

    @property
    def operation(self) -> str:
        """INSERT, UPDATE or DELETE."""
        if self.before is None:
            return "INSERT"
        return "UPDATE" if self.after is not None else "DELETE"

    def values(self) -> dict[str, tuple[Any, Any]]:
        """Column → (before, after), for the columns whose value changed. One that isn't there is null; NaN equals itself."""
        before, after = self.before or {}, self.after or {}
        pairs = {name: (before.get(name), after.get(name)) for name in {**before, **after}}
        return {name: pair for name, pair in pairs.items() if not _is_same(*pair)}


def _is_same(one: Any, other: Any) -> bool:
    return bool(one == other or (one != one and other != other))


def row_changes(before: Rows, after: Rows) -> list[RowChange]:
    """The changes that turn `before` into `after`, by key. A column that was added with null everywhere changes no row."""
    changes = [RowChange(key, before.get(key), after.get(key)) for key in sorted({*before, *after})]
    return [change for change in changes if change.operation != "UPDATE" or change.values()]


def differences(expected: Rows, found: Rows) -> list[str]:
    """How `found` differs from `expected`, a line per row, the first few; empty if it doesn't."""
    lines = []
    for change in row_changes(expected, found):
        if change.operation == "INSERT":
            lines.append(f"row {change.key} should not be there")
        elif change.operation == "DELETE":
            lines.append(f"row {change.key} is missing")
        else:
            values = (f"{name}: expected {pair[0]!r}, found {pair[1]!r}" for name, pair in change.values().items())
            lines.append(f"row {change.key}: {'; '.join(values)}")
    more = len(lines) - _SHOWN_DIFFERENCES
    return lines if more <= 0 else [*lines[:_SHOWN_DIFFERENCES], f"and {more} more"]
