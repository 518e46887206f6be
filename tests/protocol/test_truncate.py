"""A truncate at the source: DMS deletes the raw files, and the lake table is emptied by a change like any."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from botocore.exceptions import ClientError

from glue_jobs.core.limits import Limits
from glue_jobs.core.paths import TablePath
from glue_jobs.protocol.raw import raw_notes
from tests.lake import LakeTable
from tests.protocol.conftest import TableMaker
from tests.spark.tables import SHOP
from tests.work_tables import MakeTable

LOADED = [(1, "one", 1), (2, "two", 2)]
APPLIED = [(1, "ONE", 1), (2, "two", 2)]


def vanished(table: LakeTable, **attributes: str) -> LakeTable:
    """The table, loaded and with a batch applied, after all its raw files were deleted."""
    table.load(LOADED)
    table.cdc([("U", (1, "ONE", 1))])
    table.sync()
    bucket, folder = table.path.bucket, table.path.raw.key
    for entry in table.clients.s3.list_objects_v2(Bucket=bucket, Prefix=folder)["Contents"]:
        table.clients.s3.delete_object(Bucket=bucket, Key=entry["Key"])
    if attributes:
        table.edit(**attributes)
    return table


def notes(table: LakeTable) -> list[str]:
    return [finding.code for finding in table.verified(quick=True).findings if not finding.is_difference]


def expires(table: LakeTable, days: int) -> None:
    rule = {"ID": "raw", "Status": "Enabled", "Filter": {"Prefix": table.path.raw.key}, "Expiration": {"Days": days}}
    table.clients.s3.put_bucket_lifecycle_configuration(Bucket=table.path.bucket, LifecycleConfiguration={"Rules": [rule]})


def test_the_table_is_emptied_as_one_change_and_goes_on(make_table: TableMaker) -> None:
    """Columns and cursor stay, and what DMS writes next is taken."""
    table = vanished(make_table(SHOP), OnRawFilesGone="truncate")
    cursor = table.item()["LastIncrementalFile"]

    table.sync()
    table.sync()

    record = table.head()
    assert (record.kind, record.counts.deleted, record.added, record.counts.table_rows) == ("truncate", 2, (), 0)
    assert (table.rows(), table.visible(), table.item()["LastIncrementalFile"]) == ([], set(), cursor)
    assert table.verify() == []
    table.cdc([("I", (7, "seven", 7))])
    table.sync()
    assert table.rows() == [(7, "seven", 7)]


def test_without_a_word_it_is_only_reported(make_table: TableMaker) -> None:
    """By verify, as a note."""
    table = vanished(make_table(SHOP))

    table.sync()

    assert table.rows() == APPLIED
    assert table.verify(quick=True) == []
    assert "raw-files-gone" in notes(table)


def test_new_files_are_taken_after_the_truncate(new_table: MakeTable) -> None:
    """In the same run, as a change of their own."""
    table = vanished(new_table(), OnRawFilesGone="truncate")
    table.cdc([("I", (7, "seven", 7))])

    table.sync()

    assert table.rows() == [(7, "seven", 7)]
    assert [record.kind for record in table.lineage().back()][:2] == ["incremental", "truncate"]


def test_an_idle_table_whose_files_expired_keeps_its_rows(new_table: MakeTable) -> None:
    """The rule that expires them is looked up when they are gone."""
    table = new_table()
    expires(table, 1)
    vanished(table, OnRawFilesGone="truncate")

    table.sync()

    assert table.rows() == APPLIED
    table.clients.s3.delete_bucket_lifecycle(Bucket=table.path.bucket)


def test_rules_that_nobody_may_read_empty_no_table(new_table: MakeTable) -> None:
    """A warning says why it was not done."""
    table = vanished(new_table(), OnRawFilesGone="truncate")

    def denied(**_: Any) -> None:
        raise ClientError({"Error": {"Code": "AccessDenied"}}, "GetBucketLifecycleConfiguration")

    events = table.clients.s3.meta.events
    events.register("before-call.s3.GetBucketLifecycleConfiguration", denied, unique_id="denied")
    try:
        assert table.run() == 0
    finally:
        events.unregister("before-call.s3.GetBucketLifecycleConfiguration", unique_id="denied")

    assert table.rows() == APPLIED
    assert any("GetLifecycleConfiguration" in text for text in table.item()["LastRun"]["warnings"])


def test_a_rollback_of_it_brings_the_rows_back_and_pauses(make_table: TableMaker) -> None:
    """Activating would empty the table again: the raw files are still gone, and a person's word still stands."""
    table = vanished(make_table(SHOP), OnRawFilesGone="truncate")
    table.sync()

    assert table.run("Rollback", to="previous") == 0

    assert table.rows() == APPLIED
    assert table.verify(quick=True) == []
    table.sync()
    assert (table.rows(), "Paused" in table.item()) == (APPLIED, True)
    table.remove("Paused", "OnRawFilesGone")
    table.sync()
    assert table.rows() == APPLIED
    assert table.run("Rollback", reapply="") == 0
    assert table.rows() == []


def test_a_load_after_it_is_a_load_like_any(new_table: MakeTable) -> None:
    """DMS writes the table again."""
    table = vanished(new_table(), OnRawFilesGone="truncate")
    table.sync()
    table.load([(5, "five", 5)])

    table.sync(load_quiet_minutes=0)

    assert table.rows() == [(5, "five", 5)]
    assert table.head().generation.number == 3


def test_raw_files_that_can_not_be_listed_are_a_note(make_table: TableMaker) -> None:
    """verify goes on with all else that it can look at."""
    table = make_table()
    table.load([(1, "one")])
    assert table.run("LoadInitial") == 0
    state = replace(table.state(), path=TablePath("no-such-bucket", table.path.prefix, table.path.folder))

    found = raw_notes(table.clients.s3, state, table.snapshot(), Limits())

    assert [(finding.code, finding.is_difference) for finding in found] == [("raw-unchecked", False)]
