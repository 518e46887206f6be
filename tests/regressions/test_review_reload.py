"""A load over which files are gone, or which is younger than some: nothing is applied over a gap, and nothing older over the load."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import nullcontext
from datetime import datetime, timedelta, timezone
from typing import Any

import pytest

from controller.gather import read_files
from glue_jobs.aws.objects import list_files
from glue_jobs.core.actions import Stopped, TakeLoad
from glue_jobs.core.intake import plan_table
from glue_jobs.core.limits import Limits
from glue_jobs.core.state import read_state
from glue_jobs.core.work import Work
from glue_jobs.protocol.commit import make_record
from infra.local.dms_files import DmsRow, cdc_file_name
from tests.core.tables import cdc, cursor, loaded, state_of
from tests.lake import START
from tests.spark.tables import WorkTable
from tests.work_tables import MakeTable

NONE_IS_LATE = {"LateWindowHours": "0", "LoadQuietMinutes": "0"}  # what was applied is forgotten at once


def named_after_now(minutes: float) -> str:
    return cdc_file_name(datetime.now(timezone.utc) + timedelta(minutes=minutes))


@pytest.fixture
def make(new_table: MakeTable) -> Callable[[], WorkTable]:
    """Makes tables of two load files and four changes, one CDC file each: the rows 1 to 6."""

    def made() -> WorkTable:
        table = new_table()
        table.edit(**NONE_IS_LATE)
        for number in (1, 2):
            table.load([(number, "loaded", 0)], number=number)
        for number in range(3, 7):
            table.cdc([("I", (number, "inserted", 0))], name=named_after_now(number))
        table.sync(batch_files="1")
        return table

    return made


def raw_names(table: WorkTable) -> list[str]:
    """CDC files first, in their order."""
    return [file.base for file in list_files(table.clients.s3, table.path.bucket, table.path.raw.key)]


@pytest.mark.parametrize("place", range(6))
@pytest.mark.parametrize("word", [{"Request": "reload"}, {"LastFullLoadDate": "1900-01-01 00:00:00"}])
def test_a_reload_of_the_same_load_takes_all_of_it_or_nothing(make: Callable[[], WorkTable], place: int, word: dict[str, str]) -> None:
    """Any of its files may have expired, or have been cleaned away, also one that the snapshot remembers no more."""
    table = make()
    rows, head, gone = table.rows(), table.item()["Head"], raw_names(table)[place]
    table.delete_raw(gone)
    table.edit(**word)

    error = table.blocked()

    assert error["code"] == "reload-without-file"
    assert gone in error["message"]
    assert (table.rows(), table.item()["Head"]) == (rows, head)


def test_a_block_for_want_of_a_file_is_not_looked_at_again_for_each_new_one(make: Callable[[], WorkTable]) -> None:
    """Only a job knows of files of long ago: the controller would start one each time."""
    table = make()
    gone = raw_names(table)[0]
    data = table.clients.s3.get_object(Bucket="raw", Key=table.path.raw.key + gone)["Body"].read()
    table.delete_raw(gone)
    table.edit(Request="reload")
    assert table.blocked()["code"] == "reload-without-file"

    def planned() -> object:
        state = read_state(table.item())
        return plan_table(state, *read_files(table.clients.s3, state, Limits()), datetime.now(timezone.utc), Limits())

    table.cdc([("I", (9, "inserted", 0))], name=named_after_now(60))
    later = planned()
    table.put_raw(gone, data)

    assert isinstance(later, Stopped)
    assert (later.known, isinstance(planned(), TakeLoad)) == (True, True)


def test_a_reload_without_a_file_that_is_back_or_left_out(make: Callable[[], WorkTable]) -> None:
    """By its bytes, or by a person's word."""
    table = make()
    rows, (back, out) = table.rows(), raw_names(table)[:2]
    data = {name: table.clients.s3.get_object(Bucket="raw", Key=table.path.raw.key + name)["Body"].read() for name in (back, out)}
    for name in data:
        table.delete_raw(name)
    table.edit(Request="reload")
    assert table.blocked()["code"] == "reload-without-file"

    table.put_raw(back, data[back])
    table.edit(SkipFiles=out)
    table.sync()

    assert table.head().kind == "incremental"
    assert table.rows() == [row for row in rows if row[0] != 4]
    assert "Request" not in table.item()


@pytest.mark.parametrize("second", [-700, 5])
def test_a_reload_of_the_same_load_needs_what_was_written_since_its_first_row(new_table: MakeTable, second: int) -> None:
    """Its commit times tell which CDC files that are: here all of them are years older than the load file."""
    table = new_table(timestamp_column="ts")
    table.edit(LoadQuietMinutes="0")
    table.put_raw("LOAD00000001.parquet", table.parquet([DmsRow("I", (1, "loaded", 0), START)]))
    names = [cdc_file_name(START + timedelta(seconds=at)) for at in sorted((second, 9))]
    for name in names:
        table.put_raw(name, table.parquet([DmsRow("I", (int(name[9:15]), name, 0), START)]))
    table.sync()
    table.delete_raw(names[0])
    table.edit(Request="reload")

    if second > 0:
        assert table.blocked()["code"] == "reload-without-file"
    else:
        table.sync()
        assert len(table.rows()) == 2


def test_a_load_that_was_put_back_keeps_its_changes(new_table: MakeTable) -> None:
    """All its files are younger than the CDC files then; also the next time."""
    table = new_table()
    table.edit(LoadQuietMinutes="0")
    load = table.parquet([("I", (1, "loaded", 0))])
    table.put_raw("LOAD00000001.parquet", load)
    table.cdc([("I", (2, "inserted", 0))], name=named_after_now(1 / 60))
    table.sync()
    time.sleep(3)
    table.put_raw("LOAD00000001.parquet", load)

    for _ in range(2):
        table.edit(Request="reload")
        table.sync(load_start_margin_minutes="0")
        assert [row[0] for row in table.rows()] == [1, 2]


@pytest.mark.parametrize("place", range(3))
def test_a_cursor_moved_far_back_finds_every_gap(make: Callable[[], WorkTable], place: int) -> None:
    """Only the last file is remembered; what the others were is in the change records."""
    table = make()
    rows, names = table.rows(), raw_names(table)[:4]
    table.delete_raw(names[place])
    table.edit(LastIncrementalFile=str(table.path) + "0.parquet")

    error = table.blocked()

    assert error["code"] == "replay-without-file"
    assert names[place] in error["message"]
    table.edit(SkipFiles=names[place])
    table.sync(batch_files="2")
    assert table.rows() == rows
    assert table.item()["LastIncrementalFile"] == str(table.path) + names[3]


@pytest.mark.parametrize("place", range(4))
def test_a_file_that_vanishes_between_a_reload_and_its_batches_is_missed(make: Callable[[], WorkTable], place: int) -> None:
    """Only the load was done yet, and the snapshot had forgotten all but the last file."""
    table = make()
    rows, name = table.rows(), raw_names(table)[place]
    data = table.clients.s3.get_object(Bucket="raw", Key=table.path.raw.key + name)["Body"].read()
    table.edit(Request="reload")
    assert table.run("LoadInitial") == 0
    assert [key.rsplit("/", 1)[-1] for key in table.snapshot().awaited] == raw_names(table)[:4]
    table.delete_raw(name)

    error = table.blocked(batch_files="1")

    assert error["code"] == "awaited-file-gone"
    assert name in error["message"]
    assert [row[0] for row in table.rows()] == [1, 2]
    table.put_raw(name, data)
    table.sync(batch_files="1")
    assert (table.rows(), table.snapshot().awaited) == (rows, {})


def test_a_file_that_vanishes_while_a_moved_cursor_catches_up_is_missed(make: Callable[[], WorkTable]) -> None:
    """A corrected one in its place is taken: that is why a person moves the cursor back."""
    table = make()
    names = raw_names(table)[:4]
    table.put_raw(names[2], b"damaged")
    table.edit(LastIncrementalFile=str(table.path) + "0.parquet")
    assert table.blocked(batch_files="2")["code"] == "bad-raw-file"
    assert table.item()["LastIncrementalFile"] == str(table.path) + names[1]
    table.delete_raw(names[2])

    error = table.blocked()

    assert error["code"] == "awaited-file-gone"
    assert names[2] in error["message"]
    table.put_raw(names[2], table.parquet([("I", (5, "corrected", 0))]))
    table.sync()
    assert [row[1] for row in table.rows()] == ["loaded"] * 2 + ["inserted"] * 2 + ["corrected", "inserted"]
    assert table.snapshot().awaited == {}


def test_what_was_left_out_for_good_stays_out_of_a_reload_however_old_it_is(make: Callable[[], WorkTable]) -> None:
    """A person moved the cursor over it; nothing of so long ago is remembered of applied files."""
    table = make()
    out, after, later = (named_after_now(minutes) for minutes in (10, 20, 30))
    for number, name in ((10, out), (11, after)):
        table.cdc([("I", (number, "inserted", 0))], name=name)
    table.edit(LastIncrementalFile=str(table.path) + out)
    table.sync()
    table.cdc([("I", (12, "inserted", 0))], name=later)
    table.sync()
    rows = table.rows()
    table.edit(Request="reload")

    table.sync()

    assert sorted(row[0] for row in table.rows()) == [1, 2, 3, 4, 5, 6, 11, 12]
    assert table.rows() == rows


def test_a_file_is_left_out_only_while_its_name_is_among_those(make: Callable[[], WorkTable]) -> None:
    """A batch before it was applied meanwhile."""
    table = make()
    names = [named_after_now(minutes) for minutes in (10, 20, 30)]
    for number, name in enumerate(names):
        table.cdc([("I", (10 + number, "inserted", 0))], name=name)
    table.edit(SkipFiles=names[2])
    assert table.run(batch_files="1") == 0
    table.edit(SkipFiles="null")

    table.sync()

    assert sorted(row[0] for row in table.rows()) == [*range(1, 7), 10, 11, 12]


def test_a_load_file_that_no_load_was_made_without_is_left_out_once(make: Callable[[], WorkTable]) -> None:
    """The next batch notes which file its name means; the next load of DMS has another one."""
    table = make()
    table.load([(7, "damaged", 0)], number=3)
    table.edit(SkipFiles="LOAD00000003.parquet")
    table.cdc([("I", (8, "inserted", 0))], name=named_after_now(10))
    table.sync()
    assert [row[0] for row in table.rows()] == [*range(1, 7), 8]

    def loaded_rows() -> list[str]:
        return [row[1] for row in table.rows() if row[0] in (1, 2, 7)]

    for text in ("second", "third"):
        for number, key in ((1, 1), (2, 2), (3, 7)):
            table.load([(key, text, 0)], number=number)
        table.sync()
        assert loaded_rows() == [text] * 3

    table.edit(Request="reload")
    table.sync()
    assert loaded_rows() == ["third"] * 3


def test_a_load_that_is_known_in_part_is_missed_a_change(make: Callable[[], WorkTable]) -> None:
    """One of its files is corrected; a change from weeks ago has expired."""
    table = make()
    rows, gone = table.rows(), raw_names(table)[1]
    data = table.clients.s3.get_object(Bucket="raw", Key=table.path.raw.key + gone)["Body"].read()
    table.delete_raw(gone)
    table.put_raw("LOAD00000002.parquet", table.parquet([("I", (2, "corrected", 0))]))

    error = table.blocked()

    assert (error["code"], gone in error["message"], table.rows()) == ("reload-without-file", True, rows)
    table.put_raw(gone, data)
    table.sync()
    assert [row[:2] for row in table.rows()] == [(row[0], "corrected" if row[0] == 2 else row[1]) for row in rows]


@pytest.mark.parametrize("is_copy", [True, False])
def test_a_folder_that_is_written_anew_loses_no_change(new_table: MakeTable, is_copy: bool) -> None:
    """Its files are younger than their names, as after an encryption in place; only a person knows whether DMS loaded the table."""
    table = new_table()
    table.edit(LoadQuietMinutes="0", LateWindowHours="0")
    names = [cdc_file_name(START + timedelta(days=day)) for day in (1, 2)]
    loads = ["LOAD00000001.parquet", "LOAD00000002.parquet"]

    def write(times: int) -> None:
        for number, (name, load) in enumerate(zip(names, loads, strict=True), start=1):
            table.put_raw(name, table.parquet([("U", (number, "changed", 0))] * times))
            table.put_raw(load, table.parquet([("I", (number, "loaded", 0))] * times))

    write(times=1)
    table.sync()
    rows = table.rows()
    write(times=2)

    error = table.blocked()

    assert (error["code"], names[-1] in error["message"]) == ("reload-unclear", True)
    assert table.rows() == rows == [(1, "changed", 0), (2, "changed", 0)]
    table.edit(**({"SkipFiles": ",".join(loads)} if is_copy else {"Request": "reload"}))
    table.sync()
    assert table.rows() == (rows if is_copy else [(1, "loaded", 0), (2, "loaded", 0)])


def test_a_file_that_was_written_again_is_not_inserted_twice(new_table: MakeTable) -> None:
    """Without a primary key nothing tells that its rows are there."""
    table = new_table()
    table.edit(PrimaryKey="null")
    table.load([(1, "loaded", 0)])
    name = table.next_name()
    table.cdc([("I", (2, "inserted", 0))], name=name)
    table.sync()
    table.put_raw(name, table.parquet([("I", (2, "inserted", 0)), ("U", (7, "no row", 0))]))

    error = table.blocked()

    assert (error["code"], name in error["message"], len(table.rows())) == ("file-written-again", True, 2)
    table.edit(SkipFiles=name)
    table.cdc([("I", (3, "inserted", 0))])
    table.sync()
    assert [row[0] for row in table.rows()] == [1, 2, 3]


def test_a_copied_file_whose_name_is_no_longer_skipped_is_in_a_reload(new_table: MakeTable) -> None:
    """Its rows were in the table all the time."""
    table = new_table()
    table.edit(PrimaryKey="null", LoadQuietMinutes="0")
    table.load([(1, "loaded", 0)])
    names = [named_after_now(minutes) for minutes in (5, 10, 20)]
    for number, name in enumerate(names[:2]):
        table.cdc([("I", (2 + number, "inserted", 0))], name=name)
    table.sync()
    table.put_raw(names[0], table.parquet([("I", (2, "inserted", 0)), ("U", (7, "no row", 0))]))
    assert table.blocked()["code"] == "file-written-again"
    table.edit(SkipFiles=names[0])
    table.cdc([("I", (4, "inserted", 0))], name=names[2])
    table.sync()
    table.edit(SkipFiles="null", Request="reload")

    table.sync()

    assert sorted(row[0] for row in table.rows()) == [1, 2, 3, 4]


@pytest.mark.parametrize(("column", "left_out"), [("ts", True), (None, False)])
def test_a_first_load_goes_on_from_its_own_commit_times(new_table: MakeTable, column: str | None, left_out: bool) -> None:
    """DMS loaded the table again before anybody read it, and left the CDC files of before: they would put old rows in the place of the
    load's. Without commit times nothing tells them apart: a file's own time is that of a copy, where the raw folder was copied."""
    table = new_table(timestamp_column=column)

    def put(name: str, *rows: Any, days: float) -> None:
        table.put_raw(name, table.parquet([DmsRow(op, row, START + timedelta(days=days)) for op, row in rows]))

    for days in (-9, -5):
        put(cdc_file_name(START + timedelta(days=days)), ("U", (1, f"old {days}", 0)), ("I", (9, "gone since", 0)), days=days)
    put("LOAD00000001.parquet", ("I", (1, "loaded", 0)), ("I", (2, "loaded", 0)), days=0)
    put(cdc_file_name(START - timedelta(minutes=5)), ("U", (2, "within the margin", 0)), days=0)
    put(cdc_file_name(START + timedelta(days=1)), ("I", (3, "new", 0)), days=1)

    table.sync()

    found = {row[-3]: row[-2] for row in table.rows()}
    assert found == ({} if left_out else {9: "gone since"}) | {1: "loaded" if left_out else "old -5", 2: "within the margin", 3: "new"}
    assert table.head().generation.cdc_from == ("20240501115000" if left_out else "")


@pytest.mark.parametrize(
    ("at", "after", "refused"), [(9, 8, True), (9, 0, True), (9, 9, False), (9, 10, False), (0, 0, False), (0, 1, False)]
)
def test_no_record_says_that_a_batch_moved_the_cursor_back(at: int, after: int, refused: bool) -> None:
    """From where the item has it, which is a person's to move: what lies beyond would be applied again."""
    snapshot = loaded([cdc(12)], at=12)
    work = Work("incremental", snapshot.schema, ("id",), (), snapshot.generation, cursor_after=cursor(after) if after else "")
    state = state_of(snapshot, LastIncrementalFile=cursor(at) if at else "0.parquet")

    with pytest.raises(AssertionError, match="move the cursor back") if refused else nullcontext():
        make_record(state, snapshot, work, "0000000002-000001-0000000b", now=START, run_id="", window_hours=24)
