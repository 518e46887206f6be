"""Rows of a lake table for programs: insert, update and delete them by the primary key, make a table, make rows up.

    from glue_jobs.rows import create_table, delete_rows, fake_rows, insert_rows, update_rows

    create_table("s3://my-lake/lake/shop/things/", {"id": "bigint", "name": "string", "price": "decimal(12,2)"}, primary_key="id")
    insert_rows("my-lake/lake/shop/things", [{"id": 1, "name": "Pen", "price": "1.50"}])
    update_rows("my-lake/lake/shop/things", {"id": [1], "price": ["1.75"]})

Rows are a Spark or pandas DataFrame, an Arrow table, a dict of columns or a list of dicts, of at most `apply_bytes` (256 MiB). Each call is
one change, under the table's lease, in this process. Settings are as on the command line (`state_table`, `lake`, `database`, limits), else
DMSLAKE_… variables, then defaults; spark: a session for tables larger than `driver_bytes`, else the one that runs in this process, or one
is made. A program's session keeps its settings.
"""

from __future__ import annotations

import os
import secrets
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timezone
from typing import Any

from glue_jobs.apply import Applying, apply_here, edit_rows_of, editing
from glue_jobs.aws.clients import Deadline, make_clients
from glue_jobs.aws.state_table import StateTable
from glue_jobs.aws.translate import translated
from glue_jobs.core.creation import define, schema_of, table_path
from glue_jobs.core.creation import read_schema as read_schema_text
from glue_jobs.core.errors import UsageError
from glue_jobs.core.row_edit import DELETE, INSERT, UPDATE, RowEdit
from glue_jobs.core.schema import Schema
from glue_jobs.core.settings import Settings, read_settings
from glue_jobs.past import open_past
from glue_jobs.protocol import create
from glue_jobs.protocol.job_log import JobLog
from glue_jobs.protocol.table_run import JobContext
from glue_jobs.spark.arrow_types import lake_type_of
from glue_jobs.spark.engine import Engines
from glue_jobs.spark.fake_rows import fake_rows as made_up
from glue_jobs.spark.session import kept_settings

Environment = Mapping[str, str]


def insert_rows(
    path: str, rows: Any, *, upsert: bool = False, spark: Any = None, environment: Environment | None = None, **settings: str
) -> str:
    """Insert the rows; the id of the change. Columns that are not given are null. Raises TableBlocked, row-exists, for keys that are in
    the table already; upsert: replace their rows instead."""
    return _edit(RowEdit(INSERT, upsert=upsert), path, rows, spark, environment, settings)


def update_rows(
    path: str, rows: Any, *, upsert: bool = False, spark: Any = None, environment: Environment | None = None, **settings: str
) -> str:
    """Update the rows of these keys; the id of the change. Columns that are not given keep their values. Raises TableBlocked, row-unknown,
    for keys that are not in the table; upsert: insert these instead."""
    return _edit(RowEdit(UPDATE, upsert=upsert), path, rows, spark, environment, settings)


def delete_rows(
    path: str, rows: Any, *, upsert: bool = False, spark: Any = None, environment: Environment | None = None, **settings: str
) -> str:
    """Delete the rows of these keys; the id of the change, '' where there was nothing to do. Raises TableBlocked, row-unknown, for keys
    that are not in the table; upsert: leave these aside instead."""
    return _edit(RowEdit(DELETE, upsert=upsert), path, rows, spark, environment, settings)


def _edit(edit: RowEdit, path: str, rows: Any, spark: Any, environment: Environment | None, settings: Mapping[str, str]) -> str:
    environment = os.environ if environment is None else environment
    chosen = _settings(settings, environment)
    plan, engines = editing(edit_rows_of(rows, edit, chosen), edit), Engines.of(chosen.limits, spark)
    with kept_settings(spark):
        return apply_here(Applying(plan, engines, environment), path, chosen, environment)


def _settings(settings: Mapping[str, str], environment: Environment) -> Settings:
    return replace(read_settings(dict(settings), environment), run_id=secrets.token_hex(8))


def create_table(
    path: str,
    schema: Any,
    *,
    primary_key: str | Sequence[str] = (),
    partition_key: str | None = None,
    timestamp_column: str = "",
    environment: Environment | None = None,
    **settings: str,
) -> str:
    """Make an empty table at `path`, its folder in the lake, or schema.table below the setting lake; the id of its first change.

    schema: a text (`id bigint, name string`), a dict name → type, pairs, or an Arrow schema. partition_key: as in an item, 'null' for none;
    if it is not given, year and month of the timestamp column, which inserts and updates set to their time where rows don't.
    Raises UsageError for a definition that contradicts itself, TableBlocked where something is there already.
    """
    environment = os.environ if environment is None else environment
    chosen = _settings(settings, environment)
    key = [name.strip() for name in primary_key.split(",")] if isinstance(primary_key, str) and primary_key else list(primary_key)
    definition = define(_schema(schema), key, partition_key, timestamp_column)
    log = JobLog(chosen.run_id, lambda: datetime.now(timezone.utc))
    with translated():
        deadline = Deadline()
        clients = make_clients(environment, deadline)
        context = JobContext("Create", clients, deadline, StateTable(clients, chosen.state_table), chosen, log, log.clock, time.sleep)
        return create.create_table(context, table_path(path, chosen.lake), definition).change


def _schema(schema: Any) -> Schema:
    if isinstance(schema, str):
        return read_schema_text(schema)
    if hasattr(schema, "field") and hasattr(schema, "names"):  # Arrow's
        return schema_of([(field.name, lake_type_of(field.type) or str(field.type)) for field in schema])
    return schema_of(schema)


def fake_rows(path: str, count: int, seed: int = 0, environment: Environment | None = None, **settings: str) -> list[dict[str, Any]]:
    """So many made-up rows that the table would take, as `insert_rows` does: with new keys, by the columns' names and types.

    The same seed gives the same rows while the table is the same. Raises ConfigurationError without the package Faker.
    """
    if count < 0:
        raise UsageError(f"{count} rows can't be made up", "bad-argument", "give a number from 0")
    past = open_past(path, environment, **settings)
    snapshot = past.snapshot()
    rows: list[dict[str, Any]] = made_up(past.table(snapshot.change), snapshot, count, seed).to_pylist()
    return rows
