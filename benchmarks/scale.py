"""What a plan of the controller costs for many tables with many CDC files: requests, seconds of the processor, memory.

    python -m benchmarks.scale --tables 1000 --files 100000

The raw bucket is made up: a real boto3 client asks, and gets pages of keys that no server keeps, so that a hundred million of them fit.
The seconds are those of boto3 and of dmslake; those of making the pages are taken off. Each table has ten files that wait.

--layout flat, dated, or odd: months come before years, so that no key can be passed over. --first: no table has taken a file yet.
"""

from __future__ import annotations

import argparse
import gc
import json
import resource
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

from benchmarks.synthetic.aws import LAKE, LAYOUTS, Shape, SyntheticAws
from benchmarks.synthetic.objects import END
from controller.gather import Question, read_outlines, survey
from controller.plan import RunPlan, join_plans, plan_one
from glue_jobs.aws.clients import Clients
from glue_jobs.aws.garbage import collect_less
from glue_jobs.core.settings import Settings

NOW = END + timedelta(minutes=1)
SETTINGS = Settings(raw="s3://raw/dms/", lake=LAKE, database="lake")


def plan_all(aws: SyntheticAws, clients: Clients) -> RunPlan:
    """The plan of all tables, as the controller makes it."""
    table: Any = aws
    limits = SETTINGS.limits
    return join_plans(*survey(clients, table, Question(SETTINGS, files=read_outlines), NOW, lambda fact: plan_one(fact, NOW, limits)))


def main(argv: Sequence[str]) -> int:
    """Measure and print a line of a Markdown table, and JSON with --json."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tables", type=int, default=1000)
    parser.add_argument("--files", type=int, default=100_000)
    parser.add_argument("--minutes", type=int, default=10, help="between two files")
    parser.add_argument("--layout", choices=LAYOUTS, default="flat")
    parser.add_argument("--first", action="store_true", help="no file was taken yet")
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args(argv)
    shape = Shape(given.tables, given.files, given.minutes, layout=LAYOUTS[given.layout])
    aws = SyntheticAws(replace(shape, new=given.files) if given.first else shape)
    clients = aws.clients()
    gc.collect()
    collect_less()  # as the controller's script does
    before = _memory_mb()
    started = time.process_time()
    plan = plan_all(aws, clients)
    seconds = time.process_time() - started - aws.own_seconds
    waiting = sum(table.files for table in plan.tables)
    found = {
        "tables": given.tables,
        "layout": given.layout,
        "files of each": given.files,
        "files planned": waiting,
        "LIST": aws.requests["ListObjectsV2"],
        "GET": aws.requests["GetObject"],
        "keys listed": aws.listed,
        "CPU seconds": round(seconds, 1),
        "CPU seconds for 100,000 keys": round(seconds / max(1, aws.listed) * 100_000, 2),
        "memory, MB": round(_memory_mb() - before),
        "runs": len(plan.runs),
    }
    if given.json:
        print(json.dumps(found))
        return 0
    print(f"| {' | '.join(found)} |\n|{' --- |' * len(found)}")
    print(f"| {' | '.join(f'{value:,}' if isinstance(value, (int, float)) else str(value) for value in found.values())} |")
    return 0


def _memory_mb() -> float:
    """The most memory that the process ever had."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
