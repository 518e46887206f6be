"""The row binlog as committed transactions."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from datetime import datetime, timezone
from typing import Any

import pymysql
from pymysqlreplication import BinLogStreamReader
from pymysqlreplication.event import ExecuteLoadQueryEvent, QueryEvent, XidEvent
from pymysqlreplication.row_event import DeleteRowsEvent, RowsEvent, UpdateRowsEvent, WriteRowsEvent

from infra.local.capture.columns import SourceColumn, logged_column, logged_converter
from infra.local.capture.corrections import apply_corrections
from infra.local.capture.errors import CaptureError
from infra.local.capture.source import BinlogPosition, Source
from infra.local.capture.statements import read_statement

apply_corrections()

_ER_MASTER_FATAL_ERROR_READING_BINLOG = 1236
_COMMENT = r"\s*(?:/\*.*?\*/\s*)*"
_SAVEPOINT = re.compile(_COMMENT + r"SAVEPOINT\s+(.+)", re.IGNORECASE | re.DOTALL)
_ROLLBACK_TO = re.compile(_COMMENT + r"ROLLBACK\s+(?:WORK\s+)?TO\s+(?:SAVEPOINT\s+)?(.+)", re.IGNORECASE | re.DOTALL)
_XA = re.compile(_COMMENT + r"XA\s", re.IGNORECASE | re.DOTALL)


@dataclass(frozen=True)
class LoggedRow:
    """One row of a row event."""

    table: str
    columns: tuple[SourceColumn, ...]
    op: str
    """I, U or D."""
    values: list[Any]
    """After the operation; before it for D."""
    before: list[Any] | None
    """The row before a U."""
    event_time: datetime
    """When the *statement* began, in whole seconds: it can go back from one row to the next."""


@dataclass(frozen=True)
class Transaction:
    """What was committed together, in the order in which it was done; without rows where only the position moved."""

    rows: tuple[LoggedRow, ...]
    position_after: BinlogPosition
    warnings: tuple[str, ...] = ()


@dataclass
class _Open:
    """The transaction that is being read."""

    rows: list[LoggedRow] = field(default_factory=list)
    savepoints: dict[str, int] = field(default_factory=dict)


class _Layouts:
    """Columns and converters of the tables seen, by the reader's table object (a new one per table map)."""

    def __init__(self) -> None:
        self._last: dict[int, tuple[Any, tuple[SourceColumn, ...], list[Callable[[Any, Any], Any]]]] = {}

    def of(self, event: RowsEvent) -> tuple[tuple[SourceColumn, ...], list[Callable[[Any, Any], Any]]]:
        known = self._last.get(event.table_id)
        if known is None or known[0] is not event.columns:
            columns = tuple(logged_column(column) for column in event.columns)
            known = (event.columns, columns, [logged_converter(column) for column in event.columns])
            self._last[event.table_id] = known
        return known[1], known[2]


def transactions(source: Source, start: BinlogPosition, end: BinlogPosition, wanted: Callable[[str], bool]) -> Iterator[Transaction]:
    """The transactions between the two positions that touch wanted tables, in binlog order.

    Rolled back work isn't in the binlog, or is followed by its ROLLBACK there: neither comes out of here. A transaction
    that is still being written at `end` is left to the next call. The last one yielded ends at `end` or behind it.
    """
    with closing(_stream(source, start)) as stream:
        current, layouts, position = _Open(), _Layouts(), start
        while position.order < end.order:
            event = _next(source, stream, start)
            if event is None:
                break
            if isinstance(event, RowsEvent):
                if wanted(event.table):
                    current.rows += _rows(event, layouts)
                continue
            done, warnings = _after_query(source, event, current, wanted)
            position = BinlogPosition(stream.log_file, stream.log_pos)
            if done or warnings:
                yield Transaction(tuple(current.rows) if done else (), position, warnings)
            if done:
                current = _Open()
        if not current.rows:
            yield Transaction((), max(position, end, key=lambda place: place.order))


def _stream(source: Source, start: BinlogPosition) -> BinLogStreamReader:
    return BinLogStreamReader(
        connection_settings={**source.settings, "charset": "utf8mb4"},
        server_id=random.randrange(2**31, 2**32 - 1),  # two readers with one id throw each other out
        log_file=start.file,
        log_pos=start.offset,
        resume_stream=True,
        blocking=False,
        only_events=[WriteRowsEvent, UpdateRowsEvent, DeleteRowsEvent, QueryEvent, ExecuteLoadQueryEvent, XidEvent],
        only_schemas=[source.database],
        enable_logging=False,
    )


def _next(source: Source, stream: BinLogStreamReader, start: BinlogPosition) -> Any:
    try:
        return stream.fetchone()
    except pymysql.MySQLError as error:
        if error.args and error.args[0] == _ER_MASTER_FATAL_ERROR_READING_BINLOG:
            raise CaptureError(
                f"binlog position {start} isn't on the server any more ({error}): changes since then are lost to the capture",
                "binlog-gone",
                "run with --full-load",
            ) from error
        raise source.refusal(error) from error


def _rows(event: RowsEvent, layouts: _Layouts) -> Iterator[LoggedRow]:
    columns, converters = layouts.of(event)
    when = datetime.fromtimestamp(event.timestamp, timezone.utc)
    op = {WriteRowsEvent: "I", UpdateRowsEvent: "U", DeleteRowsEvent: "D"}[type(event)]
    try:
        rows = event.rows
    except ValueError as error:
        raise CaptureError(
            f"binlog: table {event.table}: a value can't be read: {error}", "binlog-value", "run with --full-load to start behind it"
        ) from error

    def values(row: dict[str, Any], prefix: str = "") -> list[Any]:
        given, none = row[prefix + "values"], row[prefix + "none_sources"]
        pairs = zip(columns, converters, strict=True)
        return [convert(given[column.name], none.get(column.name)) for column, convert in pairs]

    for row in rows:
        if op == "U":
            yield LoggedRow(event.table, columns, op, values(row, "after_"), values(row, "before_"), when)
        else:
            yield LoggedRow(event.table, columns, op, values(row), None, when)


def _after_query(source: Source, event: Any, current: _Open, wanted: Callable[[str], bool]) -> tuple[bool, tuple[str, ...]]:
    """Whether the transaction is committed by the event, and what a person should know of it."""
    if isinstance(event, XidEvent):
        return True, ()
    text, default = _told(event)
    query = text.strip()
    if query.upper() == "COMMIT":
        return True, ()
    if query.upper() == "ROLLBACK":
        current.rows.clear()
        current.savepoints.clear()
    elif match := _SAVEPOINT.fullmatch(query):
        current.savepoints[match[1]] = len(current.rows)
    elif match := _ROLLBACK_TO.fullmatch(query):
        del current.rows[current.savepoints[match[1]] :]
    elif _XA.match(query):
        raise CaptureError(
            f"binlog: XA transactions are not supported, found {query[:80]!r}", "binlog-xa", "run with --full-load to start behind it"
        )
    else:
        statement = read_statement(query, default)
        if statement is None or not statement.concerns(source.database, wanted):
            return False, ()
        if statement.is_logged:
            raise CaptureError(
                f"binlog: a change was logged as a statement, its rows are not known: {query[:200]!r}",
                "binlog-statement",
                "a session has changed its binlog_format: have it set to ROW, then run with --full-load",
            )
        return False, (f"CDC files can't say {query[:200]!r}; run with --full-load to start again",)
    return False, ()


_LOAD_HEAD_BYTES = 26  # of a LOAD DATA logged as a statement, before its status variables: what the library reads of it


def _told(event: Any) -> tuple[str, str]:
    """The text of a statement, and its session's default database. Of a LOAD DATA both stand, behind status variables, where the library
    stops to read."""
    if isinstance(event, QueryEvent):
        return event.query, event.schema.decode("utf-8", "replace")
    event.packet.read(event.status_vars_length)
    default = event.packet.read(event.schema_length).decode("utf-8", "replace")
    event.packet.read(1)
    length = event.event_size - _LOAD_HEAD_BYTES - event.status_vars_length - event.schema_length - 1
    return event.packet.read(length).decode("utf-8", "backslashreplace"), default
