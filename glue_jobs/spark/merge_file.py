"""Merging net changes into one data file: rows of changed keys are replaced where they stand, or dropped. Arrow only.

The order of rows in a file is kept, so that a file sorted by key stays sorted.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from glue_jobs.spark.encoded_texts import encoded_like
from glue_jobs.spark.group_search import GroupSearch
from glue_jobs.spark.kept_property import kept_property
from glue_jobs.spark.key_columns import take
from glue_jobs.spark.key_index import KeyIndex
from glue_jobs.spark.net_changes import DELETE, NetChanges
from glue_jobs.spark.open_file import OpenFile
from glue_jobs.spark.row_batches import BATCH_ROWS
from glue_jobs.spark.stored_groups import StoredGroup

# Rows that stay are passed on as they lie if their runs are at least so long on average; writing shorter ones costs more than copying all.
LEAST_RUN_ROWS = 1024


@dataclass
class Tally:
    """What merging found: positions in the net changes that hit a row, and those whose new image belongs to another partition. dropped:
    how many rows went, deleted or moved; a key that stands twice in a table counts twice."""

    hits: list[np.ndarray[Any, Any]] = field(default_factory=list)
    moved: list[np.ndarray[Any, Any]] = field(default_factory=list)
    dropped: int = 0

    def all_hits(self) -> np.ndarray[Any, Any]:
        return _joined(self.hits)

    def all_moved(self) -> np.ndarray[Any, Any]:
        return _joined(self.moved)


def _joined(parts: list[np.ndarray[Any, Any]]) -> np.ndarray[Any, Any]:
    return np.unique(np.concatenate(parts)) if parts else np.empty(0, np.int64)


class KeyLookup:
    """Where the keys of a file's rows stand in the net changes, of which only those from `start` up to `stop` lie in its key range.

    by_piece: look at each piece's own range first; where the file is sorted by key, a large batch is then not hashed anew for each piece.
    """

    def __init__(self, net: NetChanges, start: int, stop: int, by_piece: bool) -> None:
        self._net, self._start, self._stop, self._by_piece = net, start, stop, by_piece

    def prepare(self) -> None:
        """Before several threads ask: each would make the index."""
        _ = self._index

    def has_hit(self, rows: pa.Table) -> bool:
        return bool((self.positions(rows) >= 0).any())

    @kept_property
    def _index(self) -> tuple[KeyIndex, int]:
        """Of the net changes in the file's key range, and which is its first. Where that is most of them, as where keys are random, it is
        the index of all: what it makes of them serves every file."""
        if (self._stop - self._start) * 2 >= self._net.rows:
            return self._net.index, 0
        return self._net.index.slice(self._start, self._stop), self._start

    def positions(self, rows: pa.Table) -> np.ndarray[Any, Any]:
        """For each row the place of its key in the net changes, −1 for none."""
        index, start = self._index
        if self._by_piece:
            low, high = self._net.slice_of_rows(rows)
            if high == low:
                return np.full(rows.num_rows, -1, np.int64)
            if (high - low) * 2 < len(index):
                index, start = self._net.index.slice(low, high), low
        found = index.positions(rows)
        if isinstance(found, pa.ChunkedArray):
            found = found.combine_chunks()
        places: np.ndarray[Any, Any] = found.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int64)
        if start:
            places[places >= 0] += start
        return places


class FileMerge:
    """The merge of net changes into one data file. A file that lies in memory is searched once, whatever is asked of it.

    told: for each of the file's row groups whether it holds a changed key, as far as the file's key filter says it; empty without one.
    """

    def __init__(self, opened: OpenFile, net: NetChanges, told: Sequence[bool | None] = ()) -> None:
        self._opened, self._net, self._told = opened, net, told
        self._start, self._stop = net.slice_for(opened.file) if net.shape.key else (0, 0)
        by_piece = not opened.whole and self._stop - self._start >= BATCH_ROWS
        self._lookup = KeyLookup(net, self._start, self._stop, by_piece)
        self._code = net.code_of(opened.file.partition)
        self._found: np.ndarray[Any, Any] | None = None
        self._groups: GroupSearch | None = None

    def has_hits(self) -> bool:
        """Whether any row of the file has a changed key. Reads the key columns only, and stops at the first hit."""
        if self._stop <= self._start:
            return False
        if self._opened.storable:
            return self._searched_groups().has_hits()
        return any((found >= 0).any() for found in self._searched())

    def locate(self, tally: Tally) -> None:
        """Count the file's hits without writing anything."""
        if self._stop > self._start:
            for found in self._searched():
                _note_hits(found, self._net, self._code, tally)

    def rows(self, tally: Tally) -> Iterator[pa.Table]:
        """The file's rows after the net changes, in the file's order, in pieces."""
        yield from self._rows(tally, None)

    def pieces(self, tally: Tally) -> Iterator[pa.Table | StoredGroup]:
        """The same, but row groups without a changed key as they are stored, where that can be. For a file that holds one."""
        for run in self._searched_groups().runs():
            if isinstance(run, StoredGroup):
                yield run
            else:
                yield from self._rows(tally, run)

    def _rows(self, tally: Tally, groups: Sequence[int] | None) -> Iterator[pa.Table]:
        for table in self._opened.batches(groups):
            if self._stop <= self._start:
                yield table
                continue
            positions = self._lookup.positions(table) if self._found is None else self._found
            dropped = _note_hits(positions, self._net, self._code, tally)
            yield _replaced(table, positions, dropped, self._net)

    def _searched_groups(self) -> GroupSearch:
        if self._groups is None:
            self._lookup.prepare()
            self._groups = GroupSearch(self._opened, self._opened.shape.key, self._lookup.has_hit, self._told)
        return self._groups

    def _searched(self) -> Iterator[np.ndarray[Any, Any]]:
        """The positions of all rows, a piece at a time; a file in memory is one piece."""
        for keys in self._opened.key_batches():
            found = self._lookup.positions(keys)
            if self._opened.whole:
                self._found = found
            yield found


def _note_hits(positions: np.ndarray[Any, Any], net: NetChanges, code: int, tally: Tally) -> np.ndarray[Any, Any]:
    """Record hits and moves; for each row whether it is dropped (deleted, or its new image belongs elsewhere)."""
    rows = np.flatnonzero(positions >= 0)
    dropped = np.zeros(len(positions), np.bool_)
    if not len(rows):
        return dropped
    hits = positions[rows]
    deleted = net.ops[hits] == DELETE
    moved = ~deleted & (net.codes[hits] != code)
    tally.hits.append(hits)
    if moved.any():
        tally.moved.append(hits[moved])
    dropped[rows[deleted | moved]] = True
    tally.dropped += int(np.count_nonzero(dropped))
    return dropped


def _replaced(table: pa.Table, positions: np.ndarray[Any, Any], dropped: np.ndarray[Any, Any], net: NetChanges) -> pa.Table:
    """The rows that stay, those of changed keys with their new image in the same place."""
    replaced = (positions >= 0) & ~dropped
    if not replaced.any():
        return table.filter(pa.array(~dropped)) if dropped.any() else table
    images = encoded_like(take(net.images, pa.array(positions[replaced])), table.schema)
    touched = np.flatnonzero(replaced | dropped)
    if len(touched) * LEAST_RUN_ROWS <= table.num_rows:
        return pa.concat_tables(_runs(table, touched, dropped, images))
    order = np.arange(table.num_rows, dtype=np.int64)
    order[replaced] = table.num_rows + np.arange(int(replaced.sum()), dtype=np.int64)
    return take(pa.concat_tables([table, images]).combine_chunks(), pa.array(order[~dropped]))


def _runs(table: pa.Table, touched: np.ndarray[Any, Any], dropped: np.ndarray[Any, Any], images: pa.Table) -> Iterator[pa.Table]:
    """The rows between the touched ones as they lie in memory, and the new images between them: nothing but the images is copied."""
    start = image = 0
    for row in touched.tolist():
        yield table.slice(start, row - start)
        if not dropped[row]:
            yield images.slice(image, 1)
            image += 1
        start = row + 1
    yield table.slice(start)
