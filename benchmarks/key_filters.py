"""What key filters spare where keys are random: three batches of changes among the newest rows, with filters and without.

    python -m benchmarks.key_filters --rows 2000000 --files 700

All work is done in this process, on the embedded S3 server, which is Python on the same cores: the seconds say how the two compare, and
nothing about AWS. Requests and bytes are those of the GETs of the work on data: raw files, data files, filters.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from benchmarks.data.base import hexadecimal, uuids
from glue_jobs.aws.clients import worker_s3
from glue_jobs.spark.place import CLIENT_VARIABLES
from infra.local.dms_files import dms_parquet, load_file_name
from infra.local.embedded import EmbeddedAws
from tests.lake import LakeTable

LOAD_FILE_ROWS = 250_000
BATCHES = 3
CHANGES = 2000  # half updates, half deletes, in the newest hundredth of the rows
WAYS = {"with key filters": {}, "without": {"key_filter_bytes": 0}}


@dataclass
class Cost:
    """What one batch took. searched: data files that were opened; impacted: those that held a changed key."""

    seconds: float = 0.0
    cpu_seconds: float = 0.0
    searched: int = 0
    impacted: int = 0
    gets: int = 0
    bytes_read: int = 0


@dataclass
class Counter:
    """The GETs of the work on data."""

    sizes: list[int] = field(default_factory=list)

    def note(self, parsed: dict[str, Any], **_: Any) -> None:
        self.sizes.append(int(parsed.get("ContentLength", 0)))


def source_rows(rows: int, files: int, rng: np.random.Generator) -> pa.Table:
    """Rows with random keys, in as many partitions as there are to be files, oldest first."""
    return pa.table(
        {
            "Op": pa.array(["I"] * rows),
            "id": uuids(rows, rng),
            "part": pa.array((np.arange(rows) * files // rows).astype(np.int32)),
            "store": rng.integers(0, 1000, rows, dtype=np.int32),
            "note": hexadecimal(rows, 40, rng),
        }
    )


def batch(rows: pa.Table, number: int, rng: np.random.Generator) -> pa.Table:
    """Changes among the newest rows; each batch has rows of its own, so that those of another may be gone."""
    newest = np.arange(rows.num_rows - rows.num_rows // 100 + number, rows.num_rows, BATCHES)
    picked = rng.choice(newest, min(CHANGES, len(newest) // 2), replace=False)
    ops = ["U"] * (len(picked) - len(picked) // 2) + ["D"] * (len(picked) // 2)
    return rows.take(pa.array(picked)).set_column(0, "Op", pa.array(ops))


def measure(aws: EmbeddedAws, rows: pa.Table, counter: Counter, settings: dict[str, Any]) -> tuple[list[Cost], list[Any]]:
    """The cost of each batch, and the table's rows at the end."""
    table = LakeTable(aws.environment(), aws.raw, aws.lake, pa.schema(list(rows.schema)[1:]), partition_key="part")
    for number, start in enumerate(range(0, rows.num_rows, LOAD_FILE_ROWS), 1):
        table.put_raw(load_file_name(number), dms_parquet(rows.slice(start, LOAD_FILE_ROWS)))
    run(table, "LoadInitial", {})
    found, rng = [], np.random.default_rng(7)
    for number in range(BATCHES):
        files = len(table.snapshot().files)
        table.put_raw(table.next_name(), dms_parquet(batch(rows, number, rng)))
        counter.sizes.clear()
        started, cpu = time.perf_counter(), time.process_time()
        run(table, "LoadIncremental", settings)
        record = table.head()
        searched = int(record.details.get("files_searched", files))
        spent = (time.perf_counter() - started, time.process_time() - cpu)
        found.append(Cost(*spent, searched, len(record.superseded), len(counter.sizes), sum(counter.sizes)))
    return found, table.rows()


def run(table: LakeTable, job: str, settings: dict[str, Any]) -> None:
    if table.run(job, lease_seconds=600, small_file_bytes=0, **settings) != 0:
        sys.exit(f"{job} failed: {table.item().get('LastRun')}")


def main(argv: Sequence[str]) -> int:
    """Measure and print a Markdown table; 1 if both ways do not end with the same rows."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=2_000_000)
    parser.add_argument("--files", type=int, default=700)
    given = parser.parse_args(argv)
    rows = source_rows(given.rows, given.files, np.random.default_rng(1))
    counter = Counter()
    with EmbeddedAws() as aws:
        environment = aws.environment()
        os.environ.update({name: value for name, value in environment.items() if name.startswith("AWS_")})
        worker = worker_s3((name, environment[name]) for name in CLIENT_VARIABLES if name in environment)
        worker.meta.events.register("after-call.s3.GetObject", counter.note)
        measure(aws, rows.slice(0, rows.num_rows // 50), counter, {})  # so that nothing is done for the first time
        found = {way: measure(aws, rows, counter, settings) for way, settings in WAYS.items()}
    print(f"\n{given.rows:,} rows in {given.files} files, random keys\n")
    print("| way | batch | files impacted | files opened | GETs | MB read | seconds | CPU seconds |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- |")
    for way, (costs, _) in found.items():
        for number, cost in enumerate(costs, 1):
            sizes = f"{cost.impacted} | {cost.searched} | {cost.gets} | {cost.bytes_read / 1e6:.1f}"
            print(f"| {way} | {number} | {sizes} | {cost.seconds:.1f} | {cost.cpu_seconds:.1f} |")
    same = found["with key filters"][1] == found["without"][1]
    print("\nBoth ways end with the same rows." if same else "\nThe ways end with DIFFERENT rows.")
    return 0 if same else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
