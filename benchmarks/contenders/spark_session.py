"""The Spark session of a contender that reads and writes S3 by Spark's own connector."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.folders import JARS
from glue_jobs.spark.java import find_java_home

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DRIVER_MEMORY = "4g"
SHUFFLE_PARTITIONS = "8"  # Spark's 200 would cost every contender seconds on two cores


def jar_folder(coordinates: tuple[str, ...]) -> Path:
    """Where `benchmarks.install` leaves the jars of these coordinates and of all they need."""
    name = "+".join(coordinate.split(":")[1] + "-" + coordinate.split(":")[2] for coordinate in coordinates)
    return JARS / (name or "s3a") / "jars"


def start_spark(environment: Mapping[str, str], jars: tuple[str, ...], conf: Mapping[str, str]) -> SparkSession:
    """A session on all cores of this machine. Tasks are tried again, as on a cluster; the log has errors only."""
    os.environ.setdefault("JAVA_HOME", find_java_home())
    os.environ["PYSPARK_PYTHON"] = sys.executable
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master(f"local[{os.cpu_count()},4]").appName("bench")
    for name, value in {**_settings(environment, jars), **conf}.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    return session


def _settings(environment: Mapping[str, str], jars: tuple[str, ...]) -> dict[str, str]:
    found = sorted(str(path) for path in jar_folder(jars).glob("*.jar"))
    if not found:
        raise FileNotFoundError(f"no jars in {jar_folder(jars)}; `python -m benchmarks.install` fetches them")
    folder = tempfile.mkdtemp(prefix="bench-spark-")
    s3a = "spark.hadoop.fs.s3a."
    return {
        "spark.jars": ",".join(found),
        "spark.driver.memory": DRIVER_MEMORY,
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.shuffle.partitions": SHUFFLE_PARTITIONS,
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.warehouse.dir": f"{folder}/warehouse",
        "spark.local.dir": f"{folder}/local",
        s3a + "endpoint": environment["AWS_ENDPOINT_URL_S3"],
        s3a + "access.key": environment["AWS_ACCESS_KEY_ID"],
        s3a + "secret.key": environment["AWS_SECRET_ACCESS_KEY"],
        s3a + "endpoint.region": environment["AWS_REGION"],
        s3a + "path.style.access": "true",
        s3a + "connection.ssl.enabled": "false",
        s3a + "connection.maximum": "64",
        # Else it fetches each Parquet file to its end for the footer: Delta's MERGE of W2 read 670 MB instead of 66.
        s3a + "experimental.input.fadvise": "random",
        "spark.hadoop.mapreduce.fileoutputcommitter.marksuccessfuljobs": "false",
    }
