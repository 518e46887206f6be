"""`awsglue.context.GlueContext`: the Spark session of a job."""

from __future__ import annotations

from pyspark.sql import SparkSession


class GlueContext:
    """Wraps a SparkContext; `spark_session` is what a script takes from it."""

    def __init__(self, sparkContext: object) -> None:  # the parameter's name is part of the documented API
        self.spark_session: SparkSession = SparkSession.builder.getOrCreate()
