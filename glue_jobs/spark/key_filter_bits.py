"""The bits of a key filter: hashes of a file's keys, packed so that a few keys are looked up without reading the rest.

A hash's first bits choose a bucket, of which there are half as many to as many as keys; the 24 bits after them are kept. So a key that
is not there seems to be with a chance below 2⁻²³. Layout: one byte, the number of bucket bits; a byte for each bucket, how many keys it
has; three bytes for each key, bucket by bucket; a zero. About four bytes a key.

What is stored must be found by a later program: another hash here needs another number in core.key_filter.HASHES.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.types as pt

from glue_jobs.spark.arrow_types import arrow_schema
from glue_jobs.spark.key_columns import normalised_keys
from glue_jobs.spark.place import Shape

Hashes = np.ndarray[Any, np.dtype[np.uint64]]

KEPT_BITS = 24
HASHED_BYTES = 1024  # of a text; keys that differ only behind them seem to be one, which costs the opening of a file
_STEP = np.uint64(0x9E3779B97F4A7C15)
_KEPT = np.uint64(2**KEPT_BITS - 1)
_BUCKET_KEYS = 255


def hashes_of(rows: pa.Table, shape: Shape) -> Hashes:
    """A 64-bit hash of each row's key; equal keys have equal hashes. That of a key with a null is any."""
    keys = normalised_keys(rows, shape.key)
    schema = arrow_schema(tuple(column for name in shape.key for column in shape.schema if column.name == name))
    total: Hashes = np.zeros(keys.num_rows, np.uint64)
    for column, field in zip(keys.columns, schema, strict=True):
        pieces = [piece for chunk in column.cast(field.type).chunks for piece in _pieces(chunk)]
        total = _mixed(total * _STEP + np.concatenate([np.empty(0, np.uint64), *pieces]))
    return total


def _mixed(values: Hashes) -> Hashes:
    """Every bit of the input moves every bit of the output (splitmix64); no two values become one."""
    mixed: Hashes = values + _STEP
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    mixed ^= mixed >> np.uint64(31)
    return mixed


def _pieces(values: pa.Array) -> Iterator[Hashes]:
    """The values as numbers of 64 bits, texts mixed to one. Whether one is null is not looked at."""
    kind = values.type
    if pt.is_boolean(kind):
        yield from _pieces(values.cast(pa.int8()))
    elif pt.is_string(kind) or pt.is_binary(kind):
        yield _byte_hashes(values)
    elif pt.is_decimal(kind):
        halves = _numbers(values, np.dtype("<u8"), 2).reshape(-1, 2)
        yield _mixed(halves[:, 1].copy()) + halves[:, 0]
    elif pt.is_floating(kind):
        yield _numbers(values.cast(pa.float64()), np.dtype("<u8"))
    else:
        width = kind.bit_width // 8
        yield _numbers(values, np.dtype(f"<i{width}")).astype(np.int64).view(np.uint64)


def _numbers(values: pa.Array, dtype: np.dtype[Any], width: int = 1) -> np.ndarray[Any, Any]:
    """What the array's buffer holds, `width` numbers for each value."""
    data = values.buffers()[1]
    if data is None:
        return np.zeros(len(values) * width, dtype)
    return np.frombuffer(data, dtype, len(values) * width, values.offset * width * dtype.itemsize)


def _byte_hashes(values: pa.Array) -> Hashes:
    """Eight bytes at a time, all rows at once."""
    _, offsets, data = values.buffers()
    if offsets is None or not len(values):
        return np.zeros(len(values), np.uint64)
    bounds = np.frombuffer(offsets, "<i4", len(values) + 1, values.offset * 4).astype(np.int64)
    starts, lengths = bounds[:-1] - bounds[0], np.diff(bounds)
    size = int(bounds[-1] - bounds[0])
    raw = np.zeros(size + 8, np.uint8)
    if size:
        raw[:size] = np.frombuffer(data, np.uint8, size, int(bounds[0]))
    words: Hashes = np.ndarray((size + 1,), "<u8", raw, strides=(1,))  # the eight bytes from each byte on
    total = _mixed(lengths.astype(np.uint64))
    for done in range(0, min(int(lengths.max()), HASHED_BYTES), 8):
        rows: Any = slice(None) if lengths.min() > done else np.flatnonzero(lengths > done)
        left = lengths[rows] - done
        beyond = (np.uint64(64) - np.uint64(8) * np.minimum(left, 8).astype(np.uint64)).astype(np.uint64)
        word = words[starts[rows] + done] << beyond
        total[rows] = _mixed(total[rows] * _STEP + word)
    return total


def packed(hashes: Hashes) -> bytes | None:
    """The filter of keys with these hashes; None where too many of them are one, as those of very long texts may be."""
    bits = max(1, len(hashes).bit_length() - 1)
    ordered = np.sort(hashes)
    counts = np.bincount((ordered >> np.uint64(64 - bits)).astype(np.int64), minlength=1 << bits)
    if counts.max() > _BUCKET_KEYS:
        return None
    kept = (ordered >> np.uint64(64 - bits - KEPT_BITS)) & _KEPT
    three = kept.astype("<u4").view(np.uint8).reshape(-1, 4)[:, :3]
    return bytes([bits]) + counts.astype(np.uint8).tobytes() + three.tobytes() + b"\0"


def may_hold(data: bytes, hashes: Hashes) -> bool:
    """Whether one of the keys with these hashes may be in the file with this filter."""
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
