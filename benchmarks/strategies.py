"""How long a load and three kinds of batches take, in the driver, on Spark by broadcast and on Spark by shuffle.

    python -m benchmarks.strategies --rows 300000

The S3 server is moto, in Python and on the same two cores, so the figures say how the ways compare and nothing about AWS.
Each way works on a table of its own with the same rows; the tables' rows are compared at the end.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from infra.local.dms_files import dms_parquet, load_file_name
from infra.local.embedded import EmbeddedAws
from tests.lake import LakeTable

DAY_0, DAYS = 18_262, 730  # 2020-01-01, two years
LOAD_FILE_ROWS = 250_000
WAYS: dict[str, dict[str, Any]] = {
    "driver": {"driver_bytes": 1 << 40},
    "broadcast": {"driver_bytes": 0},
    "shuffle": {"driver_bytes": 0, "broadcast_bytes": 0},
}


@dataclass(frozen=True)
class Batch:
    """A CDC file: its name in the output and its rows."""

    name: str
    rows: pa.Table


def source_rows(count: int, rng: np.random.Generator) -> pa.Table:
    """The source table as a load has it: id, two numbers, a day that grows with the id, 40 characters."""
    ids = np.arange(count)
    return pa.table(
        {
            "Op": pa.array(["I"] * count),
            "id": ids,
            "store": rng.integers(0, 1000, count, dtype=np.int32),
            "day": pa.array((DAY_0 + ids * DAYS // count).astype(np.int32)).cast(pa.date32()),
            "amount": pa.array(rng.random(count) * 1000).cast(pa.decimal128(12, 2), safe=False),
            "note": pa.array([f"{value:040x}" for value in rng.integers(0, 2**62, count)]),
        }
    )


def batches(rows: pa.Table, rng: np.random.Generator) -> Iterator[Batch]:
    """Few changes scattered over the table, few among its newest rows, and every twentieth row moved to another day."""
    count = rows.num_rows
    few = min(2000, count // 10)
    yield Batch("scattered", _changed(rows, rng.choice(count, few, replace=False)))
    yield Batch("newest", _changed(rows, rng.choice(np.arange(count - max(few, count // 100), count), few, replace=False)))
    moved = _changed(rows, rng.choice(count, count // 20, replace=False), deletes=False)
    days = pa.array(rng.integers(DAY_0, DAY_0 + DAYS, moved.num_rows).astype(np.int32)).cast(pa.date32())
    yield Batch("moved", moved.set_column(3, "day", days))


def _changed(rows: pa.Table, at: Any, deletes: bool = True) -> pa.Table:
    """Updates of the rows at these places; the second half of them deletes, unless told otherwise."""
    found = rows.take(pa.array(np.sort(at)))
    half = found.num_rows // 2 if deletes else 0
    return found.set_column(0, "Op", pa.array(["U"] * (found.num_rows - half) + ["D"] * half))


def measure(aws: EmbeddedAws, way: str, partition_key: str, rows: pa.Table, seed: int) -> tuple[dict[str, float], list[Any]]:
    """(seconds by workload, the table's rows at the end) for one way to work."""
    table = LakeTable(aws.environment(), aws.raw, aws.lake, pa.schema(list(rows.schema)[1:]), partition_key=partition_key)
    for number, start in enumerate(range(0, rows.num_rows, LOAD_FILE_ROWS), 1):
        table.put_raw(load_file_name(number), dms_parquet(rows.slice(start, LOAD_FILE_ROWS)))
    seconds = {"load": _timed(table, "LoadInitial", way)}
    for batch in batches(rows, np.random.default_rng(seed)):
        table.put_raw(table.next_name(), dms_parquet(batch.rows))
        seconds[batch.name] = _timed(table, "LoadIncremental", way)
    return seconds, table.rows()


def _timed(table: LakeTable, job: str, way: str) -> float:
    started = time.perf_counter()
    if table.run(job, target_file_bytes=4 << 20, small_file_bytes=1 << 20, **WAYS[way]) != 0:
        sys.exit(f"{job} failed: {table.item().get('LastRun')}")
    return time.perf_counter() - started


def main(argv: Sequence[str]) -> int:
    """Measure and print a Markdown table; 1 if the ways end with different rows."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=300_000)
    parser.add_argument("--partition-key", default="null", help="such as 'year(day),month(day)'")
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args(argv)
    os.environ.setdefault(
        "PYSPARK_SUBMIT_ARGS",
        "--master local[2,4] --driver-memory 4g --conf spark.ui.enabled=false --conf spark.ui.showConsoleProgress=false pyspark-shell",
    )
    rows = source_rows(given.rows, np.random.default_rng(given.seed))
    with EmbeddedAws() as aws:
        os.environ.update({name: value for name, value in aws.environment().items() if name.startswith("AWS_")})
        measure(aws, "broadcast", given.partition_key, rows.slice(0, 1000), given.seed)  # starts Spark and its workers
        found = {way: measure(aws, way, given.partition_key, rows, given.seed) for way in WAYS}
    names = list(next(iter(found.values()))[0])
    print(f"\n{given.rows:,} rows, PartitionKey {given.partition_key}; seconds\n")
    print("| way | " + " | ".join(names) + " |\n|" + " --- |" * (len(names) + 1))
    for way, (seconds, _) in found.items():
        print(f"| {way} | " + " | ".join(f"{seconds[name]:.1f}" for name in names) + " |")
    same = all(end == found["driver"][1] for _, end in found.values())
    print("\nAll ways end with the same rows." if same else "\nThe ways end with DIFFERENT rows.")
    return 0 if same else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
