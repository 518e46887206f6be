"""Glue job Rollback: the tables in `--path` go back to an earlier change, or forth again. No Spark is started, no data passes through.

--to <change id>|previous|<ISO time>|<epoch seconds>   that change stays
--undo <change id>                                     back to its parent
--reapply <change id>|all                              bring back a change that was rolled back, or all of them
--resume true     leave the table active; otherwise it is paused
--skip true       keep the cursor: the undone raw files are left out for good
--dry_run true    only log what would be done
--from_change ID  only if that change is still the head (the command line says so of one table)

aws glue start-job-run --job-name Rollback --arguments '{"--path": "bucket/prefix/schema/table", "--to": "previous"}'
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence

from glue_jobs.core.arguments import read_flag
from glue_jobs.core.settings import Settings
from glue_jobs.core.undo import Wish
from glue_jobs.entry import run_as_script
from glue_jobs.protocol.job import Act, run_job
from glue_jobs.protocol.undo import roll_back

ALL = "all"


def read_wish(given: Mapping[str, str]) -> Wish:
    """What the job's arguments ask for; UsageError if they contradict each other."""
    reapply = given.get("reapply")
    return Wish(
        to=given.get("to", ""),
        undo=given.get("undo", ""),
        reapply="" if reapply in (ALL, "") and "reapply" in given else reapply,
        resume=read_flag(given, "resume"),
        skip=read_flag(given, "skip"),
    ).check()


def main(argv: Sequence[str], environment: Mapping[str, str] | None = None) -> int:
    """Roll back or re-apply the tables in argv; the exit code of the job."""

    def act(_: Settings, given: Mapping[str, str]) -> Act:
        return roll_back(read_wish(given), read_flag(given, "dry_run"), given.get("from_change", ""))

    own = ("to", "undo", "reapply", "resume", "skip", "dry_run", "from_change")
    return run_job("Rollback", act, argv, os.environ if environment is None else environment, own=own)


if __name__ == "__main__":
    run_as_script(main, sys.argv[1:])
