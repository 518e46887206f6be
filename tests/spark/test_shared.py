"""Values that tasks share: small ones by broadcast, large ones as a file on each node; the same value either way."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from glue_jobs.spark.engine import DriverEngine, SparkEngine
from glue_jobs.spark.shared import BROADCAST_BYTES, Broadcast, InFile, Shared

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def unpack(payload: Any) -> pa.Table:
    return pa.ipc.open_stream(payload).read_all()


def packed(rows: int) -> bytes:
    table = pa.table({"n": pa.array(range(rows), pa.int64())})
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue().to_pybytes()


class Sum:
    """A task: the sum of the shared value's numbers from one place on, and how many bytes of it are this process's own."""

    def __init__(self, shared: Shared[pa.Table]) -> None:
        self.shared = shared

    def __call__(self, start: int) -> tuple[int, int]:
        before = pa.total_allocated_bytes()
        table = self.shared.get()
        return sum(table["n"][start:].to_pylist()), pa.total_allocated_bytes() - before


@pytest.mark.parametrize(("rows", "kind"), [(1000, Broadcast), (BROADCAST_BYTES // 8 + 1000, InFile)])
def test_tasks_on_spark_read_what_the_driver_shared(spark: SparkSession, rows: int, kind: type[Shared[pa.Table]]) -> None:
    """The larger one is mapped: Arrow allocates nothing for it."""
    engine = SparkEngine(spark)
    shared = engine.share(packed(rows), unpack)
    starts = [rows - 1, rows - 2, rows - 10]

    assert isinstance(shared, kind)
    assert engine.map(Sum(shared), starts) == [(sum(range(start, rows)), 0) for start in starts]


def test_the_driver_unpacks_once() -> None:
    shared = DriverEngine().share(packed(10), unpack)

    assert shared.get() is shared.get()
    assert shared.get()["n"].to_pylist() == list(range(10))
