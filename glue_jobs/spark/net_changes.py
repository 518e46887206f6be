"""Net changes: the last change of each key in a batch, sorted by key, ready to be sent to every task.

The order of a key's changes is DMS's: file by base name, then row. Both are packed into one integer, the position, because
ranking (ranking.py) by one long is twice as fast as by a struct.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from glue_jobs.core.keys import decode_bound, slice_of
from glue_jobs.core.partitioning import PartitionValues
from glue_jobs.core.record import DataFile
from glue_jobs.spark.key_columns import bounds, comparables, sort_by_key, take
from glue_jobs.spark.key_index import KeyIndex
from glue_jobs.spark.partition_columns import partition_values
from glue_jobs.spark.place import Shape

OP, POSITION = "__op", "__position"
INSERT, UPDATE, DELETE = 0, 1, 2
HELD = -1  # of net changes: an update if the table has a row of the key, else nothing
ROW_BITS = 40  # four positions for each row of a file of up to 2 * 10^11 rows; 8 million files in a batch
STEPS = 4  # positions for each row of a raw file
MOVES_OUT, STAYS, MOVES_IN = 1, 2, 3  # the order of a row's own changes (key_moves.py); rows of no raw file have any, and are inserts
Array = np.ndarray[Any, Any]


def moves_of(positions: Array, ops: Array) -> Array:
    """For each change MOVES_OUT or MOVES_IN, 0 for all that moves no key."""
    kinds = positions & (STEPS - 1)
    return np.where((ops == DELETE) & (kinds == MOVES_OUT), MOVES_OUT, np.where((ops == UPDATE) & (kinds == MOVES_IN), MOVES_IN, 0))


def position(file_ordinal: int, rows: pa.Array) -> pa.Array:
    """The position of rows (int64, from 0) of the file with this place in the batch's order."""
    return pc.add(rows, file_ordinal << ROW_BITS)


@dataclass(frozen=True)
class NetChanges:
    """table: the lake's columns and `__op`, one row per key, sorted by key (in the order taken where there is no key).

    codes: for each row, which of `partitions` it belongs to; −1 for a delete, whose partition column may be missing.
    """

    table: pa.Table
    shape: Shape
    codes: np.ndarray[Any, np.dtype[np.int32]]
    partitions: tuple[PartitionValues, ...]

    @property
    def rows(self) -> int:
        return int(self.table.num_rows)

    @cached_property
    def ops(self) -> np.ndarray[Any, Any]:
        return self.table[OP].to_numpy()

    @property
    def bring_rows(self) -> np.ndarray[Any, Any]:
        """A mask of the changes that bring a row, whatever the table has."""
        return (self.ops != DELETE) & (self.ops != HELD)

    @cached_property
    def keys(self) -> Sequence[Any]:
        """The keys as core.keys.slice_of wants them."""
        return comparables(self.table, self.shape.key)

    @cached_property
    def index(self) -> KeyIndex:
        return KeyIndex(self.table, self.shape.key)

    @cached_property
    def images(self) -> pa.Table:
        """The rows as the lake has them."""
        return self.table.drop_columns([OP])

    def slice_for(self, file: DataFile) -> tuple[int, int]:
        """The half-open range of rows whose keys lie in the file's key range."""
        types = self.shape.key_types
        low, high = decode_bound(types, file.low), decode_bound(types, file.high)
        return slice_of(self.keys, len(self.shape.key), low, high)

    def slice_of_rows(self, rows: pa.Table) -> tuple[int, int]:
        """The half-open range of rows whose keys lie in the range of these rows' keys."""
        found = bounds(rows, self.shape.key)
        return (0, 0) if found is None else slice_of(self.keys, len(self.shape.key), *found)

    def code_of(self, partition: PartitionValues) -> int:
        """The code of a data file's partition; −2 if no row of the batch belongs there."""
        return self._codes.get(partition, -2)

    @cached_property
    def _codes(self) -> dict[PartitionValues, int]:
        return {values: code for code, values in enumerate(self.partitions)}

    def pack(self) -> bytes:
        """The net changes as bytes that `unpacker` reads."""
        table = self.table.append_column("__code", pa.array(self.codes))
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, table.schema) as writer:
            writer.write_table(table)
        return sink.getvalue().to_pybytes()


@dataclass(frozen=True)
class Unpacker:
    """Reads packed net changes in a task."""

    shape: Shape
    partitions: tuple[PartitionValues, ...]

    def __call__(self, payload: bytes) -> NetChanges:
        table = pa.ipc.open_stream(payload).read_all()
        codes = table["__code"].to_numpy()
        return NetChanges(table.drop_columns(["__code"]), self.shape, codes, self.partitions)


def are_rows(table: pa.Table) -> pa.ChunkedArray:
    """A mask of ranked rows that are in the table afterwards, whatever it had before."""
    return pc.invert(pc.is_in(table[OP], value_set=pa.array([DELETE, HELD], pa.int8())))


def net_changes(ranked: pa.Table, shape: Shape) -> NetChanges:
    """Net changes from ranked rows (lake columns, `__op`, perhaps `__position`)."""
    order = sort_by_key(ranked, shape.key) if shape.key else take(ranked, pc.sort_indices(ranked[POSITION]))
    table = order.select([column.name for column in shape.schema] + [OP]).combine_chunks()
    codes, partitions = _partition_codes(table, shape)
    return NetChanges(table, shape, codes, partitions)


def _partition_codes(table: pa.Table, shape: Shape) -> tuple[np.ndarray[Any, Any], tuple[PartitionValues, ...]]:
    deletes = table[OP].to_numpy() == DELETE
    if not shape.partitioning:
        return np.where(deletes, -1, 0).astype(np.int32), ((),)
    codes = np.full(table.num_rows, -1, np.int32)
    kept = table.filter(pa.array(~deletes))
    values = partition_values(kept, shape.partitioning, shape.schema, shape.empty_as_null, shape.table, shape.key)
    found: dict[PartitionValues, int] = {}
    rows = zip(*(column.to_pylist() for column in values.columns), strict=True) if kept.num_rows else iter(())
    codes[~deletes] = [found.setdefault(row, len(found)) for row in rows]
    return codes, tuple(found)
