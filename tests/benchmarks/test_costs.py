"""The calculator of docs/scale.md."""

from __future__ import annotations

from dataclasses import replace

import pytest

from benchmarks.costs import LOADS, Load, bill, dollars_of, main, runs_of, text_of
from glue_jobs.core.limits import Limits


def spark_dollars(load: Load) -> float:
    return bill(load)[0].dollars


def test_five_hundred_runs_an_hour_cost_what_glue_bills_for_minutes() -> None:
    """500 runs × 24 × one minute × 2 DPU × 0.44 an hour."""
    alone = LOADS[-1]

    assert (alone.tables, runs_of(alone)[0]) == (500, 500)
    assert spark_dollars(alone) == pytest.approx(500 * 24 / 60 * 2 * 0.44)


def test_small_tables_are_packed_as_the_controller_packs_them() -> None:
    """By the limits, whatever they are."""
    load = Load("", 10, limits=Limits(packed_run_tables=4))

    assert runs_of(load)[0] == 3
    assert runs_of(replace(load, table_mb=10_000))[0] == 10


def test_a_round_that_takes_longer_than_an_hour_is_named() -> None:
    """It is no bill of 24 rounds a day."""
    load = Load("mine", 500, limits=Limits(packed_run_tables=1), seconds=10)

    assert "24 rounds a day, of 70 minutes: **more than the 60 between two rounds**, raise max_concurrent_runs" in text_of([load])
    assert "more than" not in text_of(LOADS)


def test_a_bill_grows_with_tables_and_rounds() -> None:
    """Packing saves at most what the billed minute costs."""
    load = Load("", 200)

    assert dollars_of(replace(load, tables=2000)) == pytest.approx(10 * dollars_of(load), rel=0.1)
    assert dollars_of(replace(load, a_day=48)) == pytest.approx(2 * dollars_of(load))
    assert dollars_of(LOADS[2]) < dollars_of(LOADS[3]) / 20


def test_a_load_of_ones_own(capsys: pytest.CaptureFixture[str]) -> None:
    """All that is given is in it."""
    main(["--tables", "3", "--a-day", "2", "--table-mb", "5"])

    assert capsys.readouterr().out.strip() == text_of([Load("3 tables of 5 MB", 3, a_day=2, table_mb=5)])
