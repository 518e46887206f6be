"""Values that tasks share: small ones by broadcast, large ones as a file on each node; the same value either way."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from pyspark import SparkFiles

from glue_jobs.spark import engine as engine_module
from glue_jobs.spark import shared as shared_module
from glue_jobs.spark.engine import DriverEngine, SparkEngine
from glue_jobs.spark.shared import BROADCAST_BYTES, Broadcast, InFile, Shared
from tests.work_tables import MakeTable

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
    engine.drop(shared)


def sent_bytes() -> list[int]:
    """The sizes of all files that this process has sent, in the driver and on the node."""
    names = [path.name for path in Path(shared_module._folder(os.getpid()).name).iterdir()]
    on_node = [Path(SparkFiles.get(name)) for name in names]
    return [path.stat().st_size for path in (*map(shared_module._drivers_copy, names), *on_node)]


def test_a_dropped_file_takes_no_disk_and_stays_with_who_mapped_it(spark: SparkSession) -> None:
    """A file that is gone would stop each node that joins later."""
    engine, rows = SparkEngine(spark), BROADCAST_BYTES // 8 + 1000
    shared = engine.share(packed(rows), unpack)
    engine.map(Sum(shared), [rows - 1])
    mapped = shared.get()
    assert any(sent_bytes())

    engine.drop(shared)

    assert sent_bytes() != [] == [size for size in sent_bytes() if size]
    assert mapped["n"].to_pylist() == list(range(rows))
    later = engine.share(packed(rows), unpack)
    assert engine.map(Sum(later), [rows - 1]) == [(rows - 1, 0)]
    engine.drop(later)


def test_batches_leave_no_bytes_on_the_nodes(spark_table: MakeTable, monkeypatch: pytest.MonkeyPatch) -> None:
    """Net changes that go as files: the rows are right, and after each batch the files are empty."""
    monkeypatch.setattr(engine_module, "BROADCAST_BYTES", -1)
    table = spark_table()
    table.load([(number, f"a{number}", 0) for number in range(50)])
    table.sync(driver_bytes="0")
    for number in range(2):
        table.cdc([("U", (number, "b", 1)), ("D", (10 + number, None, None)), ("I", (100 + number, "c", 2))])
        table.sync(driver_bytes="0")
        assert sent_bytes() != [] == [size for size in sent_bytes() if size]

    assert len(table.rows()) == 50
    assert {(0, "b", 1), (1, "b", 1), (100, "c", 2), (101, "c", 2)} <= set(table.rows())


def test_the_driver_unpacks_once() -> None:
    shared = DriverEngine().share(packed(10), unpack)

    assert shared.get() is shared.get()
    assert shared.get()["n"].to_pylist() == list(range(10))
