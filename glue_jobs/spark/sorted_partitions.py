"""Writing a whole table whose keys are in no order, where each partition fits in a task's memory: no row goes through a shuffle.

Each task takes some partitions, reads the sources that hold them, and sorts the rows of each. A look at the keys and at the columns of the
partitions before tells which sources those are; and, by a hash of each key, that none comes twice, also not in two partitions.
"""

from __future__ import annotations

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
from glue_jobs.spark.partition_columns import Codes, runs_of
from glue_jobs.spark.place import Place, Shape
from glue_jobs.spark.portions import OPEN_BYTES, Content, Portion, Sorted, check_rows, planned, row_bytes_of
from glue_jobs.spark.row_batches import rows_at_a_time
from glue_jobs.spark.row_sources import RowSource, counted, kept_with_codes, keys_and_partitions
from glue_jobs.spark.write_files import give_up, write_tables

MOST_KEYS = 32_000_000  # whose hashes the driver holds, 16 bytes each
MOST_HELD = OPEN_BYTES  # bytes of a task's rows: the first ones, by which it was planned, may be narrower than others


def write_by_partition(
    engine: Engine, place: Place, shape: Shape, sources: Sequence[RowSource], size_bytes: float, rows: int
) -> list[DataFile] | None:
    """All rows of the sources as data files, sorted by key within each partition; None if a key may come twice, or where a shuffle is
    cheaper or needs less memory: what was written until then is given up.

    size_bytes: what the files are expected to come to; rows: how many are to be read.
    """
    if not shape.partitioning or rows > MOST_KEYS:
        return None
    contents = _distinct_contents(engine.map(_Look(place, shape), sources))
    if contents is None:
        return None
    writing = Sorted(row_bytes_of(contents, size_bytes), _held_row_bytes(place, shape, sources))
    portions = planned(contents, writing, engine.slots)
    if portions is None:
        return None
    tasks = [(portion, tuple(sources[at] for at in portion.sources)) for portion in portions]
    written = engine.map(_Write(place, shape, MOST_HELD), tasks)
    if any(files is None for files in written):
        give_up(place, chain(files or () for files in written))
        return None
    return chain(files or () for files in written)


@dataclass(frozen=True)
class _Found:
    """hashes: of the keys of all rows, deletes too."""

    content: Content
    hashes: Hashes


def _distinct_contents(looks: Sequence[_Found]) -> dict[int, Content] | None:
    """What the sources hold, by their numbers; None if a key may come twice."""
    hashes = np.concatenate([np.empty(0, np.uint64), *(look.hashes for look in looks)])
    hashes.sort()
    if (hashes[1:] == hashes[:-1]).any():
        return None
    return {at: look.content for at, look in enumerate(looks) if look.content.read}


@dataclass(frozen=True)
class _Look:
    """Reads the key and the columns of the partitions of one source."""

    place: Place
    shape: Shape

    def __call__(self, source: RowSource) -> _Found:
        narrow = keys_and_partitions(self.shape)
        content = Content()
        hashes = [np.empty(0, np.uint64)]
        for rows in source(self.place, narrow):
            hashes.append(hashes_of(rows, narrow))
            content = content.with_rows(rows.num_rows, counted(rows, narrow))
        return _Found(content, np.concatenate(hashes))


def _held_row_bytes(place: Place, shape: Shape, sources: Sequence[RowSource]) -> float:
    """What a task holds for a row, by the first ones."""
    for source in sources:
        for rows in source(place, shape):
            if rows.num_rows:
                return _held(_column_bytes(rows)) / rows.num_rows
    return 0.0


def _held(column_bytes: Codes) -> int:
    """Bytes of rows while their columns are put in one piece each, one after the other: the widest one is there twice."""
    return int(column_bytes.sum() + column_bytes.max(initial=0))


def _column_bytes(rows: pa.Table) -> Codes:
    return np.array([column.nbytes for column in rows.itercolumns()], np.int64)


@dataclass(frozen=True)
class _Write:
    """Writes one portion, whose rows are all in memory. None if they are more than `most_held` bytes; then nothing was written."""

    place: Place
    shape: Shape
    most_held: int

    def __call__(self, task: tuple[Portion, Sequence[RowSource]]) -> list[DataFile] | None:
        portion, sources = task
        partitions = sorted(portion.partitions, key=repr)
        held = self._rows({values: number for number, values in enumerate(partitions)}, sources)
        if held is None:
            return None
        tables, numbers = held
        check_rows(portion, len(numbers))
        rows = in_one_piece(tables)
        order, starts = runs_of(numbers, len(partitions))
        files: list[DataFile] = []
        try:
            for number, values in enumerate(partitions):
                mine = _in_order(rows, order[starts[number] : starts[number + 1]], self.shape.key)
                files += write_tables(self.place, self.shape, values, mine)
        except BaseException:
            give_up(self.place, files)
            raise
        return files

    def _rows(self, number_of: dict[PartitionValues, int], sources: Sequence[RowSource]) -> tuple[list[pa.Table], Codes] | None:
        """The rows of these partitions, and for each row the number of its own. A table for each batch: one for each of its partitions
        would be very many, and each costs more than a few rows do."""
        tables: list[pa.Table] = []
        numbers: list[Codes] = [np.empty(0, np.int64)]
        size = np.zeros(len(self.shape.schema), np.int64)
        for source in sources:
            for rows in source(self.place, self.shape):
                kept, partitions, codes = kept_with_codes(rows, self.shape)
                mine = np.array([number_of.get(values, -1) for values in partitions], np.int64)[codes]
                wanted = mine >= 0
                if not wanted.all():
                    kept, mine = kept.filter(pa.array(wanted)), mine[wanted]
                if kept.num_rows:
                    tables.append(kept)
                    numbers.append(mine)
                    size += _column_bytes(kept)
                if _held(size) > self.most_held:
                    return None
        return tables, np.concatenate(numbers)


def _in_order(rows: pa.Table, places: Codes, key: Sequence[str]) -> Iterator[pa.Table]:
    """The rows at these places, sorted by key, a batch at a time."""
    ordered = places[key_order(take(rows.select(list(key)), pa.array(places)), key).to_numpy()]
    count = rows_at_a_time(rows.nbytes / max(1, rows.num_rows))
    for start in range(0, len(ordered), count):
        yield take(rows, pa.array(ordered[start : start + count]))
