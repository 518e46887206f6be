"""What is no truncate at the source, however few raw files are left."""

from __future__ import annotations

import pytest

from tests.work_tables import MakeTable


@pytest.mark.parametrize(
    ("skip", "kinds", "rows"),
    [
        ("false", ["incremental", "rollback", "incremental", "full-load"], [(1, "A", 1), (2, "b", 2)]),
        ("true", ["rollback", "incremental", "full-load"], [(1, "a", 1), (2, "b", 2)]),
    ],
)
def test_files_that_a_rollback_has_undone_are_not_gone(new_table: MakeTable, skip: str, kinds: list[str], rows: list[object]) -> None:
    """The load file is gone since long, and after the rollback it is all that the rows come from; its CDC file is still there."""
    table = new_table()
    table.environment = {"DMSLAKE_DATABASE": "", **table.environment}
    table.edit(OnRawFilesGone="truncate")
    table.load([(1, "a", 1), (2, "b", 2)])
    table.cdc([("U", (1, "A", 1))])
    table.sync()
    table.delete_raw("LOAD00000001.parquet")

    assert table.run("Rollback", to="previous", skip=skip, resume="true") == 0
    table.sync()

    assert [record.kind for record in table.lineage().back()] == kinds
    assert table.rows() == rows


def test_a_truncate_comes_once_what_was_left_out_is_gone_too(new_table: MakeTable) -> None:
    """As DMS deletes all files of a table."""
    table = new_table()
    table.edit(OnRawFilesGone="truncate")
    table.load([(1, "a", 1)])
    table.sync()
    left_out = table.cdc([("U", (1, "A", 1))]).rsplit("/", 1)[-1]
    table.edit(SkipFiles=left_out)
    table.cdc([("I", (2, "b", 2))])
    table.sync()
    for name in ("LOAD00000001.parquet", table.snapshot().cursor.rsplit("/", 1)[-1]):
        table.delete_raw(name)

    table.sync()

    assert table.rows() == [(1, "a", 1), (2, "b", 2)]
    table.delete_raw(left_out)
    table.sync()
    assert (table.head().kind, table.rows()) == ("truncate", [])
