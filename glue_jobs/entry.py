"""How an entry script runs its job, and ends, under Glue and elsewhere."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Callable

from glue_jobs.aws.garbage import collect_less

LEASE_HELD = 4


def run_as_script(main: Callable[[Sequence[str]], int], argv: Sequence[str]) -> None:
    """Run a job that has this process to itself, its imports done, and end the process as its exit code says."""
    collect_less()
    exit_as_glue_wants(main(argv), argv)


def exit_as_glue_wants(code: int, argv: Sequence[str]) -> None:
    """End the process. Under Glue (it passes --JOB_NAME) a held lease is no failure: a FAILED run would raise alarms. What is no failure
    ends there with the script: Glue runs it in a process of its own, to which an exit is an exception, whatever its code."""
    under_glue = any(word.startswith("--JOB_NAME") for word in argv)
    if not under_glue:
        _stop_spark()
    if not under_glue or code not in (0, LEASE_HELD):
        sys.exit(code)


def _stop_spark() -> None:
    """Say good-bye to the cluster: an application that just ends is told of as killed. Nothing is imported where no Spark was started."""
    pyspark = sys.modules.get("pyspark")
    context = pyspark.SparkContext._active_spark_context if pyspark else None
    if context is not None:
        context.stop()
