"""The capture on a real database: what it writes, where it goes on, and what it refuses."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pymysql.cursors import DictCursor

from infra.local.capture import Capture as CaptureSession
from infra.local.capture import CaptureError, CaptureOptions, CaptureSummary, SetupError, TableSummary, UsageError
from infra.local.capture import capture as real_capture
from infra.local.capture.raw_folder import RawFolder
from infra.local.capture.source import Source, consistent_snapshot
from tests.database.files import RawFiles
from tests.database.server import MariaDb

WAIT_SECONDS = 30.0

Capture = Callable[..., CaptureSummary]


@pytest.fixture
def capture(mariadb: MariaDb, raw: RawFiles) -> Capture:
    """A capture of the test's database into its raw bucket."""

    def run(**arguments: Any) -> CaptureSummary:
        return real_capture(mariadb.url(raw.database), raw.url, s3_client=raw.client, **arguments)

    return run


@pytest.fixture
def table(connection: Any) -> str:
    """A table `t` with the rows 1 and 2."""
    _run(connection, "CREATE TABLE t (id int PRIMARY KEY, v varchar(20))", "INSERT INTO t VALUES (1, 'a'), (2, 'b')")
    return "t"


def _run(connection: Any, *statements: str) -> None:
    with connection.cursor() as cursor:
        for statement in statements:
            cursor.execute(statement)


def _ops(raw: RawFiles, table: str = "t") -> list[tuple[Any, ...]]:
    return [(row["Op"], row["id"], row["v"]) for row in raw.rows(table)]


# -- full load


def test_a_full_load_writes_each_table_with_rows_and_no_other(connection: Any, raw: RawFiles, table: str, capture: Capture) -> None:
    """An empty table, and a view, have no file; the state stands beside the schema's folder."""
    _run(connection, "CREATE TABLE empty (id int)", f"CREATE VIEW v AS SELECT * FROM {table}")

    summary = capture(full_load=True)

    load, state = f"dms/{raw.database}/t/LOAD00000001.parquet", f"dms/_capture/{raw.database}.json"
    assert (raw.listed(), summary.keys) == ([state, load], [load])
    assert _ops(raw) == [("I", 1, "a"), ("I", 2, "b")]
    assert summary.tables == {"t": TableSummary(load_files=1, load_rows=2)}


def test_a_large_table_comes_in_several_load_files(connection: Any, raw: RawFiles, capture: Capture) -> None:
    """The eleventh file is 0000000B; all rows are there once."""
    _run(connection, "CREATE TABLE t (id int PRIMARY KEY, v int)", "INSERT INTO t SELECT seq, seq FROM seq_1_to_31")

    capture(full_load=True, options=CaptureOptions(load_file_rows=3))

    assert raw.names("t")[-1] == "LOAD0000000B.parquet"
    assert [row["id"] for row in raw.rows("t")] == list(range(1, 32))


def test_a_full_load_can_be_without_op(raw: RawFiles, table: str, capture: Capture) -> None:
    """As DMS does when IncludeOpForFullLoad is off."""
    capture(full_load=True, options=CaptureOptions(op_in_full_load=False))

    assert raw.rows(table) == [{"id": 1, "v": "a"}, {"id": 2, "v": "b"}]


def test_a_second_full_load_replaces_the_files_of_the_first(connection: Any, raw: RawFiles, table: str, capture: Capture) -> None:
    """Older load and CDC files go, as with DMS; what isn't DMS's stays; later CDC names are greater than all before."""
    capture(full_load=True, options=CaptureOptions(load_file_rows=1))
    _run(connection, "DELETE FROM t WHERE id = 1")
    old = capture().keys
    foreign = f"dms/{raw.database}/t/notes.txt"
    raw.client.put_object(Bucket=raw.bucket, Key=foreign, Body=b"mine")

    capture(full_load=True)
    _run(connection, "INSERT INTO t VALUES (3, 'c')")
    new = capture().keys

    assert raw.names(table) == ["LOAD00000001.parquet", new[0].rpartition("/")[2], "notes.txt"]
    assert new > old


@pytest.mark.parametrize("lock", [False, True])
def test_snapshot_and_position_are_of_one_moment(mariadb: MariaDb, connection: Any, database: str, table: str, lock: bool) -> None:
    """What is committed after the snapshot isn't seen in it, and lies behind its position; the rest before."""
    source = Source.from_url(mariadb.url(database))

    with consistent_snapshot(source, lock=lock) as (snapshot, position):
        _run(connection, "INSERT INTO t VALUES (3, 'late')")
        with snapshot.cursor() as cursor:
            cursor.execute("SELECT id FROM t ORDER BY id")
            seen = [row[0] for row in cursor.fetchall()]
        with connection.cursor(DictCursor) as cursor:
            cursor.execute(f"SHOW BINLOG EVENTS IN '{position.file}' FROM {position.offset}")
            behind = [event["Event_type"] for event in cursor.fetchall()]

    assert seen == [1, 2]
    assert behind.count("Write_rows_v1") == 1


def test_the_full_load_and_the_rounds_after_it_neither_repeat_nor_leave_out(
    mariadb: MariaDb, connection: Any, raw: RawFiles, table: str, capture: Capture
) -> None:
    """A transaction that is open during the full load, and committed after it, comes by the binlog, once."""
    with mariadb.connect(raw.database) as other:
        _run(other, "INSERT INTO t VALUES (3, 'open')")
        capture(full_load=True)
        other.commit()

    capture()

    assert _ops(raw) == [("I", 1, "a"), ("I", 2, "b"), ("I", 3, "open")]


def test_a_full_load_beside_a_writer_is_exact(mariadb: MariaDb, connection: Any, raw: RawFiles, table: str, capture: Capture) -> None:
    """Rows that are inserted all the while come once each, from the load or from the binlog, in every table."""
    _run(connection, "CREATE TABLE u LIKE t")
    stop, written = threading.Event(), []

    def write() -> None:
        with mariadb.connect(raw.database, autocommit=True) as other:
            while not stop.is_set():
                number = 10 + len(written)
                _run(other, f"INSERT INTO t VALUES ({number}, 'x')", f"INSERT INTO u VALUES ({number}, 'x')")
                written.append(number)

    thread = threading.Thread(target=write)
    thread.start()
    try:
        _until(lambda: len(written) > 20)
        capture(full_load=True)
        loaded = len(written)
        _until(lambda: len(written) > loaded + 20)
    finally:
        stop.set()
        thread.join()
    capture()

    assert [row[1] for row in _ops(raw, "u")] == written
    assert [row[1] for row in _ops(raw, "t")] == [1, 2, *written]


# -- CDC


def test_changes_come_with_the_row_after_and_deletes_with_the_row_before(
    connection: Any, raw: RawFiles, table: str, capture: Capture
) -> None:
    """I, U and D in the order of the binlog, in one file for the round."""
    capture(full_load=True)
    _run(connection, "INSERT INTO t VALUES (3, 'c')", "UPDATE t SET v = 'x' WHERE id < 3", "DELETE FROM t WHERE id = 2")

    summary = capture()

    assert _ops(raw)[2:] == [("I", 3, "c"), ("U", 1, "x"), ("U", 2, "x"), ("D", 2, "x")]
    assert summary.tables == {"t": TableSummary(cdc_files=1, inserts=1, updates=2, deletes=1)}


def test_a_round_without_changes_writes_no_file_and_moves_the_position(
    connection: Any, raw: RawFiles, mariadb: MariaDb, table: str, capture: Capture
) -> None:
    """Other databases' changes don't make files, but needn't be read again."""
    before = capture(full_load=True).position
    _run(connection, "CREATE DATABASE elsewhere", "CREATE TABLE elsewhere.t (id int)", "INSERT INTO elsewhere.t VALUES (1)")

    summary = capture()
    _run(connection, "DROP DATABASE elsewhere")

    assert summary.keys == []
    assert before is not None
    assert summary.position is not None
    assert summary.position.order > before.order


def test_rolled_back_work_never_comes(mariadb: MariaDb, raw: RawFiles, table: str, capture: Capture) -> None:
    """Neither a whole transaction nor what lies behind a savepoint, even where the binlog has to hold it."""
    capture(full_load=True)
    with mariadb.connect(raw.database) as other:
        _run(other, "CREATE TABLE log (id int, v int) ENGINE=MyISAM", "INSERT INTO t VALUES (3, 'gone')")
        other.rollback()
        _run(other, "INSERT INTO t VALUES (4, 'stays')", "SAVEPOINT s", "INSERT INTO t VALUES (5, 'gone')")
        _run(other, "ROLLBACK TO SAVEPOINT s", "INSERT INTO t VALUES (6, 'stays')")
        other.commit()
        _run(other, "INSERT INTO t VALUES (7, 'stays')", "SAVEPOINT s", "INSERT INTO t SELECT 8, 'gone'")
        _run(other, "INSERT INTO log VALUES (1, 1)", "UPDATE log, t SET log.v = 2, t.v = 'gone' WHERE t.id = 1")
        _run(other, "ROLLBACK TO SAVEPOINT s")
        other.commit()
        _run(other, "INSERT INTO t VALUES (9, 'gone')", "UPDATE log, t SET log.v = 3, t.v = 'gone' WHERE t.id = 2")
        _run(other, "CREATE TEMPORARY TABLE kept (id int) ENGINE=MyISAM", "INSERT INTO kept SELECT id FROM t")
        other.rollback()
        _run(other, "INSERT INTO t VALUES (10, 'stays')")
        other.commit()

    capture()

    assert [row for row in _ops(raw) if row[2] == "gone"] == []
    assert [row[1] for row in _ops(raw)[2:]] == [4, 6, 7, 10]
    assert [row["v"] for row in raw.rows("log")] == [1, 2, 3], "a table without transactions keeps what was done"


def test_a_changed_key_is_one_u_with_the_new_key(connection: Any, raw: RawFiles, table: str, capture: Capture) -> None:
    """As DMS writes it: nothing tells the old key."""
    capture(full_load=True)
    _run(connection, "UPDATE t SET id = 10 WHERE id = 1")

    capture()

    assert _ops(raw)[2:] == [("U", 10, "a")]


def test_before_images_tell_the_old_key(connection: Any, raw: RawFiles, table: str, capture: Capture) -> None:
    """BI_ columns at the end: the row before on U, null on I and D."""
    options = CaptureOptions(before_images=True)
    capture(full_load=True, options=options)
    _run(connection, "UPDATE t SET id = 10 WHERE id = 1", "DELETE FROM t WHERE id = 2", "INSERT INTO t VALUES (3, 'c')")

    capture(options=options)

    assert raw.rows(table)[2:] == [
        {"Op": "U", "id": 10, "v": "a", "BI_id": 1, "BI_v": "a"},
        {"Op": "D", "id": 2, "v": "b", "BI_id": None, "BI_v": None},
        {"Op": "I", "id": 3, "v": "c", "BI_id": None, "BI_v": None},
    ]


def test_the_timestamp_column_is_second_and_tells_when_the_statement_began(
    connection: Any, raw: RawFiles, table: str, capture: Capture
) -> None:
    """In CDC files it is in whole seconds of UTC, in load files the time of transfer; it is required."""
    options = CaptureOptions(timestamp_column="committed_at")
    capture(full_load=True, options=options)
    _run(connection, "SET timestamp = 1600000000", "DELETE FROM t WHERE id = 1")

    capture(options=options)

    rows = raw.rows(table)
    assert list(rows[0]) == ["Op", "committed_at", "id", "v"]
    assert rows[2]["committed_at"] == "2020-09-13 12:26:40.000000"
    assert rows[0]["committed_at"] > rows[2]["committed_at"]
    assert not raw.file(table, raw.names(table)[0]).schema_arrow.field("committed_at").nullable


def test_changed_columns_begin_a_new_file(connection: Any, raw: RawFiles, table: str, capture: Capture) -> None:
    """A file has one set of columns: that of the table when its rows were changed."""
    capture(full_load=True)
    _run(connection, "INSERT INTO t VALUES (3, 'c')", "ALTER TABLE t ADD COLUMN w int", "INSERT INTO t VALUES (4, 'd', 9)")
    _run(connection, "ALTER TABLE t DROP COLUMN v, MODIFY w bigint", "INSERT INTO t VALUES (5, 10)")

    summary = capture()

    schemas = [raw.file("t", name).schema_arrow for name in raw.names("t")[1:]]
    assert [schema.names for schema in schemas] == [["Op", "id", "v"], ["Op", "id", "v", "w"], ["Op", "id", "w"]]
    assert [schema.field("w").type for schema in schemas[1:]] == [pa.int32(), pa.int64()]
    assert summary.keys == sorted(summary.keys)


def test_only_named_tables_are_captured(connection: Any, raw: RawFiles, table: str, capture: Capture) -> None:
    """Others have neither load nor CDC files."""
    options = CaptureOptions(tables=("t",))
    _run(connection, "CREATE TABLE u (id int)", "INSERT INTO u VALUES (1)")

    capture(full_load=True, options=options)
    _run(connection, "INSERT INTO u VALUES (2)", "INSERT INTO t VALUES (3, 'c')")
    capture(options=options)

    assert (raw.names("u"), len(raw.names("t"))) == ([], 2)
    with pytest.raises(UsageError, match="nope not in database"):
        capture(full_load=True, options=CaptureOptions(tables=("t", "nope")))


def test_a_table_made_later_comes_by_cdc_files_alone(connection: Any, raw: RawFiles, table: str, capture: Capture) -> None:
    """It has no load file, since it wasn't there."""
    capture(full_load=True)
    _run(connection, "CREATE TABLE late (id int PRIMARY KEY, v int)", "INSERT INTO late VALUES (1, 2)")

    capture()

    assert [name[:4] == "LOAD" for name in raw.names("late")] == [False]
    assert _ops(raw, "late") == [("I", 1, 2)]


def test_names_that_need_quoting_are_captured(connection: Any, raw: RawFiles, capture: Capture) -> None:
    """Reserved words, spaces, quotes and other letters in table and column names."""
    _run(connection, "CREATE TABLE `order` (`group` int, `a ``b` int, `größe 😊` int)".replace("😊", "ñ"))
    _run(connection, "INSERT INTO `order` VALUES (1, 2, 3)")

    capture(full_load=True)
    _run(connection, "INSERT INTO `order` VALUES (4, 5, 6)")
    capture()

    rows = raw.rows("order")
    assert [list(row) for row in rows] == [["Op", "group", "a `b", "größe ñ"]] * 2
    assert [row["a `b"] for row in rows] == [2, 5]


# -- going on


def test_without_a_position_the_capture_begins_at_the_binlogs_end(connection: Any, raw: RawFiles, table: str, capture: Capture) -> None:
    """CDC only: what was there before isn't captured, and the first run says so."""
    first = capture()
    _run(connection, "INSERT INTO t VALUES (3, 'c')")

    capture()

    assert "changes are captured from" in first.warnings[0]
    assert _ops(raw) == [("I", 3, "c")]


def test_after_a_crash_before_the_position_was_saved_rows_come_again_under_later_names(
    connection: Any, raw: RawFiles, table: str, capture: Capture
) -> None:
    """At least once: the repetition begins at the saved position and runs on from there."""
    capture(full_load=True)
    state_key = f"dms/_capture/{raw.database}.json"
    saved = raw.body(state_key)
    _run(connection, "INSERT INTO t VALUES (3, 'c')")
    first = capture().keys
    raw.client.put_object(Bucket=raw.bucket, Key=state_key, Body=saved)
    _run(connection, "DELETE FROM t WHERE id = 3")

    second = capture().keys

    assert second > first
    assert _ops(raw)[2:] == [("I", 3, "c"), ("I", 3, "c"), ("D", 3, "c")]


def test_names_go_on_after_the_last_ones_when_the_clock_has_gone_back(mariadb: MariaDb, connection: Any, raw: RawFiles, table: str) -> None:
    """The last name of each table is saved: a later run's names are greater, whatever its clock says."""
    source = Source.from_url(mariadb.url(raw.database))
    folder = RawFolder(raw.url, raw.database, raw.client)
    for day in (3, 2):
        session = CaptureSession(source, folder, CaptureOptions(), lambda day=day: datetime(2024, 1, day, tzinfo=timezone.utc))
        if day == 3:
            session.full_load()
        _run(connection, f"INSERT INTO t VALUES ({10 - day}, 'x')")
        session.round()

    assert raw.names(table)[1:] == ["20240103-000000000.parquet", "20240103-000000001.parquet"]
    assert [row[1] for row in _ops(raw)] == [1, 2, 7, 8]


def test_a_long_backlog_is_written_and_saved_in_pieces(connection: Any, raw: RawFiles, table: str, capture: Capture) -> None:
    """A piece ends with a transaction, never inside one."""
    capture(full_load=True)
    _run(connection, "INSERT INTO t SELECT seq, 'x' FROM seq_3_to_7", "DELETE FROM t WHERE id = 3", "DELETE FROM t WHERE id = 4")

    summary = capture(options=CaptureOptions(cdc_flush_rows=2))

    assert [raw.file("t", name).metadata.num_rows for name in raw.names("t")[1:]] == [5, 2]
    assert summary.tables["t"].cdc_files == 2


def test_the_position_survives_a_rotated_binlog(connection: Any, raw: RawFiles, table: str, capture: Capture) -> None:
    """Changes in the next binlog files, and a table map of each, are read on."""
    capture(full_load=True)
    _run(connection, "INSERT INTO t VALUES (3, 'c')", "FLUSH BINARY LOGS", "INSERT INTO t VALUES (4, 'd')", "FLUSH BINARY LOGS")

    capture()
    _run(connection, "INSERT INTO t VALUES (5, 'e')")
    capture()

    assert [row[1] for row in _ops(raw)] == [1, 2, 3, 4, 5]


def test_the_state_can_be_a_local_file(connection: Any, raw: RawFiles, table: str, capture: Capture, tmp_path: Path) -> None:
    """Then nothing of ours is in the raw bucket."""
    state = tmp_path / "state.json"

    capture(full_load=True, state_file=state)
    _run(connection, "INSERT INTO t VALUES (3, 'c')")
    capture(state_file=state)

    assert json.loads(state.read_text())["last_files"] == {"t": raw.names("t")[1]}
    assert [key for key in raw.listed() if "_capture" in key] == []


def test_a_following_capture_writes_on_until_it_is_stopped(connection: Any, raw: RawFiles, table: str, capture: Capture) -> None:
    """A round every interval; the summary is their sum."""
    stop, summaries = threading.Event(), []
    thread = threading.Thread(target=lambda: summaries.append(capture(full_load=True, follow=True, interval_seconds=0.05, stop=stop)))
    thread.start()
    try:
        for number in (3, 4):
            _until(lambda number=number: len(raw.names("t")) == number - 2)
            _run(connection, f"INSERT INTO t VALUES ({number}, 'x')")
        _until(lambda: len(raw.names("t")) == 3)
    finally:
        stop.set()
        thread.join()

    assert [row[1] for row in _ops(raw)] == [1, 2, 3, 4]
    assert summaries[0].tables == {"t": TableSummary(load_files=1, load_rows=2, cdc_files=2, inserts=2)}


# -- what it refuses


def test_a_position_that_the_server_has_purged_is_refused(connection: Any, table: str, capture: Capture) -> None:
    """Changes are lost to the capture then: the way out is a new full load."""
    capture(full_load=True)
    _run(connection, "INSERT INTO t VALUES (3, 'c')", "FLUSH BINARY LOGS")
    _until(lambda: _only_the_last_binlog_is_left(connection))

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
    _run(connection, f"SET GLOBAL {name} = {value}")
    try:
        with pytest.raises(SetupError, match=f"{name}: expected '{good}', found '{value}': SET GLOBAL"):
            capture(full_load=True)
    finally:
        _run(connection, f"SET GLOBAL {name} = {good}")

    assert raw.listed() == []


def test_rows_logged_before_the_names_of_columns_were_are_refused(connection: Any, table: str, capture: Capture) -> None:
    """Without names in the binlog a column added since would be taken for another one."""
    capture(full_load=True)
    _run(connection, "SET GLOBAL binlog_row_metadata = MINIMAL")
    try:
        _run(connection, "INSERT INTO t VALUES (3, 'c')")
    finally:
        _run(connection, "SET GLOBAL binlog_row_metadata = FULL")

    with pytest.raises(CaptureError, match="no column names"):
        capture()


def test_a_change_logged_as_a_statement_is_refused(mariadb: MariaDb, raw: RawFiles, table: str, capture: Capture) -> None:
    """A session may have changed its binlog format: the rows are unknown, and nothing of the round is written."""
    capture(full_load=True)
    with mariadb.connect(raw.database, autocommit=True) as other:
        _run(other, "SET SESSION binlog_format = STATEMENT", "UPDATE t SET v = 'z'")

    with pytest.raises(CaptureError, match=r"as a statement.*UPDATE t"):
        capture()


def test_a_row_image_without_all_columns_is_refused(mariadb: MariaDb, raw: RawFiles, table: str, capture: Capture) -> None:
    """A session may have asked for smaller row images: a missing column isn't a null."""
    capture(full_load=True)
    with mariadb.connect(raw.database, autocommit=True) as other:
        _run(other, "SET SESSION binlog_row_image = MINIMAL", "UPDATE t SET v = 'z'")

    with pytest.raises(CaptureError, match=r"column \w+ is missing"):
        capture()


@pytest.mark.parametrize("statement", ["TRUNCATE TABLE t", "DROP TABLE t", "RENAME TABLE t TO t2", "/* why */ truncate t"])
def test_what_cdc_files_cannot_say_is_a_warning(connection: Any, table: str, capture: Capture, statement: str) -> None:
    """The rows are gone without a D: the statement is told, with the way out."""
    capture(full_load=True)
    _run(connection, statement)

    summary = capture()

    assert len(summary.warnings) == 1
    assert "--full-load" in summary.warnings[0]


def test_xa_transactions_are_refused(connection: Any, table: str, capture: Capture) -> None:
    """Their rows stand in the binlog before anybody knows whether they will be committed."""
    capture(full_load=True)
    _run(connection, "XA START 'x'", "INSERT INTO t VALUES (3, 'c')", "XA END 'x'", "XA PREPARE 'x'", "XA ROLLBACK 'x'")

    with pytest.raises(CaptureError, match="XA"):
        capture()


def test_a_state_of_another_format_is_refused(raw: RawFiles, table: str, capture: Capture) -> None:
    """A later version's state is not guessed at."""
    capture(full_load=True)
    raw.client.put_object(Bucket=raw.bucket, Key=f"dms/_capture/{raw.database}.json", Body=b'{"format": 2}')

    with pytest.raises(CaptureError, match="expected format 1, found 2"):
        capture()


def _until(reached: Callable[[], bool]) -> None:
    deadline = time.monotonic() + WAIT_SECONDS
    while not reached():
        assert time.monotonic() < deadline, "the condition was not reached"
        time.sleep(0.02)


def _only_the_last_binlog_is_left(connection: Any) -> bool:
    """After another try to purge the others: the server keeps those that a reader has just left for a moment."""
    with connection.cursor() as cursor:
        cursor.execute("SHOW BINARY LOGS")
        last = cursor.fetchall()[-1][0]
        cursor.execute(f"PURGE BINARY LOGS TO '{last}'")
        cursor.execute("SHOW BINARY LOGS")
        return len(cursor.fetchall()) == 1
