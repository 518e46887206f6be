"""Writing a whole table whose sources are in the order of its keys already: no row goes through a shuffle.

DMS reads a source table mostly by its primary key, so that load files are sorted by it and follow on each other. A first look at the keys
alone tells whether that is so. Then each task writes some partitions, or a stretch of the keys of a large one, from the sources that
hold them; a source that holds several is read by several tasks, which costs less than a shuffle as long as they are few.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import pyarrow as pa
import pyarrow.compute as pc

from glue_jobs.core.bins import groups
from glue_jobs.core.keys import Bound
from glue_jobs.core.partitioning import PartitionValues
from glue_jobs.core.record import DataFile
from glue_jobs.spark.engine import Engine, chain
from glue_jobs.spark.key_columns import bounds, normalised_keys
from glue_jobs.spark.net_changes import DELETE, OP
from glue_jobs.spark.partition_columns import partition_values, split_by_partition
from glue_jobs.spark.place import Place, Shape
from glue_jobs.spark.write_files import FileWriter, abort_all

TASKS_PER_SLOT = 3
# What the partitions that a task writes side by side hold at most, all together and each: a row group and a part of its upload.
OPEN_BYTES, WRITER_BYTES = 256 * 1024 * 1024, 64 * 1024 * 1024
HELD_RATIO = 4  # of rows in memory to bytes in a file
MOST_READS = 3.0  # so often may a row be read; above it a shuffle is cheaper
# So much longer than an equal share may the longest task be: a shuffle spreads the work evenly. What is short anyway is no matter.
MOST_UNEVEN, SHORT_BYTES = 2.0, 64 * 1024 * 1024
SPLIT_RATIO = 1.5  # a stretch that came out larger than the target is split only above this: a rest would be a small file


class RowSource(Protocol):
    """A picklable piece of work that yields rows: the lake's columns, `__op`, `__position`."""

    def __call__(self, place: Place, shape: Shape) -> Iterator[pa.Table]: ...


@dataclass(frozen=True)
class Stretch:
    """A source whose keys ascend, each once. low, high: the least and the greatest; read: its rows; rows: those that stay, by partition."""

    low: Bound
    high: Bound
    read: int
    rows: dict[PartitionValues, int]


@dataclass(frozen=True)
class Portion:
    """What one task writes: the rows of these partitions that stand in these sources, whose keys ascend from one to the next."""

    partitions: frozenset[PartitionValues]
    sources: tuple[int, ...]
    rows: int


def write_in_order(engine: Engine, place: Place, shape: Shape, sources: Sequence[RowSource], size_bytes: float) -> list[DataFile] | None:
    """All rows of the sources as data files, sorted by key; None if the sources are in another order, or a key may come twice.

    size_bytes: what the files are expected to come to.
    """
    looks = engine.map(_Look(place, shape), sources)
    if any(look is None for look in looks):
        return None
    found = {at: look for at, look in enumerate(looks) if look and look.read}
    order = sorted(found, key=lambda at: found[at].low)
    if any(found[second].low <= found[first].high for first, second in itertools.pairwise(order)):
        return None
    stretches = {at: found[at] for at in order}
    portions = planned(stretches, size_bytes, place.limits.target_file_bytes, engine.slots)
    if portions is None:
        return None
    tasks = [(portion, tuple(sources[at] for at in portion.sources)) for portion in portions]
    return chain(engine.map(_Write(place, shape), tasks))


def planned(stretches: Mapping[int, Stretch], size_bytes: float, target_bytes: float, slots: int) -> list[Portion] | None:
    """The work in as many pieces as can be without reading too much; None where that is none, or where a few of them would have all."""
    read = sum(stretch.read for stretch in stretches.values())
    row_bytes = max(1.0, size_bytes / max(1, read))
    longest = MOST_UNEVEN * max(read / slots, SHORT_BYTES / row_bytes)
    tasks = slots * TASKS_PER_SLOT
    while tasks:
        portions = portions_of(stretches, row_bytes, target_bytes, tasks)
        reads = [sum(stretches[at].read for at in portion.sources) for portion in portions]
        if sum(reads) <= MOST_READS * read:
            return portions if max(reads, default=0) <= longest else None
        tasks //= 2
    return None


def portions_of(stretches: Mapping[int, Stretch], row_bytes: float, target_bytes: float, tasks: int) -> list[Portion]:
    """The work in about `tasks` pieces or more, none of which leaves a file half as large as it could be. stretches: in the order of keys,
    by the source's number; row_bytes: of a row in a file."""
    held: dict[PartitionValues, list[tuple[int, int]]] = {}
    for at, stretch in stretches.items():
        for values, rows in stretch.rows.items():
            held.setdefault(values, []).append((at, rows))
    whole: list[Portion] = []
    small: list[Portion] = []
    for values, parts in held.items():
        total = sum(rows for _, rows in parts)
        pieces = min(len(parts), math.ceil(total * row_bytes / target_bytes))
        cut = _cut(parts, total, pieces)
        portions = [Portion(frozenset((values,)), tuple(at for at, _ in piece), sum(rows for _, rows in piece)) for piece in cut]
        (whole if pieces > 1 else small).extend(portions)
    # A task's share of the rows, and of what it may hold: whichever is used up first.
    share = sum(portion.rows for portion in (*whole, *small)) / tasks

    def weight(portion: Portion) -> float:
        return max(portion.rows / max(1.0, share), min(WRITER_BYTES, portion.rows * row_bytes * HELD_RATIO) / OPEN_BYTES)

    place_of = {at: place for place, at in enumerate(stretches)}
    return whole + [_joined(some, place_of) for some in groups(small, weight, 1.0, len(small))]


def _cut(parts: Sequence[tuple[int, int]], total: int, pieces: int) -> list[list[tuple[int, int]]]:
    """(source, rows) in consecutive pieces of about as many rows each."""
    cut: list[list[tuple[int, int]]] = [[] for _ in range(pieces)]
    before = 0.0
    for at, rows in parts:
        cut[min(pieces - 1, int((before + rows / 2) * pieces / total))].append((at, rows))
        before += rows
    return [piece for piece in cut if piece]


def _joined(portions: Sequence[Portion], place_of: Mapping[int, int]) -> Portion:
    partitions = frozenset(values for portion in portions for values in portion.partitions)
    order = sorted({at for portion in portions for at in portion.sources}, key=place_of.__getitem__)
    return Portion(partitions, tuple(order), sum(portion.rows for portion in portions))


@dataclass(frozen=True)
class _Look:
    """Reads the key and the columns of the partitions of one source. None as soon as a key does not follow on the one before."""

    place: Place
    shape: Shape

    def __call__(self, source: RowSource) -> Stretch | None:
        shape = self.shape
        wanted = {*shape.key, *(field.column for field in shape.partitioning)}
        columns = tuple(column for column in shape.schema if column.name in wanted)
        narrow = Shape(shape.table, columns, shape.key, shape.partitioning, shape.empty_as_null)
        low = high = ()  # type: Bound
        counted: Counter[PartitionValues] = Counter()
        read = 0
        for rows in source(self.place, narrow):
            found = bounds(rows, shape.key)
            if found is None:
                continue
            if (read and found[0] <= high) or not ascends(rows, shape.key):
                return None
            low, high = (low if read else found[0]), found[1]
            read += rows.num_rows
            for values, part in _by_partition(_kept(rows), narrow):
                counted[values] += part.num_rows
        return Stretch(low, high, read, dict(counted))


def ascends(rows: pa.Table, key: Sequence[str]) -> bool:
    """Whether each row's key is greater than the one before. A NaN is not."""
    count = rows.num_rows - 1
    less = pa.array([False] * count, pa.bool_())
    same = pa.array([True] * count, pa.bool_())
    for column in normalised_keys(rows, key).columns:
        values = column.combine_chunks()
        here, following = values.slice(0, count), values.slice(1)
        less = pc.or_(less, pc.and_(same, pc.less(here, following)))
        same = pc.and_(same, pc.equal(here, following))
    return bool(pc.all(less, skip_nulls=False, min_count=0).as_py())


def _kept(rows: pa.Table) -> pa.Table:
    is_kept = pc.not_equal(rows[OP], pa.scalar(DELETE, pa.int8()))
    return rows if pc.all(is_kept, min_count=0).as_py() else rows.filter(is_kept)


def _by_partition(rows: pa.Table, shape: Shape) -> Iterator[tuple[PartitionValues, pa.Table]]:
    if not shape.partitioning:
        if rows.num_rows:
            yield (), rows
        return
    values = partition_values(rows, shape.partitioning, shape.schema, shape.empty_as_null, shape.table, shape.key)
    yield from split_by_partition(rows, values)


@dataclass(frozen=True)
class _Write:
    """Writes one portion."""

    place: Place
    shape: Shape

    def __call__(self, task: tuple[Portion, Sequence[RowSource]]) -> list[DataFile]:
        portion, sources = task
        limits = replace(self.place.limits, target_file_bytes=int(SPLIT_RATIO * self.place.limits.target_file_bytes))
        place = replace(self.place, limits=limits)
        writers = {values: FileWriter(place, self.shape, values) for values in portion.partitions}
        names = [column.name for column in self.shape.schema]
        try:
            for source in sources:
                for rows in source(self.place, self.shape):
                    for values, part in _by_partition(_kept(rows).select(names), self.shape):
                        if values in writers:
                            writers[values].write(part)
            files = chain(writer.finish() for writer in writers.values())
            written = sum(file.rows for file in files)
            if written != portion.rows:
                raise AssertionError(f"{written} rows written, {portion.rows} counted before, in {sorted(portion.partitions, key=repr)}")
        except BaseException:
            abort_all(writers.values())
            raise
        return files
