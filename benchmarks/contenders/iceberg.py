"""Apache Iceberg's MERGE on Spark, copy-on-write and merge-on-read, on a table that was given the base's files.

Files go by Iceberg's own S3FileIO, as on AWS. Its catalog is a folder, because AWS's is not here.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from benchmarks.contenders.contender import INSERTS, WHOLE_RANGE, Contender, correct_by_sql, merge_sql, net_changes, within_range
from benchmarks.contenders.derived_base import derived_base
from benchmarks.data.base import write
from benchmarks.data.workloads import APPLY, CORRECT, UNDO
from benchmarks.server.stand import BUCKET

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

CATALOG = "ice"


class Iceberg(Contender):
    name = "iceberg"
    title = "Apache Iceberg 1.10.0 MERGE, copy-on-write"
    jars = ("org.apache.iceberg:iceberg-spark-runtime-3.5_2.12:1.10.0", "org.apache.iceberg:iceberg-aws-bundle:1.10.0")
    folder = (BUCKET, "iceberg/")
    does = frozenset({APPLY, UNDO, CORRECT})
    mode = "copy-on-write"
    format_version = "2"
    inserts = True

    @property
    def conf(self) -> dict[str, str]:  # type: ignore[override]
        bucket, prefix = self.folder
        catalog, servers = f"spark.sql.catalog.{CATALOG}", self.world.environment
        return {
            "spark.sql.extensions": "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
            catalog: "org.apache.iceberg.spark.SparkCatalog",
            f"{catalog}.type": "hadoop",
            f"{catalog}.warehouse": f"s3a://{bucket}/{prefix}".rstrip("/"),
            f"{catalog}.io-impl": "org.apache.iceberg.aws.s3.S3FileIO",
            f"{catalog}.s3.endpoint": servers["AWS_ENDPOINT_URL_S3"],
            f"{catalog}.s3.path-style-access": "true",
            f"{catalog}.s3.access-key-id": servers["AWS_ACCESS_KEY_ID"],
            f"{catalog}.s3.secret-access-key": servers["AWS_SECRET_ACCESS_KEY"],
            f"{catalog}.client.region": servers["AWS_REGION"],
        }

    def make(self, table: str) -> None:
        bucket, prefix = self.folder
        given = f"{prefix}given/{table}/"
        self.world.put_files(self._files_with_ids(), bucket, given)
        url = f"s3a://{bucket}/{given}"
        columns = ", ".join(f"{field.name} {field.dataType.simpleString()}" for field in self.spark.read.parquet(url).schema)
        modes = {f"write.{what}.mode": self.mode for what in ("merge", "update", "delete")}
        properties = ", ".join(f"'{name}' = '{value}'" for name, value in {"format-version": self.format_version, **modes}.items())
        self.spark.sql(f"CREATE TABLE {self._table(table)} ({columns}) USING iceberg TBLPROPERTIES ({properties})")
        self.spark.sql(f"CALL {CATALOG}.system.add_files(table => '{self._table(table)}', source_table => '`parquet`.`{url}`')")
        unbounded = self.spark.sql(f"SELECT count(*) FROM {self._table(table)}.files WHERE cardinality(lower_bounds) = 0").collect()[0][0]
        if unbounded:
            raise RuntimeError(f"the manifests of {unbounded} files have no bounds, by which Iceberg leaves files out")

    def _files_with_ids(self) -> list[Path]:
        """The base's files with the columns' numbers in them: of files without, 1.10.0 takes no bounds into its manifests."""
        base = self.world.prepared.base
        numbered = pa.schema(field.with_metadata({"PARQUET:field_id": str(number)}) for number, field in enumerate(base.schema, 1))
        return derived_base(base, "numbered", lambda rows, path: write(rows.cast(numbered), path))

    def apply(self, table: str, batch: int) -> None:
        net_changes(self.spark, self.world.change_url(batch)).createOrReplaceTempView("changes")
        self.spark.sql(merge_sql(self._table(table), self.world.columns, self._condition(), self.inserts))

    def _condition(self) -> str:
        """What the MERGE says beside the keys."""
        return ""

    def undo(self, table: str) -> None:
        self._set_snapshot(table, -2)

    def redo(self, table: str) -> None:
        self._set_snapshot(table, -1)

    def correct(self, table: str) -> None:
        correct_by_sql(self.spark, self.world, self._table(table))

    def frame(self, table: str) -> DataFrame:
        return self.spark.table(self._table(table))

    def files(self, table: str) -> list[int]:
        """Those of the table now, data and deletes: files that it was given lie elsewhere."""
        rows = self.spark.sql(f"SELECT file_size_in_bytes FROM {self._table(table)}.files").collect()
        return [int(row[0]) for row in rows]

    def _set_snapshot(self, table: str, place: int) -> None:
        """place: among all snapshots by their time."""
        found = self.spark.sql(f"SELECT snapshot_id FROM {self._table(table)}.snapshots ORDER BY committed_at").collect()
        self.spark.sql(f"CALL {CATALOG}.system.set_current_snapshot('{self._table(table)}', {found[place][0]})")

    def _table(self, table: str) -> str:
        return f"{CATALOG}.db.{table}"


class IcebergMergeOnRead(Iceberg):
    name = "iceberg-mor"
    title = "Apache Iceberg 1.10.0 MERGE, merge-on-read"
    folder = (BUCKET, "iceberg-mor/")
    mode = "merge-on-read"
    format_version = "3"  # its deletes are vectors, of which a data file has one at most


class IcebergInRange(Iceberg):
    name = "iceberg-range"
    title = "Apache Iceberg 1.10.0 MERGE, copy-on-write, with the range of the keys"
    folder = (BUCKET, "iceberg-range/")
    without = WHOLE_RANGE

    def _condition(self) -> str:
        return within_range(self.spark)


class IcebergMatchedOnly(Iceberg):
    """As Delta's."""

    name = "iceberg-matched"
    title = "Apache Iceberg 1.10.0 MERGE, copy-on-write, that inserts nothing"
    folder = (BUCKET, "iceberg-matched/")
    without = INSERTS
    inserts = False
