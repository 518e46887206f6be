"""The normal form in which row values of the database, of raw files and of lake tables are compared.

int, float, Decimal, str, bytes, bool, date, naive datetime in UTC, None. TIME is text. Numbers compare across types
(an unsigned bigint is an int here and a Decimal in a lake table).
"""

from __future__ import annotations

from datetime import datetime, timezone
from typing import Any

Row = tuple[Any, ...]


def normal(value: Any) -> Any:
    """A value as read by any reader, in the normal form."""
    if isinstance(value, (bytearray, memoryview)):
        return bytes(value)
    if isinstance(value, datetime) and value.tzinfo is not None:
        return value.astimezone(timezone.utc).replace(tzinfo=None)
    return value


def select_all(connection: Any, table: str) -> tuple[list[str], list[Row]]:
    """The table's columns and all its rows in the normal form, as of now; the connection must be in UTC.

    As in DMS's files: a date that is none is null, bit(1) a bool, bit(n) big-endian bytes, a decimal of more than 38
    digits text. A float is asked for as a double: the server prints floats with 6 digits.
    """
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT column_name, data_type, column_type, numeric_precision FROM information_schema.columns"
            " WHERE table_schema = DATABASE() AND table_name = %s ORDER BY ordinal_position",
            [table],
        )
        described = cursor.fetchall()
        names = [f"`{name}`" + (" + 0e0" if kind == "float" else "") for name, kind, _, _ in described]
        cursor.execute(f"SELECT {', '.join(names)} FROM `{table}`")
        rows = cursor.fetchall()
    kinds = [_kind(kind, full, precision) for _, kind, full, precision in described]
    made = [tuple(_value(kind, value) for kind, value in zip(kinds, row, strict=True)) for row in rows]
    return [name for name, *_ in described], made


def _kind(kind: str, full: str, precision: int | None) -> str:
    if kind == "decimal" and precision is not None and precision > 38:
        return "wide decimal"
    return "flag" if full == "bit(1)" else kind


def _value(kind: str, value: Any) -> Any:
    if value is None:
        return None
    if kind == "flag":
        return value == b"\x01"
    if kind == "wide decimal":
        return f"{value:f}"
    if kind in ("date", "datetime", "timestamp") and isinstance(value, str):
        return None
    return normal(value)
