"""Glue job LoadIncremental: CDC files, unfinished publish and catalog steps, and rewrites, of the tables in `--path`.

--stage true   prepare the next change of each table and commit nothing: `dmslake show | commit | discard`; the table is paused

aws glue start-job-run --job-name LoadIncremental --arguments '{"--path": "bucket/prefix/schema/table"}'
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence

from glue_jobs.core.actions import Rewrite, SyncHistory, TakeBatch, Truncate
from glue_jobs.core.arguments import read_flag
from glue_jobs.core.settings import Settings
from glue_jobs.entry import run_as_script
from glue_jobs.protocol.intake import take_with
from glue_jobs.protocol.job import Act, run_job
from glue_jobs.spark.without_pandas import leave_out_pandas


def main(argv: Sequence[str], environment: Mapping[str, str] | None = None) -> int:
    """Bring the tables in argv up to date; the exit code of the job."""
    from glue_jobs.spark.worker import SparkWorker  # not above: what it imports makes arrays, and with the first one comes pandas

    environment = os.environ if environment is None else environment

    def act(settings: Settings, given: Mapping[str, str]) -> Act:
        return take_with(SparkWorker(settings, environment), (TakeBatch, Rewrite, Truncate, SyncHistory), staging=read_flag(given, "stage"))

    return run_job("LoadIncremental", act, argv, environment, own=("stage",), side_by_side=True)


if __name__ == "__main__":
    leave_out_pandas()
    run_as_script(main, sys.argv[1:])
