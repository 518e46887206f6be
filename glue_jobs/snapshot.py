"""Glue job Snapshot: the state of every key of one table as of a run date, from its DMS files alone; no lake table is needed.

--sources FILE      the sources file (JSON or YAML; s3://…), with --table NAME, a table in it
--path, --primary_keys, --cdc_start_date, --partition_date, --schema, --timestamp_column, --last_change_column,
--csv_delimiter, --csv_null, --before_image_prefix
                    the same by arguments, with or instead of the file
--to s3://…         where the snapshots are
--run_date D        2024-05-01; today (UTC) where it is not given
--database NAME     the Glue database; `default`
--layout L          flat or dated
--keep N            keep N versions and those that the catalog points to; 0: all
--full true         from all raw files, not from the version before
--dry_run true      only log what would be read

aws glue start-job-run --job-name Snapshot --arguments '{"--sources": "s3://bucket/sources.yaml", "--table": "orders",
    "--run_date": "2024-05-01", "--to": "s3://bucket/snapshots/"}'
"""

from __future__ import annotations

import os
import secrets
import sys
from collections.abc import Mapping, Sequence
from datetime import datetime, timezone

from glue_jobs.aws.clients import Clients, make_clients
from glue_jobs.aws.translate import translated
from glue_jobs.core.arguments import check_known, parse_arguments, read_flag
from glue_jobs.core.errors import DmslakeError
from glue_jobs.core.settings import Settings, read_settings
from glue_jobs.core.snapshot_inputs import quiet_since
from glue_jobs.core.snapshot_plan import SnapshotPlan, Version
from glue_jobs.core.snapshot_sources import FIELDS, SnapshotWish, check_run_id, read_wish
from glue_jobs.protocol.job_log import JobLog
from glue_jobs.protocol.snapshot import Made, look, make_snapshot
from glue_jobs.spark.snapshot_rows import SnapshotRows
from glue_jobs.spark.sources_file import read_entry

ARGUMENTS = (*FIELDS, "sources", "table", "to", "run_date", "layout", "keep", "full", "dry_run")


def main(argv: Sequence[str], environment: Mapping[str, str] | None = None) -> int:
    """Make the snapshot that argv asks for; the exit code of the job."""
    error = run(argv, environment)
    return error.exit_code if error else 0


def run(argv: Sequence[str], environment: Mapping[str, str] | None = None, clients: Clients | None = None) -> DmslakeError | None:
    """The same; why it failed, None where it did not. The failure is in the log."""
    environment = os.environ if environment is None else environment
    log = JobLog("", _now)
    try:
        with translated():
            given = parse_arguments(argv)
            check_known(given, ARGUMENTS)
            settings = read_settings(given, environment)
            run_id = check_run_id(settings.run_id or given.get("JOB_RUN_ID") or secrets.token_hex(8))
            log = JobLog(run_id, _now, table=given.get("table", ""))
            clients = clients or make_clients(environment)
            now = _now()
            wish = read_wish(given, read_entry(clients.s3, given.get("sources", ""), given.get("table", "").strip()), now.date())
            if read_flag(given, "dry_run"):
                _tell(log, look(clients, wish, quiet_since=quiet_since(settings.limits, now)))
                return None
            settings = Settings(compression=settings.compression, limits=settings.limits, run_id=run_id)
            version, work = Version.of(wish.run_date, now, run_id), SnapshotRows(settings, environment)
            made = make_snapshot(clients, wish, version, work, quiet_since=quiet_since(settings.limits, now))
            _report(log, wish, made)
    except DmslakeError as error:
        log.event("failed", error={"code": error.code, "message": error.message, "todo": error.todo})
        return error
    return None


def _tell(log: JobLog, plan: SnapshotPlan) -> None:
    counted = plan.counted
    files = {"load_files": len(counted.loads), "cdc_files": len(counted.cdc), "other_days": counted.later, "to_read": len(plan.fresh)}
    log.event("planned", mode=plan.mode, reason=plan.reason, **files)


def _report(log: JobLog, wish: SnapshotWish, made: Made) -> None:
    manifest = made.manifest
    log.event(
        "committed",
        catalog_table=f"{wish.database}.{wish.name}",
        version=manifest.version.name,
        mode=manifest.mode,
        reason=manifest.reason,
        rows=manifest.rows,
        input_files=len(manifest.inputs),
        input_rows=manifest.counts.input_rows,
        backward=manifest.counts.backward,
        files_written=len(manifest.written),
        partitions_moved=made.partitions,
        removed=list(made.removed),
    )


def _now() -> datetime:
    return datetime.now(timezone.utc)


def _exit(error: DmslakeError | None, argv: Sequence[str]) -> None:
    """End the process, where all is well with the script. Glue shows the last line that is given to sys.exit as the run's error message."""
    if error is not None and any(word.startswith("--JOB_NAME") for word in argv):
        sys.exit(f"{error.code}: {error.message}; what to do: {error.todo}")
    if error is not None:
        sys.exit(error.exit_code)


if __name__ == "__main__":
    _exit(run(sys.argv[1:]), sys.argv[1:])
