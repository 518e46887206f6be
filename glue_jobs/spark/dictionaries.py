"""Which columns a data file writes with a dictionary: those whose bytes it at least halves.

Elsewhere it costs time and gains nothing: where values hardly repeat themselves the dictionary is as large as they are, and narrow ones the
codec makes as small without it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from glue_jobs.spark.encoded_texts import one_dictionary

# Of more rows only so many are looked at first, anywhere among them: values may come in runs or in turn.
LOOK_ROWS = 2048
SAMPLE_ROWS = 65_536  # that are counted at most
MOST_PART = 0.5  # of the bytes without a dictionary
_LENGTH_BYTES = 4  # before each text or binary value


def repeating_columns(table: pa.Table, among: Sequence[str] | None = None) -> list[str]:
    """The columns, or of those named, that a dictionary is for, in the table's order, by its first rows; booleans, which take a bit, never.

    What the look tells bounds the count of different values in all rows on both sides: per row they are never more than in a part of them,
    and they are fewest where all values are equally frequent. Only where the answer lies between the bounds they are counted.
    """
    wanted = [field for field in table.schema if among is None or field.name in among]
    names = [field.name for field in wanted if not pt.is_boolean(field.type)]
    sample = _in_one_piece(table.select(names).slice(0, SAMPLE_ROWS))
    rows = sample.num_rows
    if rows <= 2 * LOOK_ROWS:
        return [name for name in names if rows and _pays(_distinct(sample[name]), rows, _value_bytes(sample[name]))]
    chosen = np.random.default_rng(rows).choice(rows, LOOK_ROWS, replace=False)
    look = sample.take(pa.array(np.sort(chosen)))
    return [name for name in names if _pays_in_all(look[name], sample[name])]


def _in_one_piece(sample: pa.Table) -> pa.Table:
    """With one dictionary for all rows of an encoded column: equal texts have equal indices."""
    columns = [one_dictionary(column) if pt.is_dictionary(column.type) else column for column in sample.columns]
    return pa.Table.from_arrays(columns, schema=sample.schema)


def _pays_in_all(look: pa.ChunkedArray, values: pa.ChunkedArray) -> bool:
    rows, width, found = len(values), _value_bytes(look), _distinct(look)
    if _pays(found * rows / len(look), rows, width):
        return True
    if not _pays(_fewest(found, len(look), rows), rows, width):
        return False
    return _pays(_distinct(values), rows, width)


def _pays(distinct: float, rows: int, value_bytes: float) -> bool:
    """Whether the dictionary and the index of each row into it take few enough bytes."""
    with_dictionary = distinct / rows * value_bytes + math.ceil(math.log2(max(2.0, distinct))) / 8
    return with_dictionary <= value_bytes * MOST_PART


def _fewest(found: int, looked: int, rows: int) -> float:
    """About so many different values of `rows` at least, where `looked` of these have `found`: they are fewest if all are equally frequent,
    and if chance showed fewer of those that stand twice than it mostly does."""
    expected = found - 2 * math.sqrt(looked - found + 1)
    low, high = 1.0, float(rows)
    while high - low > 1:
        middle = (low + high) / 2
        low, high = (middle, high) if _looked_at(middle, looked, rows) < expected else (low, middle)
    return low


def _looked_at(values: float, looked: int, rows: int) -> float:
    """How many of so many values, all equally frequent in `rows`, are among `looked` of these."""
    return -values * math.expm1(rows / values * math.log1p(-looked / rows))


def _distinct(values: pa.ChunkedArray) -> int:
    if pt.is_dictionary(values.type):
        values = pa.chunked_array([chunk.indices for chunk in values.chunks], pa.int32())
    return int(pc.count_distinct(values, mode="all").as_py())


def _value_bytes(values: pa.ChunkedArray) -> float:
    """What a value takes in a Parquet page without a dictionary."""
    kind = values.type
    if pt.is_dictionary(kind):
        lengths = [pc.binary_length(chunk.dictionary).take(chunk.indices) for chunk in values.chunks]
        return float(pc.mean(pa.chunked_array(lengths, pa.int32())).as_py() or 0) + _LENGTH_BYTES
    if pt.is_decimal(kind):
        return math.ceil((kind.precision * math.log2(10) + 1) / 8)
    if pt.is_primitive(kind):
        return max(4, kind.bit_width // 8)
    return float(pc.mean(pc.binary_length(values)).as_py() or 0) + _LENGTH_BYTES
