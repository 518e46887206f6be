"""A history built anew from the raw files is the one that was kept, goes as far back as they do, and undone it is as it was."""

from __future__ import annotations

from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pyarrow as pa

from glue_jobs.aws.records import read_record
from glue_jobs.core.history_table import history_lake
from infra.local.dms_files import DmsRow
from tests.spark.histories import check_history, history_of, versions
from tests.spark.tables import SHOP, WorkTable
from tests.spark.test_history_table import NAMES, at, batch, changes, given, keeping, load, told
from tests.work_tables import MakeTable

PASSES = {"replay_bytes": "20000"}
WIDE = pa.schema([("id", pa.int64()), ("title", pa.string()), ("qty", pa.int64()), ("note", pa.string())])


PERSONS_TIME = datetime(2025, 1, 1, tzinfo=timezone.utc)


def told_whole(table: WorkTable) -> list[dict[str, Any]]:
    """All versions. What a person changed is valid from a time of that run: the record says a later one than the history that was kept."""
    rows = check_history(table)
    for row in rows:
        for name in ("valid_from", "valid_to"):
            if row[name] is not None and row[name] > PERSONS_TIME:
                row[name] = PERSONS_TIME
    return rows


def backfilled(table: WorkTable, **settings: str) -> dict[str, Any]:
    """What the change of a backfill says of itself."""
    assert table.run("BackfillHistory", **settings) == 0, table.last_run()
    record = table.head()
    assert (record.kind, record.superseded) == ("history", ())
    return dict(record.details)


def lived(new_table: MakeTable, tmp_path: Path) -> WorkTable:
    """A table to which all happened: several changes of a key, a late file, a person, a renamed and a wider column, a reload."""
    table = keeping(new_table)
    load(table, 0, *((number, "load", 1) for number in range(1, 6)))
    batch(table, (1, "U", (1, "one", 1)), (2, "U", (1, "two", 2)), (3, "D", (2, None, None)), name=NAMES[0])
    table.sync()
    batch(table, (700, "U", (3, "f3", 2)), (800, "D", (5, None, None)), (801, "D", (9, None, None)), name=NAMES[3])
    table.sync()
    person = pa.schema([("committed", pa.string()), *SHOP])
    rows = given(tmp_path, "new", person, ("2030-01-01 00:00:00", 4, "person", 1), ("2030-01-01 00:00:00", 8, "person", 1))
    gone = given(tmp_path, "gone", pa.schema([("id", pa.int64())]), (1,))
    assert table.run("Apply", key="id", updates=rows, deletes=gone) == 0, table.last_run()
    batch(table, *((5, "U", (number, "late", 1)) for number in (2, 3, 4, 9)), name=NAMES[2])
    table.sync()
    table.edit(Request="schema-rename:name=title")
    table.sync()
    wide = [DmsRow("U", (3, "wide", 2**40, "note"), at(802)), DmsRow("I", (6, "six", 6, None), at(803))]
    table.cdc(wide, columns=WIDE, name=NAMES[4])
    table.sync()
    table.put_raw(
        "LOAD00000009.parquet",
        table.parquet([DmsRow("I", (3, "wide", 1, "x"), at(900)), DmsRow("I", (7, "new", 7, None), at(901))], columns=WIDE),
    )
    table.edit(Request="reload", LoadQuietMinutes="0")
    return table


def test_what_is_built_anew_is_what_was_kept(new_table: MakeTable, tmp_path: Path) -> None:
    """Every version, with its change, raw file and row; before the reload and after it; in one pass and in several."""
    table = lived(new_table, tmp_path)
    kept = told_whole(table)
    details = backfilled(table)
    assert told_whole(table) == kept
    assert (details["left_out"], details["versions"], details["versions_replaced"]) == (0, len(kept), len(kept))
    assert table.run("LoadInitial") == 0, table.last_run()
    table.edit(Request="schema-accept")  # two load files have both names of the column, and CDC files after them one or the other
    table.sync()
    kept = told_whole(table)
    assert [record.kind for record in changes(table)][-2:] == ["full-load", "incremental"], "CDC files are applied to the reload again"

    details = backfilled(table, **PASSES)

    assert told_whole(table) == kept
    assert details["passes"] > 1


def test_an_empty_text_that_a_new_layout_made_null_is_a_version(new_table: MakeTable) -> None:
    """Of the time of that change, as in the history that was kept; also where its row was changed since."""
    table = keeping(new_table, partition_key="null")
    load(table, 0, (1, "", 1), (2, "a", 2), (3, "", 3))
    table.sync()
    table.edit(PartitionKey="name", EmptyPartition="null", Request="repartition")
    table.sync()
    batch(table, (1, "U", (3, "c", 4)))
    table.sync()
    kept = told_whole(table)
    assert [row["name"] for row in kept if row["id"] == 3] == ["", None, "c"]

    backfilled(table)

    assert told_whole(table) == kept


def test_a_backfill_that_was_started_twice_is_made_once(new_table: MakeTable) -> None:
    """It reads all raw files."""
    table = keeping(new_table)
    load(table, 0, (1, "a", 1))
    table.sync()

    for _ in range(2):
        backfilled(table, run_id="history")

    assert [record.kind for record in changes(table)] == ["full-load", "history"]


def test_a_history_that_began_late_is_completed(new_table: MakeTable) -> None:
    """Versions from before History was switched on, and those that were missed while it was off; undone it is the old one again."""
    table = keeping(new_table)
    table.edit(History="false")
    load(table, 0, (1, "a", 1), (2, "b", 2))
    batch(table, (1, "U", (1, "A", 1)), (2, "D", (2, None, None)))
    table.sync()
    table.edit(History="true")
    table.sync()
    before = told(table, "id", "name", "operation")
    assert before == [(1, "A", "update")] or before == [(1, "A", "insert")]

    backfilled(table)

    assert told(table, "id", "name", "operation") == [(1, "a", "insert"), (1, "A", "update"), (2, "b", "insert"), (2, "b", "delete")]
    assert table.run("Rollback", to="previous", resume="true") == 0, table.last_run()
    assert told(table, "id", "name", "operation") == before
    assert table.run("Rollback", reapply="all", resume="true") == 0, table.last_run()
    assert len(told(table, "id")) == 4
    batch(table, (3, "I", (2, "again", 2)))
    table.sync()
    assert told(table, "id", "name", "operation")[-1] == (2, "again", "insert")


def test_it_is_refused_while_a_raw_file_is_gone(new_table: MakeTable) -> None:
    """By the file's name, and nothing changes; a reload later it goes back to that, and says so."""
    table = keeping(new_table)
    load(table, 0, (1, "a", 1))
    batch(table, (1, "U", (1, "b", 1)), name=NAMES[0])
    table.sync()
    table.delete_raw(NAMES[0])
    before = (table.item()["Head"], versions(table))

    assert table.run("BackfillHistory") == 1

    error = table.last_run()["error"]
    assert (error["code"], (table.item()["Head"], versions(table))) == ("backfill-not-possible", before)
    assert NAMES[0] in error["message"]
    assert "Blocked" not in table.item()
    load(table, 5, (1, "c", 1), number=2)
    table.delete_raw("LOAD00000001.parquet")
    table.edit(Request="reload", LoadQuietMinutes="0")
    table.sync()
    assert len(told(table, "id")) == 3
    details = backfilled(table)
    assert told(table, "id", "name", "operation") == [(1, "c", "insert")]
    assert details["left_out"] == 2
    assert any("can't be made again" in text and NAMES[0] in text for text in table.last_run()["warnings"])


def test_it_goes_back_to_a_truncate(new_table: MakeTable) -> None:
    """Whose raw files are gone: what was before it can't be made again."""
    table = keeping(new_table)
    load(table, 0, (1, "a", 1))
    table.sync()
    table.delete_raw("LOAD00000001.parquet")
    table.edit(OnRawFilesGone="truncate")
    batch(table, (1, "I", (2, "b", 2)))
    table.sync()
    assert [row[1:] for row in table.rows()] == [(2, "b", 2)]
    assert len(told(table, "id")) == 3

    details = backfilled(table)

    assert told(table, "id", "operation") == [(2, "insert")]
    assert (details["left_out"], details["changes"]) == (1, 2)


def test_erased_keys_stay_away(new_table: MakeTable, tmp_path: Path) -> None:
    """Though the raw files have them."""
    table = keeping(new_table)
    load(table, 0, (1, "a", 1), (2, "b", 2))
    batch(table, (1, "U", (1, "A", 1)), (1, "U", (2, "B", 2)))
    table.sync()
    keys = tmp_path / "keys.csv"
    keys.write_text("id\n1\n")
    assert table.run("Erase", erase_keys=str(keys)) == 0, table.last_run()

    backfilled(table)

    assert told(table, "id", "name") == [(2, "b"), (2, "B")]


def test_erased_keys_stay_away_after_a_rollback_to_before_the_erase(new_table: MakeTable, tmp_path: Path) -> None:
    """It undoes no erase, although that is none of the changes any more that the rows come from. What the source has anew is there."""
    table = keeping(new_table)
    table.edit(History="false")
    load(table, 0, (1, "a", 1), (2, "b", 2), (3, "c", 3))
    table.sync()
    batch(table, (1, "D", (2, None, None)), (1, "D", (3, None, None)))
    table.sync()
    table.edit(History="true")
    table.sync()
    begun = table.head().id
    keys = tmp_path / "keys.csv"
    keys.write_text("id\n2\n3\n")
    assert table.run("Erase", erase_keys=str(keys)) == 0, table.last_run()
    batch(table, (2, "U", (1, "bad", 1)))
    table.sync()
    assert table.run("Rollback", to=begun, skip="true", resume="true") == 0, table.last_run()
    batch(table, (3, "I", (3, "back", 3)))
    table.sync()

    backfilled(table)

    assert told(table, "id", "name") == [(1, "a"), (3, "back")]


def test_versions_of_a_key_that_came_back_after_an_undone_erase(new_table: MakeTable, tmp_path: Path) -> None:
    """The erase came between batches that are else made again as one: it takes what was before it, and not what the source has anew."""
    table = keeping(new_table)
    table.edit(History="false")
    load(table, 0, (1, "a", 1), (2, "b", 2))
    table.sync()
    batch(table, (1, "D", (2, None, None)), name=NAMES[0])
    table.sync()
    deleted = table.head().id
    keys = tmp_path / "keys.csv"
    keys.write_text("id\n2\n")
    assert table.run("Erase", erase_keys=str(keys)) == 0, table.last_run()
    batch(table, (2, "U", (1, "bad", 1)), name=NAMES[1])
    table.sync()
    assert table.run("Rollback", to=deleted, skip="true", resume="true") == 0, table.last_run()
    batch(table, (3, "I", (2, "back1", 2)), name=NAMES[2])
    table.sync()
    batch(table, (4, "U", (2, "back2", 2)), name=NAMES[3])
    table.sync()
    table.edit(History="true")
    table.sync()

    backfilled(table)

    assert told(table, "id", "name", "operation", "source_file") == [
        (1, "a", "insert", "LOAD00000001.parquet"),
        (2, "back1", "insert", NAMES[2]),
        (2, "back2", "update", NAMES[3]),
    ]


def test_a_changed_key(new_table: MakeTable) -> None:
    """Of a new key one version is open; such a history can't be made for a part of the keys."""
    table = keeping(new_table)
    load(table, 0, (1, "x", 1), (2, "y", 2), (3, None, 3))
    batch(table, (1, "D", (1, None, None)), (2, "D", (3, None, None)), (3, "U", (2, "x", 2)))
    table.sync()
    table.edit(PrimaryKey="name")
    table.sync()
    kept = versions(table)

    backfilled(table)

    open_now = [row for row in versions(table) if row["validity_flag"] == 1]
    assert open_now == [row for row in kept if row["validity_flag"] == 1]
    assert len(versions(table)) == len(kept)
    assert table.run("BackfillHistory", replay_bytes="2000") == 1
    assert table.last_run()["error"]["code"] == "backfill-not-possible"


def test_it_does_not_answer_a_date_that_asks_for_a_load(new_table: MakeTable) -> None:
    """The date that a person set back stays until there was a load."""
    table = keeping(new_table)
    load(table, 0, (1, "a", 1))
    table.sync()
    table.edit(LastFullLoadDate="1900-01-01 00:00:00")

    backfilled(table)

    assert table.item()["LastFullLoadDate"] == "1900-01-01 00:00:00"
    table.sync(load_quiet_minutes="0")
    assert [record.kind for record in table.lineage().back()] == ["full-load", "history", "full-load"]
    assert table.item()["LastFullLoadDate"] != "1900-01-01 00:00:00"


def test_calls_that_can_not_be_meant(new_table: MakeTable) -> None:
    """No rows yet; no history wanted; a dry run changes nothing."""
    table = keeping(new_table)
    assert table.run("BackfillHistory") == 2
    load(table, 0, (1, "a", 1))
    table.sync()
    head = table.item()["Head"]
    assert table.run("BackfillHistory", dry_run="true") == 0
    assert table.last_run()["note"].startswith("dry run")
    table.edit(History="false")
    assert table.run("BackfillHistory") == 2
    assert table.last_run()["error"]["code"] == "no-history"
    assert table.item()["Head"] == head
    assert read_record(table.clients.s3, history_lake(table.out_path), history_of(table).change).kind == "full-load"
    assert [record.kind for record in changes(table)] == ["full-load"]
