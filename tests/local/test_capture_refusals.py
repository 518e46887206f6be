"""What `dmslake capture` says of a database server that refuses or can't be reached, without one. tests/database asks a real one."""

from __future__ import annotations

import ast
import re
import socket
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pymysql
import pytest
from pymysql.err import InterfaceError, InternalError, OperationalError, ProgrammingError

from controller.cli.entry import run
from infra.local.capture.raw_folder import RawFolder
from infra.local.capture.refusals import refusal

ROOT = Path(__file__).parents[2]
SETTINGS = {"log_bin": "ON", "binlog_format": "ROW", "binlog_row_image": "FULL", "binlog_row_metadata": "FULL"}
LACKS = "Access denied; you need (at least one of) the {} privilege(s) for this operation"


class Server:
    """A connection to a server that has no tables, and the only cursor on it. raises: the error of statements that begin so; answers: the
    rows of others."""

    open, connection = True, None

    def __init__(self, raises: Mapping[str, pymysql.MySQLError], answers: Mapping[str, list[Any]] | None = None) -> None:
        self._raises, self._rows = raises, list[Any]()
        self._answers = {"SHOW GLOBAL VARIABLES": list(SETTINGS.items()), **(answers or {})}

    def __enter__(self) -> Server:
        return self

    def __exit__(self, *_: object) -> None:
        """It stays as it is."""

    def cursor(self, kind: Any = None) -> Server:
        return self

    def close(self) -> None:
        """The next one is the same."""

    def execute(self, statement: str, given: Any = None) -> None:
        for begin, error in self._raises.items():
            if statement.startswith(begin):
                raise error
        self._rows = next((rows for begin, rows in self._answers.items() if statement.startswith(begin)), [])

    def fetchall(self) -> list[Any]:
        return self._rows


@pytest.mark.parametrize(
    ("options", "raises", "says"),
    [
        ([], {"SHOW MASTER": OperationalError(1227, LACKS.format("SUPER, BINLOG MONITOR"))}, "GRANT BINLOG MONITOR ON *.* TO"),
        (
            [],
            {"SHOW MASTER": ProgrammingError(1064, "syntax"), "SHOW BINARY": OperationalError(1227, LACKS.format("REPLICATION CLIENT"))},
            "GRANT REPLICATION CLIENT ON *.* TO",
        ),
        (["--full-load"], {"FLUSH": OperationalError(1227, LACKS.format("RELOAD or FLUSH_TABLES"))}, "GRANT RELOAD ON *.* TO"),
        (["--full-load"], {"SET SESSION": InterfaceError(0, "")}, "no connection: it is closed (0)"),
        ([], {"SHOW GLOBAL": OperationalError(2013, "Lost connection to MySQL server during query")}, "check that the server runs"),
        ([], {"SHOW MASTER": OperationalError(2006, "MySQL server has gone away")}, "check that the server runs"),
        ([], {"SHOW MASTER": InternalError("Packet sequence number wrong - got 1 expected 2")}, "Packet sequence number wrong"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, dict) else None,
)
def test_it_is_a_matter_of_set_up_and_no_defect(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    options: list[str],
    raises: dict[str, pymysql.MySQLError],
    says: str,
) -> None:
    """Exit code 3 and, on stderr alone, what happened and what to do, as of every command."""
    monkeypatch.setattr(pymysql, "connect", lambda **_: Server(raises))
    monkeypatch.setattr(RawFolder, "load_state", lambda _: None)  # no S3 either

    code = run(["capture", "--mysql", "mysql://reader@db.example/shop", "--raw", "s3://raw/dms/", *options])

    out, err = capsys.readouterr()
    assert (code, out, "defect" in err) == (3, "", False)
    first, second = err.splitlines()
    assert first.startswith("dmslake: database shop on db.example:3306: ")
    assert second.startswith("  what to do: ")
    assert says in err


@pytest.mark.parametrize("options", [[], ["--full-load"]])
def test_another_spelling_of_the_database_is_refused(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], options: list[str]
) -> None:
    """Where names have no case it connects, and its rows are read; of its changes, which the binlog has under one spelling, none was."""
    told = [("Binlog_snapshot_file", "binlog.000001"), ("Binlog_snapshot_position", "4")]
    answers = {"SELECT schema_name": [("shop",)], "SHOW STATUS": told}
    monkeypatch.setattr(pymysql, "connect", lambda **_: Server({}, answers))
    monkeypatch.setattr(RawFolder, "load_state", lambda _: None)

    code = run(["capture", "--mysql", "mysql://reader@db.example/Shop", "--raw", "s3://raw/dms/", *options])

    out, err = capsys.readouterr()
    assert (code, out) == (2, "")
    assert "expected the database as the server spells it, 'shop', found 'Shop'" in err
    assert "what to do: write the database as 'shop'" in err


def test_a_server_that_does_not_listen_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    """Its address stands in the error, the password does not."""
    with socket.socket() as taken:  # bound, so that nobody else takes the port, and not listening
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
        code = run(["capture", "--mysql", f"mysql://root:tr0ub4dor@127.0.0.1:{port}/shop", "--raw", "s3://raw/dms/"])

    out, err = capsys.readouterr()
    assert (code, out, "tr0ub4dor" in err) == (3, "", False)
    assert err.startswith(f"dmslake: database shop on 127.0.0.1:{port}: no connection: ")
    assert "\n  what to do: check that the server runs" in err


def test_every_code_of_a_capture_is_on_its_page() -> None:
    """The constants that stand second where the capture makes an error, and those in the table of docs/capture.md."""
    made = set()
    for source in (ROOT / "infra" / "local" / "capture").glob("*.py"):
        for node in ast.walk(ast.parse(source.read_text("utf-8"))):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") in ("CaptureError", "SetupError", "UsageError"):
                _, code, _ = node.args  # each has a way out, too
                made.add(ast.literal_eval(code))
    rows = [line for line in (ROOT / "docs" / "capture.md").read_text("utf-8").split("## Errors")[1].splitlines() if line.startswith("| `")]

    assert made == {code for line in rows for code in re.findall(r"`([a-z-]+)`", line.split("|")[1])}


def test_a_wrong_call_is_said_on_stderr_too(capsys: pytest.CaptureFixture[str]) -> None:
    code = run(["capture", "--mysql", "mysql://host/shop", "--raw", "s3://raw/dms/"])

    out, err = capsys.readouterr()
    assert (code, out) == (2, "")
    assert err.startswith("dmslake: --mysql: expected mysql://user")


@pytest.mark.parametrize(
    ("number", "text", "code", "todo"),
    [
        (1044, "Access denied for user 'r'@'%' to database 'shop'", "database-denied", "GRANT SELECT ON `shop`.* TO"),
        (1045, "Access denied for user 'r'@'h' (using password: YES)", "database-denied", "check user and password"),
        (1130, "Host 'h' is not allowed to connect to this MariaDB server", "database-denied", "this machine"),
        (1142, "SELECT command denied to user 'r'@'h' for table `shop`.`t`", "database-denied", "GRANT SELECT ON `shop`.* TO"),
        (1142, "SELECT command denied to user 'r'@'h' for table `shop`.`RELOAD`", "database-denied", "GRANT SELECT ON `shop`.* TO"),
        (1227, LACKS.format("REPLICATION SLAVE"), "database-denied", "GRANT REPLICATION SLAVE ON *.* TO"),
        (1227, LACKS.format("SUPER"), "database-denied", "GRANT one of these ON *.* TO"),
        (1049, "Unknown database 'shop'", "unknown-database", "--mysql"),
        (1040, "Too many connections", "database-unreachable", "run again"),
        (2003, "Can't connect to MySQL server on 'h'", "database-unreachable", "host and port"),
        (1146, "Table 'shop.t' doesn't exist", "database-error", "what the server names"),
    ],
)
def test_each_error_has_a_code_and_a_way_out(number: int, text: str, code: str, todo: str) -> None:
    """The server's own words and its number stand in the message."""
    said = refusal(OperationalError(number, text), "database shop on h:3306", "`shop`.*")

    assert (said.code, said.exit_code, todo in said.todo) == (code, 3, True)
    assert f"{text} ({number})" in said.message
