"""Tables of one run, some at the same time: a small table's run is mostly a wait for AWS, and while one waits another works.

A lane is what tables need that are worked on one after the other: clients whose writes stop when the lease that is held there is over.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from queue import SimpleQueue
from typing import Callable

from glue_jobs.aws.clients import Deadline
from glue_jobs.aws.state_table import StateTable
from glue_jobs.core.paths import TablePath
from glue_jobs.protocol.table_run import JobContext

RunOne = Callable[[JobContext, TablePath], int]


def in_lanes(context: JobContext, paths: Sequence[TablePath], run: RunOne, most: int) -> list[int]:
    """`run` of each table, at most `most` at a time; their exit codes in the tables' order. The first lane is `context` itself."""
    count = min(most, len(paths))
    if count < 2:
        return [run(context, path) for path in paths]
    free: SimpleQueue[JobContext] = SimpleQueue()
    for lane in (context, *(_beside(context) for _ in range(count - 1))):
        free.put(lane)

    def one(path: TablePath) -> int:
        lane = free.get()
        try:
            return run(lane, path)
        finally:
            free.put(lane)

    pool = ThreadPoolExecutor(count, thread_name_prefix="table")
    try:
        return list(pool.map(one, paths))
    finally:
        pool.shutdown(wait=True, cancel_futures=True)  # where the run is interrupted no further table is begun


def _beside(context: JobContext) -> JobContext:
    """The context of another lane of the same run."""
    deadline = Deadline()
    clients = context.clients.beside(deadline)
    return replace(context, clients=clients, deadline=deadline, table=StateTable(clients, context.table.name))
