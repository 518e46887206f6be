"""What a change does to row versions, key by key: in one go where the entries fit into memory, else in passes over parts of the keys.

    entries of the change + versions of their keys → chains → versions that end, versions that come

A pass is a task: it reads all entries and keeps those of its part. In one go the tasks read pieces of the entries and of the history's
files, and the chains are made in this process.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from glue_jobs.core.bins import BINS_PER_SLOT, groups, pack
from glue_jobs.core.history_table import DELETE, OPERATION
from glue_jobs.core.record import DataFile
from glue_jobs.core.replay import CELL_BYTES, COPIES, ROW_FACTOR
from glue_jobs.spark.arrow_types import arrow_schema
from glue_jobs.spark.engine import Engine, Engines, Shared, chain
from glue_jobs.spark.history_files import Edits, Numbered, is_open, open_files, versions, with_keys, write_rows
from glue_jobs.spark.key_columns import take
from glue_jobs.spark.key_index import KeyIndex
from glue_jobs.spark.key_moves import void_moves
from glue_jobs.spark.locate import GivenKeys, packed, unpack_keys
from glue_jobs.spark.net_changes import DELETE as GONE
from glue_jobs.spark.net_changes import MOVES_OUT, moves_of
from glue_jobs.spark.place import Place, Shape
from glue_jobs.spark.raw_batch import UNIT_BYTES
from glue_jobs.spark.replay_rows import Part
from glue_jobs.spark.row_changes import differing
from glue_jobs.spark.row_events import Events, Source, deletes_of, keys_of, last_of_each
from glue_jobs.spark.row_versions import AT, NEW, ORDER, Array, Chains, chains, names_of, ops_of


@dataclass(frozen=True)
class Outcome:
    """What becomes of the history. rows: new versions that are not written yet; files: those that are."""

    edits: Edits
    rows: pa.Table
    files: tuple[DataFile, ...] = ()
    inserted: int = 0


class Rule(Protocol):
    """How entries and versions become an outcome. all_keys: those of keys without an entry are wanted too, where they have a row;
    closed_too: all versions, not only the open ones."""

    all_keys: bool
    closed_too: bool

    def kept(self, entries: pa.Table, key: tuple[str, ...]) -> pa.Table:
        """Those of the entries that matter."""

    def __call__(self, source: Source, key: tuple[str, ...], entries: pa.Table, there: pa.Table) -> Outcome: ...


@dataclass(frozen=True)
class Batch:
    """Each entry happened, one after the other."""

    all_keys: bool = False
    closed_too: bool = False

    def kept(self, entries: pa.Table, key: tuple[str, ...]) -> pa.Table:
        return entries

    def __call__(self, source: Source, key: tuple[str, ...], entries: pa.Table, there: pa.Table) -> Outcome:
        return behind(chains(_without_void(pa.concat_tables([there, entries]), key), key))


def _without_void(entries: pa.Table, key: tuple[str, ...]) -> pa.Table:
    """Without the moves to another key that leave the row of one that moved in before."""
    moves = np.where(entries[AT].to_numpy() == NEW, moves_of(entries[ORDER].to_numpy(), ops_of(entries)), 0)
    if not (moves == MOVES_OUT).any():
        return entries
    codes = GivenKeys.of(entries, key).places(entries)
    order = np.lexsort((entries[ORDER].to_numpy(), codes))
    entries, moves = take(entries, pa.array(order)), moves[order]
    void = void_moves(entries, names_of(entries), codes[order], moves, ops_of(entries) == GONE)
    return entries.filter(pa.array(~void))


@dataclass(frozen=True)
class Whole:
    """The entries say all rows that the table has: equal ones did not change, and what is not among them went. gone_at: when, in
    microseconds since 1970."""

    gone_at: int
    all_keys: bool = True
    closed_too: bool = False

    def kept(self, entries: pa.Table, key: tuple[str, ...]) -> pa.Table:
        """Each key's last, if it is a row: load files may overlap."""
        last = last_of_each(entries, key)
        return last.filter(pc.not_equal(last[OPERATION], DELETE))

    def __call__(self, source: Source, key: tuple[str, ...], entries: pa.Table, there: pa.Table) -> Outcome:
        alive = there.filter(pc.not_equal(there[OPERATION], DELETE))
        found = KeyIndex(entries, key).positions(alive) if entries.num_rows else pa.nulls(alive.num_rows, pa.int32())
        gone = deletes_of(source, alive.filter(pc.is_null(found)), self.gone_at)
        changed = entries.filter(pa.array(~_equal_rows(source, entries, alive, found)))
        new = pa.concat_tables([changed, gone])
        return behind(chains(pa.concat_tables([_of_keys(there, new, key), new]), key))


def _equal_rows(source: Source, entries: pa.Table, alive: pa.Table, found: Any) -> Array:
    """A mask of the entries that say what their key's version says; found: for each version the place of its key among the entries."""
    mask = np.zeros(entries.num_rows, bool)
    stays = pc.is_valid(found)
    places = found.filter(stays).combine_chunks() if isinstance(found, pa.ChunkedArray) else found.filter(stays)
    names = [column.name for column in source.shape.schema]
    differs = differing(alive.select(names).filter(stays), entries.select(names).take(places))
    mask[places.to_numpy()[~differs.to_numpy(zero_copy_only=False)]] = True
    return mask


def _of_keys(there: pa.Table, entries: pa.Table, key: tuple[str, ...]) -> pa.Table:
    return there.filter(pa.array(GivenKeys.of(entries, key).places(there) >= 0))


def behind(made: Chains) -> Outcome:
    """The outcome where new versions come behind those that are there."""
    at = made.at
    new, ends = at == NEW, (at != NEW) & ~made.latest
    rows = made.rows(new)
    return Outcome(Edits.of(at[ends], made.valid_to[ends]), rows, inserted=rows.num_rows)


@dataclass(frozen=True)
class Passes:
    """Everything that the tasks need. place, shape: of the history; files: its data files, numbered by their order; ended: places of open
    versions that end without a successor, since another has their key now."""

    place: Place
    shape: Shape
    source: Source
    files: tuple[DataFile, ...]
    events: tuple[Events, ...]
    rule: Rule
    ended: Array = field(default_factory=lambda: np.empty(0, np.int64))

    def wanted(self, keys: GivenKeys, part: Part, rows: pa.Table) -> Array:
        """A mask of the versions that matter."""
        mask = keys.places(rows) >= 0
        if self.rule.all_keys:
            mask |= pc.not_equal(rows[OPERATION], DELETE).to_numpy()
        if not self.rule.closed_too:
            mask &= is_open(rows)
        return mask & part.mask(rows, self.shape.key)

    def versions(self, keys: GivenKeys, part: Part, files: Sequence[Numbered]) -> pa.Table:
        """The versions that matter in these files. keys: of the entries."""
        tables = (versions(self.place, self.shape, file, lambda rows: self.wanted(keys, part, rows)) for file in files)
        found = pa.concat_tables([self.nothing(), *chain(tables)])
        return found.filter(pa.array(~np.isin(found[AT].to_numpy(), self.ended))) if len(self.ended) else found

    def entries(self, events: Sequence[Events], part: Part) -> pa.Table:
        tables = (part.of(rows, self.shape.key) for each in events for rows in each(self.source))
        return pa.concat_tables([self.nothing(), *tables])

    def all_entries(self, part: Part) -> pa.Table:
        """Those of the part that matter."""
        return self.rule.kept(self.entries(self.events, part), self.shape.key)

    def nothing(self) -> pa.Table:
        """No entry."""
        return arrow_schema(self.shape.schema).append(pa.field(ORDER, pa.int64())).append(pa.field(AT, pa.int64())).empty_table()

    def candidates(self, keys: GivenKeys) -> list[Numbered]:
        """The files that may hold a version that matters."""
        if self.rule.closed_too:
            return list(enumerate(self.files))
        files = open_files(self.files)
        return files if self.rule.all_keys else with_keys(keys, self.shape, files)

    def outcome(self, entries: pa.Table, there: pa.Table) -> Outcome:
        return self.rule(self.source, self.shape.key, entries, there)


def passes_for(rows: int, size_bytes: float, columns: int, slots: int, replay_bytes: float) -> int:
    """In how many passes this many rows (of so many bytes in files) and as many versions of their keys fit into each task's share."""
    row = max(CELL_BYTES * columns, ROW_FACTOR * size_bytes / max(1, rows))
    needed = rows * row * COPIES * 2
    return 1 if needed <= replay_bytes else max(1, min(rows, math.ceil(needed * slots / replay_bytes)))


def in_one_go(engines: Engines, work: Passes) -> Outcome:
    """The outcome of entries that fit into this process."""
    size = sum(each.size_bytes for each in work.events)
    engine = engines.for_bytes(size)
    # A task holds what it has read of its bin: here bins are small.
    bins = pack(work.events, lambda each: each.size_bytes, engine.slots * BINS_PER_SLOT)
    read = engine.map(_EntriesTask(_without_events(work)), [tuple(some) for some in bins])
    entries = work.rule.kept(pa.concat_tables([work.nothing(), *map(_unpacked, read)]), work.shape.key)
    keys = keys_of([entries], work.shape.key)
    candidates = work.candidates(keys)
    engine = engines.for_bytes(size + sum(map(_size, candidates)))
    shared = engine.share(keys.pack(), unpack_keys)
    files = pack(candidates, _size, engine.slots * BINS_PER_SLOT)
    found = engine.map(_VersionsTask(_without_events(work), shared), [tuple(some) for some in files])
    return work.outcome(entries, pa.concat_tables([work.nothing(), *map(_unpacked, found)]))


def in_passes(engine: Engine, work: Passes, count: int) -> Outcome:
    """The outcome in so many passes; each writes its new versions to files of its own."""
    return _joined(work, engine.map(_PassTask(work), [Part(number, count) for number in range(count)]))


def piece_by_piece(engine: Engine, work: Passes) -> Outcome:
    """The outcome where there is no version yet and no key comes twice: each piece of the entries for itself."""
    pieces = groups(work.events, lambda each: each.size_bytes, UNIT_BYTES, len(work.events))
    return _joined(work, engine.map(_PieceTask(_without_events(work)), [tuple(some) for some in pieces]))


def _joined(work: Passes, outcomes: Sequence[Outcome]) -> Outcome:
    edits = Edits.joined([each.edits for each in outcomes])
    rows = arrow_schema(work.shape.schema).empty_table()
    return Outcome(edits, rows, tuple(chain(each.files for each in outcomes)), sum(each.inserted for each in outcomes))


def _without_events(work: Passes) -> Passes:
    """What a task that is told its events needs; those of all tasks would go to each."""
    return replace(work, events=())


def _size(file: Numbered) -> int:
    return file[1].size_bytes


def _unpacked(data: bytes) -> pa.Table:
    return pa.ipc.open_stream(data).read_all()


def _written(work: Passes, outcome: Outcome) -> Outcome:
    """The outcome with its rows in files."""
    files = write_rows(work.place, work.shape, outcome.rows)
    return Outcome(outcome.edits, outcome.rows.slice(0, 0), (*outcome.files, *files), outcome.inserted)


@dataclass(frozen=True)
class _EntriesTask:
    work: Passes

    def __call__(self, events: tuple[Events, ...]) -> bytes:
        return packed(self.work.entries(events, Part()))


@dataclass(frozen=True)
class _VersionsTask:
    work: Passes
    keys: Shared[GivenKeys] = field(repr=False)

    def __call__(self, files: tuple[Numbered, ...]) -> bytes:
        return packed(self.work.versions(self.keys.get(), Part(), files))


@dataclass(frozen=True)
class _PassTask:
    work: Passes

    def __call__(self, part: Part) -> Outcome:
        work = self.work
        entries = work.all_entries(part)
        keys = keys_of([entries], work.shape.key)
        return _written(work, work.outcome(entries, work.versions(keys, part, work.candidates(keys))))


@dataclass(frozen=True)
class _PieceTask:
    work: Passes

    def __call__(self, events: tuple[Events, ...]) -> Outcome:
        work = replace(self.work, events=events)
        return _written(work, work.outcome(work.all_entries(Part()), work.nothing()))
