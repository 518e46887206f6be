"""Edits on Spark: the same lake as by one process, and rows in a Spark DataFrame."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from glue_jobs.core.errors import TableBlocked, UsageError
from glue_jobs.rows import delete_rows, insert_rows, update_rows
from glue_jobs.spark.session import SESSION_CONF, kept_settings, set_for_jobs
from tests.spark.tables import SHOP
from tests.work_tables import MakeTable

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROWS = [(number, "abc"[number % 3], number) for number in range(12)]
AFTER = [
    *((number, name, qty) for number, name, qty in ROWS if number not in (1, 2, 5)),
    (2, "z", 2),
    (5, "c", -5),
    (20, "new", None),
    (21, "a", 1),
]


def test_spark_gives_the_same_lake(spark_table: MakeTable, spark: SparkSession) -> None:
    """Insert, update and delete as tasks of Spark, given as DataFrames and as dicts; a column that no table has is refused at once."""
    seen = []
    for driver_bytes in ("0", "1000000000"):
        table = spark_table(SHOP, partition_key="name")
        table.load(ROWS)
        assert table.run("LoadInitial") == 0
        options: dict[str, Any] = {"environment": table.environment, "spark": spark, "driver_bytes": driver_bytes, "lease_seconds": "20"}
        path = str(table.path)
        insert_rows(path, spark.createDataFrame([("new", 20), ("a", 21)], "name string, id int"), upsert=True, **options)
        update_rows(path, [{"id": 2, "name": "z"}, {"id": 5, "qty": -5}, {"id": 21, "qty": 1}], **options)
        delete_rows(path, spark.createDataFrame([(1, None)], "id long, name string"), **options)
        with pytest.raises(UsageError, match=r"types that no lake table has: 'qty' \(array<int>\)"):
            insert_rows(path, spark.sql("SELECT 30L id, array(1) qty"), **options)
        assert table.verify() == []
        seen.append(
            (table.rows(), [(record.counts, len(record.added)) for record in table.lineage().back()], table.head().details["engine"])
        )

    assert sorted(seen[0][0]) == sorted(AFTER)
    assert seen[0][:2] == seen[1][:2]
    assert (seen[0][2], seen[1][2]) == ("spark", "driver")


ODD = {
    "spark.sql.session.timeZone": "America/New_York",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "1234",
    "spark.sql.adaptive.enabled": "true",
    "spark.sql.caseSensitive": "false",
    "spark.sql.shuffle.partitions": "7",
}


@pytest.fixture
def odd_spark(spark: SparkSession) -> Iterator[SparkSession]:
    """The session with settings and a log level of a program that has its own use for it."""
    before = {name: str(spark.conf.get(name)) for name in ODD}
    for name, value in ODD.items():
        spark.conf.set(name, value)
    spark.sparkContext.setLogLevel("FATAL")
    yield spark
    for name, value in before.items():
        spark.conf.set(name, value)
    spark.sparkContext.setLogLevel("ERROR")


def log_level(spark: SparkSession) -> str:
    context: Any = spark.sparkContext
    return str(context._jvm.org.apache.logging.log4j.LogManager.getRootLogger().getLevel().toString())


@pytest.mark.parametrize("is_given", [True, False])
def test_a_programs_session_keeps_its_settings(spark_table: MakeTable, odd_spark: SparkSession, is_given: bool) -> None:
    """Given, or taken because it runs in this process: what works on with it would else read columns, times and nulls of another kind."""
    table = spark_table(SHOP)
    table.load(ROWS)
    assert table.run("LoadInitial") == 0
    options: dict[str, Any] = {"environment": table.environment, "driver_bytes": "0", "lease_seconds": "20"}
    options.update({"spark": odd_spark} if is_given else {})
    path, level = str(table.path), log_level(odd_spark)

    insert_rows(path, [{"id": 20, "name": "new"}], **options)
    with pytest.raises(TableBlocked, match=r"\(20\)"):
        insert_rows(path, [{"id": 20, "name": "again"}], **options)

    assert (set(SESSION_CONF) <= set(ODD), table.head().details["engine"]) == (True, "spark")
    assert {name: odd_spark.conf.get(name) for name in ODD} == ODD
    assert (level, log_level(odd_spark)) == ("FATAL", "FATAL")


def test_calls_at_a_time_keep_the_settings_together(odd_spark: SparkSession) -> None:
    """The one that ends first takes nothing from the other, and the last one gives back what the program had."""
    with kept_settings(odd_spark):
        first = kept_settings(odd_spark)
        first.__enter__()
        set_for_jobs(odd_spark)
        first.__exit__(None, None, None)
        within = {name: odd_spark.conf.get(name) for name in SESSION_CONF}

    assert within == SESSION_CONF
    assert {name: odd_spark.conf.get(name) for name in ODD} == ODD


@pytest.mark.parametrize("error", [None, LookupError("its own")])
def test_a_session_that_ends_meanwhile_takes_nothing_back(error: Exception | None) -> None:
    """What was done is done, and an error is the call's own."""
    session = SimpleNamespace(conf=SimpleNamespace(get=lambda name: "as it was"))

    def call() -> str:
        with kept_settings(session):
            session.conf = None
            if error is not None:
                raise error
            return "done"

    if error is None:
        assert call() == "done"
    else:
        with pytest.raises(LookupError, match="its own"):
            call()
