"""One job run in a process of its own, as Glue starts it, and what it says of itself: milestones, requests, memory.

    python -m benchmarks.within.run_job <what it says, a file> <the job's script> <the job's arguments …>

The parent puts the time at which it started the process into BENCH_STARTED (seconds of time.time).
"""

from __future__ import annotations

import time

BEGAN = time.time()

import json  # noqa: E402 - the first line of the process is its first milestone
import os  # noqa: E402
import sys  # noqa: E402
from collections.abc import Iterator, Sequence  # noqa: E402
from contextlib import contextmanager  # noqa: E402
from dataclasses import asdict  # noqa: E402
from importlib import import_module  # noqa: E402
from pathlib import Path  # noqa: E402
from typing import Any  # noqa: E402

from glue_jobs.aws.garbage import collect_less  # noqa: E402
from glue_jobs.spark.without_pandas import leave_out_pandas  # noqa: E402


@contextmanager
def spark_timed() -> Iterator[dict[str, float]]:
    """What the start of Spark's session is made of, in seconds; nothing if none is started."""
    from glue_jobs.spark import session

    found: dict[str, float] = {}
    start = session.spark_session

    def timed() -> Any:
        began = time.perf_counter()
        from pyspark import context
        from pyspark.sql import SparkSession  # noqa: F401 - its import belongs here

        found["imports of pyspark"] = time.perf_counter() - began
        launch = context.launch_gateway

        def launched(*words: Any) -> Any:
            before = time.perf_counter()
            try:
                return launch(*words)
            finally:
                found["start of the JVM"] = time.perf_counter() - before

        context.launch_gateway = launched
        try:
            return start()
        finally:
            context.launch_gateway = launch
            found["start of Spark's session in it"] = time.perf_counter() - began - sum(found.values())

    session.spark_session = timed
    try:
        yield found
    finally:
        session.spark_session = start


def main(argv: Sequence[str]) -> int:
    """Run it; the job's exit code."""
    says, job, *arguments = argv
    script = import_module(f"glue_jobs.{job}")
    leave_out_pandas()  # as the script does where it is not imported, before its `main` imports the rest
    collect_less()
    import_module("glue_jobs.spark.worker")
    imported = time.time()
    # After the job's own imports, or those of this module would count as the job's.
    from benchmarks.within.peak import peak_bytes
    from benchmarks.within.requests import recorded

    clock, latency = time.time() - time.perf_counter(), float(os.environ.get("BENCH_LATENCY", "0"))
    began = time.time()
    with recorded(latency) as calls, spark_timed() as spark_seconds:
        code = int(script.main(arguments, os.environ))
    ended = time.time()
    Path(says).write_text(
        json.dumps(
            {
                "code": code,
                "started": float(os.environ["BENCH_STARTED"]),
                "began": BEGAN,
                "imported": imported,
                "main": began,
                "ended": ended,
                "cpu_seconds": time.process_time(),
                "peak_bytes": peak_bytes(),
                "spark_seconds": spark_seconds,
                "calls": [{**asdict(call), "started": call.started + clock, "ended": call.ended + clock} for call in calls],
            }
        )
    )
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
