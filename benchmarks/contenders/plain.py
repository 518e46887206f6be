"""The yardstick: Spark reads the impacted files and writes them elsewhere. No merge, no commit: less no program can do by Spark SQL.

The files are read as a folder: more than 32 paths Spark looks at one by one, in a job of their own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from benchmarks.contenders.contender import Contender
from benchmarks.contenders.delta import CONF, JARS
from benchmarks.data.base import KEY
from benchmarks.data.digest import Digest
from benchmarks.data.workloads import APPLY, CORRECT, LOAD
from benchmarks.server.stand import BUCKET

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

NOT_RUN = {"W4": "no file is impacted", "W5": "it writes nothing that a next batch could start from"}


class PlainSpark(Contender):
    name = "plain"
    title = "Spark's plain read and write, no merge"
    is_whole = False
    does = frozenset({APPLY, LOAD, CORRECT})
    folder = (BUCKET, "plain/")
    without = NOT_RUN
    format = "parquet"

    def make(self, table: str) -> None:
        """The impacted files, in a folder of their own."""
        bucket, prefix = self.folder
        self.world.copy_base(bucket, f"{prefix}given/{table}/", self.world.prepared.impacted)

    def apply(self, table: str, batch: int) -> None:
        bucket, prefix = self.folder
        self.spark.read.parquet(f"s3a://{bucket}/{prefix}given/{table}/").write.format(self.format).save(self._url(table))

    def load(self, table: str) -> None:
        rows = self.spark.read.parquet(self.world.changes_url).drop("Op")
        rows = rows.selectExpr("*", "year(order_date) AS order_date_year", "month(order_date) AS order_date_month")
        rows = rows.repartition("order_date_year", "order_date_month").sortWithinPartitions("order_date_year", "order_date_month", KEY)
        rows.write.format(self.format).partitionBy("order_date_year", "order_date_month").save(self._url(table))

    def correct(self, table: str) -> None:
        self.apply(table, 0)

    def frame(self, table: str) -> DataFrame:
        return self.spark.read.format(self.format).load(self._url(table))

    def expected(self) -> Digest:
        prepared = self.world.prepared
        return prepared.truth if prepared.is_load else prepared.impacted_rows

    def _url(self, table: str) -> str:
        bucket, prefix = self.folder
        return f"s3a://{bucket}/{prefix}{table}/"


class PlainSparkDirect(PlainSpark):
    """Spark as it comes writes below a temporary folder and copies every file twice on S3. Delta's writer is Spark's with another
    committer: each file is uploaded once, to its place. EMR's and Glue's own committers do so too."""

    name = "plain-direct"
    title = "the same, each file uploaded once"
    jars = JARS
    conf = {**CONF, "spark.databricks.delta.stats.collect": "false"}  # noqa: RUF012
    folder = (BUCKET, "plain-direct/")
    format = "delta"
