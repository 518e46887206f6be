"""delta-rs: MERGE of a Delta table in one process of Rust, without Spark."""

from __future__ import annotations

import io

import deltalake
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.contenders.delta import Delta
from benchmarks.data.base import KEY
from benchmarks.data.workloads import APPLY, UNDO
from benchmarks.server.stand import BUCKET


class DeltaRs(Delta):
    name = "delta-rs"
    title = f"delta-rs {deltalake.__version__} merge"
    folder = (BUCKET, "delta-rs/")
    does = frozenset({APPLY, UNDO})

    def make(self, table: str) -> None:
        bucket, prefix = self.folder
        self.world.copy_base(bucket, f"{prefix}{table}/")
        deltalake.convert_to_deltalake(self._address(table), storage_options=self._options())

    def apply(self, table: str, batch: int) -> None:
        rows = self._net_changes(batch)
        merged = deltalake.DeltaTable(self._address(table), storage_options=self._options()).merge(
            rows,
            predicate=f"t.{KEY} = c.{KEY}",
            source_alias="c",
            target_alias="t",
            streamed_exec=False,  # so that files whose range of keys has no change are left out
        )
        values = {name: f"c.{name}" for name in self.world.columns}
        (
            merged.when_matched_delete(predicate="c.\"Op\" = 'D'")
            .when_matched_update(updates=values, predicate="c.\"Op\" <> 'D'")
            .when_not_matched_insert(updates=values, predicate="c.\"Op\" <> 'D'")
            .execute()
        )

    def undo(self, table: str) -> None:
        opened = deltalake.DeltaTable(self._address(table), storage_options=self._options())
        opened.restore(opened.version() - 1)

    def _net_changes(self, batch: int) -> pa.Table:
        """The last change of each key."""
        data = self.world.s3.get_object(Bucket=BUCKET, Key=self.world.change_key(batch))["Body"].read()
        rows = pq.read_table(io.BytesIO(data))
        last = rows.select([KEY]).append_column("position", pa.array(np.arange(rows.num_rows)))
        return rows.take(last.group_by(KEY).aggregate([("position", "max")])["position_max"])

    def _address(self, table: str) -> str:
        return self._url(table).replace("s3a://", "s3://")

    def _options(self) -> dict[str, str]:
        environment = self.world.environment
        return {
            "aws_endpoint_url": environment["AWS_ENDPOINT_URL_S3"],
            "aws_access_key_id": environment["AWS_ACCESS_KEY_ID"],
            "aws_secret_access_key": environment["AWS_SECRET_ACCESS_KEY"],
            "aws_region": environment["AWS_REGION"],
            "aws_allow_http": "true",
            "aws_conditional_put": "etag",
        }
