"""What the controller's tests stand on: buckets, raw files, items, loaded tables, facts, and a Glue that is told what to answer."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta, timezone
from typing import Any

from botocore.exceptions import ClientError

from controller.gather import Facts, Gathered
from controller.host import Host
from controller.session import Session
from glue_jobs.aws.clients import Clients
from glue_jobs.aws.records import write_record
from glue_jobs.aws.state_table import StateTable
from glue_jobs.core.limits import Limits
from glue_jobs.core.paths import S3Uri, TablePath, lake_folder
from glue_jobs.core.raw_names import RawFile, classify
from glue_jobs.core.record import ChangeRecord, Checkpoint, Counts, DataFile, Generation, Input, Part, Upload
from glue_jobs.core.schema import Column
from glue_jobs.core.settings import Settings
from glue_jobs.core.snapshot import Snapshot, apply
from glue_jobs.core.state import default_item, read_state

CREDENTIALS = {
    "AWS_ACCESS_KEY_ID": "testing",
    "AWS_SECRET_ACCESS_KEY": "testing",
    "AWS_REGION": "us-east-1",
    "AWS_DEFAULT_REGION": "us-east-1",
}
NOW = datetime(2024, 5, 1, 12, 0, 0, tzinfo=timezone.utc)
LAKE = "s3://lake-bucket/lake/"
HEAD = "0000000001-000001-0123abcd"
SETTINGS = Settings(raw="s3://raw-bucket/dms/", lake=LAKE, database="lake", limits=Limits(wait_seconds=0.0))


def table_path(name: str = "orders", schema: str = "shop") -> TablePath:
    return TablePath("raw-bucket", f"dms/{schema}/", f"{name}/")


def raw_file(path: TablePath, base: str, size: int = 100, age_hours: float = 5) -> RawFile:
    return RawFile(path.raw.key + base, size, f"etag-{base}", NOW - timedelta(hours=age_hours))


def item_of(path: TablePath, **attributes: Any) -> dict[str, Any]:
    """An active table's item, with what the test changes; None takes an attribute away."""
    item = {**default_item(path, str(lake_folder(LAKE, path))), "ActiveFlag": "true", "PrimaryKey": "id", **attributes}
    return {name: value for name, value in item.items() if value is not None}


def head_record(
    path: TablePath, loads: tuple[Input, ...], applied: tuple[Input, ...] = (), table_bytes: int = 1000, rows: int = 10
) -> ChangeRecord:
    """The record of a loaded table's head, with everything in its checkpoint."""
    files = (DataFile("data.parquet", table_bytes, rows, upload=Upload("upload", (Part(1, "etag"),))),)
    cursor = f"{path.bucket}/{applied[-1].key}" if applied else ""
    return ChangeRecord(
        HEAD, "", "full-load", str(path), str(lake_folder(LAKE, path)), "2024-05-01T00:00:00Z",
        generation=Generation(1, loads), inputs=loads + applied, counts=Counts(table_rows=rows), added=files,
        schema=(Column("id", "int"), Column("name", "string")), primary_key=("id",), cursor_after=cursor,
        last_full_load="2024-05-01 00:00:00", checkpoint=Checkpoint(files, loads + applied, ()),
    )  # fmt: skip


def inputs(files: tuple[RawFile, ...]) -> tuple[Input, ...]:
    return tuple(Input(file.key, file.etag, file.size) for file in files)


def facts(
    path: TablePath, *files: RawFile, table_bytes: int = 0, loaded: tuple[RawFile, ...] = (), is_new: bool = False, **attributes: Any
) -> Facts:
    """A table's facts without S3. loaded: the files (load and CDC) that its head has applied."""
    listing = classify([*loaded, *files], path.raw.key)
    if not loaded:
        return Facts(str(path), read_state(item_of(path, **attributes)), Snapshot(), listing, is_new=is_new)
    known = classify(loaded, path.raw.key)
    record = head_record(path, inputs(known.loads), inputs(known.cdc), table_bytes)
    snapshot = apply(Snapshot(), record)
    cursor = snapshot.cursor or f"{path}0.parquet"
    state = read_state(
        item_of(
            path, **{"Head": HEAD, "Fence": 1, "LastFullLoadDate": snapshot.last_full_load, "LastIncrementalFile": cursor, **attributes}
        )
    )
    return Facts(str(path), state, snapshot, listing, is_new=is_new)


def gathered(*tables: Facts, limits: Limits | None = None) -> Gathered:
    return Gathered(tables, NOW, limits or Limits())


class World:
    """A moto with buckets and state table, and hands to change it as DMS, a person or a job would."""

    def __init__(self, clients: Clients) -> None:
        self.clients = clients
        self.table = StateTable(clients, SETTINGS.state_table)
        self.events: list[tuple[str, Mapping[str, Any]]] = []
        self.waits = 0

    def set_up(self) -> World:
        self.clients.s3.create_bucket(Bucket="raw-bucket")
        self.clients.s3.create_bucket(Bucket="lake-bucket")
        self.clients.s3.put_bucket_versioning(Bucket="lake-bucket", VersioningConfiguration={"Status": "Enabled"})
        self.table.ensure()
        return self

    def put_raw(self, path: TablePath, *bases: str, size: int = 100) -> None:
        for base in bases:
            self.clients.s3.put_object(Bucket=path.bucket, Key=path.raw.key + base, Body=b"x" * size)

    def put_item(self, path: TablePath, **attributes: Any) -> None:
        assert self.table.create(item_of(path, **attributes))

    def put_loaded(self, path: TablePath, *bases: str, **attributes: Any) -> None:
        """A loaded table whose head has applied the raw files with these names."""
        self.put_raw(path, *bases)
        etag = self.clients.s3.head_object(Bucket=path.bucket, Key=path.raw.key + bases[0])["ETag"].strip('"')
        known = classify([raw_file(path, base)._replace(etag=etag) for base in bases], path.raw.key)
        record = head_record(path, inputs(known.loads), inputs(known.cdc))
        write_record(self.clients.s3, S3Uri.folder(str(lake_folder(LAKE, path))), record)
        cursor = record.cursor_after or f"{path}0.parquet"
        self.put_item(
            path, **{"Head": HEAD, "Fence": 1, "LastFullLoadDate": record.last_full_load, "LastIncrementalFile": cursor, **attributes}
        )  # fmt: skip

    def item(self, path: TablePath) -> dict[str, Any]:
        item = self.table.get(str(path))
        assert item is not None
        return item

    def host(self, wait: Callable[[float], None] = lambda seconds: None) -> Host:
        """The clock stands still but for a second at each pause; ids are `run`."""

        def pause(seconds: float) -> None:
            self.waits += 1
            assert self.waits < 5000, "waits for ever"
            wait(seconds)

        return Host(
            now=lambda: NOW + timedelta(seconds=self.waits),
            wait=pause,
            new_id=lambda: "run",
            variables=CREDENTIALS,
            log=lambda event, details: self.events.append((event, details)),
        )

    def session(self, settings: Settings = SETTINGS) -> Session:
        return Session(settings, self.host(), self.clients, self.table)

    def write_result(self, path: str, run_id: str, outcome: str = "committed", **values: Any) -> None:
        """What a job writes of itself."""
        last = {"run_id": run_id, "outcome": outcome, "changes": [f"change-of-{run_id}"], "seconds": 1.5, **values}
        self.table.set_attributes(path, {"LastRun": last})


def client_error(code: str, operation: str = "StartJobRun") -> ClientError:
    return ClientError({"Error": {"Code": code, "Message": f"said {code}"}}, operation)


class ScriptedGlue:
    """Stands for Glue's client: each start and each look answers the next word of its script, a ClientError is raised.

    on_start: what the started job does, given (job, paths, run id).
    """

    def __init__(self, starts: list[Any] | None = None, looks: list[Any] | None = None) -> None:
        self.starts = starts or []
        self.looks = looks or []
        self.started: list[tuple[str, tuple[str, ...], str]] = []
        self.going = 0
        self.most_going = 0
        self.on_start: Callable[[str, tuple[str, ...], str], None] = lambda job, paths, run_id: None

    def start_job_run(self, JobName: str, Arguments: dict[str, str]) -> dict[str, Any]:  # noqa: N803 - AWS's names
        answer = self.starts.pop(0) if self.starts else None
        if isinstance(answer, Exception):
            raise answer
        paths = tuple(Arguments["--path"].split(","))
        self.started.append((JobName, paths, Arguments["--run_id"]))
        self.going += 1
        self.most_going = max(self.most_going, self.going)
        self.on_start(JobName, paths, Arguments["--run_id"])
        return {"JobRunId": f"jr_{len(self.started)}"}

    def get_job_run(self, JobName: str, RunId: str) -> dict[str, Any]:  # noqa: N803 - AWS's names
        answer = self.looks.pop(0) if self.looks else "SUCCEEDED"
        if isinstance(answer, Exception):
            raise answer
        if answer not in ("STARTING", "RUNNING", "STOPPING", "WAITING", "NEW_WORD"):
            self.going -= 1
        return {"JobRun": {"JobRunState": answer, "ErrorMessage": "" if answer == "SUCCEEDED" else f"ended {answer}"}}


def as_json(text: str) -> Any:
    """The one JSON document that a command printed."""
    return json.loads(text)
