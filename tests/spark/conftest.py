"""Tables for Spark: those of tests.work_tables, with the one session started."""

from __future__ import annotations

from typing import Any

import pytest

from glue_jobs.spark import table_rows
from tests.work_tables import MakeTable


@pytest.fixture
def spark_table(served_table: MakeTable, spark: Any) -> MakeTable:
    """Makes tables that Spark can work on."""
    del spark
    return served_table


@pytest.fixture
def without_shuffle(monkeypatch: pytest.MonkeyPatch) -> None:
    """A row of a whole table that is about to be shuffled fails the run."""

    def fail(*_: Any) -> None:
        raise AssertionError("shuffled")

    monkeypatch.setattr(table_rows, "_source_rows", fail)
