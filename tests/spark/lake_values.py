"""Values of every lake type, for Hypothesis, and the comparable form of a value said a second time, in plain Python."""

from __future__ import annotations

from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st

from glue_jobs.core.schema import Column, Schema, decimal_parts
from glue_jobs.spark.arrow_types import arrow_schema

UTC = timezone.utc
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
TYPES = (
    "tinyint", "int", "bigint", "decimal(38,4)", "decimal(9,9)", "string", "binary", "date", "timestamp", "double", "float", "boolean",
)  # fmt: skip


def _datetimes() -> st.SearchStrategy[datetime]:
    return st.datetimes(datetime(1, 1, 1), datetime(9999, 12, 31, 23, 59, 59, 999_999)).map(lambda value: value.replace(tzinfo=UTC))


def values_of_type(kind: str) -> st.SearchStrategy[Any]:
    """Values of a lake type; text without surrogates, NUL included."""
    simple: dict[str, st.SearchStrategy[Any]] = {
        "tinyint": st.integers(-128, 127),
        "int": st.integers(-(2**31), 2**31 - 1),
        "bigint": st.integers(-(2**63), 2**63 - 1),
        "string": st.text(st.characters(exclude_categories=["Cs"]), max_size=4),
        "binary": st.binary(max_size=3),
        "date": st.dates(),
        "timestamp": _datetimes(),
        "double": st.floats(),
        "float": st.floats(width=32),
        "boolean": st.booleans(),
    }
    parts = decimal_parts(kind)
    if parts is None:
        return simple[kind]
    limit = 10 ** parts[0] - 1
    # From the digits: scaleb would round to the context's 28.
    return st.integers(-limit, limit).map(lambda digits: Decimal((int(digits < 0), _digits(digits), -parts[1])))


def _digits(number: int) -> tuple[int, ...]:
    return tuple(int(digit) for digit in str(abs(number)))


@st.composite
def rows_of(draw: st.DrawFn, nullable: bool = False, max_rows: int = 12) -> tuple[Schema, list[tuple[Any, ...]]]:
    """A schema of one to three columns k0, k1, k2, and rows of it that often agree in a column."""
    kinds = draw(st.lists(st.sampled_from(TYPES), min_size=1, max_size=3))
    schema = tuple(Column(f"k{index}", kind) for index, kind in enumerate(kinds))
    pools = [draw(st.lists(values_of_type(kind), min_size=1, max_size=4)) for kind in kinds]
    columns = [st.sampled_from([None, *pool] if nullable else pool) for pool in pools]
    return schema, draw(st.lists(st.tuples(*columns), max_size=max_rows))


def table_of(schema: Schema, rows: list[tuple[Any, ...]]) -> pa.Table:
    """The rows as an Arrow table in the lake's types."""
    arrow = arrow_schema(schema)
    arrays = [pa.array([row[index] for row in rows], field.type) for index, field in enumerate(arrow)]
    return pa.Table.from_arrays(arrays, schema=arrow)


def plain_comparable(value: Any) -> Any:
    """What core.keys says of comparable forms, without Arrow."""
    if isinstance(value, str):
        return value.encode()
    if isinstance(value, float):
        return (1, 0.0) if value != value else (0, value + 0.0)
    if isinstance(value, datetime):
        return (value - EPOCH) // timedelta(microseconds=1)
    if isinstance(value, date):
        return value.toordinal() - EPOCH.toordinal()
    return int(value) if isinstance(value, bool) else value


def plain_key(row: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(plain_comparable(value) for value in row)
