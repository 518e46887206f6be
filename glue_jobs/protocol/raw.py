"""The raw listing of one table."""

from __future__ import annotations

from typing import Any

from glue_jobs.aws.objects import list_files
from glue_jobs.core.limits import Limits
from glue_jobs.core.raw_names import RawListing, classify, list_after
from glue_jobs.core.snapshot import Snapshot
from glue_jobs.core.state import TableState


def list_raw(s3: Any, state: TableState, snapshot: Snapshot, limits: Limits) -> RawListing:
    """The table's raw files that a plan may look at: all load files, and CDC files from the late window on.

    The earlier of the item's and the head's cursor counts, because a person may have moved the item's.
    """
    hours = limits.late_window_hours if state.late_window_hours is None else state.late_window_hours
    raw = state.path.raw
    cursors = [_key(cursor, state) for cursor in (state.cursor, snapshot.cursor) if cursor]
    starts = [list_after(raw.key, cursor, hours) for cursor in cursors]
    start = min((text for text in starts if text), default=None) if len(starts) == 2 and all(starts) else None
    return classify(list_files(s3, raw.bucket, raw.key, start), raw.key)


def _key(cursor: str, state: TableState) -> str:
    return cursor[len(state.path.bucket) + 1 :]
