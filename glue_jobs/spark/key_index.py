"""Where keys stand among distinct keys."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from glue_jobs.spark.column_hashes import Hashes, column_hashes
from glue_jobs.spark.key_columns import Column, key_columns, one_array

# Arrow hashes all keys of an index for each lookup. Where they are so many, and so many times the rows that are looked up, they are hashed
# once: 500,000 random keys against 700 files took a batch 23 seconds.
LEAST_HASHED = 4096
HASHED_RATIO = 2
MOST_BEGINNING_BITS = 24  # 16 MB


class KeyIndex:
    """Where a key stands in a table of distinct keys, for any number of rows at once and without a Python object per row."""

    def __init__(self, table: pa.Table, key: Sequence[str]) -> None:
        """`table` has the columns `key`, without nulls, each key once; other columns are left aside."""
        self.key = tuple(key)
        self._table = pa.table(key_columns(table, self.key), names=list(self.key))
        self._levels: list[tuple[pa.Array, pa.Array]] | None = None

    @cached_property
    def _hashed(self) -> _HashedKeys:
        return _HashedKeys(self._table)

    def __len__(self) -> int:
        return self._table.num_rows

    def slice(self, start: int, stop: int) -> KeyIndex:
        """The index of the keys from `start` to before `stop`; positions count from `start`. Copies nothing."""
        return KeyIndex(self._table.slice(start, max(0, stop - start)), self.key)

    def positions(self, table: pa.Table) -> pa.Array:
        """For each row of `table` the position of its key as int32, null where it has none here."""
        probes = [self._same_type(column, name) for name, column in zip(self.key, key_columns(table, self.key), strict=True)]
        if len(self) >= max(LEAST_HASHED, HASHED_RATIO * table.num_rows) and self._hashed.are_distinct:
            return self._hashed.positions(pa.table(probes, names=list(self.key)))
        if len(probes) == 1:
            return one_array(pc.index_in(probes[0], value_set=one_array(self._table.column(0))))
        return self._composite(probes)

    def _same_type(self, probe: Column, name: str) -> Column:
        wanted = self._table.schema.field(name).type
        return probe if probe.type.equals(wanted) else probe.cast(wanted)

    def _composite(self, probes: Sequence[Column]) -> pa.Array:
        """Each column's values are numbered, the numbers joined with those of the columns before and numbered again.

        So they stay below the number of keys, and a product of two below 2⁶³.
        """
        if self._levels is None:
            self._levels = self._number()
        code: pa.Array | None = None
        for probe, (distinct, joined) in zip(probes, self._levels, strict=True):
            number = _int64(pc.index_in(probe, value_set=distinct))
            pair = number if code is None else _join(code, number, len(distinct))
            code = _int64(pc.index_in(pair, value_set=joined))
        return code.cast(pa.int32())

    def _number(self) -> list[tuple[pa.Array, pa.Array]]:
        """Per column: its distinct values, and the distinct joined numbers; of the last column those of each key in order."""
        levels: list[tuple[pa.Array, pa.Array]] = []
        code: pa.Array | None = None
        last = self._table.num_columns - 1
        for index, column in enumerate(self._table.itercolumns()):
            distinct = one_array(pc.unique(column))
            number = _int64(pc.index_in(column, value_set=distinct))
            pair = number if code is None else _join(code, number, len(distinct))
            joined = pair if index == last else pc.unique(pair)
            levels.append((distinct, joined))
            code = _int64(pc.index_in(pair, value_set=joined))
        return levels


def _join(code: pa.Array, number: pa.Array, distinct: int) -> pa.Array:
    return pc.add(pc.multiply(code, distinct), number)


def _int64(values: Column) -> pa.Array:
    return one_array(values.cast(pa.int64()))


class _HashedKeys:
    """Distinct keys in the order of their hashes; twelve bytes for each, and 8 to 16 for `_beginnings`, which says of each value of a
    hash's first bits whether some key has it. Most rows' keys are told apart by it; a binary search would miss the processor's cache at
    nearly each step."""

    def __init__(self, keys: pa.Table) -> None:
        hashes = column_hashes(keys)
        self._keys = keys
        self._order = np.argsort(hashes).astype(np.int32)
        self._hashes = hashes[self._order]
        bits = min(len(hashes).bit_length() + 3, MOST_BEGINNING_BITS)
        self._shift = np.uint64(64 - bits)
        self._beginnings = np.zeros(1 << bits, np.bool_)
        self._beginnings[self._begins(hashes)] = True
        # Long texts may have one hash. Then a lookup would have several places to look at.
        self.are_distinct = not bool((self._hashes[1:] == self._hashes[:-1]).any())

    def positions(self, probes: pa.Table) -> pa.Array:
        """As KeyIndex has them. `probes`: the key's columns in the types of the keys."""
        wanted = column_hashes(probes)
        found = np.full(len(wanted), -1, np.int32)
        rows = np.flatnonzero(np.take(self._beginnings, self._begins(wanted)))
        some = wanted[rows]
        at = np.minimum(np.searchsorted(self._hashes, some), len(self._hashes) - 1)
        are_there = self._hashes[at] == some
        rows, places = rows[are_there], self._order[at[are_there]]
        same = _are_equal(probes.take(pa.array(rows)), self._keys.take(pa.array(places)))
        found[rows[same]] = places[same]
        return pa.array(found, mask=found < 0)

    def _begins(self, hashes: Hashes) -> np.ndarray[Any, np.dtype[np.int64]]:
        return (hashes >> self._shift).view(np.int64)


def _are_equal(left: pa.Table, right: pa.Table) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """Row by row; NaN is equal to itself, null to nothing."""
    same = np.ones(left.num_rows, bool)
    for mine, other in zip(left.columns, right.columns, strict=True):
        equal = pc.equal(mine, other)
        if pt.is_floating(mine.type):
            equal = pc.or_(equal, pc.and_(pc.is_nan(mine), pc.is_nan(other)))
        same &= equal.fill_null(False).to_numpy()
    return same
