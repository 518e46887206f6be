"""Runs that die, and what they leave."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from glue_jobs.core.record import ChangeRecord
from glue_jobs.core.snapshot import Snapshot
from tests.lake import LakeTable
from tests.protocol.wire import Killed, Rule, Wire

ROOT = Path(__file__).parent.parent.parent
LONG_LEASE = "60"  # no renewal comes between the requests of a run that dies


def run_on(wire: Wire, table: LakeTable, job: str, rule: Rule | None = None, **settings: Any) -> int:
    """A run whose requests pass through the wire."""
    wire.rule = rule
    with wire.connected():
        return table.run(job, **settings)


def die(wire: Wire, table: LakeTable, job: str, rule: Rule, **settings: Any) -> None:
    """A run that ends as if killed at the request where the rule says so; its lease is short for whoever comes next."""
    with pytest.raises(Killed):
        run_on(wire, table, job, rule, lease_seconds=LONG_LEASE, **settings)
    forget_lease(table)


def forget_lease(table: LakeTable, seconds: float = 0.05) -> None:
    """Make the dead owner's lease short, so that the next run does not have to wait it out for a minute."""
    if "LeaseOwner" in table.item():
        table.edit(LeaseSeconds=seconds)


def start_program(table: LakeTable, program: str, *words: str, **settings: str) -> subprocess.Popen[str]:
    """A program of these tests that runs a job on the table, and its arguments: `words`, then those of the job."""
    given = {"path": str(table.path), "state_table": table.state_table.name, "database": table.environment["DMSLAKE_DATABASE"], **settings}
    return subprocess.Popen(
        [sys.executable, "-m", program, *words, *(word for name, value in given.items() for word in (f"--{name}", value))],
        env={**os.environ, **table.environment, "PYTHONPATH": str(ROOT)},
        cwd=ROOT,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )


def wait_for_death(process: subprocess.Popen[str]) -> None:
    """Of a job that is to be killed."""
    try:
        _, errors = process.communicate(timeout=120)
    finally:
        process.kill()
    assert process.returncode == -signal.SIGKILL, errors[-2000:]


def facts(table: LakeTable, item: dict[str, Any] | None = None, snapshot: Snapshot | None = None) -> dict[str, Any]:
    """What must be the same however a table came to its state: rows, cursor, load, what was applied, what waits, what verify finds."""
    item = item or table.item()
    snapshot, visible = snapshot or table.snapshot(item.get("Head", "")), table.visible()
    return {
        "rows": table.rows(snapshot, visible),
        "folder": visible == set(snapshot.files),
        "cursor": item["LastIncrementalFile"].rsplit("/", 1)[-1],
        "loaded": item["LastFullLoadDate"] != "1900-01-01 00:00:00",
        "applied": sorted(key.rsplit("/", 1)[-1] for key in snapshot.applied),
        "unfinished": sorted({"Publishing", "CatalogPending", "LeaseOwner", "Blocked"} & set(item)),
        "outcome": item["LastRun"]["outcome"] in ("committed", "nothing"),
        "verify": table.verify(),
    }


def everything(table: LakeTable) -> dict[str, Any]:
    """`facts`, and what the records and the catalog say, changes and files named by their place instead of their random names."""
    item = table.item()
    snapshot = table.snapshot(item["Head"])
    lineage = list(reversed(list(table.lineage(item["Head"]).back())))
    places = {record.id: f"#{place}" for place, record in enumerate(lineage, 1)}
    return {
        **facts(table, item, snapshot),
        "schema": [(column.name, column.type) for column in snapshot.schema],
        "files": sorted((str(file.partition), file.rows) for file in snapshot.files.values()),
        "keys": (snapshot.primary_key, str(snapshot.partitioning), item["PrimaryKey"], item["PartitionKey"]),
        "changes": [_told(record, places) for record in lineage],
        "skipped": sorted(key.rsplit("/", 1)[-1] for key in snapshot.skipped),
        "awaited": sorted(key.rsplit("/", 1)[-1] for key in snapshot.awaited),
        "load date": (item["LastFullLoadDate"] > "1900", bool(snapshot.last_full_load)),
        "active": item["ActiveFlag"],
        "paused": _CHANGE.sub(lambda found: places.get(found[0], found[0]), str(item.get("Paused", ""))).replace(table.table, "TABLE"),
        "catalog": catalog(table, item["CatalogTable"]),
        "foreign": foreign(table, lineage),
    }


_CHANGE = re.compile(r"\d{10}-\d{6}-[0-9a-f]{8}")


def _told(record: ChangeRecord, places: dict[str, str]) -> tuple[Any, ...]:
    """A change without what is random in it."""
    inputs = sorted(item.key.rsplit("/", 1)[-1] for item in record.inputs)
    return record.kind, places.get(record.target, record.target), inputs, len(record.added), len(record.superseded), record.counts


def catalog(table: LakeTable, name: str) -> dict[str, Any]:
    """What the Glue table says: columns, partition columns, and the partitions with their columns."""
    glue, database = table.clients.glue, table.environment["DMSLAKE_DATABASE"]
    found = glue.get_table(DatabaseName=database, Name=name)["Table"]
    partitions = glue.get_partitions(DatabaseName=database, TableName=name)["Partitions"]
    return {
        "columns": _columns(found),
        "partition columns": [(column["Name"], column["Type"]) for column in found["PartitionKeys"]],
        "partitions": sorted((entry["Values"], _columns(entry)) for entry in partitions),
        "places": sorted({entry["StorageDescriptor"]["Location"].replace(str(table.out_path), "") for entry in (found, *partitions)}),
    }


def _columns(entry: Any) -> list[tuple[str, str]]:
    return [(column["Name"], column["Type"]) for column in entry["StorageDescriptor"]["Columns"]]


def foreign(table: LakeTable, lineage: list[ChangeRecord]) -> list[str]:
    """Keys in the table's folder that no change on the lineage added, and those with more than one data version."""
    s3, bucket, prefix = table.clients.s3, table.out_path.bucket, table.out_path.key
    versions = s3.list_object_versions(Bucket=bucket, Prefix=prefix).get("Versions", [])
    paths = [version["Key"][len(prefix) :] for version in versions]
    known = {file.path for record in lineage for file in record.added}
    return sorted({path for path in paths if path not in known or paths.count(path) > 1})
