"""DMS's physical files: their names and their Parquet bytes, for whoever stands in for DMS."""

from __future__ import annotations

import io
import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta, timezone
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from infra.local.dms_footer import as_dms_writes

OP_COLUMN = "Op"
ROW_GROUP_ROWS = 10_024
"""DMS's default `RowGroupLength`."""

_CDC_NAME = re.compile(r"(\d{8}-\d{6})(\d{3})\.parquet")
_MILLISECOND = timedelta(milliseconds=1)


def load_file_name(number: int) -> str:
    """The name of load file `number`, counted from 1; the counter in it is hexadecimal."""
    if not 1 <= number <= 0xFFFFFFFF:
        raise ValueError(f"load file number: expected 1 to 4294967295, found {number}")
    return f"LOAD{number:08X}.parquet"


def cdc_file_name(when: datetime) -> str:
    """The name of a CDC file written at `when` (aware; the name is in UTC, cut to milliseconds)."""
    if when.tzinfo is None:
        raise ValueError(f"time of a CDC file: expected an aware datetime, found {when!r}")
    utc = when.astimezone(timezone.utc)
    return f"{utc:%Y%m%d-%H%M%S}{utc.microsecond // 1000:03d}.parquet"


def cdc_file_time(name: str) -> datetime:
    """The time (UTC) that a CDC file's name says."""
    match = _CDC_NAME.fullmatch(name)
    if match is None:
        raise ValueError(f"CDC file name: expected YYYYMMDD-HHMMSSmmm.parquet, found {name!r}")
    whole = datetime.strptime(match[1], "%Y%m%d-%H%M%S").replace(tzinfo=timezone.utc)
    return whole + int(match[2]) * _MILLISECOND


class CdcFileNames:
    """One table's CDC file names: each greater than the one before, whatever the clock says.

    The order of names is the order of the changes, so a clock that stands still or goes back must not show in them.
    """

    def __init__(self, last: str | None = None) -> None:
        self.last = last

    def next(self, when: datetime) -> str:
        """The name for a file written at `when`; a millisecond after the last name if that isn't later."""
        name = cdc_file_name(when)
        if self.last is not None and name <= self.last:
            name = cdc_file_name(cdc_file_time(self.last) + _MILLISECOND)
        self.last = name
        return name


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


def dms_parquet(table: pa.Table) -> bytes:
    """The table as a Parquet file that looks like DMS's: see `dms_footer` for what its footer leaves out.

    Uncompressed, PLAIN, row groups of 10,024 rows, no statistics on decimals.
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
        compression="none",
        use_dictionary=False,
        column_encoding="PLAIN",
        write_statistics=[field.name for field in table.schema if not pa.types.is_decimal(field.type)],
        store_schema=False,
    )
    return as_dms_writes(stream.getvalue())


def timestamp_text(when: datetime) -> str:
    """DMS's text for a commit timestamp (aware datetimes in UTC)."""
    utc = when if when.tzinfo is None else when.astimezone(timezone.utc)
    return utc.isoformat(sep=" ", timespec="microseconds")[:26]


def _timestamp_text(value: datetime | str | None) -> str:
    if value is None:
        raise ValueError("timestamp column: expected a commit time in every row, found None")
    return value if isinstance(value, str) else timestamp_text(value)


def _value(values: Sequence[Any] | Mapping[str, Any], index: int, name: str) -> Any:
    if isinstance(values, Mapping):
        return values.get(name)
    return values[index]
