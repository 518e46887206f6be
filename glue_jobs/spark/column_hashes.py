"""64-bit hashes of keys, many at once: those that key filters keep, and by which a few rows' keys are found among many.

What filters keep must be found by a later program: another hash here needs another number in core.key_filter.HASHES.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.types as pt

Hashes = np.ndarray[Any, np.dtype[np.uint64]]

HASHED_BYTES = 1024  # of a text; those that differ only behind them have one hash
_STEP = np.uint64(0x9E3779B97F4A7C15)
_MIXING = ((np.uint64(30), np.uint64(0xBF58476D1CE4E5B9)), (np.uint64(27), np.uint64(0x94D049BB133111EB)))
_LAST_SHIFT = np.uint64(31)


def column_hashes(keys: pa.Table) -> Hashes:
    """A hash of each row of `normalised_keys`; equal keys of equal types have equal hashes. That of a key with a null is any."""
    total: Hashes = np.zeros(keys.num_rows, np.uint64)
    for column in keys.columns:
        pieces = [piece for chunk in column.chunks for piece in _pieces(chunk)]
        total = _mixed(total * _STEP + np.concatenate([np.empty(0, np.uint64), *pieces]))
    return total


def _mixed(values: Hashes) -> Hashes:
    """Every bit of the input moves every bit of the output (splitmix64); no two values become one. In place but for two arrays: new ones
    take longer than the arithmetic."""
    mixed: Hashes = values + _STEP
    shifted = np.empty_like(mixed)
    for shift, factor in _MIXING:
        mixed ^= np.right_shift(mixed, shift, out=shifted)
        mixed *= factor
    mixed ^= np.right_shift(mixed, _LAST_SHIFT, out=shifted)
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
    lengths = np.diff(bounds)
    least, most, size = int(lengths.min()), int(lengths.max()), int(bounds[-1] - bounds[0])
    raw = np.empty(size + 8, np.uint8)
    raw[size:] = 0
    if size:
        raw[:size] = np.frombuffer(data, np.uint8, size, int(bounds[0]))
    total = _mixed(lengths.astype(np.uint64))
    if least == most:
        return _of_one_length(total, raw, least)
    starts = bounds[:-1] - bounds[0]
    words: Hashes = np.ndarray((size + 1,), "<u8", raw, strides=(1,))  # the eight bytes from each byte on
    for done in range(0, min(most, HASHED_BYTES), 8):
        rows: Any = slice(None) if least > done else np.flatnonzero(lengths > done)
        left = lengths[rows] - done
        beyond = (np.uint64(64) - np.uint64(8) * np.minimum(left, 8).astype(np.uint64)).astype(np.uint64)
        word = words[starts[rows] + done] << beyond
        total[rows] = _mixed(total[rows] * _STEP + word)
    return total


def _of_one_length(total: Hashes, raw: np.ndarray[Any, np.dtype[np.uint8]], length: int) -> Hashes:
    """The same where all texts have one length, as those of UUIDs: they lie in step, and all end at once."""
    for done in range(0, min(length, HASHED_BYTES), 8):
        word: Hashes = np.ndarray(total.shape, "<u8", raw, done, (length,))
        total *= _STEP
        total += word << np.uint64(64 - 8 * min(length - done, 8))
        total = _mixed(total)
    return total
