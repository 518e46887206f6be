"""Which row groups of a large data file hold a row that is looked for: those are decoded, the others copied as they stand."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import groupby

import pyarrow as pa

from glue_jobs.core.keys import Bound
from glue_jobs.spark.key_columns import bounds
from glue_jobs.spark.open_file import OpenFile
from glue_jobs.spark.stored_groups import StoredGroup, bytes_of

HasHit = Callable[[pa.Table], bool]


class GroupSearch:
    """The search of a file that is read in pieces, a row group after the other, once. columns: those that `has_hit` looks at. That is given
    to each method: kept here, it would make a cycle with who keeps the search, whose rows would lie in memory until that is found.

    In a file without `storable` row groups nothing is searched, and all of it is decoded.
    """

    def __init__(self, opened: OpenFile, columns: Sequence[str]) -> None:
        self._opened = opened
        self._columns = [*columns, *(name for name in opened.shape.key if name not in columns)]
        self._found: dict[int, tuple[Bound, Bound]] | None = None

    def has_hits(self, has_hit: HasHit) -> bool:
        """Whether any row is one that is looked for, of a file that has `storable` row groups."""
        return len(self._without_hit(has_hit)) < self._opened.parquet.num_row_groups

    def runs(self, has_hit: HasHit) -> Iterator[StoredGroup | list[int] | None]:
        """What becomes of the row groups, in their order: one that goes as it stands, or the numbers of some that are decoded; None for
        all of them."""
        ranges = self._without_hit(has_hit) if self._opened.storable else {}
        stored = self._opened.storable.keys() & ranges.keys()
        if not stored:
            yield None
            return
        for is_stored, groups in groupby(range(self._opened.parquet.num_row_groups), stored.__contains__):
            if is_stored:
                yield from (self._stored(number, *ranges[number]) for number in groups)
            else:
                yield list(groups)

    def _stored(self, number: int, low: Bound, high: Bound) -> StoredGroup:
        described = self._opened.storable[number]
        span = bytes_of(described)
        assert span is not None  # or it would not be storable
        rows = self._opened.parquet.metadata.row_group(number).num_rows
        keys, chunks = partial(self._opened.key_batches, [number]), partial(self._opened.chunks, *span)
        return StoredGroup(rows, low, high, *span, described, keys, chunks)

    def _without_hit(self, has_hit: HasHit) -> dict[int, tuple[Bound, Bound]]:
        """Those that hold no row that is looked for, each with its key range; in a table without a key that is empty."""
        if self._found is None:
            self._found = {}
            for number in range(self._opened.parquet.num_row_groups):
                ranges = self._ranges(number, has_hit)
                if ranges:
                    self._found[number] = min(low for low, _ in ranges), max(high for _, high in ranges)
        return self._found

    def _ranges(self, number: int, has_hit: HasHit) -> list[tuple[Bound, Bound]]:
        """The key ranges of a row group's pieces; none where one of them has a hit: the row group is not read further then."""
        key, ranges = self._opened.shape.key, []
        batches = self._opened.key_batches if self._columns == list(key) else partial(self._opened.some_columns, self._columns)
        for rows in batches(groups=[number]):
            if has_hit(rows):
                return []
            ranges.append(bounds(rows, key) or ((), ()))
        return ranges
