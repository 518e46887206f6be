"""Glue job Erase: rows of given keys go, and every data version that still holds one is removed for good. Its role alone may do that.

--erase_keys s3://…  Parquet or CSV with the key's columns, or a folder of Parquet
--key a,b         the columns by which rows are found; else the primary key
--from_change ID  only if that change is still the head
--shown DIGEST    only if the keys and the list of versions are still those that were shown (`dmslake erase` gives both)
--dry_run true    only log what would be done
--resume true     remove what an earlier erase left; no keys are given then

aws glue start-job-run --job-name Erase --arguments '{"--path": "bucket/prefix/schema/table", "--erase_keys": "s3://bucket/keys.csv"}'
"""

from __future__ import annotations

import os
import secrets
import sys
from collections.abc import Mapping, Sequence

from glue_jobs.core.arguments import read_flag
from glue_jobs.core.errors import UsageError
from glue_jobs.core.given import split_key
from glue_jobs.core.settings import Settings
from glue_jobs.entry import run_as_script
from glue_jobs.protocol.erase import erase, resume
from glue_jobs.protocol.job import Act, run_job
from glue_jobs.spark.erase_rows import RowEraser


def main(argv: Sequence[str], environment: Mapping[str, str] | None = None) -> int:
    """Erase from the table in argv; the exit code of the job."""
    variables = os.environ if environment is None else environment

    def act(settings: Settings, given: Mapping[str, str]) -> Act:
        keys = given.get("erase_keys", "").strip()
        if read_flag(given, "resume"):
            if keys:
                raise UsageError("--resume takes no keys", "bad-argument", "an erase that was begun knows its list; leave out --erase_keys")
            return resume()
        if not keys:
            raise UsageError("no keys are given", "bad-argument", "give --erase_keys FILE, or --resume true to end an erase that was begun")
        if len(settings.paths) != 1:
            raise UsageError("keys are of one table", "bad-argument", "give one table in --path")
        eraser = RowEraser(settings, variables, keys, split_key(given.get("key", "")))
        shown, from_change = given.get("shown", ""), given.get("from_change", "")
        return erase(eraser, secrets.token_hex(16), from_change=from_change, shown=shown, dry_run=read_flag(given, "dry_run"))

    return run_job("Erase", act, argv, variables, own=("erase_keys", "key", "from_change", "shown", "dry_run", "resume"))


if __name__ == "__main__":
    run_as_script(main, sys.argv[1:])
