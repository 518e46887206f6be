"""Which row groups of a large data file hold a row that is looked for: those are decoded, the others copied as they stand."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import groupby

import pyarrow as pa

from glue_jobs.core.keys import Bound
from glue_jobs.spark.key_columns import bounds
from glue_jobs.spark.open_file import OpenFile
from glue_jobs.spark.stored_groups import StoredGroup

Range = tuple[Bound, Bound]


@dataclass(frozen=True)
class GroupSearch:
    """What a search of a file found. without_hit: the row groups that hold no row that is looked for, each with its key range, in a table
    without a key an empty one."""

    opened: OpenFile
    without_hit: dict[int, Range]

    @classmethod
    def of(cls, opened: OpenFile, columns: Sequence[str], has_hit: Callable[[pa.Table], bool]) -> GroupSearch:
        """columns: those that `has_hit` looks at. The first row that is looked for ends the search of a row group. In a file of which none
        is `storable` none is searched, and all are taken to hold one."""
        columns = [*columns, *(name for name in opened.shape.key if name not in columns)]
        numbers = range(opened.parquet.num_row_groups if opened.storable else 0)
        found = {number: _range(opened, number, columns, has_hit) for number in numbers}
        return cls(opened, {number: each for number, each in found.items() if each is not None})

    def has_hits(self) -> bool:
        """Whether a row group holds a row that is looked for; an empty one does not."""
        metadata = self.opened.parquet.metadata
        return any(number not in self.without_hit and metadata.row_group(number).num_rows for number in range(metadata.num_row_groups))

    def runs(self) -> Iterator[StoredGroup | list[int] | None]:
        """What becomes of the row groups, in their order: one that goes as it stands, or the numbers of some that are decoded; None for
        all of them."""
        stored = self.opened.storable.keys() & self.without_hit.keys()
        if not stored:
            yield None
            return
        for is_stored, groups in groupby(range(self.opened.parquet.num_row_groups), stored.__contains__):
            if is_stored:
                yield from map(self._stored, groups)
            else:
                yield list(groups)

    def _stored(self, number: int) -> StoredGroup:
        opened, described = self.opened, self.opened.storable[number]
        rows = opened.parquet.metadata.row_group(number).num_rows
        keys, chunks = partial(opened.some_columns, opened.shape.key, [number]), partial(opened.chunks, described.start, described.stop)
        return StoredGroup(rows, *self.without_hit[number], described, keys, chunks)


def _range(opened: OpenFile, number: int, columns: Sequence[str], has_hit: Callable[[pa.Table], bool]) -> Range | None:
    """The key range of a row group's rows; None where one of them is looked for, and where there are none."""
    key, ranges = opened.shape.key, []
    batches = opened.key_batches if tuple(columns) == tuple(key) else partial(opened.some_columns, columns)
    for rows in batches(groups=[number]):
        if has_hit(rows):
            return None
        ranges.append(bounds(rows, key) or ((), ()))
    return (min(low for low, _ in ranges), max(high for _, high in ranges)) if ranges else None
