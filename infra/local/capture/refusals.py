"""The database server's errors as the capture's own: which right is missing, or that the server can't be reached, and what to do."""

from __future__ import annotations

import pymysql

from infra.local.capture.errors import SetupError

_LOGIN = frozenset({1045, 1130, 1698})  # user, password, or the machine that it comes from
_RIGHT = frozenset({1044, 1142, 1143, 1227})  # on a database, a table, a column, the server
_UNKNOWN_DATABASE = 1049
# 0 is PyMySQL's own for a connection that is closed. 1040: too many; 1053: shutdown; 1927: killed; 2000 and above: the client's view.
_UNREACHABLE = frozenset({0, 1040, 1053, 1927, 2002, 2003, 2005, 2006, 2013})

# An error about a right on the whole server names each that would do, larger ones (SUPER) among them; these a capture needs.
_LACKS_SERVER_RIGHT = 1227
_SERVER_RIGHTS = ("REPLICATION SLAVE", "REPLICATION CLIENT", "BINLOG MONITOR", "RELOAD")


def refusal(error: pymysql.MySQLError, place: str, tables: str) -> SetupError:
    """What the server's or the driver's error means. place: database and server, for the message. tables: what to grant SELECT on."""
    number, text = _parts(error)
    if number in _LOGIN:
        todo = "check user and password (in --mysql, or MYSQL_PWD), and that the user may come from this machine"
        return SetupError(f"{place}: the server refuses the user: {text}", "database-denied", todo)
    if number in _RIGHT:
        needed = next((right for right in _SERVER_RIGHTS if right in text), "one of these") if number == _LACKS_SERVER_RIGHT else ""
        grant = f"{needed} ON *.*" if needed else f"SELECT ON {tables}"
        todo = f"as an administrator of the server: GRANT {grant} TO the user (docs/capture.md lists the rights that a capture needs)"
        return SetupError(f"{place}: the user lacks a right: {text}", "database-denied", todo)
    if number == _UNKNOWN_DATABASE:
        return SetupError(f"{place}: {text}", "unknown-database", "name one that the server has in --mysql")
    if number in _UNREACHABLE:
        todo = "check that the server runs and that host and port in --mysql lead to it; then run again"
        return SetupError(f"{place}: no connection: {text}", "database-unreachable", todo)
    todo = "put right what the server names, then run again; if it names nothing, report it"
    return SetupError(f"{place}: the server reports an error: {text}", "database-error", todo)


def _parts(error: pymysql.MySQLError) -> tuple[int | None, str]:
    """The number, if the error has one, and the text with the number behind it."""
    number, texts = (error.args[0], error.args[1:]) if error.args and isinstance(error.args[0], int) else (None, error.args)
    text = " ".join(map(str, texts)) or ("it is closed" if number == 0 else type(error).__name__)
    return number, text if number is None else f"{text} ({number})"
