"""Batches are bound by name, cast without loss, or refused."""

from __future__ import annotations

import math
from collections.abc import Iterator
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from glue_jobs.core.errors import TableBlocked
from glue_jobs.core.schema import ARROW_TO_LAKE, SIMPLE_TYPES, Column, is_type
from glue_jobs.spark.arrow_types import LostDigits, arrow_schema, conform, lake_type_of, null_where, to_arrow

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

UTC = timezone.utc


def _conformed(values: pa.Array, kind: str, lost: LostDigits | None = None) -> Any:
    table = conform(pa.table({"c": values}), (Column("c", kind),), "LOAD00000001.parquet", lost=lost)
    assert table.schema == arrow_schema((Column("c", kind),))
    return table["c"].to_pylist()


def _refusal(values: pa.Array, kind: str, first_row: int = 0) -> TableBlocked:
    with pytest.raises(TableBlocked) as caught:
        conform(pa.table({"c": values}), (Column("c", kind),), "LOAD00000001.parquet", first_row=first_row)
    return caught.value


@pytest.mark.parametrize("kind", [*SIMPLE_TYPES, "decimal(38,10)", "decimal(1,0)"])
def test_a_lake_type_comes_back_from_its_arrow_type(kind: str) -> None:
    """Every lake type has an Arrow type, and that Arrow type is read as the same lake type."""
    assert lake_type_of(to_arrow(kind)) == kind


@pytest.mark.parametrize("name", sorted(ARROW_TO_LAKE))
def test_every_mapped_type_can_be_conformed(name: str) -> None:
    """The table in core promises nothing that `conform` can't do."""
    aliases = {"date32[day]": pa.date32(), "date64[ms]": pa.date64(), "bool": pa.bool_(), "halffloat": pa.float16()}
    aliases |= {"string_view": pa.string_view(), "binary_view": pa.binary_view(), "large_string": pa.large_string()}
    aliases |= {"large_binary": pa.large_binary(), "float": pa.float32(), "double": pa.float64()}
    aliases |= {
        f"time{32 if unit in ('s', 'ms') else 64}[{unit}]": pa.type_for_alias(f"time{32 if unit in ('s', 'ms') else 64}[{unit}]")
        for unit in ("s", "ms", "us", "ns")
    }
    kind = aliases.get(name) or pa.type_for_alias(name)
    assert str(kind) == name
    assert is_type(ARROW_TO_LAKE[name])

    assert _conformed(pa.nulls(2, kind), ARROW_TO_LAKE[name]) == [None, None]


def test_columns_are_bound_by_name() -> None:
    """Columns in another order than declared are not swapped; ones not declared are left out, missing ones are null."""
    rows = pa.record_batch({"b": [2], "extra": ["x"], "a": [1]})

    table = conform(rows, (Column("a", "bigint"), Column("b", "bigint"), Column("new", "timestamp")), "f")

    assert table.to_pylist() == [{"a": 1, "b": 2, "new": None}]
    assert table.schema.metadata is None


@pytest.mark.parametrize(
    ("values", "kind", "expected"),
    [
        (pa.array([255, None], pa.uint8()), "smallint", [255, None]),
        (pa.array([65_535], pa.uint16()), "int", [65_535]),
        (pa.array([2**32 - 1], pa.uint32()), "bigint", [2**32 - 1]),
        (pa.array([2**64 - 1, 0], pa.uint64()), "decimal(20,0)", [Decimal(2**64 - 1), Decimal(0)]),
        (pa.array([1, -1], pa.int8()), "bigint", [1, -1]),
        (pa.array([1], pa.int64()), "tinyint", [1]),
        (pa.array([12], pa.int32()), "decimal(5,2)", [Decimal("12.00")]),
        (pa.array([Decimal("1.20")], pa.decimal128(5, 2)), "decimal(38,2)", [Decimal("1.20")]),
        (pa.array([Decimal("9" * 38)], pa.decimal256(40, 0)), "decimal(38,0)", [Decimal("9" * 38)]),
        (pa.array([0.1], pa.float32()), "double", [0.10000000149011612]),
        (pa.array([1.5, math.inf], pa.float32()).cast(pa.float16()), "float", [1.5, math.inf]),
        (pa.array([1.5, -math.inf], pa.float64()), "float", [1.5, -math.inf]),
        (pa.array([0, 86_399], pa.time32("s")), "string", ["00:00:00", "23:59:59"]),
        (pa.array([0, 1_500, 36_610_100], pa.time32("ms")), "string", ["00:00:00", "00:00:01.500", "10:10:10.100"]),
        (pa.array([1, 600_000_000], pa.time64("us")), "string", ["00:00:00.000001", "00:10:00"]),
        (pa.array([86_400_000, -86_400_000], pa.date64()), "date", [date(1970, 1, 2), date(1969, 12, 31)]),
        (pa.array(["x", None, ""], pa.large_string()), "string", ["x", None, ""]),
        (pa.array(["x", None], pa.string_view()), "string", ["x", None]),
        (pa.array([b"", b"\xff"], pa.large_binary()), "binary", [b"", b"\xff"]),
        (pa.array(["x", "y", "x", None]).dictionary_encode(), "string", ["x", "y", "x", None]),
        (pa.array([7, None], pa.uint8()).dictionary_encode(), "smallint", [7, None]),
        (pa.nulls(2), "date", [None, None]),
    ],
    ids=lambda value: str(value.type) if isinstance(value, pa.Array) else None,
)  # fmt: skip
def test_physical_types_become_the_lakes(values: pa.Array, kind: str, expected: list[Any]) -> None:
    """Unsigned integers widen, times become texts, dictionaries and large types become plain."""
    assert _conformed(values, kind) == expected


@pytest.mark.parametrize("unit", ["s", "ms", "us"])
@pytest.mark.parametrize("zone", [None, "UTC", "+05:30"])
def test_timestamps_become_utc_microseconds(unit: str, zone: str | None) -> None:
    """Of any unit and zone; one without a zone is taken as UTC. Years beyond those of nanoseconds stay."""
    moments = [datetime(1, 1, 1, tzinfo=UTC), datetime(1969, 12, 31, 23, 59, 59, tzinfo=UTC), datetime(3018, 1, 2, tzinfo=UTC)]
    per_second = {"s": 1, "ms": 1_000, "us": 1_000_000}[unit]
    numbers = [round((moment - datetime(1970, 1, 1, tzinfo=UTC)) / timedelta(seconds=1)) * per_second for moment in moments]

    assert _conformed(pa.array(numbers, pa.timestamp(unit, tz=zone)), "timestamp") == moments


def test_nanoseconds_are_cut_downwards_and_counted() -> None:
    """Before 1970 too, so that the order stays; nothing is counted where no digit was lost."""
    lost = LostDigits()
    numbers = [-1, 0, 1, 999, 1_000, -1_000, None, -1_001]

    values = _conformed(pa.array(numbers, pa.timestamp("ns")), "timestamp", lost)

    epoch, step = datetime(1970, 1, 1, tzinfo=UTC), timedelta(microseconds=1)
    assert values == [epoch - step, epoch, epoch, epoch, epoch + step, epoch - step, None, epoch - 2 * step]
    assert lost == {"c": 4}


@pytest.mark.parametrize(
    ("values", "kind", "shown"),
    [
        (pa.array([1, 200], pa.int64()), "tinyint", "200 (int64 in the file)"),
        (pa.array([1, 2**63], pa.uint64()), "bigint", "9223372036854775808 (uint64 in the file)"),
        (pa.array([1, 100_000], pa.int32()), "decimal(5,2)", "100000 (int32 in the file)"),
        (pa.array([Decimal("1.00"), Decimal("1.25")], pa.decimal128(5, 2)), "decimal(5,1)", "1.25 (decimal128(5, 2) in the file)"),
        (pa.array([0.5, 0.1], pa.float64()), "float", "0.1 (double in the file)"),
        (pa.array([0.5, 1e300], pa.float64()), "float", "1e+300 (double in the file)"),
        (pa.array([0, 1], pa.date64()), "date", "1970-01-01 (date64[ms] in the file)"),
        (pa.array([0, 86_400], pa.int32()).cast(pa.time32("s")), "string", "86400> (time32[s] in the file)"),
        (pa.array([86_399_999_999, -1], pa.int64()).cast(pa.time64("us")), "string", "-1> (time64[us] in the file)"),
        (pa.array([0, 2**62], pa.timestamp("s")), "timestamp", "(timestamp[s] in the file)"),
    ],
    ids=lambda value: str(value.type) if isinstance(value, pa.Array) else None,
)  # fmt: skip
def test_a_value_that_does_not_fit_is_refused(values: pa.Array, kind: str, shown: str) -> None:
    """The error names file, row, column, the lake's type and the value."""
    error = _refusal(values, kind, first_row=1000)

    assert error.code == "value-lost"
    for part in ("LOAD00000001.parquet", "row 1001", "'c'", f"expected: {kind}", shown):
        assert part in error.message
    assert error.todo


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        (pa.array(["1"]), "int"),
        (pa.array([1]), "string"),
        (pa.array([1]), "double"),
        (pa.array([1.0]), "bigint"),
        (pa.array([True]), "tinyint"),
        (pa.array([1], pa.int8()), "boolean"),
        (pa.array([b"x"]), "string"),
        (pa.array(["x"]), "binary"),
        (pa.array(["2024-01-01"]), "date"),
        (pa.array([date(2024, 1, 1)]), "timestamp"),
        (pa.array([datetime(2024, 1, 1)]), "date"),
        (pa.array([0.5]), "decimal(3,1)"),
        (pa.array([[1]]), "bigint"),
    ],
)
def test_another_kind_of_type_is_refused(values: pa.Array, kind: str) -> None:
    """Also where this one value could be cast: the next one could not."""
    error = _refusal(values, kind)

    assert error.code == "type-changed"
    for part in ("LOAD00000001.parquet", "'c'", f"expected: {kind}", str(values.type)):
        assert part in error.message


def test_a_long_value_is_shortened_in_the_error() -> None:
    """An error is no place for a blob."""
    error = _refusal(pa.array([Decimal("9" * 60)], pa.decimal256(76, 0)), "decimal(38,0)")

    assert "9" * 39 + "…" in error.message
    assert "9" * 40 not in error.message


def test_a_column_that_stands_twice_is_refused() -> None:
    """Which of them is meant can't be told."""
    rows = pa.Table.from_arrays([pa.array([1]), pa.array([2])], names=["c", "c"])

    with pytest.raises(TableBlocked, match="2 columns have the name 'c'") as caught:
        conform(rows, (Column("c", "bigint"),), "f.parquet")

    assert caught.value.code == "column-twice"


def test_spark_gets_columns_by_name_through_conform(spark: SparkSession) -> None:
    """mapInArrow binds by position: a batch in another order is silently swapped, unless it is conformed."""
    schema = (Column("a", "bigint"), Column("b", "bigint"))

    def swapped(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield from (batch.select(["b", "a"]) for batch in batches)

    def conformed(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in swapped(batches):
            yield from conform(batch, schema, "f").to_batches()

    frame = spark.createDataFrame([(1, 2)], "a bigint, b bigint")

    assert tuple(frame.mapInArrow(swapped, "a bigint, b bigint").first()) == (2, 1)
    assert tuple(frame.mapInArrow(conformed, "a bigint, b bigint").first()) == (1, 2)


def test_null_where_takes_slices() -> None:
    """Of texts too, of which Arrow's own way makes zero bytes then."""
    part = pa.array(["cut", "1", "", None, "4"]).slice(1)
    many = pa.chunked_array([part, pa.array(["cut", "", "6"]).slice(1)])
    assert null_where(pc.equal(part, ""), part).to_pylist() == ["1", None, None, "4"]
    assert null_where(pc.equal(many, ""), many).to_pylist() == ["1", None, None, "4", None, "6"]
