"""What a correction would do to a table: the files that hold its keys, the rows before and after, and whether it can be made. Reads only.

Every row of a key that is given goes; rows that were given for it take their place. A key that no file holds is left out: rows given
for it are not written, except where rows are inserted (edit_plan.py).
"""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa

from glue_jobs.core.bins import bins_of_slots
from glue_jobs.core.errors import TableBlocked, blocked
from glue_jobs.core.record import Counts, DataFile
from glue_jobs.core.snapshot import Snapshot
from glue_jobs.core.state import TableState
from glue_jobs.spark.engine import Engines, Shared, chain
from glue_jobs.spark.given_rows import GivenRows, chosen, texts_of
from glue_jobs.spark.locate import GivenKeys, Located, Places, candidates_by_range, column_batches, locate, unpack_keys
from glue_jobs.spark.past import PastFile
from glue_jobs.spark.place import Place, Shape

NAMED_KEYS = 20  # keys that no file holds, as a record and a report list them
NAMED_TAKEN = 5


@dataclass(frozen=True)
class ApplyPlan:
    """What a correction would do. located: the files to rewrite, by path; before, after: rows of each given key.

    edit: insert, update or delete, where it is one of these. inserts: rows whose key no file holds are written too, and files that hold
    no key may be located, to take them up.
    """

    snapshot: Snapshot
    shape: Shape
    given: GivenRows
    located: tuple[Located, ...]
    before: Places
    after: Places
    edit: str = ""
    inserts: bool = False

    @cached_property
    def found(self) -> Places:
        """For each given key whether any file holds it."""
        return np.asarray(self.before > 0)

    @property
    def files(self) -> list[DataFile]:
        return [self.snapshot.files[each.path] for each in self.located]

    @property
    def size_bytes(self) -> int:
        return sum(file.size_bytes for file in self.files)

    @property
    def deletes(self) -> pa.Table:
        """The keys deleted, without those that no file holds."""
        return chosen(self.given.keys.table, np.flatnonzero(self.found[: self.given.deleted]))

    @cached_property
    def rows_in(self) -> Places:
        """The places of the given rows that are written."""
        return np.arange(self.given.updates.num_rows) if self.inserts else np.flatnonzero(self.found[self.given.key_of])

    @cached_property
    def replaces(self) -> Places:
        """For each row written whether it takes the place of others."""
        if not len(self.given.keys):
            return np.zeros(len(self.rows_in), bool)
        return np.asarray(self.found[self.given.key_of[self.rows_in]])

    @cached_property
    def updates(self) -> pa.Table:
        """The rows written."""
        return chosen(self.given.updates, self.rows_in)

    @property
    def missing(self) -> Places:
        """The places of the keys that no file holds."""
        return np.flatnonzero(~self.found)

    def counts(self) -> Counts:
        """Of each key as many rows as before are updated; what is more is inserted or deleted."""
        before, after = self.before[self.found], self.after[self.found]
        return Counts(
            inserted=int(np.maximum(after - before, 0).sum() + (~self.replaces).sum()),
            updated=int(np.minimum(before, after).sum()),
            deleted=int(np.maximum(before - after, 0).sum()),
        )


def plan_apply(
    engines: Engines, place: Place, state: TableState, snapshot: Snapshot, given: GivenRows, *, strict: bool = False
) -> ApplyPlan:
    """Find the rows of the keys that are given, and check that the correction can be made. Reads only.

    Raises TableBlocked: no-key-found; keys-not-found (strict); key-taken where a row to be written has the primary key of one that stays.
    """
    empty_as_null = state.empty_partition.lower() == "null"
    shape = Shape(str(state.path), snapshot.schema, snapshot.primary_key, snapshot.partitioning, empty_as_null)
    files = [PastFile(snapshot.files[path], "") for path in sorted(snapshot.files)]
    candidates = candidates_by_range(given.keys, shape, files)
    engine = engines.for_files(sum(each.file.size_bytes for each in candidates))
    located = tuple(locate(engine, place, shape, given.keys, candidates))
    before = np.zeros(len(given.keys), np.int64)
    for each in located:
        before[each.hits] += each.counts
    after = np.bincount(given.key_of, minlength=len(given.keys)).astype(np.int64)
    plan = ApplyPlan(snapshot, shape, given, located, before, after)
    _check_found(plan, strict)
    _check_not_taken(engines, place, plan, files)
    return plan


def _check_found(plan: ApplyPlan, strict: bool) -> None:
    missing = plan.missing
    if not len(missing) and len(plan.given.keys):
        return
    what = f"{len(missing):,} of {len(plan.given.keys):,} key(s) stand in no row"
    first = f"by {', '.join(plan.given.keys.columns)}: {'; '.join(_named(plan, NAMED_TAKEN))}"
    if len(missing) == len(plan.given.keys):
        raise blocked("no-key-found", what, where=plan.shape.table, found=first, todo="look at the key and its values; nothing was changed")
    if strict:
        todo = "take these keys out, or leave out --strict; nothing was changed"
        raise blocked("keys-not-found", what, where=plan.shape.table, expected="all of them (--strict)", found=first, todo=todo)


def _named(plan: ApplyPlan, most: int) -> list[str]:
    return texts_of(chosen(plan.given.keys.table, plan.missing[:most]))


def _check_not_taken(engines: Engines, place: Place, plan: ApplyPlan, files: Sequence[PastFile]) -> None:
    """Refuse rows whose primary key stands in a row that stays. By a key of the primary key's own columns it can't."""
    primary_key, key = plan.shape.key, plan.given.keys.columns
    if not primary_key or set(key) <= set(primary_key) or not len(plan.rows_in):
        return
    keys = GivenKeys.of(plan.updates, primary_key)
    candidates = candidates_by_range(keys, plan.shape, files)
    engine = engines.for_files(sum(each.file.size_bytes for each in candidates))
    shared = engine.share(pickle.dumps((plan.given.keys.pack(), keys.pack())), _unpack_both)
    bins = bins_of_slots(candidates, lambda each: each.file.size_bytes, engine.slots)
    taken = chain(engine.map(_TakenTask(place, plan.shape, shared), bins))
    if taken:
        raise _taken(plan.shape, keys, np.unique(np.array(taken)))


def _unpack_both(payload: bytes) -> tuple[GivenKeys, GivenKeys]:
    given, primary = pickle.loads(payload)
    return unpack_keys(given), unpack_keys(primary)


@dataclass(frozen=True)
class _TakenTask:
    """For data files: the places of the primary keys (the second of `shared`) that stand in rows whose key (the first) is not given."""

    place: Place
    shape: Shape
    shared: Shared[tuple[GivenKeys, GivenKeys]]

    def __call__(self, files: tuple[PastFile, ...]) -> list[int]:
        given, primary = self.shared.get()
        columns = tuple(dict.fromkeys((*primary.columns, *given.columns)))
        found: list[int] = []
        for each in files:
            for rows in column_batches(self.place, self.shape, each, columns, lacking_is_null=True):
                places = primary.places(rows)
                found += np.unique(places[(places >= 0) & (given.places(rows) < 0)]).tolist()
        return found


def _taken(shape: Shape, keys: GivenKeys, places: Places) -> TableBlocked:
    names = "; ".join(texts_of(chosen(keys.table, places[:NAMED_TAKEN])))
    return blocked(
        "key-taken",
        f"{len(places):,} row(s) to be written have the primary key of a row that stays",
        where=shape.table,
        expected=f"{', '.join(shape.key)} is unique",
        found=names,
        todo="give rows with other primary keys, or the keys of those rows too; nothing was changed",
    )


def facts(plan: ApplyPlan) -> dict[str, Any]:
    """The plan for reports and logs."""
    if plan.edit:
        return {"edit": plan.edit, "rows_given": _rows_given(plan), "files_rewritten": len(plan.located)}
    found, deleted = plan.found, plan.given.deleted
    return {
        "rows_matched_before": int(plan.before.sum()),
        "rows_after": int(plan.after[found].sum()),
        "keys_deleted": int(found[:deleted].sum()),
        "keys_updated": int(found[deleted:].sum()),
        "keys_not_found": len(plan.missing),
        "keys_not_found_first": _named(plan, NAMED_KEYS),
        "files_rewritten": len(plan.located),
    }


def _rows_given(plan: ApplyPlan) -> int:
    return len(plan.given.keys) if plan.given.deleted else plan.given.updates.num_rows
