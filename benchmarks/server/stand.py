"""Where a run happens: the S3 server, and the embedded AWS beside it for dmslake's DynamoDB and Glue catalog."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import boto3
from botocore.config import Config

from benchmarks.data.base import Base
from benchmarks.data.prepared import Prepared
from benchmarks.server.counts import Counts
from benchmarks.server.minio import PROGRAM, MinioServer
from infra.local.embedded import EmbeddedAws

BUCKET = "bench"  # of everything but dmslake's own: no versions
COPIES = 16


@dataclass(frozen=True)
class Stand:
    """environment: what a contender's process needs to reach the servers. server: None where S3 is moto, which counts nothing."""

    title: str
    environment: dict[str, str]
    server: MinioServer | None
    buckets: tuple[str, ...] = (BUCKET,)

    @functools.cached_property
    def s3(self) -> Any:
        return s3_client(self.environment)

    def counts(self) -> Counts | None:
        return self.server.counts() if self.server else None

    def put_base(self, base: Base) -> None:
        """The base's files, below `base_key`."""
        for path in base.paths():
            self.s3.put_object(Bucket=BUCKET, Key=base_key(base) + path.name, Body=path.read_bytes())

    def put_changes(self, prepared: Prepared) -> None:
        """The change files, below `changes_key`."""
        for path in prepared.changes:
            self.s3.put_object(Bucket=BUCKET, Key=changes_key(prepared) + path.name, Body=path.read_bytes())

    def drop(self, mark: str) -> None:
        """Give back the disk of all objects with `mark` in their keys, with all their versions."""
        for bucket in self.buckets:
            for page in self.s3.get_paginator("list_object_versions").paginate(Bucket=bucket):
                found = [*page.get("Versions", ()), *page.get("DeleteMarkers", ())]
                gone = [{"Key": each["Key"], "VersionId": each["VersionId"]} for each in found if mark in each["Key"]]
                if gone:
                    self.s3.delete_objects(Bucket=bucket, Delete={"Objects": gone, "Quiet": True})


def base_key(base: Base) -> str:
    """The folder of the base's files in BUCKET."""
    return f"base/{base.name}/"


def changes_key(prepared: Prepared) -> str:
    """The folder of a workload's change files in BUCKET."""
    return f"changes/{prepared.base.name}/{prepared.workload}/"


def s3_client(environment: dict[str, str]) -> Any:
    """A client of the run's S3 server."""
    return boto3.client(
        "s3",
        endpoint_url=environment["AWS_ENDPOINT_URL_S3"],
        aws_access_key_id=environment["AWS_ACCESS_KEY_ID"],
        aws_secret_access_key=environment["AWS_SECRET_ACCESS_KEY"],
        region_name=environment["AWS_REGION"],
        config=Config(max_pool_connections=COPIES, s3={"addressing_style": "path"}, proxies={"http": None}),
    )


@contextlib.contextmanager
def open_stand() -> Iterator[Stand]:
    """MinIO if it was built, else moto; with the buckets."""
    with contextlib.ExitStack() as stack:
        aws = stack.enter_context(EmbeddedAws())
        server = stack.enter_context(MinioServer()) if PROGRAM.exists() else None
        environment = {**aws.environment(), "AWS_ENDPOINT_URL_S3": server.url if server else aws.endpoint_url}
        raw, lake = aws.raw_bucket, aws.lake_bucket
        title = server.title if server else "moto (Python): no figure of it says anything about S3"
        stand = Stand(title, environment, server, (BUCKET, raw, lake))
        for bucket in (BUCKET, raw, lake) if server else (BUCKET,):
            stand.s3.create_bucket(Bucket=bucket)
        stand.s3.put_bucket_versioning(Bucket=lake, VersioningConfiguration={"Status": "Enabled"})
        yield stand
