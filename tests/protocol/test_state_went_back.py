"""An item that is older than the change records: nothing is changed until a person recovers it."""

from __future__ import annotations

from typing import Any

import pytest

from glue_jobs.aws.attributes import typed_item
from glue_jobs.protocol.recover import recover
from tests.lake import LakeTable
from tests.protocol.conftest import AFTER, BEFORE, TableMaker
from tests.protocol.runs import die, facts
from tests.protocol.test_converge import committed, die_after
from tests.protocol.wire import Request, Wire


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
