"""Which data files are rewritten as one: small ones that follow on each other in the order of keys.

A batch that rewrites them anyway joins them at no cost, and fewer requests; where a partition that it writes to has many others, it joins
some of those as well, so that nothing else has to compact the table. What lies between two files of a group would widen the range of the
one that takes their place, so nothing may: a group stays as narrow as its files.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet
from typing import Any

from glue_jobs.core.keys import Bound, decode_bound
from glue_jobs.core.partitioning import PartitionValues
from glue_jobs.core.record import DataFile

Group = tuple[DataFile, ...]
MOST_FILES = 256  # of a group: a task opens them one after the other
MANY_FILES = 8  # of a partition, that no batch had a reason to join: fewer harm no reader


def neighbours(
    files: Sequence[DataFile], table: Iterable[DataFile], key_types: Sequence[str], small_bytes: int, most_bytes: float
) -> list[Group]:
    """`files`, which are some of the table's, in groups: each either one file, or some below `small_bytes` that are neighbours, together
    about `most_bytes` at most. Inside a group keys ascend from file to file."""
    small = {file.path for file in files if file.size_bytes < small_bytes}
    if not key_types or len(small) < 2:
        return [(file,) for file in files]
    groups: list[Group] = []
    grouped: set[str] = set()
    for run in _runs(small, table, key_types):
        groups += _cut(run, most_bytes)
        grouped.update(file.path for file in run)
    return groups + [(file,) for file in files if file.path not in grouped]


def to_tidy(
    table: Sequence[DataFile],
    partitions: AbstractSet[PartitionValues],
    taken: AbstractSet[str],
    key_types: Sequence[str],
    small_bytes: int,
    most_bytes: float,
) -> Group:
    """Files below `small_bytes` that are worth a rewrite of their own, together about `most_bytes` at most; () where none are. They are of
    one of `partitions` that has many of them, not counting the paths `taken`, and follow on each other.

    Those of the lowest keys: a later change rewrites a joined file as a whole, and is likeliest among the highest.
    """
    if not key_types or most_bytes <= 0:
        return ()
    idle = [file for file in table if file.partition in partitions and file.size_bytes < small_bytes and file.path not in taken]
    count = Counter(file.partition for file in idle)
    paths = {file.path for file in idle if count[file.partition] >= MANY_FILES}
    runs = sorted(_runs(paths, table, key_types), key=len, reverse=True) if paths else []
    return next((group for run in runs for group in _cut(run, most_bytes) if len(group) > 1), ())


def _runs(paths: set[str], table: Iterable[DataFile], key_types: Sequence[str]) -> Iterable[list[DataFile]]:
    """The longest lists of at least two files that follow on each other, all in `paths`."""
    for ranged in _by_partition(paths, table, key_types):
        run: list[DataFile] = []
        furthest: Bound | None = None
        for low, _, high, file in sorted(ranged, key=lambda each: each[:2]):
            follows = furthest is not None and low[: len(furthest)] > furthest
            if run and not (follows and file.path in paths):
                if len(run) > 1:
                    yield run
                run = []
            reaches = furthest is None or _reaches_further(high, furthest)
            furthest = high if reaches else furthest
            # A file that ends before an earlier one does has that one's keys behind it, not the next file's.
            if file.path in paths and reaches:
                run.append(file)
        if len(run) > 1:
            yield run


def _reaches_further(bound: Bound, other: Bound) -> bool:
    """Whether an upper bound is above another one. One that was cut stands for all keys that begin like it."""
    width = min(len(bound), len(other))
    if bound[:width] != other[:width]:
        return bound[:width] > other[:width]
    return len(bound) < len(other)


def _by_partition(paths: set[str], table: Iterable[DataFile], key_types: Sequence[str]) -> list[list[tuple[Bound, str, Bound, DataFile]]]:
    """Low bound, path, high bound of each file, partition by partition, of those where some of `paths` are. A file without a bound lies
    across all others: nothing is joined beside it."""
    by: dict[PartitionValues, list[Any]] = {}
    held = list(table)
    wanted = {file.partition for file in held if file.path in paths}
    unbounded = set()
    for file in held:
        if file.partition in wanted:
            low, high = decode_bound(key_types, file.low), decode_bound(key_types, file.high)
            if low and high:
                by.setdefault(file.partition, []).append((low, file.path, high, file))
            else:
                unbounded.add(file.partition)
    return [ranged for partition, ranged in by.items() if partition not in unbounded]


def _cut(run: Sequence[DataFile], most_bytes: float) -> list[Group]:
    """The run in pieces of about equal size, each about `most_bytes` at most."""
    total = sum(file.size_bytes for file in run)
    pieces = max(1, math.ceil(total / most_bytes) if most_bytes > 0 else len(run), math.ceil(len(run) / MOST_FILES))
    cut: list[list[DataFile]] = [[] for _ in range(pieces)]
    before = 0.0
    for file in run:
        middle = before + file.size_bytes / 2
        cut[min(pieces - 1, int(middle * pieces / max(1, total)))].append(file)
        before += file.size_bytes
    return [tuple(piece) for piece in cut if piece]
