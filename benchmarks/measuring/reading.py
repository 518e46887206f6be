"""What readers do with a contender's table: a full scan, a point query, and the digest of all rows."""

from __future__ import annotations

import tempfile
from dataclasses import asdict
from pathlib import Path
from typing import Any

import duckdb

from benchmarks.contenders.contender import Contender
from benchmarks.contenders.ours import Ours
from benchmarks.data.base import KEY
from benchmarks.data.digest import digest_in_duckdb, digest_in_spark

# Every column is read, and little is computed.
_SCAN = (
    f"count({KEY})", "sum(store_id)", "sum(product_id)", "max(order_date)", "sum(qty)", "sum(amount)",
    "max(status)", "max(length(note))", "max(modified)",
)  # fmt: skip


def scan(contender: Contender, table: str) -> int:
    """A query that reads every column of every row; how many rows there are."""
    found = contender.frame(table).selectExpr(*_SCAN).first()
    return int(found[0])


def point(contender: Contender, table: str) -> int:
    """A query for one row by its key; how many there are."""
    rows = contender.frame(table).where(f"{KEY} = {contender.world.prepared.point_literal}").collect()
    return len(rows)


def digest(contender: Contender, table: str) -> dict[str, int]:
    """The Digest of all rows, by Spark."""
    return asdict(digest_in_spark(contender.frame(table)))


def digest_by_duckdb(contender: Contender, table: str) -> dict[str, int]:
    """The Digest of all rows of a table of ours, by DuckDB on a copy of the files that a reader lists."""
    if not isinstance(contender, Ours):
        raise TypeError(f"DuckDB reads tables of dmslake only, found {contender.name}")
    with tempfile.TemporaryDirectory(prefix="bench-copy-") as folder:
        contender.local_copy(table, Path(folder))
        connection: Any = duckdb.connect()
        connection.execute("SET TimeZone = 'UTC'")
        return asdict(digest_in_duckdb(f"read_parquet('{folder}/*.parquet')", connection))
