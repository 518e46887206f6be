"""What the scenario is played with: an AWS in this process, tables, runs of jobs, given files. To be imported after `hurry()`."""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterator
from datetime import datetime, timezone
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from controller import main as controller
from controller.host import Host
from glue_jobs.aws.clients import make_clients
from tests.lake import DRIVER, JOBS, LakeTable
from tests.protocol.in_process import DATABASE, LAKE, RAW, STATE_TABLE, InProcessAws
from tests.requests.recorder import Recorder
from tests.snapshots import SnapshotTable

WORK = "s3://lake/work/"  # the folder of the template's WorkPrefix
NARROW = pa.schema([("id", pa.int64()), ("name", pa.string())])
WIDE = pa.schema([("id", pa.int64()), ("name", pa.string()), ("size", pa.int64())])


class Hands:
    """The AWS, the recorder, and what is done again and again."""

    def __init__(self) -> None:
        self.aws = InProcessAws()
        self.environment = self.aws.environment()
        self.clients = make_clients(self.environment)
        self.recorder = Recorder()
        self.recorder.on_start = self.start
        self.names = iter(f"t{number}" for number in range(100))
        for job in JOBS:
            self.clients.glue.create_job(Name=job, Role="r", Command={"Name": "glueetl"}, ExecutionProperty={"MaxConcurrentRuns": 99})

    def table(self, **values: Any) -> LakeTable:
        return LakeTable(self.environment, RAW, LAKE, NARROW, table=next(self.names), shared=self.clients, **values)

    def loaded(self) -> LakeTable:
        table = self.table()
        table.load([(1, "a"), (2, "b"), (3, "b"), (4, "c")])
        self.run(table, "LoadInitial")
        return table

    def snapshot(self, table: SnapshotTable, said: dict[str, str]) -> None:
        with self.recorder.on_behalf_of("Snapshot"):
            error = table.run(**said)
        assert error is None, error

    def run(self, table: LakeTable, job: str, codes: tuple[int, ...] = (0,), **wish: str) -> None:
        with self.recorder.on_behalf_of(job):
            code = table.run(job, **wish)
        assert code in codes, f"{job} {wish} has exit code {code}: {table.item().get('LastRun')}"

    def control(self) -> int:
        """A run of the controller; the exit code."""
        host = Host(
            now=lambda: datetime.now(timezone.utc),
            wait=lambda seconds: None,
            new_id=lambda: secrets.token_hex(4),
            variables=self.environment,
            log=lambda event, details: None,
        )
        words = ["--raw", RAW, "--lake", LAKE, "--state_table", STATE_TABLE, "--database", DATABASE]
        with self.recorder.on_behalf_of("Controller"):
            return controller.main(words, host)

    def start(self, job: str, arguments: dict[str, str]) -> None:
        """What Glue does for StartJobRun."""
        defaults = {"--state_table": STATE_TABLE, "--database": DATABASE, "--driver_bytes": DRIVER}
        with self.recorder.on_behalf_of(job):
            assert JOBS[job]([word for pair in {**defaults, **arguments}.items() for word in pair], self.environment) == 0

    def put(self, bucket: str, key: str, data: bytes) -> str:
        self.clients.s3.put_object(Bucket=bucket, Key=key, Body=data)
        return f"s3://{bucket}/{key}"

    def given(self, name: str, text: str) -> str:
        return self.put("lake", f"work/given/{name}.csv", text.encode())

    def parquet_folder(self) -> str:
        table = pa.table({"id": [1]})
        sink = pa.BufferOutputStream()
        pq.write_table(table, sink)
        return self.put("lake", "work/given/rows/part-0.parquet", sink.getvalue().to_pybytes()).rpartition("/")[0] + "/"

    def sources(self, table: SnapshotTable) -> str:
        entry = {"path": str(table.path), "primary_keys": ["id"]}
        return self.put("lake", "work/sources.json", json.dumps({"tables": {"orders": entry}}).encode())

    def lose_uploads(self, table: LakeTable) -> None:
        for upload in self.uploads(table):
            self.clients.s3.abort_multipart_upload(**upload)

    def uploads(self, table: LakeTable) -> Iterator[dict[str, str]]:
        found = self.clients.s3.list_multipart_uploads(Bucket="lake", Prefix=table.out_path.key)
        for upload in found.get("Uploads", ()):
            yield {"Bucket": "lake", "Key": upload["Key"], "UploadId": upload["UploadId"]}
