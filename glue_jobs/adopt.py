"""Glue job Adopt: the folders of the tables in `--path`, which another program wrote, become their first change as they are. The files'
footers and key columns are read, nothing is rewritten, no Spark is started.

--primary_key A,B       the key's columns; as the item's PrimaryKey says if it is not given
--partition_key C       as PartitionKey: column, year(column) as NAME, …
--columns JSON          types of partition columns, which stand in folder names only: {"region": "string"}
--cursor NAME           the last CDC file that the table has; 0.parquet for none
--load_date TIME        the time of the newest load file that the table has (UTC)
--dry_run true          only log what would be done

aws glue start-job-run --job-name Adopt --arguments '{"--path": "bucket/prefix/schema/table", "--dry_run": "true"}'
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence

from glue_jobs.core.adoption import read_wish
from glue_jobs.core.arguments import read_flag
from glue_jobs.core.settings import Settings
from glue_jobs.entry import run_as_script
from glue_jobs.protocol.adopt import adopt_with
from glue_jobs.protocol.job import Act, run_job
from glue_jobs.spark.adopt_files import AdoptReader


def main(argv: Sequence[str], environment: Mapping[str, str] | None = None) -> int:
    """Adopt the tables in argv; the exit code of the job."""

    def act(_: Settings, given: Mapping[str, str]) -> Act:
        return adopt_with(AdoptReader(), read_wish(given), read_flag(given, "dry_run"))

    own = ("primary_key", "partition_key", "columns", "cursor", "load_date", "dry_run")
    return run_job("Adopt", act, argv, os.environ if environment is None else environment, own=own)


if __name__ == "__main__":
    run_as_script(main, sys.argv[1:])
