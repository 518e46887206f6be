"""Erases from a history table that does not go with its lake table: the keys are the lake table's, whatever the history was when it was
kept last."""

from __future__ import annotations

import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from glue_jobs.aws.objects import hide, list_files
from glue_jobs.aws.removal import held_versions
from glue_jobs.core.history_table import history_lake
from glue_jobs.core.paths import changes_folder
from glue_jobs.protocol.table_run import TableRun
from infra.local.dms_files import DmsRow
from tests.spark.histories import history_of, versions
from tests.spark.tables import SHOP, WorkTable
from tests.spark.test_history_table import at, batch, keeping, load
from tests.work_tables import MakeTable

CUSTOMERS = SHOP.append(pa.field("customer_id", pa.int64()))
MAILS = pa.schema([("id", pa.int64()), ("mail", pa.string())])


def keys_file(folder: Path, column: str, *values: Any) -> str:
    path = folder / "keys.csv"
    path.write_text("\n".join([column, *map(str, values)]) + "\n")
    return str(path)


def held(table: WorkTable) -> Iterator[dict[str, Any]]:
    """Every row of every version that S3 keeps in both folders."""
    s3 = table.clients.s3
    for lake in (table.out_path, history_lake(table.out_path)):
        for each in held_versions(s3, lake.bucket, lake.key):
            body = s3.get_object(Bucket=lake.bucket, Key=each.key, VersionId=each.version)["Body"].read()
            yield from pq.read_table(io.BytesIO(body), partitioning=None).to_pylist()


def rows(table: WorkTable) -> list[tuple[Any, ...]]:
    """The lake table's rows without their commit time."""
    return [row[1:] for row in table.rows()]


def erase(table: WorkTable, keys: str, **settings: Any) -> dict[str, Any]:
    """The details of an erase that must work; both folders are as the records say."""
    assert table.run("Erase", erase_keys=keys, **settings) == 0, table.last_run()
    assert table.verify() == []
    return dict(table.head().details)


def off(table: WorkTable) -> WorkTable:
    """The table, whose history is not kept from now on."""
    table.edit(History="false")
    return table


def renamed_meanwhile(new_table: MakeTable) -> WorkTable:
    """A table whose column mail became email while its history was off."""
    table = keeping(new_table, columns=MAILS)
    load(table, 0, (1, "a@b"), (2, "c@d"))
    table.sync()
    off(table).edit(Request="schema-rename:mail=email")
    table.sync()
    return table


def test_a_column_that_came_while_the_history_was_off(new_table: MakeTable, tmp_path: Path) -> None:
    """The table has it; the history's versions are counted as those without it."""
    table = keeping(new_table)
    load(table, 0, (1, "a", 1), (2, "b", 2))
    table.sync()
    off(table).cdc([DmsRow("U", (1, "a", 1, 7), at(1))], columns=CUSTOMERS)
    table.sync()

    details = erase(table, keys_file(tmp_path, "customer_id", 7), key="customer_id")

    assert rows(table) == [(2, "b", 2, None)]
    assert details["versions_without_key"] == 2
    assert not [row for row in held(table) if row.get("customer_id") == 7]


def test_a_column_that_was_renamed_while_the_history_was_off(new_table: MakeTable, tmp_path: Path) -> None:
    """The history's files have it under its older name, and their other rows stay."""
    table = renamed_meanwhile(new_table)

    details = erase(table, keys_file(tmp_path, "email", "a@b"), key="email")

    assert (rows(table), details["history_rows_erased"]) == ([(2, "c@d")], 1)
    assert [row["mail"] for row in versions(table)] == ["c@d"]
    assert not [row for row in held(table) if "a@b" in row.values()]


def test_old_versions_of_a_column_that_was_renamed_while_the_history_was_off(new_table: MakeTable, tmp_path: Path) -> None:
    """Brought up to date, the history has both columns: the old one for the versions of before, the new one for those of since."""
    table = renamed_meanwhile(new_table)
    table.edit(History="true")
    table.sync()
    assert {(row["mail"], row["email"]) for row in versions(table)} >= {("a@b", None), (None, "a@b")}

    erase(table, keys_file(tmp_path, "email", "a@b"), key="email")

    assert {row["mail"] or row["email"] for row in versions(table)} == {"c@d"}
    assert not [row for row in held(table) if "a@b" in row.values()]


def test_a_collation_that_came_while_the_history_was_off(new_table: MakeTable, tmp_path: Path) -> None:
    """Every spelling goes from both, by the key's collation of now."""
    columns = pa.schema([("name", pa.string()), ("qty", pa.int32())])
    table = keeping(new_table, columns=columns, primary_key="name")
    load(table, 0, ("ABC", 1), ("b", 2))
    table.sync()
    off(table).edit(KeyCollation="ci")
    table.sync()

    details = erase(table, keys_file(tmp_path, "name", "aBc"))

    assert (rows(table), details["rows_erased"], details["history_rows_erased"]) == ([("b", 2)], 1, 1)
    assert not [row for row in held(table) if row["name"] == "ABC"]


def test_a_type_that_changed_while_the_history_was_off(new_table: MakeTable, tmp_path: Path) -> None:
    """The history's files have numbers where the table has texts now; a key may be one that is no number."""
    table = keeping(new_table)
    load(table, 0, (1, "a", 7), (2, "b", 8))
    table.sync()
    table.columns = pa.schema([("id", pa.int64()), ("name", pa.string()), ("qty", pa.string())])
    load(off(table), 1, (1, "a", "7"), (2, "b", "8"), (3, "c", "some"), number=2)
    table.delete_raw("LOAD00000001.parquet")
    table.edit(Request="reload", LoadQuietMinutes="0")
    table.sync()

    details = erase(table, keys_file(tmp_path, "qty", 7, "some"), key="qty")

    assert (rows(table), details["keys_found"], details["history_rows_erased"]) == ([(2, "b", "8")], 2, 1)
    assert {row["qty"] for row in held(table)} == {8, "8"}


class Died(BaseException):
    """The end of a process."""


def test_a_history_whose_first_change_never_landed(new_table: MakeTable, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its record is there, with uploads that nobody completed, and the table has no history."""
    table = new_table(timestamp_column="committed")
    table.environment = {"DMSLAKE_DATABASE": "", **table.environment}
    load(table, 0, (1, "a", 1), (2, "b", 2))
    table.sync()
    table.edit(History="true")
    with monkeypatch.context() as patch:
        patch.setattr(TableRun, "_land", die)
        with pytest.raises(Died):
            table.run()
    assert table.snapshot().history is None
    table.edit(History="false")

    details = erase(table, keys_file(tmp_path, "id", 1))

    assert (rows(table), details["rows_erased"], details["history_files_rewritten"]) == ([(2, "b", 2)], 1, 0)
    assert not [row for row in held(table) if row["id"] == 1]


def test_a_history_that_was_purged_with_its_table(new_table: MakeTable, tmp_path: Path) -> None:
    """The table was loaded again without one; the versions of the first one are there as long as S3 keeps them."""
    table = keeping(new_table)
    load(table, 0, (1, "a", 1), (2, "b", 2))
    table.sync()
    purge(table)
    table.edit(History="false")
    table.sync()
    assert table.snapshot().history is None
    assert [row["id"] for row in held(table)] == [1, 2] * 3

    details = erase(table, keys_file(tmp_path, "id", 1))

    assert (rows(table), details["rows_erased"], details["versions"]) == ([(2, "b", 2)], 1, 3)
    assert not [row for row in held(table) if row["id"] == 1]


def purge(table: WorkTable) -> None:
    """What `forget --purge` leaves, with an item as a new one has it."""
    s3, bucket = table.clients.s3, table.out_path.bucket
    folders = [table.out_path, history_lake(table.out_path)]
    prefixes = [folder.key for lake in folders for folder in (lake, changes_folder(lake))]
    hide(s3, bucket, [file.key for prefix in prefixes for file in list_files(s3, bucket, prefix)])
    table.remove("Head", "LastIncrementalFile", "LastFullLoadDate", "LastRun")


def die(*_: object, **__: object) -> None:
    raise Died


@pytest.mark.parametrize("kept", ["true", "false"])
@pytest.mark.parametrize("column", ["id", "name"])
def test_a_table_that_was_rolled_back_to_before_its_first_change(new_table: MakeTable, tmp_path: Path, kept: str, column: str) -> None:
    """It has no columns now: those of its newest change that had any say what a key is."""
    table = keeping(new_table)
    table.edit(History=kept)
    load(table, 0, (1, "a", 1), (2, "b", 2))
    table.sync()
    batch(table, (1, "U", (2, "bb", 2)))
    table.sync()
    assert table.run("Rollback", undo=list(table.lineage().back())[-1].id) == 0, table.last_run()
    assert table.snapshot().is_empty

    details = erase(table, keys_file(tmp_path, column, {"id": 1, "name": "a"}[column]), **({} if column == "id" else {"key": column}))

    assert (details["rows_erased"], details["versions"]) == (0, 4 if kept == "true" else 2)
    assert not [row for row in held(table) if row["id"] == 1]
    assert not history_of(table).files
