"""A primary key that changed comes as one U with the new key; only the before image tells the old one."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from tests.spark.csv_texts import csv_text
from tests.spark.tables import WorkTable
from tests.spark.test_shuffle import STRATEGIES
from tests.spark.test_types import written
from tests.work_tables import MakeTable

COLUMNS = pa.schema([("shop", pa.string()), ("id", pa.int64()), ("name", pa.string())])
IMAGES = pa.schema([*COLUMNS, ("BI_shop", pa.string()), ("BI_id", pa.int64()), ("BI_name", pa.string())])
NOTHING = (None, None, None)


def _load(table: WorkTable) -> None:
    table.load([("a", number, f"n{number}") for number in range(1, 7)])
    assert table.run("LoadInitial") == 0, table.last_run()


def _images(*changes: tuple[Any, ...]) -> list[tuple[str, tuple[Any, ...]]]:
    """(operation, row after, row before or nothing) as rows with before images."""
    return [(op, (*after, *(before[0] if before else NOTHING))) for op, after, *before in changes]


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("partition_key", ["null", "shop"])
def test_the_row_leaves_its_old_key(spark_table: MakeTable, strategy: str, partition_key: str) -> None:
    """Keys that move on, take another's place, move twice, are taken again, and go to another partition; in two files."""
    table = spark_table(COLUMNS, primary_key="shop,id", partition_key=partition_key)
    _load(table)
    table.cdc(
        _images(
            ("U", ("a", 10, "n1"), ("a", 1, "n1")),
            ("U", ("a", 1, "n2"), ("a", 2, "n2")),
            ("U", ("b", 3, "n3"), ("a", 3, "n3")),
            ("U", ("a", 20, "n4"), ("a", 4, "n4")),
            ("I", ("a", 4, "new")),
            ("U", ("a", 5, "same"), ("a", 5, "n5")),
        ),
        columns=IMAGES,
    )
    table.cdc(_images(("U", ("a", 30, "n4"), ("a", 20, "n4")), ("D", ("a", 6, "n6"))), columns=IMAGES)

    assert table.run(**STRATEGIES[strategy]) == 0, table.last_run()

    expected = [("a", 1, "n2"), ("a", 10, "n1"), ("a", 30, "n4"), ("a", 4, "new"), ("a", 5, "same"), ("b", 3, "n3")]
    columns = table.read().select(["shop", "id", "name"])
    assert sorted(zip(*(column.to_pylist() for column in columns.columns), strict=True), key=repr) == sorted(expected, key=repr)
    table.check_folder()


def test_without_a_whole_old_key_only_the_new_one_is_written(new_table: MakeTable) -> None:
    """Before images of some columns, or null in the key, don't tell which row has gone."""
    table = new_table(COLUMNS, primary_key="shop,id")
    _load(table)
    part = pa.schema([*COLUMNS, ("BI_id", pa.int64())])
    table.cdc([("U", ("a", 10, "n1", 1))], columns=part)
    table.cdc(_images(("U", ("a", 20, "n2"), ("a", None, "n2"))), columns=IMAGES)

    assert table.run() == 0, table.last_run()

    assert [row[1] for row in table.rows()] == [1, 10, 2, 20, 3, 4, 5, 6]


@pytest.mark.parametrize("where", ["behind", "among"])
def test_a_change_sequence_does_not_hide_before_images(new_table: MakeTable, where: str) -> None:
    """It may stand behind them, as DMS adds it."""
    table = new_table(COLUMNS)
    _load(table)
    added = [*IMAGES][3:]
    added.insert(3 if where == "behind" else 1, pa.field("AR_H_CHANGE_SEQ", pa.string()))
    values = {"BI_shop": "a", "BI_id": 1, "BI_name": "n1", "AR_H_CHANGE_SEQ": "2" * 35}
    table.cdc([("U", ("a", 10, "n1", *(values[each.name] for each in added)))], columns=pa.schema([*COLUMNS, *added]))

    assert table.run() == 0, table.last_run()

    assert [column.name for column in table.head().schema] == COLUMNS.names
    assert [row[1] for row in table.rows()] == [10, 2, 3, 4, 5, 6]


def test_a_before_image_of_the_key_in_the_middle_is_asked_about(new_table: MakeTable) -> None:
    """As data it would leave the old row. A person may say that it is the source's own."""
    table = new_table(COLUMNS)
    _load(table)
    columns = pa.schema([*COLUMNS, ("BI_id", pa.int64()), ("own", pa.string())])
    table.cdc([("U", ("a", 10, "n1", 1, "x"))], columns=columns)

    error = table.blocked()

    assert error["code"] == "before-image-unclear"
    assert [word in error["message"] + error["todo"] for word in ("'BI_id'", "'id'", "BeforeImagePrefix", str(table.path))] == [True] * 4
    table.edit(BeforeImagePrefix="OLD_")
    table.sync()
    assert [column.name for column in table.head().schema] == columns.names


@pytest.mark.parametrize("kind", [pa.int64(), pa.string()])
def test_a_before_image_of_an_insert_is_none(new_table: MakeTable, kind: pa.DataType) -> None:
    """It is the source's own last column, whose values are no other rows' keys."""
    columns = pa.schema([("id", kind), ("name", pa.string()), ("BI_id", kind)])
    table = new_table(columns)
    one, seven, nine = (pa.scalar(number).cast(kind).as_py() for number in (1, 7, 9))
    table.load([(one, "a", seven), (seven, "b", nine)])
    table.cdc([("U", (one, "x", seven)), ("I", (nine, "c", seven))])

    error = table.blocked()

    assert (error["code"], "'BI_id'" in error["message"], table.item().get("Head")) == ("before-image-unclear", True, None)
    table.edit(BeforeImagePrefix="OLD_")
    table.sync()
    assert table.rows() == [(one, "x", seven), (seven, "b", nine), (nine, "c", seven)]


def test_a_last_column_that_a_load_has_values_of_is_the_source_s_own(new_table: MakeTable) -> None:
    """Named as the before image of any column, it would be left out of the table without a word. Images are null in a load."""
    columns = pa.schema([("id", pa.int64()), ("sum", pa.int64()), ("BI_sum", pa.int64())])
    texts = pa.schema([("id", pa.int64()), ("sum", pa.string()), ("BI_sum", pa.string())])
    images, empty, own = new_table(columns), new_table(texts), new_table(columns)
    images.load([(1, 7, None), (2, 8, None)])
    images.sync()
    empty.load([(1, "7", ""), (2, "8", None)])
    empty.sync()
    own.load([(1, 7, None), (2, 8, 6)])

    error = own.blocked()

    assert (images.rows(), empty.rows()) == ([(1, 7), (2, 8)], [(1, "7"), (2, "8")])
    assert (error["code"], "'BI_sum'" in error["message"], own.item().get("Head")) == ("before-image-unclear", True, None)
    own.edit(BeforeImagePrefix="OLD_")
    own.sync()
    assert own.rows() == [(1, 7, None), (2, 8, 6)]


SUMS = '{"id": "int", "sum": "int", "BI_sum": "int"}'
TEXTS = '{"id": "int", "sum": "string", "BI_sum": "string"}'
LONG = "x" * 5000  # Arrow keeps no such text as a column's greatest


@pytest.mark.parametrize("head", [["Op", "id", "sum", "BI_sum"], None], ids=["header", "bare"])
@pytest.mark.parametrize(("schema", "own"), [(SUMS, 6), (TEXTS, "six")], ids=["number", "text"])
def test_a_csv_load_tells_its_own_last_column_by_its_values(new_table: MakeTable, schema: str, own: Any, head: list[str] | None) -> None:
    """Null and an empty field are none."""
    images, ours = new_table(), new_table()
    for table, values in ((images, (None, "")), (ours, (None, own))):
        table.edit(Schema=schema)
        rows = [("I", number, 7, value) for number, value in enumerate(values)]
        table.put_raw("LOAD00000001.csv", csv_text([head, *rows] if head else rows))
    images.sync()

    error = ours.blocked()

    assert [row[0] for row in images.rows()] == [0, 1]
    assert [column.name for column in images.snapshot().schema] == ["id", "sum"]
    assert (error["code"], "'BI_sum'" in error["message"], ours.item().get("Head")) == ("before-image-unclear", True, None)
    ours.edit(BeforeImagePrefix="OLD_")
    ours.sync()
    assert [row[2] for row in ours.rows()] == [None, own]


@pytest.mark.parametrize(
    ("kind", "empty", "own"),
    [(pa.int64(), None, 6), (pa.string(), "", "six"), (pa.large_string(), "", "six"), (pa.binary(), b"", b"6"), (pa.string(), "", LONG)],
    ids=["number", "text", "large", "bytes", "long"],
)
@pytest.mark.parametrize("statistics", [True, False], ids=["statistics", "none"])
@pytest.mark.parametrize("as_category", [False, True], ids=["plain", "category"])
def test_a_load_tells_it_whatever_the_footer_says(
    new_table: MakeTable, kind: pa.DataType, empty: Any, own: Any, statistics: bool, as_category: bool
) -> None:
    """Where there are no statistics, or none of long texts, the values are looked at."""
    images, ours = new_table(pa.schema([])), new_table(pa.schema([]))
    for table, value in ((images, empty), (ours, own)):
        column = pa.array([None, value], kind)
        rows = pa.table({"id": [1, 2], "sum": column, "BI_sum": column.dictionary_encode() if as_category else column})
        table.put_raw("LOAD00000001.parquet", written(rows, write_statistics=statistics, row_group_size=1))
    images.sync()

    error = ours.blocked()

    assert [column.name for column in images.snapshot().schema] == ["id", "sum"]
    assert (error["code"], "'BI_sum'" in error["message"], ours.item().get("Head")) == ("before-image-unclear", True, None)


def test_a_load_tells_it_in_a_file_with_nested_columns(new_table: MakeTable) -> None:
    """Whose statistics stand at other places."""
    table = new_table(pa.schema([]))
    nothing = pa.nulls(1, pa.struct([("a", pa.int64()), ("b", pa.int64())]))
    rows = pa.table({"id": [1], "sum": [7], "own": [7], "BI_sum": nothing, "BI_own": [6]})
    table.put_raw("LOAD00000001.parquet", written(rows))

    error = table.blocked()

    assert (error["code"], "'BI_own'" in error["message"]) == ("before-image-unclear", True)


def test_a_column_of_the_load_is_the_source_s_own(new_table: MakeTable) -> None:
    """Also if it is named as a before image of the key."""
    columns = pa.schema([("id", pa.int64()), ("BI_id", pa.int64()), ("name", pa.string())])
    table = new_table(columns)
    table.load([(1, 7, "a")])
    table.cdc([("U", (1, 8, "b"))])

    table.sync()

    assert table.rows() == [(1, 8, "b")]


def test_a_column_of_the_table_is_no_before_image_once_it_is_the_last(new_table: MakeTable) -> None:
    """The source dropped the one behind it: the values are no keys of rows that moved."""
    columns = pa.schema([("id", pa.int64()), ("BI_id", pa.int64()), ("name", pa.string())])
    table = new_table(columns)
    table.load([(1, 7, "a"), (7, 7, "b")])
    table.cdc([("U", (1, 7))], columns=pa.schema(list(columns)[:2]))

    error = table.blocked()

    assert (error["code"], "one of the table's own" in error["message"]) == ("before-image-unclear", True)
    table.edit(BeforeImagePrefix="OLD_")
    table.sync()
    assert [row[0] for row in table.rows()] == [1, 7]
