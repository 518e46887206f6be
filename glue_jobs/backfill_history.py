"""Glue job BackfillHistory: the history tables of the tables in `--path` are built anew from the raw files, as one change of each.

Every raw file that was applied is read again, with the rows that persons gave. The lake table itself stays as it is. If a raw file is
gone, the history goes back only to the load after it; if one since the last load is gone, nothing is changed.

--dry_run true    only log what would be done

aws glue start-job-run --job-name BackfillHistory --arguments '{"--path": "bucket/prefix/schema/table"}'
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence

from glue_jobs.core.arguments import read_flag
from glue_jobs.core.settings import Settings
from glue_jobs.entry import run_as_script
from glue_jobs.protocol.backfill import backfill_with
from glue_jobs.protocol.job import Act, run_job
from glue_jobs.spark.backfill import HistoryBuilder


def main(argv: Sequence[str], environment: Mapping[str, str] | None = None) -> int:
    """Build the histories of the tables in argv anew; the exit code of the job."""
    variables = os.environ if environment is None else environment

    def act(settings: Settings, given: Mapping[str, str]) -> Act:
        return backfill_with(HistoryBuilder(settings, variables), read_flag(given, "dry_run"))

    return run_job("BackfillHistory", act, argv, variables, own=("dry_run",))


if __name__ == "__main__":
    run_as_script(main, sys.argv[1:])
