"""Staged changes: prepared by one run, committed or discarded by another; readers see nothing in between."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from glue_jobs.aws.records import list_records, read_record
from glue_jobs.core.record import ChangeRecord
from glue_jobs.core.state import read_state
from glue_jobs.core.undo import record_time
from glue_jobs.protocol.converge import abort_uploads
from glue_jobs.protocol.lineage import Lineage
from glue_jobs.protocol.recover import recover
from glue_jobs.protocol.stage import list_uploads, look_at
from tests.lake import LakeTable
from tests.protocol.conftest import AFTER, BEFORE, TableMaker
from tests.protocol.runs import LONG_LEASE, die, everything, forget_lease, run_on
from tests.protocol.wire import Killed, Request, Rule, Wire, die_at, once


def stage(table: LakeTable, job: str = "LoadIncremental") -> ChangeRecord:
    """The record of the change that a run with `--stage` prepared."""
    assert table.run(job, stage="true") == 0, table.item()["LastRun"]
    return read_record(table.clients.s3, table.out_path, table.item()["LastRun"]["staged"])


def standing(table: LakeTable, staged: ChangeRecord) -> str:
    """What became of the staged change."""
    s3, lake = table.clients.s3, table.out_path
    return look_at(s3, lake, Lineage(s3, lake, table.item().get("Head", "")), staged, list_uploads(s3, lake)).standing


def seen(table: LakeTable) -> Any:
    """What readers and the next run go by."""
    item = table.item()
    return table.visible(), item.get("Head"), item["LastIncrementalFile"], item.get("Publishing"), table.rows()


def code_of(ended: Any) -> tuple[int, str]:
    return ended.code, ended.error.code if ended.error else ""


def test_staging_shows_readers_nothing(loaded: LakeTable) -> None:
    """The record stands with its counts, the uploads wait, and the table is paused so that no scheduled run overtakes it."""
    before = seen(loaded)

    staged = stage(loaded)

    item = loaded.item()
    assert seen(loaded) == before
    assert (staged.staged, staged.parent, item["LastRun"]["outcome"]) == (True, item["Head"], "staged")
    assert (staged.counts.inserted, staged.counts.updated, staged.counts.deleted, staged.counts.table_rows) == (1, 1, 1, 3)
    assert len(loaded.open_uploads()) == len(staged.added) == 1
    assert item["Paused"].startswith(f"change {staged.id} is staged")
    assert (standing(loaded, staged), loaded.verify()) == ("waiting", [])
    assert [finding.code for finding in loaded.verified(quick=True).findings] == ["staged-change"]


def test_a_scheduled_run_leaves_a_staged_change_alone(loaded: LakeTable) -> None:
    """Neither does it apply the files, nor does it take the record after the head for a sign that the item went back."""
    staged = stage(loaded)
    before = seen(loaded)

    assert loaded.run() == 0

    assert (seen(loaded), standing(loaded, staged)) == (before, "waiting")


@pytest.mark.parametrize("nothing", ["null", "None", " "])
def test_a_pause_that_says_nothing_is_none(loaded: LakeTable, nothing: str) -> None:
    """A person emptied the attribute the way that the others are empty."""
    loaded.edit(Paused=nothing)

    staged = stage(loaded)

    assert loaded.item()["Paused"].startswith(f"change {staged.id} is staged")
    assert (loaded.run(), loaded.rows(), standing(loaded, staged)) == (0, BEFORE, "waiting")


def test_a_commit_does_what_the_run_would_have_done(make_table: TableMaker) -> None:
    """Rows, counts, cursor, catalog and all else of two tables are the same, but for the id that the commit names."""
    tables = []
    for staging in (True, False):
        table = make_table()
        table.load(BEFORE)
        assert table.run("LoadInitial") == 0
        table.cdc([("U", (1, "ONE")), ("D", (2, None)), ("I", (4, "four"))])
        if staging:
            assert code_of(table.commit(stage(table).id)) == (0, "")
        else:
            assert table.run() == 0
        tables.append(table)

    assert everything(tables[0]) == everything(tables[1])
    assert tables[0].rows() == AFTER
    tables[0].check_folder()


def test_a_commit_has_an_id_and_a_time_of_its_own(loaded: LakeTable) -> None:
    """As of a moment after staging the table is the old one: nobody could read the new rows then."""
    staged = stage(loaded)

    loaded.commit(staged.id)

    record = loaded.head()
    assert (record.staged, record.staged_as, record.parent) == (False, staged.id, staged.parent)
    assert (record.id > staged.id, record.time > staged.time, record.added) == (True, True, staged.added)
    assert (loaded.lineage().at(record_time(staged)), loaded.lineage().at(record_time(record))) == (staged.parent, record.id)
    assert not {"commit", "item"} & set(record.details)
    assert (standing(loaded, staged), "Paused" in loaded.item()) == ("committed", False)


def test_a_staged_load_is_committed_whole(table: LakeTable) -> None:
    """The first load of a table: load date, catalog table and the end of its request included."""
    table.edit(Request="reload")
    staged = stage(table, "LoadInitial")
    assert (staged.kind, staged.parent, table.item().get("Head"), table.verify()) == ("full-load", "", None, [])

    assert code_of(table.commit(staged.id)) == (0, "")

    item = table.item()
    assert (table.rows(), item["LastFullLoadDate"] > "1900-01-02", "Request" in item, bool(table.catalog_table())) == (
        BEFORE,
        True,
        False,
        True,
    )
    assert table.verify() == []


def test_a_discard_gives_everything_back(loaded: LakeTable) -> None:
    """Uploads and pause are gone, the files are pending again, and the next run applies them."""
    staged = stage(loaded)

    assert code_of(loaded.discard(staged.id)) == (0, "")

    assert (loaded.open_uploads(), "Paused" in loaded.item(), standing(loaded, staged)) == ([], False, "discarded")
    assert code_of(loaded.commit(staged.id)) == (2, "already-discarded")
    assert (loaded.run(), loaded.rows(), loaded.verify()) == (0, AFTER, [])


def test_a_discard_can_be_said_twice(loaded: LakeTable) -> None:
    """Whatever the first one left is done by the second."""
    staged = stage(loaded)
    assert loaded.discard(staged.id).code == 0

    assert code_of(loaded.discard(staged.id)) == (0, "")
    assert loaded.run() == 0
    loaded.check_folder()


def test_another_pause_stays(loaded: LakeTable) -> None:
    """Only the pause that was set for this change is lifted."""
    staged = stage(loaded)
    loaded.edit(Paused="holidays")

    loaded.commit(staged.id)

    assert (loaded.item()["Paused"], loaded.rows()) == ("holidays", AFTER)


def pausing(table: LakeTable) -> Rule:
    """A person pauses the table right before the run writes or lifts its own pause."""

    def pause(forward: Any) -> Any:
        table.edit(Paused="holidays")
        return forward()

    return once(lambda request: request.operation == "UpdateItem" and b"Paused" in request.body, pause)


def test_a_pause_that_comes_while_staging_stays(loaded: LakeTable, wire: Wire) -> None:
    """It is not overwritten: the commit would lift it."""
    assert run_on(wire, loaded, "LoadIncremental", pausing(loaded), stage="true") == 0

    item = loaded.item()
    assert (item["Paused"], item["LastRun"]["outcome"]) == ("holidays", "staged")


def test_a_pause_that_comes_while_discarding_stays(loaded: LakeTable, wire: Wire) -> None:
    """Only the pause that was read is lifted."""
    staged = stage(loaded)
    wire.rule = pausing(loaded)

    with wire.connected():
        ended = loaded.discard(staged.id)

    assert (code_of(ended), loaded.item()["Paused"], loaded.open_uploads()) == ((0, ""), "holidays", [])


# --- refused


def overtake(table: LakeTable) -> None:
    table.remove("Paused")
    assert table.run() == 0


def test_a_change_that_came_between_refuses_the_commit(loaded: LakeTable) -> None:
    """It is named, and nothing is changed; the uploads wait until they are discarded."""
    staged = stage(loaded)
    overtake(loaded)
    before, uploads = seen(loaded), loaded.open_uploads()

    ended = loaded.commit(staged.id)

    assert ended.error is not None
    assert (code_of(ended), loaded.head().id in ended.error.message) == ((1, "staged-overtaken"), True)
    assert (seen(loaded), loaded.open_uploads()) == (before, uploads)
    assert "which can't be committed" in loaded.verified(quick=True).findings[0].found
    assert (loaded.discard(staged.id).code, loaded.open_uploads()) == (0, [])


def test_of_two_staged_on_one_head_one_can_be_committed(loaded: LakeTable) -> None:
    """The other one is told what came between, and that is the commit of the first."""
    first = stage(loaded)
    loaded.remove("Paused")
    second = stage(loaded)
    assert (first.parent, standing(loaded, first), standing(loaded, second)) == (second.parent, "waiting", "waiting")

    assert loaded.commit(second.id).code == 0
    ended = loaded.commit(first.id)

    assert ended.error is not None
    assert (code_of(ended), loaded.head().id in ended.error.message) == ((1, "staged-overtaken"), True)
    assert (loaded.discard(first.id).code, loaded.open_uploads(), loaded.rows(), loaded.verify()) == (0, [], AFTER, [])


def test_a_second_commit_says_as_what_it_was_committed(loaded: LakeTable) -> None:
    """And so does a discard, with the way to undo it."""
    staged = stage(loaded)
    loaded.commit(staged.id)
    head = loaded.head().id

    again, dropped = loaded.commit(staged.id), loaded.discard(staged.id)

    assert again.error is not None
    assert dropped.error is not None
    assert (code_of(again), code_of(dropped)) == ((2, "already-committed"), (2, "already-committed"))
    assert head in again.error.message
    assert f"--undo {head}" in dropped.error.todo
    assert (loaded.rows(), loaded.verify()) == (AFTER, [])


@pytest.mark.parametrize("which", ["an ordinary change", "no change", "the commit of one"])
def test_only_a_staged_change_is_taken(loaded: LakeTable, which: str) -> None:
    """Everything else is refused in words that say what it is."""
    change = "0000000009-000001-0123abcd" if which == "no change" else loaded.item()["Head"]
    if which == "the commit of one":
        loaded.commit(stage(loaded).id)
        change = loaded.item()["Head"]
    before = seen(loaded)

    for ended in (loaded.commit(change), loaded.discard(change)):
        assert code_of(ended) == (2, "unknown-change" if which == "no change" else "not-staged")
    assert seen(loaded) == before


def test_a_missing_upload_refuses_the_commit(loaded: LakeTable) -> None:
    """Before anything is changed."""
    staged = stage(loaded)
    abort_uploads(loaded.clients.s3, loaded.out_path, staged.added)
    before = seen(loaded)

    assert code_of(loaded.commit(staged.id)) == (1, "staged-gone")
    assert (seen(loaded), standing(loaded, staged)) == (before, "gone")


def test_an_upload_with_other_parts_refuses_the_commit(loaded: LakeTable) -> None:
    """Its object would not be what the record says."""
    staged = stage(loaded)
    (file,) = staged.added
    assert file.upload is not None
    where = {"Bucket": loaded.out_path.bucket, "Key": loaded.out_path.key + file.path, "UploadId": file.upload.id}
    loaded.clients.s3.upload_part(**where, PartNumber=1, Body=b"other bytes")  # type: ignore[arg-type]
    before = seen(loaded)

    assert code_of(loaded.commit(staged.id)) == (1, "staged-gone")
    assert seen(loaded) == before


@pytest.mark.parametrize(("days", "code"), [(5.9, ""), (6.1, "staged-too-old")])
def test_uploads_that_a_rule_may_abort_soon_refuse_the_commit(loaded: LakeTable, days: float, code: str) -> None:
    """The bucket's rule counts seven days; a day before, nobody begins to count on them."""
    staged = stage(loaded)

    ended = loaded.commit(staged.id, later=timedelta(days=days))

    assert code_of(ended)[1] == code


@pytest.mark.parametrize(
    ("attribute", "value"),
    [("PrimaryKey", "id,name"), ("LastIncrementalFile", ""), ("SkipFiles", "x.parquet"), ("LateWindowHours", "3")],
)
def test_an_edited_item_refuses_the_commit(loaded: LakeTable, attribute: str, value: str) -> None:
    """The attribute is named, with its value then and now; ActiveFlag and Paused decide nothing that the change does."""
    staged = stage(loaded)
    loaded.edit(**{attribute: value}, ActiveFlag="false")
    before = seen(loaded)

    ended = loaded.commit(staged.id)

    assert ended.error is not None
    assert (code_of(ended), f"{attribute} was" in ended.error.message) == ((1, "staged-edited"), True)
    assert (seen(loaded), len(loaded.open_uploads())) == (before, 1)


# --- what dies, and what is lost


def commits(table: LakeTable, wire: Wire, staged: ChangeRecord, rule: Any) -> Any:
    """A commit whose requests pass through the wire."""
    wire.rule = rule
    with wire.connected():
        return table.commit(staged.id, lease_seconds=LONG_LEASE)


def test_a_refused_commit_keeps_the_uploads(loaded: LakeTable, wire: Wire) -> None:
    """Somebody saves the item between the check and the commit: it is refused, and can be done again."""
    staged = stage(loaded)

    def edit(forward: Any) -> Any:
        loaded.edit(ActiveFlag="false")
        return forward()

    ended = commits(loaded, wire, staged, once(Request.is_commit, edit))

    assert (code_of(ended), len(loaded.open_uploads()), standing(loaded, staged)) == ((1, "commit-refused"), 1, "waiting")
    assert (loaded.commit(staged.id).code, loaded.rows(), loaded.verify()) == (0, AFTER, [])


def test_a_commit_that_dies_anywhere_can_be_said_again(make_table: TableMaker, wire: Wire) -> None:
    """Before and after each of its writes; in the end the rows are there once, and nothing is left."""
    table = make_table()
    table.load(BEFORE)
    assert table.run("LoadInitial") == 0
    died = 0
    for number in range(5, 40):
        table.cdc([("I", (100 + number, "new"))])
        staged = stage(table)
        wire.requests.clear()
        wire.dead = False
        try:
            commits(table, wire, staged, die_at(wire, number, after=bool(number % 2)))
            break
        except Killed:
            died += 1
        forget_lease(table)
        ended = table.commit(staged.id)
        assert code_of(ended) in ((0, ""), (2, "already-committed"))
        assert (table.verify(), table.open_uploads(), "Paused" in table.item()) == ([], [], False)
    assert died > 15
    assert len(table.rows()) == len(BEFORE) + died + 1


def test_a_run_finishes_a_commit_that_died(loaded: LakeTable, wire: Wire) -> None:
    """As it does with any change that was committed and not published."""
    staged = stage(loaded)
    with pytest.raises(Killed):
        commits(loaded, wire, staged, once(Request.is_completion, lambda _: wire.kill()))
    forget_lease(loaded)

    assert (loaded.run(), loaded.rows(), loaded.head().staged_as) == (0, AFTER, staged.id)
    loaded.check_folder()


def test_staging_that_dies_before_its_pause_may_be_overtaken(loaded: LakeTable, wire: Wire) -> None:
    """The next run applies the files itself, and a commit says what came between."""
    die(
        wire,
        loaded,
        "LoadIncremental",
        once(lambda request: request.operation == "PutObject" and request.key.endswith(".json"), lambda send: (send(), wire.kill())),
        stage="true",
    )
    (left,) = list_records(loaded.clients.s3, loaded.out_path, loaded.item()["Head"])

    assert (loaded.run(), loaded.rows()) == (0, AFTER)
    assert code_of(loaded.commit(left)) == (1, "staged-overtaken")


def test_lost_uploads_take_a_committed_one_back(loaded: LakeTable, wire: Wire) -> None:
    """The files are pending again and the table waits for a person, who wanted to look first."""
    staged = stage(loaded)
    with pytest.raises(Killed):
        commits(loaded, wire, staged, once(Request.is_completion, lambda _: wire.kill()))
    forget_lease(loaded)
    abort_uploads(loaded.clients.s3, loaded.out_path, staged.added)

    ended = loaded.commit(staged.id)

    item = loaded.item()
    assert (code_of(ended), loaded.rows(), loaded.head().kind) == ((1, "staged-overtaken"), BEFORE, "lost")
    assert item["Paused"].startswith(f"the staged change {staged.id} was committed and taken back")
    assert loaded.verify() == []
    loaded.remove("Paused")
    assert (loaded.run(), loaded.rows()) == (0, AFTER)


def test_a_lost_commit_gives_back_what_it_answered(table: LakeTable, wire: Wire) -> None:
    """The request of a load that was staged, and its load date."""
    assert table.run("LoadInitial") == 0
    table.edit(Request="reload", LoadQuietMinutes="0")
    staged = stage(table, "LoadInitial")
    with pytest.raises(Killed):
        commits(table, wire, staged, once(Request.is_completion, lambda _: wire.kill()))
    assert "Request" not in table.item()
    forget_lease(table)
    abort_uploads(table.clients.s3, table.out_path, staged.added)

    assert table.run() == 0

    assert (table.item()["Request"], table.head().kind, table.rows()) == ("reload", "lost", BEFORE)


def test_uploads_that_vanish_during_the_commit_take_it_back(loaded: LakeTable, wire: Wire) -> None:
    """The command fails and says so."""
    staged = stage(loaded)

    def lose(forward: Any) -> Any:
        abort_uploads(loaded.clients.s3, loaded.out_path, staged.added)
        return forward()

    ended = commits(loaded, wire, staged, once(Request.is_commit, lose))

    assert (code_of(ended), loaded.rows(), loaded.open_uploads()) == ((1, "staged-gone"), BEFORE, [])
    assert loaded.verify() == []


# --- what comes after


def test_a_committed_one_is_rolled_back_like_any_change(loaded: LakeTable) -> None:
    """And brought back."""
    staged = stage(loaded)
    loaded.commit(staged.id)
    change = loaded.head().id

    assert loaded.run("Rollback", undo=change) == 0
    assert (loaded.rows(), loaded.verify()) == (BEFORE, [])
    assert loaded.run("Rollback", reapply="all") == 0
    assert (loaded.rows(), loaded.verify(), standing(loaded, staged)) == (AFTER, [], "committed")


def test_file_names_of_the_staged_id_are_told_apart(loaded: LakeTable) -> None:
    """A superseded file of a committed one that comes back is known as superseded, and the repair hides it."""
    staged = stage(loaded)
    loaded.commit(staged.id)
    loaded.cdc([("U", (1, "again"))])
    assert loaded.run() == 0
    (path,) = [file.path for file in staged.added]
    s3, bucket, key = loaded.clients.s3, loaded.out_path.bucket, loaded.out_path.key + path
    for marker in s3.list_object_versions(Bucket=bucket, Prefix=key).get("DeleteMarkers", []):
        s3.delete_object(Bucket=bucket, Key=key, VersionId=marker["VersionId"])

    (finding,) = loaded.verified(quick=True).differences
    done = loaded.repair()

    assert (finding.code, f"superseded by change {loaded.head().id}" in finding.found) == ("stray-file", True)
    assert (done.code, loaded.verify()) == (0, [])


def test_a_deleted_file_of_a_committed_one_is_restored(loaded: LakeTable) -> None:
    """Its bytes are found by its key, whatever id the key begins with."""
    loaded.commit(stage(loaded).id)
    (path,) = loaded.visible()
    loaded.clients.s3.delete_object(Bucket=loaded.out_path.bucket, Key=loaded.out_path.key + path)

    assert (loaded.repair().code, loaded.rows(), loaded.verify()) == (0, AFTER, [])


def test_a_recover_passes_over_staged_records(loaded: LakeTable) -> None:
    """The item of a table whose commit was published went back: the commit is found, not the staged change."""
    old = loaded.item()
    staged = stage(loaded)
    loaded.commit(staged.id)
    head = loaded.item()["Head"]
    loaded.edit(Head=old["Head"], LastIncrementalFile=old["LastIncrementalFile"])
    assert "state-went-back" in loaded.verify(quick=True)

    found = recover(loaded.clients, loaded.state_table, loaded.path, dry_run=False)

    assert (found.head, loaded.run(), loaded.rows(), loaded.verify()) == (head, 0, AFTER, [])


def test_a_batch_that_leaves_no_row_waits_without_uploads(loaded: LakeTable) -> None:
    """Nothing of it grows old, and a discard is known by its mark alone."""
    assert loaded.run() == 0
    loaded.cdc([("D", (number, None)) for number in (1, 3, 4)])
    dropped = stage(loaded)
    assert (dropped.added, standing(loaded, dropped)) == ((), "waiting")
    assert (loaded.discard(dropped.id).code, standing(loaded, dropped)) == (0, "discarded")

    kept = stage(loaded)

    assert (code_of(loaded.commit(kept.id)), loaded.rows(), loaded.verify()) == ((0, ""), [], [])
    assert read_state(loaded.item()).paused == ""
