"""The row changes of one change after the other, with the columns that Spark users know from Delta's change data feed.

Beside the table's columns: `_change_type` (insert, update_preimage, update_postimage, delete), `_commit_version` (the change's id) and
`_commit_timestamp` (its time). On Arrow in this process, or as a Spark DataFrame for tables of any size; of each change only the
files that differ from the state before are read. Nothing is left out between two states: a rollback's row changes undo.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import reduce
from itertools import pairwise
from operator import and_, or_
from typing import Any

import pyarrow as pa

from glue_jobs.core.errors import UsageError
from glue_jobs.core.schema import Column, Schema, find
from glue_jobs.core.snapshot import Snapshot
from glue_jobs.core.undo import parse_to
from glue_jobs.spark.arrow_types import UTC_MICROSECONDS, arrow_schema
from glue_jobs.spark.differences import common_key, comparable_schema
from glue_jobs.spark.key_columns import collated_keys, comparable_column
from glue_jobs.spark.past import past_table
from glue_jobs.spark.place import Place
from glue_jobs.spark.row_changes import (
    CHANGE_TYPE,
    COMMIT_TIMESTAMP,
    COMMIT_VERSION,
    DELETE,
    INSERT,
    POSTIMAGE,
    PREIMAGE,
    files_apart,
    row_changes,
)
from glue_jobs.spark.rows import plain_names, spark_type
from glue_jobs.spark.task_errors import carried_rows

FEED_COLUMNS = (CHANGE_TYPE, COMMIT_VERSION, COMMIT_TIMESTAMP)


def feed_schema(states: Iterable[Snapshot]) -> Schema:
    """The columns of the feed: those of the last state that has any, each in the widest type it had.

    Raises UsageError where a column's types have nothing in common (a table that was loaded again with other types), and where a column
    has the name of one of the feed's own.
    """
    wide: Schema = ()
    for change, schema in reversed([(state.change, state.schema) for state in states]):
        wide, apart = comparable_schema(schema, wide) if wide and schema else (wide or schema, ())
        if apart:
            raise UsageError(
                f"column {apart[0]!r} has another type as of change {change}, and no type holds both",
                "types-apart",
                "ask for the changes before and after that one by themselves",
            )
    taken = [column.name for column in wide if column.name in FEED_COLUMNS]
    if taken:
        raise UsageError(
            f"the table has a column {taken[0]!r}, which is the name of one of the change feed's own",
            "reserved-column",
            "`dmslake diff PATH A B` shows the changes; for a feed rename the column by a DMS transformation rule",
        )
    return tuple(Column(column.name, column.type) for column in wide)


def with_commit_columns(schema: pa.Schema) -> pa.Schema:
    """The feed's Arrow schema."""
    more = [(CHANGE_TYPE, pa.string()), (COMMIT_VERSION, pa.string()), (COMMIT_TIMESTAMP, UTC_MICROSECONDS)]
    return pa.schema([*schema, *(pa.field(name, kind) for name, kind in more)])


def change_feed(place: Place, table: str, states: Iterable[Snapshot]) -> Iterator[pa.Table]:
    """One table of row changes for each state after the first, on Arrow; states without any are left out. states: gone through twice."""
    return (rows for _, rows in state_changes(place, table, states))


def state_changes(place: Place, table: str, states: Iterable[Snapshot]) -> Iterator[tuple[Snapshot, pa.Table]]:
    """The same, each table with its state."""
    schema = feed_schema(states)
    whole = with_commit_columns(arrow_schema(schema))
    for before, after in pairwise(states):
        gone, came = files_apart(before, after)
        if not gone and not came:
            continue
        old, new = past_table(place, table, before, gone).read(), past_table(place, table, after, came).read()
        rows = row_changes(old, new, schema, common_key(before, after, schema))
        if rows.num_rows:
            version = pa.repeat(pa.scalar(after.change), rows.num_rows)
            time = pa.repeat(pa.scalar(parse_to(after.time), UTC_MICROSECONDS), rows.num_rows)
            yield after, pa.Table.from_arrays([*rows.columns, version, time], schema=whole)


# --- Spark. Columns travel under plain names: o0, o1, … before, n0, n1, … after.


def change_frame(spark: Any, place: Place, table: str, states: Iterable[Snapshot]) -> Any:
    """The same as one Spark DataFrame. Nothing is read before Spark asks for it."""
    schema = feed_schema(states)
    parts = []
    for before, after in pairwise(states):
        gone, came = files_apart(before, after)
        if gone or came:
            old = _plain_frame(spark, place, table, before, gone, schema)
            new = _plain_frame(spark, place, table, after, came, schema)
            parts.append(_with_commit(_rows_apart(old, new, schema, common_key(before, after, schema)), after))
    whole = spark_type(with_commit_columns(arrow_schema(schema)))
    if not parts:
        return spark.createDataFrame([], whole)
    return reduce(lambda one, other: one.union(other), parts).toDF(*whole.names)


def _plain_frame(spark: Any, place: Place, table: str, state: Snapshot, paths: Sequence[str], schema: Schema) -> Any:
    """Rows of some files as c0, c1, … in the feed's types; a column that the state has not is null."""
    from pyspark.sql import functions as F

    types = {name: field.dataType for name, field in zip(plain_names(schema), spark_type(arrow_schema(schema)), strict=True)}
    there = {column.name: at for at, column in enumerate(state.schema)}
    frame = past_table(place, table, state, paths).frame(spark).toDF(*plain_names(state.schema))
    columns = [
        (F.col(f"c{there[column.name]}") if find(state.schema, column.name) else F.lit(None)).cast(types[name]).alias(name)
        for name, column in zip(plain_names(schema), schema, strict=True)
    ]
    return frame.select(*columns)


def _rows_apart(old: Any, new: Any, schema: Schema, key: Sequence[str]) -> Any:
    """c0, c1, … and the kind of change."""
    if not key:
        return _counted(old, new)
    from pyspark.sql import functions as F

    names, forms = plain_names(schema), _forms(schema, key)
    keys = [forms.get(name, name) for name, column in zip(names, schema, strict=True) if column.name in key]
    sent = [*names, *forms.values()]
    old = _with_forms(old, schema, key).select(*(F.col(name).alias(f"o{name}") for name in sent), F.lit(True).alias("old"))
    new = _with_forms(new, schema, key).select(*(F.col(name).alias(f"n{name}") for name in sent), F.lit(True).alias("new"))
    both = old.join(new, reduce(and_, (F.col(f"o{name}").eqNullSafe(F.col(f"n{name}")) for name in keys)), "full_outer")
    differ = reduce(or_, (~F.col(f"o{name}").eqNullSafe(F.col(f"n{name}")) for name in names))

    def image(mark: str, kind: str) -> Any:
        return F.struct(*(F.col(f"{mark}{name}").alias(name) for name in names), F.lit(kind).alias("kind"))

    images = (
        F.when(F.col("new").isNull(), F.array(image("o", DELETE)))
        .when(F.col("old").isNull(), F.array(image("n", INSERT)))
        .otherwise(F.array(image("o", PREIMAGE), image("n", POSTIMAGE)))
    )
    apart = both.where(F.col("old").isNull() | F.col("new").isNull() | differ)
    return apart.select(F.explode(images).alias("row")).select("row.*")


def _forms(schema: Schema, key: Sequence[str]) -> dict[str, str]:
    """The key's columns that compare otherwise than by their bytes, and the names of their forms."""
    return {plain: f"k{plain}" for plain, column in zip(plain_names(schema), schema, strict=True) if column.name in _collated(schema, key)}


def _collated(schema: Schema, key: Sequence[str]) -> list[str]:
    types = [column.type for name in key for column in schema if column.name == name]
    return collated_keys(key, types)


def _with_forms(frame: Any, schema: Schema, key: Sequence[str]) -> Any:
    """The rows with those forms behind them."""
    forms, collated = _forms(schema, key), {str(name): name for name in _collated(schema, key)}
    if not forms:
        return frame
    names = plain_names(schema)
    by = {plain: collated[column.name] for plain, column in zip(names, schema, strict=True) if plain in forms}
    kinds = [field.type for field in arrow_schema(schema)]
    whole = pa.schema([*zip(names, kinds, strict=True), *((form, pa.string()) for form in forms.values())])

    def add(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            rows = pa.Table.from_batches([batch])
            for plain, form in forms.items():
                rows = rows.append_column(form, comparable_column(rows.column(plain), by[plain]))
            yield from rows.to_batches()

    return frame.mapInArrow(carried_rows(add), spark_type(whole))


def _counted(old: Any, new: Any) -> Any:
    """Without a key: rows that stand there more often before are deletes, those more often after inserts."""
    from pyspark.sql import functions as F

    names = old.columns
    marked = old.withColumn("n", F.lit(-1)).union(new.withColumn("n", F.lit(1)))
    surplus = marked.groupBy(*names).agg(F.sum("n").alias("n")).where("n <> 0")
    times = F.explode(F.sequence(F.lit(1), F.abs(F.col("n"))))
    kind = F.when(F.col("n") < 0, DELETE).otherwise(INSERT).alias("kind")
    return surplus.select(*names, kind, times.alias("time")).drop("time")


def _with_commit(rows: Any, after: Snapshot) -> Any:
    from pyspark.sql import functions as F

    moment = F.timestamp_micros(F.lit(_microseconds(after.time)))
    return rows.withColumn("version", F.lit(after.change)).withColumn("moment", moment)


def _microseconds(time: str) -> int:
    return int(pa.scalar(parse_to(time), UTC_MICROSECONDS).cast(pa.int64()).as_py())
