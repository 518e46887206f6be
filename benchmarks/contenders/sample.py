"""The algorithm of the AWS sample's job DMSCDC_LoadIncremental, written anew after its description ("Load ongoing data lake changes with
AWS DMS and AWS Glue"): join for the impacted files, union, rank, one output file, then delete the impacted files one by one.

The plan runs twice, once for the output and once for the list of files. Not made better: within one CDC file it has no order.
"""

from __future__ import annotations

import io
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.contenders.contender import Contender
from benchmarks.data.base import KEY
from benchmarks.server.stand import BUCKET, COPIES

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class AwsSample(Contender):
    name = "sample"
    title = "the AWS sample's algorithm"
    folder = (BUCKET, "sample/")

    def make(self, table: str) -> None:
        """The base's files with the column Op that the sample's initial load leaves in the lake."""

        def put(path: Path) -> None:
            rows = pq.read_table(path)
            rows = rows.add_column(0, "Op", pa.array(["I"] * rows.num_rows))
            data = io.BytesIO()
            pq.write_table(rows, data, compression="snappy", store_schema=False)
            self.world.s3.put_object(Bucket=BUCKET, Key=f"sample/{table}/{path.name}", Body=data.getvalue())

        with ThreadPoolExecutor(COPIES) as threads:
            list(threads.map(put, self.world.prepared.base.paths()))

    def apply(self, table: str, batch: int) -> None:
        from pyspark.sql import functions as F
        from pyspark.sql.window import Window

        changes = self.spark.read.parquet(self.world.change_url(batch))
        by_file = Window.partitionBy(KEY).orderBy(F.desc("sortpath"))
        held = self.spark.read.parquet(self._url(table))
        held = held.withColumn("sortpath", F.lit("0")).withColumn("filepath", F.input_file_name()).withColumn("rownum", F.lit(1))
        given = changes.withColumn("sortpath", F.input_file_name()).withColumn("filepath", F.input_file_name())
        given = given.withColumn("rownum", F.row_number().over(by_file))
        impacted = held.join(changes, [KEY], "inner").select(F.col("filepath").alias("impacted")).distinct()
        kept = held.join(impacted, F.col("impacted") == F.col("filepath")).select(held.columns)
        last = Window.partitionBy(KEY).orderBy(F.desc("sortpath"), F.desc("rownum"))
        ranked = given.select(held.columns).union(kept).withColumn("rnk", F.rank().over(last))
        output = ranked.where("rnk = 1 AND Op <> 'D'").coalesce(1).select(changes.columns)
        output.write.mode("append").parquet(self._url(table))
        for row in impacted.collect():
            self.world.s3.delete_object(Bucket=BUCKET, Key=unquote(urlsplit(row["impacted"]).path)[1:])

    def frame(self, table: str) -> DataFrame:
        return self.spark.read.parquet(self._url(table)).drop("Op")

    def _url(self, table: str) -> str:
        return f"s3a://{BUCKET}/sample/{table}/"
