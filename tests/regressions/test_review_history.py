"""What a history table goes through that no batch brings: another key while nobody kept it, or with a reload."""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from glue_jobs.core.errors import TableBlocked
from glue_jobs.protocol.recover import recover
from infra.local.dms_files import DmsRow, cdc_file_name, load_file_name
from tests.lake import START
from tests.spark.histories import Version, versions
from tests.spark.tables import WorkTable
from tests.work_tables import MakeTable

COLUMNS = pa.schema([("id", pa.int64()), ("name", pa.string())])
RENAMED = pa.schema([("code", pa.int64()), ("name", pa.string())])


def month(number: int) -> datetime:
    return START + timedelta(days=60 * number)


def over_months(new_table: MakeTable, *, loaded: bool = True) -> WorkTable:
    """A history with open versions in the files of four months, of living keys and of gone ones; two of these have the name x."""
    table = new_table(COLUMNS, timestamp_column="committed")
    table.environment = {"DMSLAKE_DATABASE": "", **table.environment}
    table.edit(History="true")
    first = table.parquet(DmsRow("I", row, month(0)) for row in ((1, "x"), (2, "y"), (3, "z"), (4, "w")))
    table.put_raw(load_file_name(1) if loaded else table.next_name(), first)
    table.sync()
    table.cdc([DmsRow("D", (1, None), month(1)), DmsRow("U", (2, "x"), month(2)), DmsRow("I", (5, "q"), month(3))])
    table.sync()
    return table


def checked(table: WorkTable, key: str) -> list[Version]:
    """The open versions: one of each key, the living ones the table's rows, and the records say where they are."""
    opened = [row for row in versions(table) if row["validity_flag"] == 1]
    keys = [row[key] for row in opened]
    assert len(set(keys)) == len(keys)
    assert None not in keys
    names = [column.name for column in table.snapshot().schema]
    assert sorted(tuple(row[name] for name in names) for row in opened if row["operation"] != "delete") == sorted(table.rows())
    assert table.verify() == []
    return opened


@pytest.mark.parametrize("settings", [{}, {"replay_bytes": "2000"}], ids=["whole", "parts"])
def test_the_key_changes_while_the_history_is_not_kept(new_table: MakeTable, settings: dict[str, str]) -> None:
    """Files of months in which nothing else happens tell the new key's range too: a later batch finds their versions."""
    table = over_months(new_table)
    table.edit(History="false", PrimaryKey="name")
    table.cdc([DmsRow("I", (7, "v"), month(4))])
    table.sync()
    table.edit(History="true")

    table.sync(**settings)

    assert len(checked(table, "name")) == 5
    table.cdc([DmsRow("U", (33, "z"), month(5)), DmsRow("D", (4, "w"), month(5))])
    table.sync(**settings)
    assert {row["name"]: row["operation"] for row in checked(table, "name")}["w"] == "delete"


def reloaded(table: WorkTable, columns: pa.Schema, key: str) -> list[Version]:
    """The open versions after a reload that has another key, and the row of x as it was."""
    rows = [DmsRow("I", (2, "x"), month(2)), DmsRow("I", (9, "w"), month(4))]
    table.put_raw(load_file_name(1), table.parquet(rows, columns=columns))
    table.edit(Request="reload", LoadQuietMinutes="0", PrimaryKey=key)
    table.sync()
    return checked(table, key)


def test_a_reload_brings_a_key_that_was_named_otherwise(new_table: MakeTable) -> None:
    """No version from before has it: all of them end."""
    assert [row["code"] for row in reloaded(over_months(new_table), RENAMED, "code")] == [2, 9]


@pytest.mark.parametrize(("columns", "key"), [(COLUMNS, "name"), (RENAMED, "code")], ids=["known", "new"])
def test_a_history_built_anew_has_the_key_that_a_reload_brought(new_table: MakeTable, columns: pa.Schema, key: str) -> None:
    """Versions that have no successor by the new key end as they did when the history was kept, and a later batch goes on from there."""
    table = over_months(new_table, loaded=False)  # no load file that the reload writes over: the history begins before it
    opened = reloaded(table, columns, key)
    kept = versions(table)

    assert table.run("BackfillHistory") == 0, table.last_run()

    assert (checked(table, key), versions(table)) == (opened, kept)
    table.cdc([DmsRow("D", (2, "x"), month(5)), DmsRow("I", (1, "q"), month(5))], columns, cdc_file_name(month(5)))
    table.sync()
    opened, kept = checked(table, key), versions(table)
    assert table.run("BackfillHistory") == 0, table.last_run()
    assert (checked(table, key), versions(table)) == (opened, kept)


def test_a_table_named_as_another_s_history_is_refused(new_table: MakeTable) -> None:
    """Its folder is the other's; a recover would make it go on with the other's records."""
    table = over_months(new_table)
    other = new_table(COLUMNS, table=table.table + "_history")
    other.load([(1, "other")])

    assert other.blocked()["code"] == "history-folder-taken"

    with pytest.raises(TableBlocked, match="the row versions of"):
        recover(other.clients, other.state_table, other.path, dry_run=False)
    assert "Head" not in other.item()
    checked(table, "id")


def test_a_late_file_does_not_bring_back_what_an_erase_took(new_table: MakeTable, tmp_path: Path) -> None:
    """An erase by another column than the key leaves older versions of a key, none of them the latest: they don't begin to hold again."""
    table = new_table(COLUMNS, timestamp_column="committed")
    table.environment = {"DMSLAKE_DATABASE": "", **table.environment}
    table.edit(History="true")
    table.put_raw(load_file_name(1), table.parquet(DmsRow("I", row, month(0)) for row in ((2, "amy"), (3, "zoe"))))
    table.sync()
    table.cdc([DmsRow("U", (2, "bob"), month(1))], name="20240901-120000000.parquet")
    table.sync()
    pq.write_table(pa.table({"name": ["bob"]}), tmp_path / "keys.parquet")
    erase = {"key": "name", "erase_keys": str(tmp_path / "keys.parquet"), "erase_raw": "ignore"}
    assert table.run("Erase", **erase) == 0

    table.cdc([DmsRow("U", (2, "late"), month(1))], name="20240901-110000000.parquet")
    table.sync()

    assert [row["id"] for row in checked(table, "id")] == [3]
