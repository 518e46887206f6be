"""Sources of a whole table's rows: pieces of load files, or the table's own data files."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from glue_jobs.core.partitioning import PartitionValues
from glue_jobs.spark.net_changes import DELETE, OP
from glue_jobs.spark.partition_columns import Codes, partition_codes, partition_values, split_by_partition
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
    kept = _kept(rows, shape)
    return split_by_partition(kept, _values(kept, shape))


def kept_with_codes(rows: pa.Table, shape: Shape) -> tuple[pa.Table, list[PartitionValues], Codes]:
    """The same rows in one table, the partitions that they are of, and the place of each row's own among them."""
    kept = _kept(rows, shape)
    return (kept, *partition_codes(_values(kept, shape), kept.num_rows))


def counted(rows: pa.Table, shape: Shape) -> Counter[PartitionValues]:
    """How many of these rows there are in each partition."""
    _, partitions, codes = kept_with_codes(rows, shape)
    return Counter(dict(zip(partitions, np.bincount(codes, minlength=len(partitions)).tolist(), strict=True)))


def _kept(rows: pa.Table, shape: Shape) -> pa.Table:
    is_kept = pc.not_equal(rows[OP], pa.scalar(DELETE, pa.int8()))
    kept = rows.select([column.name for column in shape.schema])
    return kept if pc.all(is_kept, min_count=0).as_py() else kept.filter(is_kept)


def _values(rows: pa.Table, shape: Shape) -> pa.Table:
    return partition_values(rows, shape.partitioning, shape.schema, shape.empty_as_null, shape.table, shape.key)
