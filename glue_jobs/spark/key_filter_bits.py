"""The bits of a key filter: hashes of keys, packed section by section, so that a few keys are looked up without reading the rest.

A hash's first bits choose a bucket, of which there are half as many to as many as keys; the 24 bits after them are kept. So a key that
is not there seems to be with a chance below 2⁻²³. Layout of a section: one byte, the number of bucket bits; a byte for each bucket, how
many keys it has; three bytes for each key, bucket by bucket; a zero. About four bytes a key.

What is stored must be found by a later program: another hash here needs another number in core.key_filter.HASHES.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import Any

import numpy as np
import pyarrow as pa

from glue_jobs.core.key_filter import Section, section_rows
from glue_jobs.spark.arrow_types import arrow_schema
from glue_jobs.spark.column_hashes import Hashes, column_hashes
from glue_jobs.spark.key_columns import normalised_keys
from glue_jobs.spark.place import Shape

KEPT_BITS = 24
_KEPT = np.uint64(2**KEPT_BITS - 1)
_BUCKET_KEYS = 255
_AT_ONCE = 1 << 16


def hashes_of(rows: pa.Table, shape: Shape) -> Hashes:
    """A 64-bit hash of each row's key, in the lake's types. Long texts that seem to be one cost the opening of a file."""
    keys = normalised_keys(rows, shape.key)
    schema = arrow_schema(tuple(column for name in shape.key for column in shape.schema if column.name == name))
    return column_hashes(keys.cast(schema))


def packed(parts: list[Hashes]) -> bytes | None:
    """A section of a filter, of keys with these hashes; None where too many of them are one, as those of very long texts may be. The list
    is empty afterwards: for each key there are never more than 13 bytes in memory."""
    ordered, taken = np.empty(sum(map(len, parts)), np.uint64), 0
    while parts:  # one after the other is given back
        part = parts.pop()
        ordered[taken : taken + len(part)] = part
        taken += len(part)
    ordered.sort()
    bits = max(1, len(ordered).bit_length() - 1)
    head = 1 + (1 << bits)
    filled = np.zeros(head + 3 * len(ordered) + 1, np.uint8)
    filled[0], counts, three = bits, filled[1:head], filled[head:-1].reshape(-1, 3)
    for start in range(0, len(counts), _AT_ONCE):
        buckets = counts[start : start + _AT_ONCE]
        found = _bucket_sizes(ordered, start, start + len(buckets), bits)
        if found.max() > _BUCKET_KEYS:
            return None
        buckets[:] = found
    for start in range(0, len(ordered), _AT_ONCE):
        kept = (ordered[start : start + _AT_ONCE] >> np.uint64(64 - bits - KEPT_BITS)) & _KEPT
        three[start : start + _AT_ONCE] = kept.astype("<u4").view(np.uint8).reshape(-1, 4)[:, :3]
    del ordered
    return filled.tobytes()


def _bucket_sizes(ordered: Hashes, start: int, stop: int, bits: int) -> np.ndarray[Any, Any]:
    """How many of the ordered hashes are in each bucket from `start` to before `stop`."""
    firsts = np.searchsorted(ordered, np.arange(start, stop, dtype=np.uint64) << np.uint64(64 - bits))
    end = len(ordered) if stop == 1 << bits else np.searchsorted(ordered, np.uint64(stop) << np.uint64(64 - bits))
    return np.diff(firsts, append=end)


class HashQueue:
    """Hashes of rows, to be taken out in the order in which they came, as many as there are rows to be told apart from others."""

    def __init__(self, parts: Iterable[Hashes] = ()) -> None:
        self._parts = deque(parts)

    def __len__(self) -> int:
        return sum(map(len, self._parts))

    def put(self, part: Hashes) -> None:
        self._parts.append(part)

    def take(self, rows: int) -> list[Hashes]:
        """Those of the next so many rows; fewer if there are no more."""
        taken: list[Hashes] = []
        while rows and self._parts:
            part = self._parts.popleft()
            taken.append(part[:rows])
            if len(part) > rows:
                self._parts.appendleft(part[rows:])
            rows -= len(taken[-1])
        return taken

    def clear(self) -> None:
        self._parts.clear()


def sections_of(hashes: list[Hashes], group_rows: Iterable[int]) -> tuple[Section, ...] | None:
    """A filter's sections, by the rows of the file's row groups. None if these are not the hashes of all of them, because without one of
    its keys it would lose a change; and where `packed` makes none. The list is empty afterwards: what is packed is given back."""
    queue, wanted = HashQueue(hashes), section_rows(group_rows)
    hashes.clear()
    if not wanted or len(queue) != sum(wanted):
        return None
    found = [(rows, packed(queue.take(rows))) for rows in wanted]
    sections = tuple(Section(rows, data) for rows, data in found if data is not None)
    return sections if len(sections) == len(found) else None


def may_hold(data: bytes, hashes: Hashes) -> bool:
    """Whether one of the keys with these hashes may be among those of which this was packed."""
    bits = data[0]
    counts = np.frombuffer(data, np.uint8, 1 << bits, 1)
    starts = np.cumsum(counts, dtype=np.int64) - counts
    keys = (len(data) - 2 - (1 << bits)) // 3
    kept: Any = np.ndarray((keys,), "<u4", data, 1 + (1 << bits), (3,))  # three bytes and the first of the next
    buckets = (hashes >> np.uint64(64 - bits)).astype(np.int64)
    wanted = ((hashes >> np.uint64(64 - bits - KEPT_BITS)) & _KEPT).astype(np.uint32)
    left, at = counts[buckets], starts[buckets]
    while len(left):
        there = left > 0
        left, at, wanted = left[there] - 1, at[there], wanted[there]
        if ((kept[at] & np.uint32(_KEPT)) == wanted).any():
            return True
        at = at + 1
    return False
