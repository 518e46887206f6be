"""What a capture refuses, rather than write what isn't so."""

from __future__ import annotations

import gc
import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from infra.local.capture import CaptureError, CaptureOptions, SetupError
from infra.local.capture import capture as real_capture
from tests.database.files import RawFiles
from tests.database.server import MariaDb
from tests.database.steps import Capture, run, until

USER = "reader"
RIGHTS = ("SELECT", "BINLOG MONITOR", "REPLICATION SLAVE")
"""All that a capture of a MariaDB needs, as docs/capture.md says."""
PARTITIONED = "ALTER TABLE t PARTITION BY RANGE (id) (PARTITION p0 VALUES LESS THAN (2), PARTITION p1 VALUES LESS THAN (9))"


def test_a_position_that_the_server_has_purged_is_refused(connection: Any, table: str, capture: Capture) -> None:
    """Changes are lost to the capture then: the way out is a new full load."""
    capture(full_load=True)
    run(connection, "INSERT INTO t VALUES (3, 'c')", "FLUSH BINARY LOGS")
    until(lambda: _only_the_last_binlog_is_left(connection))

    with pytest.raises(CaptureError, match=r"(?s)isn't on the server any more.*what to do: run with --full-load"):
        capture()
    capture(full_load=True)


def test_a_position_behind_the_binlogs_end_is_refused(raw: RawFiles, table: str, capture: Capture) -> None:
    """Another server, or a binlog that was reset: its positions mean nothing."""
    capture(full_load=True)
    key = f"dms/_capture/{raw.database}.json"
    state = json.loads(raw.body(key)) | {"log_file": "binlog.999999"}
    raw.client.put_object(Bucket=raw.bucket, Key=key, Body=json.dumps(state).encode())

    with pytest.raises(CaptureError, match="another server"):
        capture()


@pytest.mark.parametrize(
    ("name", "value", "good"),
    [
        ("binlog_format", "MIXED", "ROW"),
        ("binlog_row_image", "MINIMAL", "FULL"),
        ("binlog_row_metadata", "MINIMAL", "FULL"),
        ("log_bin_compress", "ON", "OFF"),
    ],
)
def test_server_settings_that_hide_rows_are_refused(
    connection: Any, raw: RawFiles, table: str, capture: Capture, name: str, value: str, good: str
) -> None:
    """The variable, what it should be, what it is, and the statement that sets it right."""
    run(connection, f"SET GLOBAL {name} = {value}")
    try:
        with pytest.raises(SetupError, match=f"{name}: expected '{good}', found '{value}'\n  what to do: SET GLOBAL"):
            capture(full_load=True)
    finally:
        run(connection, f"SET GLOBAL {name} = {good}")

    assert raw.listed() == []


def test_rows_logged_before_the_names_of_columns_were_are_refused(connection: Any, table: str, capture: Capture) -> None:
    """Without names in the binlog a column added since would be taken for another one."""
    capture(full_load=True)
    run(connection, "SET GLOBAL binlog_row_metadata = MINIMAL")
    try:
        run(connection, "INSERT INTO t VALUES (3, 'c')")
    finally:
        run(connection, "SET GLOBAL binlog_row_metadata = FULL")

    with pytest.raises(CaptureError, match="no column names"):
        capture()


@pytest.mark.parametrize("is_named", [False, True])
def test_a_change_logged_as_a_statement_is_refused(mariadb: MariaDb, raw: RawFiles, table: str, capture: Capture, is_named: bool) -> None:
    """A session may have changed its binlog format: the rows are unknown, and nothing of the round is written. Its default database may
    be another one, or none."""
    capture(full_load=True)
    named = f"{raw.database}.t" if is_named else "t"
    with mariadb.connect(None if is_named else raw.database, autocommit=True) as other:
        run(other, "SET SESSION binlog_format = STATEMENT", f"UPDATE {named} SET v = 'z'")

    with pytest.raises(CaptureError, match=rf"as a statement.*UPDATE {named}"):
        capture()


@pytest.mark.parametrize(
    ("statements", "said"),
    [
        (("SELECT 7, 'x' INTO OUTFILE '{file}'", "LOAD DATA INFILE '{file}' INTO TABLE t"), "LOAD DATA"),
        (("SELECT f()",), "SELECT .*f"),
    ],
    ids=["a file", "a function"],
)
def test_rows_that_came_otherwise_by_a_statement_are_refused(
    mariadb: MariaDb, raw: RawFiles, table: str, capture: Capture, statements: tuple[str, ...], said: str
) -> None:
    """Rows of a file are an event of their own in the binlog; a function that changes rows is logged as its SELECT."""
    capture(full_load=True)
    with mariadb.connect(raw.database, autocommit=True) as other:
        function = "CREATE FUNCTION f() RETURNS int DETERMINISTIC MODIFIES SQL DATA BEGIN INSERT INTO t VALUES (8, 'y'); RETURN 1; END"
        file = f"../{raw.database}.rows"  # beside the database's folder, which must be empty to be dropped
        run(other, function, "SET SESSION binlog_format = STATEMENT", *(each.format(file=file) for each in statements))

    with pytest.raises(CaptureError, match=rf"as a statement.*{said}") as caught:
        capture()

    assert caught.value.code == "binlog-statement"


def test_a_row_image_without_all_columns_is_refused(mariadb: MariaDb, raw: RawFiles, table: str, capture: Capture) -> None:
    """A session may have asked for smaller row images: a missing column isn't a null."""
    capture(full_load=True)
    with mariadb.connect(raw.database, autocommit=True) as other:
        run(other, "SET SESSION binlog_row_image = MINIMAL", "UPDATE t SET v = 'z'")

    with pytest.raises(CaptureError, match=r"column \w+ is missing"):
        capture()


@pytest.mark.parametrize(
    "statements",
    [
        ("TRUNCATE TABLE t",),
        ("/* why */ truncate t",),
        ("DROP TABLE t",),
        ("RENAME TABLE t TO t2",),
        ("RENAME TABLES t TO t2",),
        ("ALTER TABLE t RENAME TO t2",),
        ("ALTER TABLE t ADD COLUMN w int, RENAME t2",),
        ("CREATE OR REPLACE TABLE t (id int PRIMARY KEY, v varchar(20))",),
        (PARTITIONED, "ALTER TABLE t TRUNCATE PARTITION p0"),
        (PARTITIONED, "ALTER TABLE t DROP PARTITION p1"),
        ("CREATE TABLE u LIKE t", PARTITIONED, "ALTER TABLE t EXCHANGE PARTITION p1 WITH TABLE u"),
    ],
    ids=lambda statements: statements[-1],
)
def test_what_cdc_files_cannot_say_is_a_warning(connection: Any, table: str, capture: Capture, statements: tuple[str, ...]) -> None:
    """The rows are gone without a D: the statement is told, with the way out."""
    capture(full_load=True)
    run(connection, *statements)

    summary = capture()

    assert len(summary.warnings) == 1
    assert "--full-load" in summary.warnings[0]


def test_a_session_without_the_database_is_warned_of_too(mariadb: MariaDb, raw: RawFiles, table: str, capture: Capture) -> None:
    """It names the database in its statement."""
    capture(full_load=True)
    with mariadb.connect(autocommit=True) as other:
        run(other, f"TRUNCATE TABLE {raw.database}.t")

    (warning,) = capture().warnings

    assert f"TRUNCATE TABLE {raw.database}.t" in warning


def test_what_loses_no_row_of_ours_is_no_warning(connection: Any, table: str, capture: Capture) -> None:
    """Another name for a column or an index, temporary tables, and what a session does to another database's tables."""
    run(connection, "CREATE DATABASE beside", "CREATE TABLE beside.t (id int)", "CREATE INDEX i ON t (v)")
    capture(full_load=True)
    run(connection, "ALTER TABLE t RENAME COLUMN v TO w", "ALTER TABLE t RENAME INDEX i TO j")
    run(connection, "CREATE TEMPORARY TABLE passing (id int)", "DROP TABLE passing")
    run(connection, "TRUNCATE TABLE beside.t", "RENAME TABLE beside.t TO beside.u", "DROP TABLE beside.u", "DROP DATABASE beside")

    assert capture().warnings == []


def test_xa_transactions_are_refused(connection: Any, table: str, capture: Capture) -> None:
    """Their rows stand in the binlog before anybody knows whether they will be committed."""
    capture(full_load=True)
    run(connection, "XA START 'x'", "INSERT INTO t VALUES (3, 'c')", "XA END 'x'", "XA PREPARE 'x'", "XA ROLLBACK 'x'")

    with pytest.raises(CaptureError, match="XA"):
        capture()


def test_a_state_of_another_format_is_refused(raw: RawFiles, table: str, capture: Capture) -> None:
    """A later version's state is not guessed at."""
    capture(full_load=True)
    raw.client.put_object(Bucket=raw.bucket, Key=f"dms/_capture/{raw.database}.json", Body=b'{"format": 2}')

    with pytest.raises(CaptureError, match="expected format 1, found 2"):
        capture()


@pytest.mark.parametrize(
    ("given", "missing", "full_load"),
    [
        ((), "SELECT ON `shop\\d+`\\.\\*", True),
        (("INSERT",), "SELECT ON `shop\\d+`\\.\\*", True),
        (("SELECT",), "BINLOG MONITOR ON \\*\\.\\*", False),
        (("SELECT", "BINLOG MONITOR"), "REPLICATION SLAVE ON \\*\\.\\*", False),
    ],
)
def test_a_right_that_the_user_lacks_is_named(
    mariadb: MariaDb, connection: Any, raw: RawFiles, table: str, capture: Capture, given: tuple[str, ...], missing: str, full_load: bool
) -> None:
    """Exit code 3 with what to grant; once all are granted, the same call succeeds."""
    if not full_load:
        capture(full_load=True)
        run(connection, "INSERT INTO t VALUES (3, 'c')")
    url = mariadb.url(raw.database).replace("root@", f"{USER}@")
    with _user(connection):
        for right in given:
            _grant(connection, right, raw.database)
        with pytest.raises(SetupError, match=f"what to do: .*GRANT {missing} TO") as caught:
            real_capture(url, raw.url, s3_client=raw.client, full_load=full_load)
        for right in RIGHTS:
            _grant(connection, right, raw.database)
        real_capture(url, raw.url, s3_client=raw.client, full_load=full_load)

    assert (caught.value.code, caught.value.exit_code) == ("database-denied", 3)
    assert raw.database in caught.value.message


def test_a_lock_that_the_user_may_not_take_is_a_missing_right(
    mariadb: MariaDb, connection: Any, raw: RawFiles, table: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """RELOAD, where the server does not tell the snapshot's position: on MySQL."""
    monkeypatch.setattr("infra.local.capture.source._snapshot_position", lambda connection: None)
    with _user(connection):
        for right in RIGHTS:
            _grant(connection, right, raw.database)
        with pytest.raises(SetupError, match=r"what to do: .*GRANT RELOAD ON \*\.\* TO"):
            real_capture(mariadb.url(raw.database).replace("root@", f"{USER}@"), raw.url, s3_client=raw.client, full_load=True)


def test_a_connection_that_is_lost_in_a_full_load_is_said_to_be(mariadb: MariaDb, connection: Any, raw: RawFiles, capture: Capture) -> None:
    """In the middle of a table's rows; nothing is reported from the driver's own end. What goes on from there is refused: a part of the
    rows would pass for all."""
    run(
        connection,
        "CREATE TABLE t (id int PRIMARY KEY, v varchar(2000))",
        "INSERT INTO t SELECT seq, REPEAT('x', 2000) FROM seq_1_to_20000",
    )
    client = _KillsAfterAFile(raw.client, connection)

    with pytest.raises(SetupError, match=r"Lost connection.*\n  what to do: check that the server runs") as caught:
        real_capture(mariadb.url(raw.database), raw.url, s3_client=client, full_load=True, options=CaptureOptions(load_file_rows=10))
    gc.collect()

    assert (caught.value.code, caught.value.exit_code) == ("database-unreachable", 3)
    assert "LOAD00000001.parquet" in raw.names("t")
    with pytest.raises(CaptureError, match=r"did not come to its end.*\n  what to do: run it again with --full-load") as refused:
        capture()
    assert (refused.value.code, refused.value.exit_code) == ("load-broke-off", 1)


def test_a_second_full_load_that_breaks_off_is_no_less_refused(raw: RawFiles, table: str, capture: Capture) -> None:
    """The files of the first are gone. A full load that comes to its end puts it right, and later names stay greater."""
    capture(full_load=True)
    old = json.loads(raw.body(f"dms/_capture/{raw.database}.json"))
    raw.client.put_object(Bucket=raw.bucket, Key=f"dms/_capture/{raw.database}.json", Body=json.dumps({**old, "loading": True}).encode())

    with pytest.raises(CaptureError, match="did not come to its end"):
        capture()
    capture(full_load=True)

    assert capture().warnings == []
    assert json.loads(raw.body(f"dms/_capture/{raw.database}.json")).keys() == old.keys()


def test_a_table_with_versions_of_its_rows_is_refused_by_name(connection: Any, raw: RawFiles, table: str, capture: Capture) -> None:
    """Unless it is left out: it would be missing in the full load without a word."""
    run(connection, "CREATE TABLE kept (id int PRIMARY KEY) WITH SYSTEM VERSIONING")

    for full_load in (True, False):
        with pytest.raises(SetupError, match=r"WITH SYSTEM VERSIONING: kept\n  what to do: .*--tables") as caught:
            capture(full_load=full_load)
        assert (caught.value.code, raw.listed()) == ("versioned-table", [])
    options = CaptureOptions(tables=("t",))
    assert list(capture(full_load=True, options=options).tables) == ["t"]
    assert capture(options=options).warnings == []


class _KillsAfterAFile:
    """An S3 client that has the server end all connections to the database but the test's own, once it has put a load file."""

    def __init__(self, client: Any, connection: Any) -> None:
        self._client, self._connection = client, connection

    def __getattr__(self, name: str) -> Any:
        return getattr(self._client, name)

    def put_object(self, **given: Any) -> Any:
        answer = self._client.put_object(**given)
        if "LOAD" not in given["Key"]:
            return answer
        with self._connection.cursor() as cursor:
            cursor.execute("SELECT id FROM information_schema.processlist WHERE db = DATABASE() AND id <> CONNECTION_ID()")
            for (number,) in cursor.fetchall():
                cursor.execute(f"KILL {number}")
        return answer


@contextmanager
def _user(connection: Any) -> Iterator[None]:
    """A user without a password or any right."""
    run(connection, f"CREATE USER {USER}@'127.0.0.1'")
    try:
        yield
    finally:
        run(connection, f"DROP USER {USER}@'127.0.0.1'")


def _grant(connection: Any, right: str, database: str) -> None:
    where = f"`{database}`" if right in ("SELECT", "INSERT") else "*"
    run(connection, f"GRANT {right} ON {where}.* TO {USER}@'127.0.0.1'")


def _only_the_last_binlog_is_left(connection: Any) -> bool:
    """After another try to purge the others: the server keeps those that a reader has just left for a moment."""
    with connection.cursor() as cursor:
        cursor.execute("SHOW BINARY LOGS")
        last = cursor.fetchall()[-1][0]
        cursor.execute(f"PURGE BINARY LOGS TO '{last}'")
        cursor.execute("SHOW BINARY LOGS")
        return len(cursor.fetchall()) == 1
