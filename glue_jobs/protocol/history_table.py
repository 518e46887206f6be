"""The history table's part in a change: its record, uploads and files stand in a folder of their own and share the lake table's commit.

    work → the history's record → the change's record → commit → converge of both folders → catalog of both

The history's record is written before the change's, which names it. If we die …   then
  after the history's record, before the commit                                    a record nobody points to
  after the commit                                                                 the change counts, for both folders: `Publishing` tells
                                                                                   the next run to complete both, then to hide in both
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from glue_jobs.aws.objects import list_files
from glue_jobs.aws.records import list_records, read_hidden_record, read_record
from glue_jobs.core.erasure import Erased
from glue_jobs.core.errors import UsageError, blocked
from glue_jobs.core.history_table import history_lake, is_changed_by
from glue_jobs.core.paths import S3Uri
from glue_jobs.core.record import ChangeRecord, DataFile, HistoryAt, Upload
from glue_jobs.core.snapshot import Snapshot
from glue_jobs.core.undo import root
from glue_jobs.core.work import HistoryWork
from glue_jobs.protocol.converge import Folder, abort_uploads
from glue_jobs.protocol.history import read_snapshot
from glue_jobs.protocol.restore import Source, copy_files, find_sources


def folders_beside(s3: Any, lake: S3Uri, record: ChangeRecord) -> tuple[Folder, ...]:
    """The history's folder with what the change does there; nothing where it does nothing."""
    change = is_changed_by(record)
    if not change:
        return ()
    beside = history_lake(lake)
    return (Folder(beside, read_record(s3, beside, change)),)


def uploads_of(s3: Any, lake: S3Uri, record: ChangeRecord) -> list[tuple[str, Upload]]:
    """(key, upload) of all that a change uploads, in both folders."""
    folders = (Folder(lake, record), *folders_beside(s3, lake, record))
    return [(folder.lake.key + file.path, file.upload) for folder in folders for file in folder.record.added if file.upload]


def abort_change(s3: Any, lake: S3Uri, record: ChangeRecord) -> None:
    """Drop all that a change uploaded and never completed."""
    for folder in (Folder(lake, record), *folders_beside(s3, lake, record)):
        abort_uploads(s3, folder.lake, folder.record.added)


def snapshot_at(s3: Any, lake: S3Uri, snapshot: Snapshot) -> Snapshot:
    """The history table's snapshot that belongs to one of the lake table's; the empty one where there is none."""
    return read_snapshot(s3, history_lake(lake), snapshot.history.change) if snapshot.history is not None else Snapshot()


def history_at(s3: Any, lake: S3Uri, snapshot: Snapshot) -> Snapshot:
    """The same for somebody who wants to read it; UsageError where there is none."""
    if snapshot.history is None:
        raise UsageError(
            f"the table at {lake} has no history table" + (f" as of change {snapshot.change}" if snapshot.change else ""),
            "no-history",
            "set the attribute History of the table's item to 'true': the next run begins it",
        )
    return snapshot_at(s3, lake, snapshot)


def has_history(s3: Any, lake: S3Uri, path: str) -> bool:
    """Whether the table ever had a history table, also one that an undo took back or a purge hid."""
    folder = history_lake(lake)
    last = next(iter(_newest(s3, folder)), None) or read_hidden_record(s3, folder)
    return last is not None and last.table == path


def check_free(s3: Any, lake: S3Uri, path: str) -> None:
    """Refuse to begin a history where something else is: a folder with objects, or records of another table."""
    folder = history_lake(lake)
    found = next(iter(list_files(s3, folder.bucket, folder.key)), None)
    of_others = next((record.table for record in _newest(s3, folder) if record.table != path), "")
    if found is None and not of_others:
        return
    raise blocked(
        "history-folder-taken",
        "the folder of the history table is not empty",
        where=str(folder),
        expected="no object: the history table is written there",
        found=f"the table {of_others}" if of_others else f"s3://{folder.bucket}/{found.key if found else ''}",
        todo="set the attribute History to 'false', or move what is there",
    )


def _newest(s3: Any, folder: S3Uri) -> list[ChangeRecord]:
    changes = sorted(list_records(s3, folder))[-1:]
    return [read_record(s3, folder, change, with_checkpoint=False) for change in changes]


# --- going back


def unhistory(s3: Any, lake: S3Uri, lost: ChangeRecord, before: Snapshot) -> HistoryWork | None:
    """What taking back `lost`, whose uploads are gone, does to the history table: its files of `before` are all still visible."""
    change = is_changed_by(lost)
    if not change:
        return None
    record = read_record(s3, history_lake(lake), change)
    history = snapshot_at(s3, lake, before)
    back = set(record.superseded) & set(history.files)
    return HistoryWork(
        schema=history.schema or record.schema,
        primary_key=history.primary_key or record.primary_key,
        added=tuple(file for path, file in history.files.items() if path in back),
        superseded=tuple(file.path for file in record.added),
        target=history.change,
        is_stale=before.history is None or before.history.is_stale,
    )


@dataclass(frozen=True)
class HistoryUndo:
    """How the history table goes from the head's files to the goal's. at: where it stands afterwards if no file changes."""

    head: Snapshot = Snapshot()
    goal: Snapshot = Snapshot()
    restored: tuple[DataFile, ...] = ()
    superseded: tuple[str, ...] = ()
    sources: Mapping[str, Source] = field(default_factory=dict)
    gone: tuple[DataFile, ...] = ()
    at: HistoryAt | None = None
    is_stale: bool = False

    def work(self, s3: Any, lake: S3Uri, change: str) -> HistoryWork | None:
        """What the change does there: files are copied now, and become visible after the commit. None if no file differs."""
        if not self.restored and not self.superseded:
            return None
        like = self.head if self.goal.is_empty else self.goal
        return HistoryWork(
            schema=like.schema,
            primary_key=like.primary_key,
            added=copy_files(s3, history_lake(lake), self.restored, self.sources, change),
            superseded=self.superseded,
            target=self.goal.change,
            is_stale=self.is_stale,
        )


def plan_history_undo(s3: Any, lake: S3Uri, head: Snapshot, goal: Snapshot, erased: Erased) -> HistoryUndo:
    """What going from `head` to `goal` means for the history table. Reads only."""
    if head.history is None and goal.history is None:
        return HistoryUndo()
    now, then = snapshot_at(s3, lake, head), snapshot_at(s3, lake, goal)
    roots, wanted = ({root(file) for file in each.files.values()} for each in (now, then))
    restored = tuple(file for _, file in sorted(then.files.items()) if root(file) not in roots)
    sources, gone = find_sources(s3, history_lake(lake), restored, erased)
    stale = goal.history is None or goal.history.is_stale
    return HistoryUndo(
        head=now,
        goal=then,
        restored=restored,
        superseded=tuple(sorted(path for path, file in now.files.items() if root(file) not in wanted)),
        sources=sources,
        gone=gone,
        at=HistoryAt(now.change, stale) if now.change else goal.history,
        is_stale=stale,
    )
