"""converge: the one place that changes what readers see. It makes the folder equal to a change's snapshot.

It works by the exact keys in the record: complete the uploads of the added files, check them, then hide the superseded ones.
It is correct when half done, done twice, or done by two at once, because a key never comes back after it was hidden.

If we die after …                     the folder has …                                   who finishes
  some uploads completed              some new files beside all old ones (doubled rows)   the next run: Publishing still stands
  all completed, some hidden          the rest of the old ones                            the same
  all hidden                          the snapshot                                        the same finds nothing left to do
"""

from __future__ import annotations

from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Callable, TypeVar

from glue_jobs.aws.objects import hide, key_versions
from glue_jobs.aws.uploads import abort_upload, complete_upload
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


def converge(s3: Any, lake: S3Uri, record: ChangeRecord, *, redo: bool) -> None:
    """Make the folder equal to the snapshot of `record`, the head. redo: a step may have been done before, so look first.

    Raises UploadsGone, before anything is hidden, if an added file can't be made visible.
    """
    gone = [path for path in in_parallel(lambda file: _complete(s3, lake, file, redo), record.added) if path]
    if gone:
        raise UploadsGone(f"{len(gone)} uploads of change {record.id} are gone, first {gone[0]}", "uploads-gone")
    keys = [lake.key + path for path in record.superseded]
    if redo:
        seen = in_parallel(lambda key: key_versions(s3, lake.bucket, key).visible, keys)
        keys = [key for key, visible in zip(keys, seen) if visible]
    if keys:
        hide(s3, lake.bucket, keys)


def _complete(s3: Any, lake: S3Uri, file: DataFile, redo: bool) -> str:
    """Complete one added file; its path if its upload is gone, else ''."""
    key = lake.key + file.path
    if file.upload is None:
        return ""
    if complete_upload(s3, lake.bucket, key, file.upload, look_first=redo) == "gone":
        return file.path
    if redo:
        _check_data(s3, lake, file)
    return ""


def _check_data(s3: Any, lake: S3Uri, file: DataFile) -> None:
    """Refuse a key whose data is not what the record says: somebody else wrote to it."""
    for version in key_versions(s3, lake.bucket, lake.key + file.path).data:
        if version.size != file.size_bytes or (file.etag and version.etag != file.etag):
            raise blocked(
                "foreign-write",
                "somebody else wrote to a data file's key",
                where=f"s3://{lake.bucket}/{lake.key}{file.path}",
                expected=f"{file.size_bytes} bytes, ETag {file.etag or 'any'}",
                found=f"{version.size} bytes, ETag {version.etag}, version {version.version_id}",
                todo="find out who writes into the lake's folder, then `dmslake unblock PATH`",
            )


def abort_uploads(s3: Any, lake: S3Uri, files: Iterable[DataFile]) -> None:
    """Drop what a change uploaded and never completed: by upload id, never by deleting a key."""
    in_parallel(
        lambda file: abort_upload(s3, lake.bucket, lake.key + file.path, file.upload.id) if file.upload else None,
        files,
    )
