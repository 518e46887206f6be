"""Erase: after it no version that S3 keeps holds the key, all else is as it was, and whatever it was stopped by, it can be ended."""

from __future__ import annotations

import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from glue_jobs.aws.removal import held_versions
from glue_jobs.core.paths import changes_folder
from glue_jobs.core.record import ChangeRecord
from tests.lake import LakeTable
from tests.protocol.conftest import TableMaker
from tests.protocol.runs import die
from tests.protocol.test_converge import die_after
from tests.protocol.wire import Request, Wire

LOADED = [(1, "one"), (2, "two"), (3, "three")]
FIRST = [(1, "ONE"), (2, "two"), (3, "three"), (4, "four")]
SECOND = [(1, "ONE"), (2, "two"), (3, "THREE"), (4, "four")]


@pytest.fixture
def history(make_table: TableMaker) -> LakeTable:
    """A table with a load and two batches, all applied."""
    return with_history(make_table())


def with_history(table: LakeTable) -> LakeTable:
    table.load(LOADED)
    assert table.run("LoadInitial") == 0
    table.cdc([("U", (1, "ONE")), ("I", (4, "four"))])
    assert table.run() == 0
    table.cdc([("U", (3, "THREE"))])
    assert table.run() == 0
    assert table.rows() == SECOND
    return table


@pytest.fixture
def keys(tmp_path: Path) -> KeysFile:
    return KeysFile(tmp_path)


class KeysFile:
    """Writes the file with keys that a person gives."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def __call__(self, *values: Any, column: str = "id") -> str:
        path = self._folder / f"keys-{len(list(self._folder.iterdir()))}.csv"
        path.write_text("\n".join([column, *map(str, values)]) + "\n")
        return str(path)


def held_rows(table: LakeTable) -> Iterator[tuple[str, dict[str, Any]]]:
    """(key, row) of every row in every version that S3 keeps: data files and what stands beside the records."""
    s3, lake = table.clients.s3, table.out_path
    for prefix in (lake.key, changes_folder(lake).key):
        for held in held_versions(s3, lake.bucket, prefix):
            if held.key.endswith(".parquet"):
                data = s3.get_object(Bucket=lake.bucket, Key=held.key, VersionId=held.version)["Body"].read()
                for row in pq.read_table(io.BytesIO(data), partitioning=None).to_pylist():
                    yield held.key, row


def holds(table: LakeTable, value: Any, column: str = "id") -> list[str]:
    """The keys of versions that hold a row with that value."""
    return sorted({key for key, row in held_rows(table) if row.get(column) == value})


def erased(table: LakeTable, keys: str, **settings: Any) -> ChangeRecord:
    """The record of an erase that must work; the folder and the item are checked."""
    assert table.run("Erase", keys=keys, **settings) == 0, table.item()["LastRun"]
    table.check_folder()
    assert "Erasing" not in table.item()
    assert table.verify() == []
    return table.head()


def refusal(table: LakeTable, **settings: Any) -> dict[str, str]:
    """The error of a run of Erase that fails."""
    assert table.run("Erase", **settings) != 0
    error: dict[str, str] = table.item()["LastRun"]["error"]
    return error


def test_after_an_erase_no_version_holds_the_key(history: LakeTable, keys: KeysFile) -> None:
    """Neither the rows nor any version that S3 keeps; the record tells how many of what, and never a key."""
    assert holds(history, 1)

    record = erased(history, keys(1))

    assert (history.rows(), holds(history, 1)) == ([row for row in SECOND if row[0] != 1], [])
    assert (record.kind, record.counts.deleted, record.details["keys_found"]) == ("erase", 1, 1)
    assert (len(record.erased), record.details["versions"]) == (3, 3)
    assert record.erased_keys is not None
    assert record.erased_keys.columns == ("id",)
    assert record.given is None
    assert history.snapshot().erases == (record.id,)
    assert "3 version(s) were removed" in history.item()["LastRun"]["note"]


def test_cdc_goes_on_after_an_erase(history: LakeTable, keys: KeysFile) -> None:
    """The cursor stays, and the next batch is applied on the erase."""
    cursor = history.item()["LastIncrementalFile"]
    erased(history, keys(1))
    history.cdc([("U", (2, "TWO"))])

    assert history.run() == 0

    assert history.item()["LastIncrementalFile"] > cursor
    assert history.rows() == [(2, "TWO"), (3, "THREE"), (4, "four")]


def test_keys_only_in_old_versions_make_a_change_without_files(make_table: TableMaker, keys: KeysFile) -> None:
    """A row that DMS deleted long ago still stands in hidden versions."""
    table = make_table()
    table.load(LOADED)
    assert table.run("LoadInitial") == 0
    table.cdc([("D", (2, None))])
    assert table.run() == 0

    record = erased(table, keys(2))

    assert (record.added, record.superseded, len(record.erased), holds(table, 2)) == ((), (), 1, [])
    assert table.rows() == [(1, "one"), (3, "three")]


def test_a_key_that_nothing_holds_changes_nothing(history: LakeTable, keys: KeysFile) -> None:
    """It is an error, because a person meant somebody."""
    before = (history.item()["Head"], history.rows())

    error = refusal(history, keys=keys(99))

    assert (error["code"], history.item()["Head"], history.rows()) == ("no-key-found", *before)


def test_a_dry_run_changes_nothing(history: LakeTable, keys: KeysFile) -> None:
    """It only looks."""
    before = (history.item()["Head"], holds(history, 1))

    assert history.run("Erase", keys=keys(1), dry_run="true") == 0

    assert (history.item()["Head"], holds(history, 1)) == before
    assert history.item()["LastRun"]["note"] == "dry run: nothing was changed"


def test_by_columns_that_are_not_the_key(make_table: TableMaker, keys: KeysFile) -> None:
    """All rows of a customer, wherever they stand; null never matches."""
    columns = pa.schema([("id", pa.int64()), ("customer", pa.int64()), ("item", pa.string())])
    table = make_table(columns, partition_key="item")
    table.load([(1, 7, "a"), (2, 8, "a"), (3, 7, "b"), (4, None, "b")])
    assert table.run("LoadInitial") == 0
    table.cdc([("U", (2, 7, "c"))])
    assert table.run() == 0

    record = erased(table, keys(7, column="customer"), key="customer")

    assert (table.rows(), holds(table, 7, "customer"), record.counts.deleted) == ([(4, None, "b")], [], 3)


def test_by_a_column_that_is_a_folder(make_table: TableMaker, keys: KeysFile) -> None:
    """It stands in no file: the folder's name is the value."""
    columns = pa.schema([("id", pa.int64()), ("customer", pa.int64())])
    table = make_table(columns, partition_key="customer")
    table.load([(1, 7), (2, 8), (3, 7)])
    assert table.run("LoadInitial") == 0

    record = erased(table, keys(7, column="customer"), key="customer")

    left = [held.key for held in held_versions(table.clients.s3, table.out_path.bucket, table.out_path.key)]
    assert (table.rows(), record.counts.deleted, len(left)) == ([(2, 8)], 2, 1)


def test_under_the_name_that_a_column_had(make_table: TableMaker, keys: KeysFile) -> None:
    """Files of before a rename have the older name, and are searched under it."""
    columns = pa.schema([("id", pa.int64()), ("mail", pa.string())])
    table = make_table(columns)
    table.load([(1, "a@b"), (2, "c@d")])
    assert table.run("LoadInitial") == 0
    table.edit(Request="schema-rename:mail=email")
    assert table.run() == 0
    assert [column.name for column in table.snapshot().schema] == ["id", "email"]

    erased(table, keys("a@b", column="email"), key="email")

    assert (holds(table, "a@b", "mail"), holds(table, "a@b", "email")) == ([], [])
    assert table.rows() == [(2, "c@d")]


def test_in_a_generation_whose_key_had_another_type(make_table: TableMaker, keys: KeysFile) -> None:
    """The number 1 of today was the text '1' before the reload."""
    table = make_table(pa.schema([("id", pa.string()), ("name", pa.string())]))
    table.load([("1", "one"), ("2", "two")])
    assert table.run("LoadInitial") == 0
    table.load([(1, "one"), (2, "two")], columns=pa.schema([("id", pa.int64()), ("name", pa.string())]))
    table.edit(LoadQuietMinutes="0")
    assert table.run("LoadInitial") == 0, table.item()["LastRun"]

    record = erased(table, keys(1))

    assert (len(record.erased), holds(table, 1), holds(table, "1")) == (2, [], [])


def test_files_of_undone_and_unlanded_changes_are_searched(history: LakeTable, keys: KeysFile, wire: Wire) -> None:
    """Copies of a rollback, the branch that it undid, and an upload that waits for a commit that never comes."""
    assert history.run("Rollback", to=[record.id for record in history.lineage().back()][1], resume="true", skip="true") == 0
    history.cdc([("U", (1, "again"))])
    die(wire, history, "LoadIncremental", die_after(wire, Request.is_commit, 0))
    assert history.open_uploads()

    erased(history, keys(1))

    assert (holds(history, 1), history.open_uploads()) == ([], [])
