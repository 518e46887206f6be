"""Values that broke readers of Parquet: the ends of each type, NaN, texts that look like something else."""

from __future__ import annotations

import math
from datetime import date, datetime, timezone
from decimal import Decimal
from typing import Any

import pyarrow as pa

from glue_jobs.core.schema import Column, Schema
from glue_jobs.spark.arrow_types import arrow_schema, to_arrow

UTC = timezone.utc
FAR: Schema = (
    Column("id", "int"), Column("tiny", "tinyint"), Column("small", "smallint"), Column("big", "bigint"), Column("day", "date"),
    Column("at", "timestamp"), Column("amount", "decimal(38,10)"), Column("cents", "decimal(9,2)"), Column("count", "decimal(18,0)"),
    Column("ratio", "double"), Column("part", "float"), Column("raw", "binary"), Column("name", "string"), Column("flag", "boolean"),
)  # fmt: skip
LARGE = Decimal("9999999999999999999999999999.9999999999")
ROWS: list[tuple[Any, ...]] = [
    (1, -128, -(2**15), -(2**63), date(1, 1, 1), datetime(1, 1, 1, tzinfo=UTC), LARGE.copy_negate(), Decimal("-0.01"), Decimal(10**17),
     math.nan, 0.5, b"", "", True),
    (2, 127, 2**15 - 1, 2**63 - 1, date(1500, 2, 28), datetime(1500, 6, 1, 1, 2, 3, 456_789, tzinfo=UTC), LARGE, Decimal("1.10"),
     Decimal(0), -math.inf, math.inf, b"\x00\xff", "é😀'\"\n", False),
    (3, 0, 0, 0, date(1899, 12, 31), datetime(1899, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC), Decimal("0E-10"), Decimal("0.00"),
     Decimal(-1), -0.0, -0.0, b"PAR1", "NULL", None),
    (4, 1, 1, 1, date(3018, 1, 2), datetime(3018, 1, 2, 3, 4, 5, 678_901, tzinfo=UTC), Decimal("1E-10"), Decimal("9999999.99"),
     Decimal(1), 1e308, 2.0**127, b"x" * 5000, "x" * 5000, True),
    (5, *[None] * 13),
]  # fmt: skip


def far_table(rows: list[tuple[Any, ...]] = ROWS, schema: Schema = FAR) -> pa.Table:
    arrays = [pa.array([row[index] for row in rows], to_arrow(column.type)) for index, column in enumerate(schema)]
    return pa.Table.from_arrays(arrays, schema=arrow_schema(schema))


def _same(found: Any, expected: Any) -> bool:
    """Equal values of equal kinds: NaN is NaN, −0.0 is not told from 0.0."""
    if isinstance(expected, float):
        return isinstance(found, float) and (found == expected or (math.isnan(found) and math.isnan(expected)))
    return type(found) is type(expected) and found == expected


def assert_far(found: list[tuple[Any, ...]]) -> None:
    for row, expected in zip(sorted(found), ROWS, strict=True):
        for column, value, wanted in zip(FAR, row, expected, strict=True):
            assert _same(value, wanted), f"row {expected[0]}, column {column.name}: {value!r} is not {wanted!r}"
