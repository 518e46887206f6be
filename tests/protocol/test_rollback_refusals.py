"""What a rollback refuses, with nothing changed; and what happens when something fails in the middle of one."""

from __future__ import annotations

from typing import Any

import pytest
from botocore.awsrequest import AWSResponse

from glue_jobs.aws.records import list_records, write_record
from glue_jobs.aws.uploads import abort_upload, list_open_uploads
from glue_jobs.aws.versions import key_versions
from infra.local.cloudformation.lake import lake_lifecycle
from tests.lake import LakeTable
from tests.protocol.runs import die, forget_lease, run_on
from tests.protocol.test_rollback import FIRST, LOADED, SECOND, changes, history, refused, rolled_back
from tests.protocol.test_verify import drop
from tests.protocol.wire import Request, Wire, once

__all__ = ["history"]


def expire(table: LakeTable, change: str) -> None:
    """Delete the data versions of the hidden files of a change's snapshot, as a lifecycle rule does after its days."""
    visible = table.visible()
    for path in table.snapshot(change).files:
        key = table.out_path.key + path
        for version in key_versions(table.clients.s3, table.out_path.bucket, key).data if path not in visible else ():
            table.clients.s3.delete_object(Bucket=table.out_path.bucket, Key=key, VersionId=version.version_id)


def test_a_change_whose_files_expired_is_refused_with_how_far_back_one_can_go(history: LakeTable) -> None:
    """The error names the file and the oldest change that can still be restored; that one then works."""
    load, first, _ = changes(history)
    (path,) = history.snapshot(load).files
    expire(history, load)

    error = refused(history, to=load)
    rolled_back(history, to=first)

    assert (error["code"], path in error["message"]) == ("version-gone", True)
    assert f"one can still go back as far as change {first}" in error["todo"]
    assert history.rows() == FIRST


def test_nothing_older_to_go_back_to_is_said(history: LakeTable) -> None:
    """All hidden files expired: the error says that no earlier state is left."""
    load, first, _ = changes(history)
    expire(history, load)
    expire(history, first)

    error = refused(history, to="previous")

    assert (error["code"], "no earlier state can be restored" in error["todo"]) == ("version-gone", True)


def test_a_copy_is_restored_from_its_original(history: LakeTable) -> None:
    """A state that was restored by copies can be gone back to as long as either the copies or the originals exist."""
    load, _, second = changes(history)
    rolled_back(history, to=load)
    restored = changes(history)[-1]
    rolled_back(history, to=second)
    (copy,) = history.snapshot(restored).files
    expire(history, restored)
    assert not key_versions(history.clients.s3, history.out_path.bucket, history.out_path.key + copy).data

    rolled_back(history, to=restored)

    assert history.rows() == LOADED


def test_a_file_that_a_person_made_visible_again_refuses_the_rollback_to_it(history: LakeTable) -> None:
    """Its copy would stand beside it, with the same rows; a repair hides it first."""
    load = changes(history)[0]
    (path,) = history.snapshot(load).files
    drop(history, path, "DeleteMarkers")

    error = refused(history, to=load)

    assert (error["code"], path in error["message"], "--repair" in error["todo"]) == ("visible-again", True, True)
    assert history.item()["LastRun"]["outcome"] == "refused"
    assert history.repair().code == 0
    rolled_back(history, to=load)
    assert (history.rows(), history.verify()) == (LOADED, [])


def test_what_a_run_has_yet_to_hide_is_no_file_made_visible_again(history: LakeTable, wire: Wire) -> None:
    """A dry run looks at the table as it is, and finishes nothing; the rollback itself finishes first."""
    history.cdc([("U", (1, "again"))])
    die(wire, history, "LoadIncremental", once(Request.is_hide, lambda forward: wire.kill()))
    assert "Publishing" in history.item()

    assert history.run("Rollback", to="previous", dry_run="true") == 0, history.item()["LastRun"]

    assert "Publishing" in history.item()
    rolled_back(history, to="previous")
    assert history.rows() == SECOND


@pytest.mark.parametrize("what", ["gone", "changed"])
def test_a_pending_file_that_raw_has_no_more_refuses_the_rollback(history: LakeTable, what: str) -> None:
    """The table could never catch up: refused, with --skip as the way out, which works."""
    name = history.item()["LastIncrementalFile"].rsplit("/", 1)[-1]
    if what == "gone":
        history.delete_raw(name)
    else:
        history.put_raw(name, history.parquet([("I", (6, "six"))]))

    error = refused(history, to="previous")
    rolled_back(history, to="previous", skip="true")

    assert (error["code"], name in error["message"], "--skip" in error["todo"]) == ("pending-file-gone", True, True)
    assert history.rows() == FIRST


@pytest.mark.parametrize("what", ["gone", "changed"])
def test_a_pending_file_that_vanishes_later_blocks_the_table(history: LakeTable, what: str) -> None:
    """Never a silent gap: the file after it is not applied over the hole, and a re-apply is the way out.

    (A file that was changed is then a late one, as it would be without any rollback.)
    """
    name = history.item()["LastIncrementalFile"].rsplit("/", 1)[-1]
    rolled_back(history, to="previous", resume="true")
    if what == "gone":
        history.delete_raw(name)
    else:
        history.put_raw(name, history.parquet([("I", (6, "six"))]))
    history.cdc([("I", (9, "nine"))])

    assert history.run() == 1
    error, rows = history.item()["LastRun"]["error"], history.rows()
    rolled_back(history, reapply="all")
    assert history.run() == 0

    assert (error["code"], name in error["message"], rows) == ("awaited-file-gone", True, FIRST)
    assert history.rows() == [*SECOND, *([(6, "six")] if what == "changed" else []), (9, "nine")]


def test_an_awaited_file_can_be_left_out_by_name(history: LakeTable) -> None:
    """A person who knows better names it in SkipFiles."""
    name = history.item()["LastIncrementalFile"].rsplit("/", 1)[-1]
    rolled_back(history, to="previous", resume="true")
    history.delete_raw(name)
    history.cdc([("I", (9, "nine"))])
    history.edit(SkipFiles=name)

    assert history.run() == 0

    assert (history.rows(), history.snapshot().awaited) == ([*FIRST, (9, "nine")], {})


def test_an_unknown_change_is_refused(history: LakeTable) -> None:
    """An id without a record, and one whose record never landed."""
    record = history.head()
    stranger = f"{int(record.id[:10]):010d}-000001-00000000"
    write_record(history.clients.s3, history.out_path, record.__class__(**{**record.__dict__, "id": stranger}))

    errors = [refused(history, to="0000000001-000009-0123abcd"), refused(history, undo=stranger)]

    assert [error["code"] for error in errors] == ["unknown-change", "unknown-change"]
    assert f"dmslake history {history.path}" in errors[0]["todo"]


@pytest.mark.parametrize(
    ("wish", "code"),
    [
        ({"to": "yesterday"}, "bad-goal"),
        ({}, "no-goal"),
        ({"to": "previous", "undo": "0000000001-000001-00000000"}, "no-goal"),
        ({"reapply": "all", "skip": "true"}, "bad-argument"),
        ({"to": "previous", "skip": "perhaps"}, "bad-argument"),
    ],
)
def test_a_wish_that_cannot_be_meant_is_a_usage_error(history: LakeTable, capfd: Any, wish: dict[str, str], code: str) -> None:
    """Exit code 2, before a lease is taken."""
    fence = history.item()["Fence"]

    assert history.run("Rollback", **wish) == 2

    assert (history.item()["Fence"], f'"code": "{code}"' in capfd.readouterr().err) == (fence, True)


def test_skipping_the_load_is_refused(history: LakeTable) -> None:
    """The empty table with the cursor where it is would stay empty for good."""
    assert refused(history, undo=changes(history)[0], skip="true")["code"] == "skip-of-load"


def test_undoing_what_is_undone_is_refused(history: LakeTable) -> None:
    """It would drop what came since; and beyond the first change there is nothing."""
    last = changes(history)[-1]
    rolled_back(history, to="previous")
    errors = [refused(history, undo=last)]
    rolled_back(history, undo=changes(history)[0])
    errors.append(refused(history, to="previous"))

    assert [error["code"] for error in errors] == ["nothing-to-undo", "nothing-to-undo"]


def test_re_applying_without_anything_undone_is_refused(history: LakeTable) -> None:
    """Nothing was rolled back."""
    assert refused(history, reapply="all")["code"] == "nothing-to-reapply"


def test_a_table_without_changes_is_refused(table: LakeTable) -> None:
    """It was never loaded."""
    assert table.run("Rollback", to="previous") == 2

    assert table.item()["LastRun"]["error"]["code"] == "not-loaded"


def test_a_damaged_record_is_named(history: LakeTable) -> None:
    """The error says which object it is; the table does not wait for a person because of a refused wish."""
    first = changes(history)[1]
    key = f"lake/_changes/shop/{history.table}/{first}.json"
    before = history.clients.s3.get_object(Bucket=history.out_path.bucket, Key=key)["Body"].read()
    history.clients.s3.put_object(Bucket=history.out_path.bucket, Key=key, Body=before[:50])

    error = refused(history, to=first)

    assert (error["code"], key in error["message"], "Blocked" in history.item()) == ("bad-record", True, False)


@pytest.mark.parametrize("what", ["suspended", "lifecycle"])
def test_a_bucket_that_breaks_promises_is_refused(history: LakeTable, what: str) -> None:
    """Without versioning superseded files would be lost; so would live ones by a rule that expires them."""
    s3, bucket = history.clients.s3, history.out_path.bucket
    rule: Any = {"ID": "r", "Status": "Enabled", "Filter": {"Prefix": ""}, "Expiration": {"Days": 9}}
    try:
        if what == "suspended":
            s3.put_bucket_versioning(Bucket=bucket, VersioningConfiguration={"Status": "Suspended"})
        else:
            s3.put_bucket_lifecycle_configuration(Bucket=bucket, LifecycleConfiguration={"Rules": [rule]})
        error = refused(history, to="previous")
    finally:
        s3.put_bucket_versioning(Bucket=bucket, VersioningConfiguration={"Status": "Enabled"})
        s3.put_bucket_lifecycle_configuration(Bucket=bucket, LifecycleConfiguration=lake_lifecycle())

    assert error["code"] == {"suspended": "bucket-not-versioned", "lifecycle": "bucket-lifecycle"}[what]


@pytest.mark.parametrize(
    ("folder", "keeps_history", "is_refused"),
    [
        ("_changes/shop/{}/", False, True),
        ("_changes/shop/{}_history/", True, True),
        ("shop/{}_history/", True, True),
        ("shop/{}_history/", False, False),  # another table's, which looks at it itself
    ],
)
def test_a_rule_that_expires_records_or_the_history_table_is_refused(
    table: LakeTable, folder: str, keeps_history: bool, is_refused: bool
) -> None:
    """They are beside the table's folder, and the table lives by them as well."""
    s3, bucket = table.clients.s3, table.out_path.bucket
    prefix = "lake/" + folder.format(table.table)
    rule: Any = {"ID": "r", "Status": "Enabled", "Filter": {"Prefix": prefix}, "Expiration": {"Days": 9}}
    table.edit(History=str(keeps_history).lower())
    try:
        s3.put_bucket_lifecycle_configuration(Bucket=bucket, LifecycleConfiguration={"Rules": [rule]})
        code = table.run("LoadInitial")
    finally:
        s3.put_bucket_lifecycle_configuration(Bucket=bucket, LifecycleConfiguration=lake_lifecycle())

    error = table.item()["LastRun"].get("error", {"code": "", "message": "", "todo": ""})
    assert (code, error["code"], prefix in error["todo"]) == ((3, "bucket-lifecycle", True) if is_refused else (0, "", False))


def test_a_held_lease_is_exit_code_4(history: LakeTable) -> None:
    """Another run works on the table and shows a sign of life: nothing is done."""
    history.edit(LeaseOwner="somebody", LeaseBeat=1, LeaseSeconds=0.3)
    looks = 0

    def rule(request: Request, forward: Any) -> Any:
        nonlocal looks
        if request.operation == "GetItem":
            looks += 1
            if looks == 2:  # the first look saw the lease, this one watches it
                wire.rule = None
                history.edit(LeaseBeat=2)
        return forward()

    wire = Wire()
    assert run_on(wire, history, "Rollback", rule, to="previous") == 4

    assert history.rows() == SECOND


def answer(status: int, body: bytes) -> AWSResponse:
    """An answer of S3's, made up."""
    return AWSResponse("", status, {}, _Raw(body))


class _Raw:
    def __init__(self, body: bytes) -> None:
        self._body = body

    def stream(self, **_: Any) -> Any:
        yield self._body


def test_a_copy_that_fails_for_good_leaves_nothing(make_table: Any) -> None:
    """One of several copies is refused: all uploads are aborted, and the table is as it was."""
    table = make_table(partition_key="name")
    table.load(LOADED)
    assert table.run("LoadInitial") == 0
    table.cdc([("D", (key, name)) for key, name in LOADED])
    assert table.run() == 0
    wire = Wire()
    denied = b"<Error><Code>AccessDenied</Code><Message>no</Message></Error>"

    rule = once(Request.is_copy, lambda forward: answer(403, denied), skip=1)
    code = run_on(wire, table, "Rollback", rule, to="previous", lease_seconds=60)

    assert (code, table.open_uploads(), table.rows(), len(wire.of("UploadPartCopy"))) == (3, [], [], 3)
    rolled_back(table, to="previous")
    assert sorted(table.rows()) == LOADED


def test_a_copy_of_the_history_table_that_fails_leaves_none_of_the_lake(make_table: Any) -> None:
    """The lake's copies are made first."""
    table = make_table()
    table.edit(History="true")
    table.load(LOADED)
    assert table.run("LoadInitial") == 0
    table.cdc([("U", (1, "changed"))])
    assert table.run() == 0
    wire = Wire()
    denied = b"<Error><Code>AccessDenied</Code><Message>no</Message></Error>"

    def rule(request: Request, forward: Any) -> Any:
        return answer(403, denied) if request.is_copy() and "_history/" in request.key else forward()

    code = run_on(wire, table, "Rollback", rule, to="previous", lease_seconds=60)

    assert (code, table.open_uploads(), len(wire.of("UploadPartCopy")) > 1) == (3, [], True)


def test_a_copy_that_fails_once_is_sent_again(history: LakeTable) -> None:
    """A server's error, also one that S3 sends after it had answered 200, is no failure."""
    wire = Wire()
    late = b"<Error><Code>InternalError</Code><Message>We encountered an internal error.</Message></Error>"

    rule = once(Request.is_copy, lambda forward: answer(200, late))
    code = run_on(wire, history, "Rollback", rule, to="previous", lease_seconds=60)

    assert (code, history.rows(), len(wire.of("UploadPartCopy"))) == (0, FIRST, 2)


def test_a_commit_that_is_refused_drops_the_copies(history: LakeTable) -> None:
    """A person edits the item while the copies are made: nothing is changed, and no upload is left."""
    wire = Wire()

    def edit(forward: Any) -> Any:
        history.edit(LoadQuietMinutes="3")
        return forward()

    code = run_on(wire, history, "Rollback", once(Request.is_record, edit), to="previous", lease_seconds=60)

    assert (code, history.item()["LastRun"]["error"]["code"]) == (1, "commit-refused")
    assert (history.open_uploads(), history.rows(), "Paused" in history.item()) == ([], SECOND, False)


def test_a_rollback_whose_copies_vanish_before_they_are_published_is_taken_back(history: LakeTable) -> None:
    """A lifecycle rule aborts the uploads of a committed rollback: the table is as before it, and says so in its pause."""
    wire = Wire()
    die(wire, history, "Rollback", lambda request, forward: wire.kill() if request.is_completion() else forward(), to="previous")
    for upload in list_open_uploads(history.clients.s3, history.out_path.bucket, history.out_path.key):
        abort_upload(history.clients.s3, history.out_path.bucket, upload.key, upload.id)

    assert history.run() == 0
    item, rows, kinds = history.item(), history.rows(), [record.kind for record in history.lineage().back()][:2]
    rolled_back(history, to="previous")

    assert (rows, kinds, item["LastIncrementalFile"][-14:]) == (SECOND, ["lost", "rollback"], "001000.parquet")
    assert "was taken back" in item["Paused"]
    assert history.rows() == FIRST


def test_records_that_never_landed_are_no_history(history: LakeTable) -> None:
    """A rollback that died before its commit leaves a record that nobody points to; the next one does not build on it."""
    wire = Wire()
    die(wire, history, "Rollback", lambda request, forward: wire.kill() if request.is_commit() else forward(), to="previous")
    forget_lease(history)
    known = list(list_records(history.clients.s3, history.out_path))

    rolled_back(history, to="previous")

    assert (history.rows(), len(known), len(changes(history))) == (FIRST, 4, 4)
    assert known[-1] not in changes(history)


def is_pause(request: Request) -> bool:
    """Whether it pauses a table that was rolled back, and does nothing else."""
    return request.operation == "UpdateItem" and b"rolled back to" in request.body and not request.is_commit()


def lost_batch(table: LakeTable) -> None:
    """A batch that was committed and whose uploads are gone before it is published."""
    table.cdc([("I", (9, "nine"))])
    wire = Wire()
    die(wire, table, "LoadIncremental", lambda request, forward: wire.kill() if request.is_completion() else forward())
    for upload in list_open_uploads(table.clients.s3, table.out_path.bucket, table.out_path.key):
        abort_upload(table.clients.s3, table.out_path.bucket, upload.key, upload.id)


def test_undo_of_a_change_that_turns_out_lost_undoes_only_that(history: LakeTable) -> None:
    """`previous` means the change before the one that the person sees as the last, although its uploads were gone. As after every rollback
    the table is paused, so that the next run does not just apply the same files again."""
    lost_batch(history)

    rolled_back(history, to="previous")

    assert (history.rows(), history.head().kind) == (SECOND, "lost")
    assert history.item()["LastRun"]["note"] == "nothing to do: the table already has that state"
    assert history.item()["Paused"].startswith(f"rolled back to change {history.head().target}; ")
    assert "applies 1 raw file(s) again" in history.item()["Paused"]
    assert refused(history, undo=history.item()["Head"])["code"] == "lost-change"
    assert (history.run(), history.rows(), history.head().kind) == (0, SECOND, "lost")
    history.remove("Paused")
    assert (history.run(), history.rows()) == (0, sorted([*SECOND, (9, "nine")], key=repr))


def test_a_rollback_that_dies_before_its_pause_leaves_the_lost_change_to_the_next_run(history: LakeTable) -> None:
    """As where a run had found it lost: it is taken back, and its file is applied again."""
    lost_batch(history)
    wire = Wire()

    die(wire, history, "Rollback", lambda request, send: wire.kill() if is_pause(request) else send(), to="previous")

    assert (history.rows(), history.head().kind, "Paused" in history.item()) == (SECOND, "lost", False)
    assert (history.run(), history.rows()) == (0, sorted([*SECOND, (9, "nine")], key=repr))
    history.check_folder()


def test_undo_of_a_change_that_turns_out_lost_leaves_the_table_active_where_that_is_wanted(history: LakeTable) -> None:
    """The next run applies its file again."""
    lost_batch(history)

    rolled_back(history, to="previous", resume="true")

    assert (history.rows(), "Paused" in history.item()) == (SECOND, False)
    assert (history.run(), (9, "nine") in history.rows()) == (0, True)


def test_undo_of_a_change_that_turns_out_lost_leaves_its_files_out_where_that_is_wanted(history: LakeTable) -> None:
    """For good, as those of a change that was published: no later run takes them."""
    lost_batch(history)

    item = rolled_back(history, to="previous", skip="true")

    history.remove("Paused")
    history.cdc([("I", (10, "ten"))])
    assert "goes on with new files" in item["Paused"]
    assert (history.run(), history.rows()) == (0, sorted([*SECOND, (10, "ten")], key=repr))


def test_a_pause_that_a_person_lifts_meanwhile_stays_lifted(history: LakeTable) -> None:
    """It is their word, as where they lift it right after the rollback."""
    lost_batch(history)
    history.edit(Paused="for the audit")
    wire = Wire()

    def lift(forward: Any) -> Any:
        history.remove("Paused")
        return forward()

    assert run_on(wire, history, "Rollback", once(is_pause, lift), to="previous", lease_seconds=60) == 0

    assert (history.head().kind, "Paused" in history.item()) == ("lost", False)


def test_an_archived_version_says_how_to_get_it_back(history: LakeTable) -> None:
    """A rule that moves noncurrent versions to Glacier: refused, nothing left."""
    wire = Wire()
    archived = b"<Error><Code>InvalidObjectState</Code><Message>archived</Message></Error>"

    code = run_on(wire, history, "Rollback", once(Request.is_copy, lambda forward: answer(403, archived)), to="previous", lease_seconds=60)

    error = history.item()["LastRun"]["error"]
    assert (code, error["code"], "restore-object" in error["todo"]) == (1, "version-archived", True)
    assert (history.open_uploads(), history.rows()) == ([], SECOND)


def test_a_persons_own_block_stays(history: LakeTable) -> None:
    """A rollback ends a block of the program's, not one that a person wrote."""
    history.edit(Blocked="hands off until Monday")

    assert rolled_back(history, to="previous")["Blocked"] == "hands off until Monday"


def test_a_table_that_has_gone_on_is_not_rolled_back_further_than_was_shown(history: LakeTable) -> None:
    """A change was committed between a person's look and the run."""
    seen = changes(history)[-1]
    history.cdc([("I", (9, "nine"))])
    assert history.run() == 0

    error = refused(history, to=changes(history)[1], from_change=seen)

    assert (error["code"], seen in error["message"]) == ("moved-on", True)
    assert history.item()["LastRun"]["outcome"] == "refused"
