"""Where pages lead: addresses of the live pages, or places in the one file of a report."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol
from urllib.parse import urlencode

OVERVIEW, TABLE, CHANGE, DIFF, EXPLAIN = "/", "/table", "/change", "/diff", "/explain"


class Links(Protocol):
    """'' where there is no such page to lead to: its name is then plain text."""

    def overview(self) -> str: ...

    def table(self, path: str, at: str = "") -> str: ...

    def change(self, path: str, change: str) -> str: ...

    def diff(self, path: str, a: str, b: str) -> str: ...


class LiveLinks:
    """Of `dmslake serve`: `/`, `/table?path=P&at=A`, `/change?path=P&change=C`, `/diff?path=P&from=A&to=B`, `/explain?path=P&key=K`."""

    def overview(self) -> str:
        return OVERVIEW

    def table(self, path: str, at: str = "") -> str:
        return _address(TABLE, {"path": path, "at": at})

    def change(self, path: str, change: str) -> str:
        return _address(CHANGE, {"path": path, "change": change})

    def diff(self, path: str, a: str, b: str) -> str:
        return _address(DIFF, {"path": path, "from": a, "to": b})


class ReportLinks:
    """Of a report: anchors of what it holds. tables: path → number; changes: (path, change) that have a page of their own."""

    def __init__(self, tables: Mapping[str, int], changes: frozenset[tuple[str, str]]) -> None:
        self._tables, self._changes = tables, changes

    def overview(self) -> str:
        return "#overview"

    def table(self, path: str, at: str = "") -> str:
        return f"#{self.table_id(path)}" if path in self._tables and not at else ""

    def change(self, path: str, change: str) -> str:
        return f"#{self.change_id(path, change)}" if (path, change) in self._changes else ""

    def diff(self, path: str, a: str, b: str) -> str:
        return ""

    def table_id(self, path: str) -> str:
        return f"table-{self._tables[path]}"

    def change_id(self, path: str, change: str) -> str:
        return f"change-{self._tables[path]}-{change}"


def _address(place: str, query: Mapping[str, str]) -> str:
    return f"{place}?{urlencode({name: value for name, value in query.items() if value})}"
