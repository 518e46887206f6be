"""The raw listing of one table."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from botocore.exceptions import ClientError

from glue_jobs.aws.buckets import expiry_of
from glue_jobs.aws.objects import list_files
from glue_jobs.core.errors import DmslakeError
from glue_jobs.core.limits import Limits
from glue_jobs.core.paths import S3Uri
from glue_jobs.core.raw_gone import gone_text, is_left_alone, may_be_truncate, raw_gone
from glue_jobs.core.raw_names import RawListing, classify, list_after
from glue_jobs.core.snapshot import Snapshot
from glue_jobs.core.state import TRUNCATE, TableState
from glue_jobs.core.verify import NOTE, Finding


def list_raw(s3: Any, state: TableState, snapshot: Snapshot, limits: Limits) -> RawListing:
    """The table's raw files that a plan may look at: all load files, and CDC files from the late window on, or from an awaited one.

    The earlier of the item's and the head's cursor counts, because a person may have moved the item's.
    """
    if not state.has_source:
        return RawListing()
    hours = limits.late_window_hours if state.late_window_hours is None else state.late_window_hours
    raw = state.path.raw
    cursors = [_key(cursor, state) for cursor in (state.cursor, snapshot.cursor) if cursor]
    starts = [list_after(raw.key, cursor, hours) for cursor in cursors]
    start = min((text for text in starts if text), default=None) if len(starts) == 2 and all(starts) else None
    wanted = (*snapshot.generation.loads, *snapshot.awaited.values())
    if start and (any(item.key <= start for item in wanted) or _has_folders_before(s3, raw, start)):
        start = None
    listing = replace(classify(list_files(s3, raw.bucket, raw.key, start), raw.key), after=start or "")
    return _with_fate(s3, state, snapshot, listing)


def _with_fate(s3: Any, state: TableState, snapshot: Snapshot, listing: RawListing) -> RawListing:
    """The listing with what tells whether raw files that are gone were deleted. It costs requests only where that decides something."""
    raw = state.path.raw
    wants_whole = state.on_raw_files_gone == TRUNCATE and bool(listing.after) and is_left_alone(snapshot, listing)
    if wants_whole:
        listing = classify(list_files(s3, raw.bucket, raw.key), raw.key)
    if not may_be_truncate(state, snapshot, raw_gone(snapshot, listing)):
        return listing
    return replace(listing, expiry=expiry_of(s3, raw.bucket, raw.key))


def raw_notes(s3: Any, state: TableState, snapshot: Snapshot, limits: Limits) -> list[Finding]:
    """Notes on raw files that are gone since they were applied. What can't be looked at is said."""
    where = f"s3://{state.path}"
    try:
        text = gone_text(state, snapshot, list_raw(s3, state, snapshot, limits))
    except (ClientError, DmslakeError) as error:
        return [Finding("raw-unchecked", NOTE, where, "", f"the raw files could not be listed: {error}")]
    return [Finding("raw-files-gone", NOTE, where, "the raw files that were applied", text)] if text else []


def _key(cursor: str, state: TableState) -> str:
    return cursor[len(state.path.bucket) + 1 :]


def _has_folders_before(s3: Any, raw: S3Uri, start: str) -> bool:
    """Whether new files may stand in folders that sort before `start` (`…/yyyymmdd`): four requests, however many files there are.

    A DMS task can be changed to write folders by date: `2024/05/01/` and `2024-05-01/` sort before all files of 2024, `202405/`
    before those of its month; month or day first, and the numbers of a parallel load, sort before any file that begins with a year.
    """
    day = start[len(raw.key) :]
    first = s3.list_objects_v2(Bucket=raw.bucket, Prefix=raw.key, StartAfter=raw.key, MaxKeys=1).get("Contents", [])
    if any("/" in entry["Key"][len(raw.key) :] for entry in first):
        return True
    folders = (f"{day[:4]}/", f"{day[:4]}-", f"{day[:6]}/")
    return any(s3.list_objects_v2(Bucket=raw.bucket, Prefix=raw.key + name, MaxKeys=1).get("KeyCount") for name in folders)
