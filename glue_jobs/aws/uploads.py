"""Multipart uploads: parts first, visible later. What has all its parts is completed, which makes it an object, or aborted."""

from __future__ import annotations

import hashlib
import re
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, Callable, Literal

from botocore.exceptions import ClientError

from glue_jobs.aws.clients import Unanswered
from glue_jobs.aws.objects import bare_etag
from glue_jobs.aws.translate import RETRYABLE, error_code
from glue_jobs.aws.versions import key_versions
from glue_jobs.core.errors import RetryLater
from glue_jobs.core.record import Part, Upload

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

COMPLETE_ATTEMPTS = 5
_MD5 = re.compile(r"[0-9a-f]{32}")


@dataclass(frozen=True)
class FinishedUpload:
    """All parts are there, nothing is visible yet. etag: of the object to be, '' where it can't be known (KMS)."""

    upload: Upload
    size_bytes: int
    etag: str


@dataclass(frozen=True)
class OpenUpload:
    """An upload that was neither completed nor aborted."""

    key: str
    id: str
    started: datetime


def multipart_etag(part_etags: list[str]) -> str:
    """The ETag that S3 gives the completed object: MD5 over the parts' MD5s and their count; '' if a part's is no MD5."""
    if not all(_MD5.fullmatch(etag) for etag in part_etags):
        return ""
    digest = hashlib.md5(b"".join(map(bytes.fromhex, part_etags)), usedforsecurity=False)
    return f"{digest.hexdigest()}-{len(part_etags)}"


def complete_upload(
    s3: S3Client,
    bucket: str,
    key: str,
    upload: Upload,
    *,
    look_first: bool,
    pause: Callable[[float], None] = time.sleep,
    attempts: int = COMPLETE_ATTEMPTS,
) -> Literal["done", "gone"]:
    """Make the upload an object. 'done': the key has data, now or already, hidden or not; 'gone': there is no such upload.

    After a lost answer or a server's error it looks before it sends again, because a second completion is an error on AWS and
    a second version elsewhere. Whether data found there is ours, is for the caller to check. RetryLater if it stays unclear.
    """
    parts = [_part_request(part) for part in upload.parts]
    for attempt in range(attempts):
        if attempt:
            pause(0.2 * 2**attempt)
        if (attempt or look_first) and key_versions(s3, bucket, key).data:
            return "done"
        if attempt and not _is_open(s3, bucket, key, upload.id):
            return _after_the_end(s3, bucket, key)
        try:
            s3.complete_multipart_upload(Bucket=bucket, Key=key, UploadId=upload.id, MultipartUpload={"Parts": parts})
            return "done"
        except Unanswered:
            continue
        except ClientError as error:
            if error_code(error) == "NoSuchUpload":
                return _after_the_end(s3, bucket, key)
            if error_code(error) in RETRYABLE:
                continue
            raise
    raise RetryLater(
        f"S3 did not say whether the upload of s3://{bucket}/{key} was completed, asked {attempts} times",
        "aws-busy",
        "run again: the next run looks and goes on",
    )


def _after_the_end(s3: S3Client, bucket: str, key: str) -> Literal["done", "gone"]:
    """How an upload that is there no more has ended: looked at afterwards, or one that is completed right now would look gone."""
    return "done" if key_versions(s3, bucket, key).data else "gone"


def _is_open(s3: S3Client, bucket: str, key: str, upload_id: str) -> bool:
    """Whether S3 still has the upload."""
    try:
        s3.list_parts(Bucket=bucket, Key=key, UploadId=upload_id, MaxParts=1)
    except ClientError as error:
        if error_code(error) != "NoSuchUpload":
            raise
        return False
    return True


def has_parts(s3: S3Client, bucket: str, key: str, upload: Upload) -> bool:
    """Whether S3 has the upload with these very parts; False also if it was completed or aborted."""
    found: set[tuple[int, str]] = set()
    try:
        for page in s3.get_paginator("list_parts").paginate(Bucket=bucket, Key=key, UploadId=upload.id):
            found.update((entry["PartNumber"], bare_etag(entry["ETag"])) for entry in page.get("Parts", ()))
    except ClientError as error:
        if error_code(error) != "NoSuchUpload":
            raise
        return False
    return found == {(part.number, part.etag) for part in upload.parts}


def _part_request(part: Part) -> Any:
    request: dict[str, Any] = {"PartNumber": part.number, "ETag": f'"{part.etag}"'}
    if part.crc32:
        request["ChecksumCRC32"] = part.crc32
    return request


def abort_upload(s3: S3Client, bucket: str, key: str, upload_id: str) -> None:
    """Drop the upload's parts; fine if the upload was completed or aborted before."""
    try:
        s3.abort_multipart_upload(Bucket=bucket, Key=key, UploadId=upload_id)
    except ClientError as error:
        if error_code(error) not in ("NoSuchUpload", "404"):
            raise


def list_open_uploads(s3: S3Client, bucket: str, prefix: str) -> Iterator[OpenUpload]:
    """The open uploads of keys below `prefix`."""
    for page in s3.get_paginator("list_multipart_uploads").paginate(Bucket=bucket, Prefix=prefix):
        for entry in page.get("Uploads", ()):
            yield OpenUpload(entry["Key"], entry["UploadId"], entry["Initiated"])
