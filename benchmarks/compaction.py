"""What it takes to compact a table of many small files once, and what that is worth to its readers.

    python -m benchmarks.compaction [--rows N] [--repeat N]

A table is adopted from the files that the comparison starts from (700 for ten million rows) and written anew in its own layout, by the job
that `dmslake repartition PATH --run` starts. Spark reads it before and after: all columns, and one row by its key. The files are on the S3
server that `benchmarks.install` built, else on the embedded one.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass

from benchmarks.contenders.contender import World
from benchmarks.contenders.ours import Ours
from benchmarks.data.base import FULL_ROWS, Base
from benchmarks.data.prepared import Prepared, prepare
from benchmarks.data.workloads import WORKLOADS
from benchmarks.folders import LOGS
from benchmarks.measuring.process import Worker
from benchmarks.peers import LEAST_ROWS
from benchmarks.server.stand import Stand, open_stand
from glue_jobs import load_incremental
from glue_jobs.aws.clients import make_clients
from glue_jobs.aws.state_table import StateTable


class Compacting(Ours):
    """dmslake, asked for a table's layout that it has."""

    def compact(self, table: str) -> None:
        """What `dmslake repartition` writes into the table's item, and the job that it starts."""
        environment = self.world.environment
        states = StateTable(make_clients(environment), environment["DMSLAKE_STATE_TABLE"])
        states.set_attributes(str(self._path(table)), {"Request": "repartition"})
        self._as_glue_starts_spark()
        self.run(load_incremental.main, table)


@dataclass(frozen=True)
class Reading:
    """What a table is to its readers: its files, and the seconds of a scan and of a query for one key."""

    files: int
    scan: float
    point: float


@dataclass(frozen=True)
class Compaction:
    """One table. requests: at the S3 server, 0 where it does not count."""

    seconds: float
    requests: int
    before: Reading
    after: Reading


class Measuring:
    """Makes tables, compacts them in this process, and has them read in another one."""

    def __init__(self, stand: Stand, prepared: Prepared) -> None:
        self._stand, self._prepared = stand, prepared
        self._compacting = Compacting(World(stand.environment, prepared))

    def one(self, table: str) -> Compaction:
        """One table, which is removed in the end. Raises RuntimeError if it has other rows afterwards."""
        try:
            return self._measured(table)
        finally:
            self._stand.drop(table)

    def _measured(self, table: str) -> Compaction:
        with self._worker() as making:
            making.ask("make", table)
        before = self._read(table)
        counted = self._stand.counts()
        taken = _seconds(lambda: self._compacting.compact(table))
        counts = self._stand.counts()
        requests = counts.since(counted).request_count if counts and counted else 0
        return Compaction(taken, requests, before, self._read(table))

    def _read(self, table: str) -> Reading:
        with self._worker() as reading:
            for action in ("scan", "point"):  # the first query of a session finds nothing ready
                reading.ask(action, table)
            scan, point = (reading.ask(action, table).seconds for action in ("scan", "point"))
            if reading.ask("digest", table).value != asdict(self._prepared.base_rows):
                raise RuntimeError(f"the table {table} has not the rows that it was made of")
            return Reading(len(reading.ask("files", table).value), scan, point)

    def _worker(self) -> Worker:
        return Worker(self._stand, "ours", self._prepared, LOGS / f"{self._prepared.base.name}-compaction.log")


def _seconds(act: Callable[[], object]) -> float:
    started = time.perf_counter()
    act()
    return time.perf_counter() - started


def main(argv: Sequence[str]) -> int:
    """Measure and print a Markdown table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rows", type=int, default=FULL_ROWS)
    parser.add_argument("--repeat", type=int, default=3, metavar="N", help="tables after the first one")
    given = parser.parse_args(argv)
    if given.rows < LEAST_ROWS or given.repeat < 1:
        parser.error(f"expected at least {LEAST_ROWS:,} rows and 1 table, found {given.rows:,} and {given.repeat}")
    base = Base(given.rows)
    with open_stand() as stand:
        os.environ.update(stand.environment)  # Spark's workers inherit it
        stand.put_base(base)
        measuring = Measuring(stand, prepare(WORKLOADS["W1"], base))
        cold, *warm = (measuring.one(f"compact_{number}") for number in range(given.repeat + 1))
    print(f"\n{stand.title}; {base.rows:,} rows, {base.size_bytes() / 1e6:,.0f} MB; medians of {given.repeat}\n")
    median = statistics.median(each.seconds for each in warm)
    print(f"Compaction: {median:.1f} seconds, {warm[0].requests:,} requests; the first table {cold.seconds:.1f} seconds")
    print("(it starts Spark, if there is enough to do).\n")
    print("| | files | full scan, s | query for one key, s |\n| --- | --- | --- | --- |")
    for name, readings in (("before", [each.before for each in warm]), ("after", [each.after for each in warm])):
        scan = statistics.median(each.scan for each in readings)
        point = statistics.median(each.point for each in readings)
        print(f"| {name} | {readings[0].files} | {scan:.1f} | {point:.1f} |")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
