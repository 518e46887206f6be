"""A file that shows up behind the cursor: its changes come before those that were applied already, and are ranked so."""

from __future__ import annotations

from datetime import timedelta

import pytest

from tests.lake import START, cdc_file_name
from tests.spark.tables import WorkTable
from tests.work_tables import MakeTable

NAMES = [cdc_file_name(START + timedelta(seconds=second)) for second in range(6)]


def _table(new_table: MakeTable, **attributes: str) -> WorkTable:
    """Rows 1 to 5 loaded; the files 1, 3 and 4 applied: 1 updated, 2 deleted, 3 updated twice."""
    table = new_table(**attributes)
    table.load([(number, "loaded", number) for number in range(1, 6)])
    table.cdc([("U", (1, "file 1", 1)), ("U", (3, "file 1", 3))], name=NAMES[1])
    table.cdc([("D", (2, None, None))], name=NAMES[3])
    table.cdc([("U", (3, "file 4", 3))], name=NAMES[4])
    table.sync()
    return table


LATE = [
    ("U", (1, "late", 1)),  # after file 1: wins
    ("U", (2, "late", 2)),  # before the delete of file 3: loses
    ("U", (3, "late", 3)),  # before file 4: loses
    ("D", (4, None, None)),
    ("I", (6, "late", 6)),
]
AFTER = [(1, "late", 1), (3, "file 4", 3), (5, "loaded", 5), (6, "late", 6)]


@pytest.mark.parametrize("strategy", ["driver", "broadcast", "shuffle"])
def test_a_late_file_is_applied_where_it_belongs(request: pytest.FixtureRequest, new_table: MakeTable, strategy: str) -> None:
    """A late U does not bring back a row that a later D removed, nor overwrite a later U; the cursor stays."""
    make = new_table if strategy == "driver" else request.getfixturevalue("spark_table")
    table = _table(make, partition_key="qty")
    cursor = table.item()["LastIncrementalFile"]
    table.cdc(LATE, name=NAMES[2])
    settings = {"driver": {}, "broadcast": {"driver_bytes": "0"}, "shuffle": {"driver_bytes": "0", "broadcast_bytes": "0"}}[strategy]

    assert table.run(**settings) == 0, table.last_run()

    assert table.rows() == AFTER
    assert table.counts() == (1, 1, 1), "what loses is not written again"
    record = table.head()
    assert (record.kind, table.item()["LastIncrementalFile"]) == ("late", cursor)
    assert [item.key.rsplit("/", 1)[1] for item in record.inputs] == [NAMES[2]]
    assert [item.key.rsplit("/", 1)[1] for item in record.context] == [NAMES[3], NAMES[4]]
    table.check_folder()
    head = record.id
    assert table.run() == 0
    assert table.item()["Head"] == head, "a late file is taken once"


def test_late_files_and_new_ones_are_taken_in_one_run(new_table: MakeTable) -> None:
    """The late file first, then those after the cursor, a change each."""
    table = _table(new_table)
    table.cdc(LATE, name=NAMES[2])
    table.cdc([("I", (2, "file 5", 2))], name=NAMES[5])

    table.sync()

    assert table.rows() == sorted([*AFTER, (2, "file 5", 2)])
    assert table.last_run()["change_count"] == 2


def test_two_late_files_are_ranked_together(new_table: MakeTable) -> None:
    """Files 0 and 2 come late at once: all that was applied after the first of them is looked at."""
    table = _table(new_table)
    table.cdc([("U", (1, "late 0", 1)), ("U", (4, "late 0", 4))], name=NAMES[0])
    table.cdc([("D", (5, None, None)), ("U", (4, "late 2", 4))], name=NAMES[2])

    table.sync()

    assert table.rows() == [(1, "file 1", 1), (3, "file 4", 3), (4, "late 2", 4)]


def test_a_late_file_whose_successors_are_gone_blocks_the_table(new_table: MakeTable) -> None:
    """Without the files after it nobody can tell which of its changes still count; skipping it is a way out."""
    table = _table(new_table)
    before = (table.visible(), table.item()["Head"])
    table.cdc(LATE, name=NAMES[2])
    table.delete_raw(NAMES[3])

    error = table.blocked()

    assert error["code"] == "late-file-without-context"
    assert NAMES[2] in error["message"]
    assert NAMES[3] in error["message"]
    assert (table.visible(), table.item()["Head"]) == before
    table.edit(SkipFiles=NAMES[2])
    table.sync()
    assert len(table.rows()) == 4


def test_a_file_older_than_the_late_window_is_left(new_table: MakeTable) -> None:
    """It is for `verify` to find."""
    table = _table(new_table)
    table.cdc(LATE, name=cdc_file_name(START - timedelta(hours=30)))

    table.sync()

    assert (1, "file 1", 1) in table.rows()


@pytest.mark.parametrize("strategy", ["driver", "spark"])
def test_without_a_key_only_the_late_rows_are_added(request: pytest.FixtureRequest, new_table: MakeTable, strategy: str) -> None:
    """The rows of the files after it are there already: they are not added again."""
    make = new_table if strategy == "driver" else request.getfixturevalue("spark_table")
    table = make(primary_key="null")
    table.cdc([("I", (1, "a", 1))], name=NAMES[1])
    table.cdc([("I", (3, "c", 3)), ("U", (3, "ignored", 3))], name=NAMES[3])
    table.sync()
    table.cdc([("I", (2, "b", 2)), ("D", (1, "a", 1))], name=NAMES[2])

    assert table.run(**({"driver_bytes": "0"} if strategy == "spark" else {})) == 0, table.last_run()

    assert table.rows() == [(1, "a", 1), (2, "b", 2), (3, "c", 3)]
    assert table.last_run()["ignored"] == 1
