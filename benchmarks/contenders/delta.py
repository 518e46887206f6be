"""Delta Lake's MERGE on Spark, with and without deletion vectors, on a table converted from the base's files."""

from __future__ import annotations

from typing import TYPE_CHECKING

from benchmarks.contenders.contender import INSERTS, WHOLE_RANGE, Contender, correct_by_sql, merge_sql, net_changes, within_range
from benchmarks.data.workloads import APPLY, CORRECT, UNDO
from benchmarks.server.stand import BUCKET

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

JARS = ("io.delta:delta-spark_2.12:3.3.2",)
CONF = {
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    # It puts the state of a table together in 50 tasks, whatever `spark.sql.shuffle.partitions` says; 700 files don't need them.
    "spark.databricks.delta.snapshotPartitions": "2",
}


class Delta(Contender):
    name = "delta"
    title = "Delta Lake 3.3.2 MERGE"
    jars = JARS
    conf = CONF
    folder = (BUCKET, "delta/")
    does = frozenset({APPLY, UNDO, CORRECT})
    deletion_vectors = False
    inserts = True

    def make(self, table: str) -> None:
        bucket, prefix = self.folder
        self.world.copy_base(bucket, f"{prefix}{table}/")
        self.spark.sql(f"CONVERT TO DELTA parquet.`{self._url(table)}`")
        wanted = str(self.deletion_vectors).lower()
        self.spark.sql(f"ALTER TABLE delta.`{self._url(table)}` SET TBLPROPERTIES ('delta.enableDeletionVectors' = '{wanted}')")

    def apply(self, table: str, batch: int) -> None:
        net_changes(self.spark, self.world.change_url(batch)).createOrReplaceTempView("changes")
        self.spark.sql(merge_sql(f"delta.`{self._url(table)}`", self.world.columns, self._condition(), self.inserts))

    def _condition(self) -> str:
        """What the MERGE says beside the keys."""
        return ""

    def undo(self, table: str) -> None:
        """Back to the version before the last: twice in a row it is there again."""
        target = f"delta.`{self._url(table)}`"
        newest = self.spark.sql(f"DESCRIBE HISTORY {target} LIMIT 1").collect()[0]["version"]
        self.spark.sql(f"RESTORE TABLE {target} TO VERSION AS OF {newest - 1}")

    def redo(self, table: str) -> None:
        self.undo(table)

    def correct(self, table: str) -> None:
        correct_by_sql(self.spark, self.world, f"delta.`{self._url(table)}`")

    def frame(self, table: str) -> DataFrame:
        return self.spark.read.format("delta").load(self._url(table))

    def _url(self, table: str) -> str:
        bucket, prefix = self.folder
        return f"s3a://{bucket}/{prefix}{table}/"


class DeltaWithVectors(Delta):
    name = "delta-dv"
    title = "Delta Lake 3.3.2 MERGE, deletion vectors"
    folder = (BUCKET, "delta-dv/")
    deletion_vectors = True


class DeltaInRange(Delta):
    name = "delta-range"
    title = "Delta Lake 3.3.2 MERGE, with the range of the keys"
    folder = (BUCKET, "delta-range/")
    without = WHOLE_RANGE

    def _condition(self) -> str:
        return within_range(self.spark)


class DeltaMatchedOnly(Delta):
    """With no row to insert Delta need not keep the changes that hit none, so that Spark may send the changes to all tasks instead of
    shuffling the table's rows."""

    name = "delta-matched"
    title = "Delta Lake 3.3.2 MERGE that inserts nothing"
    folder = (BUCKET, "delta-matched/")
    without = INSERTS
    inserts = False
