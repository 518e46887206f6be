"""What a stated load costs on AWS in a day, by list prices: runs, the controller, requests, kept versions.

    python -m benchmarks.costs
    python -m benchmarks.costs --tables 300 --a-day 8 --table-mb 200

The number of runs is the controller's own: it packs the tables as `dmslake plan` does. Seconds and requests of a batch are figures of the
measurements that docs/scale.md and docs/latency.md name. Nothing was measured on AWS.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import ceil

from controller.plan import LOAD_INCREMENTAL, TablePlan, pack_runs
from glue_jobs.core.limits import MIB, Limits

PRICES_OF = "2026-11, us-east-1"
DPU_HOUR = 0.44  # Glue, Spark and Python shell
LEAST_SECONDS = 60  # that a run is billed
WORKERS = 2  # of G.1X, one DPU each
CONTROLLER_DPU = 0.0625
S3_WRITES = 0.005 / 1000  # PUT, COPY, POST, LIST
S3_READS = 0.0004 / 1000  # GET, HEAD
S3_GB_MONTH = 0.023
WRITE_UNIT, READ_UNIT = 0.625e-6, 0.125e-6  # DynamoDB on demand: a write of 1 KB, a read of 4 KB
MONTH_DAYS = 30.4


@dataclass(frozen=True)
class Load:
    """What is to be kept up. a_day: rounds of the controller, each with a batch of every table.

    cdc_files: new ones of a table in a round; rewritten, file_mb: data files that a batch replaces; seconds: of a table's work, its waits
    included; start_seconds: of a run, before it takes its first table.
    """

    name: str
    tables: int
    a_day: int = 24
    table_mb: float = 300
    pending_mb: float = 0.1
    cdc_files: int = 10
    rewritten: int = 7
    file_mb: float = 0.9
    seconds: float = 6.0
    start_seconds: float = 30.0
    kept_days: int = 30
    limits: Limits = Limits()


@dataclass(frozen=True)
class Line:
    """One line of the bill. amount: in the unit, in a day."""

    what: str
    amount: float
    unit: str
    price: float

    @property
    def dollars(self) -> float:
        return self.amount * self.price


# Starting, reading the items. A table's plan: 0.1 processor seconds, on a quarter of a processor (1/16 DPU, of 4).
START_SECONDS, PLAN_SECONDS = 30, 0.4
ALONE = Limits(packed_run_tables=1, max_concurrent_runs=10)
LOADS = (
    Load("100 tables of 300 MB, hourly: 2,000 changes in 7 data files of each", 100),
    Load("the same with tables of 6 GB, each with a run of its own", 100, table_mb=6000),
    Load(
        "500 tables of 1 MB, hourly: 100 changes of each, packed into shared runs", 500,
        table_mb=1, pending_mb=0.01, cdc_files=1, rewritten=1, seconds=0.7,
    ),
    Load(
        "the same, a Spark run for each table, ten at once", 500,
        table_mb=1, pending_mb=0.01, cdc_files=1, rewritten=1, seconds=10, limits=ALONE,
    ),
)  # fmt: skip


def bill(load: Load) -> list[Line]:
    """The lines of a load's bill for a day."""
    runs, seconds = runs_of(load)
    batches, files = load.tables * load.a_day, load.rewritten + 1  # and one with inserts
    writes = 3 * files + 1 + 1 + 5  # create, part, complete; the record; one deletion of many; five listings
    reads = load.cdc_files + load.rewritten + 4 + 2  # records and bucket's settings; the controller's
    gigabytes = batches * load.rewritten * load.file_mb / 1000 * load.kept_days
    controller = load.a_day * max(LEAST_SECONDS, round_seconds(load))
    return [
        Line("Spark runs", load.a_day * runs * max(LEAST_SECONDS, seconds / runs) * WORKERS / 3600, "DPU-hours", DPU_HOUR),
        Line("controller", controller * CONTROLLER_DPU / 3600, "DPU-hours", DPU_HOUR),
        Line("S3: PUT, POST, LIST", batches * writes, "requests", S3_WRITES),
        Line("S3: GET", batches * reads, "requests", S3_READS),
        Line(f"S3: versions kept for {load.kept_days} days", gigabytes, "GB", S3_GB_MONTH / MONTH_DAYS),
        Line("DynamoDB: writes of 2 KB", batches * 5 * 2, "write units", WRITE_UNIT),
        Line("DynamoDB: reads", batches * 3, "read units", READ_UNIT),
    ]


def round_seconds(load: Load) -> float:
    """How long the controller takes for a round: it plans all tables, then waits for their runs."""
    runs, seconds = runs_of(load)
    return START_SECONDS + load.tables * PLAN_SECONDS + ceil(runs / load.limits.max_concurrent_runs) * seconds / runs


def runs_of(load: Load) -> tuple[int, float]:
    """(job runs of a round, the seconds of all of them together)."""
    tables = [
        TablePlan(
            f"raw/dms/shop/t{number:05d}/",
            "apply",
            job=LOAD_INCREMENTAL,
            pending_bytes=int(load.pending_mb * MIB),
            table_bytes=int(load.table_mb * 1e6),
        )
        for number in range(load.tables)
    ]
    runs = pack_runs(tables, load.limits)
    each = [load.start_seconds + load.seconds * ceil(len(run.paths) / load.limits.tables_at_once) for run in runs]
    return len(runs), sum(each)


def dollars_of(load: Load) -> float:
    """A day's bill."""
    return sum(line.dollars for line in bill(load))


def text_of(loads: Sequence[Load]) -> str:
    """The bills as Markdown."""
    parts = []
    for load in loads:
        runs, seconds = runs_of(load)
        rows = [
            f"| {line.what} | {line.amount:,.{1 if line.amount < 1000 else 0}f} {line.unit} | {line.dollars:.2f} |" for line in bill(load)
        ]
        head = f"**{load.name}**: {runs} run(s) of {seconds / runs:.0f} seconds a round, {load.a_day} rounds a day, of {_minutes(load)}"
        total = f"| together | | **{dollars_of(load):.2f}** |"
        parts.append("\n".join([head, "", "| what | in a day | dollars a day |", "| --- | --- | --- |", *rows, total]))
    return "\n\n".join(parts)


def _minutes(load: Load) -> str:
    """How long a round takes, and what to do where the next one would have to wait for it."""
    seconds, most = round_seconds(load), 86_400 / load.a_day
    text = f"{seconds / 60:.0f} minutes"
    return text if seconds <= most else f"{text}: **more than the {most / 60:.0f} between two rounds**, raise max_concurrent_runs"


def main(argv: Sequence[str]) -> int:
    """Print the bills of the stated loads, or of one of your own."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tables", type=int)
    parser.add_argument("--a-day", type=int, default=24, help="rounds of the controller")
    parser.add_argument("--table-mb", type=float, default=300)
    parser.add_argument("--rewritten", type=int, default=7, help="data files that a batch replaces")
    parser.add_argument("--file-mb", type=float, default=0.9)
    parser.add_argument("--cdc-files", type=int, default=10, help="new ones of a table in a round")
    parser.add_argument("--seconds", type=float, default=6.0, help="of a table's work")
    given = parser.parse_args(argv)
    loads: Sequence[Load] = LOADS
    if given.tables:
        own = {name: value for name, value in vars(given).items() if name != "tables"}
        loads = (replace(Load(f"{given.tables} tables of {given.table_mb:g} MB", given.tables), **own),)
    print(text_of(loads))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
