"""Glue job LoadIncremental: CDC files, unfinished publish and catalog steps, and rewrites, of the tables in `--path`.

aws glue start-job-run --job-name LoadIncremental --arguments '{"--path": "bucket/prefix/schema/table"}'
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence

from glue_jobs.core.intake import Rewrite, TakeBatch
from glue_jobs.entry import exit_as_glue_wants
from glue_jobs.protocol.intake import take_with
from glue_jobs.protocol.job import run_job
from glue_jobs.spark.worker import SparkWorker


def main(argv: Sequence[str], environment: Mapping[str, str] | None = None) -> int:
    """Bring the tables in argv up to date; the exit code of the job."""
    environment = os.environ if environment is None else environment
    takes = (TakeBatch, Rewrite)
    return run_job("LoadIncremental", lambda settings, _: take_with(SparkWorker(settings, environment), takes), argv, environment)


if __name__ == "__main__":
    exit_as_glue_wants(main(sys.argv[1:]), sys.argv[1:])
