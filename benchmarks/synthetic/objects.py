"""S3 as a dictionary, for one table: what is written can be read, and each request and byte is counted."""

from __future__ import annotations

import io
from collections import Counter
from collections.abc import Iterator
from datetime import datetime, timezone
from typing import Any

from botocore.exceptions import ClientError

from glue_jobs.core.record import DataFile
from tests.raw_folders import CountedListing

END = datetime(2024, 5, 17, 10, tzinfo=timezone.utc)


class KeptObjects:
    """S3 of two buckets as a dictionary: objects of the lake by key, keys of raw files; it counts."""

    def __init__(self) -> None:
        self.objects: dict[str, bytes] = {}
        self.raw = CountedListing(())
        self.requests: Counter[str] = Counter()
        self.bytes_read = self.bytes_written = 0
        self.versions: dict[str, DataFile] = {}

    def get_object(self, Bucket: str, Key: str, Range: str = "") -> dict[str, Any]:  # noqa: N803 - AWS's names
        self.requests["GET"] += 1
        data = self.objects.get(Key)
        if data is None:
            raise ClientError({"Error": {"Code": "NoSuchKey", "Message": Key}}, "GetObject")
        answer: dict[str, Any] = {}
        if Range:
            first, last = (int(text) for text in Range.partition("=")[2].split("-"))
            answer["ContentRange"] = f"bytes {first}-{min(last, len(data) - 1)}/{len(data)}"
            data = data[first : last + 1]
        self.bytes_read += len(data)
        return {**answer, "Body": io.BytesIO(data)}

    def put_object(self, Bucket: str, Key: str, Body: bytes, ContentType: str = "") -> None:  # noqa: N803
        self.requests["PUT"] += 1
        self.bytes_written += len(Body)
        self.objects[Key] = Body

    def list_objects_v2(self, **asked: Any) -> dict[str, Any]:
        self.requests["LIST"] += 1
        return self.raw.list_objects_v2(**asked)

    def get_paginator(self, operation: str) -> Any:
        return _Pages(self, operation)

    def create_multipart_upload(self, **_: Any) -> dict[str, Any]:
        self.requests["copies, 2 each"] += 1
        return {"UploadId": "u"}

    def upload_part_copy(self, **_: Any) -> dict[str, Any]:
        self.requests["copies, 2 each"] += 1
        return {"CopyPartResult": {"ETag": '"e"', "ChecksumCRC32": "AAAAAA=="}}


class _Pages:
    def __init__(self, kept: KeptObjects, operation: str) -> None:
        self._kept, self._of_versions = kept, operation == "list_object_versions"

    def paginate(self, Bucket: str, Prefix: str, StartAfter: str = "", **_: Any) -> Iterator[dict[str, Any]]:  # noqa: N803
        stored: Any = self._kept.versions if self._of_versions else self._kept.objects
        keys = sorted(key for key in stored if key.startswith(Prefix) and key > StartAfter)
        for at in range(0, max(1, len(keys)), 1000):
            self._kept.requests["LIST versions" if self._of_versions else "LIST"] += 1
            some = keys[at : at + 1000]
            yield {"Versions": [_version(key, stored[key]) for key in some]} if self._of_versions else {"Contents": list(map(_entry, some))}


def _entry(key: str) -> dict[str, Any]:
    return {"Key": key, "Size": 1, "ETag": '""', "LastModified": END}


def _version(key: str, file: DataFile) -> dict[str, Any]:
    return {**_entry(key), "VersionId": "v", "Size": file.size_bytes, "ETag": f'"{file.etag}"', "IsLatest": False}
