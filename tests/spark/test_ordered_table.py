"""A load whose files are in the order of their keys is written without a shuffle; any other goes through one, with the same rows."""

from __future__ import annotations

import itertools
import random
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from glue_jobs.spark import ordered_table, table_rows
from glue_jobs.spark.ordered_table import Stretch, ascends, planned, portions_of
from infra.local.embedded import EmbeddedAws
from tests.lake import LakeTable

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

COLUMNS = pa.schema([("id", pa.int64()), ("month", pa.int32()), ("name", pa.string())])
ROWS = 6000
Rows = list[tuple[int, int, str]]


def in_key_order(rows: int = ROWS, months: int = 10) -> Rows:
    """The month grows with the key."""
    return [(at, at * months // rows, f"n{at * 7919 % rows}") for at in range(rows)]


def files_of(rows: Rows, count: int) -> list[Rows]:
    return [rows[start : start + len(rows) // count] for start in range(0, len(rows), len(rows) // count)]


def loaded(aws: EmbeddedAws, files: list[Rows], partition_key: str, **settings: Any) -> LakeTable:
    table = LakeTable(aws.environment(), aws.raw, aws.lake, COLUMNS, "id", partition_key)
    for number, rows in enumerate(files, 1):
        table.load(rows, number)
    assert table.run("LoadInitial", driver_bytes=0, **settings) == 0
    return table


@pytest.fixture
def without_shuffle(monkeypatch: pytest.MonkeyPatch) -> None:
    """A row that is about to be shuffled fails the load."""

    def fail(*_: Any) -> None:
        raise AssertionError("shuffled")

    monkeypatch.setattr(table_rows, "_source_rows", fail)


def sorted_and_apart(table: LakeTable) -> bool:
    """Whether no two files of a partition have keys between each other's."""
    files = sorted(table.snapshot().files.values(), key=lambda file: (file.partition, file.low or ()))
    pairs = [(first, second) for first, second in itertools.pairwise(files) if first.partition == second.partition]
    return all(first.high < second.low for first, second in pairs if first.high and second.low)


@pytest.mark.parametrize("partition_key", ["null", "month"])
@pytest.mark.usefixtures("spark", "without_shuffle")
def test_files_in_the_order_of_keys_need_no_shuffle(embedded_aws: EmbeddedAws, partition_key: str) -> None:
    """Also where the files' numbers are in another order than their keys."""
    rows = in_key_order()
    files = files_of(rows, 6)
    files[1], files[4] = files[4], files[1]

    table = loaded(embedded_aws, files, partition_key)

    assert sorted(table.rows()) == rows
    assert sorted_and_apart(table)
    assert len(table.snapshot().files) == (1 if partition_key == "null" else 10)


@pytest.mark.usefixtures("spark", "without_shuffle")
def test_a_large_partition_is_cut_where_files_end(embedded_aws: EmbeddedAws) -> None:
    rows = in_key_order(months=2)

    table = loaded(embedded_aws, files_of(rows, 12), "month", target_file_bytes=8_000)

    assert sorted(table.rows()) == rows
    assert sorted_and_apart(table)
    assert len(table.snapshot().files) == 4


def _shuffled(files: list[Rows]) -> list[Rows]:
    return [random.Random(1).sample(rows, len(rows)) for rows in files]


def _overlapping(files: list[Rows]) -> list[Rows]:
    return [*files[:-1], [files[0][-1], *files[-1]]]


def _doubled(files: list[Rows]) -> list[Rows]:
    last = files[-1][-1]
    return [*files[:-1], [*files[-1], (last[0], last[1], "again")]]


def _uncorrelated(files: list[Rows]) -> list[Rows]:
    return [[(key, key % 97, name) for key, _, name in rows] for rows in files]


@pytest.mark.parametrize("partition_key", ["null", "month"])
@pytest.mark.parametrize("disorder", [_shuffled, _overlapping, _doubled, _uncorrelated])
@pytest.mark.usefixtures("spark")
def test_any_other_order_comes_to_the_same_rows(embedded_aws: EmbeddedAws, partition_key: str, disorder: Any) -> None:
    files = disorder(files_of(in_key_order(1200), 4))

    table = loaded(embedded_aws, files, partition_key)

    last = {key: (key, month, name) for rows in files for key, month, name in rows}
    assert sorted(table.rows()) == [last[key] for key in sorted(last)]
    assert sorted_and_apart(table)


def test_a_task_has_no_more_partitions_open_than_it_can_hold() -> None:
    """Of large partitions four, of small ones as many as come to its share of the rows."""
    large = {0: Stretch((0,), (1,), 12 * 10**6, {(str(number),): 10**6 for number in range(12)})}
    small = {0: Stretch((0,), (1,), 1200, {(str(number),): 100 for number in range(12)})}

    assert [len(portion.partitions) for portion in portions_of(large, 100.0, 2.0**40, 1)] == [4, 4, 4]
    assert [len(portion.partitions) for portion in portions_of(small, 100.0, 2.0**40, 1)] == [12]
    assert [len(portion.partitions) for portion in portions_of(small, 100.0, 2.0**40, 3)] == [4, 4, 4]


def test_work_that_a_few_tasks_would_have_alone_is_left_to_a_shuffle() -> None:
    """One large file in key order, on a cluster; and partitions that have nothing to do with the key, each in every file."""
    one = {0: Stretch((0,), (1,), 10**8, {("a",): 10**8})}
    crossed = {at: Stretch((at,), (at,), 3 * 10**6, {(str(number),): 10**6 for number in range(3)}) for at in range(40)}

    assert planned(one, 5e9, 128e6, slots=20) is None
    assert planned(one, 5e9, 128e6, slots=1) is not None
    assert planned(crossed, 5e9, 1e12, slots=20) is None
    assert planned({0: Stretch((0,), (1,), 10**6, {("a",): 10**6})}, 5e7, 128e6, slots=20) is not None, "small: one task is short"


@pytest.mark.parametrize("partition_key", ["null", "month"])
@pytest.mark.usefixtures("spark", "without_shuffle")
def test_a_load_of_nothing_but_deletes_is_an_empty_table(embedded_aws: EmbeddedAws, partition_key: str) -> None:
    table = LakeTable(embedded_aws.environment(), embedded_aws.raw, embedded_aws.lake, COLUMNS, "id", partition_key)
    table.put_raw("LOAD00000001.parquet", table.parquet([("D", (1, 1, "a")), ("D", (2, 1, "b"))]))

    assert table.run("LoadInitial", driver_bytes=0) == 0

    assert table.visible() == set()


def test_a_deleted_row_is_left_out(embedded_aws: EmbeddedAws, spark: SparkSession) -> None:
    """DMS writes no delete into a load file, but a D is a D wherever it stands."""
    del spark
    table = LakeTable(embedded_aws.environment(), embedded_aws.raw, embedded_aws.lake, COLUMNS, "id", "month")
    table.put_raw("LOAD00000001.parquet", table.parquet([("I", (1, 1, "a")), ("D", (2, None, None)), ("I", (3, 2, "c"))]))

    assert table.run("LoadInitial", driver_bytes=0) == 0

    assert sorted(table.rows()) == [(1, 1, "a"), (3, 2, "c")]


@pytest.mark.usefixtures("spark")
def test_what_was_counted_is_compared_with_what_was_written(embedded_aws: EmbeddedAws, monkeypatch: pytest.MonkeyPatch) -> None:
    """A source that gives other rows the second time ends the load, and nothing is seen of it."""
    table = LakeTable(embedded_aws.environment(), embedded_aws.raw, embedded_aws.lake, COLUMNS, "id", "month")
    table.load(in_key_order(100), 1)
    portions = portions_of
    monkeypatch.setattr(
        ordered_table,
        "portions_of",
        lambda *given: [ordered_table.Portion(each.partitions, each.sources, each.rows + 1) for each in portions(*given)],
    )

    assert table.run("LoadInitial", driver_bytes=0) == 1

    assert table.visible() == set()
    assert table.open_uploads() == []


def rows_of(*keys: Any) -> pa.Table:
    return pa.table({"a": [key[0] for key in keys], "b": [key[1] for key in keys]})


def test_keys_that_ascend() -> None:
    nan = float("nan")
    assert ascends(rows_of((1, "a")), ("a", "b"))
    assert ascends(rows_of((1, "a"), (1, "b"), (2, "a")), ("a", "b"))
    assert not ascends(rows_of((1, "a"), (1, "a")), ("a", "b"))
    assert not ascends(rows_of((1, "b"), (1, "a"), (2, "a")), ("a", "b"))
    assert not ascends(rows_of((1.0, "a"), (nan, "b")), ("a",))
    assert not ascends(rows_of((None, "a"), (1, "b")), ("a",))


held = st.lists(
    st.dictionaries(st.integers(0, 6).map(lambda number: (str(number),)), st.integers(1, 50), max_size=4), min_size=1, max_size=12
)


@given(held=held, file_rows=st.integers(1, 200), tasks=st.integers(1, 9), numbers=st.randoms(use_true_random=False))
def test_portions_have_every_row_once(held: list[dict[tuple[str], int]], file_rows: int, tasks: int, numbers: random.Random) -> None:
    """Whatever the table: each partition's rows of each source are in one portion, in the order of keys."""
    order = numbers.sample(range(len(held)), len(held))
    stretches = {at: Stretch((place,), (place,), sum(held[at].values()), dict(held[at])) for place, at in enumerate(order)}

    portions = portions_of(stretches, 1.0, file_rows, tasks)

    places = {at: place for place, at in enumerate(order)}
    for portion in portions:
        assert portion.partitions
        assert [places[at] for at in portion.sources] == sorted(places[at] for at in portion.sources)
        assert portion.rows == sum(held[at].get(values, 0) for at in portion.sources for values in portion.partitions)
    assert sum(portion.rows for portion in portions) == sum(sum(rows.values()) for rows in held)
