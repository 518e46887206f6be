"""Which data files are rewritten as one: small ones that follow on each other in the order of keys, or that lie across each other.

A batch that rewrites them anyway joins them at no cost, and fewer requests; where a partition that it writes to has many others, it joins
some of those as well, so that nothing else has to compact the table. Where another file begins or ends between two files that follow on
each other, the one that takes their place would share keys with it that they don't, so none may. Where keys are random, each file's range
meets nearly all others: one file in the place of many meets no more of them than each did.
"""

from __future__ import annotations

import heapq
import math
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Any

from glue_jobs.core.bins import groups
from glue_jobs.core.keys import Bound, decode_bound
from glue_jobs.core.limits import Limits
from glue_jobs.core.partitioning import PartitionValues
from glue_jobs.core.record import DataFile

Group = tuple[DataFile, ...]
Ranged = tuple[Bound, str, Bound, DataFile]  # low bound, path, high bound
MOST_FILES = 256  # of a group: a task opens them one after the other
# The range of a file in the place of others may meet so many times the files that each of theirs meets.
MORE_MET = 1.25
MANY_FILES = 8  # of a partition, that no batch had a reason to join: fewer harm no reader
# Of `small_file_bytes`: a file of so much is not small again, though the last of its rows come to a little less than was guessed.
ENOUGH = 1.1


def is_ascending(group: Group, key_types: Sequence[str]) -> bool:
    """Whether its files follow on each other; those of any other group lie across each other."""
    bounds = [(decode_bound(key_types, file.low), decode_bound(key_types, file.high)) for file in group]
    return all(high and low and low[: len(high)] > high for (_, high), (low, _) in zip(bounds, bounds[1:]))


def joined_below(limits: Limits) -> int:
    """The size in bytes below which files are joined: they lie in memory."""
    return min(limits.small_file_bytes, limits.stream_file_bytes + 1)


@dataclass(frozen=True)
class Tidied:
    """Small files that are worth a rewrite of their own. beyond_bytes: what is left of the same kind after them, for later batches."""

    group: Group
    beyond_bytes: int = 0

    def is_enough(self, limits: Limits, written_bytes: float, taken: int) -> bool:
        """Whether the file that `taken` of them have become, `written_bytes` by now, may end here: the batch is waited for, and a later one
        joins the others. Not if they would then be too few for files as large as this one."""
        if written_bytes < ENOUGH * limits.small_file_bytes:
            return False
        taken_bytes = sum(file.size_bytes for file in self.group[:taken])
        left = self.beyond_bytes + sum(file.size_bytes for file in self.group[taken:])
        return math.ceil(left / _most_tidied(limits)) * taken_bytes <= left


def neighbours(
    files: Sequence[DataFile], table: Iterable[DataFile], key_types: Sequence[str], small_bytes: int, most_bytes: float
) -> list[Group]:
    """`files`, which are some of the table's, in groups: each either one file, or some below `small_bytes` that are neighbours, together
    about `most_bytes` at most. Keys ascend from file to file of a group, or their ranges lie across each other."""
    small = {file.path for file in files if file.size_bytes < small_bytes}
    if not key_types or len(small) < 2:
        return [(file,) for file in files]
    found: list[Group] = []
    grouped: set[str] = set()
    for run in _runs(small, table, key_types):
        found += _cut(run, most_bytes)
        grouped.update(file.path for file in run)
    return found + [(file,) for file in files if file.path not in grouped]


def to_tidy(
    table: Sequence[DataFile],
    partitions: AbstractSet[PartitionValues],
    taken: AbstractSet[str],
    key_types: Sequence[str],
    limits: Limits,
    most_rows: float = math.inf,
) -> list[Tidied]:
    """Groups of small files that are worth a rewrite of their own, each about `target_file_bytes` at most, and all together about
    `tidy_bytes` and MOST_FILES, and no more than `most_rows`. They are of `partitions` that have many of them, not counting the paths
    `taken`.

    The longest run comes first, and its lowest keys: a later change rewrites a joined file as a whole, and is likeliest among the highest.
    """
    if not key_types or limits.tidy_bytes <= 0:
        return []
    small_bytes = joined_below(limits)
    idle = [file for file in table if file.partition in partitions and file.size_bytes < small_bytes and file.path not in taken]
    count = Counter(file.partition for file in idle)
    paths = {file.path for file in idle if count[file.partition] >= MANY_FILES}
    runs = sorted(_runs(paths, table, key_types), key=len, reverse=True) if paths else []
    chosen: list[Tidied] = []
    size = files = rows = 0
    for each in (each for run in runs for each in _filled(run, _most_tidied(limits)) if len(each.group) > 1):
        size, files = size + sum(file.size_bytes for file in each.group), files + len(each.group)
        rows += sum(file.rows for file in each.group)
        if rows > most_rows or (chosen and (size > limits.tidy_bytes or files > MOST_FILES)):
            break
        chosen.append(each)
    return chosen


def _most_tidied(limits: Limits) -> int:
    return min(limits.target_file_bytes, limits.tidy_bytes)


def _runs(paths: set[str], table: Iterable[DataFile], key_types: Sequence[str]) -> Iterator[list[DataFile]]:
    """Lists of at least two files that may become one, all in `paths`, each file in one list at most."""
    for ranged in _by_partition(paths, table, key_types):
        left = {path for _, path, _, _ in ranged if path in paths}
        for run in _ascending(paths, ranged):
            yield run
            left.difference_update(file.path for file in run)
        yield from _crossing(left, ranged)


def _crossing(paths: set[str], ranged: Sequence[Ranged]) -> Iterator[list[DataFile]]:
    """Lists of files of a partition that lie across each other: the range of a list's files meets hardly more files than that of each."""
    lows, highs = sorted(low for low, *_ in ranged), sorted(high for _, _, high, _ in ranged)

    def met(low: Bound, high: Bound) -> int:
        return bisect_right(lows, high) - bisect_left(highs, low)

    # Those that meet many come first, so that one that meets few does not end their list.
    mine = sorted((-met(low, high), low, path, high, file) for low, path, high, file in ranged if path in paths)
    run: list[DataFile] = []
    least: Bound = ()
    greatest: Bound = ()
    for negative, low, _, high, file in mine:
        if run and met(min(least, low), max(greatest, high)) <= MORE_MET * -negative:
            least, greatest = min(least, low), max(greatest, high)
        else:
            if len(run) > 1:
                yield run
            run, least, greatest = [], low, high
        run.append(file)
    if len(run) > 1:
        yield run


def _ascending(paths: set[str], ranged: Sequence[Ranged]) -> Iterator[list[DataFile]]:
    """The longest lists of files of a partition that follow on each other."""
    run: list[DataFile] = []
    furthest: Bound | None = None  # of the files in `paths`
    ends: list[Bound] = []  # of the others, a heap
    is_parted = False  # one of the others begins behind `furthest`
    for low, _, high, file in sorted(ranged, key=lambda each: each[:2]):
        is_behind = furthest is not None and low[: len(furthest)] > furthest
        if file.path not in paths:
            is_parted = is_parted or is_behind
            heapq.heappush(ends, high)
            continue
        ends_between = any(_reaches_further(end, furthest or end) for end in _below(ends, low))
        follows = is_behind and not (is_parted or ends_between)
        is_parted = False
        if run and not follows:
            if len(run) > 1:
                yield run
            run = []
        # A file that ends before an earlier one does has that one's keys behind it, not the next file's.
        if furthest is None or _reaches_further(high, furthest):
            furthest = high
            run.append(file)
    if len(run) > 1:
        yield run


def _below(ends: list[Bound], low: Bound) -> list[Bound]:
    """Takes the upper bounds that are below `low` from a heap of them."""
    below = []
    while ends and low[: len(ends[0])] > ends[0]:
        below.append(heapq.heappop(ends))
    return below


def _reaches_further(bound: Bound, other: Bound) -> bool:
    """Whether an upper bound is above another one. One that was cut stands for all keys that begin like it."""
    width = min(len(bound), len(other))
    if bound[:width] != other[:width]:
        return bound[:width] > other[:width]
    return len(bound) < len(other)


def _by_partition(paths: set[str], table: Iterable[DataFile], key_types: Sequence[str]) -> list[list[Ranged]]:
    """The files partition by partition, of those where some of `paths` are. A file without a bound lies across all others: nothing is
    joined beside it."""
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


def _filled(run: Sequence[DataFile], most_bytes: float) -> Iterator[Tidied]:
    """The run in pieces, each of about `most_bytes`, as long as there is so much."""
    left = sum(file.size_bytes for file in run)
    for piece in groups(run, lambda file: file.size_bytes, most_bytes, MOST_FILES):
        left -= sum(file.size_bytes for file in piece)
        yield Tidied(tuple(piece), left)


def _cut(run: Sequence[DataFile], most_bytes: float) -> list[Group]:
    """The run in pieces of about equal size, each about `most_bytes` at most."""
    total = sum(file.size_bytes for file in run)
    pieces = max(1, min(len(run), math.ceil(total / most_bytes))) if most_bytes > 0 else len(run)
    cut: list[list[DataFile]] = [[] for _ in range(pieces)]
    before = 0.0
    for file in run:
        middle = before + file.size_bytes / 2
        cut[min(pieces - 1, int(middle * pieces / max(1, total)))].append(file)
        before += file.size_bytes
    return [tuple(part) for piece in cut for part in _parts(piece)]


def _parts(piece: list[DataFile]) -> list[list[DataFile]]:
    """The piece in parts of MOST_FILES at most; none where it is empty."""
    parts = math.ceil(len(piece) / MOST_FILES)
    return [piece[len(piece) * at // parts : len(piece) * (at + 1) // parts] for at in range(parts)]
