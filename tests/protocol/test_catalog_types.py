"""What the Glue table says of columns and partitions after their types have changed: nothing that makes a query fail."""

from __future__ import annotations

from datetime import date, timedelta
from typing import Any

import pyarrow as pa
import pytest

from infra.local.dms_files import DmsRow
from tests.lake import START, LakeTable
from tests.protocol.conftest import TableMaker
from tests.protocol.test_catalog_step import glue_table, partitions

NARROW = pa.schema([("id", pa.int64()), ("qty", pa.int32())])
WIDE = pa.schema([("id", pa.int64()), ("qty", pa.int64()), ("note", pa.string())])


def partition_columns(table: LakeTable) -> list[tuple[str, str]]:
    return [(column["Name"], column["Type"]) for column in glue_table(table)["PartitionKeys"]]


@pytest.mark.parametrize(
    ("before", "after", "kept"),
    [
        ((pa.string(), "n/a", "7"), (pa.int32(), 0, 7), [["0"], ["7"]]),
        ((pa.int32(), 1, 7), (pa.int64(), 1, 2**40), [["1"], ["1099511627776"], ["7"]]),
        ((pa.int32(), 1, 7), (pa.string(), "one", "7"), [["1"], ["7"], ["one"]]),
    ],
    ids=["another type", "a wider one", "texts"],
)
def test_a_reload_with_another_type_of_the_partition_column(make_table: TableMaker, before: Any, after: Any, kept: list[list[str]]) -> None:
    """A partition whose value is none of the new type makes every query fail; those that are stay, without a row."""
    columns = [pa.schema([("id", pa.int64()), ("region", kind)]) for kind, *_ in (before, after)]
    table = make_table(columns=columns[0], partition_key="region")
    table.load(list(enumerate(before[1:])))
    table.sync()
    table.load(list(enumerate(after[1:])), columns=columns[1])
    table.edit(LoadQuietMinutes="0")
    table.sync()

    assert (partitions(table), table.verify()) == (kept, [])


def test_a_repartition_that_takes_a_name_for_another_column(make_table: TableMaker) -> None:
    """The partitions of the first one go."""
    columns = pa.schema([("id", pa.int64()), ("status", pa.string()), ("day", pa.date32())])
    table = make_table(columns=columns, partition_key="status as p")
    table.load([(1, "open", date(2024, 1, 2)), (2, "paid", date(2023, 1, 2))])
    table.sync()
    table.edit(PartitionKey="year(day) as p", Request="repartition")
    table.sync()

    assert (partition_columns(table), partitions(table), table.verify()) == ([("p", "int")], [["2023"], ["2024"]], [])


@pytest.fixture
def grown(make_table: TableMaker) -> LakeTable:
    """A table that got wider columns while its history was not kept, which is on again."""
    table = make_table(columns=NARROW, timestamp_column="committed")
    table.edit(History="true")
    table.put_raw("LOAD00000001.parquet", table.parquet([DmsRow("I", (1, 1), START), DmsRow("I", (2, 2), START)]))
    table.sync()
    table.edit(History="false")
    table.cdc([DmsRow("U", (1, 2**40, "n"), START + timedelta(days=31))], columns=WIDE)
    table.sync()
    table.edit(History="true")
    return table


@pytest.mark.parametrize("job", ["LoadIncremental", "BackfillHistory"])
def test_the_history_s_partitions_follow_a_table_that_went_on_without_it(grown: LakeTable, job: str) -> None:
    """By a run that catches up, by a backfill, and back again by an undo."""
    assert grown.run(job) == 0
    caught_up = grown.verify()

    assert grown.run("Rollback", to="previous", resume="true") == 0

    assert (caught_up, grown.verify()) == ([], [])


def test_what_a_person_says_of_a_partition_column_stays(make_table: TableMaker) -> None:
    """As what they say of the others."""
    table = make_table(partition_key="name")
    table.load([(1, "a")])
    table.sync()
    found = glue_table(table)
    given = {name: found[name] for name in ("Name", "TableType", "PartitionKeys", "StorageDescriptor", "Parameters")}
    for columns in (given["PartitionKeys"], given["StorageDescriptor"]["Columns"]):
        columns[0]["Comment"] = "said by hand"
    table.clients.glue.update_table(DatabaseName=table.environment["DMSLAKE_DATABASE"], TableInput=given)

    table.cdc([("I", (2, "b"))])
    table.sync()

    found = glue_table(table)
    assert [columns[0]["Comment"] for columns in (found["PartitionKeys"], found["StorageDescriptor"]["Columns"])] == ["said by hand"] * 2
