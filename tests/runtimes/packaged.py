"""The built zip on a bare Spark: the load jobs in one application, so that a cluster is started once."""

from __future__ import annotations

import subprocess
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa

from infra.local.embedded import EmbeddedAws
from tests.lake import LakeTable
from tests.runtimes.spark_runtime import SparkRuntime

COLUMNS = pa.schema(
    [("id", pa.int64()), ("name", pa.string()), ("day", pa.date32()), ("price", pa.decimal128(10, 2)), ("at", pa.timestamp("us"))]
)
# One executor that is a process of its own: what its tasks import, they have from the zip.
CLUSTER = "local-cluster[1,2,1024]"
SUBMIT_SECONDS = 600
# A driver that runs the jobs as the entry scripts do; the versions that it prints are those it ran with.
BOTH_LOADS = """
import atexit, sys
import pyarrow, pyspark
from glue_jobs import load_incremental, load_initial
from glue_jobs.entry import exit_as_glue_wants

atexit.register(lambda: print("stopped", pyspark.SparkContext._active_spark_context is None))
print("versions", *sys.version_info[:2], pyspark.__version__, pyarrow.__version__)
codes = [job.main(sys.argv[1:]) for job in (load_initial, load_incremental)]
print("codes", *codes)
exit_as_glue_wants(max(codes), sys.argv[1:])
"""


def row(number: int, name: str) -> tuple[Any, ...]:
    """A row with the types that versions of Spark and pyarrow have differed in; partitioned by its month."""
    return number, name, date(2024, 1 + number % 3, 1), Decimal("1.50"), datetime(1800, 1, 1, 12)


def runs_both_loads(runtime: SparkRuntime, aws: EmbeddedAws, built: Path, folder: Path) -> list[str]:
    """Loads a table and applies a batch to it, all on executors; checks the result and returns the versions it ran with."""
    table = LakeTable(aws.environment(), aws.raw, aws.lake, COLUMNS, partition_key="month(day)")
    table.load([row(number, f"n{number}") for number in range(12)])
    table.cdc([("U", row(1, "one")), ("D", row(2, "")), ("I", row(100, "new"))])
    script = folder / "both_loads.py"
    script.write_text(BOTH_LOADS)
    words = ["--master", CLUSTER, "--conf", "spark.ui.enabled=false", "--py-files", built / "dmslake.zip", script]
    job = ["--path", str(table.path), "--state_table", aws.state_table, "--database", aws.database, "--driver_bytes", "0"]

    done = subprocess.run(
        [runtime.folder() / "spark-submit", *words, *job],
        cwd=folder, env=runtime.environment(aws), capture_output=True, text=True, timeout=SUBMIT_SECONDS, check=False,
    )  # fmt: skip

    assert done.returncode == 0, done.stdout + done.stderr
    names = {values[0]: values[1] for values in table.rows()}
    assert names == {**{number: f"n{number}" for number in range(12) if number != 2}, 1: "one", 100: "new"}
    assert [record.details["engine"] for record in table.lineage().back()] == ["spark", "spark"]
    assert table.verify() == []
    said = {line.split()[0]: line.split()[1:] for line in done.stdout.splitlines() if line.startswith(("versions ", "codes ", "stopped "))}
    assert (said["codes"], said["stopped"]) == (["0", "0"], ["True"])
    return said["versions"]
