"""A task that fails after it uploaded is done again by Spark; the lake never shows what the failed attempt left."""

from __future__ import annotations

import functools

import pytest

from tests.spark.failing import FailingWorker
from tests.spark.tables import SparkWorker
from tests.work_tables import MakeTable

ROWS = [(number, f"n{number}", number % 3) for number in range(300)]
CHANGES = [("U", (5, "five", 0)), ("D", (6, None, None)), ("I", (1000, "new", 1)), ("U", (7, "seven", 2))]
AFTER = sorted([row for row in ROWS if row[0] not in (5, 6, 7)] + [(5, "five", 0), (1000, "new", 1), (7, "seven", 2)])


@pytest.mark.parametrize("how", ["raise", "die"])
@pytest.mark.parametrize(
    ("rows", "strategy"),
    [(ROWS, {}), (ROWS[::-1], {"broadcast_bytes": "0"}), ([*ROWS, ROWS[5]], {})],
    ids=["in-order, broadcast", "in-no-order, joined by shuffle", "a-key-twice, broadcast"],
)
def test_a_failed_attempt_leaves_nothing_visible(
    spark_table: MakeTable, how: str, rows: list[tuple[int, str, int]], strategy: dict[str, str]
) -> None:
    """Every uploading task of a load and of a batch fails once: the rows are right, the folder holds the snapshot and no more. A load has
    three ways: in the order of its keys, partition by partition, by a shuffle.

    An attempt that could still say so aborted its upload; one that died left it open, and nobody sees it.
    """
    table = spark_table(partition_key="qty", make_worker=functools.partial(FailingWorker, how=how))
    settings = {"driver_bytes": "0", **strategy}
    table.load(rows)
    assert table.run("LoadInitial", **settings) == 0, table.last_run()
    assert sorted(table.rows()) == ROWS
    after_load = set(table.open_uploads())
    table.cdc(CHANGES)

    assert table.run(**settings) == 0, table.last_run()

    assert sorted(table.rows()) == AFTER
    assert table.counts() == (1, 2, 1)
    table.check_folder()
    table.check_files()
    left = set(table.open_uploads())
    if how == "raise":
        assert left == set()
    else:
        assert after_load
        assert left - after_load
        assert not {key.removeprefix(table.out_path.key) for key in left} & table.visible()
    table.make_worker = SparkWorker
    table.cdc([("D", (5, None, None))])
    assert table.run() == 0, "a later change is not held up by what was left"
    assert len(table.rows()) == len(AFTER) - 1
