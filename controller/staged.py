"""A table's staged changes, read from its records, its open uploads and the marks of those that were discarded. Reads only."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from glue_jobs.aws.records import list_records, read_record
from glue_jobs.core.errors import TableBlocked
from glue_jobs.core.record import ChangeRecord
from glue_jobs.core.state import TableState
from glue_jobs.protocol.converge import in_parallel
from glue_jobs.protocol.lineage import Lineage
from glue_jobs.protocol.stage import StagedChange, list_uploads, look_at


def read_staged_changes(
    s3: Any, state: TableState, lineage: Lineage | None, landed: Collection[str], after: str = ""
) -> list[StagedChange]:
    """The table's staged changes with an id greater than `after`, newest first. landed: ids whose records need not be read.

    A record that can't be read is passed over: nothing builds on one that never landed.
    """
    others = [change for change in list_records(s3, state.lake, after) if change not in landed]
    records = in_parallel(lambda change: _read_or_none(s3, state, change), others)
    return look_at_all(s3, state, lineage, [record for record in reversed(records) if record is not None and record.staged])


def _read_or_none(s3: Any, state: TableState, change: str) -> ChangeRecord | None:
    try:
        return read_record(s3, state.lake, change, with_checkpoint=False)
    except TableBlocked:
        return None


def look_at_all(s3: Any, state: TableState, lineage: Lineage | None, records: list[ChangeRecord]) -> list[StagedChange]:
    """What became of some staged changes."""
    if not records:
        return []
    lineage = lineage or Lineage(s3, state.lake, state.head)
    uploads = list_uploads(s3, state.lake)
    return [look_at(s3, state.lake, lineage, record, uploads) for record in records]
