"""Where a capture goes on, and what it may repeat."""

from __future__ import annotations

import json
import threading
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from infra.local.capture import Capture as CaptureSession
from infra.local.capture import CaptureOptions, TableSummary
from infra.local.capture.raw_folder import RawFolder
from infra.local.capture.source import Source
from tests.database.files import RawFiles
from tests.database.server import MariaDb
from tests.database.steps import Capture, ops, run, until


def test_without_a_position_the_capture_begins_at_the_binlogs_end(connection: Any, raw: RawFiles, table: str, capture: Capture) -> None:
    """CDC only: what was there before isn't captured, and the first run says so."""
    first = capture()
    run(connection, "INSERT INTO t VALUES (3, 'c')")

    capture()

    assert "changes are captured from" in first.warnings[0]
    assert ops(raw) == [("I", 3, "c")]


def test_after_a_crash_before_the_position_was_saved_rows_come_again_under_later_names(
    connection: Any, raw: RawFiles, table: str, capture: Capture
) -> None:
    """At least once: the repetition begins at the saved position and runs on from there."""
    capture(full_load=True)
    state_key = f"dms/_capture/{raw.database}.json"
    saved = raw.body(state_key)
    run(connection, "INSERT INTO t VALUES (3, 'c')")
    first = capture().keys
    raw.client.put_object(Bucket=raw.bucket, Key=state_key, Body=saved)
    run(connection, "DELETE FROM t WHERE id = 3")

    second = capture().keys

    assert second > first
    assert ops(raw)[2:] == [("I", 3, "c"), ("I", 3, "c"), ("D", 3, "c")]


def test_names_go_on_after_the_last_ones_when_the_clock_has_gone_back(mariadb: MariaDb, connection: Any, raw: RawFiles, table: str) -> None:
    """The last name of each table is saved: a later run's names are greater, whatever its clock says."""
    source = Source.from_url(mariadb.url(raw.database))
    folder = RawFolder(raw.url, raw.database, raw.client)
    for day in (3, 2):
        session = CaptureSession(source, folder, CaptureOptions(), lambda day=day: datetime(2024, 1, day, tzinfo=timezone.utc))
        if day == 3:
            session.full_load()
        run(connection, f"INSERT INTO t VALUES ({10 - day}, 'x')")
        session.round()

    assert raw.names(table)[1:] == ["20240103-000000000.parquet", "20240103-000000001.parquet"]
    assert [row[1] for row in ops(raw)] == [1, 2, 7, 8]


def test_a_long_backlog_is_written_and_saved_in_pieces(connection: Any, raw: RawFiles, table: str, capture: Capture) -> None:
    """A piece ends with a transaction, never inside one."""
    capture(full_load=True)
    run(connection, "INSERT INTO t SELECT seq, 'x' FROM seq_3_to_7", "DELETE FROM t WHERE id = 3", "DELETE FROM t WHERE id = 4")

    summary = capture(options=CaptureOptions(cdc_flush_rows=2))

    assert [raw.file("t", name).metadata.num_rows for name in raw.names("t")[1:]] == [5, 2]
    assert summary.tables["t"].cdc_files == 2


def test_the_position_survives_a_rotated_binlog(connection: Any, raw: RawFiles, table: str, capture: Capture) -> None:
    """Changes in the next binlog files, and a table map of each, are read on."""
    capture(full_load=True)
    run(connection, "INSERT INTO t VALUES (3, 'c')", "FLUSH BINARY LOGS", "INSERT INTO t VALUES (4, 'd')", "FLUSH BINARY LOGS")

    capture()
    run(connection, "INSERT INTO t VALUES (5, 'e')")
    capture()

    assert [row[1] for row in ops(raw)] == [1, 2, 3, 4, 5]


def test_the_state_can_be_a_local_file(connection: Any, raw: RawFiles, table: str, capture: Capture, tmp_path: Path) -> None:
    """Then nothing of ours is in the raw bucket."""
    state = tmp_path / "state.json"

    capture(full_load=True, state_file=state)
    run(connection, "INSERT INTO t VALUES (3, 'c')")
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
            until(lambda number=number: len(raw.names("t")) == number - 2)
            run(connection, f"INSERT INTO t VALUES ({number}, 'x')")
        until(lambda: len(raw.names("t")) == 3)
    finally:
        stop.set()
        thread.join()

    assert [row[1] for row in ops(raw)] == [1, 2, 3, 4]
    assert summaries[0].tables == {"t": TableSummary(load_files=1, load_rows=2, cdc_files=2, inserts=2)}
