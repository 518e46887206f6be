"""What readers do with a contender's table: a full scan, a point query, and the digest of all rows."""

from __future__ import annotations

import io
import tempfile
from dataclasses import asdict
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

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


def check_order(contender: Contender, table: str) -> int:
    """That the keys of each data file ascend; how many files there are. Raises ValueError."""
    bucket, prefix = contender.folder
    count = 0
    for path, _ in contender.world.list_keys(bucket, f"{prefix}{table}/"):
        if not path.endswith(".parquet") or "/_" in path:  # a table's log may be Parquet, too
            continue
        data = contender.world.s3.get_object(Bucket=bucket, Key=path)["Body"].read()
        if not ascends(pq.read_table(io.BytesIO(data), columns=[KEY])[KEY]):
            raise ValueError(f"the keys of {path} do not ascend")
        count += 1
    if not count:
        raise ValueError(f"no data file below {prefix}{table}/")
    return count


def ascends(keys: pa.ChunkedArray) -> bool:
    """Whether no key is less than the one before it."""
    whole = keys.combine_chunks()
    return pc.all(pc.less_equal(whole.slice(0, max(0, len(whole) - 1)), whole.slice(1)), min_count=0).as_py() is True
