"""What one table of many data files and a long history costs: requests, bytes, seconds of the processor and memory of what looks at it.

    python -m benchmarks.big_table --files 100000 --changes 10000

S3 is a dictionary, so that the seconds are those of dmslake alone.
"""

from __future__ import annotations

import argparse
import gc
import json
import sys
import time
import tracemalloc
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import timedelta
from functools import partial
from itertools import islice
from typing import Any

import numpy as np
import pyarrow as pa

from benchmarks.synthetic.objects import END
from benchmarks.synthetic.table import ROWS, SCHEMA, BigTable, made, work_of_change
from controller.gather import Facts, read_outlines
from controller.plan import plan_one
from controller.status import status_of
from glue_jobs.aws.records import read_record, write_record
from glue_jobs.core.limits import Limits
from glue_jobs.core.snapshot import CHECKPOINT_EVERY
from glue_jobs.core.undo import Wish
from glue_jobs.protocol.commit import make_record
from glue_jobs.protocol.history import read_snapshot
from glue_jobs.protocol.lineage import Lineage
from glue_jobs.protocol.undo import prepare, work_of
from glue_jobs.spark.merge import candidates
from glue_jobs.spark.net_changes import DELETE, OP, NetChanges
from glue_jobs.spark.place import Shape
from tests.core.tables import PATH
from tests.raw_folders import Layout

WALKED = 200  # changes of a long walk that are measured
KEYS = (2_000, 500_000)  # of the batches for which files are chosen


def measured(table: BigTable, work: Callable[[], Any]) -> dict[str, Any]:
    """What it takes."""
    s3 = table.s3
    gc.collect()
    s3.requests.clear()
    s3.bytes_read = s3.bytes_written = 0
    started = time.process_time()
    work()
    seconds = time.process_time() - started
    found = {"CPU seconds": round(seconds, 2), "MB read": round(s3.bytes_read / 1e6, 1), "MB written": round(s3.bytes_written / 1e6, 1)}
    requests = ", ".join(f"{count} {name}" for name, count in s3.requests.items())
    tracemalloc.start()
    work()
    peak = tracemalloc.get_traced_memory()[1] / 1e6
    tracemalloc.stop()
    return {**found, "memory, MB": round(peak), "requests": requests}


def deeds(table: BigTable) -> dict[str, Callable[[], Any]]:
    """What is done with the table, by name."""
    s3: Any = table.s3
    state, lake = table.state, table.state.lake
    limits, now = Limits(), END + timedelta(hours=1)

    def facts() -> Facts:
        return Facts(str(PATH), state, *read_outlines(s3, state, limits))

    def roll_back(goal: str) -> None:
        head = read_snapshot(s3, lake, table.head)
        prepared = prepare(s3, state, head, Wish(to=goal, skip=True))
        work = work_of(s3, lake, prepared, table.head[:-1] + "f")
        record = make_record(state, head, work, table.head[:-1] + "f", now=now, run_id="run", window_hours=24)
        kept = dict(s3.objects)
        write_record(s3, lake, record)
        s3.objects = kept

    def batch(due: bool = False) -> None:
        head = read_snapshot(s3, lake, table.head)
        head = replace(head, chain=(table.head,) * CHECKPOINT_EVERY) if due else head
        work = work_of_change(head, PATH.raw.key + Layout().name(END), table.head[:-1] + "f", len(table.ids), len(head.files))
        record = make_record(state, head, work, table.head[:-1] + "f", now=now, run_id="run", window_hours=24)
        kept = dict(s3.objects)
        write_record(s3, lake, record)
        s3.objects = kept

    files = tuple(read_snapshot(s3, lake, table.head).files.values())

    return {
        "controller: plan the table": lambda: plan_one(facts(), now, limits),
        "`status`": lambda: status_of(facts(), now, limits),
        "job: read the snapshot, make and write the next record": batch,
        "the same each tenth time, with the list of all files": lambda: batch(due=True),
        **{f"job: choose the files for {count:,} keys": partial(candidates, net_of(count, len(files)), files) for count in KEYS},
        "`history`: the last 20 changes": lambda: list(islice(Lineage(s3, lake, table.head).back(), 20)),
        f"a walk over {WALKED} changes": lambda: list(islice(Lineage(s3, lake, table.head).back(), WALKED)),
        "`show`: one change": lambda: read_record(s3, lake, table.ids[-2], with_checkpoint=False),
        "rollback of the last change: plan, copies, record": lambda: roll_back("previous"),
    }


def net_of(count: int, files: int) -> NetChanges:
    """Deletes of keys all over the table."""
    keys = np.unique(np.random.default_rng(1).integers(0, files * ROWS, count))
    table = pa.table({"id": keys, "name": pa.nulls(len(keys), pa.string()), OP: pa.array(np.full(len(keys), DELETE), pa.int8())})
    return NetChanges(table, Shape("t", SCHEMA, ("id",)), np.full(len(keys), -1, np.int32), ())


def main(argv: Sequence[str]) -> int:
    """Measure and print a Markdown table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--files", type=int, default=100_000)
    parser.add_argument("--changes", type=int, default=10_000)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args(argv)
    table = made(given.files, given.changes)
    found = {name: measured(table, work) for name, work in deeds(table).items()}
    if given.json:
        print(json.dumps(found))
        return 0
    columns = list(next(iter(found.values())))
    print(f"{given.files:,} data files, {given.changes:,} changes\n\n| what | {' | '.join(columns)} |\n|{' --- |' * (len(columns) + 1)}")
    for name, values in found.items():
        print(f"| {name} | {' | '.join(str(value) for value in values.values())} |")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
