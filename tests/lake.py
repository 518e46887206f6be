"""A source table, its raw files and its lake table, for tests: write what DMS would write, run a job, look at the lake."""

from __future__ import annotations

import functools
import itertools
import time
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from glue_jobs import adopt, apply, backfill_history, erase, load_incremental, load_initial, rollback
from glue_jobs.aws.clients import Clients, Deadline, make_clients
from glue_jobs.aws.objects import list_files, read_bytes
from glue_jobs.aws.records import read_record
from glue_jobs.aws.state_table import StateTable
from glue_jobs.aws.uploads import list_open_uploads
from glue_jobs.core.partitioning import values_of
from glue_jobs.core.paths import TablePath, lake_folder
from glue_jobs.core.record import ChangeRecord
from glue_jobs.core.snapshot import Snapshot
from glue_jobs.core.state import default_item, read_state
from glue_jobs.core.verify import Verified
from glue_jobs.protocol.forget import ForgetPlan, ForgetTable
from glue_jobs.protocol.history import read_snapshot
from glue_jobs.protocol.job import Ended, job_settings, run_here
from glue_jobs.protocol.job_log import JobLog
from glue_jobs.protocol.lineage import Lineage
from glue_jobs.protocol.repair import Repaired, repair_table
from glue_jobs.protocol.stage import CommitStaged, DiscardStaged
from glue_jobs.protocol.table_run import JobContext
from glue_jobs.protocol.verify import FileChecks, Place, verify
from glue_jobs.spark.arrow_types import conform
from glue_jobs.spark.partition_columns import with_partition_columns
from glue_jobs.spark.verify_files import check_files
from glue_jobs.spark.verify_history import check_history
from infra.local.dms_files import DmsRow, cdc_file_name, dms_parquet, dms_table, load_file_name

DRIVER = "1000000000"  # bytes: all work in the driver, no Spark
JOBS = {
    "LoadInitial": load_initial.main,
    "LoadIncremental": load_incremental.main,
    "Rollback": rollback.main,
    "Adopt": adopt.main,
    "Apply": apply.main,
    "Erase": erase.main,
    "BackfillHistory": backfill_history.main,
}
START = datetime(2024, 5, 1, 12, tzinfo=timezone.utc)


def op_rows(rows: Iterable[tuple[str, Sequence[Any]]]) -> list[DmsRow]:
    """Rows from (`I`, `U` or `D`; values)."""
    return [DmsRow(op, values) for op, values in rows]


@functools.lru_cache(maxsize=4)
def _command_clients(environment: tuple[tuple[str, str], ...]) -> tuple[Clients, Deadline]:
    """Clients of commands that are not at the same time: making some takes longer than a repair."""
    deadline = Deadline()
    return make_clients(dict(environment), deadline), deadline


@dataclass
class LakeTable:
    """One table on an embedded AWS. Rows are tuples in the order of `columns`; CDC files get names a second apart."""

    environment: Mapping[str, str]
    raw: str  # s3://bucket/prefix/
    lake: str
    columns: pa.Schema
    primary_key: str = "id"
    partition_key: str = "null"
    table: str = field(default_factory=lambda: f"t{uuid.uuid4().hex[:10]}")
    timestamp_column: str | None = None
    shared: Clients | None = field(default=None, repr=False)  # clients of the environment that others use too: making some takes a while
    _seconds: Any = field(default_factory=itertools.count, repr=False)

    def __post_init__(self) -> None:
        self.clients: Clients = self.shared or make_clients(self.environment)
        self.state_table = StateTable(self.clients, self.environment["DMSLAKE_STATE_TABLE"])
        self.state_table.ensure()
        bucket, prefix = self.raw[5:].split("/", 1)
        self.path = TablePath(bucket, f"{prefix}shop/", f"{self.table}/")
        self.out_path = lake_folder(self.lake, self.path)
        self.state_table.create(default_item(self.path, str(self.out_path)))
        self.edit(PrimaryKey=self.primary_key, PartitionKey=self.partition_key, ActiveFlag="true")

    # --- the source

    def put_raw(self, name: str, data: bytes) -> str:
        key = self.path.raw.key + name
        self.clients.s3.put_object(Bucket=self.path.bucket, Key=key, Body=data)
        return key

    def delete_raw(self, name: str) -> None:
        self.clients.s3.delete_object(Bucket=self.path.bucket, Key=self.path.raw.key + name)

    def parquet(self, rows: Iterable[Any], with_op: bool = True, columns: pa.Schema | None = None) -> bytes:
        """A DMS file; rows are (op, values) or DmsRow."""
        dms = [row if isinstance(row, DmsRow) else DmsRow(*row) for row in rows]
        return dms_parquet(dms_table(columns or self.columns, dms, timestamp_column=self.timestamp_column, with_op=with_op))

    def load(self, rows: Iterable[Sequence[Any]], number: int = 1, columns: pa.Schema | None = None) -> str:
        return self.put_raw(load_file_name(number), self.parquet((("I", row) for row in rows), columns=columns))

    def cdc(self, rows: Iterable[Any], columns: pa.Schema | None = None, name: str | None = None) -> str:
        return self.put_raw(name or self.next_name(), self.parquet(rows, columns=columns))

    def next_name(self) -> str:
        return cdc_file_name(START + timedelta(seconds=next(self._seconds)))

    # --- the item

    def item(self) -> dict[str, Any]:
        return self.state_table.get(str(self.path)) or {}

    def edit(self, **values: Any) -> None:
        self.state_table.set_attributes(str(self.path), values)

    def remove(self, *names: str) -> None:
        self.state_table.set_attributes(str(self.path), {}, names)

    # --- runs

    def run(self, job: str = "LoadIncremental", **settings: Any) -> int:
        """Run a job in this process; its exit code."""
        given = {"driver_bytes": DRIVER, "lease_seconds": "5", "database": self.environment["DMSLAKE_DATABASE"], **settings}
        argv = ["--path", str(self.path), "--state_table", self.environment["DMSLAKE_STATE_TABLE"]]
        for name, value in given.items():
            argv += [f"--{name}", str(value)]
        return JOBS[job](argv, self.environment)

    def sync(self, **settings: Any) -> None:
        """Both load jobs, which must succeed."""
        for job in ("LoadInitial", "LoadIncremental"):
            code = self.run(job, **settings)
            assert code == 0, self.item().get("LastRun")

    # --- the lake

    def snapshot(self, change: str = "") -> Snapshot:
        """The snapshot after a change, by default after the head."""
        return read_snapshot(self.clients.s3, self.out_path, change or str(self.item().get("Head", "")))

    def lineage(self, change: str = "") -> Lineage:
        """The change records on the way back from a change, by default from the head."""
        return Lineage(self.clients.s3, self.out_path, change or str(self.item().get("Head", "")))

    def open_uploads(self) -> list[str]:
        """The keys of uploads that were neither completed nor aborted."""
        return [upload.key for upload in list_open_uploads(self.clients.s3, self.out_path.bucket, self.out_path.key)]

    def catalog_table(self) -> Any:
        """The Glue table as Glue has it."""
        name, database = self.item()["CatalogTable"], self.environment["DMSLAKE_DATABASE"]
        return self.clients.glue.get_table(DatabaseName=database, Name=name)["Table"]

    def head(self) -> ChangeRecord:
        return read_record(self.clients.s3, self.out_path, self.item()["Head"])

    def visible(self) -> set[str]:
        """Paths of the objects a reader lists below the table's folder."""
        return {file.key[len(self.out_path.key) :] for file in list_files(self.clients.s3, self.out_path.bucket, self.out_path.key)}

    def read(self, snapshot: Snapshot | None = None, visible: set[str] | None = None) -> pa.Table:
        """The table as a reader by path sees it: every visible object, partition columns from the folders."""
        snapshot, tables = snapshot or self.snapshot(), []
        for path in sorted(self.visible() if visible is None else visible):
            data = read_bytes(self.clients.s3, self.out_path.bucket, self.out_path.key + path)
            table = pq.read_table(pa.BufferReader(data))
            table = with_partition_columns(table, snapshot.partitioning, values_of(path, snapshot.partitioning), snapshot.schema)
            tables.append(conform(table, snapshot.schema, path))
        return pa.concat_tables(tables) if tables else pa.table({column.name: [] for column in snapshot.schema})

    def rows(self, snapshot: Snapshot | None = None, visible: set[str] | None = None) -> list[tuple[Any, ...]]:
        """All rows, sorted by their text, in the lake's column order."""
        table = self.read(snapshot, visible)
        return sorted(zip(*(column.to_pylist() for column in table.columns), strict=True), key=repr)

    def check_folder(self) -> None:
        """The folder holds what the head's snapshot says, no more and no less, and nothing waits."""
        assert self.visible() == set(self.snapshot().files)
        assert "Publishing" not in self.item()
        assert "LeaseOwner" not in self.item()

    def verified(self, *, quick: bool = False) -> Verified:
        """What `dmslake verify` finds."""
        place = Place(self.clients.s3, self.clients.glue, self.state_table, self.environment["DMSLAKE_DATABASE"])
        return verify(place, self.path, None if quick else FileChecks(check_files, check_history))

    def verify(self, *, quick: bool = False) -> list[str]:
        """The codes of the differences that `dmslake verify` finds; none for a table that is fine."""
        return sorted(finding.code for finding in self.verified(quick=quick).differences)

    def repair(self, wait: Callable[[float], None] = time.sleep, **settings: str) -> Repaired:
        """What `dmslake verify --repair` does when it found a difference."""
        return repair_table(self._context("Repair", wait, settings), self.path)

    def commit(self, change: str, later: timedelta = timedelta(), **settings: str) -> Ended:
        """What `dmslake commit` does; later: how much time has passed since it was staged."""
        return run_here(self._context("Commit", time.sleep, settings, later), self.path, CommitStaged(change))

    def forget(self, plan: ForgetPlan, wait: Callable[[float], None] = time.sleep, **settings: str) -> Ended:
        """What `dmslake forget` does once a person has agreed to the plan."""
        return run_here(self._context("Forget", wait, settings), self.path, ForgetTable(plan))

    def discard(self, change: str, **settings: str) -> Ended:
        """What `dmslake discard` does."""
        return run_here(self._context("Discard", time.sleep, settings), self.path, DiscardStaged(change))

    def _context(self, job: str, wait: Callable[[float], None], settings: Mapping[str, str], later: timedelta = timedelta()) -> JobContext:
        """Of a command that works in its own process."""
        given = {"database": self.environment["DMSLAKE_DATABASE"], "lease_seconds": "5", **settings, "path": str(self.path)}
        clients, deadline = _command_clients(tuple(sorted(self.environment.items())))
        table = StateTable(clients, self.state_table.name)
        log = JobLog(job.lower(), lambda: datetime.now(timezone.utc) + later)
        return JobContext(job, clients, deadline, table, job_settings(given, {}), log, log.clock, wait)

    def state(self) -> Any:
        return read_state(self.item())
