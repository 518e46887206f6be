"""Late files in the history: their rows are put among the versions of their keys where they belong, and those keys' chains are made anew.

The raw files after the late ones are read again. A late row comes before the version of the next of its key's rows there; where there is
none it is the last, if it wins. What then was no version, a delete of a key that had no row, may be one now. What a person changed stays
where it was, and the last version stays the last unless a late row wins: the live table does the same. So does a key of which an erase took
the last version.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from glue_jobs.core.history_table import DELETE, FLAG, OPERATION, SOURCE_FILE, SOURCE_ROW, VALID_FROM, VALID_TO
from glue_jobs.core.raw_names import cdc_name
from glue_jobs.spark.history_files import Edits
from glue_jobs.spark.history_passes import Outcome
from glue_jobs.spark.key_columns import take
from glue_jobs.spark.key_moves import void_moves
from glue_jobs.spark.locate import GivenKeys
from glue_jobs.spark.net_changes import MOVES_OUT, ROW_BITS, moves_of
from glue_jobs.spark.row_events import Source, keys_of
from glue_jobs.spark.row_versions import AT, NEW, ORDER, Array, Chains, as_micros, chains, names_of, ops_of

_END = np.iinfo(np.int64).max
_NOWHERE = -1


@dataclass(frozen=True)
class Late:
    """ordinals: the places of the late files among those that are read."""

    ordinals: tuple[int, ...]
    all_keys: bool = False
    closed_too: bool = True

    def kept(self, entries: pa.Table, key: tuple[str, ...]) -> pa.Table:
        """The entries of keys that a late file has."""
        late = GivenKeys.of(entries.filter(pa.array(self._is_late(entries))), key)
        return entries.filter(pa.array(late.places(entries) >= 0))

    def _is_late(self, entries: pa.Table) -> Array:
        return np.isin(entries[ORDER].to_numpy() >> ROW_BITS, self.ordinals)

    def __call__(self, source: Source, key: tuple[str, ...], entries: pa.Table, there: pa.Table) -> Outcome:
        keys = keys_of([there, entries], key)
        there, entries = self._without_ended(there, entries, keys)
        there = in_order(there, keys)
        entries = entries.take(pa.array(np.lexsort((entries[ORDER].to_numpy(), keys.places(entries)))))
        before, is_new, known = _places(there, entries, keys, self._is_late(entries))
        new = entries.filter(pa.array(is_new))
        every = pa.concat_tables([there, new])
        moves = _moves(there.num_rows, entries, known, is_new)
        marks = np.lexsort(  # of what is before the same version, new entries in their own order, then the version
            (
                np.concatenate([np.zeros(there.num_rows, np.int64), new[ORDER].to_numpy()]),
                np.arange(every.num_rows) < there.num_rows,
                np.concatenate([np.arange(there.num_rows), before[is_new]]),
                keys.places(every),
            )
        )
        order = np.empty(every.num_rows, np.int64)
        order[marks] = np.arange(every.num_rows)
        every = every.set_column(every.column_names.index(ORDER), ORDER, pa.array(order))
        if (moves == MOVES_OUT).any():
            chain = take(every, pa.array(marks))
            every = chain.filter(pa.array(~void_moves(chain, names_of(chain), keys.places(chain), moves[marks], _deletes(chain))))
        return _outcome(every, chains(every, key))

    def _without_ended(self, there: pa.Table, entries: pa.Table, keys: GivenKeys) -> tuple[pa.Table, pa.Table]:
        """Both without the keys whose latest version an erase took, unless a late row is the last of its key: the live table has no row
        of them either, and the versions that are left must not begin to hold again."""
        versions_of, codes = keys.places(there), keys.places(entries)
        opened = versions_of[pc.equal(there[FLAG], 1).to_numpy(zero_copy_only=False)]
        order = np.lexsort((entries[ORDER].to_numpy(), codes))
        last = order[np.append(codes[order][1:] != codes[order][:-1], True)[: len(order)]]
        revived = codes[last[self._is_late(entries)[last]]]
        ended = np.setdiff1d(versions_of, np.concatenate([opened, revived]))
        return there.filter(pa.array(~np.isin(versions_of, ended))), entries.filter(pa.array(~np.isin(codes, ended)))


def in_order(there: pa.Table, keys: GivenKeys) -> pa.Table:
    """The versions, each key's in their order. Of several that were valid for no time the raw files say the order."""
    ends = np.where(pc.is_null(there[VALID_TO]).to_numpy(zero_copy_only=False), _END, as_micros(pc.fill_null(there[VALID_TO], 0)))
    rows = pc.fill_null(there[SOURCE_ROW], 0).to_numpy()
    return there.take(pa.array(np.lexsort((rows, _file_ranks(there), ends, as_micros(there[VALID_FROM]), keys.places(there)))))


def _file_ranks(there: pa.Table) -> Array:
    """For each version the place of its CDC file among all, 0 where it is from none."""
    names = pc.unique(there[SOURCE_FILE]).to_pylist()
    files = [cdc_name(name) if name else None for name in names]
    places = {file: place for place, file in enumerate(sorted({file for file in files if file}), 1)}
    ranks = [places[file] if file else 0 for file in files]
    return np.array(ranks, np.int64)[pc.index_in(there[SOURCE_FILE], value_set=pa.array(names, pa.string())).to_numpy()]


def _moves(versions: int, entries: pa.Table, known: Array, is_new: Array) -> Array:
    """Of the versions that are there, and of the new entries behind them, which move a key."""
    moves = moves_of(entries[ORDER].to_numpy(), ops_of(entries))
    of_versions = np.zeros(versions, np.int64)
    of_versions[known[known != _NOWHERE]] = moves[known != _NOWHERE]
    return np.concatenate([of_versions, moves[is_new]])


def _places(there: pa.Table, entries: pa.Table, keys: GivenKeys, late: Array) -> tuple[Array, Array, Array]:
    """(for each entry the place of the version before which it comes, _END for none; whether it becomes a new version; the place of its
    own, _NOWHERE for none). Both tables are in the order of keys."""
    codes, versions_of = keys.places(entries), keys.places(there)
    deletes = _deletes(entries)
    known = np.where(late, _NOWHERE, _version_of(there, entries, versions_of, codes))
    # A row of the files after it that is no version was applied before the history began, unless it is a delete that took nothing away.
    is_new = late | ((known == _NOWHERE) & deletes)
    count = len(codes)
    following = np.minimum.accumulate(np.where(known != _NOWHERE, np.arange(count), count)[::-1])[::-1]
    safe = np.minimum(following, count - 1)
    has_next = (following < count) & (codes[safe] == codes)
    last = np.append(codes[1:] != codes[:-1], True)[:count]
    winner = np.flatnonzero(last)[np.searchsorted(codes[last], codes)]  # the last entry of the same key
    final = np.searchsorted(versions_of, codes, side="right") - 1
    has_chain = (final >= 0) & (versions_of[np.maximum(final, 0)] == codes) if len(versions_of) else np.zeros(count, bool)
    is_dead = ~has_chain | _deletes(there)[np.maximum(final, 0)] if len(versions_of) else np.ones(count, bool)
    at_end = late[winner] | (deletes[winner] & is_dead)
    before = np.where(has_next, known[safe], np.where(at_end, _END, np.where(has_chain, final, _NOWHERE)))
    return before, is_new & (before != _NOWHERE), known


def _version_of(there: pa.Table, entries: pa.Table, versions_of: Array, codes: Array) -> Array:
    """For each entry the place of the last version that was made of it, _NOWHERE for none."""
    names = pc.unique(pa.chunked_array([*there[SOURCE_FILE].chunks, *entries[SOURCE_FILE].chunks], pa.string())).drop_null()
    ids = [_ids(rows, each, names) for rows, each in ((there, versions_of), (entries, codes))]
    _, both = np.unique(np.concatenate(ids), axis=0, return_inverse=True)
    both = both.reshape(-1)
    found = np.full(len(both), _NOWHERE, np.int64)
    found[both[: there.num_rows]] = np.arange(there.num_rows)
    return found[both[there.num_rows :]]


def _ids(rows: pa.Table, codes: Array, names: pa.Array) -> Array:
    """Key, raw file, row and whether it is a delete: a row that changed its key is two entries."""
    files = pc.fill_null(pc.index_in(rows[SOURCE_FILE], value_set=names), -1).to_numpy()
    return np.stack([codes, files, pc.fill_null(rows[SOURCE_ROW], -1).to_numpy(), _deletes(rows)], axis=1).astype(np.int64)


def _deletes(rows: pa.Table) -> Array:
    return np.asarray(pc.equal(rows[OPERATION], DELETE).to_numpy(zero_copy_only=False))


def _outcome(every: pa.Table, made: Chains) -> Outcome:
    """Versions that differ from what stands there are written anew; of those of which only the end differs that is set."""
    at = made.at
    new, image_new = at == NEW, made.entries[AT].to_numpy()[made.image] == NEW
    mine = every.take(pa.array(made.own))
    was_latest = pc.equal(mine[FLAG], 1).to_numpy(zero_copy_only=False)
    ended = as_micros(pc.fill_null(mine[VALID_TO], 0))
    rows = made.rows(np.arange(len(made.own)))
    differs = pc.not_equal(rows[OPERATION], mine[OPERATION]).to_numpy(zero_copy_only=False)
    differs |= (as_micros(mine[VALID_FROM]) != made.valid_from) | image_new | (made.latest & ~was_latest)
    differs &= ~new
    ends = ~new & ~differs & ~made.latest & (was_latest | (ended != made.valid_to))
    stood = every[AT].to_numpy()
    dropped = np.setdiff1d(stood[stood != NEW], at)
    edits = Edits.of(at[ends], made.valid_to[ends], np.concatenate([at[differs], dropped]))
    return Outcome(edits, rows.filter(pa.array(new | differs)), inserted=int(new.sum()))
