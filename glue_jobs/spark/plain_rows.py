"""Values of the lake's types as JSON has them, without loss: what is no number, truth value or text there becomes a text.

Decimals keep their digits (`12.30`), times are UTC (`2024-05-01T12:30:15.25Z`), binary is hexadecimal; NaN and infinity are words.
"""

from __future__ import annotations

import math
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

WORDS = {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}


def plain_rows(rows: pa.Table) -> list[tuple[Any, ...]]:
    """The rows as tuples of None, bool, int, float and str."""
    if not rows.num_columns:
        return [()] * rows.num_rows
    return list(zip(*(plain_values(column) for column in rows.columns), strict=True))


def plain_values(values: pa.Array | pa.ChunkedArray) -> list[Any]:
    """The values of one column in the same way."""
    kind = values.type
    if pt.is_timestamp(kind):
        return _time_texts(values).to_pylist()
    if pt.is_date(kind):
        return values.cast(pa.string()).to_pylist()  # Python's own dates end at the year 9999
    if pt.is_floating(kind):
        return [None if text is None else plain_float(float(text)) for text in values.cast(pa.string()).to_pylist()]
    listed: list[Any] = values.to_pylist()
    if pt.is_binary(kind):
        return [None if value is None else value.hex() for value in listed]
    if pt.is_decimal(kind):
        return [None if value is None else format(value, "f") for value in listed]
    return listed


def plain_float(value: float) -> float | str:
    """A float as JSON can say it."""
    return value if math.isfinite(value) else WORDS[str(value)]


def _time_texts(values: pa.Array | pa.ChunkedArray) -> pa.Array | pa.ChunkedArray:
    """ISO 8601, the fraction without its last zeros."""
    texts = values.cast(pa.int64()).cast(pa.timestamp("us")).cast(pa.string())
    texts = pc.replace_substring_regex(texts, pattern=r"(\.\d*?)0+$", replacement=r"\1")
    texts = pc.replace_substring_regex(texts, pattern=r"\.$", replacement="")
    return pc.binary_join_element_wise(pc.replace_substring(texts, pattern=" ", replacement="T"), "Z", "")
