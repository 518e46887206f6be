"""converge: the one place that changes what readers see. It makes the folder equal to a change's snapshot.

It works by the exact keys in the record: complete the uploads of the added files, check them, then hide the superseded ones.
It is correct when half done, done twice, or done by two at once, because a key never comes back after it was hidden.

If we die after …                     the folder has …                                   who finishes
  some uploads completed              some new files beside all old ones (doubled rows)   the next run: Publishing still stands
  all completed, some hidden          the rest of the old ones                            the same
  all hidden                          the snapshot                                        the same finds nothing left to do
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Callable, TypeVar

from glue_jobs.aws.objects import hide
from glue_jobs.aws.uploads import abort_upload, complete_upload
from glue_jobs.aws.versions import KeyVersions, versions_of
from glue_jobs.core.errors import DmslakeError, blocked
from glue_jobs.core.paths import S3Uri
from glue_jobs.core.record import ChangeRecord, DataFile

THREADS = 32
_T = TypeVar("_T")
_R = TypeVar("_R")


class UploadsGone(DmslakeError):
    """Uploads of a committed change no longer exist (a lifecycle rule aborts old ones): the change can't be published."""


def in_parallel(work: Callable[[_T], _R], items: Iterable[_T], threads: int = THREADS) -> list[_R]:
    """`work` on every item, in their order. All of them end before the first error is raised."""
    with ThreadPoolExecutor(threads) as pool:
        futures = [pool.submit(work, item) for item in items]
    return [future.result() for future in futures]


@dataclass(frozen=True)
class Folder:
    """A folder of data files and the record of what a change does there."""

    lake: S3Uri
    record: ChangeRecord


def converge(s3: Any, lake: S3Uri, record: ChangeRecord, *, redo: bool, beside: Sequence[Folder] = ()) -> None:
    """Make the folder equal to the snapshot of `record`, the head. redo: a step may have been done before, so look first.

    beside: folders that the same change changes. Raises UploadsGone, before anything is hidden in any of them, if an added file can't
    be made visible.
    """
    folders = (Folder(lake, record), *beside)
    gone = [path for folder in folders for path in _complete_all(s3, folder.lake, folder.record, redo)]
    if gone:
        raise UploadsGone(f"{len(gone)} uploads of change {record.id} are gone, first {gone[0]}", "uploads-gone")
    for folder in folders:
        _hide_superseded(s3, folder, redo)


def _hide_superseded(s3: Any, folder: Folder, redo: bool) -> None:
    lake = folder.lake
    keys = [lake.key + path for path in folder.record.superseded]
    if redo:
        seen = versions_of(s3, lake.bucket, keys)
        keys = [key for key in keys if seen[key].visible]
    if keys:
        hide(s3, lake.bucket, keys)


def _complete_all(s3: Any, lake: S3Uri, record: ChangeRecord, redo: bool) -> list[str]:
    """Complete the uploads of the added files, and check what was there before; the paths of those whose upload is gone."""
    files = [file for file in record.added if file.upload is not None]
    open_files = files
    if redo:
        seen = versions_of(s3, lake.bucket, [lake.key + file.path for file in files])
        open_files = [file for file in files if not seen[lake.key + file.path].data]
    ends = in_parallel(lambda file: _complete(s3, lake, file, redo), open_files)
    if redo:
        seen = versions_of(s3, lake.bucket, [lake.key + file.path for file in files])
        for file in files:
            _check_data(lake, file, seen[lake.key + file.path])
    return [file.path for file, end in zip(open_files, ends) if end == "gone"]


def _complete(s3: Any, lake: S3Uri, file: DataFile, redo: bool) -> str:
    assert file.upload is not None
    return complete_upload(s3, lake.bucket, lake.key + file.path, file.upload, look_first=redo)


def _check_data(lake: S3Uri, file: DataFile, versions: KeyVersions) -> None:
    """Refuse a key whose data is not what the record says: somebody else wrote to it."""
    for version in versions.data:
        if version.size != file.size_bytes or (file.etag and version.etag != file.etag):
            raise blocked(
                "foreign-write",
                "somebody else wrote to a data file's key",
                where=f"s3://{lake.bucket}/{lake.key}{file.path}",
                expected=f"{file.size_bytes} bytes, ETag {file.etag or 'any'}",
                found=f"{version.size} bytes, ETag {version.etag}, version {version.version_id}",
                todo="find out who writes into the lake's folder; then remove that version, `aws s3api delete-object --bucket"
                f" {shlex.quote(lake.bucket)} --key {shlex.quote(lake.key + file.path)} --version-id {shlex.quote(version.version_id)}`"
                " (in the stack's bucket take the statement OnlyEraseDeletesVersions out of the bucket's policy first, and put it back"
                " afterwards), and `dmslake unblock PATH`",
            )


def abort_uploads(s3: Any, lake: S3Uri, files: Iterable[DataFile]) -> None:
    """Drop what a change uploaded and never completed: by upload id, never by deleting a key."""
    in_parallel(
        lambda file: abort_upload(s3, lake.bucket, lake.key + file.path, file.upload.id) if file.upload else None,
        files,
    )
