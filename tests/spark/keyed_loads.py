"""Load files whose keys are in some order or in none, and whether the table that comes of them is sorted."""

from __future__ import annotations

import io
import itertools
import random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from glue_jobs.aws.objects import read_bytes
from glue_jobs.spark.ordered_table import ascends
from infra.local.embedded import EmbeddedAws
from tests.lake import LakeTable

COLUMNS = pa.schema([("id", pa.int64()), ("month", pa.int32()), ("name", pa.string())])
ROWS = 6000
Rows = list[tuple[Any, ...]]


def in_key_order(rows: int = ROWS, months: int = 10) -> Rows:
    """The month grows with the key, an int; the name is a text, and unique too."""
    return [(at, at * months // rows, f"n{at * 7919 % rows}") for at in range(rows)]


def files_of(rows: Rows, count: int) -> list[Rows]:
    return [rows[start : start + len(rows) // count] for start in range(0, len(rows), len(rows) // count)]


def shuffled(files: list[Rows]) -> list[Rows]:
    """Each file's rows in another order."""
    return [random.Random(1).sample(rows, len(rows)) for rows in files]


def loaded(
    aws: EmbeddedAws, files: list[Rows], partition_key: str, *, key: str = "id", columns: pa.Schema = COLUMNS, **settings: Any
) -> LakeTable:
    """A table that Spark has loaded from these files."""
    table = LakeTable(aws.environment(), aws.raw, aws.lake, columns, key, partition_key)
    for number, rows in enumerate(files, 1):
        table.load(rows, number)
    assert table.run("LoadInitial", driver_bytes=0, **settings) == 0
    return table


def is_sorted(table: LakeTable) -> bool:
    """Whether each file's keys ascend, and no two files of a partition have keys between each other's."""
    snapshot = table.snapshot()
    stored = [name for name in snapshot.primary_key if name not in {field.column for field in snapshot.partitioning}]
    for file in snapshot.files.values():
        data = read_bytes(table.clients.s3, table.out_path.bucket, table.out_path.key + file.path)
        if not ascends(pq.read_table(io.BytesIO(data)), stored):
            return False
    files = sorted(snapshot.files.values(), key=lambda file: (file.partition, file.low or ()))
    pairs = [(first, second) for first, second in itertools.pairwise(files) if first.partition == second.partition]
    return all(first.high < second.low for first, second in pairs if first.high and second.low)
