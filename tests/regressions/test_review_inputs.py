"""Which raw files a run takes: none is left out in silence, none is taken for what it is not."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone

import pytest

from infra.local.dms_files import cdc_file_name
from tests.work_tables import MakeTable


def test_a_replay_over_a_file_that_is_gone_is_refused(new_table: MakeTable) -> None:
    """Replaying the others would leave rows that the missing file had replaced; a person may say that it shall be so."""
    table = new_table()
    table.load([(1, "loaded", 1)])
    names = [table.next_name() for _ in range(3)]
    for number, name in enumerate(names):
        table.cdc([("U", (1, f"version {number}", 1))], name=name)
    table.sync()
    table.delete_raw(names[2])
    table.edit(LastIncrementalFile=str(table.path) + names[0])

    error = table.blocked()

    assert error["code"] == "replay-without-file"
    assert names[2] in error["message"]
    assert table.rows() == [(1, "version 2", 1)]
    table.edit(SkipFiles=names[2])
    table.sync()
    assert table.rows() == [(1, "version 1", 1)]


def test_files_behind_what_the_records_know_are_not_taken_for_late_ones(new_table: MakeTable) -> None:
    """Inputs far behind the cursor are left out of checkpoints; a longer late window must not bring their rows back."""
    table = new_table()
    table.load([(1, "a", 1)])
    table.cdc([("I", (2, "once", 1))], name="20240501-120000000.parquet")
    table.cdc([("D", (2, None, None))], name="20240501-130000000.parquet")
    table.sync()
    for day in (10, 20):
        table.cdc([("U", (1, f"day {day}", 1))], name=f"202405{day}-120000000.parquet")
        table.sync()
    table.delete_raw("20240501-130000000.parquet")

    table.edit(LateWindowHours="1000")
    table.sync()

    assert table.rows() == [(1, "day 20", 1)]


def test_files_that_a_cursor_moved_far_ahead_passes_over_are_on_record(new_table: MakeTable) -> None:
    """Also those further behind it than the late window."""
    table = new_table()
    table.load([(1, "a", 1)])
    table.cdc([("U", (1, "b", 1))], name="20240501-120000000.parquet")
    table.sync()
    passed = [table.cdc([("U", (1, "passed", 1))], name=f"202405{day}-120000000.parquet") for day in ("02", "10")]
    table.cdc([("U", (1, "c", 1))], name="20240511-120000000.parquet")

    table.edit(LastIncrementalFile=f"{table.path.bucket}/{passed[1]}")
    table.sync()

    assert table.rows() == [(1, "c", 1)]
    assert [item.key for item in table.head().skipped] == passed


@pytest.mark.parametrize("folder", ["2024/05/02/", "2024-05-02/", "202405/", "05/2024/02/", "05202402/", "02052024/", "20240502/"])
def test_files_are_found_when_dms_begins_to_write_folders_by_date(new_table: MakeTable, folder: str) -> None:
    """Most of those folders sort before the files that lie directly in the table's folder."""
    table = new_table()
    table.load([(1, "a", 1)])
    table.cdc([("U", (1, "b", 1))], name="20240501-120000000.parquet")
    table.sync()

    table.cdc([("U", (1, "c", 1))], name=f"{folder}20240502-120000000.parquet")
    table.sync()

    assert table.rows() == [(1, "c", 1)]


def test_a_reload_in_the_numbered_folders_of_a_parallel_load_is_found(new_table: MakeTable) -> None:
    """They sort before the CDC files too."""
    table = new_table()
    table.edit(LoadQuietMinutes="0")
    table.put_raw("20240101/LOAD00000001.parquet", table.parquet([("I", (1, "a", 1))]))
    table.cdc([("U", (1, "b", 1))], name=cdc_file_name(datetime.now(timezone.utc) - timedelta(minutes=30)))
    table.sync()

    table.put_raw("20240101/LOAD00000001.parquet", table.parquet([("I", (1, "loaded again", 1))]))
    table.sync()

    assert table.rows() == [(1, "loaded again", 1)]


def test_a_first_batch_is_refused_where_others_wrote(new_table: MakeTable) -> None:
    """A table without load files too: a reader of the folder would see both."""
    table = new_table()
    table.clients.s3.put_object(Bucket=table.out_path.bucket, Key=table.out_path.key + "part-0000.parquet", Body=b"PAR1")
    table.cdc([("I", (2, "b", 2))])

    assert table.blocked()["code"] == "adopt-or-reload"
    assert table.visible() == {"part-0000.parquet"}
