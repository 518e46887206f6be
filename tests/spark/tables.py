"""Lake tables for the tests of the work itself: jobs run in this process, with clients that are made once."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from glue_jobs.aws.clients import Deadline
from glue_jobs.aws.objects import read_bytes
from glue_jobs.core.actions import Rewrite, SyncHistory, TakeBatch, TakeLoad, Truncate
from glue_jobs.core.arguments import parse_arguments
from glue_jobs.core.partitioning import values_of
from glue_jobs.core.record import DataFile
from glue_jobs.core.settings import Settings
from glue_jobs.core.work import Worker
from glue_jobs.protocol.intake import take_with
from glue_jobs.protocol.job import job_settings, run_table
from glue_jobs.protocol.job_log import JobLog
from glue_jobs.protocol.table_run import JobContext
from glue_jobs.spark.key_columns import encoded_bounds, sort_by_key
from glue_jobs.spark.partition_columns import with_partition_columns
from glue_jobs.spark.worker import SparkWorker
from tests.lake import DRIVER, LakeTable

TAKES: dict[str, tuple[type, ...]] = {"LoadInitial": (TakeLoad,), "LoadIncremental": (TakeBatch, Rewrite, Truncate, SyncHistory)}
SHOP = pa.schema([("id", pa.int64()), ("name", pa.string()), ("qty", pa.int32())])
MakeWorker = Callable[[Settings, Mapping[str, str]], Worker]


@dataclass
class WorkTable(LakeTable):
    """A LakeTable whose runs share its clients, and that can look into its data files."""

    make_worker: MakeWorker = SparkWorker

    def run(self, job: str = "LoadIncremental", **settings: Any) -> int:
        if job not in TAKES:
            return super().run(job, **settings)
        given = {"driver_bytes": DRIVER, "lease_seconds": "60", **settings}
        argv = ["--path", str(self.path), "--state_table", self.environment["DMSLAKE_STATE_TABLE"]]
        for name, value in given.items():
            argv += [f"--{name}", str(value)]
        resolved = job_settings(parse_arguments(argv), {})
        log = JobLog(resolved.run_id, _now)
        context = JobContext(job, self.clients, Deadline(), self.state_table, resolved, log, _now)
        take = take_with(self.make_worker(resolved, self.environment), TAKES[job], staging=settings.get("stage") == "true")
        return run_table(context, self.path, take)

    def blocked(self, **settings: Any) -> dict[str, str]:
        """Both jobs, of which the second at least must be refused; the error: code, message, todo."""
        codes = [self.run(job, **settings) for job in TAKES]
        result = self.item()["LastRun"]
        assert codes[-1] == 1, result
        assert result["outcome"] == "blocked", result
        error: dict[str, str] = result["error"]
        return error

    def last_run(self) -> dict[str, Any]:
        return dict(self.item()["LastRun"])

    def counts(self) -> tuple[int, int, int]:
        """Rows inserted, updated, deleted by the last run."""
        result = self.last_run()
        return int(result["inserted"]), int(result["updated"]), int(result["deleted"])

    def data(self, file: DataFile) -> pa.Table:
        """The rows of a data file, with the columns that its folder stands for."""
        bytes_ = read_bytes(self.clients.s3, self.out_path.bucket, self.out_path.key + file.path)
        snapshot = self.snapshot()
        table = pq.read_table(pa.BufferReader(bytes_))
        return with_partition_columns(table, snapshot.partitioning, values_of(file.path, snapshot.partitioning), snapshot.schema)

    def check_files(self, ordered: bool = True) -> None:
        """What the records say of each data file is so: rows, partition, key range; and (ordered) its rows are sorted by key."""
        snapshot = self.snapshot()
        types = tuple(column.type for name in snapshot.primary_key for column in snapshot.schema if column.name == name)
        for file in snapshot.files.values():
            table = self.data(file)
            assert table.num_rows == file.rows > 0
            assert values_of(file.path, snapshot.partitioning) == file.partition
            assert file.upload is None
            if snapshot.primary_key:
                assert encoded_bounds(table, snapshot.primary_key, types) == (file.low, file.high)
                assert not ordered or table.equals(sort_by_key(table, snapshot.primary_key)) or has_nan(table)

    def open_uploads(self) -> list[str]:
        """Keys of uploads below the lake table's folder that were neither completed nor aborted."""
        answer = self.clients.s3.list_multipart_uploads(Bucket=self.out_path.bucket, Prefix=self.out_path.key)
        return [entry["Key"] for entry in answer.get("Uploads", ())]


def has_nan(table: pa.Table) -> bool:
    """Whether a float column has a NaN: Arrow says that no such table equals another."""
    floats = [column for column in table.itercolumns() if pa.types.is_floating(column.type)]
    return any(value is not None and math.isnan(value) for column in floats for value in column.to_pylist())


def texts(rows: Iterable[Sequence[Any]]) -> list[str]:
    """Rows as sorted texts that say every difference: NaN is itself, −0.0 is not 0.0, 1.0 is not 1.00, an instant has one zone."""
    return sorted(repr([value.isoformat() if isinstance(value, datetime) else value for value in row]) for row in rows)


def _now() -> datetime:
    return datetime.now(timezone.utc)
