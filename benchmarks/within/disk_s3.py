"""A file on this machine's disk in the place of S3, for tasks whose memory is measured."""

from __future__ import annotations

import hashlib
import io
from pathlib import Path
from typing import Any, BinaryIO

import pyarrow as pa

from benchmarks.data.base import KEY
from glue_jobs.core.limits import Limits
from glue_jobs.core.paths import S3Uri
from glue_jobs.core.schema import Column
from glue_jobs.spark import place as place_module
from glue_jobs.spark.arrow_types import lake_type_of
from glue_jobs.spark.place import Place, Shape


class DiskS3:
    """As much of S3 as a merge asks for: ranges of one file, and uploads that go nowhere."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.gets = self.read_bytes = 0

    def get_object(self, Range: str = "", **_: Any) -> dict[str, BinaryIO]:  # noqa: N803 - boto3's name
        with self._path.open("rb") as file:
            if not Range:
                data = file.read()
            else:
                start, stop = Range.removeprefix("bytes=").split("-")
                file.seek(int(start))
                data = file.read(int(stop) + 1 - int(start) if stop else -1)
        self.gets += 1
        self.read_bytes += len(data)
        return {"Body": io.BytesIO(data)}

    def create_multipart_upload(self, **_: Any) -> dict[str, str]:
        return {"UploadId": "one"}

    def upload_part(self, Body: bytes, **_: Any) -> dict[str, str]:  # noqa: N803
        return {"ETag": _etag(Body)}

    def upload_part_copy(self, CopySourceRange: str, **_: Any) -> dict[str, dict[str, str]]:  # noqa: N803
        return {"CopyPartResult": {"ETag": _etag(CopySourceRange.encode())}}


def _etag(data: bytes) -> str:
    return f'"{hashlib.md5(data, usedforsecurity=False).hexdigest()}"'


def shape_of(schema: pa.Schema) -> Shape:
    """The benchmarks' table."""
    return Shape("benchmark", tuple(Column(field.name, lake_type_of(field.type) or "") for field in schema), (KEY,))


def place_on(s3: DiskS3) -> Place:
    """Where a task of this process works."""
    place_module.worker_s3 = lambda _: s3  # type: ignore[assignment,return-value]
    return Place((), "raw", S3Uri("lake", "t/"), "0000000001-000001-0badcafe", "zstd", Limits())
