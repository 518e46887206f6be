"""What the history table of a test's table holds, and what must be so of any history."""

from __future__ import annotations

from datetime import datetime, timezone
from itertools import groupby, pairwise
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from glue_jobs.aws.objects import list_files, read_bytes
from glue_jobs.core.history_table import COLUMNS, PARTITIONING, history_lake
from glue_jobs.core.partitioning import values_of
from glue_jobs.core.snapshot import Snapshot
from glue_jobs.protocol.history_table import snapshot_at
from glue_jobs.spark.arrow_types import arrow_schema, conform
from glue_jobs.spark.key_columns import encoded_bounds
from tests.lake import LakeTable
from tests.spark.lake_values import plain_key

Version = dict[str, Any]


def history_of(table: LakeTable) -> Snapshot:
    """The history's snapshot that belongs to the table's."""
    return snapshot_at(table.clients.s3, table.out_path, table.snapshot())


def versions(table: LakeTable) -> list[Version]:
    """All row versions that the head's history has, by key, each key's as they followed on each other."""
    snapshot, lake = history_of(table), history_lake(table.out_path)
    rows: list[Version] = []
    for path in snapshot.files:
        data = pq.read_table(pa.BufferReader(read_bytes(table.clients.s3, lake.bucket, lake.key + path)))
        rows += conform(data, snapshot.schema, path).to_pylist()
    return sorted(rows, key=lambda row: (repr(key_of(row, snapshot.primary_key)), *_place(row)))


def _place(row: Version) -> tuple[Any, ...]:
    """Of versions that were valid for no time the change says the order, then the raw file."""
    ends = row["valid_to"] or datetime.max.replace(tzinfo=timezone.utc)
    return row["valid_from"], ends, row["change_id"], row["source_file"] or "", row["source_row"] or 0


def key_of(row: Version, key: tuple[str, ...]) -> tuple[Any, ...]:
    return plain_key(tuple(row[name] for name in key))


def check_history(table: LakeTable, *, folder: bool = True) -> list[Version]:
    """What must be so of every history; its versions."""
    snapshot, head, found = history_of(table), table.snapshot(), versions(table)
    names = [column.name for column in head.schema]
    assert snapshot.primary_key == head.primary_key
    latest = [row for row in found if row["validity_flag"] == 1]
    living = [tuple(row[name] for name in names) for row in latest if row["operation"] != "delete"]
    assert sorted(map(shown, living)) == sorted(map(shown, table.rows())), "the latest versions of living keys are the lake table's rows"
    for _, each in groupby(found, key=lambda row: key_of(row, snapshot.primary_key)):
        check_chain(list(each))
    check_files(table, snapshot)
    if folder:
        lake = history_lake(table.out_path)
        assert {file.key[len(lake.key) :] for file in list_files(table.clients.s3, lake.bucket, lake.key)} == set(snapshot.files)
    return found


def shown(row: tuple[Any, ...]) -> str:
    """A row as a text in which NaN is itself and 0.0 is −0.0, which a folder's name can't tell apart."""
    return repr([value + 0.0 if isinstance(value, float) else value for value in row])


def check_chain(chain: list[Version]) -> None:
    """The versions of one key: no gap, no overlap, one that is the latest, each what it is after the one before."""
    assert [row["validity_flag"] for row in chain] == [0] * (len(chain) - 1) + [1]
    assert [row["valid_to"] is None for row in chain] == [False] * (len(chain) - 1) + [True]
    alive = False
    for row in chain:
        assert row["operation"] in (("update", "delete") if alive else ("insert",))
        alive = row["operation"] != "delete"
    for one, other in pairwise(chain):
        assert one["valid_from"] <= one["valid_to"] == other["valid_from"]


def check_files(table: LakeTable, snapshot: Snapshot) -> None:
    """What the records say of each file of the history is so."""
    types = tuple(column.type for name in snapshot.primary_key for column in snapshot.schema if column.name == name)
    assert snapshot.schema[-len(COLUMNS) :] == COLUMNS
    assert snapshot.partitioning == PARTITIONING
    lake = history_lake(table.out_path)
    for path, file in snapshot.files.items():
        rows = pq.read_table(pa.BufferReader(read_bytes(table.clients.s3, lake.bucket, lake.key + path)))
        assert rows.num_rows == file.rows > 0
        months = {(str(moment.year), str(moment.month)) for moment in rows["valid_from"].to_pylist()}
        assert months == {file.partition} == {values_of(path, PARTITIONING)}
        still_open = rows.filter(pa.array([flag == 1 for flag in rows["validity_flag"].to_pylist()], pa.bool_()))
        still_open = conform(still_open, snapshot.schema, path)
        assert (file.low, file.high) == encoded_bounds(still_open, snapshot.primary_key, types)
        assert rows.schema.field("valid_from").type == arrow_schema(COLUMNS).field("valid_from").type
