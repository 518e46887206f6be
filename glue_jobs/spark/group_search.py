"""Which row groups of a large data file hold a row that is looked for: those are decoded, the others copied as they stand."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import groupby

import pyarrow as pa

from glue_jobs.core.keys import Bound
from glue_jobs.spark.key_columns import bounds
from glue_jobs.spark.open_file import OpenFile
from glue_jobs.spark.side_by_side import MOST_BYTES, in_order
from glue_jobs.spark.stored_groups import StoredGroup

Range = tuple[Bound, Bound]
SEARCH_BYTES = MOST_BYTES // 2  # so that two are searched at a time


class GroupSearch:
    """The search of a file, a row group at a time: one is searched while that before it is, or is written already."""

    def __init__(
        self, opened: OpenFile, columns: Sequence[str], has_hit: Callable[[pa.Table], bool], is_known_to_hold: bool = False
    ) -> None:
        """columns: those that `has_hit` looks at. The first row that is looked for ends the search of a row group. In a file of which none
        is `storable` none is searched, and all are taken to hold one. is_known_to_hold: some row of the file is looked for; so where no
        other row group holds one, the last does, and need not be searched."""
        self.opened, self._has_hit, self._is_known_to_hold = opened, has_hit, is_known_to_hold
        self._columns = [*columns, *(name for name in opened.shape.key if name not in columns)]
        self._ranges: dict[int, Range | None] = {}

    def has_hits(self) -> bool:
        """Whether a row group holds a row that is looked for; an empty one does not. Ends with the first that does."""
        with self._searched() as found:
            return any(self._rows(number) and each is None for number, each in found)

    def runs(self) -> Iterator[StoredGroup | list[int] | None]:
        """What becomes of the row groups, in their order: one that goes as it stands, or the numbers of some that are decoded; None for
        all, in a file of which none is `storable`."""
        if not self.opened.storable:
            yield None
            return
        with self._searched() as found:
            for is_stored, some in groupby(found, lambda pair: pair[0] in self.opened.storable and pair[1] is not None):
                if is_stored:
                    yield from (self._stored(number, each) for number, each in some if each is not None)
                else:
                    yield [number for number, _ in some]

    def _rows(self, number: int) -> int:
        return int(self.opened.parquet.metadata.row_group(number).num_rows)

    def _stored(self, number: int, found: Range) -> StoredGroup:
        opened, described = self.opened, self.opened.storable[number]
        object_range = opened.range_of(described.start, described.stop)
        return StoredGroup(self._rows(number), *found, described, partial(opened.group_hashes, number), object_range)

    @contextmanager
    def _searched(self) -> Iterator[Iterator[tuple[int, Range | None]]]:
        """The row groups by their numbers, each with `_range`."""
        count = self.opened.parquet.num_row_groups
        searched = range(count - 1 if self._is_known_to_hold and self.opened.storable else count)
        with in_order(self._range, searched, self._search_bytes) as found:
            yield self._with_the_last(zip(searched, found, strict=True))

    def _with_the_last(self, found: Iterator[tuple[int, Range | None]]) -> Iterator[tuple[int, Range | None]]:
        """All row groups, where some may have been searched: the last only if it is not known to hold a row that is looked for."""
        last, others_do = self.opened.parquet.num_row_groups - 1, False
        for number, each in found:
            others_do = others_do or each is None
            yield number, each
            if number == last:
                return
        if last >= 0:
            yield last, self._range(last) if others_do else None

    def _search_bytes(self, _: int) -> int:
        """Where most row groups hold a row that is looked for, they are decoded meanwhile: then one is searched at a time."""
        found = list(self._ranges.values())
        return MOST_BYTES if found.count(None) * 2 > len(found) else SEARCH_BYTES

    def _range(self, number: int) -> Range | None:
        """The key range of a row group's rows, in a table without a key an empty one; None where one of them is looked for, and where
        there are none."""
        if not self.opened.storable:
            return None
        if number not in self._ranges:
            self._ranges[number] = self._search(number)
        return self._ranges[number]

    def _search(self, number: int) -> Range | None:
        opened, key, ranges = self.opened, self.opened.shape.key, []
        batches = opened.key_batches if tuple(self._columns) == tuple(key) else partial(opened.some_columns, self._columns)
        for rows in batches(groups=[number]):
            if self._has_hit(rows):
                return None
            ranges.append(bounds(rows, key) or ((), ()))
        return (min(low for low, _ in ranges), max(high for _, high in ranges)) if ranges else None
