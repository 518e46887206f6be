"""How large a load's data files will be is told from its first rows."""

from __future__ import annotations

import io
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from glue_jobs.aws.objects import list_files
from glue_jobs.core.limits import Limits
from glue_jobs.core.raw_reading import Reading
from glue_jobs.core.schema import Column
from glue_jobs.spark import sizes
from glue_jobs.spark.data_file_writer import DataFileWriter
from glue_jobs.spark.place import Shape
from glue_jobs.spark.raw_batch import read_heads
from glue_jobs.spark.reading import reading_place
from glue_jobs.spark.row_batches import BATCH_ROWS
from tests.spark.tables import WorkTable
from tests.work_tables import MakeTable

ROWS = 200_000


@pytest.fixture
def table(new_table: MakeTable) -> WorkTable:
    return new_table()


def numbers(rows: int) -> pa.Table:
    """As hard to compress as these numbers are anywhere in it."""
    return pa.table({"id": np.random.default_rng(1).integers(0, 2**40, rows)})


def put(table: WorkTable, number: int, *groups: pa.Table) -> None:
    """A load file of these row groups."""
    sink = io.BytesIO()
    with pq.ParquetWriter(sink, groups[0].schema) as writer:
        for group in groups:
            writer.write_table(group)
    table.put_raw(f"LOAD{number:08X}.parquet", sink.getvalue())


def expected(table: WorkTable) -> float:
    place = replace(reading_place(table.environment, table.path.bucket, table.out_path, Limits()), compression="snappy")
    heads = read_heads(place, list(list_files(table.clients.s3, table.path.bucket, table.path.raw.key)), Reading(str(table.path)))
    return sizes.expected_bytes(place, Shape(str(table.path), (Column("id", "bigint"),), ("id",)), heads)


def test_a_row_group_without_rows_says_nothing(table: WorkTable) -> None:
    """Some programs begin a file with one: by its bytes each row would be as large as a footer."""
    put(table, 1, numbers(0), numbers(0), numbers(5000))

    assert 5000 * 5 < expected(table) < 5000 * 10


def test_a_file_without_rows_says_nothing(table: WorkTable) -> None:
    """However large it is."""
    put(table, 1, numbers(5000))
    put(table, 2, numbers(0).replace_schema_metadata({"note": "x" * 500_000}))

    assert 5000 * 5 < expected(table) < 5000 * 10


def test_of_a_huge_row_group_only_the_first_rows_are_taken(table: WorkTable, monkeypatch: pytest.MonkeyPatch) -> None:
    """They tell as much as all of them."""
    put(table, 1, numbers(ROWS))
    written = DataFileWriter.write
    sampled: list[int] = []

    def write(self: DataFileWriter, rows: pa.Table, *more: Any) -> Any:
        sampled.append(rows.num_rows)
        return written(self, rows, *more)

    monkeypatch.setattr(DataFileWriter, "write", write)

    found = expected(table)

    assert sizes.SAMPLE_ROWS <= sum(sampled) <= BATCH_ROWS
    assert ROWS * 5 < found < ROWS * 10
