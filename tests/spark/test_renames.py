"""A column that was renamed at the source: raw files from before the rename come with those after it, late, or again."""

from __future__ import annotations

import itertools
from datetime import timedelta
from typing import Any

import pyarrow as pa
import pytest

from infra.local.dms_files import cdc_file_name, dms_parquet
from tests.lake import START
from tests.spark.csv_texts import csv_text
from tests.spark.histories import check_history
from tests.spark.tables import SHOP, WorkTable
from tests.spark.test_backfill import backfilled
from tests.spark.test_history_table import STAMPED, at, batch, keeping, load
from tests.spark.test_replay_rows import proved
from tests.work_tables import MakeTable

NAMES = [cdc_file_name(START + timedelta(seconds=second)) for second in range(8)]
TITLE = SHOP.set(1, pa.field("title", pa.string()))
HEADING = SHOP.set(1, pa.field("heading", pa.string()))
BOTH = TITLE.append(pa.field("name", pa.string()))
LOADED = [(1, "a", 1), (2, "b", 2), (3, "c", 3)]


@pytest.fixture
def table(new_table: MakeTable) -> WorkTable:
    table = new_table()
    table.environment = {"DMSLAKE_DATABASE": "", **table.environment}
    table.load(LOADED)
    table.sync()
    return table


def put(table: WorkTable, number: int, *rows: Any, columns: pa.Schema = SHOP) -> None:
    """A CDC file by its place in the order of names."""
    table.cdc([("U", row) for row in rows], columns=columns, name=NAMES[number])


def asked(table: WorkTable) -> str:
    """What a run that is blocked proposes."""
    error = table.blocked()
    assert error["code"] == "rename-or-drop-and-add"
    return error["todo"]


def rename(table: WorkTable, old: str, new: str) -> None:
    table.edit(Request=f"schema-rename:{old}={new}")
    table.sync()


def renamed(table: WorkTable) -> WorkTable:
    """File 2 applied, then `name` renamed to `title`, then file 4 applied, which has the new name."""
    put(table, 2, (1, "A2", 1))
    table.sync()
    put(table, 4, (2, "B4", 2), columns=TITLE)
    assert "--rename name=title" in asked(table)
    rename(table, "name", "title")
    assert table.rows() == [(1, "A2", 1), (2, "B4", 2), (3, "c", 3)]
    return table


def test_files_before_a_rename_are_a_change_of_their_own(table: WorkTable) -> None:
    """They have the columns of now. What is asked for comes with the first file of the new name, and a rename answers it."""
    put(table, 1, (1, "A1", 1))
    put(table, 2, (2, "B2", 2))
    put(table, 3, (2, "B3", 2), columns=TITLE)

    assert "--rename name=title" in asked(table)

    assert table.rows() == [(1, "A1", 1), (2, "B2", 2), (3, "c", 3)]
    assert [item.key.rsplit("/", 1)[1] for item in table.head().inputs] == NAMES[1:3]
    rename(table, "name", "title")
    assert table.rows() == [(1, "A1", 1), (2, "B3", 2), (3, "c", 3)]
    proved(table)


def test_a_rollback_to_before_a_rename_goes_forth_again(table: WorkTable) -> None:
    """The rename is undone with the rest, so that it is asked for again, after the files before it."""
    loaded = table.head().id
    renamed(table)
    assert table.run("Rollback", to=loaded) == 0
    table.remove("Paused")

    assert "--rename name=title" in asked(table)
    rename(table, "name", "title")

    assert table.rows() == [(1, "A2", 1), (2, "B4", 2), (3, "c", 3)]


def test_a_cursor_moved_back_over_a_rename(table: WorkTable) -> None:
    """The file from before it says the column under its old name."""
    renamed(table)
    table.edit(LastIncrementalFile=f"{table.path.bucket}/{table.path.raw.key}{NAMES[1]}")

    table.sync()

    assert table.rows() == [(1, "A2", 1), (2, "B4", 2), (3, "c", 3)]
    assert [len(table.head().inputs), table.head().counts.input_rows] == [2, 2]
    proved(table)


@pytest.mark.parametrize("columns", [SHOP, TITLE], ids=["old-name", "new-name"])
def test_a_late_file_from_before_a_rename(table: WorkTable, columns: pa.Schema) -> None:
    """It and the files to rank with it are read alike, whichever of the two names they have."""
    renamed(table)
    put(table, 1, (1, "late", 1), (2, "late", 2), (3, "late", 3), columns=columns)

    table.sync()

    assert (table.head().kind, table.rows()) == ("late", [(1, "A2", 1), (2, "B4", 2), (3, "late", 3)])
    assert [column.name for column in table.head().schema] == TITLE.names
    proved(table)


def test_a_late_file_of_a_history(new_table: MakeTable) -> None:
    """Its versions have the value, too, also when they are built anew."""
    table = keeping(new_table, columns=SHOP)
    load(table, 0, (1, "a", 1))
    table.sync()
    batch(table, (2, "U", (1, "A2", 1)), name=NAMES[2])
    table.sync()
    rename(table, "name", "title")
    batch(table, (1, "U", (1, "late", 1)), name=NAMES[1])

    table.sync()

    kept = check_history(table)
    assert [row["title"] for row in kept] == ["a", "late", "A2"]
    backfilled(table)
    assert [row["title"] for row in check_history(table)] == ["a", "late", "A2"]


def test_a_column_renamed_twice_and_a_new_one_of_its_old_name(table: WorkTable) -> None:
    """Each file's names mean what they meant when it was written."""
    renamed(table)
    put(table, 5, (3, "C5", 3, "own"), columns=BOTH)
    table.sync()
    rename(table, "title", "heading")
    put(table, 1, (1, "late", 1), (3, "late", 3))
    put(table, 3, (2, "late", 2), columns=TITLE)

    table.sync()

    assert [column.name for column in table.head().schema] == ["id", "heading", "qty", "name"]
    assert table.rows() == [(1, "A2", 1, None), (2, "B4", 2, None), (3, "C5", 3, "own")]
    put(table, 6, (1, "A6", 1), columns=HEADING)
    table.sync()
    assert table.rows()[0] == (1, "A6", 1, None)
    proved(table)


def test_a_file_after_a_rename_asks_anew(table: WorkTable) -> None:
    """There a column of the old name may be another one."""
    renamed(table)
    put(table, 5, (3, "C5", 3))

    assert "--rename title=name" in asked(table)
    assert table.rows()[2] == (3, "c", 3)


def test_before_images_go_with_their_column(table: WorkTable) -> None:
    """They are none of the lake's columns under either name."""
    put(table, 2, (1, "A2", 1))
    table.sync()
    rename(table, "name", "title")
    arrays = [pa.array(["U"]), pa.array([3]), pa.array(["late"]), pa.array([3], pa.int32()), pa.array([30]), pa.array(["c"])]
    table.put_raw(NAMES[1], dms_parquet(pa.Table.from_arrays(arrays, ["Op", "id", "name", "qty", "BI_id", "BI_name"])))

    table.sync()

    assert [column.name for column in table.head().schema] == TITLE.names
    assert table.rows() == [(1, "A2", 1), (2, "b", 2), (3, "late", 3)]


@pytest.mark.parametrize("images", [False, True], ids=["plain", "before-images"])
def test_a_late_csv_file_from_before_a_rename(table: WorkTable, images: bool) -> None:
    """Its header has the old name."""
    put(table, 2, (1, "A2", 1))
    table.sync()
    rename(table, "name", "title")
    head, row = ["Op", "id", "name", "qty"], ["U", 3, "late", 3]
    rows = [[*head, "BI_name"], [*row, "c"]] if images else [head, row]
    table.put_raw(NAMES[1].replace(".parquet", ".csv"), csv_text(rows))

    table.sync()

    assert table.rows() == [(1, "A2", 1), (2, "b", 2), (3, "late", 3)]
    assert [column.name for column in table.head().schema] == TITLE.names
    proved(table)


# --- what a person asked for


def test_accepting_a_drop_and_add_accepts_one(table: WorkTable) -> None:
    """A second one in the same batch was not asked for yet."""
    put(table, 1, (1, "A1", 1), columns=TITLE)
    asked(table)
    put(table, 2, (2, "B2", 2), columns=HEADING)
    table.edit(Request="schema-accept")

    assert "--rename title=heading" in asked(table)

    assert table.rows() == [(1, None, 1, "A1"), (2, "b", 2, None), (3, "c", 3, None)]
    assert "Request" not in table.item()


@pytest.mark.parametrize(("first", "settings"), [(1, {}), (3, {"batch_files": "1"})], ids=["late", "backlog"])
def test_what_was_asked_for_waits_for_the_batch_that_needs_it(table: WorkTable, first: int, settings: dict[str, str]) -> None:
    """A late file, or one before it, needs no answer."""
    put(table, 2, (1, "A2", 1))
    table.sync()
    put(table, first, (3, "first", 3))
    put(table, 4, (2, "B4", 2), columns=TITLE)
    table.edit(Request="schema-accept")

    table.sync(**settings)

    assert table.rows() == [(1, "A2", 1, None), (2, None, 2, "B4"), (3, "first", 3, None)]
    assert "Request" not in table.item()


def test_what_was_asked_for_in_vain_is_dropped(table: WorkTable) -> None:
    """Else it would answer a question of another day."""
    put(table, 1, (1, "A1", 1))
    table.edit(Request="schema-accept")

    table.sync()

    assert "Request" not in table.item()


# --- the commit time


def stamped(new_table: MakeTable) -> WorkTable:
    """A table with a history whose commit time is a column that nobody names."""
    table = keeping(new_table)
    load(table, 0, (1, "a", 1))
    table.sync()
    batch(table, (1, "U", (1, "b", 1)), name=NAMES[1])
    table.sync()
    assert table.snapshot().timestamp_column == "committed"
    return table


def test_the_commit_time_s_column_is_renamed(new_table: MakeTable) -> None:
    """Versions after it begin at commit times, of files from before it, too."""
    table = stamped(new_table)
    rename(table, "committed", "changed_at")
    assert table.snapshot().timestamp_column == "changed_at"
    batch(table, (0.5, "U", (1, "late", 1)), name=NAMES[0])
    table.sync()
    table.timestamp_column = "changed_at"
    batch(table, (2, "U", (1, "c", 1)), (3, "U", (1, "d", 1)), name=NAMES[2])

    table.sync()

    assert table.snapshot().timestamp_column == "changed_at"
    times = [(row["name"], row["valid_from"]) for row in check_history(table)]
    assert times == [("a", at(0)), ("late", at(0.5)), ("b", at(1)), ("c", at(2)), ("d", at(3))]
    assert list(itertools.islice(table.read().column_names, 1)) == ["changed_at"]
    proved(table)


def test_an_item_that_names_the_commit_time_s_column_is_changed_first(new_table: MakeTable) -> None:
    """Otherwise the next batch would look for the old name."""
    table = stamped(new_table)
    table.edit(TimestampColumn="committed", Request="schema-rename:committed=changed_at")

    error = table.blocked()

    assert error["code"] == "bad-rename"
    assert "TimestampColumn" in error["message"]
    assert "'changed_at'" in error["todo"]
    table.edit(TimestampColumn="changed_at")
    table.sync()
    assert table.snapshot().timestamp_column == "changed_at"
    assert [column.name for column in table.head().schema] == ["changed_at", *STAMPED.names[1:]]
