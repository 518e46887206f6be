"""What is planned for one table: every situation and the action it asks for."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta, timezone
from typing import Any

import pytest

from glue_jobs.core.actions import Finish, Rest, Rewrite, Stopped, TakeBatch, TakeLoad
from glue_jobs.core.errors import TableBlocked
from glue_jobs.core.intake import blocked_by, mark_of, plan_table, signature
from glue_jobs.core.limits import Limits
from glue_jobs.core.load_plan import looks_back, written_at
from glue_jobs.core.paths import TablePath
from glue_jobs.core.raw_names import RawFile
from glue_jobs.core.record import Generation
from glue_jobs.core.snapshot import Snapshot
from glue_jobs.core.work import input_of
from tests.core.tables import (
    FOLDER,
    LOADED_AT,
    NOW,
    OLD,
    cdc,
    cdc_key,
    cursor,
    item_of,
    listing_of,
    load,
    loaded,
    named,
    plan,
    state_of,
    taken,
)  # fmt: skip

NEW = Snapshot()
FRESH = NOW - timedelta(minutes=5)


def stopped(action: object) -> str:
    assert isinstance(action, Stopped), action
    return action.by.code


def rest(action: object) -> str:
    assert isinstance(action, Rest), action
    return action.code


# --- before anything is decided by files


@pytest.mark.parametrize("edits", [{}, {"ActiveFlag": "false"}, {"Paused": "since the rollback"}, {"PrimaryKey": "other"}])
def test_an_unfinished_publish_comes_before_everything(edits: dict[str, Any]) -> None:
    """Readers see half a change, so idle and paused tables are finished too."""
    assert isinstance(plan(loaded(), load(), Publishing="x", **edits), Finish)


@pytest.mark.parametrize("edits", [{}, {"ActiveFlag": "false"}, {"Paused": "since the rollback"}])
def test_an_unfinished_catalog_step_comes_next(edits: dict[str, Any]) -> None:
    """Also for tables that take no files."""
    assert isinstance(plan(loaded(), load(), CatalogPending="x", **edits), Finish)


@pytest.mark.parametrize(("edits", "code"), [({"ActiveFlag": "false"}, "inactive"), ({"Paused": "since the rollback"}, "paused")])
def test_a_table_that_a_person_holds_rests(edits: dict[str, Any], code: str) -> None:
    """Whatever is pending, reloads and requests included."""
    assert rest(plan(loaded(), load(2), cdc(1), Request="reload", **edits)) == code


def test_an_inactive_table_says_how_to_activate_it() -> None:
    """With its path."""
    action = plan(NEW, load(), ActiveFlag="false")

    assert isinstance(action, Rest)
    assert "dmslake activate raw/dms/sales/orders/" in action.reason


# --- loads


def test_a_new_table_is_loaded_from_all_its_load_files() -> None:
    """In the order of their hexadecimal counters, as found: no waiting."""
    files = (load(10), load(9, modified=NOW))

    action = plan(NEW, *files, cdc(1))

    assert action == TakeLoad((files[1], files[0]), False, "the first load")


def test_a_new_table_without_any_file_rests() -> None:
    """DMS has not written yet."""
    assert rest(plan(NEW)) == "no-files"


def test_a_table_with_only_cdc_files_is_made_from_them() -> None:
    """All of them."""
    assert plan(NEW, cdc(1), cdc(2)) == TakeBatch((cdc(1), cdc(2)))


@pytest.mark.parametrize("file", [load(2), load(1, etag="other")])
def test_a_load_file_that_appears_or_changes_is_a_reload(file: RawFile) -> None:
    """Before any pending CDC file."""
    files = {one.key: one for one in (load(), file, cdc(5))}

    action = plan(loaded([cdc(1)], at=1), *files.values())

    assert isinstance(action, TakeLoad)
    assert (action.reload, [one.base for one in action.files]) == (True, sorted({load().base, file.base}))


def test_a_load_file_that_vanishes_is_no_reload() -> None:
    """People expire raw files."""
    assert rest(plan(loaded(loads=[load(1), load(2)]), load(1))) == "up-to-date"


def test_a_reload_waits_while_it_may_be_half() -> None:
    """Its newest load file is young, and nothing tells that DMS went on to CDC."""
    action = plan(loaded([cdc(1)], at=1), load(1), load(2, modified=FRESH), cdc(5, modified=OLD))

    assert rest(action) == "reload-waits"


def left_out(*files: RawFile) -> Snapshot:
    """Of a load that these files were left out of."""
    snapshot = loaded(loads=[load(1)])
    return replace(snapshot, generation=replace(snapshot.generation, left_out=tuple(map(taken, files))))


def test_a_name_is_left_out_of_one_load_however_many_follow() -> None:
    """Also where no load followed the word: the next batch notes which file it meant."""
    skips = {"SkipFiles": load(2).base}
    noted = plan(loaded(), load(1), load(2), cdc(9), **skips)
    assert isinstance(noted, TakeBatch)
    assert noted.left_out == (input_of(load(2)),)
    snapshot = replace(loaded(), generation=Generation(1, (taken(load(1)),), left_out=noted.left_out))

    for etag in ("second", "third"):
        anew = (load(1, etag=etag), load(2, etag=etag))
        action = plan(snapshot, *anew, **skips)
        assert isinstance(action, TakeLoad)
        assert action.files == anew
        snapshot = replace(snapshot, generation=Generation(2, tuple(map(taken, anew)), left_out=action.left_out))
        assert reloaded(*anew, snapshot=snapshot, **skips) == TakeLoad(anew, True, "a person asked for it", left_out=noted.left_out)

    assert stopped(reloaded(anew[0], snapshot=snapshot, **skips)) == "reload-without-file", "the file that was taken is missed"
    assert plan(snapshot, *anew, load(3)) == TakeLoad((*anew, load(3)), True, f"1 load file(s) are new or changed, first {load(3).base}")


def test_a_name_that_is_left_out_means_the_file_as_it_was() -> None:
    """DMS gives the same names to each load: a damaged file of one load takes no rows from the next."""
    bad, new = load(2), load(2, etag="anew")
    skips = {"SkipFiles": bad.base}

    first = plan(NEW, load(1), bad, **skips)
    again = plan(left_out(bad), load(1, etag="anew"), new, **skips)

    assert first == TakeLoad((load(1),), False, "the first load", left_out=(input_of(bad),))
    assert rest(plan(left_out(bad), load(1), bad, **skips)) == "up-to-date"
    assert isinstance(again, TakeLoad)
    assert (again.files, again.left_out) == ((load(1, etag="anew"), new), (taken(bad),))
    assert isinstance(plan(left_out(bad), load(1), new, **skips), TakeLoad)


def test_a_key_that_is_left_out_means_whatever_stands_there() -> None:
    """So that a load of which the same file is damaged again can be taken."""
    action = plan(left_out(load(2)), load(1, etag="anew"), load(2, etag="anew"), SkipFiles=f"{load(2).base},{load(2).key}")

    assert isinstance(action, TakeLoad)
    assert (action.files, action.left_out) == ((load(1, etag="anew"),), (taken(load(2)),))


def test_another_load_takes_the_place_of_one_that_was_undone() -> None:
    """It may have fewer files. One of which a file is there as it was needs all of them."""
    both = {file.key: taken(file) for file in (load(1), load(2))}
    emptied = Snapshot(change="0000000002-000001-aaaaaaaa", awaited=both)

    assert isinstance(plan(emptied, load(1, etag="anew")), TakeLoad)
    assert stopped(plan(emptied, load(1))) == "awaited-file-gone"


@pytest.mark.parametrize("blank", [False, True])
def test_changes_of_other_tables_do_not_end_the_wait(blank: bool) -> None:
    """Transaction files are shared: one that follows the load says nothing of this table."""
    files = [load(1), load(2, modified=FRESH), RawFile("raw/changes/CDC_TXN-20240501120500000.csv", 10, "e", NOW)]
    listing = replace(listing_of(*files[:2]), cdc=(files[2],), blank=frozenset({files[2].key} if blank else ()))

    action = plan_table(state_of(loaded()), loaded(), listing, NOW, Limits())

    assert rest(action) == "reload-waits"


@pytest.mark.parametrize(
    ("files", "edits", "limits"),
    [
        ((load(2, modified=FRESH), cdc(5, modified=NOW)), {}, {}),
        ((load(2, modified=NOW - timedelta(minutes=15)),), {}, {}),
        ((load(2, modified=FRESH),), {"LoadQuietMinutes": "5"}, {}),
        ((load(2, modified=FRESH),), {"LoadQuietMinutes": "0"}, {}),
        ((load(2, modified=FRESH),), {}, {"load_quiet_minutes": 5.0}),
    ],
)
def test_a_reload_begins_when_cdc_follows_or_it_is_quiet(files: tuple[RawFile, ...], edits: dict[str, Any], limits: dict[str, Any]) -> None:
    """The table's own quiet time wins over the setting, zero included."""
    assert isinstance(plan(loaded(), load(1), *files, limits=limits, **edits), TakeLoad)


@pytest.mark.parametrize("edits", [{"Request": "reload"}, {"LastFullLoadDate": "2024-04-30"}, {"LastFullLoadDate": "null"}])
def test_a_person_may_ask_for_a_reload(edits: dict[str, Any]) -> None:
    """By request, or by setting the load date back, as users of the AWS sample do."""
    action = plan(loaded([cdc(LATER)], at=LATER), load(), cdc(LATER), cdc(LATER + 1), **edits)

    assert action == TakeLoad((load(),), True, "a person asked for it")


def test_a_later_load_date_asks_for_nothing() -> None:
    """Only an earlier one means: again."""
    assert rest(plan(loaded(), load(), LastFullLoadDate="2024-06-01")) == "up-to-date"


@pytest.mark.parametrize("snapshot", [NEW, loaded(loads=[])])
def test_a_reload_without_load_files_is_refused(snapshot: Snapshot) -> None:
    """Never an empty table."""
    assert stopped(plan(snapshot, cdc(1), Request="reload")) == "no-load-files"


@pytest.mark.parametrize("loads", [1, 3])
def test_a_reload_waits_beside_a_task_of_changes(loads: int) -> None:
    """One task loads, another one goes on bringing changes: that a CDC file follows says nothing. It shows by one that was open when a load
    file was written; a copied one tells nothing, and when it is quiet the load is taken."""
    files = [load(number, etag="new", modified=FRESH + timedelta(minutes=number)) for number in range(1, loads + 1)]
    newest = files[-1].modified

    def written(begun: timedelta, modified: datetime) -> RawFile:
        return RawFile(f"{FOLDER}{newest + begun:%Y%m%d-%H%M%S}000.parquet", 10, "e", modified)

    second, hour = timedelta(seconds=1), timedelta(hours=1)
    follows = written(second, newest + 30 * second)
    beside = written(-30 * second, newest + second)
    copied = written(-2 * hour, newest + second)

    assert isinstance(plan(loaded(), *files, follows), TakeLoad)
    assert isinstance(plan(loaded(), *files, copied, follows), TakeLoad)
    assert rest(plan(loaded(), *files, beside, follows)) == "reload-waits"
    assert rest(plan(loaded(), *files, beside)) == "reload-waits"
    assert isinstance(plan(loaded(), *files, beside, follows, now=newest + timedelta(minutes=15)), TakeLoad)


LATER = 60 * 31  # minutes: named an hour after the load's files were written
TWO = [load(1), load(2)]


@pytest.mark.parametrize(("minutes", "copied"), [(-10, True), (-11, False)])
@pytest.mark.parametrize(("name", "is_old"), [(1, True), (LATER - 120, False)])
def test_a_copied_folder_is_told_by_changes_as_young_as_the_load(minutes: int, copied: bool, name: int, is_old: bool) -> None:
    """Their names are older by more than an hour. One that the table has not tells nothing: DMS leaves those of before."""
    young = cdc(name)._replace(modified=OLD + timedelta(minutes=minutes))
    other = cdc(2)._replace(modified=OLD)

    files = (load(etag="new"), young, other)

    action = plan(loaded([young], at=name), *files)

    assert isinstance(action, Stopped if copied and is_old else TakeLoad)
    assert not isinstance(action, Stopped) or action.by.code == "reload-unclear"
    assert isinstance(plan(loaded([young], at=name), *files, Request="reload"), TakeLoad)
    assert isinstance(plan(loaded([young], at=name, timestamp_column="ts"), *files), TakeLoad)


def test_of_a_load_that_is_known_in_part_no_change_may_be_gone() -> None:
    """One of its files was put back, corrected, or is no longer left out: the others are as they were. DMS would have written them anew,
    if with the same bytes."""
    snapshot = loaded([cdc(LATER), cdc(LATER + 1)], at=LATER + 1, loads=TWO)
    snapshot = replace(snapshot, generation=replace(snapshot.generation, loads=tuple(map(input_of, TWO))))
    anew = OLD + timedelta(hours=4)

    assert isinstance(plan(snapshot, load(1), load(2, etag="new"), cdc(LATER), cdc(LATER + 1)), TakeLoad)
    for second in (load(2, etag="new"), load(3)):
        assert stopped(plan(snapshot, load(1), second, cdc(LATER + 1))) == "reload-without-file"
    three = replace(snapshot, generation=replace(snapshot.generation, loads=tuple(map(input_of, (*TWO, load(3))))))
    assert stopped(plan(three, load(1), load(2, etag="new"), cdc(LATER), cdc(LATER + 1))) == "reload-without-file"
    assert isinstance(plan(snapshot, load(1, modified=anew), load(2, etag="new", modified=anew), cdc(LATER + 1)), TakeLoad)


def reloaded(*files: RawFile, snapshot: Snapshot | None = None, **edits: Any) -> object:
    """What is planned where the load files 1 and 2 and then three CDC files were applied, and a reload is asked for."""
    applied = [cdc(LATER + number) for number in range(3)]
    return plan(snapshot or loaded(applied, at=LATER + 2, loads=TWO), *files, **{"Request": "reload", **edits})


@pytest.mark.parametrize(
    ("files", "first"),
    [
        ((load(1), *map(cdc, range(LATER, LATER + 3))), load(2)),
        ((*TWO, cdc(LATER), cdc(LATER + 2)), cdc(LATER + 1)),
    ],
    ids=["load", "cdc"],
)
@pytest.mark.parametrize("edits", [{}, {"Request": "null", "LastFullLoadDate": "2024-04-30"}])
def test_a_reload_of_the_same_load_needs_all_its_files(files: tuple[RawFile, ...], first: RawFile, edits: dict[str, Any]) -> None:
    """Half a load, or a load with a gap in what came after it, would be rows lost."""
    action = reloaded(*files, **edits)

    assert stopped(action) == "reload-without-file"
    assert isinstance(action, Stopped)
    assert first.key in action.by.message
    assert ("--skip-file" in action.by.todo) == (first not in TWO)
    assert ("LastFullLoadDate to 2024-05-01" if edits else "attribute Request") in action.by.todo


def test_a_reload_of_the_same_load_needs_what_a_rollback_made_pending() -> None:
    """It will not bring what the awaited file has."""
    snapshot = loaded([cdc(LATER)], at=LATER, loads=TWO, awaited={cdc_key(LATER + 1): taken(cdc(LATER + 1))})

    assert stopped(reloaded(*TWO, cdc(LATER), cdc(LATER + 2), snapshot=snapshot)) == "reload-without-file"
    assert isinstance(reloaded(*TWO, *map(cdc, range(LATER, LATER + 3)), snapshot=snapshot), TakeLoad)


def test_a_person_may_reload_without_a_file() -> None:
    """By its name, and no other one."""
    files = (*TWO, cdc(LATER), cdc(LATER + 2))

    assert isinstance(reloaded(*files, SkipFiles=cdc(LATER + 1).base), TakeLoad)
    assert stopped(reloaded(*files, SkipFiles=cdc(LATER).base)) == "reload-without-file"


@pytest.mark.parametrize("files", [(load(1, etag="anew"),), (*TWO, load(3))])
def test_a_reload_of_a_newer_load_needs_no_file_of_the_old_one(files: tuple[RawFile, ...]) -> None:
    """DMS deletes them."""
    action = reloaded(*files)

    assert isinstance(action, TakeLoad)
    assert not action.gone


def test_which_files_from_before_the_loads_own_belong_to_it_is_left_to_the_load() -> None:
    """Its least commit time tells, and is not read for a plan."""
    snapshot = loaded([cdc(1), cdc(LATER)], at=LATER, loads=TWO)

    assert reloaded(*TWO, cdc(LATER), snapshot=snapshot) == TakeLoad(tuple(TWO), True, "a person asked for it", (taken(cdc(1)),))


def test_a_load_file_that_was_put_back_is_as_old_as_it_was() -> None:
    """Or else the CDC files from before it was put back would not belong to it."""
    known = replace(taken(load()), modified="2024-04-30T12:00:00Z")
    snapshot = loaded(generation=Generation(1, (known,)))
    back = [load(modified=NOW)]

    found = [written_at(snapshot, back), written_at(snapshot, [load(modified=NOW, etag="anew")]), written_at(loaded(), back)]

    assert found == [datetime(2024, 4, 30, 12, tzinfo=timezone.utc), NOW, NOW]


@pytest.mark.parametrize(
    ("edits", "files", "expected"),
    [
        ({}, [load()], False),
        ({"Request": "reload"}, [load()], True),
        ({"Request": "reload"}, [load(etag="anew")], False),
        ({"Request": "reload", "SkipFiles": load(2).base}, [load(), load(2)], True),
        ({"LastIncrementalFile": cursor(6)}, [load()], False),
        ({"LastIncrementalFile": cursor(4)}, [load()], True),
        ({"LastIncrementalFile": "0.parquet"}, [load()], True),
    ],
)
def test_only_what_a_person_asks_for_looks_back_beyond_the_snapshot(edits: dict[str, Any], files: list[RawFile], expected: bool) -> None:
    """And only where the snapshot has left something out."""
    snapshot = loaded([cdc(9)], at=9, known_from="20240501000500")

    assert looks_back(state_of(snapshot, **edits), snapshot, listing_of(*files)) is expected
    assert not looks_back(state_of(snapshot, **edits), replace(snapshot, known_from=""), listing_of(*files))


def test_a_reload_of_the_same_load_takes_a_cdc_file_as_it_is_now() -> None:
    """It was corrected, or only copied."""
    assert isinstance(reloaded(*TWO, cdc(LATER), cdc(LATER + 1), cdc(LATER + 2, etag="anew")), TakeLoad)


def test_a_load_file_may_be_skipped() -> None:
    """By its name."""
    assert rest(plan(loaded(), load(1), load(2), SkipFiles=load(2).base)) == "up-to-date"


# --- an item of another program


@pytest.mark.parametrize("edits", [{"LastIncrementalFile": cursor(1)}, {"LastFullLoadDate": LOADED_AT}])
def test_another_programs_item_is_blocked(edits: dict[str, Any]) -> None:
    """The AWS sample's cursor says nothing about files that we wrote."""
    action = plan(NEW, load(), cdc(2), **edits)

    assert stopped(action) == "adopt-or-reload"
    assert isinstance(action, Stopped)
    assert "dmslake reload" in action.by.todo


def test_another_programs_table_is_loaded_anew_when_a_person_says_so() -> None:
    """As a first load."""
    action = plan(NEW, load(), LastIncrementalFile=cursor(1), Request="reload")

    assert isinstance(action, TakeLoad)
    assert not action.reload


def test_a_table_whose_only_load_was_taken_back_is_loaded_like_a_new_one() -> None:
    """Its uploads were lost before anybody saw them; its head is the change that says so, and its snapshot is empty."""
    empty = Snapshot(change="0000000002-000001-0000000b")

    action = plan(empty, load(modified=NOW), cdc(1), LastFullLoadDate=LOADED_AT, PartitionKey="region")

    assert action == TakeLoad((load(modified=NOW),), False, "the first load")


# --- batches


def test_pending_files_are_taken_in_the_order_of_writing() -> None:
    """Whatever the order of the listing."""
    assert plan(loaded([cdc(1)], at=1), load(), cdc(3), cdc(2), cdc(1)) == TakeBatch((cdc(2), cdc(3)))


def test_nothing_pending_is_rest() -> None:
    """Everything listed was applied."""
    assert rest(plan(loaded([cdc(1)], at=1), load(), cdc(1))) == "up-to-date"


@pytest.mark.parametrize("limits", [{"batch_files": 2}, {"batch_bytes": 20}, {"batch_bytes": 29}])
def test_a_backlog_is_taken_in_bounded_batches(limits: dict[str, Any]) -> None:
    """The rest is counted."""
    files = [cdc(number) for number in range(1, 6)]

    assert plan(loaded(), load(), *files, limits=limits) == TakeBatch((cdc(1), cdc(2)), remaining=3, remaining_bytes=30)


@pytest.mark.parametrize("limits", [{"batch_bytes": 5}, {"batch_files": 0}])
def test_a_batch_has_at_least_one_file(limits: dict[str, Any]) -> None:
    """One that is larger than the bound would never be taken."""
    assert plan(loaded(), load(), cdc(1), cdc(2), limits=limits) == TakeBatch((cdc(1),), remaining=1, remaining_bytes=10)


def test_files_before_a_reload_are_not_taken_again() -> None:
    """The new load holds what they said."""
    snapshot = loaded(generation=Generation(2, (taken(load()),), "20240501000300"))

    assert plan(snapshot, load(), cdc(2), cdc(3), cdc(4)) == TakeBatch((cdc(3), cdc(4)))


# --- late files


def test_a_late_file_is_ranked_with_all_that_came_after_it() -> None:
    """The files applied after it are its context; the cursor stays; new files wait."""
    snapshot = loaded([cdc(1), cdc(3), cdc(4)], at=4)

    expected = TakeBatch((cdc(2),), (cdc(3), cdc(4)), remaining=1, remaining_bytes=cdc(5).size, late=True)
    assert plan(snapshot, load(), *map(cdc, (1, 2, 3, 4, 5))) == expected


def test_late_files_are_no_more_than_a_change_takes() -> None:
    """Those of a whole window may be written anew at once. The rest is late still, and what is pending is not hidden by them."""
    snapshot = loaded([cdc(1), cdc(4)], at=4)
    files = (load(), *map(cdc, (1, 2, 3, 4, 5, 6)))

    first = plan(snapshot, *files, limits={"batch_files": 1})
    then = plan(loaded([cdc(1), cdc(2), cdc(4)], at=4), *files, limits={"batch_files": 1})

    size = cdc(5).size
    assert first == TakeBatch((cdc(2),), (cdc(4),), remaining=3, remaining_bytes=3 * size, late=True)
    assert then == TakeBatch((cdc(3),), (cdc(4),), remaining=2, remaining_bytes=2 * size, late=True)


def test_a_late_file_that_waits_was_applied_before_all_the_same() -> None:
    """Written anew, as by an encryption, those of a window are late, and what they brought is in the lake: an older file of the first
    change must not take it back."""
    snapshot = loaded([cdc(1), cdc(2), cdc(3), cdc(4)], at=4)
    files = (load(), cdc(1), cdc(2, etag="new"), cdc(3, etag="new"), cdc(4))

    action = plan(snapshot, *files, limits={"batch_files": 1})

    assert action == TakeBatch((files[2],), (files[3], files[4]), remaining=1, remaining_bytes=files[3].size, late=True)


def test_a_file_named_after_a_time_to_come_blocks() -> None:
    """As the cursor it would put all that comes until then behind it, unseen. A name in any zone is within a week of its file's time."""
    ahead = cdc(60 * 24 * 7)._replace(modified=named(0))
    action = plan(loaded(), load(), cdc(1), ahead._replace(modified=named(-1)))

    assert stopped(action) == "cdc-file-ahead"
    assert isinstance(action, Stopped)
    assert f"--skip-file {ahead.base}" in action.by.todo
    assert plan(loaded(), load(), cdc(1), ahead) == TakeBatch((cdc(1), ahead))
    assert isinstance(plan(loaded(), load(), cdc(1), ahead._replace(modified=named(-1)), SkipFiles=[ahead.base]), TakeBatch)


def test_a_file_that_was_written_again_is_late() -> None:
    """Another ETag is another file, and its old self is no context."""
    snapshot = loaded([cdc(1), cdc(2)], at=2)

    assert plan(snapshot, load(), cdc(1, etag="new"), cdc(2)) == TakeBatch((cdc(1, etag="new"),), (cdc(2),), late=True)


def test_a_file_before_the_window_is_left_to_verify() -> None:
    """24 hours behind the cursor."""
    at = 60 * 30
    snapshot = loaded([cdc(at)], at=at)

    assert rest(plan(snapshot, load(), cdc(60 * 6 - 1), cdc(at))) == "up-to-date"
    assert plan(snapshot, load(), cdc(60 * 6), cdc(at)) == TakeBatch((cdc(60 * 6),), (cdc(at),), late=True)


def test_the_tables_own_window_wins_over_the_setting() -> None:
    """Both ways."""
    at = 60 * 30
    files = (load(), cdc(60 * 25), cdc(at))
    snapshot = loaded([cdc(at)], at=at)

    assert isinstance(plan(snapshot, *files, limits={"late_window_hours": 1.0}, LateWindowHours="6"), TakeBatch)
    assert rest(plan(snapshot, *files, LateWindowHours="1")) == "up-to-date"


@pytest.mark.parametrize(("files", "found"), [((cdc(1),), "no such object"), ((cdc(1), cdc(2, etag="new")), "")])
def test_a_late_file_without_its_context_blocks(files: tuple[RawFile, ...], found: str) -> None:
    """Without it the late file could bring back a row that a later one removed. (A changed one is late itself.)"""
    action = plan(loaded([cdc(2)], at=2), load(), *files)

    if found:
        assert stopped(action) == "late-file-without-context"
        assert isinstance(action, Stopped)
        assert found in action.by.message
    else:
        assert action == TakeBatch((cdc(1), cdc(2, etag="new")), late=True)


def test_a_late_file_may_be_skipped() -> None:
    """And is, on the record, with the next batch."""
    snapshot = loaded([cdc(2)], at=2)

    assert rest(plan(snapshot, load(), cdc(1), SkipFiles=cdc(1).base)) == "up-to-date"
    assert plan(snapshot, load(), cdc(1), cdc(2), cdc(3), SkipFiles=cdc(1).key) == TakeBatch((cdc(3),), skipped=(cdc(1),))


# --- a person moves the cursor


def test_a_cursor_moved_on_skips_the_files_in_between() -> None:
    """On the record, with the next batch."""
    action = plan(loaded([cdc(1)], at=1), load(), *map(cdc, (1, 2, 3, 4)), LastIncrementalFile=cursor(3))

    assert action == TakeBatch((cdc(4),), skipped=(cdc(2), cdc(3)))


def test_skipped_files_stay_skipped() -> None:
    """They are not late."""
    snapshot = loaded([cdc(1), cdc(4)], at=4, skipped={file.key: taken(file) for file in (cdc(2), cdc(3))})

    assert rest(plan(snapshot, load(), *map(cdc, (1, 2, 3, 4)))) == "up-to-date"


def test_a_late_file_below_the_old_cursor_is_not_skipped_by_a_moved_one() -> None:
    """The person passed over what was pending, not over what nobody had seen."""
    action = plan(loaded([cdc(2)], at=2), load(), *map(cdc, (1, 2, 3, 4)), LastIncrementalFile=cursor(3))

    assert action == TakeBatch((cdc(1),), (cdc(2),), skipped=(cdc(3),), remaining=1, remaining_bytes=cdc(4).size, late=True)


def test_a_late_file_below_the_old_cursor_is_taken_however_far_the_cursor_is_moved() -> None:
    """After the batch it would be outside of every window, on no record."""
    far = 60 * 24 * 4
    action = plan(loaded([cdc(2)], at=2), load(), *map(cdc, (1, 2, 3, far)), LastIncrementalFile=cursor(far))

    assert action == TakeBatch((cdc(1),), (cdc(2),), skipped=(cdc(3), cdc(far)), late=True)


@pytest.mark.parametrize(("at", "to"), [(1, 2), (2, 1), (0, 1)])
def test_a_moved_cursor_brings_nothing_back_that_a_reload_leaves_out(at: int, to: int) -> None:
    """It lies beyond the cursor, which the reload began anew, and a person had it left out for good."""
    snapshot = loaded(list(map(cdc, range(1, at + 1))), at=at, skipped={cdc_key(4): taken(cdc(4))})

    action = plan(snapshot, load(), *map(cdc, range(1, 6)), LastIncrementalFile=cursor(to))

    assert isinstance(action, TakeBatch)
    assert [file for file in action.files if file.key > cdc_key(2)] == [cdc(3), cdc(5)]


def test_a_cursor_moved_back_without_a_key_blocks() -> None:
    """Nothing tells that the rows are there already. Of a file without one there is none."""
    snapshot = replace(loaded([cdc(1), cdc(2)], at=2), primary_key=())
    files = (load(), *map(cdc, (1, 2, 3)))

    action = plan(snapshot, *files, PrimaryKey="null", LastIncrementalFile=cursor(1))

    assert stopped(action) == "replay-without-key"
    assert isinstance(action, Stopped)
    assert (cdc(2).base in action.by.message, cursor(2) in action.by.todo) == (True, True)
    assert plan(snapshot, *files, PrimaryKey="null") == TakeBatch((cdc(3),))
    skipped = plan(snapshot, *files, PrimaryKey="null", LastIncrementalFile=cursor(1), SkipFiles=cdc(2).base)
    assert skipped == TakeBatch((cdc(3),))


@pytest.mark.parametrize(("back", "first"), [(cursor(1), 2), (f"{cursor(0).rsplit('/', 1)[0]}/0.parquet", 1)])
def test_a_cursor_moved_back_replays_what_follows_it(back: str, first: int) -> None:
    """Applied and skipped ones."""
    snapshot = loaded([cdc(1), cdc(3)], at=3, skipped={cdc_key(2): taken(cdc(2))})

    assert plan(snapshot, load(), *map(cdc, (1, 2, 3)), LastIncrementalFile=back) == TakeBatch(tuple(map(cdc, range(first, 4))))


def test_a_skip_named_by_the_item_survives_a_replay() -> None:
    """SkipFiles is a standing word."""
    snapshot = loaded([cdc(1), cdc(3)], at=3, skipped={cdc_key(2): taken(cdc(2))})

    action = plan(snapshot, load(), *map(cdc, (1, 2, 3)), LastIncrementalFile=cursor(1), SkipFiles=cdc(2).base)

    assert action == TakeBatch((cdc(3),))


# --- keys, partitions, requests


def test_a_changed_primary_key_is_a_rewrite() -> None:
    """Before any file is applied with it."""
    action = plan(loaded(), load(), cdc(1), PrimaryKey="id,line")

    assert action == Rewrite("rekey", "PrimaryKey was changed to id,line")


def test_a_changed_partition_key_blocks() -> None:
    """Layouts are never mixed; the way out stands in the block."""
    action = plan(loaded(), load(), cdc(1), PartitionKey="region")

    assert stopped(action) == "partition-key-changed"
    assert isinstance(action, Stopped)
    assert "dmslake repartition" in action.by.todo


@pytest.mark.parametrize(
    ("request_", "expected"),
    [
        ("repartition", Rewrite("repartition", "a person asked for the layout of PartitionKey")),
        ("schema-rename:a=b", Rewrite("schema", "rename a=b", "a=b")),
    ],
)
def test_a_person_may_ask_for_a_rewrite(request_: str, expected: Rewrite) -> None:
    """It comes before pending files."""
    assert plan(loaded(), load(), cdc(1), Request=request_, PartitionKey="region") == expected


@pytest.mark.parametrize(
    ("edits", "expected"),
    [
        ({"Request": "repartition"}, "repartition"),
        ({"Request": "schema-rename:a=b"}, "schema"),
        ({"PrimaryKey": "id,line"}, "rekey"),
        ({"PartitionKey": "id"}, "partition-key-changed"),
        ({"Paused": "wait", "Request": "repartition"}, "paused"),
        ({"Request": "reload"}, "no-source"),
        ({}, "no-source"),
    ],
)
@pytest.mark.parametrize("flag", ["true", "false"])
def test_a_table_without_source_does_what_a_person_asks_for(edits: dict[str, Any], expected: str, flag: str) -> None:
    """Whether it is active or not: nothing else is ever done for it, its raw folder is not looked at."""
    action = plan(loaded(), cdc(1), Source="none", ActiveFlag=flag, **edits)

    found = action.kind if isinstance(action, Rewrite) else action.code if isinstance(action, Rest) else stopped(action)
    assert found == expected
    assert not isinstance(action, Rest) or ("waits for ever" in action.reason) == (edits.get("Request") == "reload")


@pytest.mark.parametrize("request_", ["repartition", "schema-rename:a=b"])
def test_a_rewrite_of_nothing_is_no_rewrite(request_: str) -> None:
    """A table that was never loaded is loaded."""
    assert isinstance(plan(NEW, load(), Request=request_, PartitionKey="region"), TakeLoad)


def test_a_reload_takes_new_keys_and_partitions() -> None:
    """No rewrite first: everything is written anew."""
    assert isinstance(plan(loaded(), load(), Request="reload", PrimaryKey="id,line", PartitionKey="region"), TakeLoad)


# --- names, blocks


def test_a_foreign_raw_file_blocks_and_says_which() -> None:
    """Until it is gone or skipped by name."""
    strange = RawFile(FOLDER + "export.parquet", 1, "e", OLD)

    action = plan(NEW, load(), strange)

    assert stopped(action) == "foreign-raw-file"
    assert isinstance(action, Stopped)
    assert "export.parquet" in action.by.message
    assert isinstance(plan(NEW, load(), strange, SkipFiles="export.parquet"), TakeLoad)


STRANGE = RawFile(FOLDER + "export.parquet", 1, "e", OLD)


def blocked_item(*files: RawFile, **edits: Any) -> dict[str, Any]:
    """The item as it stands after a run was blocked on these files."""
    item = item_of(loaded(), **edits)
    action = plan(loaded(), *files, **edits)
    assert isinstance(action, Stopped)
    by = action.by
    return {**item, "Blocked": {"code": by.code, "message": by.message, "todo": by.todo, "signature": by.signature}}


def plan_item(item: dict[str, Any], *files: RawFile) -> Any:
    edits = {name: value for name, value in item.items() if name not in ("path", "bucket", "prefix", "folder")}
    return plan(loaded(), *files, **edits)


def test_a_block_is_not_tried_again_while_nothing_changed() -> None:
    """Also under another clock and with other program attributes."""
    item = {**blocked_item(load(), STRANGE), "LastRun": {"run_id": "r"}, "Fence": 9, "LeaseBeat": 3}

    action = plan_item(item, load(), STRANGE)

    assert isinstance(action, Stopped)
    assert action.known


@pytest.mark.parametrize(
    ("edits", "files"),
    [
        ({"SkipFiles": "export.parquet"}, (load(), STRANGE)),
        ({}, (load(),)),
        ({}, (load(), STRANGE, cdc(1))),
        ({}, (load(), RawFile(STRANGE.key, 1, "other", OLD))),
        ({"PrimaryKey": "x"}, (load(), STRANGE)),
        ({"Request": "reload"}, (load(), STRANGE)),
        ({"LastIncrementalFile": cursor(1)}, (load(), STRANGE)),
    ],
)
def test_a_block_is_tried_again_when_item_or_files_changed(edits: dict[str, Any], files: tuple[RawFile, ...]) -> None:
    """Any of it may be the way out."""
    action = plan_item({**blocked_item(load(), STRANGE), **edits}, *files)

    assert not (isinstance(action, Stopped) and action.known)


def test_a_persons_own_block_stays_until_the_person_lifts_it() -> None:
    """Whatever changes."""
    actions = [plan(loaded(), load(), *files, Blocked="waiting for Anna") for files in ((), (cdc(1),), (load(2),))]

    assert [isinstance(action, Stopped) and action.known for action in actions] == [True] * 3


def test_the_signature_does_not_depend_on_the_order_of_the_listing() -> None:
    """Two ways of listing are one state of affairs."""
    files = (load(1), load(2), cdc(1), cdc(2))

    state = state_of(loaded())

    assert signature(state, listing_of(*files)) == signature(state, listing_of(*reversed(files)))


def test_a_plan_is_the_same_for_every_caller() -> None:
    """Controller and job ask with the same values: no clock, no chance inside."""
    snapshot = loaded([cdc(1)], at=1)
    arguments = (state_of(snapshot), snapshot, listing_of(load(), cdc(2)), NOW, Limits())

    assert plan_table(*arguments) == plan_table(*arguments)
    assert str(arguments[0].path) == str(TablePath("raw", "dms/sales/", "orders/"))


# --- a load that is half there, or of which only a person knows what it is


def test_a_load_that_is_being_written_is_not_blocked() -> None:
    """Its other files are still those of the load before; CDC files of that one have expired."""
    snapshot = loaded([cdc(LATER), cdc(LATER + 1)], at=LATER + 1, loads=TWO)
    snapshot = replace(snapshot, generation=replace(snapshot.generation, loads=tuple(map(input_of, TWO))))

    assert rest(plan(snapshot, load(1, etag="anew", modified=FRESH), load(2), cdc(LATER + 1))) == "reload-waits"


@pytest.mark.parametrize("is_empty", [False, True])
def test_a_copied_folder_is_asked_about_also_where_its_changes_were_undone(is_empty: bool) -> None:
    """They are pending; the load alone would be all that the table has."""
    awaited = {item.key: item for item in map(taken, (cdc(1), cdc(2), *((load(),) if is_empty else ())))}
    snapshot = Snapshot(change="0000000002-000001-0000000b", awaited=awaited) if is_empty else loaded(awaited=awaited)
    young = [file._replace(modified=OLD + timedelta(hours=5)) for file in (load(etag="copy"), cdc(1), cdc(2))]

    action = plan(snapshot, *young)

    assert stopped(action) == "reload-unclear"
    assert isinstance(action, Stopped)
    assert ("dmslake reapply" in action.by.todo, "--skip-file" in action.by.todo) == (is_empty, not is_empty)


@pytest.mark.parametrize("code", ["reload-without-file", "reload-unclear", "foreign-raw-file"])
def test_a_block_that_no_new_change_can_cure_is_not_looked_at_again_for_one(code: str) -> None:
    """A job would start for each, to block again."""
    snapshot, files = loaded([cdc(1)], at=1), (load(1), cdc(1))
    state = state_of(snapshot)
    by = blocked_by(TableBlocked("why", code), mark_of(state, listing_of(*files), NOW))
    state = replace(state, blocked=by)
    later = cdc(60 * 40)

    assert is_known(plan_table(state, snapshot, listing_of(*files), NOW, Limits()))
    assert is_known(plan_table(state, snapshot, listing_of(*files, later), NOW, Limits())) == (code != "foreign-raw-file")
    assert not is_known(plan_table(state, snapshot, listing_of(*files, cdc(2)), NOW, Limits()))


def is_known(action: object) -> bool:
    return isinstance(action, Stopped) and action.known


def test_a_reload_of_load_files_that_are_all_left_out_says_so() -> None:
    """The raw folder is not empty."""
    action = plan(loaded(), load(1), SkipFiles=load(1).base, Request="reload")

    assert stopped(action) == "no-load-files"
    assert isinstance(action, Stopped)
    assert "SkipFiles" in action.by.message + action.by.todo
