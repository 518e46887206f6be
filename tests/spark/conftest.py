"""Tables for Spark: those of tests.work_tables, with the one session started."""

from __future__ import annotations

from typing import Any

import pytest

from tests.work_tables import MakeTable


@pytest.fixture
def spark_table(served_table: MakeTable, spark: Any) -> MakeTable:
    """Makes tables that Spark can work on."""
    del spark
    return served_table
