"""Server-side copies: an object's bytes into an upload that is not completed. No byte passes through us."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from botocore.exceptions import ClientError

from glue_jobs.aws.objects import bare_etag
from glue_jobs.aws.translate import ARCHIVED, error_code
from glue_jobs.aws.uploads import FinishedUpload, abort_upload, multipart_etag
from glue_jobs.aws.versions import VersionEntry
from glue_jobs.core.errors import blocked
from glue_jobs.core.record import Part, Upload

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

COPY_PART_BYTES = 1024 * 1024 * 1024  # S3 copies up to 5 GiB in one part; smaller parts of a huge file give up less when one fails
_GONE = frozenset({"NoSuchKey", "NoSuchVersion", "404", "NotFound", "MethodNotAllowed"})
_CHANGED = frozenset({"PreconditionFailed", "412"})


@dataclass(frozen=True)
class Source:
    """The object that is copied. version: None for the current one; etag: None where it is not known."""

    bucket: str
    key: str
    version: str | None
    etag: str | None


@dataclass(frozen=True)
class ObjectRange:
    """Bytes of an object, from `start` up to `stop`. read: opens those from one byte up to another, to be read a few at a time; raises
    TableBlocked where the object is not there any more as it was."""

    source: Source
    start: int
    stop: int
    read: Callable[[int, int], AbstractContextManager[Iterable[bytes]]]


def copy_part(s3: S3Client, source: Source, span: tuple[int, int] | None, target: str, upload_id: str, number: int) -> Part:
    """Copy bytes (start, stop), None for all, into a part of an upload for the key `target` of the same bucket. The upload names no
    checksum: S3 has the bytes and checks them itself, and MinIO refuses to copy a part of one that does.

    Raises ClientError or BotoCoreError: what is to be said of the object's end is for who wants its bytes.
    """
    request: dict[str, Any] = {"CopySource": {"Bucket": source.bucket, "Key": source.key}}
    if source.version is not None:
        request["CopySource"]["VersionId"] = source.version
    if source.etag is not None:
        request["CopySourceIfMatch"] = f'"{source.etag}"'
    if span is not None:
        request["CopySourceRange"] = f"bytes={span[0]}-{span[1] - 1}"
    answer = s3.upload_part_copy(Bucket=source.bucket, Key=target, UploadId=upload_id, PartNumber=number, **request)
    return Part(number, bare_etag(answer["CopyPartResult"]["ETag"]))


def copy_version(s3: S3Client, bucket: str, source: str, version: VersionEntry, target: str) -> FinishedUpload:
    """Copy a data version of the key `source` into an upload for the key `target` of the same bucket; nothing is completed.

    Raises TableBlocked, code version-gone, if the version is no more. An upload that a failure leaves is aborted.
    """
    answer = s3.create_multipart_upload(Bucket=bucket, Key=target)
    upload_id, original = answer["UploadId"], Source(bucket, source, version.version_id, version.etag)
    spans: list[tuple[int, int] | None] = [None]
    if version.size > COPY_PART_BYTES:
        spans = [(start, min(start + COPY_PART_BYTES, version.size)) for start in range(0, version.size, COPY_PART_BYTES)]
    try:
        parts = tuple(_copy_part(s3, original, span, target, upload_id, number) for number, span in enumerate(spans, 1))
    except BaseException:
        abort_upload(s3, bucket, target, upload_id)
        raise
    encrypted = str(answer.get("ServerSideEncryption", "")).startswith("aws:")
    etag = "" if encrypted else multipart_etag([part.etag for part in parts])
    return FinishedUpload(Upload(upload_id, parts), version.size, etag)


def _copy_part(s3: S3Client, version: Source, span: tuple[int, int] | None, target: str, upload_id: str, number: int) -> Part:
    """The same, where the object is a data version that is to come back."""
    try:
        return copy_part(s3, version, span, target, upload_id, number)
    except ClientError as error:
        if error_code(error) in _GONE | _CHANGED:
            raise version_gone(version.bucket, version.key, f"version {version.version}") from error
        if error_code(error) == ARCHIVED:
            raise blocked(
                "version-archived",
                "a data file can't be restored right now: a lifecycle rule moved its data version to an archive",
                where=f"s3://{version.bucket}/{version.key}",
                expected="a storage class that can be read at once",
                found=f"version {version.version}, archived",
                todo="restore the version (aws s3api restore-object), then run again; take NoncurrentVersionTransitions out of the rule",
            ) from error
        raise


def version_gone(bucket: str, key: str, expected: str, todo: str = "") -> Exception:
    """The error for a data file whose bytes S3 has no more."""
    return blocked(
        "version-gone",
        "a data file can't be restored: its data version is no more (a lifecycle rule or a person deleted it)",
        where=f"s3://{bucket}/{key}",
        expected=expected,
        found="no such version",
        todo=todo or "choose a later change: `dmslake history PATH` shows which can still be restored",
    )
