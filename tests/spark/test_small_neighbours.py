"""Small files that a batch rewrites and that follow on each other become one file."""

from __future__ import annotations

import itertools
import random
from typing import Any

import pytest

from glue_jobs.core import neighbours
from glue_jobs.core.record import DataFile
from glue_jobs.spark import merge, merge_file, write_files
from tests.spark.tables import WorkTable
from tests.work_tables import MakeTable

ROWS = 400
A_FILE_EACH = {"batch_files": "1", "small_file_bytes": "0"}


def in_order(table: WorkTable) -> list[DataFile]:
    return sorted(table.snapshot().files.values(), key=lambda file: file.low or ())


@pytest.fixture
def many(new_table: MakeTable) -> WorkTable:
    """An unpartitioned table of eight small files."""
    table = new_table()
    for start in range(0, ROWS, 50):
        table.cdc([("I", (number, f"n{number}", 0)) for number in range(start, start + 50)])
    table.sync(**A_FILE_EACH)
    assert len(in_order(table)) == ROWS // 50
    return table


def first_keys(files: list[DataFile]) -> list[int]:
    return [file.low[0] for file in files if file.low]


def test_rewritten_neighbours_become_one_file(many: WorkTable) -> None:
    """The file that no change touches stays and parts them; the last one takes up inserts and stays by itself."""
    before = in_order(many)
    touched = [*before[:3], *before[4:]]
    many.cdc([("U", (key, "changed", 0)) for key in first_keys(touched)])

    many.sync()

    after = in_order(many)
    assert [(file.low, file.high) for file in after] == [
        (before[0].low, before[2].high),
        (before[3].low, before[3].high),
        (before[4].low, before[-2].high),
        (before[-1].low, before[-1].high),
    ]
    assert after[1] == before[3]
    assert many.counts() == (0, len(touched), 0)
    many.check_files()
    many.check_folder()


def test_a_range_that_holds_none_of_the_keys_parts_them_too(many: WorkTable) -> None:
    """A file is searched because a key lies in its range, and holds none: it stays."""
    files = in_order(many)
    low, high = files[2].low, files[2].high
    assert low
    assert high
    assert high[0] - low[0] >= 2
    many.cdc([("D", (low[0] + 1, None, None))])
    many.sync()  # a gap that the next delete meets
    parted = in_order(many)
    many.cdc([("U", (key, "changed", 0)) for key in first_keys([*parted[:2], *parted[3:5]])] + [("D", (low[0] + 1, None, None))])

    many.sync()

    after = in_order(many)
    assert after[1] == parted[2]
    assert (after[0].low, after[0].high) == (parted[0].low, parted[1].high)
    assert many.counts() == (0, 4, 0)
    many.check_files()


def test_a_group_whose_rows_are_all_deleted_leaves_no_file(many: WorkTable) -> None:
    before = in_order(many)
    gone = before[1:4]
    keys = [key for file in gone if file.low and file.high for key in range(file.low[0], file.high[0] + 1)]
    many.cdc([("D", (key, None, None)) for key in keys])

    many.sync()

    assert in_order(many) == [before[0], *before[4:]]
    assert many.counts() == (0, 0, len(keys))
    many.check_folder()


@pytest.mark.parametrize("untouched", [None, 1])
def test_a_neighbour_that_is_gone_leaves_nothing_behind(many: WorkTable, untouched: int | None) -> None:
    """What was written for those before it is given up, finished or not: no upload stays open, no file is hidden."""
    before = in_order(many)
    key = many.out_path.key + before[4].path
    many.clients.s3.delete_object(Bucket=many.out_path.bucket, Key=key)
    files = [file for at, file in enumerate(before) if at != untouched]
    changes = [("U", (key, "changed", 0)) for key in first_keys(files)]
    many.cdc(changes)

    error = many.blocked()

    assert error["code"] == "data-file-gone"
    assert before[4].path in error["message"]
    assert many.open_uploads() == []
    assert many.visible() == {file.path for file in before} - {before[4].path}


def test_a_task_that_fails_gives_up_all_that_it_wrote(many: WorkTable, monkeypatch: pytest.MonkeyPatch) -> None:
    """The files that it had finished before, too: each of them was one of its own."""
    monkeypatch.setattr(merge, "BINS_PER_SLOT", 1)
    before = in_order(many)
    many.clients.s3.delete_object(Bucket=many.out_path.bucket, Key=many.out_path.key + before[-2].path)
    many.cdc([("U", (key, "changed", 0)) for key in first_keys(before)])
    written: list[str] = []
    finish = write_files.FileWriter.finish

    def finished(writer: write_files.FileWriter) -> list[DataFile]:
        files = finish(writer)
        written.extend(file.path for file in files)
        return files

    monkeypatch.setattr(write_files.FileWriter, "finish", finished)

    error = many.blocked(small_file_bytes="0")

    assert error["code"] == "data-file-gone"
    assert written
    assert many.open_uploads() == []


def test_joined_files_grow_no_further_than_twice_the_limit(many: WorkTable) -> None:
    """What is not small any more is joined with nothing."""
    total = sum(file.size_bytes for file in in_order(many))
    most = total // 4
    for turn in range(4):
        many.cdc([("U", (key, f"turn {turn}", 0)) for key in range(ROWS)])
        many.sync(small_file_bytes=str(most))
        files = in_order(many)
        assert all(first.high < second.low for first, second in itertools.pairwise(files) if first.high and second.low)
    assert len(files) < 8
    assert all(file.size_bytes < 3 * most for file in files)
    many.check_files()
    assert sorted(many.rows()) == [(key, "turn 3", 0) for key in range(ROWS)]


@pytest.fixture(params=["quick_table", "spark_table"])
def neglected(request: pytest.FixtureRequest) -> WorkTable:
    """Twelve small files, as an adopted table has them, in this process and where Spark reaches them."""
    table: WorkTable = request.getfixturevalue(request.param)()
    for start in range(0, 12 * 50, 50):
        table.cdc([("I", (number, f"n{number}", 0)) for number in range(start, start + 50)])
    table.sync(**A_FILE_EACH)
    assert len(in_order(table)) == 12
    return table


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


def test_giving_up_goes_on_where_one_upload_cannot_be_aborted(many: WorkTable, monkeypatch: pytest.MonkeyPatch) -> None:
    """The error that led to it passes as it is; what could not be aborted is left to the lifecycle rule."""
    before = in_order(many)
    many.clients.s3.delete_object(Bucket=many.out_path.bucket, Key=many.out_path.key + before[4].path)
    many.cdc([("U", (key, "changed", 0)) for key in first_keys([before[0], *before[2:]])])
    asked: list[str] = []

    def refuse(*_: object) -> None:
        asked.append("abort")
        raise ConnectionResetError("no answer")

    monkeypatch.setattr(write_files.FileWriter, "abort", refuse)

    error = many.blocked()

    assert error["code"] == "data-file-gone"
    assert asked
    assert many.visible() == {file.path for file in before} - {before[4].path}


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
    monkeypatch.setattr(merge_file, "WHOLE_RATIO", 0)
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
        table.check_files()
        table.check_folder()
    assert tidied > 0


def _change(choose: random.Random, rows: dict[int, tuple[Any, ...]], key: int, turn: int) -> tuple[str, tuple[Any, ...]]:
    if key in rows and choose.random() < 0.3:
        return "D", rows[key]
    return "U" if key in rows else "I", (key, choose.choice("ab"), turn + 1)
