"""Writing a whole table: its rows from load files or data files, ranked, partitioned, sorted by key, in files of the target size."""

from __future__ import annotations

import pickle
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from glue_jobs.core.partitioning import PartitionValues
from glue_jobs.core.record import DataFile
from glue_jobs.spark.arrow_types import arrow_schema
from glue_jobs.spark.engine import DECODED_RATIO, Engine, SparkEngine
from glue_jobs.spark.key_columns import normalised_keys, sort_by_key
from glue_jobs.spark.key_spellings import Spellings, not_unique, spelled_twice, two_spellings
from glue_jobs.spark.net_changes import DELETE, HELD, OP, POSITION, are_rows
from glue_jobs.spark.ordered_table import in_key_order, write_in_order
from glue_jobs.spark.partition_columns import partition_values, split_by_partition
from glue_jobs.spark.place import Place, Shape
from glue_jobs.spark.ranking import rank
from glue_jobs.spark.row_batches import BATCH_ROWS
from glue_jobs.spark.row_sources import RowSource
from glue_jobs.spark.rows import (
    append_forms,
    empty,
    form_names,
    key_names,
    plain_names,
    settled_winners,
    spark_type,
    spark_winners,
    spelled_names,
    with_forms,
    with_marks,
)
from glue_jobs.spark.sorted_partitions import write_by_partition
from glue_jobs.spark.task_errors import carried_rows
from glue_jobs.spark.write_files import FileWriter, abort_all, give_up, write_tables


@dataclass(frozen=True)
class TablePlan:
    """How to write the table. ranked: keep the last row of each key; else a key that comes twice blocks the table.

    size_bytes: what the data files are expected to come to, all together; rows: how many are to be read. by_key: a look at the keys comes
    first, which may spare a shuffle: the sources read no other columns than they are asked for, and mostly are in the order of the key.
    may_move: rows may move to other keys.
    """

    sources: tuple[RowSource, ...]
    ranked: bool
    size_bytes: float
    rows: int
    by_key: bool = False
    may_move: bool = False


def write_table(engine: Engine, place: Place, shape: Shape, plan: TablePlan) -> list[DataFile]:
    """All rows of the sources as data files (uploads that are not completed), sorted by key within each partition."""
    if isinstance(engine, SparkEngine):
        return _by_spark(engine, place, shape, plan)
    tables = [table for source in plan.sources for table in source(place, shape)]
    rows = pa.concat_tables(tables) if tables else empty(with_marks(shape.schema))
    winners = rank(rows, shape.key)
    if winners.num_rows < rows.num_rows:
        _check_surplus(shape, plan, rows.num_rows - winners.num_rows, two_spellings(rows, shape.key))
    kept = winners.filter(are_rows(winners)).drop_columns([OP, POSITION])
    return [file for values, part in _partitions(kept, shape) for file in write_tables(place, shape, values, [part])]


def _partitions(table: pa.Table, shape: Shape) -> Iterator[tuple[PartitionValues, pa.Table]]:
    """The rows by partition, each sorted by key."""
    if not shape.partitioning:
        parts = [((), table)] if table.num_rows else []
    else:
        values = partition_values(table, shape.partitioning, shape.schema, shape.empty_as_null, shape.table, shape.key)
        parts = list(split_by_partition(table, values))
    for key, part in parts:
        yield key, sort_by_key(part, shape.key) if shape.key else part


def _check_surplus(shape: Shape, plan: TablePlan, surplus: int, spellings: Spellings | None) -> None:
    """Refuse rows that are more than keys: all in a table that is rewritten; in a load those that spell one key in two ways."""
    if surplus and not plan.ranked:
        raise not_unique(shape, surplus, spellings)
    if spellings is not None:
        raise spelled_twice(shape, spellings)


# --- Spark. Columns: c0… of the lake, op, position, p0… of the partition folders, n0… of the forms of the keys' texts (rows.py).


def _by_spark(engine: SparkEngine, place: Place, shape: Shape, plan: TablePlan) -> list[DataFile]:
    if plan.by_key and shape.key and not form_names(shape):
        files = _without_shuffle(engine, place, shape, plan)
        if files is not None:
            return files
    names, parts = plain_names(shape.schema), [f"p{index}" for index in range(len(shape.partitioning))]
    keys = key_names(shape)
    engine.size_shuffles(plan.size_bytes * DECODED_RATIO)
    engine.size_batches(plan.rows, plan.size_bytes)
    rows = _source_rows(engine, place, shape, plan.sources, parts)
    # Without partitions the sort brings the rows of a key together, and the writer keeps the last: no shuffle for the ranking.
    last_of_key = plan.ranked and bool(keys) and not parts and not plan.may_move
    if keys and (not last_of_key or form_names(shape)):
        surplus, spellings = _surplus_rows(engine, place, shape, plan, rows)
        _check_surplus(shape, plan, surplus, spellings)
        winners = settled_winners if plan.may_move else spark_winners
        rows = winners(rows, shape, rows.columns) if surplus and not last_of_key else rows
    rows = rows if last_of_key else rows.where(f"op NOT IN ({DELETE}, {HELD})")
    count = max(1, round(plan.size_bytes / place.limits.target_file_bytes))
    order = [*parts, *keys]
    # The step that uploads comes last: anything that sorts or samples after it would run it twice.
    ready = rows.repartitionByRange(count, *order).sortWithinPartitions(*order, "position") if order else rows.coalesce(count)
    writer = _PartitionedWriter(place, shape, len(parts), last_of_key)
    found = ready.select(*names, "op", *parts).mapInArrow(carried_rows(writer), "files binary").collect()
    return [file for row in found for file in pickle.loads(bytes(row[0]))]


def _without_shuffle(engine: SparkEngine, place: Place, shape: Shape, plan: TablePlan) -> list[DataFile] | None:
    """The files, where each key comes once and tasks can read what they write from the sources; else None."""
    contents = in_key_order(engine, place, shape, plan.sources)
    if contents is not None:
        return write_in_order(engine, place, shape, plan.sources, contents, plan.size_bytes)
    return write_by_partition(engine, place, shape, plan.sources, plan.size_bytes, plan.rows)


def _surplus_rows(engine: SparkEngine, place: Place, shape: Shape, plan: TablePlan, rows: Any) -> tuple[int, Spellings | None]:
    """(how many rows there are more than keys, two spellings of one). Of raw files only the key columns are read for it."""
    from pyspark.sql import functions as F

    if plan.ranked:
        columns = tuple(column for column in shape.schema if column.name in shape.key)
        shape = Shape(shape.table, columns, shape.key)
        rows = _source_rows(engine, place, shape, plan.sources, [])
    spelled = F.concat_ws(", ", *(F.col(name) for name in spelled_names(shape)))
    groups = rows.groupBy(*key_names(shape)).agg(F.count("*").alias("count"), F.min(spelled).alias("one"), F.max(spelled).alias("other"))
    pair = F.max(F.when(F.col("one") != F.col("other"), F.struct("one", "other")))
    surplus, spellings = groups.where("count > 1").agg(F.sum(F.col("count") - 1), pair).collect()[0]
    return int(surplus or 0), (repr(spellings["one"]), repr(spellings["other"])) if spellings else None


def _source_rows(engine: SparkEngine, place: Place, shape: Shape, sources: Sequence[RowSource], parts: list[str]) -> Any:
    lake = arrow_schema(shape.schema)
    names = [*plain_names(shape.schema), "op", "position", *parts]
    types = [*(field.type for field in lake), pa.int8(), pa.int64(), *(pa.string() for _ in parts)]
    schema = with_forms(pa.schema(list(zip(names, types, strict=True))), shape)

    def read(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for payload in batch.column(0).to_pylist():
                for table in pickle.loads(payload)(place, shape):
                    rows = append_forms(_with_parts(table, shape), table, shape)
                    yield from rows.rename_columns(schema.names).cast(schema).to_batches(max_chunksize=BATCH_ROWS)

    payloads = [(pickle.dumps(source),) for source in sources]
    tasks = engine.spark.sparkContext.parallelize(payloads, max(1, len(payloads)))
    return engine.spark.createDataFrame(tasks, "source binary").mapInArrow(carried_rows(read), spark_type(schema))


def _with_parts(table: pa.Table, shape: Shape) -> pa.Table:
    """The rows with their partition folders' values as further columns; a deleted row has none."""
    if not shape.partitioning:
        return table
    values = partition_values(table, shape.partitioning, shape.schema, shape.empty_as_null, shape.table, shape.key)
    for index, column in enumerate(values.columns):
        table = table.append_column(f"p{index}", column)
    return table


@dataclass(frozen=True)
class _PartitionedWriter:
    """Writes rows sorted by partition and key: one writer at a time, closed where the partition changes.

    last_of_key: rows with the same key follow on each other; the last one counts, and is left out if it is a delete.
    """

    place: Place
    shape: Shape
    parts: int
    last_of_key: bool

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        files: list[DataFile] = []
        writer: FileWriter | None = None
        current: PartitionValues | None = None
        tables = (self._named(batch) for batch in batches)
        try:
            for table in self._winners(tables) if self.last_of_key else tables:
                for values, rows in self._pieces(table):
                    if writer is None or values != current:
                        files += writer.finish() if writer else []
                        writer, current = FileWriter(self.place, self.shape, values), values
                    writer.write(rows)
            files += writer.finish() if writer else []
        except BaseException:
            give_up(self.place, files)
            abort_all([writer] if writer else [])
            raise
        yield pa.RecordBatch.from_pydict({"files": pa.array([pickle.dumps(files)], pa.binary())})

    def _named(self, batch: pa.RecordBatch) -> pa.Table:
        """The batch under the lake's names and types, `__op` and the partition folders' columns behind."""
        names = [column.name for column in self.shape.schema]
        parts = [f"__p{index}" for index in range(self.parts)]
        lake = [field.type for field in arrow_schema(self.shape.schema)]
        types = [*lake, pa.int8(), *(pa.string() for _ in parts)]
        table = pa.Table.from_batches([batch]).rename_columns([*names, OP, *parts])
        return table.cast(pa.schema(list(zip(table.column_names, types, strict=True))))

    def _winners(self, tables: Iterator[pa.Table]) -> Iterator[pa.Table]:
        """The last row of each run of equal keys. A table's last row waits for the next table, which may go on with its key."""
        waiting: pa.Table | None = None
        for table in tables:
            rows = table if waiting is None else pa.concat_tables([waiting, table])
            if rows.num_rows:
                last = rows.num_rows - 1
                yield self._kept(rows.slice(0, last).filter(self._ends_run(rows)))
                waiting = rows.slice(last)
        if waiting is not None:
            yield self._kept(waiting)

    def _ends_run(self, rows: pa.Table) -> pa.Array:
        """For each row but the last whether the next one has another key."""
        ends: Any = pa.array([False] * (rows.num_rows - 1), pa.bool_())
        for column in normalised_keys(rows, self.shape.key).columns:
            values = column.combine_chunks()
            here, following = values.slice(0, len(values) - 1), values.slice(1)
            differs = pc.not_equal(here, following)
            if pa.types.is_floating(values.type):  # NaN is one key, and not equal to itself
                differs = pc.and_not(differs, pc.and_(pc.is_nan(here), pc.is_nan(following)))
            ends = pc.or_(ends, differs)
        return ends

    def _kept(self, rows: pa.Table) -> pa.Table:
        return rows.filter(pc.not_equal(rows[OP], pa.scalar(DELETE, pa.int8())))

    def _pieces(self, table: pa.Table) -> Iterator[tuple[PartitionValues, pa.Table]]:
        rows = table.select([column.name for column in self.shape.schema])
        if not self.parts:
            yield (), rows
            return
        yield from split_by_partition(rows, table.select([f"__p{index}" for index in range(self.parts)]))
