"""Which row groups of a large data file hold a row that is looked for: those are decoded, the others copied as they stand."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import groupby

import pyarrow as pa

from glue_jobs.core.keys import Bound, decode_bound
from glue_jobs.spark.key_columns import bounds
from glue_jobs.spark.open_file import OpenFile
from glue_jobs.spark.side_by_side import MOST_BYTES, in_order
from glue_jobs.spark.stored_groups import StoredGroup

Range = tuple[Bound, Bound]
SEARCH_BYTES = MOST_BYTES // 2  # so that two are searched at a time


class GroupSearch:
    """The search of a file, a row group at a time: one is searched while that before it is, or is written already."""

    def __init__(
        self, opened: OpenFile, columns: Sequence[str], has_hit: Callable[[pa.Table], bool], told: Sequence[bool | None] = ()
    ) -> None:
        """columns: those that `has_hit` looks at. The first row that is looked for ends the search of a row group. In a file of which none
        is `storable` none is searched, and all are taken to hold one. told: for each row group whether it holds one, so that it need not be
        searched; None, or nothing at all, where that is not known."""
        self.opened, self._has_hit, self._told = opened, has_hit, told
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
        keys = partial(opened.group_hashes, number), partial(opened.group_section, number)
        return StoredGroup(self._rows(number), *found, described, *keys, object_range)

    @contextmanager
    def _searched(self) -> Iterator[Iterator[tuple[int, Range | None]]]:
        """The row groups by their numbers, each with `_range`."""
        with in_order(self._range, range(self.opened.parquet.num_row_groups), self._search_bytes) as found:
            yield enumerate(found)

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
            self._ranges[number] = self._found(number)
        return self._ranges[number]

    def _found(self, number: int) -> Range | None:
        told = self._told[number] if self._told else None
        around = self._file_range() if told is False else None
        return None if told else around or self._search(number)

    def _file_range(self) -> Range | None:
        """That of all rows, around those of each row group; None where the record has not the whole of it. A file of such row groups keeps
        it when the rows at its ends are gone: where filters are asked, ranges tell files apart no better for it."""
        file, types = self.opened.file, self.opened.shape.key_types
        low, high = decode_bound(types, file.low), decode_bound(types, file.high)
        return (low, high) if low and high and len(low) == len(high) == len(types) else None

    def _search(self, number: int) -> Range | None:
        opened, key, ranges = self.opened, self.opened.shape.key, []
        batches = opened.key_batches if tuple(self._columns) == tuple(key) else partial(opened.some_columns, self._columns)
        for rows in batches(groups=[number]):
            if self._has_hit(rows):
                return None
            ranges.append(bounds(rows, key) or ((), ()))
        return (min(low for low, _ in ranges), max(high for _, high in ranges)) if ranges else None
