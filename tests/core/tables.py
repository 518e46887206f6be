"""States, listings and snapshots for the planner, made from short words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from typing import Any

from glue_jobs.core.actions import Action
from glue_jobs.core.intake import plan_table
from glue_jobs.core.limits import Limits
from glue_jobs.core.paths import TablePath
from glue_jobs.core.raw_names import RawFile, RawListing, classify
from glue_jobs.core.record import Generation, Input
from glue_jobs.core.schema import Column
from glue_jobs.core.snapshot import Snapshot
from glue_jobs.core.state import TableState, default_item, read_state

PATH = TablePath("raw", "dms/sales/", "orders/")
FOLDER = PATH.raw.key
NOW = datetime(2024, 5, 2, 12, tzinfo=timezone.utc)
OLD = NOW - timedelta(hours=6)
HEAD = "0000000001-000001-0000000a"
LOADED_AT = "2024-05-01 00:00:00"


def cdc_key(number: int) -> str:
    """The key of the CDC file that DMS began `number` minutes after May 1st began."""
    return f"{FOLDER}{named(number):%Y%m%d-%H%M%S}000.parquet"


def named(number: int) -> datetime:
    return datetime(2024, 5, 1, tzinfo=timezone.utc) + timedelta(minutes=number)


def cdc(number: int, etag: str = "", size: int = 10, modified: datetime | None = None) -> RawFile:
    return RawFile(cdc_key(number), size, etag or f"e{number}", modified or min(named(number), OLD))


def load(number: int = 1, etag: str = "l", modified: datetime = OLD) -> RawFile:
    return RawFile(f"{FOLDER}LOAD{number:08X}.parquet", 100, etag, modified)


def cursor(number: int) -> str:
    return f"{PATH.bucket}/{cdc_key(number)}"


def taken(file: RawFile) -> Input:
    return Input(file.key, file.etag, file.size)


def loaded(applied: Sequence[RawFile] = (), at: int = 0, loads: Sequence[RawFile] | None = None, **values: Any) -> Snapshot:
    """The snapshot of a table that was loaded and has the given files applied up to cursor `at`, 0 for none."""
    files = [load()] if loads is None else list(loads)
    given: dict[str, Any] = {
        "change": HEAD,
        "applied": {file.key: taken(file) for file in applied},
        "generation": Generation(1, tuple(taken(file) for file in files)),
        "schema": (Column("id", "int"),),
        "primary_key": ("id",),
        "cursor": cursor(at) if at else "",
        "last_full_load": LOADED_AT,
        **values,
    }
    return Snapshot(**given)


def item_of(snapshot: Snapshot, **edits: Any) -> dict[str, Any]:
    """The item of an active table as the program leaves it, with a person's edits."""
    item: dict[str, Any] = {
        **default_item(PATH, "s3://lake/tables/sales/orders/"), "ActiveFlag": "true", "PrimaryKey": "id",
    }  # fmt: skip
    if snapshot.change:
        item.update(Head=snapshot.change, Fence=1, LastFullLoadDate=snapshot.last_full_load or item["LastFullLoadDate"])
        item.update(LastIncrementalFile=snapshot.cursor or item["LastIncrementalFile"])
    return {**item, **edits}


def state_of(snapshot: Snapshot, **edits: Any) -> TableState:
    return read_state(item_of(snapshot, **edits))


def listing_of(*files: RawFile) -> RawListing:
    return classify(files, FOLDER)


def plan(snapshot: Snapshot, *files: RawFile, now: datetime = NOW, limits: Mapping[str, Any] | None = None, **edits: Any) -> Action:
    """What is planned for the snapshot's table when raw holds `files` and a person made `edits`."""
    return plan_table(state_of(snapshot, **edits), snapshot, listing_of(*files), now, replace(Limits(), **(limits or {})))
