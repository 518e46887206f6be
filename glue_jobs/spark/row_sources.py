"""Sources of a whole table's rows: pieces of load files, or the table's own data files."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

import pyarrow as pa
import pyarrow.compute as pc

from glue_jobs.core.partitioning import PartitionValues
from glue_jobs.spark.net_changes import DELETE, OP
from glue_jobs.spark.partition_columns import partition_values, split_by_partition
from glue_jobs.spark.place import Place, Shape


class RowSource(Protocol):
    """A picklable piece of work that yields rows: the columns of the shape, `__op`, `__position`. No key has a null."""

    def __call__(self, place: Place, shape: Shape) -> Iterator[pa.Table]: ...


def keys_and_partitions(shape: Shape) -> Shape:
    """Of the table's columns those of its key and of its partitions."""
    wanted = {*shape.key, *(field.column for field in shape.partitioning)}
    columns = tuple(column for column in shape.schema if column.name in wanted)
    return Shape(shape.table, columns, shape.key, shape.partitioning, shape.empty_as_null)


def kept_by_partition(rows: pa.Table, shape: Shape) -> Iterator[tuple[PartitionValues, pa.Table]]:
    """Of a source's rows those that are no deletes, in the columns of the shape: each partition's, in their order."""
    is_kept = pc.not_equal(rows[OP], pa.scalar(DELETE, pa.int8()))
    kept = rows.select([column.name for column in shape.schema])
    if not pc.all(is_kept, min_count=0).as_py():
        kept = kept.filter(is_kept)
    if not shape.partitioning:
        if kept.num_rows:
            yield (), kept
        return
    values = partition_values(kept, shape.partitioning, shape.schema, shape.empty_as_null, shape.table, shape.key)
    yield from split_by_partition(kept, values)
