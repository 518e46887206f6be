"""What the lake must hold: a dict from key to row, kept by applying what was delivered in the order in which DMS wrote it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from infra.local.feed.simulation import Change, Key, Row, SourceColumn


@dataclass
class Oracle:
    """The table. rows: values as the lake has them, by the source's key; what a row doesn't name is null.

    types: of each column that the lake has: its name for the type, and Arrow's. Columns that the source dropped stay.
    """

    key: tuple[str, ...]
    timestamp_column: str = ""
    rows: dict[Key, Row] = field(default_factory=dict)
    types: dict[str, tuple[str, pa.DataType]] = field(default_factory=dict)

    def copy(self) -> Oracle:
        return Oracle(self.key, self.timestamp_column, dict(self.rows), dict(self.types))

    def load(self, columns: Sequence[SourceColumn], rows: Iterable[tuple[Row, str]]) -> None:
        """A full load replaces everything; each row with its text in the timestamp column."""
        self.rows, self.types = {}, {}
        self._see(columns)
        for row, text in rows:
            self._put(columns, row, text)

    def take(self, changes: Iterable[Change], text_of: Any) -> None:
        """Apply CDC rows, whose key may be there or not. text_of: change → its text in the timestamp column."""
        for change in changes:
            self._see(change.columns)
            for gone in (change.before, change.row):
                if gone is not None:
                    self.rows.pop(self._key_of(gone), None)
            if change.op != "D":
                self._put(change.columns, change.row, text_of(change))

    def _see(self, columns: Sequence[SourceColumn]) -> None:
        if self.timestamp_column:
            self.types.setdefault(self.timestamp_column, ("string", pa.string()))
        for column in columns:
            before = self.types.get(column.name)
            if before is None or _width(column.of.lake_arrow) > _width(before[1]):
                self.types[column.name] = (column.of.lake, column.of.lake_arrow)

    def _put(self, columns: Sequence[SourceColumn], row: Row, text: str) -> None:
        found = {column.name: None if row[column.name] is None else column.of.to_lake(row[column.name]) for column in columns}
        self.rows[self._key_of(row)] = {**found, self.timestamp_column: text} if self.timestamp_column else found

    def _key_of(self, row: Row) -> Key:
        return tuple(row[name] for name in self.key)

    def schema(self) -> dict[str, str]:
        """Column → lake type, in the order in which the lake has come to know them."""
        return {name: kind for name, (kind, _) in self.types.items()}

    def tuples(self, names: Sequence[str] | None = None) -> list[tuple[Any, ...]]:
        """The rows, with the columns `names`, by default all."""
        wanted = list(self.types) if names is None else list(names)
        return [tuple(row.get(name) for name in wanted) for row in self.rows.values()]

    def table(self) -> pa.Table:
        """The rows as a table in the lake's types, sorted by key."""
        rows = [self.rows[key] for key in sorted(self.rows)]
        arrays = [pa.array([row.get(name) for row in rows], kind) for name, (_, kind) in self.types.items()]
        return pa.Table.from_arrays(arrays, names=list(self.types))


def _width(kind: pa.DataType) -> int:
    return kind.precision if pa.types.is_decimal(kind) else kind.bit_width if pa.types.is_primitive(kind) else 0
