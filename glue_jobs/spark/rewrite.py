"""Changes that rewrite all data files because a person asked: a renamed column, another layout, another key."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.compute as pc

from glue_jobs.core.actions import Rewrite
from glue_jobs.core.bins import bins_of_slots
from glue_jobs.core.errors import blocked
from glue_jobs.core.partitioning import Partitioning, check_partitioning
from glue_jobs.core.record import Counts, DataFile
from glue_jobs.core.schema import Schema, find
from glue_jobs.core.schema_change import renamed
from glue_jobs.core.work import Task, Work
from glue_jobs.spark.arrow_types import arrow_schema
from glue_jobs.spark.dms_files import check_keys, refuse_reserved
from glue_jobs.spark.engine import Engines
from glue_jobs.spark.locate import column_batches
from glue_jobs.spark.merge import merge_net_changes
from glue_jobs.spark.net_changes import INSERT, OP, POSITION, net_changes, position
from glue_jobs.spark.open_file import OpenFile
from glue_jobs.spark.partition_columns import empty_as_null
from glue_jobs.spark.past import PastFile
from glue_jobs.spark.place import Place, Shape
from glue_jobs.spark.row_changes import differing
from glue_jobs.spark.rows import empty, with_marks
from glue_jobs.spark.table_rows import TablePlan, write_table


@dataclass(frozen=True)
class FileSource:
    """The rows of a data file of the table as it was before (its partitions are the old ones), in the columns of the shape."""

    file: DataFile
    ordinal: int
    partitioning: Partitioning

    def __call__(self, place: Place, shape: Shape) -> Iterator[pa.Table]:
        old = Shape(shape.table, shape.schema, shape.key, self.partitioning, shape.empty_as_null)
        start = 0
        for table in OpenFile.open(place, old, self.file).batches():
            check_keys(table, shape.key, self.file.path)
            rows = pa.array(range(start, start + table.num_rows), pa.int64())
            start += table.num_rows
            ops = pa.array([INSERT] * table.num_rows, pa.int8())
            yield table.append_column(OP, ops).append_column(POSITION, position(self.ordinal, rows))


def rewrite_table(engines: Engines, place: Place, task: Task, action: Rewrite) -> Work:
    """The change that a Rewrite asks for."""
    if action.kind == "schema":
        return _rename(engines, place, task, action.value)
    return _write_anew(engines, place, task, action)


def _rename(engines: Engines, place: Place, task: Task, value: str) -> Work:
    snapshot = task.snapshot
    old, _, new = (part.strip() for part in value.partition("="))
    fixed = {*snapshot.primary_key, *(field.column for field in snapshot.partitioning)}
    if old in fixed or not new:
        raise blocked(
            "bad-rename",
            f"can't rename {value!r}",
            where=str(task.state.path),
            expected="old=new, a column that is neither in PrimaryKey nor in PartitionKey",
            todo="for a key or partition column reload the table with the new names in PrimaryKey and PartitionKey",
        )
    if old == task.state.timestamp_column:
        raise blocked(
            "bad-rename",
            f"can't rename {old!r}: the attribute TimestampColumn of the table's item names it",
            where=str(task.state.path),
            expected=f"TimestampColumn {new}, or none",
            found=f"TimestampColumn {old}",
            todo=f"set the attribute TimestampColumn to {new!r}, or remove it; the next run renames the column then",
        )
    schema = renamed(snapshot.schema, old, new, snapshot.cursor)
    refuse_reserved(new, f"the rename of {old!r} in {task.state.path}")
    check_partitioning(snapshot.partitioning, schema, str(task.state.path))
    shape = Shape(str(task.state.path), schema, snapshot.primary_key, snapshot.partitioning, True)
    nothing = net_changes(empty(with_marks(schema)), shape)
    files = tuple(snapshot.files.values())
    engine = engines.for_bytes(snapshot.size_bytes)
    merged = merge_net_changes(engine, place, shape, nothing, files, rewrite_all=True, renames=((new, old),))
    work = _work("schema", task, schema, merged.added, shape, {"renamed": f"{old} to {new}"}, ("Request",))
    return replace(work, timestamp_column=new) if old == snapshot.timestamp_column else work


def _write_anew(engines: Engines, place: Place, task: Task, action: Rewrite) -> Work:
    """All rows again, in the layout and with the key that the item has now."""
    state, snapshot = task.state, task.snapshot
    _check_key(state.primary_key, snapshot.schema, str(state.path))
    check_partitioning(state.partitioning, snapshot.schema, str(state.path))
    shape = Shape(str(state.path), snapshot.schema, state.primary_key, state.partitioning, state.empty_partition.lower() == "null")
    made_null = _made_null(engines, place, task, shape)
    sources = tuple(FileSource(file, at, snapshot.partitioning) for at, file in enumerate(snapshot.files.values()))
    plan = TablePlan(sources, False, snapshot.size_bytes, snapshot.rows, by_key=True)
    added = write_table(engines.for_bytes(snapshot.size_bytes), place, shape, plan)
    requests = ("Request",) if action.kind == "repartition" else ()
    work = _work(action.kind, task, snapshot.schema, tuple(added), shape, {"reason": action.reason}, requests)
    return replace(work, counts=Counts(updated=made_null))


def _made_null(engines: Engines, place: Place, task: Task, shape: Shape) -> int:
    """In how many rows an empty text becomes null, since only the name of a folder says it from now on."""
    snapshot = task.snapshot
    before = {field.column for field in snapshot.partitioning if field.transform == "identity"}
    of_type = {column.name: column.type for column in snapshot.schema}
    came = (field for field in shape.partitioning if field.transform == "identity" and field.column not in before)
    texts = tuple(field for field in came if of_type[field.column] == "string")
    if not texts or not shape.empty_as_null:
        return 0
    engine = engines.for_bytes(snapshot.size_bytes)
    bins = bins_of_slots(tuple(snapshot.files.values()), lambda file: file.size_bytes, engine.slots)
    old = replace(shape, partitioning=snapshot.partitioning)
    return sum(engine.map(_EmptyTexts(place, old, texts), bins))


@dataclass(frozen=True)
class _EmptyTexts:
    """One task: how many rows of some data files have an empty text in one of the columns."""

    place: Place
    shape: Shape
    texts: Partitioning

    def __call__(self, files: tuple[DataFile, ...]) -> int:
        return sum(self._one(file) for file in files)

    def _one(self, file: DataFile) -> int:
        columns = [field.column for field in self.texts]
        batches = column_batches(self.place, self.shape, PastFile(file, ""), columns, lacking_is_null=True)
        return sum(pc.sum(differing(rows, empty_as_null(rows, self.texts))).as_py() or 0 for rows in batches)


def _check_key(key: tuple[str, ...], schema: Schema, table: str) -> None:
    for name in key:
        if find(schema, name) is None:
            raise blocked(
                "no-key-column",
                f"PrimaryKey names the column {name!r}, which is not there",
                where=table,
                expected=", ".join(arrow_schema(schema).names),
                found=name,
                todo="correct the attribute PrimaryKey of the table's item",
            )


def _work(
    kind: str, task: Task, schema: Schema, added: tuple[DataFile, ...], shape: Shape, details: dict[str, object], requests: tuple[str, ...]
) -> Work:
    snapshot = task.snapshot
    return Work(
        kind=kind,
        schema=schema,
        primary_key=shape.key,
        partitioning=shape.partitioning,
        generation=snapshot.generation,
        added=added,
        superseded=tuple(snapshot.files),
        counts=Counts(),
        timestamp_column=snapshot.timestamp_column,
        cursor_after=snapshot.cursor,  # no file is taken: a cursor that a person moved waits for the next batch
        last_full_load=snapshot.last_full_load,
        requests=requests,
        details=details,
    )
