"""A backlog of CDC files that drains in one run: how fast, in how many changes, and in how much memory.

    python -m benchmarks.backlog --files 10000 --rows-per-file 100

S3 is MinIO where `make bench` built it, else moto. The run is a process of its own.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from datetime import timedelta

from benchmarks.data.small_tables import change_files, last_runs, make_tables
from benchmarks.server.stand import open_stand
from benchmarks.within.job_runs import run_job
from benchmarks.within.requests import seconds_waited

DISTINCT = 50  # files that differ; a backlog repeats them, because making them takes longer than draining it
DRIVER = 1 << 40


def main(argv: Sequence[str]) -> int:
    """Measure and print Markdown."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--files", type=lambda text: [int(part) for part in text.split(",")], default=[10_000], help="backlogs of so many")
    parser.add_argument("--rows-per-file", type=int, default=100)
    parser.add_argument("--rows", type=int, default=50_000, help="of the table")
    parser.add_argument("--latency-ms", type=float, default=0.0, help="that every request takes more")
    given = parser.parse_args(argv)
    distinct = change_files(given.rows, DISTINCT, given.rows_per_file)
    print("| files | changes | seconds | files/s | rows/s | processor s | waited for AWS, s | requests per file | peak memory |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- | --- |")
    with open_stand() as stand:
        for count in given.files:
            (table,) = make_tables(stand, [f"backlog{count}"], given.rows)
            table.put_load()
            run_job("load_initial", stand.environment, str(table.path), driver_bytes=DRIVER)
            table.put_changes([distinct[at % DISTINCT] for at in range(count)], timedelta(hours=1))
            run = run_job("load_incremental", stand.environment, str(table.path), latency_seconds=given.latency_ms / 1000)
            (last,) = last_runs(stand, [table])
            if last["outcome"] != "committed" or int(last["input_rows"]) != count * given.rows_per_file:
                sys.exit(f"the backlog did not drain: {last}")
            print(
                f"| {count:,} | {last['change_count']} | {run.seconds:.1f} | {count / run.seconds:.0f} "
                f"| {count * given.rows_per_file / run.seconds:,.0f} | {run.cpu_seconds:.1f} | {seconds_waited(run.calls):.1f} "
                f"| {len(run.calls) / count:.2f} | {run.peak_bytes / 1e6:.0f} MB |",
                flush=True,
            )
    print(f"\n{given.rows_per_file} rows in a file of {len(distinct[0]):,} bytes; {stand.title}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
