"""The full load: which files there are, and that they are of one moment."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from pymysql.cursors import DictCursor

from infra.local.capture import CaptureOptions, TableSummary
from infra.local.capture.source import Source, consistent_snapshot
from tests.database.files import RawFiles
from tests.database.server import MariaDb
from tests.database.steps import Capture, ops, run, until


def test_a_full_load_writes_each_table_with_rows_and_no_other(connection: Any, raw: RawFiles, table: str, capture: Capture) -> None:
    """An empty table, and a view, have no file; the state stands beside the schema's folder."""
    run(connection, "CREATE TABLE empty (id int)", f"CREATE VIEW v AS SELECT * FROM {table}")

    summary = capture(full_load=True)

    load, state = f"dms/{raw.database}/t/LOAD00000001.parquet", f"dms/_capture/{raw.database}.json"
    assert (raw.listed(), summary.keys) == ([state, load], [load])
    assert ops(raw) == [("I", 1, "a"), ("I", 2, "b")]
    assert summary.tables == {"t": TableSummary(load_files=1, load_rows=2)}


def test_a_large_table_comes_in_several_load_files(connection: Any, raw: RawFiles, capture: Capture) -> None:
    """The eleventh file is 0000000B; all rows are there once."""
    run(connection, "CREATE TABLE t (id int PRIMARY KEY, v int)", "INSERT INTO t SELECT seq, seq FROM seq_1_to_31")

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
    run(connection, "DELETE FROM t WHERE id = 1")
    old = capture().keys
    foreign = f"dms/{raw.database}/t/notes.txt"
    raw.client.put_object(Bucket=raw.bucket, Key=foreign, Body=b"mine")

    capture(full_load=True)
    run(connection, "INSERT INTO t VALUES (3, 'c')")
    new = capture().keys

    assert raw.names(table) == ["LOAD00000001.parquet", new[0].rpartition("/")[2], "notes.txt"]
    assert new > old


@pytest.mark.parametrize("lock", [False, True])
def test_snapshot_and_position_are_of_one_moment(mariadb: MariaDb, connection: Any, database: str, table: str, lock: bool) -> None:
    """What is committed after the snapshot isn't seen in it, and lies behind its position; the rest before."""
    source = Source.from_url(mariadb.url(database))

    with consistent_snapshot(source, lock=lock) as (snapshot, position):
        run(connection, "INSERT INTO t VALUES (3, 'late')")
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
        run(other, "INSERT INTO t VALUES (3, 'open')")
        capture(full_load=True)
        other.commit()

    capture()

    assert ops(raw) == [("I", 1, "a"), ("I", 2, "b"), ("I", 3, "open")]


def test_a_full_load_beside_a_writer_is_exact(mariadb: MariaDb, connection: Any, raw: RawFiles, table: str, capture: Capture) -> None:
    """Rows that are inserted all the while come once each, from the load or from the binlog, in every table."""
    run(connection, "CREATE TABLE u LIKE t")
    stop, written = threading.Event(), []

    def write() -> None:
        with mariadb.connect(raw.database, autocommit=True) as other:
            while not stop.is_set():
                number = 10 + len(written)
                run(other, f"INSERT INTO t VALUES ({number}, 'x')", f"INSERT INTO u VALUES ({number}, 'x')")
                written.append(number)

    thread = threading.Thread(target=write)
    thread.start()
    try:
        until(lambda: len(written) > 20)
        capture(full_load=True)
        loaded = len(written)
        until(lambda: len(written) > loaded + 20)
    finally:
        stop.set()
        thread.join()
    capture()

    assert [row[1] for row in ops(raw, "u")] == written
    assert [row[1] for row in ops(raw, "t")] == [1, 2, *written]
