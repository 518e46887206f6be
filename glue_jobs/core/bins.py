"""Packing: which files one task takes, which tables share a run."""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from typing import Callable, TypeVar

_T = TypeVar("_T")

# Of much work a slot gets several bins, each of at least so many bytes, so that one that is quicker takes more of them. A smaller bin takes
# seconds, and what it costs at its begin and its end, while nothing is to be decoded yet or to be encoded any more, is more than uneven
# bins do.
BINS_PER_SLOT = 3
LEAST_BIN_BYTES = 256 * 1024 * 1024


def bins_of_slots(items: Sequence[_T], size_bytes: Callable[[_T], float], slots: int) -> list[tuple[_T, ...]]:
    """`items` as the bins that so many slots work on; a bin is a task's share. size_bytes: of an item's files. For tasks that
    work on one file after the other; one that holds what it has read of its bin wants smaller ones: `pack`."""
    per_slot = sum(map(size_bytes, items)) / max(1, slots) / LEAST_BIN_BYTES
    return [tuple(chosen) for chosen in pack(items, size_bytes, slots * max(1, min(BINS_PER_SLOT, int(per_slot))))]


def pack(items: Sequence[_T], weight: Callable[[_T], float], bins: int) -> list[list[_T]]:
    """`items` spread over at most `bins` lists of about equal weight, the heaviest first; no list is empty.

    A bin's items keep their given order, so that a task reads neighbours one after the other.
    """
    count = min(bins, len(items))
    heap: list[tuple[float, int, int]] = [(0.0, 0, index) for index in range(count)]
    chosen: list[list[int]] = [[] for _ in range(count)]
    for index in sorted(range(len(items)), key=lambda at: -weight(items[at])):
        load, held, bin_index = heapq.heappop(heap)
        chosen[bin_index].append(index)
        heapq.heappush(heap, (load + weight(items[index]), held + 1, bin_index))
    return [[items[index] for index in sorted(indices)] for indices in chosen]


def groups(items: Sequence[_T], weight: Callable[[_T], float], most_weight: float, most_items: int) -> list[list[_T]]:
    """`items` in their order, cut into consecutive lists within both bounds; an item heavier than the bound stands alone."""
    out: list[list[_T]] = []
    load = 0.0
    for item in items:
        if not out or load + weight(item) > most_weight or len(out[-1]) >= most_items:
            out.append([])
            load = 0.0
        out[-1].append(item)
        load += weight(item)
    return out
