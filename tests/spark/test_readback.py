"""Lake tables read by path, as people read them: Spark, DuckDB and pyarrow see the source's values, partitions included."""

from __future__ import annotations

import math
from collections.abc import Callable
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import pyarrow as pa
import pyarrow.dataset as ds
import pytest

from glue_jobs.aws.objects import read_bytes
from glue_jobs.core.schema import Column, find
from glue_jobs.spark.arrow_types import arrow_schema, to_arrow
from tests.spark.tables import WorkTable, texts
from tests.work_tables import MakeTable

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

COLUMNS = pa.schema(
    [
        ("id", pa.int64()), ("day", pa.date32()), ("at", pa.timestamp("us")), ("amount", pa.decimal128(38, 10)), ("ratio", pa.float64()),
        ("raw", pa.binary()), ("name", pa.string()), ("big", pa.uint64()), ("flag", pa.bool_()), ("kind", pa.string()),
    ]
)  # fmt: skip
LARGE = Decimal("9999999999999999999999999999.9999999999")
TENTH = Decimal("0.1000000000")
ROWS: list[tuple[Any, ...]] = [
    (1, date(1, 1, 1), datetime(1, 1, 1), LARGE, math.nan, b"", "", 2**64 - 1, True, "a b"),
    (2, date(1500, 2, 28), datetime(1500, 6, 1, 1, 2, 3, 456_789), LARGE.copy_negate(), -math.inf, b"\0\xff", "é😀'\"\n", 0, False,
     "c/d=e%f"),
    (3, date(1899, 12, 31), datetime(1899, 12, 31, 23, 59, 59, 999_999), TENTH, -0.0, b"PAR1", "NULL", 1, None, "é😀"),
    (4, date(3018, 1, 2), datetime(3018, 1, 2, 3, 4, 5, 678_901), TENTH, 1e308, b"x", "x", 1, True, "__x"),
    (5, *[None] * 9),
]  # fmt: skip
# The same, each changed once more by the batch.
AFTER = [(*row[:6], "changed", *row[7:]) for row in ROWS]
PARTITIONS = ["null", "kind", "day", "year(at),month(at) as m", "kind,amount", "at", "flag,big"]
Read = Callable[[WorkTable, Path], list[tuple[Any, ...]]]


def _partition_types(table: WorkTable) -> list[Column]:
    """The folders as columns: name and lake type."""
    snapshot = table.snapshot()
    found = []
    for field in snapshot.partitioning:
        column = find(snapshot.schema, field.column)
        assert column is not None
        found.append(Column(field.folder, column.type if field.transform == "identity" else "int"))
    return found


def _names() -> list[str]:
    return [str(name) for name in COLUMNS.names]


def _by_pyarrow(table: WorkTable, folder: Path) -> list[tuple[Any, ...]]:
    # pyarrow can't read a decimal from a folder's name itself.
    kinds = [(c.name, pa.string() if c.type.startswith("decimal") else to_arrow(c.type)) for c in _partition_types(table)]
    found = ds.dataset(folder, format="parquet", partitioning=ds.partitioning(pa.schema(kinds), flavor="hive")).to_table(_names())
    wanted = arrow_schema(tuple(c for n in _names() if (c := find(table.snapshot().schema, n))))
    assert all(field.type in (wanted.field(field.name).type, dict(kinds).get(field.name)) for field in found.schema)
    return [tuple(row.values()) for row in found.cast(wanted).to_pylist()]


def _by_duckdb(table: WorkTable, folder: Path) -> list[tuple[Any, ...]]:
    kinds = {"timestamp": "timestamptz", "string": "varchar"}
    # hive_types knows no decimal(p,s), so their texts are cast.
    decimals = {c.name: c.type for c in _partition_types(table) if c.type.startswith("decimal")}
    types = ", ".join(f"'{c.name}': {'varchar' if c.name in decimals else kinds.get(c.type, c.type)}" for c in _partition_types(table))
    hive = f", hive_partitioning = true, hive_types = {{{types}}}" if types else ""
    columns = ", ".join(f'"{name}"::{decimals[name]}' if name in decimals else f'"{name}"' for name in _names())
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        return connection.execute(f"SELECT {columns} FROM read_parquet('{folder}/**/*.parquet'{hive})").fetchall()


def _from_spark(row: Any) -> tuple[Any, ...]:
    values = [bytes(value) if isinstance(value, bytearray) else value for value in row]
    at = COLUMNS.names.index("at")
    values[at] = None if values[at] is None else datetime(1970, 1, 1) + timedelta(microseconds=values[at])
    return tuple(values)


def _by_spark(spark: SparkSession) -> Read:
    def read(table: WorkTable, folder: Path) -> list[tuple[Any, ...]]:
        columns = [c for c in table.snapshot().schema if c.name not in {p.name for p in _partition_types(table)}]
        schema = ", ".join(f"`{c.name}` {c.type}" for c in (*columns, *_partition_types(table)))
        # As microseconds: PySpark itself can't make a datetime of year 1.
        chosen = ["unix_micros(at)" if name == "at" else name for name in _names()]
        return [_from_spark(row) for row in spark.read.schema(schema).parquet(str(folder)).selectExpr(*chosen).collect()]

    return read


@pytest.fixture(params=["pyarrow", "duckdb", "spark"])
def read(request: pytest.FixtureRequest) -> Read:
    """A reader by path, without a catalog."""
    if request.param == "spark":
        return _by_spark(request.getfixturevalue("spark"))
    return _by_pyarrow if request.param == "pyarrow" else _by_duckdb


def _download(table: WorkTable, folder: Path) -> Path:
    """The table's folder as it stands in the lake, as files."""
    for path in table.visible():
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(read_bytes(table.clients.s3, table.out_path.bucket, table.out_path.key + path))
    return folder


def _one_zone(row: tuple[Any, ...]) -> tuple[Any, ...]:
    """Instants in UTC, whether a reader gives them a zone or not."""
    return tuple(
        value.astimezone(timezone.utc).replace(tzinfo=None) if isinstance(value, datetime) and value.tzinfo else value for value in row
    )


def _as_lake(row: tuple[Any, ...]) -> tuple[Any, ...]:
    """Unsigned 64 bit are decimals in the lake."""
    at = COLUMNS.names.index("big")
    return (*row[:at], None if row[at] is None else Decimal(row[at]), *row[at + 1 :])


@pytest.mark.parametrize("partition_key", PARTITIONS)
def test_every_reader_sees_the_sources_values(new_table: MakeTable, read: Read, partition_key: str, tmp_path: Path) -> None:
    """After a load and a batch: years 1 to 3018, 38 digits, NaN, empty binary, unsigned 64 bit, texts that folders must escape."""
    table = new_table(COLUMNS, partition_key=partition_key)
    table.load(ROWS)
    table.sync()
    table.cdc([("U", row) for row in AFTER])
    table.sync()

    found = read(table, _download(table, tmp_path))

    assert texts(_one_zone(row) for row in found) == texts(_as_lake(row) for row in AFTER)
