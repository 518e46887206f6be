"""What S3 keeps of a table beside what readers see, and how far back one can still go. Reads only: a listing of all versions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from botocore.exceptions import ClientError

from glue_jobs.aws.buckets import noncurrent_days
from glue_jobs.aws.erased import read_erased
from glue_jobs.aws.removal import held_versions
from glue_jobs.aws.translate import ACCESS_DENIED, error_code
from glue_jobs.core.history_table import history_lake
from glue_jobs.core.paths import S3Uri
from glue_jobs.core.snapshot import Snapshot
from glue_jobs.protocol.lineage import Lineage
from glue_jobs.protocol.undo import oldest_restorable


@dataclass(frozen=True)
class Storage:
    """noncurrent_…: data versions that no plain reader gets: of superseded and overwritten files, the history table's included.

    kept_days: for how long the bucket's rule keeps them at least, None for good or, with `kept_known` False, not known. oldest_…: the
    oldest change whose state can still be gone back to, with its time (ISO 8601, UTC); '' where there is none before the head.
    """

    noncurrent_files: int = 0
    noncurrent_bytes: int = 0
    kept_days: int | None = None
    kept_known: bool = True
    oldest_change: str = ""
    oldest_time: str = ""


def read_storage(s3: Any, lake: S3Uri, head: Snapshot) -> Storage:
    """The storage of a table whose head's snapshot is `head`; a table without a head has none."""
    if not head.change:
        return Storage()
    folders = (lake, *([history_lake(lake)] if head.history is not None else []))
    hidden = [each.size_bytes for folder in folders for each in held_versions(s3, folder.bucket, folder.key) if not each.visible]
    days, known = _kept(s3, lake)
    change, time = _oldest(s3, lake, head)
    return Storage(len(hidden), sum(hidden), days, known, change, time)


def _kept(s3: Any, lake: S3Uri) -> tuple[int | None, bool]:
    try:
        return noncurrent_days(s3, lake.bucket, lake.key), True
    except ClientError as error:
        if error_code(error) in ACCESS_DENIED:
            return None, False
        raise


def _oldest(s3: Any, lake: S3Uri, head: Snapshot) -> tuple[str, str]:
    """The oldest restorable change before the head, and its time. One that was lost before it was published never was a state."""
    records = list(Lineage(s3, lake, head.change).back())
    lost = {record.lost for record in records}
    times = {record.id: record.time for record in records if record.id not in lost}
    oldest = oldest_restorable(s3, lake, head, [change for change in times if change != head.change], read_erased(s3, lake, head.erases))
    return oldest, times.get(oldest, "")
