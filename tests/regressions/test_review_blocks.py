"""A block ends when its cause is gone, and not before; an item that went back is noticed."""

from __future__ import annotations

from tests.work_tables import MakeTable


def test_a_block_found_before_the_plan_ends_with_its_cause(new_table: MakeTable) -> None:
    """Its cause is neither in the attributes that a plan's signature has, nor among the raw files."""
    table = new_table()
    table.load([(1, "a", 1)])
    table.edit(out_path="")
    assert table.blocked()["code"] == "no-out-path"

    table.edit(out_path=str(table.out_path))
    table.sync()

    assert table.rows() == [(1, "a", 1)]


def test_a_block_by_hand_stays(new_table: MakeTable) -> None:
    """A run that meets it must not turn it into one of its own, which ends with the next raw file."""
    table = new_table()
    table.load([(1, "a", 1)])
    table.sync()
    table.edit(Blocked="wait for Bob")
    for number in (2, 3):
        table.cdc([("I", (number, "b", 2))])
        assert table.blocked()["code"] == "by-hand"

    assert table.item()["Blocked"] == "wait for Bob"
    assert table.rows() == [(1, "a", 1)]


def test_an_item_that_went_back_behind_a_change_that_only_removed_files_is_noticed(new_table: MakeTable) -> None:
    """Such a change has no upload to tell by, but its superseded files are hidden."""
    table = new_table()
    table.load([(1, "a", 1)])
    table.cdc([("U", (1, "b", 1))])
    table.sync()
    stale = table.item()
    table.cdc([("D", (1, None, None))])
    table.sync()

    table.edit(Head=stale["Head"], LastIncrementalFile=stale["LastIncrementalFile"])

    assert table.blocked()["code"] == "state-went-back"


def test_the_way_out_names_the_table_itself(new_table: MakeTable) -> None:
    """So that the command in it can be pasted."""
    table = new_table()
    table.put_raw("LOAD00000001.parquet", b"no Parquet")

    todo = table.blocked()["todo"]

    assert f"dmslake unblock {table.path} --skip-file" in todo
    assert "PATH" not in todo
