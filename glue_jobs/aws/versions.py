"""What S3 keeps of a key: its data versions and whether it is visible. One key at a time, or many with few requests."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any

from glue_jobs.aws.objects import bare_etag

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

LOOK_THREADS = 32
MIN_FOUND_PER_PAGE = 16  # a page that finds fewer of the wanted keys is no better than asking for each of them, many at a time


@dataclass(frozen=True)
class VersionEntry:
    """One version of a key that holds data (no delete marker)."""

    version_id: str
    etag: str
    size: int
    modified: datetime


@dataclass(frozen=True)
class KeyVersions:
    """What S3 keeps of one key. data: newest first. visible: whether a plain GET finds it. marked: whether there is a delete marker,
    which stays when the versions are gone."""

    data: tuple[VersionEntry, ...] = ()
    visible: bool = False
    marked: bool = False


def key_versions(s3: S3Client, bucket: str, key: str) -> KeyVersions:
    """The data versions of exactly this key, newest first, and whether it is visible."""
    found = KeyVersions()
    for page in _pages(s3, bucket, key):
        found = _read(page, {key}, {key: found})[key]
        # Keys come in order and all begin with this one: another key means that this one's versions are over.
        if any(entry["Key"] != key for entry in _entries(page)):
            break
    return found


def versions_of(s3: S3Client, bucket: str, keys: Sequence[str]) -> dict[str, KeyVersions]:
    """`key_versions` of every key, in about as few requests as can be.

    The versions below the keys' common prefix are listed as long as each page finds enough of them; the keys that are left are asked
    for one by one, in parallel. So a few keys of a large table cost a request each, and all files of a change a page each thousand.
    """
    found: dict[str, KeyVersions] = {}
    left = set(keys)
    if len(left) >= MIN_FOUND_PER_PAGE:
        for page in _pages(s3, bucket, _common_start(min(left), max(left))):
            found = _read(page, left | set(found), found)
            # The page's last key may go on in the next page.
            ended = {key for key in left if key < _last_key(page) or not page.get("IsTruncated")}
            left -= ended
            if len(ended) < MIN_FOUND_PER_PAGE or not left:
                break
    if left:
        asked = sorted(left)
        with ThreadPoolExecutor(min(LOOK_THREADS, len(asked))) as pool:
            found.update(zip(asked, pool.map(lambda key: key_versions(s3, bucket, key), asked)))
    return {key: found.get(key, KeyVersions()) for key in keys}


def _common_start(first: str, last: str) -> str:
    """What two texts, and all that sort between them, begin with."""
    same = next((at for at, (a, b) in enumerate(zip(first, last)) if a != b), min(len(first), len(last)))
    return first[:same]


def _pages(s3: S3Client, bucket: str, prefix: str) -> Iterator[Any]:
    return iter(s3.get_paginator("list_object_versions").paginate(Bucket=bucket, Prefix=prefix))


def _entries(page: Any) -> Iterable[Any]:
    return (*page.get("Versions", ()), *page.get("DeleteMarkers", ()))


def _last_key(page: Any) -> str:
    return max((entry["Key"] for entry in _entries(page)), default="")


def _read(page: Any, keys: set[str], before: dict[str, KeyVersions]) -> dict[str, KeyVersions]:
    """What was known `before`, with what the page says of `keys`."""
    out = dict(before)
    for entry in page.get("Versions", ()):
        key = entry["Key"]
        if key in keys:
            known = out.get(key, KeyVersions())
            version = VersionEntry(entry["VersionId"], bare_etag(entry["ETag"]), entry["Size"], entry["LastModified"])
            out[key] = replace(known, data=(*known.data, version), visible=known.visible or bool(entry["IsLatest"]))
    for entry in page.get("DeleteMarkers", ()):
        if entry["Key"] in keys:
            out[entry["Key"]] = replace(out.get(entry["Key"], KeyVersions()), marked=True)
    return out
