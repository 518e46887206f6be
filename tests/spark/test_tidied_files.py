"""Small files that a batch joins although it does not change them."""

from __future__ import annotations

import random
from typing import Any

import pytest
from botocore.exceptions import ClientError

from glue_jobs.core import neighbours
from glue_jobs.core.record import DataFile
from glue_jobs.spark import joined_files, merge_task, open_file
from tests.spark.small_files import A_FILE_EACH, fill, first_keys, in_order
from tests.spark.tables import WorkTable
from tests.work_tables import MakeTable


@pytest.fixture(params=["quick_table", "spark_table"])
def neglected(request: pytest.FixtureRequest) -> WorkTable:
    """Twelve small files, as an adopted table has them, in this process and where Spark reaches them."""
    make: MakeTable = request.getfixturevalue(request.param)
    return fill(make(), 12)


def test_a_batch_also_joins_small_files_that_it_does_not_change(neglected: WorkTable, request: pytest.FixtureRequest) -> None:
    """Neither rows nor counts are others than without; a rollback brings the small files back, and a redo the joined ones."""
    before, rows = in_order(neglected), {row[0]: row for row in neglected.rows()}
    last = first_keys(before)[-1]
    neglected.cdc([("U", (last - 1, "changed", 1)), ("D", (last, None, None)), ("I", (10_000, "new", 1))])

    by_spark = "spark_table" in request.fixturenames
    neglected.sync(**({"driver_bytes": "0"} if by_spark else {}))

    after = in_order(neglected)
    assert neglected.head().details["engine"] == ("spark" if by_spark else "driver")
    assert [(file.rows, file.low, file.high) for file in after[:1]] == [(10 * 50, before[0].low, before[9].high)]
    assert len(after) == 3
    assert neglected.counts() == (1, 1, 1)
    assert neglected.head().details["files_tidied"] == 10
    del rows[last]
    rows.update({last - 1: (last - 1, "changed", 1), 10_000: (10_000, "new", 1)})
    assert sorted(neglected.rows()) == sorted(rows.values())
    neglected.check_files()
    neglected.check_folder()

    assert neglected.run("Rollback", to="previous") == 0, neglected.last_run()
    assert [file.rows for file in in_order(neglected)] == [50] * 12
    assert neglected.run("Rollback", reapply="all", resume="true") == 0, neglected.last_run()
    assert [file.rows for file in in_order(neglected)] == [file.rows for file in after]
    assert sorted(neglected.rows()) == sorted(rows.values())
    neglected.check_files()

    neglected.cdc([("U", (last - 1, "again", 2))])
    neglected.sync()
    assert len(in_order(neglected)) == 3
    assert "files_tidied" not in neglected.head().details


@pytest.mark.parametrize("settings", [{"tidy_bytes": "0"}, {"small_file_bytes": "0"}])
def test_nothing_is_tidied_where_a_setting_says_so(neglected: WorkTable, settings: dict[str, str]) -> None:
    before = in_order(neglected)
    neglected.cdc([("U", (first_keys(before)[-1], "changed", 1))])

    neglected.sync(**settings)

    assert in_order(neglected)[:11] == before[:11]


def test_no_more_is_tidied_at_a_time_than_the_setting_says(neglected: WorkTable) -> None:
    before = in_order(neglected)
    most = sum(file.size_bytes for file in before[:10]) // 2
    neglected.cdc([("U", (first_keys(before)[-1], "changed", 1))])

    neglected.sync(tidy_bytes=str(most))

    after = in_order(neglected)
    assert before[0].rows < after[0].rows <= 5 * before[0].rows
    assert after[1:-2] == before[after[0].rows // 50 : -2]
    neglected.check_files()


def test_a_joined_file_ends_where_it_is_not_small_any_more(quick_table: MakeTable) -> None:
    """The batch is waited for: what it leaves is another batch's."""
    table = fill(quick_table(), 30)
    before, rows = in_order(table), {row[0]: row for row in table.rows()}
    last = first_keys(before)[-1]
    settings = {"small_file_bytes": str(max(file.size_bytes for file in before) + 1)}
    joined: list[int] = []
    for turn in range(3):
        rows[last] = (last, "changed", turn)
        table.cdc([("U", rows[last])])

        table.sync(**settings)

        after = in_order(table)
        joined.append(table.head().details["files_tidied"])
        assert after[turn].rows == 50 * joined[-1]
        assert after[turn + 1 : -1] == before[sum(joined) : -1]
        assert sorted(table.rows()) == sorted(rows.values())
        table.check_files()
        table.check_folder()
    assert len(set(joined)) == 1
    assert 2 <= joined[0] < 10
    for turns in (3, 2, 1):
        assert len(in_order(table)) == 30 - turns * (joined[0] - 1)
        assert table.run("Rollback", to="previous") == 0, table.last_run()
    assert [(file.rows, file.low) for file in in_order(table)] == [(file.rows, file.low) for file in before]


def test_a_file_behind_the_end_of_the_joined_one_is_no_trouble_yet(quick_table: MakeTable) -> None:
    """It is gone, and may have been read ahead: the batch that it is left to says so."""
    told: list[dict[str, Any]] = []
    for missing in (None, 0, 1):  # the place of the missing file behind the joined ones
        table = fill(quick_table(), 30)
        before = in_order(table)
        if missing is not None:
            gone = before[told[0]["files_tidied"] + missing]
            table.clients.s3.delete_object(Bucket=table.out_path.bucket, Key=table.out_path.key + gone.path)
        for turn in range(2):
            table.cdc([("U", (first_keys(before)[-1], "changed", turn))])
            table.sync(small_file_bytes=str(max(file.size_bytes for file in before) + 1))
            told.append(dict(table.head().details))
        if missing is not None:
            assert (told[-2]["files_tidied"], "tidy_trouble" in told[-2]) == (told[0]["files_tidied"], False)
            assert told[-1]["files_tidied"] == 0
            assert gone.path in told[-1]["tidy_trouble"]
            assert table.open_uploads() == []


def test_a_file_that_need_not_be_joined_blocks_nothing(neglected: WorkTable) -> None:
    """It is gone, which only a reader of its rows has to know: the batch is applied, and the change says why the files stay."""
    before = in_order(neglected)
    neglected.clients.s3.delete_object(Bucket=neglected.out_path.bucket, Key=neglected.out_path.key + before[4].path)
    neglected.cdc([("U", (first_keys(before)[-1], "changed", 1))])

    neglected.sync()

    assert neglected.counts() == (0, 1, 0)
    assert in_order(neglected)[:11] == before[:11]
    details = neglected.head().details
    assert details["files_tidied"] == 0
    assert before[4].path in details["tidy_trouble"]
    assert neglected.open_uploads() == []
    assert neglected.visible() == {file.path for file in in_order(neglected)} - {before[4].path}


def test_many_rows_in_few_bytes_are_joined_as_they_are_read(neglected: WorkTable, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where a small file would not lie in memory, its rows are not taken before its turn."""
    monkeypatch.setattr(open_file, "WHOLE_RATIO", 0)
    before, rows = in_order(neglected), {row[0]: row for row in neglected.rows()}
    neglected.cdc([("U", (key, "changed", 1)) for key in first_keys(before[8:11])])

    neglected.sync()

    assert [file.rows for file in in_order(neglected)] == [8 * 50, 3 * 50, 50]
    rows.update({key: (key, "changed", 1) for key in first_keys(before[8:11])})
    assert sorted(neglected.rows()) == sorted(rows.values())
    assert neglected.counts() == (0, 3, 0)
    neglected.check_files()


def test_a_file_that_takes_up_a_low_key_does_not_end_the_tidying(neglected: WorkTable) -> None:
    """Its range then covers the others, which are joined all the same."""
    neglected.cdc([("I", (-5, "low", 1)), ("I", (10_000, "new", 1))])
    neglected.sync(tidy_bytes="0")
    before = in_order(neglected)
    assert before[0].low
    assert before[0].high
    assert before[0].low[0] < before[1].low[0] < before[-1].high[0] < before[0].high[0]
    neglected.cdc([("I", (10_001, "newer", 1))])

    neglected.sync()

    assert sorted(file.rows for file in in_order(neglected)) == [53, 11 * 50]
    neglected.check_files()


@pytest.mark.parametrize("partition_key", ["null", "name"])
@pytest.mark.parametrize("seed", range(3))
def test_the_lake_table_is_the_source_table_whatever_is_joined(
    new_table: MakeTable, monkeypatch: pytest.MonkeyPatch, partition_key: str, seed: int
) -> None:
    """Changes of a few keys near each other, some of which leave their partition, in a table of small files that batches join."""
    monkeypatch.setattr(neighbours, "MANY_FILES", 2)
    choose = random.Random(seed)
    table, rows = new_table(partition_key=partition_key), {}
    for start in range(0, 120, 10):
        rows.update({key: (key, choose.choice("ab"), 0) for key in range(start, start + 6)})
        table.cdc([("I", rows[key]) for key in range(start, start + 6)])
    table.sync(**A_FILE_EACH)
    tidied = 0
    for turn in range(8):
        window = choose.randrange(120)
        changes = [_change(choose, rows, key, turn) for key in choose.sample(range(window, window + 15), choose.randint(1, 4))]
        table.cdc(changes)
        for op, row in changes:
            rows.pop(row[0], None)
            rows.update({row[0]: row} if op != "D" else {})

        table.sync(
            small_file_bytes=choose.choice(["0", "32000000"]),
            tidy_bytes=choose.choice(["2500", "80000000"]),
            stream_file_bytes=choose.choice(["0", "16000000", "16000000"]),
        )

        tidied += table.head().details.get("files_tidied", 0)
        assert sorted(table.rows()) == sorted(rows.values())
        table.check_files(ordered=partition_key == "null")  # rows that moved there lie across each other
        table.check_folder()
    assert tidied > 0


def _change(choose: random.Random, rows: dict[int, tuple[Any, ...]], key: int, turn: int) -> tuple[str, tuple[Any, ...]]:
    if key in rows and choose.random() < 0.3:
        return "D", rows[key]
    return "U" if key in rows else "I", (key, choose.choice("ab"), turn + 1)


@pytest.mark.parametrize("neglected", ["quick_table"], indirect=True)
def test_nor_does_one_that_s3_does_not_give(neglected: WorkTable, monkeypatch: pytest.MonkeyPatch) -> None:
    """An archived file: what was written of those before it is given up."""
    before, opened = in_order(neglected), merge_task.OpenFile.open
    aborted: list[str] = []

    def refused(place: Any, shape: Any, file: Any, renames: Any = (), **how: Any) -> Any:
        if file.path == before[7].path:
            raise ClientError({"Error": {"Code": "InvalidObjectState", "Message": "archived"}}, "GetObject")
        return opened(place, shape, file, renames, **how)

    abort = joined_files.abort_all
    monkeypatch.setattr(merge_task.OpenFile, "open", refused)
    monkeypatch.setattr(joined_files, "abort_all", lambda writers: (aborted.append("joined"), abort(writers)))
    neglected.cdc([("U", (first_keys(before)[-1], "changed", 1))])

    neglected.sync()

    assert in_order(neglected)[:11] == before[:11]
    assert "InvalidObjectState" in neglected.head().details["tidy_trouble"]
    assert neglected.counts() == (0, 1, 0)
    assert aborted == ["joined"]
    assert neglected.open_uploads() == []
    neglected.check_files()
    neglected.check_folder()


@pytest.mark.parametrize("neglected", ["quick_table"], indirect=True)
def test_nor_does_one_whose_last_rows_s3_does_not_take(neglected: WorkTable, monkeypatch: pytest.MonkeyPatch) -> None:
    """The end of the joined file is sent after all were read."""
    before = in_order(neglected)

    class Refused(joined_files.FileWriter):
        def finish(self) -> list[DataFile]:
            super().finish()
            raise ClientError({"Error": {"Code": "AccessDenied", "Message": "no more parts"}}, "UploadPart")

    monkeypatch.setattr(joined_files, "FileWriter", Refused)
    neglected.cdc([("U", (first_keys(before)[-1], "changed", 1))])

    neglected.sync()

    assert in_order(neglected)[:11] == before[:11]
    assert "no more parts" in neglected.head().details["tidy_trouble"]
    assert neglected.counts() == (0, 1, 0)
    assert neglected.open_uploads() == []
    neglected.check_files()
    neglected.check_folder()
