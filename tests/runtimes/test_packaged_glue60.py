"""The zip on what Glue 6.0 has: Spark 4.1.1 and Python 3.13."""

from __future__ import annotations

from pathlib import Path

import pytest

from infra.local.embedded import EmbeddedAws
from tests.runtimes.packaged import SUBMIT_SECONDS, runs_both_loads
from tests.runtimes.spark_runtime import GLUE_60, INSTALL_SECONDS


@pytest.mark.timeout(INSTALL_SECONDS + SUBMIT_SECONDS)
def test_it_loads_and_merges_on_executors(embedded_aws: EmbeddedAws, built: Path, tmp_path: Path) -> None:
    """By --py-files alone, with the work forced onto Spark."""
    versions = runs_both_loads(GLUE_60, embedded_aws, built, tmp_path)

    assert versions[:3] == ["3", "13", "4.1.1"]
