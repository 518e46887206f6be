"""Listings that pass over keys: page by page, so that what is known to be old is not asked for."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Callable

from glue_jobs.aws.objects import bare_etag
from glue_jobs.core.raw_names import RawFile

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

BEHIND_NAMES = "~"  # greater than every character of the names that DMS gives


def list_passing(
    s3: S3Client, bucket: str, prefix: str, next_after: Callable[[str], str | None]
) -> tuple[list[RawFile], list[tuple[str, str]]]:
    """(the objects below `prefix` in the order of their keys, the gaps): all of `iter_passing` at once."""
    gaps: list[tuple[str, str]] = []
    return list(iter_passing(s3, bucket, prefix, next_after, gaps)), gaps


def iter_passing(
    s3: S3Client, bucket: str, prefix: str, next_after: Callable[[str], str | None], gaps: list[tuple[str, str]]
) -> Iterator[RawFile]:
    """The objects below `prefix` in the order of their keys, page by page. next_after: given the last key of a page, the key after which
    to go on, None for the next page; from the one to the other is a gap, and is added to `gaps`. What is passed over in pages that were
    read is there too."""
    options: dict[str, Any] = {}
    while True:
        answer = s3.list_objects_v2(Bucket=bucket, Prefix=prefix, **options)
        page = answer.get("Contents", ())
        for entry in page:
            yield RawFile(entry["Key"], entry["Size"], bare_etag(entry["ETag"]), entry["LastModified"])
        if not answer["IsTruncated"]:
            return
        last = page[-1]["Key"] if page else ""
        target = next_after(last) if page else None
        if target is None:
            options = {"ContinuationToken": answer["NextContinuationToken"]}
        else:
            gaps.append((last, target))
            options = {"StartAfter": target}


def folders_passing(s3: S3Client, bucket: str, prefix: str, names: str) -> tuple[list[str], bool]:
    """(the names of the folders directly below `prefix`, in order; whether objects there have names that begin with `names`).

    Of such objects one page is listed, however many there are.
    """
    folders: list[str] = []
    found = False
    for page in _pages_passing(s3, bucket, prefix, names):
        folders += [entry["Prefix"][len(prefix) :].rstrip("/") for entry in page.get("CommonPrefixes", ())]
        found = found or any(entry["Key"].startswith(prefix + names) for entry in page.get("Contents", ()))
    return folders, found


def _pages_passing(s3: S3Client, bucket: str, prefix: str, names: str) -> Iterator[Any]:
    options: dict[str, Any] = {}
    while True:
        page = s3.list_objects_v2(Bucket=bucket, Prefix=prefix, Delimiter="/", **options)
        yield page
        if not page["IsTruncated"]:
            return
        last = max([entry["Key"] for entry in page.get("Contents", ())] + [entry["Prefix"] for entry in page.get("CommonPrefixes", ())])
        if last.startswith(prefix + names) and not last.endswith("/"):
            options = {"StartAfter": prefix + names + BEHIND_NAMES}
        else:
            options = {"ContinuationToken": page["NextContinuationToken"]}
