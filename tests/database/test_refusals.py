"""What a capture refuses, rather than write what isn't so."""

from __future__ import annotations

import json
from typing import Any

import pytest

from infra.local.capture import CaptureError, SetupError
from tests.database.files import RawFiles
from tests.database.server import MariaDb
from tests.database.steps import Capture, run, until


def test_a_position_that_the_server_has_purged_is_refused(connection: Any, table: str, capture: Capture) -> None:
    """Changes are lost to the capture then: the way out is a new full load."""
    capture(full_load=True)
    run(connection, "INSERT INTO t VALUES (3, 'c')", "FLUSH BINARY LOGS")
    until(lambda: _only_the_last_binlog_is_left(connection))

    with pytest.raises(CaptureError, match=r"isn't on the server any more.*--full-load"):
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
        with pytest.raises(SetupError, match=f"{name}: expected '{good}', found '{value}': SET GLOBAL"):
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


def test_a_change_logged_as_a_statement_is_refused(mariadb: MariaDb, raw: RawFiles, table: str, capture: Capture) -> None:
    """A session may have changed its binlog format: the rows are unknown, and nothing of the round is written."""
    capture(full_load=True)
    with mariadb.connect(raw.database, autocommit=True) as other:
        run(other, "SET SESSION binlog_format = STATEMENT", "UPDATE t SET v = 'z'")

    with pytest.raises(CaptureError, match=r"as a statement.*UPDATE t"):
        capture()


def test_a_row_image_without_all_columns_is_refused(mariadb: MariaDb, raw: RawFiles, table: str, capture: Capture) -> None:
    """A session may have asked for smaller row images: a missing column isn't a null."""
    capture(full_load=True)
    with mariadb.connect(raw.database, autocommit=True) as other:
        run(other, "SET SESSION binlog_row_image = MINIMAL", "UPDATE t SET v = 'z'")

    with pytest.raises(CaptureError, match=r"column \w+ is missing"):
        capture()


@pytest.mark.parametrize("statement", ["TRUNCATE TABLE t", "DROP TABLE t", "RENAME TABLE t TO t2", "/* why */ truncate t"])
def test_what_cdc_files_cannot_say_is_a_warning(connection: Any, table: str, capture: Capture, statement: str) -> None:
    """The rows are gone without a D: the statement is told, with the way out."""
    capture(full_load=True)
    run(connection, statement)

    summary = capture()

    assert len(summary.warnings) == 1
    assert "--full-load" in summary.warnings[0]


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


def _only_the_last_binlog_is_left(connection: Any) -> bool:
    """After another try to purge the others: the server keeps those that a reader has just left for a moment."""
    with connection.cursor() as cursor:
        cursor.execute("SHOW BINARY LOGS")
        last = cursor.fetchall()[-1][0]
        cursor.execute(f"PURGE BINARY LOGS TO '{last}'")
        cursor.execute("SHOW BINARY LOGS")
        return len(cursor.fetchall()) == 1
