"""The source's columns change: what the lake takes up by itself, and what waits for a person."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from infra.local.dms_files import dms_parquet
from tests.spark.tables import SHOP, WorkTable
from tests.work_tables import MakeTable

WITH_NOTE = SHOP.append(pa.field("note", pa.string()))
WITHOUT_QTY = pa.schema([("id", pa.int64()), ("name", pa.string())])
RENAMED = pa.schema([("id", pa.int64()), ("title", pa.string()), ("qty", pa.int32())])
LOADED = [(1, "a", 1), (2, "b", 2)]


def _loaded(new_table: MakeTable, columns: pa.Schema = SHOP, rows: list[tuple[Any, ...]] = LOADED, **attributes: Any) -> WorkTable:
    table = new_table(columns, **attributes)
    table.load(rows)
    table.sync()
    return table


def _types(table: WorkTable) -> dict[str, str]:
    return {column.name: column.type for column in table.snapshot().schema}


def _unchanged(table: WorkTable, before: tuple[Any, ...]) -> bool:
    return _mark(table) == before


def _mark(table: WorkTable) -> tuple[Any, ...]:
    """What a blocked table must still have: the files, the head, the cursor."""
    item = table.item()
    return table.visible(), item.get("Head"), item["LastIncrementalFile"]


def test_a_new_column_is_added(new_table: MakeTable) -> None:
    """Old rows have null there, also those in files that nobody touched."""
    table = _loaded(new_table, partition_key="qty")
    table.cdc([("U", (1, "A", 1, "hello"))], columns=WITH_NOTE)
    table.sync()

    assert table.rows() == [(1, "A", 1, "hello"), (2, "b", 2, None)]
    assert table.head().details["columns_added"] == ["note"]
    table.cdc([("I", (3, "c", 2))])  # a file from before the column, delivered after it
    table.sync()
    assert table.rows() == [(1, "A", 1, "hello"), (2, "b", 2, None), (3, "c", 2, None)]


def test_a_column_that_is_missing_stays(new_table: MakeTable) -> None:
    """The lake keeps the column and the values of rows that did not change; the batch's rows have null there."""
    table = _loaded(new_table)
    table.cdc([("U", (1, "A")), ("I", (3, "c"))], columns=WITHOUT_QTY)

    table.sync()

    assert table.rows() == [(1, "A", None), (2, "b", 2), (3, "c", None)]
    assert table.head().details["columns_absent"] == ["qty"]
    table.cdc([("I", (4, "d"))], columns=WITHOUT_QTY)
    table.sync()
    assert "columns_absent" not in table.head().details, "it is said once"
    table.cdc([("U", (4, "d", 4))])
    table.sync()
    assert (4, "d", 4) in table.rows()


def test_a_rename_is_not_guessed(new_table: MakeTable) -> None:
    """One column vanishes and another appears: blocked, with both ways out in the message."""
    table = _loaded(new_table)
    table.cdc([("U", (1, "A", 1))], columns=RENAMED)
    before = _mark(table)

    error = table.blocked()

    assert error["code"] == "rename-or-drop-and-add"
    for text in ("'name' vanished", "'title' appeared", "20240501-12000"):
        assert text in error["message"]
    assert "--rename name=title" in error["todo"]
    assert "--accept" in error["todo"]
    assert _unchanged(table, before)
    assert table.run() == 1, "it stays blocked while nothing changes"


@pytest.mark.parametrize(
    ("request_", "rows"),
    [
        ("schema-accept", [(1, None, 1, "A"), (2, "b", 2, None)]),
        ("schema-rename:name=title", [(1, "A", 1), (2, "b", 2)]),
    ],
)
@pytest.mark.parametrize("partition_key", ["null", "qty"])
def test_a_person_says_what_it_was(new_table: MakeTable, request_: str, rows: list[tuple[Any, ...]], partition_key: str) -> None:
    """Accepted as drop and add, or as a rename, which rewrites the files; the batch follows in the same run."""
    table = _loaded(new_table, partition_key=partition_key)
    table.cdc([("U", (1, "A", 1))], columns=RENAMED)
    table.blocked()
    table.edit(Request=request_)

    table.sync()

    assert table.rows() == rows
    assert "Request" not in table.item()
    assert "Blocked" not in table.item()
    table.check_folder()
    table.check_files()
    table.cdc([("I", (3, "c", 2))], columns=RENAMED)
    table.sync()
    assert len(table.rows()) == 3


@pytest.mark.parametrize("value", ["name", "name=", "=x", "nothing=x", "name=qty", "name=QTY", "id=key"])
def test_a_rename_that_makes_no_sense_is_refused(new_table: MakeTable, value: str) -> None:
    """Unknown columns, names that are taken, the key: blocked, nothing changed."""
    table = _loaded(new_table)
    before = _mark(table)
    table.edit(Request=f"schema-rename:{value}")

    error = table.blocked()

    assert error["code"] == "bad-rename"
    assert _unchanged(table, before)


WIDER = [
    (pa.int32(), 5, pa.int64(), 2**40, "bigint"),
    (pa.int8(), 5, pa.int16(), 300, "smallint"),
    (pa.float32(), 0.5, pa.float64(), 0.1, "double"),
    (pa.decimal128(5, 2), Decimal("1.50"), pa.decimal128(20, 2), Decimal("123456789.25"), "decimal(20,2)"),
]


@pytest.mark.parametrize(("old", "old_value", "new", "new_value", "type_"), WIDER, ids=[row[-1] for row in WIDER])
@pytest.mark.parametrize("partition_key", ["null", "part"])
def test_a_wider_type_rewrites_the_table(
    new_table: MakeTable, old: pa.DataType, old_value: Any, new: pa.DataType, new_value: Any, type_: str, partition_key: str
) -> None:
    """All files have the new type afterwards, so that every reader sees one; values are what they were."""
    columns = [pa.schema([("id", pa.int64()), ("part", pa.string()), ("value", kind)]) for kind in (old, new)]
    table = _loaded(new_table, columns[0], [(1, "x", old_value), (2, "y", old_value), (3, "z", None)], partition_key=partition_key)
    table.cdc([("U", (2, "x", new_value))], columns=columns[1])

    table.sync()

    assert table.rows() == [(1, "x", old_value), (2, "x", new_value), (3, "z", None)]
    assert _types(table)["value"] == type_
    assert {table.data(file).schema.field("value").type for file in table.snapshot().files.values()} == {new}
    table.check_folder()
    table.cdc([("U", (1, "x", old_value))], columns=columns[0])  # the narrower type again: fits
    table.sync()
    assert _types(table)["value"] == type_


def test_a_wider_key_is_found_again(new_table: MakeTable) -> None:
    """The key column itself may grow: bounds in older records and keys in older files still meet the new ones."""
    narrow = pa.schema([("id", pa.int32()), ("name", pa.string())])
    wide = pa.schema([("id", pa.int64()), ("name", pa.string())])
    table = _loaded(new_table, narrow, [(1, "a"), (2, "b")])
    table.cdc([("U", (2, "B")), ("I", (2**40, "far"))], columns=wide)
    table.sync()
    table.cdc([("D", (1, None)), ("U", (2**40, "FAR"))], columns=wide)

    table.sync()

    assert table.rows() == [(2**40, "FAR"), (2, "B")]
    table.check_files()


def test_a_float_that_folders_have_is_not_widened(new_table: MakeTable) -> None:
    """The folder of the float 0.1 would be the double 0.1, which is another value than the row has."""
    columns = pa.schema([("id", pa.int64()), ("rate", pa.float32())])
    table = _loaded(new_table, columns, [(1, 0.1), (2, 0.5)], partition_key="rate")
    table.cdc([("U", (2, 0.25))], columns=pa.schema([("id", pa.int64()), ("rate", pa.float64())]))
    before = _mark(table)

    error = table.blocked()

    assert (error["code"], error["todo"]) == ("type-changed", "reload the table in DMS")
    assert _unchanged(table, before)


def test_a_large_table_is_widened_on_request_only(new_table: MakeTable) -> None:
    """Above widen_bytes rewriting it is a person's decision."""
    table = _loaded(new_table)
    wide = pa.schema([("id", pa.int64()), ("name", pa.string()), ("qty", pa.int64())])
    table.cdc([("U", (1, "A", 2**40))], columns=wide)
    before = _mark(table)

    error = table.blocked(widen_bytes="10")

    assert error["code"] == "widening-needs-a-word"
    assert "'qty' grew from int to bigint" in error["message"]
    assert "dmslake widen" in error["todo"]
    assert _unchanged(table, before)
    table.edit(Request="widen")
    table.sync(widen_bytes="10")
    assert table.rows() == [(1, "A", 2**40), (2, "b", 2)]
    assert "Request" not in table.item()


@pytest.mark.parametrize(
    ("new", "value", "found"),
    [
        (pa.string(), "x", "string"),
        (pa.float64(), 1.5, "double"),
        (pa.decimal128(10, 3), Decimal("1.125"), "decimal(10,3)"),
        (pa.bool_(), True, "boolean"),
    ],
)
def test_an_unsafe_change_of_type_blocks_the_table(new_table: MakeTable, new: pa.DataType, value: Any, found: str) -> None:
    """The message names table, file, column, expected and found; nothing has changed."""
    table = _loaded(new_table)
    columns = pa.schema([("id", pa.int64()), ("name", pa.string()), ("qty", new)])
    name = table.cdc([("U", (1, "A", value))], columns=columns)
    before = _mark(table)

    error = table.blocked()

    assert error["code"] == "type-changed"
    for text in (str(table.path), name, "'qty'", "expected: int", f"found: {found}"):
        assert text in error["message"]
    assert _unchanged(table, before)
    table.delete_raw(name.rsplit("/", 1)[1])
    table.cdc([("U", (1, "A", 7))])
    table.sync()
    assert (1, "A", 7) in table.rows()


def test_columns_that_differ_by_case_block_the_table(new_table: MakeTable) -> None:
    """Spark and Athena can't read them: whether they come in one file or a later one brings the second."""
    twice = pa.schema([("id", pa.int64()), ("name", pa.string()), ("Name", pa.string())])
    table = _loaded(new_table)
    table.cdc([("U", (1, "A", 1, "x"))], columns=SHOP.append(pa.field("NAME", pa.string())))

    error = table.blocked()

    assert error["code"] == "columns-differ-by-case"
    for text in ("'name'", "'NAME'", str(table.path)):
        assert text in error["message"]
    other = new_table(twice)
    other.load([(1, "a", "A")])
    assert other.blocked()["code"] == "columns-differ-by-case"
    assert other.visible() == set()


def test_what_dms_adds_stays_out_of_the_lake(new_table: MakeTable) -> None:
    """Op, before images and the change sequence are no columns of the table; the commit timestamp column is one."""
    table = new_table(timestamp_column="committed")
    fields = ["Op", "committed", "AR_H_CHANGE_SEQ", "id", "name", "BI_id", "BI_name"]
    row = ["U", "2024-05-01 12:00:00.000000", "2" * 35, 1, "a", 1, "old"]
    types = [pa.string()] * 3 + [pa.int64(), pa.string()] * 2
    arrays = [pa.array([value], kind) for value, kind in zip(row, types, strict=True)]
    table.put_raw(table.next_name(), dms_parquet(pa.Table.from_arrays(arrays, fields)))

    table.sync()

    assert _types(table) == {"committed": "string", "id": "bigint", "name": "string"}
    assert table.rows() == [("2024-05-01 12:00:00.000000", 1, "a")]


def test_a_timestamp_column_by_name_is_kept(new_table: MakeTable) -> None:
    """The attribute TimestampColumn wins over the column's place."""
    table = new_table(pa.schema([("id", pa.int64()), ("label", pa.string()), ("when", pa.string())]))
    table.edit(TimestampColumn="when")
    table.load([(1, "x", "2024-05-01 12:00:00")])
    table.sync()

    assert table.snapshot().timestamp_column == "when"
    assert table.rows() == [(1, "x", "2024-05-01 12:00:00")]
