"""Row versions: what happened to some keys, put behind the versions that they have, as the versions that come and those that end.

Entries are rows of the history table (its columns), with two more: `__order`, an entry's place among those of its key, and `__at`, where a
version stands that is there already, −1 for what is new. A new entry says by `operation` only whether it is a delete, by `valid_from` when
it was committed; what it is among its key's versions is found here. Arrow and numpy only.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from glue_jobs.core.history_table import DELETE, FLAG, INSERT, OPERATION, UPDATE, VALID_FROM, VALID_TO
from glue_jobs.spark.arrow_types import UTC_MICROSECONDS
from glue_jobs.spark.key_columns import take
from glue_jobs.spark.locate import GivenKeys
from glue_jobs.spark.net_changes import DELETE as DELETED
from glue_jobs.spark.net_changes import UPDATE as UPDATED

ORDER, AT = "__order", "__at"
NEW = -1
Array = np.ndarray[Any, Any]
_NAMES = np.array([INSERT, UPDATE, DELETE])
_INSERT, _UPDATE, _DELETE = range(3)


@dataclass(frozen=True)
class Chains:
    """The versions of some keys, each key's in their order. All arrays are of the same length; times are microseconds since 1970.

    own: the entry that a version is; image: the entry whose values it has (a delete has those of the version before). operation: a
    place in (insert, update, delete). latest: it is its key's last version, and its valid_to is none.
    """

    entries: pa.Table
    own: Array
    image: Array
    operation: Array
    valid_from: Array
    valid_to: Array
    latest: Array

    @property
    def at(self) -> Array:
        """For each version where it stands, −1 for a new one."""
        return self.entries[AT].to_numpy()[self.own]

    def rows(self, chosen: Array) -> pa.Table:
        """Those versions as rows of the history table. chosen: a mask, or places."""
        rows = take(self.entries.drop_columns([ORDER, AT]), pa.array(self.image[chosen]))
        mine = pa.array(self.own[chosen])
        for name in rows.column_names[rows.column_names.index(FLAG) + 1 :]:  # where a version comes from is its own, not its image's
            rows = _set(rows, name, self.entries[name].take(mine))
        rows = _set(rows, OPERATION, pa.array(_NAMES[self.operation[chosen]], pa.string()))
        rows = _set(rows, VALID_FROM, as_times(self.valid_from[chosen]))
        rows = _set(rows, VALID_TO, as_times(self.valid_to[chosen], self.latest[chosen]))
        return _set(rows, FLAG, pa.array(self.latest[chosen].astype(np.int32)))


def chains(entries: pa.Table, key: Sequence[str]) -> Chains:
    """The versions that the entries make.

    A delete of a key that has no row makes none. A key's times never run backwards: a version is valid from its commit, or from when the
    one before was, whichever is later. An entry that is the first of its key and a version already stays what it is.
    """
    codes = GivenKeys.of(entries, key).places(entries)
    order = np.lexsort((entries[ORDER].to_numpy(), codes))
    codes = codes[order]
    deletes = pc.equal(entries[OPERATION], DELETE).to_numpy(zero_copy_only=False)[order]
    first = _first_of_run(codes)
    is_old = entries[AT].to_numpy()[order] >= 0
    counts = ~deletes | _alive_before(first, deletes) | (is_old & first)
    own, codes, deletes, is_old = order[counts], codes[counts], deletes[counts], is_old[counts]
    first = _first_of_run(codes)
    alive_before = _alive_before(first, deletes)
    found = np.where(deletes, _DELETE, np.where(alive_before, _UPDATE, _INSERT))
    known = pc.index_in(entries[OPERATION], value_set=pa.array(_NAMES)).to_numpy()[own]
    valid_from = running_max(as_micros(entries[VALID_FROM])[own], first)
    latest = np.append(first[1:], True)[: len(own)]
    return Chains(
        entries,
        own,
        np.where(deletes & alive_before, np.roll(own, 1), own),
        np.where(is_old & first, known, found),
        valid_from,
        np.where(latest, 0, np.roll(valid_from, -1)),
        latest,
    )


def names_of(entries: pa.Table) -> list[str]:
    """The lake's columns."""
    return list(entries.column_names[: entries.column_names.index(OPERATION)])


def ops_of(entries: pa.Table) -> Array:
    """Each entry's operation as rows of a batch have it: a delete or not."""
    return np.where(pc.equal(entries[OPERATION], DELETE).to_numpy(zero_copy_only=False), DELETED, UPDATED)


def running_max(values: Array, first: Array) -> Array:
    """The greatest of the values so far, from each `first` on anew. Exact: values are replaced by their places among all."""
    if not len(values):
        return values
    distinct, places = np.unique(values, return_inverse=True)
    floor = (np.cumsum(first) - 1) * len(distinct)
    return distinct[np.maximum.accumulate(places + floor) - floor]


def _first_of_run(codes: Array) -> Array:
    return np.append(True, codes[1:] != codes[:-1])[: len(codes)]


def _alive_before(first: Array, deletes: Array) -> Array:
    """For each entry whether its key has a row when it comes: a dropped delete leaves it as dead as one that counts."""
    return ~first & ~np.roll(deletes, 1)


def as_micros(times: pa.ChunkedArray) -> Array:
    """Instants as microseconds since 1970."""
    return times.cast(pa.int64()).to_numpy()


def as_times(micros: Array, is_null: Array | None = None) -> pa.Array:
    """The other way; is_null: a mask of those that are none."""
    return pa.array(micros.astype(np.int64), pa.int64(), mask=is_null).cast(UTC_MICROSECONDS)


def with_place(rows: pa.Table, order: Any, at: Any) -> pa.Table:
    """Rows of the history table as entries."""
    return rows.append_column(ORDER, order).append_column(AT, pa.array(at, pa.int64()))


def _set(rows: pa.Table, name: str, values: Any) -> pa.Table:
    return rows.set_column(rows.column_names.index(name), rows.schema.field(name), values)
