"""The texts of a CSV that a person gives, and the values that they say.

A line of names, nothing for null (a blank line, where there is one column), "" for an empty text, binary in hexadecimal, times in UTC
unless they name an offset.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pacsv
import pyarrow.types as pt

from glue_jobs.core.errors import UsageError

_CORRECT = "correct the rows that are given; nothing was changed"
_MARK = b"\xef\xbb\xbf"  # of UTF-8, which some programs put before a CSV
_LAST = "last"  # each value of a line behind a CSV's last one: a quote that is never closed swallows it


@contextmanager
def readable(name: str) -> Iterator[None]:
    """Turns what is said of a file that can't be read into a UsageError."""
    try:
        yield
    except (pa.ArrowException, OSError, UnicodeDecodeError, csv.Error) as error:
        text = " ".join(str(error).split())[:300]
        raise UsageError(f"the given file {name} can't be read: {text}", "given-not-read", _CORRECT) from error


def csv_heads(data: bytes, name: str) -> list[str]:
    """The names in the first line."""
    with readable(name):
        return next(csv.reader(io.TextIOWrapper(io.BytesIO(_unmarked(data)), "utf-8", newline=""), strict=True), [])


def _unmarked(data: bytes) -> bytes:
    return data[len(_MARK) :] if data.startswith(_MARK) else data


def csv_texts(data: bytes, heads: Sequence[str], name: str) -> pa.Table:
    """All columns as texts; null where nothing stands. heads: each once. A blank line is a row where there is one column: its null."""
    data = _unmarked(data)
    if not data.endswith(b"\n"):
        data += b"\n"  # no more than one: a second one would be a row
    data += (",".join([_LAST] * len(heads)) + "\n").encode()
    with readable(name):
        texts = pacsv.read_csv(
            pa.BufferReader(data),
            read_options=pacsv.ReadOptions(use_threads=False, block_size=len(data) + 1),
            parse_options=pacsv.ParseOptions(newlines_in_values=True, ignore_empty_lines=len(heads) != 1),
            convert_options=pacsv.ConvertOptions(
                column_types={head: pa.string() for head in heads},
                null_values=[""],
                strings_can_be_null=True,
                quoted_strings_can_be_null=False,
            ),
        )
    if any(column[-1].as_py() != _LAST for column in texts.columns):  # Arrow reads on to the end of the file, and says nothing
        raise UsageError(f"the given file {name} can't be read: a quote is never closed", "given-not-read", _CORRECT)
    return texts.slice(0, texts.num_rows - 1)


def from_text(kind: pa.DataType) -> Callable[[Any], Any]:
    """How texts become values of a type; raises ArrowInvalid for one that says none."""
    if pt.is_timestamp(kind):
        return lambda texts: _with_zone(texts).cast(kind)
    if pt.is_binary(kind):
        return _from_hex
    return lambda texts: texts.cast(kind)


def _with_zone(texts: Any) -> Any:
    """Texts of times, in UTC where they name no offset; a date alone is its midnight."""
    whole = pc.replace_substring_regex(texts, pattern=r"^(\d{4}-\d\d-\d\d)$", replacement=r"\1 00:00:00")
    zoned = pc.match_substring_regex(whole, r":.*([Zz]|[+-]\d\d:?(\d\d)?)$")
    return pc.if_else(zoned, whole, pc.binary_join_element_wise(whole, "Z", ""))


def _from_hex(texts: Any) -> Any:
    try:
        return pa.array([None if text is None else bytes.fromhex(text) for text in texts.to_pylist()], pa.binary())
    except ValueError as error:
        raise pa.ArrowInvalid(str(error)) from error
