"""64-bit hashes of keys: twelve bytes a row are enough to find those that may come twice."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

Hashes = np.ndarray[Any, np.dtype[np.uint64]]

_PRIME = np.uint64(0x9E3779B97F4A7C15)
_WEIGHTS = np.random.default_rng(20240501).integers(1, 2**63, 4096, np.uint64) | np.uint64(1)


def key_hashes(keys: pa.Table) -> Hashes:
    """A 64-bit hash for each row. `keys`: of `normalised_keys`, without nulls; equal keys have equal hashes."""
    total = np.zeros(keys.num_rows, np.uint64)
    for column in keys.itercolumns():
        pieces = [_column_hashes(chunk) for chunk in column.chunks]
        total = _mixed(total * _PRIME + np.concatenate([np.empty(0, np.uint64), *pieces]))
    return total


def _mixed(values: Hashes) -> Hashes:
    """Every bit of the input moves every bit of the output (the end of splitmix64)."""
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return values ^ (values >> np.uint64(31))


def _column_hashes(values: pa.Array) -> Hashes:
    kind = values.type
    if pt.is_floating(kind):
        return values.cast(pa.float64()).to_numpy(zero_copy_only=False).view(np.uint64)
    if pt.is_date32(kind):
        values = values.cast(pa.int32())
    if pt.is_decimal(kind):
        values = values.cast(pa.string())
    if pt.is_string(values.type) or pt.is_binary(values.type):
        return _byte_hashes(values)
    return values.cast(pa.int64()).to_numpy(zero_copy_only=False).view(np.uint64)


def _byte_hashes(values: pa.Array) -> Hashes:
    """Sums of the bytes, each weighted by its place."""
    lengths = pc.binary_length(values).cast(pa.int64()).to_numpy(zero_copy_only=False)
    _, offsets, data = values.buffers()
    first = int(np.frombuffer(offsets, np.int32)[values.offset]) if len(values) else 0
    stops = np.cumsum(lengths)
    size = int(stops[-1]) if len(stops) else 0
    raw = np.frombuffer(data, np.uint8)[first : first + size] if size else np.empty(0, np.uint8)
    places = np.arange(size, dtype=np.int64) - np.repeat(stops - lengths, lengths)
    sums = np.concatenate([np.zeros(1, np.uint64), np.cumsum((raw.astype(np.uint64) + np.uint64(1)) * _WEIGHTS[places % len(_WEIGHTS)])])
    return sums[stops] - sums[stops - lengths] + lengths.astype(np.uint64) * _PRIME
