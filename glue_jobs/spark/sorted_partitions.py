"""Writing a whole table whose keys are in no order, where each partition fits in a task's memory: no row goes through a shuffle.

Each task takes some partitions, reads the sources that hold them, and sorts the rows of each. A look at the keys and at the columns of the
partitions before tells which sources those are; and, by a hash of each key, that none comes twice, also not in two partitions.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from glue_jobs.core.partitioning import PartitionValues
from glue_jobs.core.record import DataFile
from glue_jobs.spark.column_hashes import Hashes
from glue_jobs.spark.engine import Engine, chain
from glue_jobs.spark.key_columns import in_one_piece, key_order, take
from glue_jobs.spark.key_filter_bits import hashes_of
from glue_jobs.spark.place import Place, Shape
from glue_jobs.spark.portions import OPEN_BYTES, Content, Portion, check_rows, planned
from glue_jobs.spark.row_batches import rows_at_a_time
from glue_jobs.spark.row_sources import RowSource, kept_by_partition, keys_and_partitions
from glue_jobs.spark.write_files import give_up, write_tables

MOST_KEYS = 32_000_000  # whose hashes the driver holds, 16 bytes each
MOST_HELD = OPEN_BYTES  # bytes of a task's rows: texts that compress well are more in memory than was planned for


def write_by_partition(
    engine: Engine, place: Place, shape: Shape, sources: Sequence[RowSource], size_bytes: float, rows: int
) -> list[DataFile] | None:
    """All rows of the sources as data files, sorted by key within each partition; None if a key may come twice, or where a shuffle is
    cheaper or needs less memory: what was written until then is given up.

    size_bytes: what the files are expected to come to; rows: how many are to be read.
    """
    if not shape.partitioning or rows > MOST_KEYS:
        return None
    looks = engine.map(_Look(place, shape), sources)
    if not _are_distinct([look.hashes for look in looks]):
        return None
    contents = {at: look.content for at, look in enumerate(looks) if look.content.read}
    portions = planned(contents, size_bytes, None, engine.slots)
    if portions is None:
        return None
    tasks = [(portion, tuple(sources[at] for at in portion.sources)) for portion in portions]
    written = engine.map(_Write(place, shape), tasks)
    if any(files is None for files in written):
        give_up(place, chain(files or () for files in written))
        return None
    return chain(files or () for files in written)


def _are_distinct(parts: Sequence[Hashes]) -> bool:
    hashes = np.concatenate([np.empty(0, np.uint64), *parts])
    hashes.sort()
    return not bool((hashes[1:] == hashes[:-1]).any())


@dataclass(frozen=True)
class _Found:
    """hashes: of the keys of all rows, deletes too."""

    content: Content
    hashes: Hashes


@dataclass(frozen=True)
class _Look:
    """Reads the key and the columns of the partitions of one source."""

    place: Place
    shape: Shape

    def __call__(self, source: RowSource) -> _Found:
        narrow = keys_and_partitions(self.shape)
        counted: Counter[PartitionValues] = Counter()
        hashes = [np.empty(0, np.uint64)]
        for rows in source(self.place, narrow):
            hashes.append(hashes_of(rows, narrow))
            for values, part in kept_by_partition(rows, narrow):
                counted[values] += part.num_rows
        return _Found(Content(sum(map(len, hashes)), dict(counted)), np.concatenate(hashes))


@dataclass(frozen=True)
class _Write:
    """Writes one portion, whose rows are all in memory. None if they are more than a task may hold; then nothing was written."""

    place: Place
    shape: Shape

    def __call__(self, task: tuple[Portion, Sequence[RowSource]]) -> list[DataFile] | None:
        portion, sources = task
        held = self._rows(portion, sources)
        if held is None:
            return None
        check_rows(portion, sum(part.num_rows for parts in held.values() for part in parts))
        files: list[DataFile] = []
        try:
            for values in sorted(held, key=repr):
                files += write_tables(self.place, self.shape, values, _in_order(held.pop(values), self.shape.key))
        except BaseException:
            give_up(self.place, files)
            raise
        return files

    def _rows(self, portion: Portion, sources: Sequence[RowSource]) -> dict[PartitionValues, list[pa.Table]] | None:
        held: dict[PartitionValues, list[pa.Table]] = {values: [] for values in portion.partitions}
        held_bytes = 0
        for source in sources:
            for rows in source(self.place, self.shape):
                for values, part in kept_by_partition(rows, self.shape):
                    if values in held:
                        held[values].append(part)
                        held_bytes += part.nbytes
                if held_bytes > MOST_HELD:
                    return None
        return held


def _in_order(parts: list[pa.Table], key: Sequence[str]) -> Iterator[pa.Table]:
    """The rows sorted by key, a batch at a time. The list is empty afterwards."""
    rows = in_one_piece(parts)
    order = key_order(rows, key)
    count = rows_at_a_time(rows.nbytes / max(1, rows.num_rows))
    for start in range(0, rows.num_rows, count):
        yield take(rows, order.slice(start, count))
