"""A load whose keys are in no order is sorted partition by partition, without a shuffle, where that fits in memory."""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from typing import Any

import pyarrow as pa
import pytest

from glue_jobs.core.record import DataFile
from glue_jobs.spark import load, portions, sorted_partitions
from glue_jobs.spark.column_hashes import HASHED_BYTES
from glue_jobs.spark.engine import Engine
from glue_jobs.spark.place import Place, Shape
from glue_jobs.spark.table_rows import TablePlan
from glue_jobs.spark.write_files import give_up, write_tables
from infra.local.embedded import EmbeddedAws
from tests.lake import LakeTable
from tests.protocol.runs import die
from tests.protocol.wire import Wire, once
from tests.spark.keyed_loads import COLUMNS, Rows, files_of, in_key_order, is_sorted, loaded, shuffled
from tests.work_tables import MakeTable

FEW = 1200


def _crossed(files: list[Rows]) -> list[Rows]:
    """Each partition's rows in every file."""
    return [[(key, key % 7, name) for key, _, name in rows] for rows in shuffled(files)]


def _same(rows: Sequence[tuple[Any, ...]], table: LakeTable) -> bool:
    return sorted(map(repr, table.rows())) == sorted(map(repr, rows))


@pytest.mark.parametrize("key", ["id", "name", "month,name"])
@pytest.mark.parametrize("disorder", [shuffled, _crossed])
@pytest.mark.usefixtures("spark", "without_shuffle")
def test_keys_in_no_order_need_no_shuffle(embedded_aws: EmbeddedAws, disorder: Any, key: str) -> None:
    """Whatever the key: an int, a text, both."""
    files = disorder(files_of(in_key_order(FEW), 4))

    table = loaded(embedded_aws, files, "month", key=key)

    assert _same([row for rows in files for row in rows], table)
    assert is_sorted(table)
    assert len(table.snapshot().files) == len({row[1] for rows in files for row in rows})


@pytest.mark.usefixtures("spark", "without_shuffle")
def test_a_large_partition_comes_in_files_of_the_target_size(embedded_aws: EmbeddedAws) -> None:
    files = shuffled([in_key_order(200_000, months=2)])

    table = loaded(embedded_aws, files, "month", target_file_bytes=400_000)

    assert _same(files[0], table)
    assert is_sorted(table)
    assert len(table.snapshot().files) > 2


@pytest.mark.parametrize(("name", "limit"), [("MOST_KEYS", FEW - 1), ("OPEN_BYTES", portions.WRITER_BYTES + 1000), ("MOST_READS", 0.5)])
@pytest.mark.usefixtures("spark")
def test_what_is_too_much_goes_through_a_shuffle(
    embedded_aws: EmbeddedAws, monkeypatch: pytest.MonkeyPatch, name: str, limit: float
) -> None:
    """More keys than the driver holds the hashes of, a partition that a task can't hold, files that would be read too often."""
    monkeypatch.setattr(sorted_partitions if name == "MOST_KEYS" else portions, name, limit)
    monkeypatch.setattr(sorted_partitions, "_Write", None)  # else it would be made here
    files = shuffled(files_of(in_key_order(FEW), 4))

    table = loaded(embedded_aws, files, "month")

    assert _same([row for rows in files for row in rows], table)
    assert is_sorted(table)


@pytest.mark.usefixtures("spark")
def test_of_a_key_that_comes_twice_the_last_row_stays(embedded_aws: EmbeddedAws) -> None:
    """Also where the two are in different partitions, or differ in their bytes alone: −0.0 is 0.0, and one NaN another."""
    columns = pa.schema([("id", pa.float64()), ("month", pa.int32()), ("name", pa.string())])
    rows: Rows = [(float(at), at % 3, f"n{at}") for at in range(1, 100)]
    random.Random(1).shuffle(rows)
    files = [
        [(0.0, 0, "zero"), (7.5, 0, "first"), (float("nan"), 1, "nan"), *rows],
        [(9.5, 1, "only"), (-0.0, 2, "last zero"), (7.5, 1, "last"), (-float("nan"), 2, "last nan")],
    ]

    table = loaded(embedded_aws, files, "month", columns=columns)

    assert _same([*rows, *files[1]], table)


@pytest.mark.usefixtures("spark")
def test_a_delete_takes_its_row_along(embedded_aws: EmbeddedAws) -> None:
    """DMS writes no delete into a load file, but a D is a D wherever it stands, also of a key that is not there."""
    table = LakeTable(embedded_aws.environment(), embedded_aws.raw, embedded_aws.lake, COLUMNS, "id", "month")
    rows = [("I", (3, 1, "c")), ("I", (1, 1, "a")), ("D", (2, None, None)), ("I", (5, 2, "e")), ("I", (4, 2, "d")), ("D", (5, None, None))]
    table.put_raw("LOAD00000001.parquet", table.parquet(rows))

    assert table.run("LoadInitial", driver_bytes=0) == 0

    assert sorted(table.rows()) == [(1, 1, "a"), (3, 1, "c"), (4, 2, "d")]


@pytest.mark.usefixtures("spark")
def test_rows_that_are_more_in_memory_than_planned_go_through_a_shuffle(embedded_aws: EmbeddedAws, monkeypatch: pytest.MonkeyPatch) -> None:
    """Texts in one of the partitions that are wider than the first ones: what was written of the others is given up."""
    given_up: list[str] = []

    def noted(place: Place, files: Iterable[DataFile]) -> None:
        files = list(files)
        given_up.extend(file.path for file in files)
        give_up(place, files)

    monkeypatch.setattr(sorted_partitions, "give_up", noted)
    monkeypatch.setattr(sorted_partitions, "MOST_HELD", 100_000)
    rows: Rows = [(key, month, "x" * 10_000 if month == 4 else "y") for key, month, _ in in_key_order(100, months=5)]

    table = loaded(embedded_aws, shuffled(files_of(rows, 5)), "month")

    assert {path.split("/")[0] for path in given_up} == {f"month={month}" for month in range(4)}
    assert table.open_uploads() == []
    assert _same(rows, table)
    assert is_sorted(table)


def test_a_driver_that_dies_while_it_gives_them_up_leaves_what_nobody_sees(spark_table: MakeTable, monkeypatch: pytest.MonkeyPatch) -> None:
    """At the second of four partitions: uploads that a lifecycle rule removes. The next run loads the table."""
    table, wire = spark_table(COLUMNS, partition_key="month"), Wire()
    rows: Rows = [(key, month, "x" * 10_000 if month == 4 else "y") for key, month, _ in in_key_order(100, months=5)]
    for number, some in enumerate(shuffled(files_of(rows, 5)), 1):
        table.load(some, number)
    second = once(lambda request: request.operation == "AbortMultipartUpload", lambda _: wire.kill(), skip=1)

    with monkeypatch.context() as patch:
        patch.setattr(sorted_partitions, "MOST_HELD", 100_000)
        die(wire, table, "LoadInitial", second, driver_bytes="0")

    assert len(wire.of("AbortMultipartUpload")) == 2
    assert len(table.open_uploads()) == 3
    assert (table.visible(), table.item().get("Head")) == (set(), None)
    assert table.run("LoadInitial", driver_bytes="0") == 0, table.last_run()
    assert _same(rows, table)
    assert is_sorted(table)
    table.check_folder()


@pytest.mark.usefixtures("spark", "without_shuffle")
def test_many_partitions_in_every_batch_are_one_table_until_they_are_written(embedded_aws: EmbeddedAws) -> None:
    """200 partitions, a few rows of each in each file, and no file of its own for a row that another task writes."""
    rows: Rows = [(key, key % 200, name) for key, _, name in in_key_order(FEW)]

    table = loaded(embedded_aws, shuffled(files_of(rows, 3)), "month")

    assert _same(rows, table)
    assert is_sorted(table)
    assert len(table.snapshot().files) == 200


@pytest.mark.usefixtures("spark")
def test_keys_that_only_seem_to_be_one_are_two(embedded_aws: EmbeddedAws) -> None:
    """Texts that differ behind what is hashed of them: Spark finds out."""
    rows: Rows = [(key, key % 3, "n" * HASHED_BYTES + name) for key, _, name in shuffled([in_key_order(100)])[0]]

    table = loaded(embedded_aws, [rows], "month", key="name")

    assert _same(rows, table)
    assert is_sorted(table)


def _by_partition(engine: Engine, place: Place, shape: Shape, plan: TablePlan) -> Any:
    """In this process."""
    return sorted_partitions.write_by_partition(engine, place, shape, plan.sources, plan.size_bytes, plan.rows)


def test_a_write_that_fails_gives_up_the_partitions_before(new_table: MakeTable, monkeypatch: pytest.MonkeyPatch) -> None:
    """The third of five partitions of a task can't be written: none of its uploads stays open, and the next run loads the table."""
    table = new_table(COLUMNS, partition_key="month")
    rows = [(key, key % 5, name) for key, _, name in shuffled([in_key_order(100)])[0]]
    table.load(rows)
    written: list[Any] = []

    def fails(place: Place, shape: Shape, values: Any, *given: Any) -> Any:
        if len(written) == 2:
            raise OSError("the connection was lost")
        written.append(values)
        return write_tables(place, shape, values, *given)

    with monkeypatch.context() as patch:
        patch.setattr(load, "write_table", _by_partition)
        patch.setattr(sorted_partitions, "write_tables", fails)
        assert table.run("LoadInitial") != 0

    assert len(written) == 2
    assert table.open_uploads() == []
    assert table.visible() == set()
    assert table.run("LoadInitial") == 0
    assert _same(rows, table)
