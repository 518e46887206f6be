"""Lake tables of a real database under random concurrent changes equal SELECT * after every round, whoever reads them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from infra.local.capture import CaptureOptions
from tests.database.lake import DRIVER, SHUFFLE, SPARK, SPARK_JOBS, Activation, LakeDatabase
from tests.database.workload import Workload

CAPTURED = CaptureOptions(cdc_flush_rows=60, before_images=True)
"""Several CDC files a round; before images tell which key a row had."""
BY_KIND = Activation(("id",), "kind")
BY_YEAR = Activation(("id",), "year(at6)", {"at6_year": "year(at6)"})

Bring = Callable[[LakeDatabase], Any]


def _by_controller(lake: LakeDatabase) -> None:
    """A process for each job run."""
    lake.controller(**DRIVER)


def _by_glue(lake: LakeDatabase) -> None:
    """StartJobRun, and Spark in a process of its own."""
    lake.controller(runner="glue", job_prefix=SPARK_JOBS)


def _by_spark(lake: LakeDatabase) -> None:
    """Net changes go to every task."""
    lake.jobs(**SPARK)


def _by_shuffle(lake: LakeDatabase) -> None:
    """Net changes are matched by shuffle."""
    lake.jobs(**SHUFFLE)


def _file_by_file(lake: LakeDatabase) -> None:
    """A change for each CDC file."""
    lake.jobs(**DRIVER, batch_files=1)


def _activate(lake: LakeDatabase, everything: Activation) -> None:
    lake.activate(
        everything=everything,
        account=Activation(("region", "number")),
        reading=Activation(("on_day", "step"), "on_day"),
    )


def _workload(lake: LakeDatabase, seed: int) -> Workload:
    workload = Workload(lambda: lake.server.connect(lake.name), seed, changes_keys=True)
    workload.create()
    return workload


def _rounds(lake: LakeDatabase, workload: Workload, ways: Sequence[Bring], repeat: bool = False) -> None:
    """Change the database, capture, bring the lake up to date, compare; a column is added in every second round."""
    rows = 0
    for number, bring in enumerate(ways):
        begun_at = lake.saved_position()
        workload.round(10)
        if number % 2 == 0:
            workload.add_column()
        workload.round(40)
        lake.capture(options=CAPTURED)
        bring(lake)
        rows += lake.check()
        if repeat:
            lake.restore_position(begun_at)
    assert rows > 10 * len(ways), "the workload left next to nothing to compare"  # concurrent transactions: 45 to 80 a round


@pytest.mark.parametrize(
    ("seed", "everything", "ways"),
    [
        (1, BY_KIND, [_by_controller, _by_glue]),
        (2, BY_YEAR, [_by_spark, _by_shuffle]),
        (3, Activation(("id",)), [_file_by_file, _file_by_file, _file_by_file]),
    ],
)
def test_lake_tables_equal_the_database_after_every_round(lake: LakeDatabase, seed: int, everything: Activation, ways: list[Bring]) -> None:
    """Full load, then rounds of concurrent transactions with columns added in between."""
    workload = _workload(lake, seed)
    workload.round(30)
    lake.capture(full_load=True, options=CAPTURED)
    _activate(lake, everything)
    ways[0](lake)
    lake.check()

    _rounds(lake, workload, ways)


def test_rows_that_are_captured_twice_change_nothing(lake: LakeDatabase) -> None:
    """Every round's rows come again in the next round's files, under later names."""
    workload = _workload(lake, 4)
    workload.round(30)
    lake.capture(full_load=True, options=CAPTURED)
    _activate(lake, BY_YEAR)

    _rounds(lake, workload, [_file_by_file] * 2, repeat=True)


def test_tables_without_load_files_come_by_cdc_files_alone(lake: LakeDatabase) -> None:
    """The capture began when they were empty."""
    workload = _workload(lake, 5)
    lake.capture(options=CAPTURED)
    workload.round(20)
    lake.capture(options=CAPTURED)
    _activate(lake, BY_KIND)

    _rounds(lake, workload, [_file_by_file] * 2)

    assert {kind for table in lake.tables for kind, _ in lake.changes(table)} == {"incremental"}


def test_a_second_full_load_replaces_the_tables(lake: LakeDatabase) -> None:
    """It takes the place of the files before it, and changes go on after it."""
    workload = _workload(lake, 6)
    workload.round(30)
    lake.capture(full_load=True, options=CAPTURED)
    _activate(lake, BY_KIND)
    _rounds(lake, workload, [_file_by_file])
    workload.round(40)

    lake.capture(full_load=True, options=CAPTURED)
    _file_by_file(lake)

    lake.check()
    assert {lake.changes(table)[-1][0] for table in lake.tables} == {"full-load"}
    _rounds(lake, workload, [_file_by_file])
