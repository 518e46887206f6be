"""A large data file is merged a piece at a time, while the next pieces are read."""

from __future__ import annotations

import threading
from functools import partial
from typing import Any

import pyarrow as pa
import pytest

from glue_jobs.spark import merge, merge_file, open_file
from glue_jobs.spark.data_file_reader import read_rows
from glue_jobs.spark.net_changes import NetChanges
from tests.work_tables import MakeTable


@pytest.mark.parametrize("primary_key", ["id", "name", "name,id", "id,name"])
def test_pieces_of_a_file_are_looked_up_by_their_own_range(new_table: MakeTable, primary_key: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a large batch, where the file is read in pieces; also a piece that no change meets, and files that are not sorted by the key."""
    monkeypatch.setattr(merge_file, "BATCH_ROWS", 0)
    monkeypatch.setattr(open_file, "read_rows", partial(read_rows, batch_rows=7))
    pieces: list[int] = []
    ranges = NetChanges.slice_of_rows

    def noted(net: NetChanges, rows: pa.Table) -> tuple[int, int]:
        low, high = ranges(net, rows)
        pieces.append(high - low)
        return low, high

    monkeypatch.setattr(NetChanges, "slice_of_rows", noted)
    rows = {number: (number, f"{number * 7919 % 200:03}", 0) for number in range(200)}
    table = new_table(primary_key=primary_key)
    table.load(list(rows.values()))
    table.sync()
    changed = [("U" if number % 2 else "D", (number, rows[number][1], 1)) for number in (*range(60, 130, 3), 199)]
    table.cdc(changed)

    table.sync(stream_file_bytes="0", small_file_bytes="0")

    for op, row in changed:
        rows = {number: row if number == row[0] else old for number, old in rows.items() if op == "U" or number != row[0]}
    assert table.rows() == sorted(rows.values(), key=repr)
    assert 0 in pieces
    assert any(1 <= count < len(changed) // 2 for count in pieces)


def test_a_piece_that_fails_ahead_of_its_turn_leaves_nothing_behind(new_table: MakeTable, monkeypatch: pytest.MonkeyPatch) -> None:
    """A thread fails while earlier pieces are written: nothing of the file stays, and the next run takes the batch."""
    table = new_table()
    table.load([(number, "x", 0) for number in range(200)])
    table.sync()
    before = table.visible()
    table.cdc([("U", (number, "changed", 0)) for number in (3, 100, 190)])
    replaced, threads = merge_file._replaced, []

    def fails(*arguments: Any) -> pa.Table:
        threads.append(threading.current_thread().name)
        if len(threads) == 20:
            raise OSError("the connection was lost")
        return replaced(*arguments)

    with monkeypatch.context() as patch:
        patch.setattr(open_file, "read_rows", partial(read_rows, batch_rows=7))
        patch.setattr(merge_file, "_replaced", fails)
        assert table.run(stream_file_bytes="0", small_file_bytes="0") != 0

    assert threads[-1].startswith("ahead")
    assert table.open_uploads() == []
    assert table.visible() == before
    table.sync()
    assert sorted(row for row in table.rows() if row[1] == "changed") == [(number, "changed", 0) for number in (3, 100, 190)]


def test_a_last_step_that_fails_leaves_nothing_of_the_steps_before(new_table: MakeTable, monkeypatch: pytest.MonkeyPatch) -> None:
    """New rows are written when the files are: if that fails, nobody else knows of their uploads. The next run takes the batch."""
    table = new_table()
    table.load([(number, "x", 0) for number in range(20)])
    table.sync()
    before = table.visible()
    table.cdc([("U", (3, "changed", 0)), ("I", (100, "new", 0))])

    def fails(run: Any, task: Any) -> Any:
        raise OSError("the connection was lost")

    with monkeypatch.context() as patch:
        patch.setattr(merge._InsertRun, "__call__", fails)
        assert table.run(small_file_bytes="0") != 0

    assert table.open_uploads() == []
    assert table.visible() == before
    table.sync()
    assert sorted(row for row in table.rows() if row[1] != "x") == [(3, "changed", 0), (100, "new", 0)]
