"""What every task on data needs: where to read and write, and the table's shape. Pickled into Spark tasks, so only plain values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from glue_jobs.aws.clients import worker_s3
from glue_jobs.core.dms_columns import BEFORE_IMAGES
from glue_jobs.core.limits import Limits
from glue_jobs.core.partitioning import Partitioning, file_columns
from glue_jobs.core.paths import S3Uri
from glue_jobs.core.schema import Schema, find

# What a worker's client must be told; credentials come from the machine (role, profile or environment).
CLIENT_VARIABLES = (
    "AWS_PROFILE", "AWS_REGION", "AWS_DEFAULT_REGION", "AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3",
)  # fmt: skip


@dataclass(frozen=True)
class Place:
    """Buckets and settings of one change. client: items of CLIENT_VARIABLES; change: the id that new files' names begin with.
    before_images: patterns of the names that before images have in the table's raw files. alone: no other task runs beside one of this
    change, so that a large file may be written on more than one core."""

    client: tuple[tuple[str, str], ...]
    raw_bucket: str
    lake: S3Uri
    change: str
    compression: str
    limits: Limits
    before_images: tuple[str, ...] = BEFORE_IMAGES
    alone: bool = False

    @property
    def s3(self) -> Any:
        """This process's S3 client."""
        return worker_s3(self.client)


@dataclass(frozen=True)
class Shape:
    """A table's columns, key and partitions, as they are after the change. table: for messages."""

    table: str
    schema: Schema
    key: tuple[str, ...]
    partitioning: Partitioning = ()
    empty_as_null: bool = False

    @property
    def file_schema(self) -> Schema:
        """The columns that stand in the data files."""
        return file_columns(self.schema, self.partitioning)

    @property
    def key_types(self) -> tuple[str, ...]:
        return tuple(column.type for column in (find(self.schema, name) for name in self.key) if column)
