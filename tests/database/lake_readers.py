"""A lake table's folder as Spark, DuckDB and pyarrow read it: (column → lake type, rows)."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, datetime, timedelta, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import pyarrow as pa
import pyarrow.dataset as ds

from tests.database.lake_rows import Values

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Read = tuple[dict[str, str], list[Values]]

EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
EPOCH_DAY = date(1970, 1, 1).toordinal()

# Each reader's own word for the lake's type.
DUCKDB_TYPES = {
    "BOOLEAN": "boolean", "TINYINT": "tinyint", "SMALLINT": "smallint", "INTEGER": "int", "BIGINT": "bigint", "FLOAT": "float",
    "DOUBLE": "double", "VARCHAR": "string", "BLOB": "binary", "DATE": "date", "TIMESTAMP WITH TIME ZONE": "timestamp",
}  # fmt: skip
ARROW_TYPES = {
    pa.bool_(): "boolean", pa.int8(): "tinyint", pa.int16(): "smallint", pa.int32(): "int", pa.int64(): "bigint",
    pa.float32(): "float", pa.float64(): "double", pa.string(): "string", pa.binary(): "binary", pa.date32(): "date",
    pa.timestamp("us", "UTC"): "timestamp",
}  # fmt: skip


def read_spark(spark: SparkSession, folder: Path) -> Read:
    """By path, schemas merged: a file written before a column was added lacks it."""
    frame = spark.read.option("mergeSchema", "true").parquet(str(folder))
    types = {field.name: field.dataType.simpleString() for field in frame.schema}
    # As micros and days: PySpark makes datetimes in the machine's time zone.
    forms = {"timestamp": "unix_micros(`{0}`) AS `{0}`", "date": "unix_date(`{0}`) AS `{0}`"}
    rows = frame.selectExpr(*(forms.get(kind, "`{0}`").format(name) for name, kind in types.items())).collect()
    return types, [{name: _from_spark(types[name], value) for name, value in row.asDict().items()} for row in rows]


def _from_spark(kind: str, value: Any) -> Any:
    made: dict[str, Callable[[Any], Any]] = {
        "timestamp": lambda micros: EPOCH + timedelta(microseconds=micros),
        "date": lambda days: date.fromordinal(days + EPOCH_DAY),
        "binary": bytes,
    }
    return value if value is None or kind not in made else made[kind](value)


def read_duckdb(folder: Path) -> Read:
    """By path, hive partitions, columns united by name."""
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        relation = connection.sql(f"SELECT * FROM read_parquet('{folder}/**/*.parquet', hive_partitioning = true, union_by_name = true)")
        types = {name: _duckdb_type(str(kind)) for name, kind in zip(relation.columns, relation.types, strict=True)}
        rows = relation.fetchall()
    return types, [dict(zip(types, row, strict=True)) for row in rows]


def _duckdb_type(kind: str) -> str:
    return kind.lower() if kind.startswith("DECIMAL(") else DUCKDB_TYPES[kind]


def read_arrow(folder: Path, partition_types: dict[str, str]) -> Read:
    """By path; pyarrow has to be told the types of the folder columns, and the schema that all files fit into."""
    by_name = {name: kind for kind, name in ARROW_TYPES.items()}
    folders = pa.schema([(name, by_name[kind]) for name, kind in partition_types.items()])
    files = sorted(folder.rglob("*.parquet"))
    schema = pa.unify_schemas([*(ds.dataset(file).schema.remove_metadata() for file in files), folders])
    table = ds.dataset(folder, schema=schema, partitioning=ds.partitioning(folders, flavor="hive")).to_table()
    types = {field.name: _arrow_type(field.type) for field in table.schema}
    return types, table.to_pylist()


def _arrow_type(kind: pa.DataType) -> str:
    return f"decimal({kind.precision},{kind.scale})" if pa.types.is_decimal(kind) else ARROW_TYPES[kind]
