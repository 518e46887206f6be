"""A committed change whose uploads are gone is taken back, with everything that a person had asked of it."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from glue_jobs.protocol.table_run import TableRun
from tests.spark.tables import WorkTable
from tests.work_tables import MakeTable

Lose = Callable[[WorkTable, str], None]


class Died(BaseException):
    """The end of a process."""


@pytest.fixture
def lose(monkeypatch: pytest.MonkeyPatch) -> Lose:
    """Runs a job that dies right after its commit, whose uploads a lifecycle rule then aborts."""

    def die(*_: object, **__: object) -> None:
        raise Died

    def run(table: WorkTable, job: str) -> None:
        with monkeypatch.context() as patch:
            patch.setattr(TableRun, "_publish", die)
            with pytest.raises(Died):
                table.run(job)
        for file in table.head().added:
            assert file.upload is not None
            table.clients.s3.abort_multipart_upload(
                Bucket=table.out_path.bucket, Key=table.out_path.key + file.path, UploadId=file.upload.id
            )

    return run


def test_a_partitioned_first_load_is_done_again(quick_table: MakeTable, lose: Lose) -> None:
    table = quick_table(partition_key="qty")
    table.load([(1, "a", 1), (2, "b", 2)])
    lose(table, "LoadInitial")

    table.sync()

    assert table.rows() == [(1, "a", 1), (2, "b", 2)]
    table.check_folder()


def test_a_replay_is_done_again(quick_table: MakeTable, lose: Lose) -> None:
    """The cursor goes back to where the person had moved it, not to where the head was."""
    table = quick_table()
    table.load([(1, "a", 1)])
    names = [table.next_name() for _ in range(3)]
    keys = [table.cdc([("U", (1, f"version {number}", 1))], name=name) for number, name in enumerate(names)]
    table.sync()
    table.edit(LastIncrementalFile=str(table.path) + names[0])
    lose(table, "LoadIncremental")

    table.sync()

    assert [item.key for item in table.head().inputs] == keys[1:]
    assert table.item()["LastIncrementalFile"] == str(table.path) + names[2]


def test_skipped_files_stay_skipped(quick_table: MakeTable, lose: Lose) -> None:
    table = quick_table()
    table.load([(1, "a", 1)])
    table.cdc([("U", (1, "b", 1))])
    table.sync()
    skipped = table.next_name()
    table.cdc([("I", (2, "skipped", 1))], name=skipped)
    table.edit(LastIncrementalFile=str(table.path) + skipped)
    table.cdc([("I", (3, "c", 1))])
    lose(table, "LoadIncremental")

    table.sync()

    assert table.rows() == [(1, "b", 1), (3, "c", 1)]


@pytest.mark.parametrize("word", [{"Request": "reload"}, {"LastFullLoadDate": "1900-01-01 00:00:00"}])
def test_a_reload_that_was_asked_for_is_done_again(quick_table: MakeTable, lose: Lose, word: dict[str, str]) -> None:
    """Its load files alone would not bring it about: they are those of the head."""
    table = quick_table()
    table.load([(1, "a", 1)])
    table.sync()
    table.edit(LoadQuietMinutes="0", **word)
    lose(table, "LoadInitial")

    table.sync()

    assert table.head().kind == "full-load"
    assert table.rows() == [(1, "a", 1)]
    table.check_folder()


def test_what_was_edited_since_stays(quick_table: MakeTable, lose: Lose) -> None:
    """The person's last word counts."""
    table = quick_table()
    table.load([(1, "a", 1)])
    names = [table.next_name() for _ in range(3)]
    for number, name in enumerate(names):
        table.cdc([("U", (1, f"version {number}", 1))], name=name)
    table.sync()
    table.edit(LastIncrementalFile=str(table.path) + names[0])
    lose(table, "LoadIncremental")

    table.edit(LastIncrementalFile=str(table.path) + names[1])
    table.sync()

    assert [item.key.rsplit("/", 1)[-1] for item in table.head().inputs] == [names[2]]


def test_a_table_whose_inputs_are_gone_too_can_be_reloaded(quick_table: MakeTable, lose: Lose) -> None:
    """The block says to reload; the unfinished publish must not stand before that for ever."""
    table = quick_table()
    table.load([(1, "a", 1)])
    table.sync()
    name = table.next_name()
    table.cdc([("I", (2, "b", 2))], name=name)
    lose(table, "LoadIncremental")
    table.delete_raw(name)
    assert table.blocked()["code"] == "reload-needed"
    assert table.rows() == [(1, "a", 1)]

    table.load([(1, "a", 1), (2, "b", 2)])
    table.edit(Request="reload", LoadQuietMinutes="0")
    table.sync()

    assert table.rows() == [(1, "a", 1), (2, "b", 2)]
    table.check_folder()


def test_a_table_whose_inputs_are_gone_too_can_do_without_them(quick_table: MakeTable, lose: Lose) -> None:
    """The way out for a table without load files."""
    table = quick_table()
    table.cdc([("I", (1, "a", 1))])
    table.sync()
    name = table.next_name()
    table.cdc([("I", (2, "b", 2))], name=name)
    lose(table, "LoadIncremental")
    table.delete_raw(name)
    assert table.blocked()["code"] == "reload-needed"

    table.edit(SkipFiles=name)
    table.cdc([("I", (3, "c", 3))])
    table.sync()

    assert table.rows() == [(1, "a", 1), (3, "c", 3)]
    table.check_folder()
