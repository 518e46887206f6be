"""Many small tables with a few changes each, hourly: runs, seconds, requests and dollars a day, in shared runs and a Spark run per table.

    python -m benchmarks.many_tables --tables 500

The controller's own plan packs the tables into runs; every run is a process of its own, as on Glue. S3 is MinIO where `make bench` built
it, else moto. Dollars are Glue's list price in us-east-1 (G.1X, two workers, a minute at least): $0.44 per DPU-hour.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections import Counter
from collections.abc import Sequence
from datetime import datetime, timedelta, timezone

from benchmarks.data.small_tables import SmallTable, change_files, last_runs, make_tables
from benchmarks.server.stand import Stand, open_stand
from benchmarks.within.job_runs import JobRun, run_job
from benchmarks.within.requests import waits
from controller.gather import Question, gather
from controller.plan import PlannedRun, plan_run
from glue_jobs.aws.clients import make_clients
from glue_jobs.aws.state_table import StateTable
from glue_jobs.core.settings import read_settings

DOLLARS_PER_DPU_HOUR = 0.44
WORKERS, LEAST_SECONDS = 2, 60  # of a Glue Spark job, at least; each G.1X worker is one DPU
DRIVER, SPARK = 1 << 40, 0
SCRIPTS = {"LoadInitial": "load_initial", "LoadIncremental": "load_incremental"}


def dollars_a_day(run_seconds: Sequence[float]) -> float:
    """What these runs cost when they are started once an hour."""
    return sum(max(LEAST_SECONDS, seconds) for seconds in run_seconds) * 24 * WORKERS * DOLLARS_PER_DPU_HOUR / 3600


def plan(stand: Stand) -> tuple[tuple[PlannedRun, ...], float]:
    """(the runs that a controller would start now, processor seconds of deciding that)."""
    settings = read_settings({}, stand.environment)
    clients = make_clients(stand.environment)
    started = time.process_time()
    gathered = gather(clients, StateTable(clients, settings.state_table), Question(settings, discover=False), datetime.now(timezone.utc))
    return plan_run(gathered).runs, time.process_time() - started


def run_all(stand: Stand, runs: Sequence[PlannedRun], latency: float) -> list[JobRun]:
    """Each run in a process, one after the other."""
    return [
        run_job(
            SCRIPTS[run.job],
            stand.environment,
            ",".join(run.paths),
            latency_seconds=latency,
            database=stand.environment["DMSLAKE_DATABASE"],
        )
        for run in runs
    ]


def check(stand: Stand, tables: Sequence[SmallTable], changes: int) -> None:
    """End if not every table has taken its changes."""
    wrong = [last for last in last_runs(stand, tables) if last["outcome"] != "committed" or int(last["input_rows"]) != changes]
    if wrong:
        sys.exit(f"{len(wrong)} tables were not changed, first: {wrong[0]}")


def main(argv: Sequence[str]) -> int:
    """Measure and print Markdown."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--tables", type=int, default=500)
    parser.add_argument("--changes", type=int, default=100)
    parser.add_argument("--rows", type=int, default=1000, help="of each table")
    parser.add_argument("--latency-ms", type=float, default=0.0, help="that every request takes more")
    given = parser.parse_args(argv)
    latency = given.latency_ms / 1000
    with open_stand() as stand:
        tables = make_tables(stand, [f"t{number:05}" for number in range(given.tables)], given.rows)
        for table in tables:
            table.put_load()
        loads, _ = plan(stand)
        run_all(stand, loads, 0)
        files = change_files(given.rows, 1, given.changes)
        for table in tables:
            table.put_changes(files, timedelta(hours=1))
        runs, planning = plan(stand)
        taken = run_all(stand, runs, latency)
        check(stand, tables, given.changes)
        tables[0].put_changes(files, timedelta(hours=2))
        alone = run_job("load_incremental", stand.environment, str(tables[0].path), latency_seconds=latency, driver_bytes=SPARK)
    _print(given, runs, taken, planning, alone)
    print(f"\n{stand.title}; every request takes {given.latency_ms:g} ms more than here")
    return 0


def _print(given: argparse.Namespace, runs: Sequence[PlannedRun], taken: Sequence[JobRun], planning: float, alone: JobRun) -> None:
    count = given.tables
    seconds = [run.seconds for run in taken]
    calls = Counter(call.stage for run in taken for call in run.calls)
    print(f"\n{count} tables of {given.rows:,} rows, {given.changes} changes each\n")
    print("| | shared runs | a Spark run per table |\n| --- | --- | --- |")
    print(f"| runs | {len(runs)} | {count} |")
    print(f"| seconds of a run | {statistics.median(seconds):.1f} | {alone.seconds:.1f} |")
    print(f"| seconds of all | {sum(seconds):.0f} | {count * alone.seconds:.0f} |")
    print(f"| seconds a table | {sum(seconds) / count:.2f} | {alone.seconds:.1f} |")
    print(f"| processor seconds a table | {sum(run.cpu_seconds for run in taken) / count:.3f} | |")
    beside = f"{len(alone.calls)} and those of Spark's workers"
    print(f"| requests a table | {sum(len(run.calls) for run in taken) / count:.1f} | {beside} |")
    print(f"| of them one after the other | {sum(len(waits(run.calls)) for run in taken) / count:.1f} | |")
    print(f"| peak memory of a run | {max(run.peak_bytes for run in taken) / 1e6:.0f} MB | |")
    print(f"| dollars a day, hourly | {dollars_a_day(seconds):.2f} | {dollars_a_day([alone.seconds] * count):.2f} |")
    stages = ", ".join(f"{name} {number / count:.1f}" for name, number in calls.most_common())
    print(f"\nplanning them: {planning:.1f} processor seconds. Requests a table: {stages}")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
