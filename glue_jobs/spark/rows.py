"""The rows of raw files, ranked: by Arrow in this process, or by Spark. Both give the last change of each key."""

from __future__ import annotations

import io
import math
import pickle
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from glue_jobs.core.schema import Schema
from glue_jobs.spark.arrow_types import arrow_schema
from glue_jobs.spark.engine import Engine, SparkEngine
from glue_jobs.spark.key_columns import collated_keys, comparable_column
from glue_jobs.spark.net_changes import DELETE, HELD, MOVES_IN, MOVES_OUT, OP, POSITION, ROW_BITS, STEPS, UPDATE
from glue_jobs.spark.place import Place, Shape
from glue_jobs.spark.ranking import rank
from glue_jobs.spark.raw_batch import UNIT_BYTES, Unit, read_unit, units_of
from glue_jobs.spark.raw_file import RawHead
from glue_jobs.spark.row_batches import BATCH_ROWS
from glue_jobs.spark.side_by_side import side_by_side
from glue_jobs.spark.task_errors import carried_rows

LATE = "__late"
TASKS_PER_SLOT = 3


def ranked_rows(engine: Engine, place: Place, shape: Shape, heads: Sequence[RawHead]) -> pa.Table:
    """The winners of the batch: the lake's columns, `__op`, `__position`. Where files came late, only those that stand in them."""
    if isinstance(engine, SparkEngine):
        return collect(without_forms(spark_ranked(engine, place, shape, heads), shape), with_marks(shape.schema))
    units = [unit for head in heads for unit in units_of(head)]
    read = side_by_side(lambda unit: list(read_unit(place, shape, unit)), units, lambda unit: unit.head.file.size)
    tables = [table for each in read for table in each]
    rows = pa.concat_tables(tables) if tables else empty(with_marks(shape.schema))
    return keep_late(rank(rows, shape.key), heads)


def keep_late(winners: pa.Table, heads: Sequence[RawHead]) -> pa.Table:
    """Those of `winners` that stand in late files, if there are late files. What stands in the others was applied before: writing it again
    would take back what a person has corrected since."""
    late = [head.ordinal for head in heads if head.late]
    if not late:
        return winners
    return winners.filter(pa.array(np.isin(winners[POSITION].to_numpy() >> ROW_BITS, late)))


def with_marks(schema: Schema) -> pa.Schema:
    """The Arrow schema of rows on their way: the lake's columns, `__op`, `__position`."""
    return arrow_schema(schema).append(pa.field(OP, pa.int8())).append(pa.field(POSITION, pa.int64()))


def empty(schema: pa.Schema) -> pa.Table:
    return schema.empty_table()


def task_count(units: Sequence[Unit], slots: int) -> int:
    """How many tasks read these units: a task costs some 50 ms by itself, which is a lot for a file of a minute's changes."""
    size = sum(unit.head.file.size for unit in {unit.head.file.key: unit for unit in units}.values())
    return max(1, min(len(units), max(slots * TASKS_PER_SLOT, math.ceil(size / UNIT_BYTES))))


# --- Spark. Columns travel under plain names (c0, c1, …) so that no name needs quoting. Behind them go, as n0, n1, …, the key's texts in
# the form in which they are compared, where the key has a collation: Spark itself compares bytes.


def plain_names(schema: Schema) -> list[str]:
    return [f"c{index}" for index in range(len(schema))]


def spark_type(schema: pa.Schema) -> Any:
    """The Spark struct for an Arrow schema; names as given, every field nullable."""
    from pyspark.sql.pandas.types import from_arrow_type
    from pyspark.sql.types import StructField, StructType, TimestampType

    fields = []
    for field in schema:
        kind = TimestampType() if pa.types.is_timestamp(field.type) else from_arrow_type(field.type)
        fields.append(StructField(field.name, kind, True))
    return StructType(fields)


def spark_rows(engine: SparkEngine, place: Place, shape: Shape, heads: Sequence[RawHead]) -> Any:
    """A DataFrame of all rows: c0…, op, position, late, n0…. A partition takes one large unit or many small ones; nothing is read yet."""
    units = [unit for head in heads for unit in units_of(head)]
    payloads = [(pickle.dumps(unit),) for unit in units]
    names = plain_names(shape.schema)
    schema = pa.schema([field.with_name(name) for name, field in zip(names, arrow_schema(shape.schema), strict=True)])
    schema = schema.append(pa.field("op", pa.int8())).append(pa.field("position", pa.int64())).append(pa.field("late", pa.bool_()))
    schema = with_forms(schema, shape)

    def read(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for payload in batch.column(0).to_pylist():
                unit: Unit = pickle.loads(payload)
                for table in read_unit(place, shape, unit):
                    marked = table.append_column(LATE, pa.array([unit.head.late] * table.num_rows, pa.bool_()))
                    marked = append_forms(marked, table, shape)
                    yield from marked.rename_columns(schema.names).cast(schema).to_batches(max_chunksize=BATCH_ROWS)

    tasks = engine.spark.sparkContext.parallelize(payloads, task_count(units, engine.slots))
    return engine.spark.createDataFrame(tasks, "unit binary").mapInArrow(carried_rows(read), spark_type(schema))


def spark_ranked(engine: SparkEngine, place: Place, shape: Shape, heads: Sequence[RawHead]) -> Any:
    """A DataFrame of the winners: c0…, op, position, n0…."""
    rows = spark_rows(engine, place, shape, heads)
    size_bytes = sum(head.size_bytes for head in heads)
    engine.size_shuffles(size_bytes)
    engine.size_batches(sum(head.rows for head in heads), size_bytes)
    names = plain_names(shape.schema)
    late_only = any(head.late for head in heads)
    if not shape.key:
        return (rows.where("late") if late_only else rows).select(*names, "op", "position")
    wanted = [*names, "op", "position", *form_names(shape)]
    return (settled_winners if may_move(shape, heads) else spark_winners)(rows, shape, wanted, late_only)


def may_move(shape: Shape, heads: Sequence[RawHead]) -> bool:
    """Whether rows may move to other keys, as before images would tell."""
    return any(set(shape.key) <= set(head.schema.images) for head in heads)


def spark_winners(rows: Any, shape: Shape, wanted: Sequence[str], late_only: bool = False) -> Any:
    """The columns `wanted` of each key's row with the greatest position. late_only: where that row is marked `late`."""
    winners, taken = _grouped(rows, shape, wanted, late_only, {})
    return winners.select(*[f"w.{name}" if name in taken else name for name in wanted])


def settled_winners(rows: Any, shape: Shape, wanted: Sequence[str], late_only: bool = False) -> Any:
    """The same as key_moves.settled has it, where rows may move to other keys. `wanted` has op and position."""
    from pyspark.sql import functions as F

    kind = F.col("position").bitwiseAND(STEPS - 1)
    is_in = (F.col("op") == UPDATE) & (kind == MOVES_IN)
    is_move = is_in | ((F.col("op") == DELETE) & (kind == MOVES_OUT))
    names = plain_names(shape.schema)
    said = F.xxhash64("op", *names, *(F.col(name).isNull() for name in names))  # by itself it leaves nulls out, wherever they stand
    steps = STEPS - 1

    def of_move(row: Any) -> Any:
        return F.struct("position", kind.alias("kind"), said.alias("said"), row.alias("row"))

    more = {
        "before": lambda row: F.max(F.when(~is_move, F.col("position") - kind + F.col("op"))),  # the last change that moved nothing
        "moves": lambda row: F.collect_list(F.when(is_move, of_move(row))),
    }
    winners, taken = _grouped(rows, shape, wanted, late_only, more)
    since = F.array_sort(F.filter("moves", lambda each: each["position"] > F.coalesce("before", F.lit(-1))))
    was_held = F.when(F.col("before").bitwiseAND(steps) == DELETE, 0).otherwise(1)
    nothing = F.struct(F.lit(0).cast("bigint").alias("kind"), F.lit(0).cast("bigint").alias("said"))
    begin = F.struct(F.when(F.col("before").isNull(), 0).otherwise(was_held).alias("least"), was_held.alias("most"), nothing.alias("last"))

    def after(so_far: Any, each: Any) -> Any:
        again = (so_far["last"]["kind"] == each["kind"]) & (so_far["last"]["said"] == each["said"])
        step = F.when(again, 0).when(each["kind"] == MOVES_IN, 1).otherwise(-1)
        counts = [F.greatest(so_far[name] + step, F.lit(0)).alias(name) for name in ("least", "most")]
        return F.struct(*counts, F.struct(each["kind"].alias("kind"), each["said"].alias("said")).alias("last"))

    held = F.aggregate(since, begin, after, lambda found: F.when(found["least"] > 0, UPDATE).when(found["most"] > 0, HELD))
    is_out = (F.col("w.op") == DELETE) & (F.col("w.position").bitwiseAND(steps) == MOVES_OUT)
    came = F.array_max(F.filter("moves", lambda each: each["kind"] == MOVES_IN))["row"]
    settled = winners.withColumn("becomes", F.when(is_out, held).cast("tinyint"))
    settled = settled.withColumn("row", F.when(F.col("becomes").isNull(), F.col("w")).otherwise(came))
    own = {"op": F.coalesce("becomes", "w.op").alias("op"), "position": F.col("w.position")}
    return settled.select(*[own.get(name, F.col(f"row.{name}" if name in taken else name)) for name in wanted])


def _grouped(
    rows: Any, shape: Shape, wanted: Sequence[str], late_only: bool, more: Mapping[str, Callable[[Any], Any]]
) -> tuple[Any, list[str]]:
    """(a row for each key: its columns, `w`, the row with the greatest position, and `more` of its rows; which of `wanted` are in `w`)."""
    from pyspark.sql import functions as F

    keys = key_names(shape)
    # A group's key comes out with one zero and one NaN; a float's own value is the winner's, like that of any other column.
    exact = [name for name, kind in zip(keys, shape.key_types, strict=True) if kind not in ("float", "double")]
    taken = [name for name in wanted if name not in exact]
    carried = [*taken, "late"] if late_only else taken
    row = F.struct(*carried)
    found = [F.max_by(row, "position").alias("w"), *(make(row).alias(name) for name, make in more.items())]
    plain_keys = [F.col(key).alias(f"key{index}") if key not in exact else F.col(key) for index, key in enumerate(keys)]
    groups = rows.groupBy(*plain_keys)
    winners = groups.agg(*found)
    return winners.where("w.late") if late_only else winners, taken


def key_names(shape: Shape) -> list[str]:
    """The plain names of the columns by which rows are grouped, joined and sorted: the key's, or the forms of them."""
    plain = _plain_of(shape)
    forms = dict(zip(collated_keys(shape.key, shape.key_types), form_names(shape), strict=True))
    return [forms.get(name) or plain[name] for name in shape.key]


def spelled_names(shape: Shape) -> list[str]:
    """The plain names of the columns of which there are forms."""
    plain = _plain_of(shape)
    return [plain[name] for name in collated_keys(shape.key, shape.key_types)]


def _plain_of(shape: Shape) -> dict[str, str]:
    return {column.name: plain for column, plain in zip(shape.schema, plain_names(shape.schema), strict=True)}


def form_names(shape: Shape) -> list[str]:
    """The plain names of the forms of the key's texts; none where the key has no collation."""
    return [f"n{index}" for index in range(len(collated_keys(shape.key, shape.key_types)))]


def with_forms(schema: pa.Schema, shape: Shape) -> pa.Schema:
    """The schema with the forms behind it."""
    for name in form_names(shape):
        schema = schema.append(pa.field(name, pa.string()))
    return schema


def append_forms(rows: pa.Table, keyed: pa.Table, shape: Shape) -> pa.Table:
    """The rows with the forms of their keys behind them. keyed: the same rows, with the key's columns under their names."""
    for plain, name in zip(form_names(shape), collated_keys(shape.key, shape.key_types), strict=True):
        rows = rows.append_column(plain, comparable_column(keyed.column(name), name))
    return rows


def without_forms(frame: Any, shape: Shape) -> Any:
    """The DataFrame without them."""
    names = form_names(shape)
    return frame.drop(*names) if names else frame


def collect(frame: Any, schema: pa.Schema) -> pa.Table:
    """The rows of a DataFrame as one Arrow table with the names and types of `schema`, by position.

    Each task packs its rows as Arrow IPC: Spark 3.5 has no public way to collect Arrow.
    """

    def pack(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            if batch.num_rows:
                sink = io.BytesIO()
                with pa.ipc.new_stream(sink, batch.schema) as writer:
                    writer.write_batch(batch)
                yield pa.RecordBatch.from_pydict({"ipc": pa.array([sink.getvalue()], pa.binary())})

    packed = frame.mapInArrow(pack, "ipc binary").collect()
    tables = [pa.ipc.open_stream(bytes(row[0])).read_all().rename_columns(schema.names).cast(schema) for row in packed]
    return pa.concat_tables(tables) if tables else empty(schema)
