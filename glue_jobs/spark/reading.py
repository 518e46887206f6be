"""Reading a table of the past on Arrow: some columns of some rows, counts and sums, in bounded memory."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from decimal import Decimal, localcontext
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from glue_jobs.core.dms_columns import BEFORE_IMAGES
from glue_jobs.core.errors import UsageError
from glue_jobs.core.limits import Limits
from glue_jobs.core.paths import S3Uri
from glue_jobs.core.schema import Schema, find
from glue_jobs.spark.arrow_types import to_arrow
from glue_jobs.spark.place import CLIENT_VARIABLES, Place
from glue_jobs.spark.plain_rows import plain_float, plain_rows

DIGITS = 80  # of a sum of decimals, so that none is lost


def reading_place(
    environment: Mapping[str, str], raw_bucket: str, lake: S3Uri, limits: Limits, before_images: tuple[str, ...] = BEFORE_IMAGES
) -> Place:
    """The place of somebody who only reads."""
    client = tuple((name, environment[name]) for name in CLIENT_VARIABLES if environment.get(name))
    return Place(client, raw_bucket, lake, "", "", limits, before_images)


def check_columns(schema: Schema, names: Iterable[str]) -> None:
    """UsageError for a name that is no column."""
    for name in names:
        if find(schema, name) is None:
            there = ", ".join(column.name for column in schema)
            raise UsageError(f"there is no column {name!r}", "unknown-column", f"the columns are: {there}")


def check_sums(schema: Schema, names: Iterable[str]) -> None:
    """UsageError for a column that is none or has no numbers."""
    names = list(names)
    check_columns(schema, names)
    for name in names:
        column = find(schema, name)
        kind = to_arrow(column.type) if column else pa.null()
        if not (pt.is_integer(kind) or pt.is_decimal(kind) or pt.is_floating(kind)):
            raise UsageError(
                f"the column {name!r} has no numbers: it is {column.type if column else ''}", "no-sum", "sum a column of numbers"
            )


def page(batches: Iterable[pa.RecordBatch], columns: Sequence[str], limit: int | None) -> Iterator[list[tuple[Any, ...]]]:
    """The first `limit` rows (None: all) as plain values of the columns named, in pieces. No more is read than is wanted."""
    left = limit
    for batch in batches:
        rows = pa.Table.from_batches([batch]).select(list(columns))
        rows = rows if left is None else rows.slice(0, left)
        yield plain_rows(rows)
        if left is not None:
            left -= rows.num_rows
            if not left:
                return


def totals(batches: Iterable[pa.RecordBatch], sums: Sequence[str]) -> tuple[int, dict[str, Any]]:
    """(rows, column → sum as a plain value; None where there is no value to be summed). Exact but for floats."""
    rows, found = 0, dict.fromkeys(sums)
    with localcontext() as context:
        context.prec = DIGITS
        for batch in batches:
            rows += batch.num_rows
            for name in sums:
                part = _sum(batch.column(batch.schema.get_field_index(name)))
                before: Any = found[name]
                found[name] = before if part is None else part if before is None else before + part
    return rows, {name: _plain(value) for name, value in found.items()}


def _sum(values: pa.Array) -> Any:
    if pt.is_integer(values.type):
        total = pc.sum(values.cast(pa.decimal128(20, 0)).cast(pa.decimal256(76, 0))).as_py()
        return None if total is None else int(total)
    if pt.is_decimal(values.type):
        return pc.sum(values.cast(pa.decimal256(76, values.type.scale))).as_py()
    return pc.sum(values).as_py()


def _plain(value: Any) -> Any:
    if isinstance(value, Decimal):
        return format(value, "f")
    return plain_float(value) if isinstance(value, float) else value
