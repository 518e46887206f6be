"""converge: half done, done twice, done by two at once, it makes the folder the snapshot, or refuses before it hides anything."""

from __future__ import annotations

import re
import shlex
import threading
from collections.abc import Callable
from typing import Any

import pytest

from glue_jobs.aws.versions import key_versions
from glue_jobs.core.record import ChangeRecord
from glue_jobs.protocol.converge import UploadsGone, abort_uploads, converge
from infra.aws import LAKE
from tests.aws.faults import answer, s3_error
from tests.lake import LakeTable
from tests.protocol.conftest import AFTER, BEFORE, TableMaker
from tests.protocol.runs import die, run_on
from tests.protocol.wire import Request, Rule, Wire, in_turn

Forward = Callable[[], Any]
PARTITIONS = 6
ROWS = [(number, f"p{number % PARTITIONS}") for number in range(3 * PARTITIONS)]


def die_after(wire: Wire, matches: Callable[[Request], bool], count: int) -> Rule:
    """Die when so many of these requests took effect; 0: before the first of them."""
    return in_turn(matches, *[lambda forward: forward()] * (count - 1), lambda forward: die_now(wire, forward if count else None))


def die_now(wire: Wire, forward: Forward | None) -> Any:
    if forward is not None:
        forward()
    return wire.kill()


def committed(wire: Wire, table: LakeTable, job: str = "LoadIncremental") -> ChangeRecord:
    """The record of a change that was committed by a run which then died, nothing of it visible."""
    die(wire, table, job, die_after(wire, Request.is_commit, 1))
    return table.head()


@pytest.fixture
def parts(make_table: TableMaker) -> LakeTable:
    """A loaded table of six partitions, and a CDC file that changes a row of each."""
    table = make_table(partition_key="name")
    table.load(ROWS)
    assert table.run("LoadInitial") == 0
    table.cdc([("U", (number, f"p{number}")) for number in range(PARTITIONS)] + [("D", (PARTITIONS, None))])
    return table


def all_versions(table: LakeTable) -> list[Any]:
    """Every version and delete marker of the lake's folder."""
    answer = table.clients.s3.list_object_versions(Bucket=table.out_path.bucket, Prefix=table.out_path.key)
    return [(entry["Key"], entry["VersionId"]) for kind in ("Versions", "DeleteMarkers") for entry in answer.get(kind, [])]


@pytest.mark.parametrize("completed", range(PARTITIONS + 1))
def test_what_was_completed_by_half_is_completed(parts: LakeTable, wire: Wire, completed: int) -> None:
    """After each of six uploads; readers see doubled rows until then, and no longer than that."""
    die(wire, parts, "LoadIncremental", die_after(wire, Request.is_completion, completed))

    assert parts.run("LoadIncremental") == 0

    assert [row[0] for row in sorted(parts.rows())] == [number for number in range(len(ROWS)) if number != PARTITIONS]
    parts.check_folder()


def test_what_was_hidden_by_half_is_hidden(parts: LakeTable, wire: Wire) -> None:
    """Some of the superseded files had been hidden one by one."""
    record = committed(wire, parts)
    uploads = ChangeRecord(**{**vars(record), "superseded": record.superseded[:2]})
    converge(parts.clients.s3, parts.out_path, uploads, redo=False)

    assert parts.run("LoadIncremental") == 0

    assert len(parts.rows()) == len(ROWS) - 1
    parts.check_folder()


def test_doing_it_again_changes_nothing(loaded: LakeTable) -> None:
    """No new version and no second delete marker: it looks first."""
    assert loaded.run("LoadIncremental") == 0
    before = all_versions(loaded)

    converge(loaded.clients.s3, loaded.out_path, loaded.head(), redo=True)

    assert (all_versions(loaded), loaded.rows()) == (before, AFTER)


def test_two_at_once_are_as_good_as_one(parts: LakeTable, wire: Wire) -> None:
    """A late run and its successor publish the same change."""
    record = committed(wire, parts)
    start = threading.Barrier(4)
    errors: list[BaseException] = []

    def publish(redo: bool) -> None:
        start.wait()
        try:
            converge(parts.clients.s3, parts.out_path, record, redo=redo)
        except BaseException as error:  # noqa: BLE001 - it is what the test looks at
            errors.append(error)

    threads = [threading.Thread(target=publish, args=(number % 2 == 0,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert errors == []
    assert len(parts.rows()) == len(ROWS) - 1
    assert parts.visible() == set(parts.snapshot().files)


def test_a_late_run_repeats_only_what_is_true(parts: LakeTable, wire: Wire) -> None:
    """It publishes its change again after the next change superseded it: what is hidden stays hidden."""
    record = committed(wire, parts)
    assert parts.run("LoadIncremental") == 0
    parts.cdc([("U", (number, f"p{number}")) for number in range(PARTITIONS)])
    assert parts.run("LoadIncremental") == 0
    before = parts.rows()

    converge(parts.clients.s3, parts.out_path, record, redo=True)

    assert parts.rows() == before
    parts.check_folder()


@pytest.mark.parametrize("redo", [False, True])
def test_an_upload_that_was_completed_before_is_no_error(loaded: LakeTable, wire: Wire, redo: bool) -> None:
    """AWS says NoSuchUpload then; the object is there."""
    record = committed(wire, loaded)

    def completed_before(forward: Forward) -> Any:
        forward()
        return s3_error(404, "NoSuchUpload")

    late = Wire(rule=in_turn(Request.is_completion, completed_before))
    with late.connected():
        converge(loaded.clients.s3, loaded.out_path, record, redo=redo)

    assert (loaded.rows(), len(late.of("CompleteMultipartUpload"))) == (AFTER, 1)


@pytest.mark.parametrize("redo", [False, True])
def test_nothing_is_hidden_while_an_upload_is_gone(parts: LakeTable, wire: Wire, redo: bool) -> None:
    """The old files are all that readers have."""
    record = committed(wire, parts)
    abort_uploads(parts.clients.s3, parts.out_path, record.added[2:3])

    with pytest.raises(UploadsGone) as caught:
        converge(parts.clients.s3, parts.out_path, record, redo=redo)

    assert record.added[2].path in caught.value.message
    assert set(record.superseded) <= parts.visible()


def test_a_file_that_somebody_else_wrote_is_never_taken_for_ours(loaded: LakeTable, wire: Wire) -> None:
    """The key has data of another size: the table is blocked, and nothing of it is hidden."""
    record = committed(wire, loaded)
    key = loaded.out_path.key + record.added[0].path
    loaded.clients.s3.put_object(Bucket=loaded.out_path.bucket, Key=key, Body=b"somebody else's")

    code = loaded.run("LoadIncremental")

    error = loaded.item()["LastRun"]["error"]
    assert (code, error["code"], loaded.item()["Publishing"]) == (1, "foreign-write", record.id)
    assert record.added[0].path in error["message"]
    assert set(record.superseded) <= loaded.visible()


def test_what_somebody_else_wrote_over_our_file_is_found_too(loaded: LakeTable, wire: Wire) -> None:
    """Two data versions that differ: one of them isn't ours, and has to go before ours counts again. The stack's bucket forbids that."""
    die(wire, loaded, "LoadIncremental", die_after(wire, Request.is_completion, 1))
    record = loaded.head()
    key = loaded.out_path.key + record.added[0].path
    loaded.clients.s3.put_object(Bucket=loaded.out_path.bucket, Key=key, Body=b"somebody else's")

    assert loaded.run("LoadIncremental") == 1

    error = loaded.item()["LastRun"]["error"]
    assert error["code"] == "foreign-write"
    (statement,) = re.findall("the statement ([A-Za-z]+) ", error["todo"])
    assert f"Sid: {statement}\n" in LAKE.read_text("utf-8")
    words = shlex.split(re.findall("`([^`]+)`", error["todo"])[0])
    assert words[:3] == ["aws", "s3api", "delete-object"]
    given = dict(zip(words[3::2], words[4::2], strict=True))
    loaded.clients.s3.delete_object(Bucket=given["--bucket"], Key=given["--key"], VersionId=given["--version-id"])
    loaded.remove("Blocked")
    loaded.sync()
    assert loaded.rows() == AFTER
    assert loaded.verify() == []


def hide_errors(code: str) -> Callable[[Forward], Any]:
    """S3's 200 with an error for a key inside, nothing hidden."""

    def then(forward: Forward) -> Any:
        body = f"<DeleteResult><Error><Key>{HIDDEN}</Key><Code>{code}</Code><Message>injected</Message></Error></DeleteResult>"
        return answer(200, '<?xml version="1.0" encoding="UTF-8"?>' + body)

    return then


HIDDEN = ""


def rule_for_hide(table: LakeTable, code: str, times: int) -> Rule:
    global HIDDEN
    (path,) = table.snapshot().files
    HIDDEN = table.out_path.key + path
    return in_turn(Request.is_hide, *[hide_errors(code)] * times)


def test_a_key_that_s3_was_too_busy_to_hide_is_hidden_again(loaded: LakeTable, wire: Wire) -> None:
    """DeleteObjects says 200 with the error inside."""
    code = run_on(wire, loaded, "LoadIncremental", rule_for_hide(loaded, "InternalError", 1))

    assert (code, loaded.rows(), len(wire.of("DeleteObjects"))) == (0, AFTER, 2)
    loaded.check_folder()


def test_a_key_that_may_not_be_hidden_leaves_the_change_unpublished(loaded: LakeTable, wire: Wire) -> None:
    """Exit 3 for the missing permission; the change counts, and the next run goes on from there."""
    code = run_on(wire, loaded, "LoadIncremental", rule_for_hide(loaded, "AccessDenied", 1))

    item = loaded.item()
    assert (code, item["LastRun"]["error"]["code"], item["Publishing"]) == (3, "access-denied", item["Head"])
    assert (loaded.run("LoadIncremental"), loaded.rows()) == (0, AFTER)
    loaded.check_folder()


def test_only_what_is_there_is_hidden(loaded: LakeTable) -> None:
    """By exact keys: other objects in the folder are none of our business."""
    strange = loaded.out_path.key + "notes.txt"
    loaded.clients.s3.put_object(Bucket=loaded.out_path.bucket, Key=strange, Body=b"keep me")

    assert loaded.run("LoadIncremental") == 0

    assert key_versions(loaded.clients.s3, loaded.out_path.bucket, strange).visible
    assert loaded.visible() == {*loaded.snapshot().files, "notes.txt"}


def test_before_is_what_readers_see_until_the_commit(loaded: LakeTable, wire: Wire) -> None:
    """A run that dies right before it has written parts and a record, and changed nothing."""
    die(wire, loaded, "LoadIncremental", die_after(wire, Request.is_commit, 0))

    assert (loaded.rows(), "Publishing" in loaded.item()) == (BEFORE, False)
