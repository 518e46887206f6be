"""Which row groups of a large data file hold a row that is looked for: those are decoded, the others copied as they stand."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import groupby

import pyarrow as pa

from glue_jobs.core.keys import Bound
from glue_jobs.spark.key_columns import bounds
from glue_jobs.spark.open_file import OpenFile
from glue_jobs.spark.stored_groups import StoredGroup

Range = tuple[Bound, Bound]


class GroupSearch:
    """The search of a file, a row group at a time: one is searched when it is asked about, so while those before it are written already."""

    def __init__(self, opened: OpenFile, columns: Sequence[str], has_hit: Callable[[pa.Table], bool]) -> None:
        """columns: those that `has_hit` looks at. The first row that is looked for ends the search of a row group. In a file of which none
        is `storable` none is searched, and all are taken to hold one."""
        self.opened, self._has_hit = opened, has_hit
        self._columns = [*columns, *(name for name in opened.shape.key if name not in columns)]
        self._ranges: dict[int, Range | None] = {}

    def has_hits(self) -> bool:
        """Whether a row group holds a row that is looked for; an empty one does not. Ends with the first that does."""
        metadata = self.opened.parquet.metadata
        return any(metadata.row_group(number).num_rows and self._range(number) is None for number in range(metadata.num_row_groups))

    def runs(self) -> Iterator[StoredGroup | list[int] | None]:
        """What becomes of the row groups, in their order: one that goes as it stands, or the numbers of some that are decoded; None for
        all, in a file of which none is `storable`."""
        if not self.opened.storable:
            yield None
            return
        for is_stored, groups in groupby(range(self.opened.parquet.num_row_groups), self._is_stored):
            if is_stored:
                yield from map(self._stored, groups)
            else:
                yield list(groups)

    def _is_stored(self, number: int) -> bool:
        return number in self.opened.storable and self._range(number) is not None

    def _stored(self, number: int) -> StoredGroup:
        opened, described = self.opened, self.opened.storable[number]
        low, high = self._range(number) or ((), ())
        hashes, chunks = partial(opened.group_hashes, number), partial(opened.chunks, described.start, described.stop)
        return StoredGroup(opened.parquet.metadata.row_group(number).num_rows, low, high, described, hashes, chunks)

    def _range(self, number: int) -> Range | None:
        """The key range of a row group's rows, in a table without a key an empty one; None where one of them is looked for, and where
        there are none."""
        if not self.opened.storable:
            return None
        if number not in self._ranges:
            self._ranges[number] = self._searched(number)
        return self._ranges[number]

    def _searched(self, number: int) -> Range | None:
        opened, key, ranges = self.opened, self.opened.shape.key, []
        batches = opened.key_batches if tuple(self._columns) == tuple(key) else partial(opened.some_columns, self._columns)
        for rows in batches(groups=[number]):
            if self._has_hit(rows):
                return None
            ranges.append(bounds(rows, key) or ((), ()))
        return (min(low for low, _ in ranges), max(high for _, high in ranges)) if ranges else None
