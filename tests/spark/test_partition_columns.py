"""Partition texts are Hive's, are read back as the same values, and split the rows."""

from __future__ import annotations

from datetime import date, datetime, timezone
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings

from glue_jobs.core.errors import TableBlocked
from glue_jobs.core.partitioning import NULL_FOLDER, PartitionField, folder_of, parse_partition_key, values_of
from glue_jobs.core.schema import Column, Schema
from glue_jobs.spark.partition_columns import empty_as_null as empties_as_null
from glue_jobs.spark.partition_columns import partition_values, split_by_partition, with_partition_columns
from tests.spark.lake_values import plain_key, rows_of, table_of

UTC = timezone.utc
PROPERTY = settings(deadline=None, max_examples=150)
SOURCE = "sales/orders"


def _texts(kind: str, values: list[Any], key: str = "c", *, empty_as_null: bool = False) -> list[Any]:
    schema = (Column("c", kind),)
    table = table_of(schema, [(value,) for value in values])
    return [tuple(row.values()) for row in partition_values(table, parse_partition_key(key), schema, empty_as_null, SOURCE).to_pylist()]


def _refusal(kind: str, values: list[Any], key: str = "c") -> TableBlocked:
    with pytest.raises(TableBlocked) as caught:
        _texts(kind, values, key)
    assert SOURCE in caught.value.message
    assert "'c'" in caught.value.message
    assert caught.value.todo
    return caught.value


@pytest.mark.parametrize(
    ("kind", "values", "expected"),
    [
        ("int", [5, -5, None], ["5", "-5", None]),
        ("boolean", [True, False, None], ["true", "false", None]),
        ("string", ["a/b=c", " ", "é😀", "null", None], ["a/b=c", " ", "é😀", "null", None]),
        ("date", [date(2024, 1, 2), date(1, 1, 1)], ["2024-01-02", "0001-01-01"]),
        (
            "timestamp",
            [datetime(2024, 1, 2, 3, 4, 5, 600_000, tzinfo=UTC), datetime(2024, 1, 2, 10, tzinfo=UTC)],
            ["2024-01-02 03:04:05.6", "2024-01-02 10:00:00"],
        ),
        ("timestamp", [datetime(1, 1, 1, microsecond=1, tzinfo=UTC)], ["0001-01-01 00:00:00.000001"]),
        (
            "timestamp",
            [datetime(1969, 12, 31, 23, 59, 50, tzinfo=UTC)],
            ["1969-12-31 23:59:50"],
        ),
        ("decimal(20,8)", [Decimal("0.00000001"), Decimal("-100")], ["0.00000001", "-100.00000000"]),
        ("double", [1.0, 0.1, -0.0, float("nan"), float("-inf")], ["1.0", "0.1", "0.0", "NaN", "-Infinity"]),
        ("float", [0.1, 16_777_216.0], ["0.1", "16777216.0"]),
    ],
)  # fmt: skip
def test_texts_of_values(kind: str, values: list[Any], expected: list[Any]) -> None:
    """Plain, as Hive and Spark write them before escaping."""
    assert _texts(kind, values) == [(text,) for text in expected]


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        ("date", date(2024, 5, 3)),
        ("timestamp", datetime(2024, 5, 3, 23, 59, 59, 999_999, tzinfo=UTC)),
        ("string", "2024-05-03T01:02:03+14:00"),
        ("string", "2024-05-03"),
    ],
)
def test_parts_of_a_date(kind: str, value: Any) -> None:
    """Year, month and day are whole numbers, of dates, timestamps in UTC, and texts that begin with a date."""
    assert _texts(kind, [value, None], "year(c), month(c) as m, day(c)") == [("2024", "5", "3"), (None, None, None)]


@pytest.mark.parametrize("year", [1, 1500, 1969, 3018, 9999])
def test_parts_of_far_dates(year: int) -> None:
    """The year is the calendar's, before 1970 too."""
    assert _texts("timestamp", [datetime(year, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC)], "year(c),day(c)") == [(str(year), "31")]
    assert _texts("date", [date(year, 1, 1)], "year(c),day(c)") == [(str(year), "1")]


@pytest.mark.parametrize("text", ["2024-02-30", "2024-5-3", "03.05.2024", "", "20240503xx", "0000-00-00"])
def test_a_text_that_is_no_date_is_refused(text: str) -> None:
    """With the value that was found."""
    error = _refusal("string", ["2024-01-01", text], "year(c)")

    assert error.code == "no-date"
    assert f"found: {text!r}" in error.message


def test_an_empty_text_is_refused_unless_the_table_says_null() -> None:
    """Readers can't tell its folder from that of null."""
    error = _refusal("string", ["x", ""])

    assert error.code == "empty-partition"
    assert "EmptyPartition = 'null'" in error.todo
    assert _texts("string", ["x", "", None], empty_as_null=True) == [("x",), (None,), (None,)]


@pytest.mark.parametrize("value", [NULL_FOLDER, "a\0b", "a\ufffeb", "\uffff"])
def test_a_text_that_no_folder_can_say_is_refused(value: str) -> None:
    """It would come back as another value, or could never be hidden."""
    assert _refusal("string", ["x", value]).code == "bad-partition-value"


def test_a_binary_partition_is_refused() -> None:
    """Readers have no such partition column."""
    assert _refusal("binary", [b"x"]).code == "binary-partition"


def test_a_date_beyond_the_calendar_is_refused() -> None:
    """A five-digit year would not be read back."""
    schema = (Column("c", "date"),)
    table = pa.table({"c": pa.array([2_932_897], pa.date32())})

    with pytest.raises(TableBlocked, match="10000-01-01") as caught:
        partition_values(table, parse_partition_key("c"), schema, False, SOURCE)

    assert caught.value.code == "bad-partition-value"


def _writable(rows: list[tuple[Any, ...]], schema: Schema) -> list[tuple[Any, ...]]:
    """The rows whose values can be folder names."""
    unwritable = set("\0\ufffe\uffff")
    return [row for row in rows if not any(isinstance(value, bytes) or value == "" or unwritable & set(str(value)) for value in row)]


@PROPERTY
@given(rows_of(nullable=True))
def test_what_is_split_and_written_is_read_back(drawn) -> None:
    """Split by partition, through the folder's name, with the columns put back: the same rows, each partition once, in order."""
    schema, rows = drawn
    if any(column.type == "binary" for column in schema):
        schema, rows = (Column("k0", "int"),), [(place % 3,) for place in range(len(rows))]
    rows = _writable(rows, schema)
    partitioning = tuple(PartitionField(column.name) for column in schema)
    table = table_of(schema, rows).append_column("at", pa.array(range(len(rows)), pa.int64()))

    seen: list[Any] = []
    for values, part in split_by_partition(table, partition_values(table, partitioning, schema, False, SOURCE)):
        path = folder_of(partitioning, values) + "0000000001-000000-00000000.parquet"
        assert "\n" not in path
        back = with_partition_columns(part.select(["at"]), partitioning, values_of(path, partitioning), schema)
        at = back["at"].to_pylist()
        assert at == sorted(at)
        assert back.drop_columns(["at"]).schema == table.drop_columns(["at"]).schema
        for place, row in zip(at, back.drop_columns(["at"]).to_pylist(), strict=True):
            assert plain_key(tuple(row.values())) == plain_key(rows[place])
        seen.append((values, at))

    assert sorted(place for _, at in seen for place in at) == list(range(len(rows)))
    assert len({values for values, _ in seen}) == len(seen)
    assert [at[0] for _, at in seen] == sorted(at[0] for _, at in seen)


def test_a_table_without_partitions_is_one() -> None:
    """Its partition has no values; no rows are no partition."""
    table = pa.table({"c": [1, 2]})
    values = partition_values(table, (), (Column("c", "bigint"),), False, SOURCE)

    assert [(key, part.num_rows) for key, part in split_by_partition(table, values)] == [((), 2)]
    assert list(split_by_partition(table.slice(0, 0), values.slice(0, 0))) == []


def test_only_identity_columns_are_put_back() -> None:
    """The column of year(c) stands in the file; a column that the file has stays as it is there."""
    schema = (Column("at", "date"), Column("region", "string"), Column("id", "int"))
    partitioning = parse_partition_key("year(at), region, id")
    table = pa.table({"at": [date(2024, 1, 1)], "id": pa.array([7], pa.int32())})

    back = with_partition_columns(table, partitioning, ("2024", "north", "9"), schema)

    assert back.to_pylist() == [{"at": date(2024, 1, 1), "id": 7, "region": "north"}]


@pytest.mark.parametrize(
    ("kind", "text"), [("int", "x"), ("date", "2024"), ("boolean", "yes"), ("decimal(5,2)", "1e9"), ("tinyint", "300")]
)
def test_a_folder_that_says_no_value_is_refused(kind: str, text: str) -> None:
    """Its name, the type and the text are named."""
    with pytest.raises(TableBlocked) as caught:
        with_partition_columns(pa.table({"id": [1]}), parse_partition_key("c"), (text,), (Column("id", "bigint"), Column("c", kind)))

    assert caught.value.code == "bad-partition-folder"
    assert f"c={text}" in caught.value.message
    assert kind in caught.value.message


def test_an_empty_text_becomes_null_in_a_slice_of_rows_too() -> None:
    """Rows that stand behind others in their arrays keep their values."""
    rows = pa.table({"c": ["cut", "a", "", None, "b"]}).slice(1)
    assert empties_as_null(rows, (PartitionField("c"),))["c"].to_pylist() == ["a", None, None, "b"]
