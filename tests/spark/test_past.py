"""Reading a table as of a change: hidden files by their versions, on Arrow and on Spark."""

from __future__ import annotations

from typing import Any

import pytest

from glue_jobs.core.errors import TableBlocked, UsageError
from glue_jobs.core.limits import Limits
from glue_jobs.protocol.as_of import Reading, look
from glue_jobs.spark.past import PastTable, past_table
from glue_jobs.spark.place import CLIENT_VARIABLES, Place
from glue_jobs.spark.row_changes import common_schema, files_apart, row_changes
from tests.spark.tables import WorkTable
from tests.work_tables import MakeTable

LOADED = [(1, "a", 1), (2, "b", 2), (3, "c", 3)]
FIRST = [(1, "A", 1), (3, "c", 3), (4, "d", 4)]
SECOND = [(1, "A", 1), (3, None, 3), (4, "d", 4)]


def seen(table: WorkTable, as_of: str = "") -> Reading:
    waits: list[float] = []
    return look(table.clients.s3, table.state_table, table.path, as_of, waits.append)


def past(table: WorkTable, reading: Reading, paths: list[str] | None = None) -> PastTable:
    client = tuple((name, table.environment[name]) for name in CLIENT_VARIABLES if table.environment.get(name))
    place = Place(client, table.path.bucket, table.out_path, "", "zstd", Limits())
    return past_table(place, str(table.path), reading.snapshot, paths)


def rows(table: WorkTable, as_of: str = "") -> list[tuple[Any, ...]]:
    return sorted(tuple(row.values()) for row in past(table, seen(table, as_of)).read().to_pylist())


@pytest.fixture
def history(served_table: MakeTable) -> tuple[WorkTable, list[str]]:
    """A table with a load, two batches and a rollback to the load; the ids of the four changes."""
    table = served_table(partition_key="qty")
    table.load(LOADED)
    assert table.run("LoadInitial") == 0
    table.cdc([("U", (1, "A", 1)), ("D", (2, None, 2)), ("I", (4, "d", 4))])
    assert table.run() == 0
    table.cdc([("U", (3, None, 3))])
    assert table.run() == 0
    ids = [record.id for record in table.lineage().back()][::-1]
    assert table.run("Rollback", to=ids[0]) == 0
    return table, [*ids, table.item()["Head"]]


def test_every_change_can_be_read(history: tuple[WorkTable, list[str]]) -> None:
    """Also those whose files are hidden, and the rollback, whose files are copies; by id, by time, and now."""
    table, ids = history

    found = [rows(table, change) for change in ids]

    assert found == [LOADED, FIRST, SECOND, LOADED]
    assert rows(table, table.lineage()(ids[1]).time) == FIRST
    assert (rows(table), rows(table, "1999-01-01")) == (LOADED, [])


def test_spark_reads_the_same(history: tuple[WorkTable, list[str]], spark: Any) -> None:
    """As a DataFrame with the table's columns."""
    table, ids = history

    frame = past(table, seen(table, ids[1])).frame(spark)

    assert sorted(tuple(row) for row in frame.collect()) == FIRST
    assert frame.columns == ["id", "name", "qty"]


def test_row_changes_read_only_the_files_that_differ(history: tuple[WorkTable, list[str]]) -> None:
    """The last batch touched one of three files; the rollback's copies are the load's rows."""
    table, ids = history
    load, first, second, head = (seen(table, change) for change in ids)
    gone, came = files_apart(first.snapshot, second.snapshot)
    schema = common_schema(first.snapshot.schema, second.snapshot.schema)

    changes = row_changes(past(table, first, gone).read(), past(table, second, came).read(), schema, ["id"])

    assert (len(gone), len(came)) == (1, 1)
    assert [tuple(row.values()) for row in changes.to_pylist()] == [
        (3, "c", 3, "update_preimage"),
        (3, None, 3, "update_postimage"),
    ]
    assert files_apart(load.snapshot, head.snapshot) == ([], [])


def test_bytes_that_are_no_more_are_named(history: tuple[WorkTable, list[str]]) -> None:
    """A version expired: an error of its own, not a missing row."""
    table, ids = history
    reading = seen(table, ids[2])
    hidden = sorted(set(reading.snapshot.files) - table.visible())[0]
    key = table.out_path.key + hidden
    versions = table.clients.s3.list_object_versions(Bucket=table.out_path.bucket, Prefix=key)["Versions"]
    table.clients.s3.delete_object(Bucket=table.out_path.bucket, Key=key, VersionId=versions[0]["VersionId"])

    with pytest.raises(TableBlocked, match=hidden) as caught:
        past(table, reading)

    assert caught.value.code == "version-gone"


def test_a_reader_waits_for_a_publish_and_then_reads_what_was_before(history: tuple[WorkTable, list[str]]) -> None:
    """While the head is being published its files may not be there; a head that takes back a lost change is read itself."""
    table, ids = history
    table.edit(Publishing=ids[3])

    reading = seen(table)

    assert (reading.snapshot.change, table.item()["Head"]) == (ids[2], ids[3])


def test_unknown_changes_and_tables_are_usage_errors(history: tuple[WorkTable, list[str]]) -> None:
    """Each says where to look."""
    table, _ = history

    with pytest.raises(UsageError, match="took effect"):
        seen(table, "0000000001-000009-0123abcd")
    with pytest.raises(UsageError, match="neither a change id nor a time"):
        seen(table, "last week")
