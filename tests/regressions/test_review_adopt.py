"""Adopted folders: what another program left below its files does not stand in the way of an erase, and a wrong cursor is told."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from glue_jobs.aws.clients import Clients
from tests.lake import LakeTable
from tests.protocol.test_adopt import FUTURE, adopted, ids, put
from tests.quick_aws import QuickAws

COLUMNS = pa.schema([("id", pa.int64()), ("name", pa.string())])
MakeTable = Callable[..., LakeTable]


@pytest.fixture
def make(quick_aws: QuickAws, quick_clients: Clients) -> MakeTable:
    def table(**item: Any) -> LakeTable:
        made = LakeTable(quick_aws.environment(), quick_aws.raw, quick_aws.lake, COLUMNS, shared=quick_clients)
        made.edit(LastFullLoadDate=FUTURE, **item)
        return made

    return table


def erase(table: LakeTable, folder: Path, key: int) -> None:
    """An erase that must work, and after which verify finds nothing."""
    file = folder / "keys.csv"
    file.write_text(f"id\n{key}\n")
    assert table.run("Erase", erase_keys=str(file), key="id") == 0, table.item()["LastRun"]
    assert table.verify() == []


def sizes(table: LakeTable, path: str) -> int:
    """How many data versions S3 keeps of a file."""
    found = table.clients.s3.list_object_versions(Bucket=table.out_path.bucket, Prefix=table.out_path.key + path)
    return len(found.get("Versions", []))


def test_a_file_that_was_overwritten_before_its_adoption_can_be_erased_from(make: MakeTable, tmp_path: Path) -> None:
    """The key goes from the file and from the bytes that lay below it: pandas writes a table to the same name again and again."""
    table = make()
    put(table, "data.parquet", {"id": ids(1, 2), "name": ["old", "old"]})
    put(table, "data.parquet", {"id": ids(1, 2, 3), "name": ["one", "two", "three"]})
    adopted(table)

    erase(table, tmp_path, 1)

    assert (table.rows(), sizes(table, "data.parquet")) == ([(2, "two"), (3, "three")], 0)


def test_a_key_that_only_the_overwritten_bytes_hold_is_erased(make: MakeTable, tmp_path: Path) -> None:
    """No row of the table goes; its file is written anew, so that nothing of the old key need stay."""
    table = make()
    put(table, "data.parquet", {"id": ids(1, 2), "name": ["old", "old"]})
    put(table, "data.parquet", {"id": ids(2, 3), "name": ["two", "three"]})
    adopted(table)

    erase(table, tmp_path, 1)

    assert (table.rows(), sizes(table, "data.parquet")) == ([(2, "two"), (3, "three")], 1)
    assert table.head().counts.deleted == 0


def test_a_file_that_was_written_twice_with_the_same_bytes_can_be_erased_from(make: MakeTable, tmp_path: Path) -> None:
    """Both versions are the table's file: its rows are counted once, and both versions go."""
    table = make()
    for _ in range(2):
        put(table, "data.parquet", {"id": ids(1, 2), "name": ["one", "two"]})
    adopted(table)

    erase(table, tmp_path, 1)

    assert (table.rows(), sizes(table, "data.parquet")) == ([(2, "two")], 0)


@pytest.mark.parametrize(("cursor", "warnings"), [("29990101-000000000.parquet", 1), ("", 0), ("0.parquet", 0)])
def test_a_cursor_beyond_all_files_is_told(make: MakeTable, cursor: str, warnings: int) -> None:
    """All CDC files count as applied then, also those still to come: a slip of the pen must not pass in silence."""
    table = make()
    newest = [table.cdc([("I", (2, "two"))]) for _ in range(2)][-1]
    put(table, "data.parquet", {"id": ids(1), "name": ["one"]})

    assert table.run("Adopt", cursor=cursor or newest.rsplit("/", 1)[-1], dry_run="true") == 0, table.item()["LastRun"]

    assert len(table.item()["LastRun"]["warnings"]) == warnings
