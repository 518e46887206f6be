"""Apache Hudi's upsert on Spark, copy-on-write. Its tables have columns of Hudi's own, so the base is written anew by its bulk insert."""

from __future__ import annotations

from typing import TYPE_CHECKING

from benchmarks.contenders.contender import Contender, net_changes
from benchmarks.data.base import KEY
from benchmarks.server.stand import BUCKET

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

CONF = {
    "spark.serializer": "org.apache.spark.serializer.KryoSerializer",
    "spark.kryo.registrator": "org.apache.spark.HoodieSparkKryoRegistrar",
    "spark.sql.extensions": "org.apache.spark.sql.hudi.HoodieSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.hudi.catalog.HoodieCatalog",
}


class Hudi(Contender):
    name = "hudi"
    title = "Apache Hudi 1.0.2 upsert, copy-on-write"
    jars = ("org.apache.hudi:hudi-spark3.5-bundle_2.12:1.0.2",)
    conf = CONF
    folder = (BUCKET, "hudi/")

    def make(self, table: str) -> None:
        # A task for each of the base's files, and no sort: the same rows in as many files, in their order.
        largest = max(path.stat().st_size for path in self.world.prepared.base.paths())
        self.spark.conf.set("spark.sql.files.maxPartitionBytes", str(largest))
        rows = self.spark.read.parquet(self.world.base_url).selectExpr("*", "false AS _hoodie_is_deleted")
        options = {"hoodie.datasource.write.operation": "bulk_insert", "hoodie.bulkinsert.sort.mode": "NONE"}
        rows.write.format("hudi").options(**self._options(table), **options).mode("overwrite").save(self._url(table))

    def apply(self, table: str, batch: int) -> None:
        rows = net_changes(self.spark, self.world.change_url(batch))
        rows = rows.selectExpr(*self.world.columns, "Op = 'D' AS _hoodie_is_deleted")
        options = {"hoodie.datasource.write.operation": "upsert", "hoodie.upsert.shuffle.parallelism": "8"}
        rows.write.format("hudi").options(**self._options(table), **options).mode("append").save(self._url(table))

    def frame(self, table: str) -> DataFrame:
        return self.spark.read.format("hudi").load(self._url(table)).select(*self.world.columns)

    def _options(self, table: str) -> dict[str, str]:
        return {
            "hoodie.table.name": table,
            "hoodie.datasource.write.recordkey.field": KEY,
            "hoodie.datasource.write.keygenerator.class": "org.apache.hudi.keygen.NonpartitionedKeyGenerator",
            "hoodie.record.merge.mode": "COMMIT_TIME_ORDERING",
            "hoodie.parquet.compression.codec": "zstd",  # as it comes it is gzip, which takes longer
        }

    def _url(self, table: str) -> str:
        return f"s3a://{BUCKET}/hudi/{table}"
