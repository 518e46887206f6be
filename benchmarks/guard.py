"""A guard against becoming slow: a batch beside what Spark needs to read and write the same files, in one session.

    python -m benchmarks.guard

Not a benchmark: the S3 server is Python, and Spark reads and writes the local disk. So the ratio is 2 to 2.6 here, where it is 0.3 to 0.5
for a large table on MinIO. The test suite runs it in a process of its own, with a bound for the ratio. Figures come from `make bench`.
"""

from __future__ import annotations

import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.contenders.contender import World
from benchmarks.contenders.ours import Ours
from benchmarks.data.base import Base
from benchmarks.data.prepared import prepare
from benchmarks.data.workloads import WORKLOADS
from benchmarks.server.stand import BUCKET, Stand
from glue_jobs import load_incremental
from glue_jobs.spark.java import find_java_home
from glue_jobs.spark.session import SESSION_CONF
from infra.local.embedded import EmbeddedAws

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROWS = 200_000  # 13 MB in 20 files
REPETITIONS = 2


@dataclass(frozen=True)
class Taken:
    """Seconds of each repetition; the first is not warm, and does not count."""

    ours: list[float]
    plain: list[float]

    @property
    def ratio(self) -> float:
        return statistics.median(self.ours[1:]) / statistics.median(self.plain[1:])


def measure(spark: SparkSession, aws: EmbeddedAws, folder: Path) -> Taken:
    """W1: 1000 updates and 1000 deletes in all files, by turns with Spark's reading and writing of these files, into `folder`."""
    environment = {**aws.environment(), "AWS_ENDPOINT_URL_S3": aws.endpoint_url}
    stand = Stand("moto", environment, None)
    stand.s3.create_bucket(Bucket=BUCKET)
    prepared = prepare(WORKLOADS["W1"], Base(ROWS))
    stand.put_base(prepared.base)
    stand.put_changes(prepared)
    ours = Ours(World(environment, prepared))
    files = [str(path) for path in prepared.base.paths()]
    taken = Taken([], [])

    def plain(written: str) -> None:
        spark.read.parquet(*files).write.parquet(written)

    for number in range(REPETITIONS + 1):
        table, written = f"guard{number}", str(folder / f"plain{number}")
        ours.make(table)
        ours.before(table, 0)
        taken.ours.append(_seconds(partial(ours.run, load_incremental.main, table, "--driver_bytes", "0")))
        taken.plain.append(_seconds(partial(plain, written)))
    return taken


def _seconds(work: Callable[[], object]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def main() -> int:
    """Print the seconds and the ratio as JSON."""
    os.environ["JAVA_HOME"] = find_java_home()
    os.environ["PYSPARK_PYTHON"] = sys.executable
    from pyspark.sql import SparkSession

    with tempfile.TemporaryDirectory(prefix="guard-") as folder, EmbeddedAws() as aws:
        builder = SparkSession.builder.master("local[2,4]").appName("guard").config("spark.ui.enabled", "false")
        builder = builder.config("spark.driver.bindAddress", "127.0.0.1").config("spark.driver.host", "127.0.0.1")
        builder = builder.config("spark.sql.warehouse.dir", f"{folder}/warehouse").config("spark.local.dir", f"{folder}/local")
        for name, value in SESSION_CONF.items():
            builder = builder.config(name, value)
        spark = builder.getOrCreate()
        taken = measure(spark, aws, Path(folder))
        spark.stop()
    print(json.dumps({"ours": taken.ours, "plain": taken.plain, "ratio": taken.ratio}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
