"""The zip on what Glue 5.1 has: docs/spark-submit.md as a reader would follow it, on a Spark without dmslake."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from glue_jobs.spark.java import find_java_home
from tests.document_shell import ROOT, DocumentShell, blocks
from tests.runtimes.spark_runtime import GLUE_51, INSTALL_SECONDS, QUICK_JVM

PAGE = ROOT / "docs" / "spark-submit.md"
PAGE_SECONDS = 600


@pytest.fixture
def shell(tmp_path: Path) -> Iterator[DocumentShell]:
    """A shell that has the command line of dmslake, and the other environment's Spark."""
    bare = GLUE_51.folder()
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "spark-submit").symlink_to(bare / "spark-submit")
    path = os.pathsep.join([str(tmp_path / "bin"), str(Path(sys.executable).parent), "/usr/local/bin", "/usr/bin", "/bin"])
    (spark_home,) = bare.parent.glob("lib/python3.11/site-packages/pyspark")
    variables = {"PATH": path, "HOME": "/nonexistent", "LC_ALL": "C.UTF-8", "JAVA_HOME": find_java_home(), **QUICK_JVM}
    shell = DocumentShell(tmp_path, {**variables, "SPARK_HOME": str(spark_home), "PYSPARK_PYTHON": str(bare / "python")}, PAGE_SECONDS)
    yield shell
    shell.close()


@pytest.mark.timeout(INSTALL_SECONDS + PAGE_SECONDS)
def test_the_page_from_top_to_bottom(shell: DocumentShell) -> None:
    """Load, changes and rollback by spark-submit; dmslake is not installed there; verify finds nothing."""
    probe = f"! {GLUE_51.folder() / 'python'} -c 'import glue_jobs' 2> probe && grep -c ModuleNotFoundError probe"
    (found,) = shell.bash(probe).split()

    text = "\n".join(shell.run(block) for block in blocks(PAGE) if block.language == "sh")

    assert found == "1"
    assert "0 difference(s)" in text
    told = shell.bash("dmslake history shop.products --output json")
    assert [change["kind"] for change in json.loads(told)["changes"]] == ["rollback", "incremental", "full-load"]
