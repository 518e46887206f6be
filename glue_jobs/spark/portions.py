"""How the writing of a whole table is shared between tasks, each of which reads the sources that hold its partitions.

A source that holds several tasks' partitions is read by each of them, which costs less than a shuffle as long as they are few.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from glue_jobs.core.bins import groups
from glue_jobs.core.partitioning import PartitionValues
from glue_jobs.spark.engine import DECODED_RATIO

TASKS_PER_SLOT = 3
# What a task holds at most of the partitions that it writes, all together; and of one that it is writing: a row group, part of its upload.
OPEN_BYTES, WRITER_BYTES = 256 * 1024 * 1024, 64 * 1024 * 1024
MOST_READS = 3.0  # so often may a row be read; above it a shuffle is cheaper
# So much longer than an equal share may the longest task be: a shuffle spreads the work evenly. What is short anyway is no matter.
MOST_UNEVEN, SHORT_BYTES = 2.0, 64 * 1024 * 1024


@dataclass(frozen=True)
class Content:
    """What a source holds. read: its rows; rows: those that stay, by partition."""

    read: int = 0
    rows: Mapping[PartitionValues, int] = field(default_factory=dict)

    def with_rows(self, read: int, rows: Counter[PartitionValues]) -> Content:
        """With so many more."""
        return Content(self.read + read, Counter(self.rows) + rows)


@dataclass(frozen=True)
class Portion:
    """What one task writes: the rows of these partitions that stand in these sources, of which it keeps the order."""

    partitions: frozenset[PartitionValues]
    sources: tuple[int, ...]
    rows: int


@dataclass(frozen=True)
class Streamed:
    """A partition's rows are written as they are read, in the order of the sources. row_bytes: of a row in a file; cut_bytes: a partition
    with more of them is written by several tasks, each of which takes sources that follow on each other."""

    row_bytes: float
    cut_bytes: float

    @property
    def most_held(self) -> float:
        """Bytes that a task may hold."""
        return OPEN_BYTES

    def held(self, rows: int) -> float:
        """Bytes in memory for a partition of so many rows."""
        return min(WRITER_BYTES, rows * self.row_bytes * DECODED_RATIO)

    def pieces(self, rows: int) -> int:
        """How many tasks write a partition of so many rows."""
        return math.ceil(rows * self.row_bytes / self.cut_bytes)


@dataclass(frozen=True)
class Sorted:
    """A task holds all rows of its partitions, and sorts them. row_bytes: of a row in a file; held_row_bytes: in memory."""

    row_bytes: float
    held_row_bytes: float

    @property
    def most_held(self) -> float:
        """As of `Streamed`; beside them it writes."""
        return OPEN_BYTES - WRITER_BYTES

    def held(self, rows: int) -> float:
        """As of `Streamed`."""
        return rows * self.held_row_bytes

    def pieces(self, rows: int) -> int:
        """As of `Streamed`."""
        return 1


Writing = Streamed | Sorted


def row_bytes_of(contents: Mapping[int, Content], size_bytes: float) -> float:
    """Bytes of a row in a file, of all rows so many."""
    return max(1.0, size_bytes / max(1, sum(content.read for content in contents.values())))


def planned(contents: Mapping[int, Content], writing: Writing, slots: int) -> list[Portion] | None:
    """The work in as many pieces as can be without reading too much; None where that is none, where a few of them would have all, or where
    a partition does not fit in a task's memory. contents: by the source's number, in the order in which they are to be read."""
    read = sum(content.read for content in contents.values())
    longest = MOST_UNEVEN * max(read / slots, SHORT_BYTES / writing.row_bytes)
    if any(writing.held(rows) > writing.most_held for rows in _partition_rows(contents).values()):
        return None
    tasks = slots * TASKS_PER_SLOT
    while tasks:
        portions = portions_of(contents, writing, tasks)
        reads = [sum(contents[at].read for at in portion.sources) for portion in portions]
        if sum(reads) <= MOST_READS * read:
            return portions if max(reads, default=0) <= longest else None
        tasks //= 2
    return None


def _partition_rows(contents: Mapping[int, Content]) -> Counter[PartitionValues]:
    total: Counter[PartitionValues] = Counter()
    for content in contents.values():
        total.update(content.rows)
    return total


def portions_of(contents: Mapping[int, Content], writing: Writing, tasks: int) -> list[Portion]:
    """The work in about `tasks` pieces or more, none of which leaves a file half as large as it could be."""
    held: dict[PartitionValues, list[tuple[int, int]]] = {}
    for at, content in contents.items():
        for values, rows in content.rows.items():
            held.setdefault(values, []).append((at, rows))
    whole: list[Portion] = []
    small: list[Portion] = []
    for values, parts in held.items():
        total = sum(rows for _, rows in parts)
        pieces = min(len(parts), writing.pieces(total))
        cut = _cut(parts, total, pieces)
        portions = [Portion(frozenset((values,)), tuple(at for at, _ in piece), sum(rows for _, rows in piece)) for piece in cut]
        (whole if pieces > 1 else small).extend(portions)
    # A task's share of the rows, and of what it may hold: whichever is used up first.
    share = sum(portion.rows for portion in (*whole, *small)) / tasks

    def weight(portion: Portion) -> float:
        return max(portion.rows / max(1.0, share), writing.held(portion.rows) / writing.most_held)

    place_of = {at: place for place, at in enumerate(contents)}
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


def check_rows(portion: Portion, rows: int) -> None:
    """Raise AssertionError where the sources gave other rows than when they were counted."""
    if rows != portion.rows:
        raise AssertionError(f"{rows} rows read, {portion.rows} counted before, in {sorted(portion.partitions, key=repr)}")
