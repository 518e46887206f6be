"""A guard against becoming slow: a batch beside what Spark needs to read and write the same files, with a generous bound.

Not a benchmark: the S3 server is Python, Spark reads and writes the local disk, and other tests run on the same cores. So the ratio is 2 to
2.6 here, where it is about 0.5 for a large table on MinIO. A merge that became twice as slow goes over the bound.
Figures come from `make bench`.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from benchmarks.contenders.contender import World
from benchmarks.contenders.ours import Ours
from benchmarks.data import base as base_module
from benchmarks.data.base import Base
from benchmarks.data.prepared import prepare
from benchmarks.data.workloads import WORKLOADS
from benchmarks.server.stand import BUCKET, Stand
from glue_jobs import load_incremental
from infra.local.embedded import EmbeddedAws

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROWS = 200_000  # 13 MB in 20 files
REPETITIONS = 2
BOUND = 4.0


def seconds(work: Callable[[], object]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def test_a_batch_beside_sparks_plain_read_and_write(
    spark: SparkSession, embedded_aws: EmbeddedAws, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, say_at_end: Callable[[str], None]
) -> None:
    """W1: 1000 updates and 1000 deletes in all files. Both are warm; the medians of interleaved repetitions are compared."""
    monkeypatch.setattr(base_module, "DATA", tmp_path / "data")
    environment = {**embedded_aws.environment(), "AWS_ENDPOINT_URL_S3": embedded_aws.endpoint_url}
    stand = Stand("moto", environment, None)
    stand.s3.create_bucket(Bucket=BUCKET)
    prepared = prepare(WORKLOADS["W1"], Base(ROWS))
    stand.put_base(prepared.base)
    stand.put_changes(prepared)
    ours = Ours(World(environment, prepared))
    files = [str(path) for path in prepared.base.paths()]
    taken: dict[str, list[float]] = {"ours": [], "plain": []}

    for number in range(REPETITIONS + 1):
        table = f"guard{number}"
        ours.make(table)
        ours.before(table, 0)
        taken["ours"].append(seconds(lambda table=table: ours.run(load_incremental.main, table, "--driver_bytes", "0")))  # type: ignore[misc]
        written = str(tmp_path / f"plain{number}")
        taken["plain"].append(seconds(lambda written=written: spark.read.parquet(*files).write.parquet(written)))  # type: ignore[misc]

    medians = {name: statistics.median(values[1:]) for name, values in taken.items()}  # the first is not warm
    ratio = medians["ours"] / medians["plain"]
    say_at_end(f"guard: a batch takes {ratio:.2f} × Spark's plain read and write of the files (bound {BOUND})")
    assert ratio < BOUND, taken
