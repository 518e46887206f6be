"""Rows of changed keys in a file: replaced where they stand, or dropped; the rest is passed on as it lies where that costs less."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from glue_jobs.spark import merge_file

ROWS = 12
STAYS, REPLACED, DROPPED = 0, 1, 2


def replaced(fates: list[int], least_run_rows: int) -> pa.Table:
    table = pa.table({"id": pa.array(range(len(fates))), "name": [f"old{row}" for row in range(len(fates))]})
    images = pa.table({"id": pa.array(range(100, 100 + len(fates))), "name": [f"new{row}" for row in range(len(fates))]})
    positions = np.array([-1 if fate == STAYS else row for row, fate in enumerate(fates)], np.int64)
    dropped = np.array([fate == DROPPED for fate in fates], bool)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(merge_file, "LEAST_RUN_ROWS", least_run_rows)
        net: Any = SimpleNamespace(images=images)
        return merge_file._replaced(table, positions, dropped, net)


@given(st.lists(st.sampled_from([STAYS, REPLACED, DROPPED]), min_size=1, max_size=ROWS))
def test_runs_and_a_copy_of_all_rows_are_the_same(fates: list[int]) -> None:
    wanted = [{"id": 100 + row, "name": f"new{row}"} if fate else {"id": row, "name": f"old{row}"} for row, fate in enumerate(fates)]
    wanted = [row for row, fate in zip(wanted, fates, strict=True) if fate != DROPPED]

    assert replaced(fates, 0).to_pylist() == wanted
    assert replaced(fates, ROWS + 1).to_pylist() == wanted


def test_rows_that_stay_are_not_copied() -> None:
    """The column's buffer is the file's own."""
    fates = [REPLACED] + [STAYS] * 4

    assert len(replaced(fates, 5)["id"].chunks) > 1
    assert len(replaced(fates, 6)["id"].chunks) == 1
