"""A full load by Spark: rows of a key that comes twice, wherever they lie, and engines that agree."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from glue_jobs.core.record import DataFile
from glue_jobs.spark import load, table_rows
from glue_jobs.spark.engine import Engine
from glue_jobs.spark.net_changes import OP
from glue_jobs.spark.place import Place, Shape
from glue_jobs.spark.table_rows import TablePlan
from glue_jobs.spark.write_files import FileWriter
from infra.local.embedded import EmbeddedAws
from tests.lake import DRIVER, LakeTable
from tests.work_tables import MakeTable

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

COLUMNS = pa.schema([("a", pa.float64()), ("b", pa.string()), ("note", pa.string())])
FLOATS = [0.0, -0.0, 1.5, math.nan, -7.25, math.inf]


def rows_of(version: int) -> list[tuple[Any, ...]]:
    return [(FLOATS[at % 6], f"k{at % 25}", f"version {version}, row {at}") for at in range(20_000)]


@pytest.mark.parametrize("partition_key", ["null", "b"])
@pytest.mark.usefixtures("spark")
def test_both_engines_keep_the_last_row_of_each_key(embedded_aws: EmbeddedAws, partition_key: str) -> None:
    """Keys come many times, within one file, over files and over the batches that Spark hands on."""
    found = {}
    for driver_bytes in ("0", DRIVER):
        table = LakeTable(embedded_aws.environment(), embedded_aws.raw, embedded_aws.lake, COLUMNS, "a,b", partition_key)
        for number in (1, 2):
            table.load(rows_of(number), number)
        assert table.run("LoadInitial", driver_bytes=driver_bytes, target_file_bytes=2000) == 0
        found[driver_bytes] = [(repr(row[0] + 0.0), *row[1:]) for row in table.rows()]

    assert len(found["0"]) == 125  # five different floats, with 25 of the texts each
    assert found["0"] == found[DRIVER]
    assert all("version 2" in row[2] for row in found["0"])


def test_a_load_file_that_ends_with_a_delete_leaves_the_row_out(embedded_aws: EmbeddedAws, spark: SparkSession) -> None:
    """DMS does not write one, but a D is a D wherever it stands."""
    del spark
    table = LakeTable(embedded_aws.environment(), embedded_aws.raw, embedded_aws.lake, COLUMNS, "b")
    table.put_raw("LOAD00000001.parquet", table.parquet([("I", (1.0, "x", "1")), ("I", (1.0, "y", "2")), ("D", (None, "x", None))]))

    assert table.run("LoadInitial", driver_bytes=0) == 0

    assert [row[1] for row in table.rows()] == ["y"]


def test_a_writer_that_fails_gives_up_the_partitions_before(new_table: MakeTable, monkeypatch: pytest.MonkeyPatch) -> None:
    """A task of the shuffle gets rows of two partitions; the second one's can't be written."""
    table = new_table(pa.schema([("id", pa.int64()), ("month", pa.int32())]), partition_key="month")
    table.load([(1, 0), (2, 1)])
    finished: list[str] = []

    class Fails(FileWriter):
        def write(self, table: pa.Table) -> None:
            if finished:
                raise OSError("the connection was lost")
            super().write(table)

        def finish(self) -> list[DataFile]:
            files = super().finish()
            finished.extend(file.path for file in files)
            return files

    def by_task(_: Engine, place: Place, shape: Shape, plan: TablePlan) -> Any:
        (rows,) = (rows for source in plan.sources for rows in source(place, shape))
        columns = [*(rows[name].combine_chunks() for name in ("id", "month", OP)), pa.array(["0", "1"])]
        return list(
            table_rows._PartitionedWriter(place, shape, 1, False)(iter([pa.RecordBatch.from_arrays(columns, ["c0", "c1", "op", "p0"])]))
        )

    monkeypatch.setattr(load, "write_table", by_task)
    monkeypatch.setattr(table_rows, "FileWriter", Fails)

    assert table.run("LoadInitial") != 0

    assert len(finished) == 1
    assert table.open_uploads() == []
