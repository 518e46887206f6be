"""Raw files that go, or are written anew, after a run has listed them: the table waits for what is gone, and takes what is there now."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from glue_jobs.core import awaited
from glue_jobs.protocol import intake
from glue_jobs.rows import insert_rows
from tests.lake import DRIVER
from tests.protocol.test_lost_uploads import kinds
from tests.spark.tables import WorkTable
from tests.work_tables import MakeTable

LOADED, FIRST, SECOND, THIRD = (1, "a", 1), (2, "b", 2), (3, "c", 3), (4, "d", 4)
AfterListing = Callable[[Callable[[], Any]], None]


@pytest.fixture
def after_listing(monkeypatch: pytest.MonkeyPatch) -> AfterListing:
    """Has something happen once, right after the next listing of raw files."""
    real, waiting = intake.list_raw, list[Callable[[], Any]]()

    def list_raw(*given: Any) -> Any:
        found = real(*given)
        if waiting:
            waiting.pop()()
        return found

    monkeypatch.setattr(intake, "list_raw", list_raw)
    return waiting.append


@pytest.fixture
def behind(quick_table: MakeTable) -> WorkTable:
    """A loaded table with two CDC files that are not taken yet."""
    table = quick_table()
    table.load([LOADED])
    table.sync()
    for row in (FIRST, SECOND):
        table.cdc([("I", row)])
    return table


def cdc_names(table: WorkTable) -> list[str]:
    """The names of the CDC files that are there."""
    listed = table.clients.s3.list_objects_v2(Bucket=table.path.bucket, Prefix=table.path.raw.key).get("Contents", [])
    return sorted(name for entry in listed if not (name := entry["Key"].rsplit("/", 1)[-1]).startswith("LOAD"))


def code(table: WorkTable, **settings: Any) -> str:
    """The code of the error that a run ends with, '' without one."""
    table.run("LoadIncremental", **settings)
    return str(table.last_run().get("error", {}).get("code", ""))


def lose_first(table: WorkTable, after_listing: AfterListing, **settings: Any) -> str:
    """A run to which the first of the CDC files is gone when it reads it; the file's name."""
    name = cdc_names(table)[0]
    after_listing(lambda: table.delete_raw(name))
    assert code(table, **settings) == "raw-file-gone"
    assert name in table.last_run()["error"]["message"]
    return name


def test_a_table_waits_for_a_file_that_was_gone_before_it_was_read(behind: WorkTable, after_listing: AfterListing) -> None:
    """No later file is applied over the gap, whatever else comes; put back, it is applied in its turn."""
    name = lose_first(behind, after_listing)
    block = behind.item()["Blocked"]

    codes = [code(behind)]
    behind.cdc([("I", THIRD)])
    codes += [code(behind), code(behind)]
    waiting, kept = behind.rows(), behind.item()["Blocked"] == block
    behind.cdc([("I", FIRST)], name=name)
    behind.sync()

    assert (codes, waiting, kept) == (["raw-file-gone"] * 3, [LOADED], True)
    assert behind.rows() == [LOADED, FIRST, SECOND, THIRD]
    assert "Blocked" not in behind.item()


@pytest.mark.parametrize("word", ["skip", "unblock", "cursor"])
def test_a_person_may_do_without_the_file(behind: WorkTable, after_listing: AfterListing, word: str) -> None:
    """By the name, by lifting the block, by moving the cursor on."""
    name = lose_first(behind, after_listing)

    if word == "skip":
        behind.edit(SkipFiles=name)
    elif word == "cursor":
        behind.edit(LastIncrementalFile=str(behind.path) + name)
    else:
        behind.remove("Blocked")
    behind.sync()

    assert (behind.rows(), "Blocked" in behind.item()) == ([LOADED, SECOND], False)


def test_every_pending_file_that_went_is_waited_for(behind: WorkTable, after_listing: AfterListing) -> None:
    """Those of batches to come, too; the block then names the one that is still missing."""
    behind.cdc([("I", THIRD)])
    names = cdc_names(behind)
    after_listing(lambda: [behind.delete_raw(name) for name in names[:2]])
    codes = [code(behind, batch_files=1)]

    behind.cdc([("I", FIRST)], name=names[0])
    codes += [code(behind), code(behind)]
    message, waiting = behind.last_run()["error"]["message"], behind.rows()
    behind.cdc([("I", SECOND)], name=names[1])
    behind.sync()

    assert (codes, waiting, names[1] in message) == (["raw-file-gone"] * 3, [LOADED], True)
    assert behind.rows() == [LOADED, FIRST, SECOND, THIRD]


def test_a_persons_change_does_not_end_the_wait(behind: WorkTable, after_listing: AfterListing) -> None:
    """As it ends other blocks: the file is in no change record."""
    name = lose_first(behind, after_listing)

    row = dict(zip(behind.columns.names, THIRD, strict=True))
    insert_rows(str(behind.path), [row], environment=behind.environment, driver_bytes=DRIVER)
    behind.edit(Request="repartition")
    codes = [code(behind), code(behind)]
    waiting = behind.rows()
    behind.cdc([("I", FIRST)], name=name)
    behind.sync()

    assert (codes, waiting) == (["raw-file-gone"] * 2, [LOADED, THIRD])
    assert behind.rows() == [LOADED, FIRST, SECOND, THIRD]
    assert kinds(behind) == ["full-load", "edit", "repartition", "incremental"]


@pytest.mark.usefixtures("names_of_any_age")
def test_a_load_of_dms_ends_the_wait(behind: WorkTable, after_listing: AfterListing) -> None:
    """It has what the file would have brought, and the files before it are not its own."""
    lose_first(behind, after_listing)

    behind.load([LOADED, FIRST])
    behind.edit(LoadQuietMinutes="0")
    behind.sync()

    assert (behind.rows(), "Blocked" in behind.item()) == ([LOADED, FIRST], False)


def test_a_load_without_one_of_its_files_is_none(quick_table: MakeTable, after_listing: AfterListing) -> None:
    """The other files would be the whole table. All of them written anew are another load."""
    table = quick_table()
    table.load([LOADED])
    table.load([FIRST], number=2)
    after_listing(lambda: table.delete_raw("LOAD00000002.parquet"))

    codes = [table.run("LoadInitial"), table.run("LoadInitial")]
    block, rows = table.last_run()["error"], table.visible()
    table.load([LOADED, THIRD])
    table.sync()

    assert (codes, block["code"], "LOAD00000002.parquet" in block["message"], rows) == ([1, 1], "raw-file-gone", True, set())
    assert table.rows() == [LOADED, THIRD]


def test_more_files_than_a_block_can_name_wait_for_a_persons_word(
    behind: WorkTable, after_listing: AfterListing, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of those that it does not name it can't tell whether they are back."""
    monkeypatch.setattr(awaited, "MOST_NAMED", 1)
    names = cdc_names(behind)
    after_listing(lambda: [behind.delete_raw(name) for name in names])
    codes = [code(behind)]

    behind.cdc([("I", FIRST)], name=names[0])
    codes.append(code(behind))
    behind.remove("Blocked")
    behind.sync()

    assert (codes, behind.rows()) == (["raw-file-gone"] * 2, [LOADED, FIRST])


def test_a_file_that_was_written_anew_is_taken_by_the_next_run(behind: WorkTable, after_listing: AfterListing) -> None:
    """Also where a batch of the same listing was committed before: nothing needs to change once more."""
    name = cdc_names(behind)[1]
    after_listing(lambda: behind.cdc([("I", THIRD)], name=name))

    codes = [code(behind, batch_files=1), code(behind)]

    assert codes == ["raw-file-changed", ""]
    assert behind.rows() == [LOADED, FIRST, THIRD]
    assert "Blocked" not in behind.item()


def test_a_bad_file_that_was_put_right_after_the_listing_is_taken_by_the_next_run(
    behind: WorkTable, after_listing: AfterListing, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The block is by what was read, not by what stands there when it is written."""
    name = cdc_names(behind)[1]
    behind.put_raw(name, b"no Parquet")
    listed: list[int] = []
    real = intake.list_raw

    def list_raw(*given: Any) -> Any:
        listed.append(1)
        if len(listed) == 2:  # what the block is signed by
            behind.cdc([("I", THIRD)], name=name)
        return real(*given)

    monkeypatch.setattr(intake, "list_raw", list_raw)

    codes = [code(behind, batch_files=1), code(behind)]

    assert codes == ["bad-raw-file", ""]
    assert behind.rows() == [LOADED, FIRST, THIRD]
