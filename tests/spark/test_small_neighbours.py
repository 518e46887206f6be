"""Small files that a batch rewrites become one file, if they follow on each other or lie across each other."""

from __future__ import annotations

import itertools

import pytest

from glue_jobs.core.record import DataFile
from glue_jobs.spark import write_files
from tests.spark.small_files import fill, first_keys, in_order
from tests.spark.tables import WorkTable
from tests.work_tables import MakeTable

ROWS = 400


@pytest.fixture
def many(new_table: MakeTable) -> WorkTable:
    """An unpartitioned table of eight small files."""
    return fill(new_table(), ROWS // 50)


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


@pytest.fixture
def random(new_table: MakeTable) -> WorkTable:
    """An unpartitioned table of eight small files, each of which has keys from all over."""
    table = new_table()
    for file in range(8):
        table.cdc([("I", (number * 8 + file, "old", 0)) for number in range(50)])
    table.sync(small_file_bytes="0", tidy_bytes="0", batch_files="1")
    assert len(in_order(table)) == 8
    return table


def test_files_that_lie_across_each_other_become_one_file(random: WorkTable) -> None:
    """Also beside one that no change meets, which stays and does not part them. The last one may take up inserts, and stays by itself."""
    (kept,) = [file for file in in_order(random) if file.low == (3,)]
    gone = [key for key in range(400) if key % 8 != 3][-7:]
    random.cdc([("U", (key, "changed", 1)) for key in range(8) if key != 3] + [("D", (key, None, None)) for key in gone])

    random.sync(tidy_bytes="0")

    after = in_order(random)
    assert kept in after
    assert sorted(file.rows for file in after if file != kept) in (
        [343],
        [49, 294],
    )
    assert random.counts() == (0, 7, 7)
    assert sorted(row for row in random.rows() if row[1] == "changed") == [(key, "changed", 1) for key in range(8) if key != 3]
    random.check_files(ordered=False)
    random.check_folder()
