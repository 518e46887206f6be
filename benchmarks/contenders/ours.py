"""dmslake: the job LoadIncremental as Glue runs it, lease, change record, commit, publishing and catalog included."""

from __future__ import annotations

import gc
import os
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow.parquet as pq

from benchmarks.contenders.contender import Contender, World
from benchmarks.contenders.derived_base import derived_base
from benchmarks.contenders.spark_session import DRIVER_MEMORY
from benchmarks.data.base import KEY
from benchmarks.data.workloads import APPLY, CORRECT, CORRECTION_KEY, LOAD, UNDO
from benchmarks.server.stand import BUCKET
from glue_jobs.aws.clients import make_clients
from glue_jobs.aws.garbage import collect_less
from glue_jobs.aws.state_table import StateTable
from glue_jobs.core.paths import S3Uri, TablePath, lake_folder
from glue_jobs.core.state import default_item
from glue_jobs.spark.java import find_java_home
from glue_jobs.spark.without_pandas import leave_out_pandas
from infra.local.dms_files import cdc_file_name, load_file_name
from infra.local.job_process import Runtime, spark_environment

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

Job = Callable[[Sequence[str], Mapping[str, str]], int]
LOADED = "2024-05-01 11:00:00"
FIRST_FILE = "2024-05-01T12:00:00+00:00"


class Ours(Contender):
    name = "ours"
    title = "dmslake"
    does = frozenset({APPLY, UNDO, LOAD, CORRECT})

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self._raw = S3Uri.parse(world.environment["DMSLAKE_RAW"])
        self._lake = S3Uri.parse(world.environment["DMSLAKE_LAKE"])
        self._runs_as_a_script = False

    @property
    def folder(self) -> tuple[str, str]:
        return self._lake.bucket, f"{self._lake.key}shop/"

    def make(self, table: str) -> None:
        """The base's files, adopted as they are."""
        from glue_jobs import adopt

        out = self._out(table)
        self.world.put_files(self._files_with_types(), out.bucket, out.key)
        self._create(table, LastFullLoadDate=LOADED)
        self.run(adopt.main, table, "--cursor", "0.parquet")

    def _files_with_types(self) -> list[Path]:
        """The base's files as pyarrow leaves them, with a note that no column was a dictionary in memory. As in files of its own, which is
        what dmslake works on but for an adopted table's first changes, row groups can then be copied; of others' dictionaries it can't
        know whether they hold values that no row has."""
        return derived_base(self.world.prepared.base, "with-types", lambda rows, path: pq.write_table(rows, path, compression="snappy"))

    def before(self, table: str, batch: int) -> None:
        """DMS writes a CDC file. What the run before left is collected now: on Glue its process ended with it, clients and all."""
        gc.collect()
        path = self._path(table)
        name = cdc_file_name(datetime.fromisoformat(FIRST_FILE) + timedelta(hours=batch))
        self._put_raw(batch, path.raw.key + name, path.bucket)

    def apply(self, table: str, batch: int) -> None:
        self._as_glue_starts_spark()
        from glue_jobs import load_incremental

        self.run(load_incremental.main, table)

    def undo(self, table: str) -> None:
        from glue_jobs import rollback

        self.run(rollback.main, table, "--to", "previous")

    def redo(self, table: str) -> None:
        from glue_jobs import rollback

        self.run(rollback.main, table, "--reapply", "all")

    def before_load(self, table: str) -> None:
        """DMS writes the load files."""
        path = self._path(table)
        self._create(table, PartitionKey="year(order_date),month(order_date)")
        for batch in range(len(self.world.prepared.changes)):
            self._put_raw(batch, path.raw.key + load_file_name(batch + 1), path.bucket)

    def load(self, table: str) -> None:
        self._as_glue_starts_spark()
        from glue_jobs import load_initial

        self.run(load_initial.main, table)

    def correct(self, table: str) -> None:
        self._as_glue_starts_spark()
        from glue_jobs import apply

        deletes, updates = (self.world.change_url(batch).replace("s3a:", "s3:") for batch in (0, 1))
        self.run(apply.main, table, "--key", ",".join(CORRECTION_KEY), "--deletes", deletes, "--updates", updates)

    def frame(self, table: str) -> DataFrame:
        out = self._out(table)
        return self.spark.read.parquet(f"s3a://{out.bucket}/{out.key}")

    def run(self, job: Job, table: str, *words: str) -> None:
        """A job in this process, which is set up as the job's script does it. Raises RuntimeError if it fails."""
        if not self._runs_as_a_script:
            if hasattr(sys.modules[job.__module__], leave_out_pandas.__name__):
                leave_out_pandas()
            collect_less()  # the job's module is imported by now
            self._runs_as_a_script = True
        environment = self.world.environment
        argv = ["--path", str(self._path(table)), "--state_table", environment["DMSLAKE_STATE_TABLE"]]
        code = job([*argv, "--database", environment["DMSLAKE_DATABASE"], *words], environment)
        if code != 0:
            raise RuntimeError(f"{job.__module__} ended with exit code {code}; its log is in this process's")

    def _as_glue_starts_spark(self) -> None:
        """Settings of the embedded AWS's job runs. In PYSPARK_SUBMIT_ARGS: the job starts Spark itself, if it needs it."""
        if "PYSPARK_SUBMIT_ARGS" in os.environ:
            return
        folder = Path(tempfile.mkdtemp(prefix="bench-spark-"))
        os.environ.update(spark_environment(Runtime(folder, driver_memory=DRIVER_MEMORY), find_java_home(), folder))

    def _create(self, table: str, **attributes: str) -> None:
        path = self._path(table)
        states = StateTable(make_clients(self.world.environment), self.world.environment["DMSLAKE_STATE_TABLE"])
        states.create(default_item(path, str(self._out(table))))
        states.set_attributes(str(path), {"PrimaryKey": KEY, "ActiveFlag": "true", **attributes})

    def _put_raw(self, batch: int, key: str, bucket: str) -> None:
        source = {"Bucket": BUCKET, "Key": self.world.change_key(batch)}
        self.world.s3.copy_object(Bucket=bucket, Key=key, CopySource=source)

    def _path(self, table: str) -> TablePath:
        return TablePath(self._raw.bucket, f"{self._raw.key}shop/", f"{table}/")

    def _out(self, table: str) -> S3Uri:
        return lake_folder(str(self._lake), self._path(table))

    def local_copy(self, table: str, folder: Path) -> None:
        """The data files that a reader lists, for DuckDB, which has no S3 without an extension to fetch."""
        out = self._out(table)
        for key, _ in self.world.list_keys(out.bucket, out.key):
            self.world.s3.download_file(out.bucket, key, str(folder / key.rsplit("/", 1)[1]))
