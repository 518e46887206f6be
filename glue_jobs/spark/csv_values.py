"""What the texts of a CSV raw file say, as values of the lake's types. Strict: nothing is rounded, cut or guessed.

Digits below the microsecond are the one thing that goes, as with Parquet; they are counted.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from glue_jobs.core.schema import decimal_parts
from glue_jobs.spark.arrow_types import UTC_MICROSECONDS, Column, Convert, to_arrow

_WHOLE = r"^[+-]?\d+$"
_NUMBER = r"^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$"
_NO_NUMBER = r"^([Nn][Aa][Nn]|[+-]?[Ii][Nn][Ff]([Ii][Nn][Ii][Tt][Yy])?)$"
_DAY = r"^\d{4}-\d{2}-\d{2}$"
_MOMENT = r"^\d{4}-\d{2}-\d{2}[ T]\d{2}:\d{2}:\d{2}(\.\d{1,12})?(Z|[+-]\d{2}(:?\d{2})?)?$"
_ZONE = r"(Z|:\d{2}(\.\d+)?[+-]\d{2}(:?\d{2})?)$"
_HEX = r"^(0x|\\x)?([0-9a-fA-F]{2})*$"
_BOOLEANS = {"true": True, "t": True, "1": True, "y": True, "false": False, "f": False, "0": False, "n": False}


def from_texts(kind: str) -> Convert:
    """How texts (null stays) become values of a lake type; raises ArrowInvalid for one that says none."""
    if kind == "string":
        return lambda texts: texts
    if decimal_parts(kind):
        return lambda texts: _matching(texts, _NUMBER).cast(to_arrow(kind))
    if kind == "boolean":
        return _booleans
    if kind in ("float", "double"):
        return lambda texts: _floats(texts, to_arrow(kind))
    if kind == "date":
        return lambda texts: _matching(texts, _DAY).cast(pa.date32())
    if kind == "timestamp":
        return _moments
    if kind == "binary":
        return _bytes
    return lambda texts: _without_plus(_matching(texts, _WHOLE)).cast(to_arrow(kind))


def digits_lost(texts: Column) -> int:
    """How many timestamps say more than microseconds."""
    return pc.sum(pc.match_substring_regex(texts, r"\.\d{6}\d*[1-9]")).as_py() or 0


def _matching(texts: Column, pattern: str) -> Column:
    """The texts, if each reads so. Arrow alone would take hexadecimal numbers, and words."""
    if pc.all(pc.match_substring_regex(texts, pattern)).as_py() is False:
        raise pa.ArrowInvalid("a text does not read as it must")
    return texts


def _without_plus(texts: Column) -> Column:
    return pc.replace_substring_regex(texts, pattern=r"^\+", replacement="")


def _booleans(texts: Column) -> Column:
    places = pc.index_in(pc.utf8_lower(texts), value_set=pa.array(list(_BOOLEANS)))
    if places.null_count > texts.null_count:
        raise pa.ArrowInvalid("a text is no boolean")
    return pc.take(pa.array(list(_BOOLEANS.values())), places)


def _floats(texts: Column, kind: pa.DataType) -> Column:
    words = pc.match_substring_regex(texts, _NO_NUMBER)
    numbers = _matching(texts.filter(pc.invert(words)), _NUMBER).cast(kind)
    if pc.any(pc.is_inf(numbers)).as_py():
        raise pa.ArrowInvalid("a number is beyond the type's greatest")
    return pc.utf8_lower(texts).cast(kind)


def _moments(texts: Column) -> Column:
    """Without an offset they are UTC. Fewer or more digits than microseconds are fine; cutting digits off goes downwards."""
    cut = pc.replace_substring_regex(_matching(texts, _MOMENT), pattern=r"(\.\d{6})\d+", replacement=r"\1")
    zoned = pc.match_substring_regex(cut, _ZONE)
    return pc.if_else(zoned, cut, pc.binary_join_element_wise(cut, "Z", "")).cast(UTC_MICROSECONDS)


def _bytes(texts: Column) -> Column:
    digits = pc.replace_substring_regex(_matching(texts, _HEX), pattern=r"^(0x|\\x)", replacement="")
    return pa.array([None if text is None else bytes.fromhex(text) for text in digits.to_pylist()], pa.binary())
