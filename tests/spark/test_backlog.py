"""A backlog drains in batches: what a run holds in memory is a batch, however many files wait."""

from __future__ import annotations

import tracemalloc
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

import pyarrow as pa

from glue_jobs.core.settings import Settings
from glue_jobs.core.work import Task, Work
from glue_jobs.spark.worker import SparkWorker
from tests.spark.tables import WorkTable
from tests.work_tables import MakeTable

ROWS, BATCH_FILES = 200, 20


@dataclass
class Peaks:
    """A worker that notes the most memory that each change held more than before it: Arrow's and Python's."""

    bytes_of_changes: list[int] = field(default_factory=list)

    def __call__(self, settings: Settings, environment: Mapping[str, str]) -> Peaks.Noting:
        return Peaks.Noting(self, SparkWorker(settings, environment))

    @dataclass
    class Noting:
        peaks: Peaks
        worker: SparkWorker

        def __call__(self, task: Task) -> Work:
            with own_pool() as pool:
                tracemalloc.reset_peak()
                before, _ = tracemalloc.get_traced_memory()
                work = self.worker(task)
                self.peaks.bytes_of_changes.append(pool.max_memory() + tracemalloc.get_traced_memory()[1] - before)
            return work


@contextmanager
def own_pool() -> Iterator[pa.MemoryPool]:
    """Arrow's memory while it lasts, counted from 0."""
    usual, pool = pa.default_memory_pool(), pa.proxy_memory_pool(pa.system_memory_pool())
    pa.set_memory_pool(pool)
    try:
        yield pool
    finally:
        pa.set_memory_pool(usual)


def drained(table: WorkTable, files: int) -> list[int]:
    """The most bytes of each change that a backlog of so many files takes."""
    name = "x" * 500
    table.load([(number, name, 0) for number in range(ROWS)])
    table.sync()
    rows = table.parquet([("U", (number, f"{name}{number}", number)) for number in range(0, ROWS, 4)])
    for _ in range(files):
        table.put_raw(table.next_name(), rows)
    peaks = Peaks()
    table.make_worker = peaks
    tracemalloc.start()
    try:
        assert table.run(batch_files=str(BATCH_FILES)) == 0, table.last_run()
    finally:
        tracemalloc.stop()
    assert table.last_run()["input_rows"] == files * ROWS // 4
    return peaks.bytes_of_changes


def test_a_longer_backlog_takes_no_more_memory(quick_table: MakeTable) -> None:
    """Four times as many files are four times as many changes, each as large as before."""
    few, many = drained(quick_table(), 2 * BATCH_FILES), drained(quick_table(), 8 * BATCH_FILES)

    assert (len(few), len(many)) == (2, 8)
    assert max(many) <= 1.3 * max(few), (few, many)
