"""How long a rollback and a re-apply of a change of many files take, beside the change itself.

    python -m benchmarks.rollback --files 700 --rows 1000

Each partition has one data file; the change rewrites all of them, and the rollback brings all of them back by server-side copies.
With `--s3 URL` (and its AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY) another S3 server than the embedded one keeps the files.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from glue_jobs.aws.clients import make_clients
from infra.local.dms_files import dms_parquet, load_file_name
from infra.local.embedded import EmbeddedAws
from tests.lake import LakeTable

LOAD_FILE_ROWS = 250_000


def source_rows(files: int, rows: int, rng: np.random.Generator) -> pa.Table:
    """`rows` rows for each of `files` partitions: id, partition, two numbers, 40 characters that don't compress."""
    count = files * rows
    return pa.table(
        {
            "Op": pa.array(["I"] * count),
            "id": np.arange(count),
            "part": pa.array((np.arange(count) // rows).astype(np.int32)),
            "store": rng.integers(0, 1000, count, dtype=np.int32),
            "amount": pa.array(rng.random(count) * 1000),
            "note": pa.array([f"{value:040x}" for value in rng.integers(0, 2**62, count)]),
        }
    )


def prepared(environment: dict[str, str], aws: EmbeddedAws, files: int, rows: int) -> LakeTable:
    """A loaded table with one pending change that touches every file."""
    table_rows = source_rows(files, rows, np.random.default_rng(1))
    table = LakeTable(environment, aws.raw, aws.lake, pa.schema(list(table_rows.schema)[1:]), partition_key="part")
    for number, start in enumerate(range(0, table_rows.num_rows, LOAD_FILE_ROWS), 1):
        table.put_raw(load_file_name(number), dms_parquet(table_rows.slice(start, LOAD_FILE_ROWS)))
    changed = table_rows.take(pa.array(np.arange(files) * rows))
    changed = changed.set_column(0, "Op", pa.array(["U"] * files)).set_column(5, "note", pa.array(["changed"] * files))
    seconds("load", table, "LoadInitial")
    table.put_raw(table.next_name(), dms_parquet(changed))
    return table


def seconds(name: str, table: LakeTable, job: str, **wish: str) -> float:
    started = time.perf_counter()
    if table.run(job, lease_seconds=60, **wish) != 0:
        sys.exit(f"{name} failed: {table.item().get('LastRun')}")
    return time.perf_counter() - started


def main(argv: Sequence[str]) -> int:
    """Measure and print a Markdown table; 1 if the files are not those of before at the end."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--files", type=int, default=700)
    parser.add_argument("--rows", type=int, default=200, help="in each file")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--s3", default="", help="endpoint of another S3 server")
    given = parser.parse_args(argv)
    with EmbeddedAws() as aws:
        environment = connect(aws, given.s3)
        table = prepared(environment, aws, given.files, given.rows)
        found = {"the change itself": [seconds("change", table, "LoadIncremental")], "rollback": [], "re-apply": []}
        size = table.snapshot().size_bytes
        for _ in range(given.repeat):
            found["rollback"].append(seconds("rollback", table, "Rollback", to="previous"))
            found["re-apply"].append(seconds("re-apply", table, "Rollback", reapply="all"))
        same = len(table.visible()) == given.files and table.visible() == set(table.snapshot().files)
    print(f"\n{given.files} files, {size / 1e6:.0f} MB; S3: {given.s3 or 'embedded'}; seconds, medians of {given.repeat}\n")
    print("| what | seconds |\n| --- | --- |")
    for name, values in found.items():
        print(f"| {name} | {sorted(values)[len(values) // 2]:.1f} |")
    return 0 if same else 1


def connect(aws: EmbeddedAws, s3_url: str) -> dict[str, str]:
    """The environment of jobs and commands, also set in this process; with buckets on another S3 server if one is named."""
    environment = dict(aws.environment())
    if s3_url:
        own = {name: os.environ[name] for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY") if name in os.environ}
        environment.update({"AWS_ENDPOINT_URL_S3": s3_url, **own})
    os.environ.update(environment)
    if s3_url:
        make_buckets(environment, aws)
    return environment


def make_buckets(environment: dict[str, str], aws: EmbeddedAws) -> None:
    """The raw bucket, and the lake's with versioning, on the other server."""
    s3 = make_clients(environment).s3
    for url in (aws.raw, aws.lake):
        s3.create_bucket(Bucket=url.split("/")[2])
    s3.put_bucket_versioning(Bucket=aws.lake.split("/")[2], VersioningConfiguration={"Status": "Enabled"})


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
