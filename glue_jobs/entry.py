"""How an entry script runs its job, and ends, under Glue and elsewhere."""

from __future__ import annotations

import gc
import sys
from collections.abc import Sequence
from typing import Callable, NoReturn

LEASE_HELD = 4
# Python's own are (700, 10, 10): a small batch was interrupted 300 times.
COLLECTED_AT = (50_000, 20, 100)


def run_as_script(main: Callable[[Sequence[str]], int], argv: Sequence[str]) -> NoReturn:
    """Run a job that has this process to itself, and end the process as its exit code says."""
    collect_less()
    exit_as_glue_wants(main(argv), argv)


def collect_less() -> None:
    """Let the garbage collector look at what is imported no more, and less often at the rest; for a process of our own.

    Modules and botocore's models stay to the end, but it walked through them again and again: a sixth of a small batch's time.
    """
    gc.freeze()
    gc.set_threshold(*COLLECTED_AT)


def exit_as_glue_wants(code: int, argv: Sequence[str]) -> NoReturn:
    """End the process. Under Glue (it passes --JOB_NAME) a held lease is no failure: a FAILED run would raise alarms."""
    under_glue = any(word.startswith("--JOB_NAME") for word in argv)
    if not under_glue:
        _stop_spark()
    sys.exit(0 if code == LEASE_HELD and under_glue else code)


def _stop_spark() -> None:
    """Say good-bye to the cluster: an application that just ends is told of as killed. Nothing is imported where no Spark was started."""
    pyspark = sys.modules.get("pyspark")
    context = pyspark.SparkContext._active_spark_context if pyspark else None
    if context is not None:
        context.stop()
