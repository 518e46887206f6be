"""A load whose files are in the order of their keys is written without a shuffle; any other goes through one, with the same rows."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from glue_jobs.spark import portions
from glue_jobs.spark.ordered_table import ascends
from glue_jobs.spark.portions import Portion
from infra.local.embedded import EmbeddedAws
from tests.lake import LakeTable
from tests.spark.keyed_loads import COLUMNS, Rows, files_of, in_key_order, is_sorted, loaded, shuffled


@pytest.mark.parametrize("partition_key", ["null", "month"])
@pytest.mark.usefixtures("spark", "without_shuffle")
def test_files_in_the_order_of_keys_need_no_shuffle(embedded_aws: EmbeddedAws, partition_key: str) -> None:
    """Also where the files' numbers are in another order than their keys."""
    rows = in_key_order()
    files = files_of(rows, 6)
    files[1], files[4] = files[4], files[1]

    table = loaded(embedded_aws, files, partition_key)

    assert sorted(table.rows()) == rows
    assert is_sorted(table)
    assert len(table.snapshot().files) == (1 if partition_key == "null" else 10)


@pytest.mark.usefixtures("spark", "without_shuffle")
def test_a_large_partition_is_cut_where_files_end(embedded_aws: EmbeddedAws) -> None:
    rows = in_key_order(months=2)

    table = loaded(embedded_aws, files_of(rows, 12), "month", target_file_bytes=8_000)

    assert sorted(table.rows()) == rows
    assert is_sorted(table)
    assert len(table.snapshot().files) == 4


def _overlapping(files: list[Rows]) -> list[Rows]:
    return [*files[:-1], [files[0][-1], *files[-1]]]


def _doubled(files: list[Rows]) -> list[Rows]:
    last = files[-1][-1]
    return [*files[:-1], [*files[-1], (last[0], last[1], "again")]]


def _uncorrelated(files: list[Rows]) -> list[Rows]:
    return [[(key, key % 97, name) for key, _, name in rows] for rows in files]


@pytest.mark.parametrize("partition_key", ["null", "month"])
@pytest.mark.parametrize("disorder", [shuffled, _overlapping, _doubled, _uncorrelated])
@pytest.mark.usefixtures("spark")
def test_any_other_order_comes_to_the_same_rows(embedded_aws: EmbeddedAws, partition_key: str, disorder: Any) -> None:
    files = disorder(files_of(in_key_order(1200), 4))

    table = loaded(embedded_aws, files, partition_key)

    last = {key: (key, month, name) for rows in files for key, month, name in rows}
    assert sorted(table.rows()) == [last[key] for key in sorted(last)]
    assert is_sorted(table)


@pytest.mark.parametrize("partition_key", ["null", "month"])
@pytest.mark.usefixtures("spark", "without_shuffle")
def test_a_load_of_nothing_but_deletes_is_an_empty_table(embedded_aws: EmbeddedAws, partition_key: str) -> None:
    table = LakeTable(embedded_aws.environment(), embedded_aws.raw, embedded_aws.lake, COLUMNS, "id", partition_key)
    table.put_raw("LOAD00000001.parquet", table.parquet([("D", (1, 1, "a")), ("D", (2, 1, "b"))]))

    assert table.run("LoadInitial", driver_bytes=0) == 0

    assert table.visible() == set()


@pytest.mark.parametrize("rows", [[(1, 1, "a"), (3, 2, "c")], [(3, 2, "c"), (1, 1, "a")]], ids=["in-order", "in-no-order"])
@pytest.mark.usefixtures("spark", "without_shuffle")
def test_a_deleted_row_is_left_out(embedded_aws: EmbeddedAws, rows: Rows) -> None:
    """DMS writes no delete into a load file, but a D is a D wherever it stands."""
    table = LakeTable(embedded_aws.environment(), embedded_aws.raw, embedded_aws.lake, COLUMNS, "id", "month")
    table.put_raw("LOAD00000001.parquet", table.parquet([("I", rows[0]), ("D", (2, None, None)), ("I", rows[1])]))

    assert table.run("LoadInitial", driver_bytes=0) == 0

    assert sorted(table.rows()) == [(1, 1, "a"), (3, 2, "c")]


@pytest.mark.parametrize("order", [list, shuffled])
@pytest.mark.usefixtures("spark")
def test_what_was_counted_is_compared_with_what_is_read(embedded_aws: EmbeddedAws, monkeypatch: pytest.MonkeyPatch, order: Any) -> None:
    """A source that gives other rows the second time ends the load, whether its keys are in order or not, and nothing is seen of it."""
    table = LakeTable(embedded_aws.environment(), embedded_aws.raw, embedded_aws.lake, COLUMNS, "id", "month")
    table.load(order([in_key_order(100)])[0], 1)
    planned = portions.portions_of
    monkeypatch.setattr(
        portions, "portions_of", lambda *given: [Portion(each.partitions, each.sources, each.rows + 1) for each in planned(*given)]
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
