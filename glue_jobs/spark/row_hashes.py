"""Hashes of whole rows, and checksums of sets of rows that do not depend on their order."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from glue_jobs.spark.key_columns import normal_floats
from glue_jobs.spark.key_hashes import Hashes, key_hashes

_PRIME = np.uint64(0x9E3779B97F4A7C15)
_NULL = np.uint64(0xD1B54A32D192ED03)
_MASK = (1 << 64) - 1


def row_hashes(rows: pa.Table) -> Hashes:
    """A 64-bit hash for each row, of all columns in their order. Equal rows have equal hashes: null equals null, NaN equals NaN, −0.0
    equals 0.0; also where a column's type grew."""
    total = np.zeros(rows.num_rows, np.uint64)
    for column in rows.itercolumns():
        total = _mixed(total * _PRIME + _one(column))
    return total


def _one(values: pa.ChunkedArray) -> Hashes:
    values = normal_floats(values)
    if not values.null_count:
        return key_hashes(pa.table([values], names=["v"]))
    hashes = np.full(len(values), _NULL, np.uint64)
    hashes[pc.is_valid(values).to_numpy()] = key_hashes(pa.table([values.drop_null()], names=["v"]))
    return hashes


def _mixed(values: Hashes) -> Hashes:
    """Every bit of the input moves every bit of the output."""
    values = (values ^ (values >> np.uint64(32))) * np.uint64(0xD6E8FEB86659FD93)
    values = (values ^ (values >> np.uint64(32))) * np.uint64(0xD6E8FEB86659FD93)
    return values ^ (values >> np.uint64(32))


@dataclass(frozen=True)
class Checksum:
    """Of a set of rows, in which equal rows count as often as they are there: how many, and the sum of their hashes."""

    rows: int = 0
    total: int = 0

    @classmethod
    def of(cls, hashes: Hashes) -> Checksum:
        return cls(len(hashes), int(np.add.reduce(hashes, dtype=np.uint64)) if len(hashes) else 0)

    def __add__(self, other: Checksum) -> Checksum:
        return Checksum(self.rows + other.rows, (self.total + other.total) & _MASK)

    def __str__(self) -> str:
        return f"{self.rows} rows, checksum {self.total:016x}"


def checksum(tables: Iterable[pa.Table]) -> Checksum:
    """Of all rows of the tables."""
    return sum((Checksum.of(row_hashes(table)) for table in tables), Checksum())
