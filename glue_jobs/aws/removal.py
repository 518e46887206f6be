"""Removing data versions for good, by exact list. Nothing else in the program deletes with a version id: a test looks for it.

What is removed can't come back, so the caller (protocol/erase.py) makes sure before that the list is in a committed change record and
that no snapshot a reader may ask for needs one of them; or that they are key filters, which nobody needs.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Callable

from glue_jobs.aws.objects import bare_etag
from glue_jobs.aws.translate import ACCESS_DENIED, RETRYABLE
from glue_jobs.aws.versions import versions_of
from glue_jobs.core.erase_plan import HeldVersion
from glue_jobs.core.errors import ConfigurationError, DmslakeError, RetryLater
from glue_jobs.core.paths import is_beside_records
from glue_jobs.core.record import ErasedVersion

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

REMOVE_PAGE = 250
REMOVE_ATTEMPTS = 6
AGAIN = "then run the job Erase with --resume true, or `dmslake erase PATH --resume`: it goes on from here"


def held_versions(s3: S3Client, bucket: str, prefix: str) -> Iterator[HeldVersion]:
    """Every version below `prefix` that holds data: visible, hidden and overwritten ones, in the order of their keys."""
    for page in s3.get_paginator("list_object_versions").paginate(Bucket=bucket, Prefix=prefix):
        for entry in page.get("Versions", ()):
            yield HeldVersion(entry["Key"], entry["VersionId"], entry["Size"], bare_etag(entry["ETag"]), bool(entry["IsLatest"]))


def left_of(s3: S3Client, bucket: str, versions: Sequence[ErasedVersion]) -> tuple[tuple[ErasedVersion, bool], ...]:
    """Those of `versions` that S3 still has, each with whether it is the one that a plain GET of its key finds."""
    keys = sorted({each.key for each in versions})
    # Data files and what lies beside records apart: the folder that both are in may be more than the role may list.
    beside, files = ([key for key in keys if is_beside_records(key) == wanted] for wanted in (True, False))
    seen = {**versions_of(s3, bucket, beside), **versions_of(s3, bucket, files)}
    there = {(key, entry.version_id) for key, found in seen.items() for entry in found.data}
    visible = {(key, kept.data[0].version_id) for key, kept in seen.items() if kept.visible}
    return tuple((each, (each.key, each.version) in visible) for each in versions if (each.key, each.version) in there)


def remove_versions(
    s3: S3Client,
    bucket: str,
    versions: Sequence[ErasedVersion],
    check: Callable[[], None],
    *,
    pause: Callable[[float], None] = time.sleep,
    page_size: int = REMOVE_PAGE,
) -> None:
    """Remove each version; one that is gone already is fine. check: called before each request; what it raises ends the removal.

    S3 answers 200 with errors inside. Raises, after all pages were tried, if versions are left: ConfigurationError where access is
    denied (also by an object lock), RetryLater where S3 was busy. Some versions are gone then, some not.
    """
    failed: dict[tuple[str, str], str] = {}
    for at in range(0, len(versions), page_size):
        failed.update(_remove_page(s3, bucket, versions[at : at + page_size], check, pause))
    if failed:
        raise _not_removed(bucket, failed)


def _remove_page(
    s3: S3Client, bucket: str, page: Sequence[ErasedVersion], check: Callable[[], None], pause: Callable[[float], None]
) -> dict[tuple[str, str], str]:
    """Remove one page; the (key, version) that could not be removed, each with S3's code."""
    failed: dict[tuple[str, str], str] = {}
    left = [(each.key, each.version) for each in page]
    for attempt in range(REMOVE_ATTEMPTS):
        if attempt:
            pause(0.2 * 2**attempt)
        check()
        objects: list[Any] = [{"Key": key, "VersionId": version} for key, version in left]
        answer = s3.delete_objects(Bucket=bucket, Delete={"Objects": objects, "Quiet": True})
        errors = {(str(entry.get("Key")), str(entry.get("VersionId"))): str(entry.get("Code", "")) for entry in answer.get("Errors", ())}
        failed.update({pair: code for pair, code in errors.items() if code not in RETRYABLE and code != "NoSuchVersion"})
        left = [pair for pair in left if errors.get(pair) in RETRYABLE]
        if not left:
            return failed
    return {**failed, **{pair: errors[pair] for pair in left}}


def _not_removed(bucket: str, failed: dict[tuple[str, str], str]) -> DmslakeError:
    shown = ", ".join(f"{key} version {version} ({code})" for (key, version), code in list(failed.items())[:3])
    message = f"{len(failed)} erased version(s) in s3://{bucket} could not be removed: {shown}"
    codes = set(failed.values())
    if codes & ACCESS_DENIED:
        todo = f"allow s3:DeleteObjectVersion on the lake's prefix to the role of the job Erase, end an object lock or legal hold; {AGAIN}"
        return ConfigurationError(message, "access-denied", todo)
    if codes <= RETRYABLE:
        return RetryLater(message, "aws-busy", f"wait a little, {AGAIN}")
    return DmslakeError(message, "not-removed", f"look up the codes in S3's error list, {AGAIN}")
