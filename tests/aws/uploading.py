"""Uploads for tests."""

from __future__ import annotations

from typing import Any

from glue_jobs.aws.multipart_writer import MultipartWriter
from glue_jobs.aws.uploads import list_open_uploads

MIB = 1024 * 1024
# Parts below 5 MiB are refused by S3, the last one aside.
PART = 5 * MIB


def uploaded(s3: Any, bucket: str, key: str = "k", data: bytes = b"data") -> Any:
    """An upload with all its parts."""
    writer = MultipartWriter(s3, bucket, key, PART)
    writer.write(data)
    return writer.finish()


def open_keys(s3: Any, bucket: str) -> list[str]:
    return [upload.key for upload in list_open_uploads(s3, bucket, "")]
