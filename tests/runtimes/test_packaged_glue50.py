"""The zip on what Glue 5.0 has: Spark 3.5.4 and Python 3.11, pyarrow 17."""

from __future__ import annotations

from pathlib import Path

import pytest

from infra.local.embedded import EmbeddedAws
from tests.runtimes.packaged import SUBMIT_SECONDS, runs_both_loads
from tests.runtimes.spark_runtime import GLUE_50, INSTALL_SECONDS


@pytest.mark.timeout(INSTALL_SECONDS + SUBMIT_SECONDS)
def test_it_loads_and_merges_on_executors(embedded_aws: EmbeddedAws, built: Path, tmp_path: Path) -> None:
    """By --py-files alone, with the work forced onto Spark."""
    versions = runs_both_loads(GLUE_50, embedded_aws, built, tmp_path)

    assert versions == ["3", "11", "3.5.4", "17.0.0"]
