"""Rows as DMS lays them out in its Parquet files, for whoever stands in for DMS."""

from __future__ import annotations

import io
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from glue_jobs.core.dms_names import timestamp_text
from glue_jobs.spark.dms_files import OP_COLUMN
from glue_jobs.spark.dms_footer import as_dms_writes

ROW_GROUP_ROWS = 10_024
"""DMS's default `RowGroupLength`."""


class DmsRow(NamedTuple):
    """A row of a load file or CDC file."""

    op: str | None
    """I, U or D; None where DMS writes no operation."""
    values: Sequence[Any] | Mapping[str, Any]
    """In the order of the columns, or by name: a column that isn't named is null (D with only the key)."""
    committed_at: datetime | str | None = None


def dms_table(schema: pa.Schema, rows: Iterable[DmsRow], *, timestamp_column: str | None = None, with_op: bool = True) -> pa.Table:
    """The rows as DMS lays out columns: `Op`, the timestamp column if there is one, then those of `schema`.

    `with_op=False` is a load file without `IncludeOpForFullLoad`. A datetime becomes DMS's string with microseconds.
    """
    rows = list(rows)
    names, arrays = [], []
    if with_op:
        names.append(pa.field(OP_COLUMN, pa.string()))
        arrays.append(pa.array([row.op for row in rows], pa.string()))
    if timestamp_column is not None:
        names.append(pa.field(timestamp_column, pa.string(), nullable=False))
        arrays.append(pa.array([_timestamp_text(row.committed_at) for row in rows], pa.string()))
    for index, field in enumerate(schema):
        names.append(field.with_nullable(True))
        arrays.append(pa.array([_value(row.values, index, field.name) for row in rows], field.type))
    return pa.Table.from_arrays(arrays, schema=pa.schema(names))


def with_dms_columns(rows: pa.Table, ops: Sequence[str] | None, times: Sequence[str], timestamp_column: str) -> pa.Table:
    """The rows with `Op` (None for none) and the timestamp column in front. times: as `timestamp_text` makes them."""
    fields = [pa.field(timestamp_column, pa.string(), nullable=False), *rows.schema]
    arrays = [pa.array(times, pa.string()), *rows.columns]
    if ops is not None:
        fields.insert(0, pa.field(OP_COLUMN, pa.string()))
        arrays.insert(0, pa.array(ops, pa.string()))
    return pa.Table.from_arrays(arrays, schema=pa.schema(fields))


def dms_parquet(table: pa.Table, *, compression: str = "none") -> bytes:
    """The table as a Parquet file that looks like DMS's: see `dms_footer` for what its footer leaves out.

    PLAIN, row groups of 10,024 rows, no statistics on decimals. compression: DMS knows `none` and `gzip`.
    """
    for field in table.schema:
        if pa.types.is_timestamp(field.type) and field.type.unit == "ns":
            raise ValueError(f"column {field.name}: DMS writes timestamps in ms or us, found {field.type}")
    stream = io.BytesIO()
    pq.write_table(
        table.replace_schema_metadata(None),
        stream,
        version="2.6",  # 1.0 would turn UINT_32 into INT64; the footer is made a 1.0 one afterwards
        data_page_version="1.0",
        row_group_size=ROW_GROUP_ROWS,
        compression=compression,
        use_dictionary=False,
        column_encoding="PLAIN",
        write_statistics=[field.name for field in table.schema if not pa.types.is_decimal(field.type)],
        store_schema=False,
    )
    return as_dms_writes(stream.getvalue())


def _timestamp_text(value: datetime | str | None) -> str:
    if value is None:
        raise ValueError("timestamp column: expected a commit time in every row, found None")
    return value if isinstance(value, str) else timestamp_text(value)


def _value(values: Sequence[Any] | Mapping[str, Any], index: int, name: str) -> Any:
    if isinstance(values, Mapping):
        return values.get(name)
    return values[index]
