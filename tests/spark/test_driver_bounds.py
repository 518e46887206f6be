"""What a batch may be for the driver to do it alone: few bytes of rows, and more bytes of data files that they are merged into."""

from __future__ import annotations

import gzip
import hashlib
from dataclasses import dataclass

import pyarrow as pa
import pytest

from tests.spark.csv_texts import csv_text
from tests.spark.tables import WorkTable
from tests.spark.test_csv_runs import made
from tests.work_tables import MakeTable

FIRST = [(number, hashlib.sha1(b"%d" % number).hexdigest(), 0) for number in range(3000)]
KEYS = range(0, 3000, 100)
AFTER = [(number, "new", 1) if number in KEYS else row for number, row in enumerate(FIRST)]


@dataclass(frozen=True)
class Waiting:
    """A table with a batch that waits, and the bytes of both."""

    table: WorkTable
    batch: int
    files: int


@pytest.fixture
def waiting(spark_table: MakeTable) -> Waiting:
    """A loaded table, with changes to it in a CDC file that is smaller than its data."""
    table = spark_table()
    table.load(FIRST)
    assert table.run("LoadInitial") == 0, table.last_run()
    key = table.cdc([("U", AFTER[number]) for number in KEYS])
    found = Waiting(table, table.clients.s3.head_object(Bucket=table.path.bucket, Key=key)["ContentLength"], table.snapshot().size_bytes)
    assert found.batch < found.files
    return found


@pytest.mark.parametrize(("less", "engine"), [(0, "driver"), (1, "spark")])
def test_data_files_are_bounded_by_a_limit_of_their_own(waiting: Waiting, less: int, engine: str) -> None:
    """They are more than `driver_bytes`, and up to `driver_file_bytes` the driver merges them; the table is the same either way."""
    table = waiting.table

    assert table.run(driver_bytes=waiting.batch, driver_file_bytes=waiting.files - less) == 0, table.last_run()

    assert table.head().details["engine"] == engine
    assert sorted(table.rows()) == AFTER


def test_many_bytes_of_changes_are_for_spark(waiting: Waiting) -> None:
    """However few the data files are: all rows of a batch are held at once."""
    table = waiting.table

    assert table.run(driver_bytes=waiting.batch - 1, driver_file_bytes=1_000_000_000) == 0, table.last_run()

    assert table.head().details["engine"] == "spark"
    assert sorted(table.rows()) == AFTER


@pytest.mark.parametrize(("most", "engine"), [("110000", "driver"), ("90000", "spark")])
def test_a_load_counts_as_what_its_rows_weigh(spark_table: MakeTable, most: str, engine: str) -> None:
    """400 kB in a file of a few: a quarter of them counts, because all rows are held at once."""
    table, rows = made(spark_table), [(number, "x" * 1000, number) for number in range(400)]
    table.put_raw("LOAD00000001.csv.gz", gzip.compress(csv_text([("I", *row) for row in rows])))

    assert table.run("LoadInitial", driver_bytes=most) == 0, table.last_run()

    assert table.head().details["engine"] == engine
    assert sorted(table.rows()) == rows


def test_a_null_takes_as_much_memory_as_a_value(spark_table: MakeTable) -> None:
    """A purge of rows with many columns: the file has little more than the keys, and in memory each row has all columns."""
    columns = pa.schema([("id", pa.int64()), *((f"amount{number}", pa.decimal128(38, 10)) for number in range(40))])
    nulls = [None] * 40
    table = spark_table(columns)
    table.load([(number, *nulls) for number in range(3000)])
    assert table.run("LoadInitial") == 0, table.last_run()
    key = table.cdc([("D", (number, *nulls)) for number in range(2999)])
    size = table.clients.s3.head_object(Bucket=table.path.bucket, Key=key)["ContentLength"]
    weight = 2999 * (8 + 40 * 16) // 4
    assert size * 4 < weight

    assert table.run(driver_bytes=size * 4, driver_file_bytes=1_000_000_000) == 0, table.last_run()

    assert table.head().details["engine"] == "spark"
    assert [row[0] for row in table.rows()] == [2999]
    table.cdc([("D", (2999, *nulls))])
    assert table.run(driver_bytes=size * 4, driver_file_bytes=1_000_000_000) == 0, table.last_run()
    assert table.head().details["engine"] == "driver"
