"""A full load as a change: all load files of the generation become the table."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta

import pyarrow as pa

from glue_jobs.aws.objects import list_files
from glue_jobs.core.actions import TakeLoad
from glue_jobs.core.errors import blocked
from glue_jobs.core.load_plan import check_gone
from glue_jobs.core.load_start import load_start
from glue_jobs.core.partitioning import check_partitioning
from glue_jobs.core.raw_names import cdc_name
from glue_jobs.core.raw_reading import Reading
from glue_jobs.core.record import Counts, Generation, Input
from glue_jobs.core.schema_change import reconcile
from glue_jobs.core.snapshot import Snapshot, loads_again
from glue_jobs.core.state import DATE_FORMAT
from glue_jobs.core.verify import change_in_name
from glue_jobs.core.work import Task, Work, input_of
from glue_jobs.spark.dms_files import check_key_columns
from glue_jobs.spark.engine import Engines
from glue_jobs.spark.place import Place, Shape
from glue_jobs.spark.raw_batch import Taken, Unit, check_images_of_load, read_heads, read_unit, units_of
from glue_jobs.spark.raw_file import csv_form
from glue_jobs.spark.raw_notes import raw_notes
from glue_jobs.spark.sizes import expected_bytes
from glue_jobs.spark.table_rows import TablePlan, write_table
from glue_jobs.spark.timestamps import find_timestamp


@dataclass(frozen=True)
class UnitSource:
    """The rows of one piece of a raw file."""

    unit: Unit

    def __call__(self, place: Place, shape: Shape) -> Iterator[pa.Table]:
        return read_unit(place, shape, self.unit)


def load_table(engines: Engines, place: Place, task: Task, action: TakeLoad) -> Taken:
    """The change that makes the table what its load files say. A reload replaces every file of the snapshot before."""
    state, snapshot = task.state, task.snapshot
    engine = engines.for_bytes(sum(file.size for file in action.files))
    heads = read_heads(place, action.files, _reading(task), engine=engine)
    engine = engines.for_bytes(sum(head.size_bytes for head in heads))  # which may be packed very well
    for head in heads:
        check_key_columns(head.schema, state.primary_key, head.where)
    check_images_of_load(heads)
    schema = reconcile(str(state.path), (), [(head.where, head.schema.columns) for head in heads]).schema
    check_partitioning(state.partitioning, schema, str(state.path))
    shape = Shape(str(state.path), schema, state.primary_key, state.partitioning, state.empty_partition.lower() == "null")
    timestamp, first_time = find_timestamp(engine, place, state.timestamp_column, heads)
    margin = timedelta(minutes=place.limits.load_start_margin_minutes)
    cdc_from = load_start(state, snapshot, action, first_time, margin)
    check_gone(state, snapshot, action.gone, cdc_from)
    sources = tuple(UnitSource(unit) for head in heads for unit in units_of(head))
    plan = TablePlan(sources, True, expected_bytes(place, shape, heads), sum(head.rows for head in heads), by_key=True)
    added = write_table(engine, place, shape, plan)
    inputs = tuple(head.input() for head in heads)
    is_again = loads_again(snapshot.generation.loads, inputs)
    known = {(item.key, item.etag): item for item in snapshot.generation.loads}
    work = Work(
        kind="full-load",
        schema=schema,
        primary_key=state.primary_key,
        partitioning=state.partitioning,
        # What is known of the same files stays: their time does not change by being put back.
        generation=Generation(
            snapshot.generation.number + 1,
            tuple(known.get((item.key, item.etag), item) if is_again else item for item in inputs),
            cdc_from,
            action.left_out,
        ),
        added=tuple(added),
        superseded=tuple(snapshot.files),
        taken_over=foreign_files(place, task),
        counts=Counts(inserted=sum(file.rows for file in added), deleted=snapshot.rows, input_rows=sum(head.rows for head in heads)),
        inputs=inputs,
        skipped=_skipped(snapshot, action, cdc_from) if is_again else (),
        timestamp_column=timestamp,
        cursor_after="",
        last_full_load=max(file.modified for file in action.files).strftime(DATE_FORMAT),
        requests=("Request",) if state.request == "reload" else (),
        details={"reason": action.reason, **csv_form(_reading(task), heads), **raw_notes(engine, place, heads)},
    )
    return Taken(work, tuple(heads), first_time)


def _skipped(snapshot: Snapshot, action: TakeLoad, cdc_from: str) -> tuple[Input, ...]:
    """The CDC files that stay skipped when the same load is taken again. One that was written again is not left out for good."""
    known = {key: item for key, item in snapshot.skipped.items() if key not in snapshot.applied}
    known.update((file.key, input_of(file)) for file in action.passed)
    return tuple(item for key, item in sorted(known.items()) if _is_since(key, cdc_from))


def _is_since(key: str, cdc_from: str) -> bool:
    """Whether it is a CDC file that comes after the load."""
    name = cdc_name(key)
    return name is not None and name.digits >= cdc_from


def _reading(task: Task) -> Reading:
    """How the load files are read. What the attribute Schema says holds: a load may change types; of other columns the lake knows them."""
    state = task.state
    said = {column.name for column in state.csv.schema}
    lake = tuple(column for column in task.snapshot.schema if column.name not in said)
    return Reading(str(state.path), state.timestamp_column, lake, state.csv, task.settings.state_table)


def foreign_files(place: Place, task: Task) -> tuple[str, ...]:
    """Parquet files in the lake's folder that we did not write: they block a first change; an asked-for reload replaces them."""
    if not task.snapshot.is_empty:
        return ()
    lake = task.state.lake
    found = [file for file in list_files(place.s3, lake.bucket, lake.key) if file.size and not file.base.startswith(("_", "."))]
    ours = [file.key for file in found if change_in_name(file.key)]
    if ours:
        raise blocked(
            "lake-folder-taken",
            f"the lake's folder holds {len(ours)} data file(s) that dmslake wrote and this table does not have",
            where=f"s3://{lake.bucket}/{ours[0]}",
            expected="an empty folder for a table's first change",
            todo=f"set out_path of {task.state.path.in_shell} to another folder; if its change records were deleted, restore them; "
            "if a copy of a lake table was put there, move it away",
        )
    if found and task.state.request != "reload":
        raise blocked(
            "adopt-or-reload",
            f"the lake's folder already holds {len(found)} object(s) that dmslake did not write",
            where=f"s3://{lake.bucket}/{found[0].key}",
            expected="an empty folder for a table's first change",
            todo=f"`dmslake adopt {task.state.path.in_shell} --dry-run` looks whether they can be taken over as they are; "
            f"`dmslake reload {task.state.path.in_shell}` replaces them by a fresh load; or set "
            "out_path to another folder, on a deployed stack one below its LakeLocation",
        )
    return tuple(file.key[len(lake.key) :] for file in found)
