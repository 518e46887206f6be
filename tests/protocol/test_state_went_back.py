"""An item that is older than the change records: nothing is changed until a person recovers it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from botocore.exceptions import ConnectionClosedError

from glue_jobs.aws.attributes import typed_item
from glue_jobs.aws.state_table import StateTable
from glue_jobs.protocol.recover import recover
from tests.lake import LakeTable
from tests.protocol.conftest import AFTER, BEFORE, TableMaker
from tests.protocol.runs import die, facts, forget_lease
from tests.protocol.test_converge import committed, die_after, die_now
from tests.protocol.wire import Killed, Request, Wire, in_turn, once


def overwrite(table: LakeTable, item: dict[str, Any]) -> None:
    """What a restore, or a stale form in the console, does: the whole item as it was."""
    table.clients.dynamodb.put_item(TableName=table.state_table.name, Item=typed_item(item))


def as_new(table: LakeTable) -> dict[str, Any]:
    """The item as it was before the first run: deleted, and made again by the controller and a person."""
    ours = ("Head", "Fence", "LastRun", "CatalogTable")
    item = {name: value for name, value in table.item().items() if name not in ours}
    return {**item, "LastFullLoadDate": "1900-01-01 00:00:00", "LastIncrementalFile": "0.parquet"}


def check_blocked_and_recovered(table: LakeTable, expected: dict[str, Any]) -> None:
    before = table.visible()
    codes = [table.run(job) for job in ("LoadInitial", "LoadIncremental")]
    assert (codes, table.item()["LastRun"]["error"]["code"], table.visible()) == ([1, 1], "state-went-back", before)

    recover(table.clients, table.state_table, table.path, dry_run=False)

    table.sync()
    assert facts(table) == expected


def test_a_deleted_item_is_never_taken_for_a_new_table(loaded: LakeTable) -> None:
    """Loading it again would double the rows of a table that is there."""
    assert loaded.run("LoadIncremental") == 0
    expected = facts(loaded)
    overwrite(loaded, as_new(loaded))

    check_blocked_and_recovered(loaded, expected)


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("number", range(3))
def test_a_recover_that_dies_at_any_write_is_done_again(loaded: LakeTable, wire: Wire, number: int, after: bool) -> None:
    """The lease, the head, the lease given back: until the second has landed no run changes anything."""
    assert loaded.run("LoadIncremental") == 0
    expected = facts(loaded)
    overwrite(loaded, as_new(loaded))
    before = [lambda send: send()] * number
    wire.rule = in_turn(lambda request: request.is_write, *before, lambda send: die_now(wire, send if after else None))
    with wire.connected(), pytest.raises(Killed):
        recover(loaded.clients, loaded.state_table, loaded.path, dry_run=False)
    forget_lease(loaded)
    has_landed = (number, after) >= (1, True)
    assert ("Head" in loaded.item()) == has_landed
    if not has_landed:
        assert (loaded.run("LoadIncremental"), loaded.item()["LastRun"]["error"]["code"]) == (1, "state-went-back")

    found = recover(loaded.clients, loaded.state_table, loaded.path, dry_run=False)

    assert found.changed == (not has_landed)
    loaded.sync()
    assert facts(loaded) == expected


def test_a_recover_whose_answer_is_lost_has_worked(loaded: LakeTable, wire: Wire) -> None:
    """The request that is sent again finds the fence moved by the first. The lease is given back, so that the next run need not wait."""
    assert loaded.run("LoadIncremental") == 0
    overwrite(loaded, as_new(loaded))

    def lose(send: Any) -> Any:
        send()
        raise ConnectionClosedError(endpoint_url="dynamodb")

    wire.rule = once(lambda request: b'"Publishing"' in request.body, lose)
    with wire.connected():
        found = recover(loaded.clients, loaded.state_table, loaded.path, dry_run=False)

    item = loaded.item()
    assert (found.changed, item["Head"], item["Fence"], "LeaseOwner" in item) == (True, found.head, found.fence, False)
    assert len([request for request in wire.requests if b'"Publishing"' in request.body and request.is_write]) == 2
    assert (loaded.run("LoadIncremental"), loaded.rows()) == (0, AFTER)


def test_an_item_made_anew_gets_its_keys_back(make_table: TableMaker) -> None:
    """With the keys of the head's record it needs no others: a partition key can't be given to a table that has a head."""
    table = make_table(partition_key="name")
    table.load([(1, "one"), (2, "two")])
    table.sync()
    before = table.item()
    overwrite(table, {**as_new(table), "PrimaryKey": "null", "PartitionKey": "null", "ActiveFlag": "false"})

    recover(table.clients, table.state_table, table.path, dry_run=False)

    after = table.item()
    names = ("PrimaryKey", "PartitionKey", "Head")
    assert [after[name] for name in names] == [before[name] for name in names]
    overwrite(table, {**after, "ActiveFlag": "true"})
    table.cdc([("U", (1, "ONE"))])
    table.sync()
    assert sorted(table.read()["name"].to_pylist()) == ["ONE", "two"]


def test_keys_that_a_person_gave_stay(loaded: LakeTable) -> None:
    """An item made anew may already have others."""
    overwrite(loaded, {**as_new(loaded), "PrimaryKey": "name"})

    recover(loaded.clients, loaded.state_table, loaded.path, dry_run=False)

    assert loaded.item()["PrimaryKey"] == "name"


@pytest.mark.parametrize("same_fence", [False, True])
def test_an_item_from_a_backup_is_recovered(loaded: LakeTable, same_fence: bool) -> None:
    """Its head was superseded; also where its fence is as great as the latest."""
    backup = loaded.item()
    assert loaded.run("LoadIncremental") == 0
    expected, fence = facts(loaded), loaded.item()["Fence"]
    overwrite(loaded, {**backup, "Fence": fence} if same_fence else backup)

    check_blocked_and_recovered(loaded, expected)


def test_an_item_from_before_a_change_that_only_removed_a_file_is_found(loaded: LakeTable) -> None:
    """It added none; the one it superseded is hidden."""
    assert loaded.run("LoadIncremental") == 0
    backup = loaded.item()
    loaded.cdc([("D", row) for row in AFTER])
    assert loaded.run("LoadIncremental") == 0
    overwrite(loaded, {**backup, "Fence": 9})

    assert (loaded.run("LoadIncremental"), loaded.item()["LastRun"]["error"]["code"]) == (1, "state-went-back")


def test_an_item_from_before_a_change_that_was_never_published_is_found(loaded: LakeTable, wire: Wire) -> None:
    """The fence in the record's name is greater than any that the item has given out."""
    backup = loaded.item()
    committed(wire, loaded)
    overwrite(loaded, backup)

    assert (loaded.run("LoadIncremental"), loaded.item()["LastRun"]["error"]["code"], loaded.rows()) == (1, "state-went-back", BEFORE)


def test_an_item_from_before_a_change_of_which_one_file_was_completed_is_found(make_table: TableMaker, wire: Wire) -> None:
    """Whichever: who was killed completes them in no order. The fence tells nothing where the stale form was read in that run."""
    table = make_table(partition_key="name")
    table.load([(1, "one"), (2, "two")])
    table.sync()
    backup = table.item()
    table.cdc([("I", (number, f"new {number}")) for number in range(3, 6)])
    last = committed(wire, table).added[-1]
    assert last.upload is not None
    parts: Any = [{"PartNumber": part.number, "ETag": part.etag, "ChecksumCRC32": part.crc32} for part in last.upload.parts]
    where: Any = {"Bucket": table.out_path.bucket, "Key": table.out_path.key + last.path, "UploadId": last.upload.id}
    table.clients.s3.complete_multipart_upload(MultipartUpload={"Parts": parts}, **where)
    overwrite(table, {**backup, "Fence": table.item()["Fence"]})

    assert (table.run("LoadIncremental"), table.item()["LastRun"]["error"]["code"]) == (1, "state-went-back")


def test_a_fence_below_that_of_the_head_is_found(loaded: LakeTable) -> None:
    """The next change would get an id below its parent's, and a recover would take that for one that is not there."""
    for number in range(2):
        loaded.cdc([("U", (3, f"three {number}"))])
        assert loaded.run("LoadIncremental") == 0
    expected = facts(loaded)
    loaded.edit(Fence=1)

    assert loaded.verify(quick=True) == ["state-went-back"]
    check_blocked_and_recovered(loaded, expected)


def test_a_batch_without_a_trace_is_not_forgotten_once_runs_were_refused(loaded: LakeTable) -> None:
    """It skips a file by a person's cursor and changes no row. Each refused run raises the fence, which first told that it was there."""
    assert loaded.run("LoadIncremental") == 0
    backup = loaded.item()
    skipped = loaded.cdc([("U", (1, "left out"))])
    loaded.edit(LastIncrementalFile=f"{loaded.path.bucket}/{skipped}")
    loaded.cdc([("D", (99, None))])
    assert loaded.run("LoadIncremental") == 0
    assert (loaded.head().added, loaded.head().superseded) == ((), ())
    expected = facts(loaded)
    overwrite(loaded, backup)

    check_blocked_and_recovered(loaded, expected)

    assert loaded.rows() == AFTER


def test_an_attempt_to_begin_that_never_landed_holds_up_no_item_from_before_it(table: LakeTable) -> None:
    """The item was restored with an older fence. Nothing was published, so that there is nothing to recover."""
    backup = table.item()
    dying = Wire()
    die(dying, table, "LoadInitial", die_after(dying, Request.is_commit, 0))
    overwrite(table, {**backup, "Fence": 0})

    codes = [table.run("LoadInitial") for _ in range(3)]

    assert (codes[0], codes[-1], table.rows()) == (1, 0, BEFORE)


def test_a_head_that_is_no_change_blocks(loaded: LakeTable) -> None:
    """As one without its record does."""
    loaded.edit(Head="the last one")

    assert (loaded.run("LoadIncremental"), loaded.item()["LastRun"]["outcome"]) == (1, "blocked")


def test_attempts_that_never_landed_are_passed_over(loaded: LakeTable) -> None:
    """Their records stay for good, and block nothing."""
    for _ in range(3):
        dying = Wire()
        die(dying, loaded, "LoadIncremental", die_after(dying, Request.is_commit, 0))

    assert (loaded.run("LoadIncremental"), loaded.rows(), loaded.run("LoadIncremental")) == (0, AFTER, 0)
    loaded.check_folder()


def test_a_head_without_its_record_blocks(loaded: LakeTable) -> None:
    """Somebody deleted it; the bucket is versioned, so it can come back."""
    key = f"lake/_changes/shop/{loaded.table}/{loaded.item()['Head']}.json"
    loaded.clients.s3.delete_object(Bucket=loaded.out_path.bucket, Key=key)

    code = loaded.run("LoadIncremental")

    assert (code, loaded.item()["LastRun"]["error"]["code"]) == (1, "record-gone")


def test_an_unknown_publishing_is_finished_by_publishing_the_head(loaded: LakeTable) -> None:
    """A person saved a form with an older value: the run ends, and the attribute with it."""
    first = loaded.item()["Head"]
    assert loaded.run("LoadIncremental") == 0
    loaded.edit(Publishing=first, CatalogPending=first)

    assert (loaded.run("LoadIncremental"), loaded.rows()) == (0, AFTER)
    assert not {"Publishing", "CatalogPending"} & set(loaded.item())


@pytest.fixture
def shrunk(make_table: TableMaker) -> LakeTable:
    """A table whose last change removed one of its two files: it added none, and of the file nothing is left, the delete marker neither."""
    table = make_table(partition_key="name")
    table.load([(1, "one"), (2, "two")])
    table.sync()
    (path,) = (path for path in table.visible() if path.startswith("name=two"))
    table.cdc([("D", (2, "two"))])
    table.sync()
    expire(table, path)
    return table


def expire(table: LakeTable, path: str) -> None:
    """Remove all that S3 has of a file, as lifecycle rules do after their days: its versions, then the marker that nothing is below."""
    s3, bucket, key = table.clients.s3, table.out_path.bucket, table.out_path.key + path
    answer = s3.list_object_versions(Bucket=bucket, Prefix=key)
    for entry in (*answer.get("Versions", ()), *answer.get("DeleteMarkers", ())):
        s3.delete_object(Bucket=bucket, Key=key, VersionId=entry["VersionId"])


def test_a_change_of_which_no_trace_is_left_is_found(shrunk: LakeTable, wire: Wire) -> None:
    """What it removed is visible no more: nobody else hides files. What an attempt after it would have removed is visible."""
    head, expected = shrunk.item()["Head"], facts(shrunk)
    name = shrunk.cdc([("D", (1, "one"))]).rsplit("/", 1)[-1]
    die(wire, shrunk, "LoadIncremental", die_after(wire, Request.is_commit, 0))
    shrunk.delete_raw(name)
    overwrite(shrunk, as_new(shrunk))

    check_blocked_and_recovered(shrunk, expected)
    assert shrunk.item()["Head"] == head


def test_a_change_is_found_by_any_of_its_files(make_table: TableMaker) -> None:
    """Not only by the first one that it added."""
    table = make_table(partition_key="name")
    table.load([(1, "one"), (2, "two")])
    table.sync()
    table.cdc([("I", (3, "three")), ("I", (4, "four"))])
    table.sync()
    head = table.item()["Head"]
    expire(table, table.head().added[0].path)
    overwrite(table, as_new(table))

    assert recover(table.clients, table.state_table, table.path, dry_run=True).head == head


def test_a_published_change_is_never_taken_back(shrunk: LakeTable) -> None:
    """Nor where the item says that it is to be published: a change that was built on it shows that it was."""
    first = shrunk.head().parent
    overwrite(shrunk, {**shrunk.item(), "Head": first, "Publishing": first})
    before = shrunk.visible()

    code = shrunk.run("LoadIncremental")

    assert (code, shrunk.item()["LastRun"]["error"]["code"], shrunk.visible()) == (1, "published-before", before)
    recover(shrunk.clients, shrunk.state_table, shrunk.path, dry_run=False)
    shrunk.sync()
    assert (shrunk.item()["Head"] > first, shrunk.rows()) == (True, [(1, "one")])


def test_a_change_that_hid_files_is_never_taken_back(loaded: LakeTable) -> None:
    """The older files would be listed and not be there. Without `Publishing` the table can be reloaded, as the error says."""
    assert loaded.run("LoadIncremental") == 0
    (path,) = loaded.visible()
    expire(loaded, path)
    loaded.edit(Publishing=loaded.item()["Head"])

    code = loaded.run("LoadIncremental")

    error = loaded.item()["LastRun"]["error"]
    assert (code, error["code"], loaded.head().kind) == (1, "published-before", "incremental")
    loaded.remove("Publishing")
    loaded.edit(Request="reload", LoadQuietMinutes="0")
    loaded.sync()
    assert loaded.rows() == BEFORE
    loaded.check_folder()


def test_a_table_that_was_rolled_back_comes_back_paused(loaded: LakeTable) -> None:
    """Or its next run would apply the bad batch again. A person's own pause stays as it is."""
    assert loaded.run("LoadIncremental") == 0
    backup = loaded.item()
    assert loaded.run("Rollback", to="previous") == 0
    head = loaded.item()["Head"]
    overwrite(loaded, backup)

    recover(loaded.clients, loaded.state_table, loaded.path, dry_run=False)
    codes = [loaded.run(job) for job in ("LoadInitial", "LoadIncremental")]

    item = loaded.item()
    assert (codes, item["Head"], loaded.rows()) == ([0, 0], head, BEFORE)
    assert head in item["Paused"]
    assert "dmslake activate" in item["Paused"]
    overwrite(loaded, {**backup, "Paused": "an audit"})
    recover(loaded.clients, loaded.state_table, loaded.path, dry_run=False)
    assert loaded.item()["Paused"] == "an audit"
    loaded.remove("Paused")
    loaded.sync()
    assert loaded.rows() == AFTER


def test_a_table_whose_rolled_back_files_are_still_due_comes_back_paused(loaded: LakeTable, tmp_path: Path) -> None:
    """Also where another change came after the rollback."""
    assert loaded.run("LoadIncremental") == 0
    backup = loaded.item()
    assert loaded.run("Rollback", to="previous") == 0
    pq.write_table(pa.table({"id": [3]}), tmp_path / "deletes.parquet")
    assert loaded.run("Apply", key="id", deletes=str(tmp_path / "deletes.parquet")) == 0
    overwrite(loaded, backup)

    recover(loaded.clients, loaded.state_table, loaded.path, dry_run=False)

    assert "1 raw file(s)" in loaded.item()["Paused"]


def test_a_run_that_committed_while_recover_looked_is_not_overwritten(loaded: LakeTable) -> None:
    """Somebody else recovered the table first, and a run went on from there."""
    assert loaded.run("LoadIncremental") == 0
    overwrite(loaded, as_new(loaded))

    class Slow(StateTable):
        looks = 0

        def get(self, path: str) -> dict[str, Any] | None:
            self.looks += 1
            if self.looks == 2:
                recover(loaded.clients, loaded.state_table, loaded.path, dry_run=False)
                loaded.cdc([("I", (5, "five"))])
                loaded.sync()
            return super().get(path)

    found = recover(loaded.clients, Slow(loaded.clients, loaded.state_table.name), loaded.path, dry_run=False)

    assert (found.changed, loaded.item()["Head"]) == (False, found.head)
    assert (5, "five") in loaded.rows()
    loaded.check_folder()
