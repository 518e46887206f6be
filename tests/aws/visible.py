"""Whether a reader finds an object."""

from __future__ import annotations

from typing import Any

from botocore.exceptions import ClientError


def exists(s3: Any, bucket: str, key: str) -> bool:
    """Whether the key is visible."""
    try:
        s3.head_object(Bucket=bucket, Key=key)
    except ClientError as error:
        if error.response["Error"]["Code"] != "404":
            raise
        return False
    return True
