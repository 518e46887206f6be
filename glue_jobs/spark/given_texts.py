"""Texts that a person gives, as values of a lake type: those of a CSV, and columns of texts.

`core.cells.fit` is the rule, a text at a time. Arrow is much quicker, but takes texts for values that nobody means by them: 0x10 for 16,
1e999 for infinity, 1 for true, 39 digits for any number. It reads the plain ones, of which both say the same.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from glue_jobs.core.cells import INTEGER_BITS, fit
from glue_jobs.core.schema import decimal_parts
from glue_jobs.spark.arrow_types import Column, null_where, to_arrow
from glue_jobs.spark.given_csv import from_text
from glue_jobs.spark.locate import Places

_DAY = "[0-9]{4}-[0-9]{2}-[0-9]{2}"
_CLOCK = r"[ T][0-9]{2}:[0-9]{2}(:[0-9]{2}(\.[0-9]{1,6})?)?(Z|[+-][0-9]{2}(:?[0-9]{2})?)?"
_BEYOND = "^(0000|(0001-01-01|9999-12-31).{3,}[+-])"  # Arrow has times before the year 1 and after 9999; a zone may lead there
_PLAIN = {
    **dict.fromkeys(INTEGER_BITS, "-?[0-9]{1,19}"),
    "double": r"-?[0-9]{1,15}(\.[0-9]{1,20})?([eE]-[0-9]{1,2})?",  # a double says every whole number of fifteen digits
    "boolean": "true|false",
    "date": _DAY,
    "timestamp": f"{_DAY}({_CLOCK})?",
}


def values_of(texts: Column, kind: str) -> tuple[Column, list[int]]:
    """(the values, the rows whose text says none). These are null, as are those without a text."""
    if kind == "string":
        return texts, []
    values, refused, first = [], [], 0
    for part in texts.chunks if isinstance(texts, pa.ChunkedArray) else [texts]:
        made, rows = _read(part, kind)
        values.append(made)
        refused += [first + row for row in rows]
        first += len(part)
    return pa.chunked_array(values, to_arrow(kind)), refused


def _read(texts: pa.Array, kind: str) -> tuple[pa.Array, list[int]]:
    quick, others = _plain_values(texts, kind)
    if not len(others):
        return quick, []
    made, refused = [], []
    for row in others.tolist():
        try:
            made.append(fit(kind, texts[row].as_py()))
        except ValueError:  # also of bytes that are no text
            made.append(None)
            refused.append(row)
    places = np.arange(len(texts))
    places[others] = len(texts) + np.arange(len(others))
    return pa.concat_arrays([quick, pa.array(made, to_arrow(kind))]).take(pa.array(places)), refused


def _plain_values(texts: pa.Array, kind: str) -> tuple[pa.Array, Places]:
    """(the values of the plain texts, null in other rows; the rows of all other texts)."""
    wanted = to_arrow(kind)
    pattern = _plain(kind)
    if pattern and pt.is_string(texts.type):
        odd = pc.invert(pc.match_substring_regex(texts, f"^({pattern})$"))
        if kind in ("date", "timestamp"):
            odd = pc.or_(odd, pc.match_substring_regex(texts, _BEYOND))
        try:
            return from_text(wanted)(null_where(odd, texts)), np.flatnonzero(odd.fill_null(False))
        except pa.ArrowInvalid:
            pass  # one of them says no value, as the 30th of February: each is looked at by itself
    return pa.nulls(len(texts), wanted), np.flatnonzero(texts.is_valid())


def _plain(kind: str) -> str:
    """How texts look that Arrow reads as they are meant; '' where they are read one by one."""
    parts = decimal_parts(kind)
    if parts is None:
        return _PLAIN.get(kind, "")
    precision, scale = parts
    whole = f"[0-9]{{1,{precision - scale}}}" if precision > scale else "0"
    return f"-?{whole}" + (rf"(\.[0-9]{{1,{scale}}})?" if scale else "")
