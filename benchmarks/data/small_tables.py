"""Small tables of a shop with DMS's files for them: what the benchmarks of small batches work on."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from typing import Any

import numpy as np
import pyarrow as pa

from benchmarks.server.stand import Stand
from glue_jobs.aws.clients import make_clients
from glue_jobs.aws.state_table import StateTable
from glue_jobs.core.paths import S3Uri, TablePath, lake_folder
from glue_jobs.core.state import default_item
from infra.local.dms_files import cdc_file_name, dms_parquet, load_file_name

PUTS = 16
FIRST = datetime(2024, 5, 1, 12, tzinfo=timezone.utc)
LOAD_FILE_ROWS = 500_000


@dataclass(frozen=True)
class SmallTable:
    """A table's item, raw folder and lake folder on a stand. rows: of its load, with ids from 0."""

    stand: Stand
    name: str
    rows: int

    @property
    def path(self) -> TablePath:
        raw = S3Uri.parse(self.stand.environment["DMSLAKE_RAW"])
        return TablePath(raw.bucket, f"{raw.key}shop/", f"{self.name}/")

    def put_load(self, seed: int = 1) -> None:
        """The load files, as DMS writes them."""
        rows = shop_rows(np.arange(self.rows), "I", seed)
        for number, start in enumerate(range(0, self.rows, LOAD_FILE_ROWS), 1):
            self._put(load_file_name(number), dms_parquet(rows.slice(start, LOAD_FILE_ROWS)))

    def put_changes(self, files: Sequence[bytes], after: timedelta, every: timedelta = timedelta(seconds=1)) -> None:
        """CDC files with these bytes, the first one named `after` FIRST, the others `every` later each."""
        names = [cdc_file_name(FIRST + after + every * at) for at in range(len(files))]
        with ThreadPoolExecutor(PUTS) as pool:
            list(pool.map(self._put, names, files))

    def _put(self, name: str, data: bytes) -> None:
        self.stand.s3.put_object(Bucket=self.path.bucket, Key=self.path.raw.key + name, Body=data)

    def size_bytes(self) -> int:
        """Of the data files that a reader lists."""
        out = lake_folder(self.stand.environment["DMSLAKE_LAKE"], self.path)
        pages = self.stand.s3.get_paginator("list_objects_v2").paginate(Bucket=out.bucket, Prefix=out.key)
        return sum(entry["Size"] for page in pages for entry in page.get("Contents", ()))


def make_tables(stand: Stand, names: Iterable[str], rows: int, **attributes: str) -> list[SmallTable]:
    """Tables with active items and a key, not loaded yet."""
    states = StateTable(make_clients(stand.environment), stand.environment["DMSLAKE_STATE_TABLE"])
    tables = [SmallTable(stand, name, rows) for name in names]
    for table in tables:
        states.create(default_item(table.path, str(lake_folder(stand.environment["DMSLAKE_LAKE"], table.path))))
        states.set_attributes(str(table.path), {"PrimaryKey": "id", "ActiveFlag": "true", **attributes})
    return tables


def last_runs(stand: Stand, tables: Sequence[SmallTable]) -> list[Mapping[str, Any]]:
    """What the items say of their last run."""
    states = StateTable(make_clients(stand.environment), stand.environment["DMSLAKE_STATE_TABLE"])
    items = states.batch_get([str(table.path) for table in tables])
    return [items[str(table.path)]["LastRun"] for table in tables]


def shop_rows(ids: Any, op: str, seed: int) -> pa.Table:
    """Rows with these ids as DMS writes them: two numbers, a day, 40 characters."""
    rng, count = np.random.default_rng(seed), len(ids)
    return pa.table(
        {
            "Op": pa.array([op] * count),
            "id": pa.array(ids, pa.int64()),
            "store": rng.integers(0, 1000, count, dtype=np.int32),
            "day": pa.array((18_262 + np.asarray(ids) % 730).astype(np.int32)).cast(pa.date32()),
            "amount": pa.array(rng.random(count) * 1000).cast(pa.decimal128(12, 2), safe=False),
            "note": pa.array([rng.bytes(20).hex() for _ in range(count)]),
        }
    )


def change_files(table_rows: int, files: int, rows_per_file: int, seed: int = 2) -> list[bytes]:
    """CDC files: in each nine of ten rows are updates scattered over the table, the others are new."""
    rng = np.random.default_rng(seed)
    made, new = [], max(1, rows_per_file // 10)
    for number in range(files):
        old = rng.choice(table_rows, rows_per_file - new, replace=table_rows < rows_per_file)
        fresh = np.arange(new) + table_rows + number * new
        updates, inserts = shop_rows(np.sort(old), "U", seed + number), shop_rows(fresh, "I", seed + number)
        made.append(dms_parquet(pa.concat_tables([updates, inserts])))
    return made
