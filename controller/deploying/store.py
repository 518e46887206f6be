"""Artifacts in S3: one prefix per version, written once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from botocore.exceptions import ClientError

from controller.artifacts import Artifact, Artifacts
from glue_jobs.aws.objects import list_files, read_bytes
from glue_jobs.aws.translate import error_code
from glue_jobs.core.errors import ConfigurationError, UsageError
from glue_jobs.core.paths import S3Uri

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

_NAMED = 3  # differing files that the message names
_TAKEN = frozenset({"PreconditionFailed", "412", "ConditionalRequestConflict"})


def missing_files(s3: S3Client, place: S3Uri, artifacts: Artifacts) -> tuple[Artifact, ...]:
    """The artifacts that are not at `place` yet. Raises UsageError if anything there is not what we would write.

    Contents are compared byte by byte: an ETag is no digest where the bucket encrypts with a key of KMS.
    """
    there = {file.key[len(place.key) :]: file.size for file in list_files(s3, place.bucket, place.key)}
    wanted = {file.name: file for file in artifacts.files}
    others = [name for name, size in there.items() if name not in wanted or not _is_same(s3, place, wanted[name], size)]
    if others:
        raise _taken(place, artifacts, others)
    return tuple(file for file in artifacts.files if file.name not in there)


def upload(s3: S3Client, place: S3Uri, artifacts: Artifacts, missing: Sequence[Artifact]) -> None:
    """Write the missing artifacts. One that somebody wrote since we looked is refused, not replaced.

    A crash leaves some: the next deploy of the same code writes the rest.
    """
    for file in missing:
        try:
            s3.put_object(Bucket=place.bucket, Key=place.key + file.name, Body=file.data, **_only_once(s3))
        except ClientError as error:
            if error_code(error) not in _TAKEN:
                raise
            if not _is_same(s3, place, file, len(file.data)):
                raise _taken(place, artifacts, [file.name]) from error


@contextmanager
def lent(s3: S3Client, key: S3Uri, data: bytes) -> Iterator[None]:
    """An object that is there only within."""
    s3.put_object(Bucket=key.bucket, Key=key.key, Body=data)
    try:
        yield
    finally:
        s3.delete_object(Bucket=key.bucket, Key=key.key)


def check_bucket(s3: S3Client, bucket: str, region: str) -> None:
    """Refuse a bucket that isn't there, or where CloudFormation and Glue can't read a stack's files."""
    try:
        answer: Any = s3.head_bucket(Bucket=bucket)
    except ClientError as error:
        if error_code(error) not in ("404", "NoSuchBucket"):
            raise
        todo = f"aws s3 mb s3://{bucket} --region {region}"
        raise ConfigurationError(f"there is no bucket {bucket} for the artifacts", "no-bucket", todo) from error
    found = answer["ResponseMetadata"]["HTTPHeaders"].get("x-amz-bucket-region", region)
    if found != region:
        todo = f"take a bucket in {region}, or set AWS_REGION={found}"
        message = f"the bucket of the artifacts is in another region than the stack; where: {bucket}; expected: {region}; found: {found}"
        raise ConfigurationError(message, "artifacts-region", todo)


def _only_once(s3: S3Client) -> dict[str, Any]:
    """The condition that nothing is there yet, as far as this boto3 knows it (from 1.35 on)."""
    model: Any = s3.meta.service_model.operation_model("PutObject")
    return {"IfNoneMatch": "*"} if "IfNoneMatch" in model.input_shape.members else {}


def _is_same(s3: S3Client, place: S3Uri, file: Artifact, size: int) -> bool:
    return size == len(file.data) and read_bytes(s3, place.bucket, place.key + file.name) == file.data


def _taken(place: S3Uri, artifacts: Artifacts, others: Sequence[str]) -> UsageError:
    named = ", ".join(sorted(others)[:_NAMED]) + (" …" if len(others) > _NAMED else "")
    return UsageError(
        f"this version is already there with other content; where: {place}; {len(others)} file(s) differ: {named}",
        "version-taken",
        f"deploy the code as it was released, or give this code a place of its own: --label {artifacts.digest}",
    )
