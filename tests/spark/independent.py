"""The rows of Parquet files as a reader says that is not ours, DuckDB, and values in a form in which equal ones are equal."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.types as pt

KEY = "id"
Values = dict[str, Any]  # column → canonical value; null is left out


@dataclass(frozen=True)
class RawRow:
    """A row of a raw file; op: I, U, D, '' for none."""

    op: str
    values: Values


def parquet_rows(data: bytes) -> list[RawRow] | None:
    """The rows, or None if DuckDB refuses the file."""
    handle, path = tempfile.mkstemp(suffix=".parquet")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        with duckdb.connect() as database:
            database.execute("SET TimeZone = 'UTC'; SET threads = 1")
            found = database.execute("SELECT * FROM read_parquet(?)", [path]).to_arrow_table()
    except duckdb.Error:
        return None
    finally:
        os.unlink(path)
    return with_operations(values_of(found))


def with_operations(rows: Iterable[Values]) -> list[RawRow]:
    """The column `Op` told apart; rows without it are inserts."""
    return [RawRow(row.get("Op", ""), {name: value for name, value in row.items() if name != "Op"}) for row in rows]


def values_of(table: pa.Table) -> list[Values]:
    """The rows of a table, of whatever types."""
    columns = {name: _canonical(table.column(at)) for at, name in enumerate(table.column_names)}
    return [{name: values[row] for name, values in columns.items() if values[row] is not None} for row in range(table.num_rows)]


def _canonical(column: pa.ChunkedArray) -> Sequence[Any]:
    """Numbers are equal whatever their type, so −0.0, NaN, true and times are made something else first; a time of day is a text, as
    in the lake."""
    kind = column.type
    if pt.is_date(kind):
        return [None if value is None else ("day", value) for value in column.cast(pa.date32()).cast(pa.int32()).to_pylist()]
    if pt.is_timestamp(kind):
        micros = column.cast(pa.timestamp("us", kind.tz)).cast(pa.int64())
        return [None if value is None else ("moment", value) for value in micros.to_pylist()]
    if pt.is_time(kind):
        return [None if value is None else _clock(value) for value in column.cast(pa.time64("us")).cast(pa.int64()).to_pylist()]
    if pt.is_floating(kind):
        return [None if value is None else ("float", repr(value)) for value in column.to_pylist()]
    if pt.is_boolean(kind):
        return [None if value is None else ("truth", value) for value in column.to_pylist()]
    return list(column.to_pylist())


def _clock(micros: int) -> str:
    seconds, below = divmod(micros, 1_000_000)
    whole = f"{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}"
    return f"{whole}.{below // 1000:03d}" if below else whole


def after(base: Iterable[Values], rows: Iterable[RawRow]) -> list[frozenset[tuple[str, Any]]]:
    """The table after the rows of a file; KeyError for a row without key, ValueError for an operation that is none."""
    table: dict[Any, Values] = {row[KEY]: row for row in base}
    for row in rows:
        if row.op not in ("", "I", "U", "D"):
            raise ValueError(f"no operation: {row.op!r}")
        table.pop(row.values[KEY], None)
        if row.op != "D":
            table[row.values[KEY]] = row.values
    return as_sets(table.values())


def as_sets(rows: Iterable[Mapping[str, Any]]) -> list[frozenset[tuple[str, Any]]]:
    """Rows that can be counted."""
    return [frozenset(row.items()) for row in rows]
