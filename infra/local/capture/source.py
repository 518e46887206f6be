"""The database that is captured: connections, its settings, its tables, its binlog position."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

import pymysql
from pymysql.constants import FIELD_TYPE
from pymysql.converters import conversions
from pymysql.cursors import DictCursor, SSCursor

from infra.local.capture.columns import SourceColumn, described_column, select_converter, select_expression
from infra.local.capture.errors import SetupError, UsageError
from infra.local.capture.refusals import refusal

_ER_PARSE_ERROR = 1064
_A_DAY = 86_400
# The server drops whoever takes no rows for net_write_timeout (60 seconds), or asks nothing for wait_timeout: the upload of a load file
# can take longer.
_SESSION = f"SET time_zone = '+00:00', net_write_timeout = {_A_DAY}, wait_timeout = {_A_DAY}"

_REQUIRED = {
    "log_bin": ("ON", "start the server with --log-bin"),
    "binlog_format": ("ROW", "SET GLOBAL binlog_format = 'ROW', then reconnect the applications"),
    "binlog_row_image": ("FULL", "SET GLOBAL binlog_row_image = 'FULL', then reconnect the applications"),
    "binlog_row_metadata": ("FULL", "SET GLOBAL binlog_row_metadata = 'FULL'"),
}
_UNSUPPORTED = {  # each of these makes events that the reader would skip or misread
    "log_bin_compress": ("OFF", "SET GLOBAL log_bin_compress = OFF"),
    "binlog_transaction_compression": ("OFF", "SET GLOBAL binlog_transaction_compression = OFF"),
    "binlog_row_value_options": ("", "SET GLOBAL binlog_row_value_options = ''"),
}


class _RowCursor(SSCursor):
    """Rows as they come, without all of them in memory."""

    def close(self) -> None:
        """Done with it. PyMySQL's reads the rest of the rows first, also from a lost connection, where an AttributeError hides the loss."""
        if self.connection is not None and not self.connection.open and self._result is not None:
            self._result.unbuffered_active = False
        super().close()

    def __exit__(self, *error: object) -> None:
        """What breaks off in the middle of a table waits for no more of its rows, and a connection is of no use without them."""
        if error[0] is not None and self._has_more() and self.connection.open:
            self.connection.close()
        self.close()

    def _has_more(self) -> bool:
        return self.connection is not None and self._result is not None and self._result.unbuffered_active


@dataclass(frozen=True)
class BinlogPosition:
    """Where a transaction of the binlog ends: the next one begins there."""

    file: str
    offset: int

    @property
    def order(self) -> tuple[int, int]:
        """Binlog files are numbered; their names stop sorting after 999999."""
        return int(self.file.rpartition(".")[2]), self.offset

    def __str__(self) -> str:
        return f"{self.file}:{self.offset}"


@dataclass(frozen=True)
class SourceTable:
    """A table to load: `select` reads its columns in order, `converters` make the values (None: as they are)."""

    name: str
    columns: tuple[SourceColumn, ...]
    select: str
    converters: tuple[Callable[[Any], Any] | None, ...]


@dataclass(frozen=True)
class Source:
    """A database on a MySQL or MariaDB server."""

    settings: dict[str, Any] = field(repr=False)  # with the password
    database: str

    @classmethod
    def from_url(cls, url: str) -> Source:
        """From `mysql://user[:password]@host[:port]/database[?unix_socket=path]`.

        A missing password is taken from MYSQL_PWD. Special characters in user and password are percent-encoded.
        """
        parts = urlsplit(url)
        query = parse_qs(parts.query)
        database = unquote(parts.path.strip("/"))
        try:
            port = parts.port or 3306
        except ValueError:
            port = 0
        unknown = set(query) - {"unix_socket"}
        if parts.scheme not in ("mysql", "mariadb") or not (parts.username and database and port) or "/" in database or unknown:
            raise UsageError(
                f"--mysql: expected mysql://user[:password]@host[:port]/database[?unix_socket=path], found {_without_password(url)!r}",
                "bad-mysql-url",
                "write it so; special characters in user and password are percent-encoded",
            )
        password = unquote(parts.password) if parts.password else os.environ.get("MYSQL_PWD", "")
        settings: dict[str, Any] = {"user": unquote(parts.username or ""), "password": password}
        settings |= {"host": parts.hostname or "localhost", "port": port}
        if "unix_socket" in query:
            settings["unix_socket"] = query["unix_socket"][0]
        return cls(settings, database)

    @property
    def place(self) -> str:
        """Database and server, for messages."""
        server = self.settings.get("unix_socket") or f"{self.settings['host']}:{self.settings['port']}"
        return f"database {self.database} on {server}"

    def refusal(self, error: pymysql.MySQLError) -> SetupError:
        """What an error of the server, or of a connection to it, means."""
        return refusal(error, self.place, f"{quoted(self.database)}.*")

    @contextmanager
    def refusals(self) -> Iterator[None]:
        """Within it, such errors are the capture's own."""
        try:
            yield
        except pymysql.MySQLError as error:
            raise self.refusal(error) from error

    def connect(self, **more: Any) -> pymysql.connections.Connection[Any]:
        """A connection whose session shows times in UTC, and TIME values as text, and waits a day for us."""
        conv: dict[Any, Any] = {**conversions, FIELD_TYPE.TIME: str}
        with self.refusals():
            return pymysql.connect(
                **self.settings,
                database=self.database,
                charset="utf8mb4",
                conv=conv,
                init_command=_SESSION,
                **more,
            )

    def check(self, connection: pymysql.connections.Connection[Any]) -> None:
        """Raise unless the database's changes will be found in the server's binlog, whole, and in a form that the reader understands."""
        self._check_name(connection)
        self._check_settings(connection)

    def _check_name(self, connection: pymysql.connections.Connection[Any]) -> None:
        """Where names have no case (lower_case_table_names) any spelling connects, but the binlog has the server's own only."""
        with connection.cursor() as cursor:
            cursor.execute("SELECT schema_name FROM information_schema.schemata WHERE schema_name = %s", [self.database])
            names = [row[0] for row in cursor.fetchall()]
        if names and self.database not in names:
            raise UsageError(
                f"--mysql: expected the database as the server spells it, {names[0]!r}, found {self.database!r}: "
                "the binlog has its changes under that name only",
                "bad-mysql-url",
                f"write the database as {names[0]!r}",
            )

    def _check_settings(self, connection: pymysql.connections.Connection[Any]) -> None:
        """Each with the statement that puts it right."""
        expected = {**_REQUIRED, **_UNSUPPORTED}
        with connection.cursor() as cursor:
            names = ", ".join(["%s"] * len(expected))
            cursor.execute(f"SHOW GLOBAL VARIABLES WHERE Variable_name IN ({names})", list(expected))
            found = dict(cursor.fetchall())
        for name, (value, remedy) in expected.items():
            if name in _UNSUPPORTED and name not in found:
                continue
            if found.get(name, "").upper() != value:
                raise SetupError(f"server variable {name}: expected {value!r}, found {found.get(name)!r}", "server-setting", remedy)

    def names(self, connection: pymysql.connections.Connection[Any], only: Sequence[str] | None) -> list[str]:
        """The names of the database's tables, in their order. Raises if one that is wanted is of a kind that can't be captured."""
        with connection.cursor(DictCursor) as cursor:
            cursor.execute(
                "SELECT table_name AS table_name, table_type AS table_type FROM information_schema.tables"
                " WHERE table_schema = %s AND table_type IN ('BASE TABLE', 'SYSTEM VERSIONED') ORDER BY 1",
                [self.database],
            )
            kinds = {row["table_name"]: row["table_type"] for row in cursor.fetchall()}
        versioned = [name for name, kind in kinds.items() if kind != "BASE TABLE" and (only is None or name in only)]
        if versioned:
            raise SetupError(
                f"database {self.database}: expected tables without versions of their rows, found WITH SYSTEM VERSIONING: "
                f"{', '.join(versioned)}",
                "versioned-table",
                "leave them out: name all others in --tables",
            )
        return list(kinds)

    def cascades(self, connection: pymysql.connections.Connection[Any], only: Sequence[str] | None) -> list[str]:
        """Tables whose rows go or change with those of another one, by a foreign key: InnoDB does it, and the binlog has no such row."""
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT DISTINCT table_name FROM information_schema.referential_constraints WHERE constraint_schema = %s"
                " AND NOT (update_rule IN ('RESTRICT', 'NO ACTION') AND delete_rule IN ('RESTRICT', 'NO ACTION')) ORDER BY 1",
                [self.database],
            )
            return [row[0] for row in cursor.fetchall() if only is None or row[0] in only]

    def tables(self, connection: pymysql.connections.Connection[Any], only: Sequence[str] | None) -> list[SourceTable]:
        """The database's base tables (or those named), in the order of their names."""
        names = self.names(connection, only)
        missing = sorted(set(only or ()) - set(names))
        if missing:
            raise UsageError(f"--tables: {', '.join(missing)} not in database {self.database}", "unknown-table", f"there are: {names}")
        return [self._table(connection, name) for name in names if only is None or name in only]

    def _table(self, connection: pymysql.connections.Connection[Any], name: str) -> SourceTable:
        wanted = "column_name data_type column_type numeric_precision numeric_scale".split()
        with connection.cursor(DictCursor) as cursor:
            cursor.execute(
                f"SELECT {', '.join(f'{column} AS {column}' for column in wanted)} FROM information_schema.columns"
                " WHERE table_schema = %s AND table_name = %s ORDER BY ordinal_position",
                [self.database, name],
            )
            rows = cursor.fetchall()
        selected = ", ".join(select_expression(row, quoted(row["column_name"])) for row in rows)
        return SourceTable(
            name,
            tuple(described_column(row) for row in rows),
            f"SELECT {selected} FROM {quoted(self.database)}.{quoted(name)}",
            tuple(select_converter(row) for row in rows),
        )


def quoted(name: str) -> str:
    """The name as an SQL identifier."""
    return "`" + name.replace("`", "``") + "`"


def binlog_end(connection: pymysql.connections.Connection[Any]) -> BinlogPosition:
    """The end of the binlog now: everything committed before is in front of it."""
    with connection.cursor() as cursor:
        try:
            cursor.execute("SHOW MASTER STATUS")
        except pymysql.ProgrammingError as error:
            if error.args[0] != _ER_PARSE_ERROR:
                raise
            cursor.execute("SHOW BINARY LOG STATUS")  # MySQL 8.4
        row = cursor.fetchone()
    if row is None:
        raise SetupError("the server has no binlog", "server-setting", "start it with --log-bin")
    return BinlogPosition(row[0], row[1])


@contextmanager
def consistent_snapshot(source: Source, *, lock: bool = False) -> Iterator[tuple[pymysql.connections.Connection[Any], BinlogPosition]]:
    """A connection that sees the database as of one binlog position, and that position.

    MariaDB tells the snapshot's position itself. Other servers (or `lock=True`) are asked under a read lock on all
    tables, held for as long as the two statements take. Tables of engines without transactions are read as they are
    later; the changes since the position are then captured again, which converges for tables with a key.
    """
    connection = source.connect(cursorclass=_RowCursor)
    try:
        _execute(connection, "SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        told = None
        if not lock:
            _execute(connection, "START TRANSACTION WITH CONSISTENT SNAPSHOT")
            told = _snapshot_position(connection)
        yield connection, told or _locked_snapshot(connection)
    finally:
        if connection.open:
            connection.close()


def _snapshot_position(connection: pymysql.connections.Connection[Any]) -> BinlogPosition | None:
    status = dict(_execute(connection, "SHOW STATUS LIKE 'binlog\\_snapshot\\_%'"))
    status = {name.lower(): value for name, value in status.items()}
    file = status.get("binlog_snapshot_file")
    return BinlogPosition(file, int(status["binlog_snapshot_position"])) if file else None


def _locked_snapshot(connection: pymysql.connections.Connection[Any]) -> BinlogPosition:
    _execute(connection, "FLUSH TABLES WITH READ LOCK")
    try:
        _execute(connection, "START TRANSACTION WITH CONSISTENT SNAPSHOT")
        return binlog_end(connection)
    finally:
        if connection.open:  # the server takes back the locks of one that ended
            _execute(connection, "UNLOCK TABLES")


def _execute(connection: pymysql.connections.Connection[Any], statement: str) -> Sequence[Any]:
    with connection.cursor() as cursor:
        cursor.execute(statement)
        return list(cursor.fetchall())


def _without_password(url: str) -> str:
    """The URL without anything that may be a password, wherever somebody put it: behind a colon, or as a parameter."""
    head, at, tail = url.rpartition("@") if "@" in url else (url, "", "")
    scheme, slashes, rest = head.partition("://")
    user, colon, _ = (rest if slashes else head).partition(":")
    shown = f"{scheme + slashes if slashes else ''}{user}{':***' if colon else ''}{at}{tail}"
    return re.sub(r"([?&][^=&]*)=[^&]*", r"\1=***", shown)
