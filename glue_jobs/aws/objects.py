"""Objects in S3: list, read, write, look at versions, hide. Each function does one thing and says what it found."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, Callable

from botocore.exceptions import ClientError, HTTPClientError, IncompleteReadError

from glue_jobs.aws.quick_gets import get_object
from glue_jobs.aws.translate import ACCESS_DENIED, RETRYABLE, error_code
from glue_jobs.core.errors import ConfigurationError, DmslakeError, RetryLater, TableBlocked, blocked
from glue_jobs.core.raw_names import RawFile

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

READ_ATTEMPTS = 4
HIDE_PAGE_KEYS = 250
HIDE_THREADS = 4
HIDE_ATTEMPTS = 6
_GONE = frozenset({"NoSuchKey", "NoSuchVersion", "404", "NotFound", "MethodNotAllowed"})
_CHANGED = frozenset({"PreconditionFailed", "412"})
_SHORTER = frozenset({"InvalidRange", "416"})


def list_files(s3: S3Client, bucket: str, prefix: str, start_after: str | None = None) -> Iterator[RawFile]:
    """The objects below `prefix` in the order of their keys; with `start_after` only those whose key is greater."""
    options: dict[str, Any] = {"StartAfter": start_after} if start_after else {}
    for page in s3.get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=prefix, **options):
        for entry in page.get("Contents", ()):
            yield RawFile(entry["Key"], entry["Size"], bare_etag(entry["ETag"]), entry["LastModified"])


def read_bytes(
    s3: S3Client,
    bucket: str,
    key: str,
    version: str | None = None,
    start: int | None = None,
    stop: int | None = None,
    etag: str | None = None,
) -> bytes:
    """The object's bytes from `start` up to but without `stop`. A body that breaks off is asked for again.

    With `etag`, an object that is not that one any more raises TableBlocked (raw-file-changed); a missing one raw-file-gone.
    """
    request = {"Bucket": bucket, "Key": key}
    if version:
        request["VersionId"] = version
    if etag:
        request["IfMatch"] = f'"{etag}"'
    if start is not None or stop is not None:
        if stop is not None and stop <= (start or 0):
            return b""
        request["Range"] = f"bytes={start or 0}-{'' if stop is None else stop - 1}"
    for attempt in range(READ_ATTEMPTS):
        try:
            return get_object(s3, request).read()
        except ClientError as error:
            raise _unreadable(error, bucket, key, etag) from error
        except (HTTPClientError, IncompleteReadError):
            # botocore retries the request, but not the body that follows the answer.
            if attempt == READ_ATTEMPTS - 1:
                raise
    raise AssertionError("unreachable")


def _unreadable(error: ClientError, bucket: str, key: str, etag: str | None) -> Exception:
    """What a refused GET means."""
    where = f"s3://{bucket}/{key}"
    if error_code(error) in _GONE:
        return file_gone(where)
    if error_code(error) in _CHANGED:
        return file_changed(where, expected=f"ETag {etag}", found="another ETag")
    if error_code(error) in _SHORTER:
        return file_changed(where, expected="the size it was listed with", found="an object that ends before the range asked for")
    return error


def file_gone(where: str) -> TableBlocked:
    return blocked(
        "raw-file-gone",
        "a file is not there any more",
        where=where,
        expected="the object as it was listed",
        found="no such object",
        todo="put the file back as it was, or reload the table in DMS, then run again",
    )


def file_changed(where: str, expected: str, found: str) -> TableBlocked:
    return blocked(
        "raw-file-changed",
        "a file is not what it was when it was listed",
        where=where,
        expected=expected,
        found=found,
        todo="find out who writes there; run again, or reload the table in DMS",
    )


def write_bytes(s3: S3Client, bucket: str, key: str, data: bytes, content_type: str = "application/octet-stream") -> None:
    """Put the object; one request."""
    s3.put_object(Bucket=bucket, Key=key, Body=data, ContentType=content_type)


def hide(
    s3: S3Client,
    bucket: str,
    keys: Sequence[str],
    *,
    pause: Callable[[float], None] = time.sleep,
    attempts: int = HIDE_ATTEMPTS,
) -> None:
    """Put a delete marker on each key; their versions stay. Repeatable: a hidden key stays hidden.

    S3 answers 200 with errors inside: such keys are tried again with `pause` between. Raises, after all pages were tried, if
    keys are left: ConfigurationError where access is denied, RetryLater where S3 was busy. Some keys are hidden then, some not.
    """
    pages = [keys[at : at + HIDE_PAGE_KEYS] for at in range(0, len(keys), HIDE_PAGE_KEYS)]
    if not pages:
        return
    with ThreadPoolExecutor(min(HIDE_THREADS, len(pages))) as pool:
        futures = [pool.submit(_hide_page, s3, bucket, page, pause, attempts) for page in pages]
    failed = {key: code for future in futures for key, code in future.result().items()}
    if failed:
        raise _not_hidden(bucket, failed)


def _hide_page(s3: S3Client, bucket: str, keys: Sequence[str], pause: Callable[[float], None], attempts: int) -> dict[str, str]:
    """Hide one page; the keys that could not be hidden, each with S3's code."""
    failed: dict[str, str] = {}
    left = list(keys)
    for attempt in range(attempts):
        if attempt:
            pause(0.2 * 2**attempt)
        answer = s3.delete_objects(Bucket=bucket, Delete={"Objects": [{"Key": key} for key in left], "Quiet": True})
        errors = {str(entry.get("Key", "")): str(entry.get("Code", "")) for entry in answer.get("Errors", ())}
        failed.update({key: code for key, code in errors.items() if code not in RETRYABLE})
        left = [key for key in left if errors.get(key) in RETRYABLE]
        if not left:
            return failed
    return {**failed, **{key: errors[key] for key in left}}


def _not_hidden(bucket: str, failed: dict[str, str]) -> DmslakeError:
    shown = ", ".join(f"{key} ({code})" for key, code in list(failed.items())[:3])
    message = f"{len(failed)} superseded files in s3://{bucket} could not be hidden: {shown}"
    codes = set(failed.values())
    if codes & ACCESS_DENIED:
        return ConfigurationError(message, "access-denied", "allow s3:DeleteObject on the lake's prefix; the next run goes on from here")
    if codes <= RETRYABLE:
        return RetryLater(message, "aws-busy", "run again: hiding goes on where it stopped")
    return DmslakeError(message, "not-hidden", "look up the codes in S3's error list; the next run goes on from here")


def bare_etag(etag: str) -> str:
    """The ETag without its quotes, as listings, records and conditions here have it."""
    return etag.strip('"')
