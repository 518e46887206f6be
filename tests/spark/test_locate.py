"""Finding the data files that hold given keys: by the records alone, then by reading the key's columns."""

from __future__ import annotations

from datetime import date, datetime, timezone
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from glue_jobs.core.limits import Limits
from glue_jobs.core.schema import Column
from glue_jobs.spark.engine import DriverEngine
from glue_jobs.spark.locate import GivenKeys, Located, candidates_by_range, locate, unpack_keys
from glue_jobs.spark.past import PastFile
from glue_jobs.spark.place import Place, Shape
from glue_jobs.spark.reading import reading_place
from tests.spark.tables import WorkTable
from tests.work_tables import MakeTable

LINES = pa.schema([("id", pa.int64()), ("order_id", pa.int64()), ("shop", pa.string()), ("qty", pa.int32())])
MOMENT = datetime(2024, 5, 1, 12, 0, 0, 1, timezone.utc)
VALUES: list[tuple[pa.DataType, list[Any], list[Any], int]] = [
    (pa.int64(), [1, 2, 2, None], [2, 7], 2),
    (pa.int16(), [-5, 5], [5], 1),
    (pa.string(), ["a", "", "ä", None], ["", "ä", "b"], 2),
    (pa.decimal128(10, 2), [Decimal("1.10"), Decimal("-0.01"), None], [Decimal("1.10"), Decimal("0.01")], 1),
    (pa.date32(), [date(2024, 5, 1), date(1, 1, 1), None], [date(1, 1, 1)], 1),
    (pa.timestamp("us", tz="UTC"), [MOMENT, None], [MOMENT], 1),
    (pa.float64(), [float("nan"), -0.0, 0.5, None], [float("nan"), 0.0], 2),
    (pa.bool_(), [True, False, None], [False], 1),
    (pa.binary(), [b"\x00", b"\xff", None], [b"\xff"], 1),
]  # fmt: skip


def placed(table: WorkTable) -> tuple[Place, Shape, list[PastFile]]:
    snapshot = table.snapshot()
    place = reading_place(table.environment, table.path.bucket, table.out_path, Limits())
    shape = Shape(str(table.path), snapshot.schema, snapshot.primary_key, snapshot.partitioning)
    return place, shape, [PastFile(snapshot.files[path], "") for path in sorted(snapshot.files)]


def keys_of(table: WorkTable, **columns: list[Any]) -> GivenKeys:
    names = list(columns)
    return GivenKeys.of(pa.table({name: pa.array(columns[name], table.columns.field(name).type) for name in names}), names)


def found(table: WorkTable, keys: GivenKeys) -> list[Located]:
    place, shape, files = placed(table)
    return locate(DriverEngine(), place, shape, keys, files)


def candidates(table: WorkTable, keys: GivenKeys) -> list[tuple[str | None, ...]]:
    _, shape, files = placed(table)
    return [each.file.partition for each in candidates_by_range(keys, shape, files)]


@pytest.mark.parametrize(("kind", "held", "asked", "rows"), VALUES, ids=[str(case[0]) for case in VALUES])
def test_keys_of_every_type_are_found_by_value(
    new_table: MakeTable, kind: pa.DataType, held: list[Any], asked: list[Any], rows: int
) -> None:
    """NaN is itself, −0.0 is 0.0, an empty text is a text; null is never found, not even by null."""
    table = new_table(pa.schema([("id", pa.int64()), ("v", kind)]))
    table.load([(number, value) for number, value in enumerate(held)])
    table.sync()
    keys = keys_of(table, v=[*asked, None, asked[0]])

    (located,) = found(table, keys)

    assert len(keys) == len(asked)
    assert located.rows == rows
    assert [keys.table.column("v")[place.item()].as_py() is not None for place in located.hits] == [True] * len(located.hits)
    assert len(unpack_keys(keys.pack())) == len(keys)


def test_a_key_of_several_columns_matches_as_a_whole(new_table: MakeTable) -> None:
    """Each column alone is there, the pair is not; a null in one column matches nothing."""
    table = new_table(LINES)
    table.load([(1, 10, "a", 1), (2, 20, "b", 2), (3, 10, "a", 3), (4, 10, None, 4)])
    table.sync()
    keys = keys_of(table, order_id=[10, 20, 10], shop=["a", "a", None])

    (located,) = found(table, keys)

    assert (located.hits.tolist(), located.counts.tolist(), len(keys)) == ([0], [2], 2)


def test_only_files_with_hits_are_named_in_the_files_order(new_table: MakeTable) -> None:
    """With the version by which they were read."""
    table = new_table(LINES, partition_key="shop")
    table.load([(1, 10, "a", 1), (2, 20, "b", 2), (3, 30, "c", 3), (4, 10, "c", 4)])
    table.sync()

    located = found(table, keys_of(table, order_id=[10, 99]))

    assert [each.path.split("/")[0] for each in located] == ["shop=a", "shop=c"]
    assert {each.version for each in located} == {""}


def test_partitions_are_ruled_out_by_their_folders(new_table: MakeTable) -> None:
    """A column that is a folder is compared with the folder's value, and needs no row to be read; the null folder holds no key."""
    table = new_table(LINES, partition_key="qty")
    table.load([(1, 10, "a", 1), (2, 20, "b", 2), (3, 30, "c", None), (4, 20, "d", 2)])
    table.sync()

    assert candidates(table, keys_of(table, qty=[2, 9])) == [("2",)]
    assert candidates(table, keys_of(table, order_id=[10, 10], qty=[1, 2])) == [("1",), ("2",)]
    assert [(each.rows, each.hits.tolist()) for each in found(table, keys_of(table, qty=[9, 2]))] == [(2, [1])]


def test_key_ranges_rule_out_files(new_table: MakeTable) -> None:
    """Where the key has the primary key's first columns, in any order; otherwise nothing is ruled out."""
    table = new_table(LINES, primary_key="order_id, shop", partition_key="qty")
    table.load([(1, 10, "a", 1), (2, 19, "b", 1), (3, 20, "a", 2), (4, 29, "b", 2)])
    table.sync()

    assert candidates(table, keys_of(table, order_id=[15, 5])) == [("1",)]
    assert candidates(table, keys_of(table, shop=["c", "a"], order_id=[19, 9])) == []
    assert candidates(table, keys_of(table, shop=["b", "a"], order_id=[29, 9])) == [("2",)]
    assert candidates(table, keys_of(table, id=[1000], order_id=[20])) == [("2",)]
    assert candidates(table, keys_of(table, shop=["zz"])) == [("1",), ("2",)]
    assert candidates(table, keys_of(table, order_id=[])) == []


def test_a_file_without_the_column_holds_nothing(new_table: MakeTable) -> None:
    """It was written before the table had it, so all its rows have null there."""
    table = new_table(LINES, partition_key="qty")
    table.load([(1, 10, "a", 1)])
    table.sync()
    wide = LINES.append(pa.field("note", pa.string()))
    table.cdc([("I", (2, 10, "b", 2, "x"))], columns=wide)
    table.sync()
    keys = GivenKeys.of(pa.table({"note": ["x"]}), ["note"])

    (located,) = found(table, keys)

    assert located.path.startswith("qty=2/")
    assert table.snapshot().schema[-1] == Column("note", "string")
