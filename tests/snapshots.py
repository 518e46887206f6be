"""A table's raw files and its snapshots on some AWS, for tests: write what DMS would write, run the job here, read as readers do."""

from __future__ import annotations

import io
import uuid
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from botocore.exceptions import ClientError

from glue_jobs import snapshot
from glue_jobs.aws.clients import Clients
from glue_jobs.core.errors import DmslakeError
from glue_jobs.core.paths import S3Uri
from glue_jobs.core.snapshot_plan import Manifest, read_manifest
from infra.local.dms_files import DmsRow, dms_parquet, dms_table
from tests.lake import DRIVER

ORDERS = pa.schema([("id", pa.int64()), ("name", pa.string()), ("day", pa.date32())])
LAST_DAY = "2999-01-01"


@dataclass
class SnapshotTable:
    """One raw folder and a database of its own. Rows are (op, values, commit time)."""

    clients: Clients
    environment: Mapping[str, str]
    raw: str  # s3://bucket/prefix/
    out: str
    columns: pa.Schema = ORDERS
    timestamp_column: str | None = "ts"
    database: str = field(default_factory=lambda: f"d{uuid.uuid4().hex[:10]}")
    settings: dict[str, str] = field(default_factory=lambda: {"driver_bytes": DRIVER})

    @property
    def path(self) -> S3Uri:
        return S3Uri.folder(f"{self.raw}{self.database}/orders")

    @property
    def folder(self) -> S3Uri:
        return S3Uri.folder(self.out).join(f"{self.database}.orders_snapshot/")

    def arguments(self, **given: str) -> dict[str, str]:
        """Of a run as of the last day."""
        said = {"table": "orders", "path": str(self.path), "primary_keys": "id", "to": self.out, "database": self.database}
        return {**said, "timestamp_column": self.timestamp_column or "", "run_date": LAST_DAY, **given}

    def put(self, name: str, rows: Iterable[Any], columns: pa.Schema | None = None) -> str:
        """Write a DMS file."""
        table = dms_table(columns or self.columns, [DmsRow(*row) for row in rows], timestamp_column=self.timestamp_column)
        key = self.path.key + name
        self.clients.s3.put_object(Bucket=self.path.bucket, Key=key, Body=dms_parquet(table))
        return key

    def run(self, **given: str) -> DmslakeError | None:
        """The job in this process; why it failed."""
        said = {**self.settings, "run_id": uuid.uuid4().hex[:8], **self.arguments(**given)}
        return snapshot.run([f"--{name}={value}" for name, value in said.items() if value], self.environment, self.clients)

    def take(self, **given: str) -> Manifest:
        """The job, which must succeed; the manifest of what readers see then."""
        error = self.run(**given)
        assert error is None, error
        return self.manifest()

    # --- what a reader sees

    def glue_table(self) -> Any:
        """The Glue table, None if there is none."""
        try:
            return self.clients.glue.get_table(DatabaseName=self.database, Name="orders_snapshot")["Table"]
        except ClientError:
            return None

    def location(self) -> str:
        return str(self.glue_table()["StorageDescriptor"]["Location"])

    def partitions(self) -> dict[str, str]:
        """Value → location."""
        found = self.clients.glue.get_partitions(DatabaseName=self.database, TableName="orders_snapshot")["Partitions"]
        return {each["Values"][0]: each["StorageDescriptor"]["Location"] for each in found}

    def manifest(self) -> Manifest:
        """Of the version that the Glue table points to."""
        name = self.location().rstrip("/").split("version=")[1]
        return read_manifest(self.read_key(f"{self.folder.key}_runs/{name}.json").decode(), name)

    def rows(self, partition: str = "") -> list[dict[str, Any]]:
        """What a reader of the Glue table gets, by key; of one partition, of all, or of the table's location without partitions."""
        table = self.glue_table()
        key = [column["Name"] for column in table["PartitionKeys"]]
        places = self.partitions() if key else {"": self.location()}
        found = []
        for value, location in places.items():
            if partition in ("", value):
                found += [{**row, **({key[0]: value} if key else {})} for row in self.rows_at(location)]
        return sorted(found, key=lambda row: row["id"])

    def rows_at(self, location: str) -> list[dict[str, Any]]:
        """The rows of all objects below a location."""
        at = S3Uri.parse(location)
        rows: list[dict[str, Any]] = []
        for key in self.keys(at.key):
            rows += pq.ParquetFile(io.BytesIO(self.read_key(key))).read().to_pylist()
        return rows

    def read_key(self, key: str) -> bytes:
        return self.clients.s3.get_object(Bucket=self.folder.bucket, Key=key)["Body"].read()

    def keys(self, start: str = "") -> list[str]:
        """The visible keys of the snapshot's folder, or those that begin with `start`."""
        found = self.clients.s3.list_objects_v2(Bucket=self.folder.bucket, Prefix=start or self.folder.key)
        return [entry["Key"] for entry in found.get("Contents", ())]

    def versions(self) -> list[str]:
        """The names of the versions that have a manifest."""
        start = self.folder.key + "_runs/"
        return [key[len(start) : -len(".json")] for key in self.keys(start)]
