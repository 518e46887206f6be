"""A table's rows as one short value that Spark and DuckDB compute alike, whatever the order of the rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import duckdb
import pyarrow as pa

# 60 bits of an MD5 for each row: their sum can't overflow 128 bits, and both programs have the function.
_HASH_DIGITS = 15
_TEXT = """concat_ws('|', cast(id AS {text}), cast(store_id AS {text}), cast(product_id AS {text}), cast(order_date AS {text}),
    cast(qty AS {text}), cast(amount AS {text}), status, note, cast({micros}(modified) AS {text}))"""
_SPARK = "conv(substring(md5({row}), 1, {digits}), 16, 10)"
_DUCKDB = "('0x' || substr(md5({row}), 1, {digits}))::BIGINT"


@dataclass(frozen=True)
class Digest:
    """How many rows, and the sum of their hashes."""

    rows: int
    total: int


def digest_in_duckdb(relation: str, connection: Any) -> Digest:
    """Of what `SELECT … FROM relation` finds."""
    row = _DUCKDB.format(row=_TEXT.format(text="VARCHAR", micros="epoch_us"), digits=_HASH_DIGITS)
    count, total = connection.execute(f"SELECT count(*), coalesce(sum({row}), 0) FROM {relation}").fetchone()
    return Digest(int(count), int(total))


def digest_of(rows: pa.Table) -> Digest:
    """Of rows in memory."""
    connection = duckdb.connect()
    connection.execute("SET TimeZone = 'UTC'")
    connection.register("given", rows)
    return digest_in_duckdb("given", connection)


def digest_in_spark(frame: Any) -> Digest:
    """Of a Spark DataFrame with the table's columns."""
    row = _SPARK.format(row=_TEXT.format(text="STRING", micros="unix_micros"), digits=_HASH_DIGITS)
    found = frame.selectExpr(f"cast({row} AS decimal(20, 0)) AS hash").selectExpr("count(*) AS count", "sum(hash) AS total").first()
    return Digest(int(found["count"]), int(found["total"] or 0))
