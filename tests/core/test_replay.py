"""What a replay is made of: its steps, its inputs, and how much of it at a time."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from glue_jobs.core.errors import TableBlocked
from glue_jobs.core.partitioning import parse_partition_key
from glue_jobs.core.record import ChangeRecord, Counts, DataFile, Input
from glue_jobs.core.replay import Unproven, check_inputs, check_kinds, cut_at, fold_of, passes, renamed_column, steps_of, unproven
from glue_jobs.core.schema import Column
from glue_jobs.core.snapshot import Snapshot

COLUMNS = (Column("id", "int"), Column("name", "string"))


def change(number: int, kind: str = "incremental", **values: Any) -> ChangeRecord:
    given = {"schema": COLUMNS, "primary_key": ("id",), "inputs": (Input(f"f{number}", f"e{number}"),), **values}
    parent = name(number - 1) if number > 1 else ""
    return ChangeRecord(name(number), parent, kind, "raw/dms/shop/t/", "s3://lake/shop/t/", "2024-05-01T00:00:00Z", **given)


def name(number: int) -> str:
    return f"{number:010d}-000001-0000000a"


def ids(records: Any) -> list[str]:
    return [record.id for record in records]


def history(*kinds: str) -> dict[str, ChangeRecord]:
    return {record.id: record for record in (change(number, kind) for number, kind in enumerate(kinds, 1))}


@pytest.mark.parametrize(
    ("kinds", "first"),
    [
        (("full-load", "incremental", "late"), 1),
        (("incremental", "incremental"), 1),
        (("full-load", "incremental", "full-load", "apply", "incremental"), 3),
        (("adopt", "incremental"), 1),
        (("full-load", "truncate", "incremental"), 2),
        (("full-load",), 1),
    ],
)
def test_a_replay_begins_with_the_last_change_that_says_all_rows(kinds: tuple[str, ...], first: int) -> None:
    """What was before it is gone from the table."""
    records = history(*kinds)

    assert ids(fold_of(records.__getitem__, name(len(kinds)))) == [name(number) for number in range(first, len(kinds) + 1)]


def test_a_replay_passes_over_what_was_rolled_back() -> None:
    """The rows of the change after a rollback come from its target."""
    records = history("full-load", "incremental", "rollback", "incremental")
    records[name(3)] = replace(records[name(3)], target=name(1))

    assert ids(fold_of(records.__getitem__, name(4))) == [name(1), name(4)]


def test_batches_that_follow_on_each_other_are_one_step() -> None:
    """Unless columns or key changed between them, or something else did."""
    wide = (*COLUMNS, Column("note", "string"))
    absent = (COLUMNS[0], replace(COLUMNS[1], absent=True))
    records = [
        change(1, "full-load"),
        change(2),
        change(3, schema=absent),
        change(4, schema=wide),
        change(5, "late", schema=wide),
        change(6, schema=wide),
        change(7, schema=wide, primary_key=("name",)),
    ]

    assert [ids(step) for step in steps_of(records)] == [[name(1)], [name(2), name(3)], *([name(number)] for number in range(4, 8))]


@pytest.mark.parametrize(
    ("changes", "cut"),
    [
        ((), [[1], [3, 4, 7]]),
        ((2,), [[1], [3, 4, 7]]),
        ((5,), [[1], [3, 4], [7]]),
        ((5, 6, 8), [[1], [3, 4], [7]]),
    ],
)
def test_steps_end_where_another_change_came_between(changes: tuple[int, ...], cut: list[list[int]]) -> None:
    """What is done for it is done between them."""
    steps = steps_of([change(1, "full-load"), change(3), change(4), change(7)])

    found = cut_at(steps, [name(number) for number in changes])

    assert [ids(step) for step in found] == [[name(number) for number in step] for step in cut]


def test_raw_files_that_are_gone_or_other_ones_now_are_named() -> None:
    """With the change since which all are there."""
    records = [change(1, "full-load"), change(2, context=(Input("f9", "e9"),)), change(3)]
    there = {"f1": "e1", "f2": "other", "f3": "e3"}

    with pytest.raises(TableBlocked, match=r"2 of 4 raw file.*1 change\(s\) since 0000000002-.*s3://raw/f2 and 1 more.*found: ETag other"):
        check_inputs("raw/dms/shop/t/", "raw", records, there)
    check_inputs("raw/dms/shop/t/", "raw", records, {**there, "f2": "e2", "f9": "e9"})


def test_inputs_of_an_adoption_are_no_raw_files_to_be_read() -> None:
    """They say what its rows came from before it was ours."""
    check_inputs("raw/dms/shop/t/", "raw", [change(1, "adopt")], {})


def test_a_change_that_can_not_be_made_again_is_refused() -> None:
    """A kind of a later program."""
    with pytest.raises(TableBlocked, match="of kind merge") as caught:
        check_kinds("t", [change(1, "merge")])

    assert caught.value.code == "replay-not-possible"


@pytest.mark.parametrize(
    ("rows", "size", "replay_bytes", "count"),
    [
        (1000, 100_000, 1 << 30, 1),
        (1000, 100_000, 800_000, 1),
        (1000, 100_000, 400_000, 2),
        (1000, 100_000, 1, 1000),  # never more than rows
        (0, 0, 1, 1),
    ],
)
def test_memory_decides_how_many_passes_there_are(rows: int, size: int, replay_bytes: int, count: int) -> None:
    """By the most rows that the table had since its base."""
    files = {"a": DataFile("a", size, rows)}

    assert passes("t", [change(1)], Snapshot(files=files, schema=COLUMNS), replay_bytes) == count
    if rows:
        larger = change(1, counts=Counts(table_rows=3 * rows))
        assert passes("t", [larger], Snapshot(files=files, schema=COLUMNS), 100_000 * 8 * 3) == 1
        assert passes("t", [larger], Snapshot(files=files, schema=COLUMNS), 100_000 * 8) == 3


def test_after_another_key_there_is_one_pass_or_none() -> None:
    """A part of the keys is no part of the other ones."""
    records = [change(1), change(2, "rekey", primary_key=("name",))]
    snapshot = Snapshot(files={"a": DataFile("a", 100_000, 1000)}, schema=COLUMNS)

    assert passes("t", records, snapshot, 1 << 30) == 1
    with pytest.raises(TableBlocked, match=r"PrimaryKey was changed.*800,000 bytes") as caught:
        passes("t", records, snapshot, 1000)
    assert caught.value.code == "replay-not-possible"


def test_the_column_that_was_renamed_is_told_by_the_record() -> None:
    """Names may hold the word between them."""
    now = (Column("id", "int"), Column("b to c", "string"))
    before = (Column("id", "int"), Column("a", "string"))

    assert renamed_column(before, change(2, schema=now, details={"renamed": "a to b to c"})) == ("a", "b to c")
    assert renamed_column(before, change(2)) is None


def test_what_erased_bytes_leave_open_is_in_the_partitions_of_their_change() -> None:
    """Those that it wrote to and those that it took from; every one if the layout is another since."""
    layout = parse_partition_key("qty")
    record = change(
        2, "apply", partitioning=layout, added=(DataFile("qty=1/a", 1, 1, partition=("1",)),), superseded=("qty=1/b", "qty=2/c")
    )
    head = Snapshot(partitioning=layout)

    found = unproven([change(1), record], {}, {record.id: "why"}, head)

    assert found == Unproven(frozenset({("1",), ("2",)}), {record.id: "why"})
    assert (found.has(("1",)), found.has(("3",))) == (True, False)
    assert unproven([record], {}, {record.id: "why"}, Snapshot()).partitions is None
    assert unproven([change(1), record], {}, {}, head) == Unproven()
