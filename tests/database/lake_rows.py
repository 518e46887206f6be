"""What a lake table must hold for a table of the database: columns with lake types, and rows by key in the lake's values."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timezone
from decimal import Decimal
from typing import Any

from tests.database.rows import Row, select_all

Values = dict[str, Any]

# MySQL's type, without its length, to the lake's.
LAKE_TYPES = {
    "tinyint": "tinyint", "smallint": "smallint", "mediumint": "int", "int": "int", "bigint": "bigint",
    "tinyint unsigned": "smallint", "smallint unsigned": "int", "mediumint unsigned": "bigint", "int unsigned": "bigint",
    "bigint unsigned": "decimal(20,0)", "float": "float", "double": "double", "year": "smallint",
    "date": "date", "datetime": "timestamp", "timestamp": "timestamp", "time": "string",
    "char": "string", "varchar": "string", "text": "string", "longtext": "string", "enum": "string", "set": "string",
    "binary": "binary", "varbinary": "binary", "blob": "binary", "bit": "binary",
}  # fmt: skip


@dataclass(frozen=True)
class Expected:
    """A table: its key, (column, lake type) in the source's order, and its rows by key."""

    key: tuple[str, ...]
    columns: tuple[tuple[str, str], ...]
    rows: Mapping[Row, Values]
    partitions: Mapping[str, str] = field(default_factory=dict)
    """Folder columns that the source lacks, with what they are made of: `create_dt_year` → `year(create_dt)`."""
    untold: tuple[str, ...] = ()
    """Columns of the lake whose values the database doesn't know: the commit timestamp."""


def lake_type(column_type: str) -> str:
    """The lake's type for a column type as information_schema says it (`int(10) unsigned`)."""
    if column_type == "bit(1)":
        return "boolean"
    if column_type.startswith("decimal("):
        return column_type
    return LAKE_TYPES[re.sub(r"\(.*\)", "", column_type)]


def source_table(connection: Any, table: str, key: Sequence[str], **more: Any) -> Expected:
    """The table as it is in the database now; `more` are further fields of Expected."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT column_name, column_type FROM information_schema.columns"
            " WHERE table_schema = DATABASE() AND table_name = %s ORDER BY ordinal_position",
            [table],
        )
        columns = tuple((name, lake_type(column_type)) for name, column_type in cursor.fetchall())
    names, found = select_all(connection, table)
    assert names == [name for name, _ in columns]
    rows = [{name: _in_lake(kind, value) for (name, kind), value in zip(columns, row, strict=True)} for row in found]
    return Expected(tuple(key), columns, {tuple(row[name] for name in key): row for row in rows}, **more)


def _in_lake(kind: str, value: Any) -> Any:
    if kind == "timestamp" and value is not None:
        return value.replace(tzinfo=timezone.utc)
    return Decimal(value) if kind == "decimal(20,0)" and value is not None else value


def check_rows(expected: Expected, rows: Iterable[Values], where: str) -> None:
    """Fail unless the rows are the expected ones, each once, in values and their types."""
    found: dict[Row, Values] = {}
    for row in rows:
        key = tuple(row[name] for name in expected.key)
        assert key not in found, f"{where}: two rows have the key {key}"
        found[key] = row
    missing, extra = expected.rows.keys() - found.keys(), found.keys() - expected.rows.keys()
    assert not missing, f"{where}: rows are missing: {sorted(missing, key=repr)[:5]}"
    assert not extra, f"{where}: rows are too many: {sorted(extra, key=repr)[:5]}"
    for key, row in expected.rows.items():
        for name, value in row.items():
            said = found[key][name]
            assert _same(said, value), f"{where}: row {key}, column {name}: expected {value!r}, found {said!r}"
        for name, made_of in expected.partitions.items():
            part = _part(made_of, row)
            assert found[key][name] == part, f"{where}: row {key}, folder {name}: expected {part!r}, found {found[key][name]!r}"


def _same(found: Any, expected: Any) -> bool:
    """True is not 1, an integer no decimal; aware datetimes are compared as instants."""
    if isinstance(expected, datetime):
        return isinstance(found, datetime) and found.tzinfo is not None and found == expected
    return type(found) is type(expected) and found == expected


def _part(made_of: str, row: Values) -> int | None:
    """`year(create_dt)` of a row."""
    name, _, column = made_of.rstrip(")").partition("(")
    value = row[column]
    part: Callable[[], int] = lambda: getattr(value, name)  # noqa: E731
    return None if value is None else part()
