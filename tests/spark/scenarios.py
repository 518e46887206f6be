"""What can happen to a source table, drawn by Hypothesis, and a dict that says what the lake table must hold after it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import date, datetime, timezone
from decimal import Decimal
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st

from tests.spark.lake_values import plain_key

NAN = float("nan")
Row = tuple[Any, ...]
Change = tuple[str, Row]

# For each type of key: values that are told apart, or not, in a way that someone gets wrong (UTF-16 order, −0.0, trailing zeros …).
KEYS: dict[str, tuple[pa.DataType, list[Any]]] = {
    "bigint": (pa.int64(), [-(2**63), -1, 0, 7, 2**63 - 1]),
    "tinyint": (pa.int8(), [-128, 0, 127]),
    "decimal": (pa.decimal128(38, 4), [Decimal(text) for text in ("-9.5000", "10.0000", "9.5000", f"{10**33}.0000", "0.0001")]),
    "string": (pa.string(), ["a", "A", "é", "z\uffee", "😀", "a/b=%", "NULL", "x" * 300 + "1", "x" * 300 + "2"]),
    "date": (pa.date32(), [date(1, 1, 1), date(1969, 12, 31), date(2024, 2, 29), date(9999, 12, 31)]),
    "timestamp": (pa.timestamp("us"), [datetime(1, 1, 1), datetime(1969, 12, 31, 23, 59, 59, 999_999), datetime(3018, 1, 1)]),
    "double": (pa.float64(), [NAN, 0.0, -0.0, -1e308, 1.5, float("inf")]),
    "float": (pa.float32(), [NAN, 0.0, -0.0, 0.5, float("-inf")]),
    "binary": (pa.binary(), [b"", b"\x00", b"\xff", b"a\x00", b"y" * 300, b"y" * 301]),
}
PARTS = ["a", "b/c", "é=%", None]
DAYS = [date(2024, 1, 31), date(2024, 2, 1), date(1500, 1, 1), None]
NOT_A_FOLDER = ("binary",)


@dataclass
class Source:
    """The source table as a dict from key to row, and what each row of changes does to it."""

    width: int  # of the key
    rows: dict[Any, Row] = field(default_factory=dict)

    def key(self, row: Row) -> Any:
        return plain_key(row[: self.width])

    def take(self, changes: Iterable[Change]) -> tuple[int, int, int]:
        """Apply the changes of one batch; the keys inserted, updated, deleted by all of them together."""
        before, touched = set(self.rows), set()
        for op, sent in changes:
            row = as_lake(sent)
            key = self.key(row)
            touched.add(key)
            if op == "D":
                self.rows.pop(key, None)
            else:
                self.rows[key] = row
        after = set(self.rows)
        return len(after - before), len(touched & before & after), len(before - after)


@dataclass(frozen=True)
class Scenario:
    """A table, its load files (None: there is no load), then the CDC files that arrive before each run."""

    columns: pa.Schema
    width: int
    partition_key: str
    load: list[list[Row]] | None
    rounds: list[list[list[Change]]]
    settings: dict[str, str]

    def as_read(self, row: Row) -> Row:
        """The row as readers see it: a folder's name says 0.0 for −0.0, because they are one partition."""
        return (row[0] + 0.0, *row[1:]) if "k0" in self.partition_key and isinstance(row[0], float) else row

    @property
    def primary_key(self) -> str:
        return ",".join(self.columns.names[: self.width])


@st.composite
def scenarios(draw: st.DrawFn) -> Scenario:
    """A small table with a hard key, few keys, many changes."""
    kinds = draw(st.lists(st.sampled_from(sorted(KEYS)), min_size=1, max_size=2))
    fields = [(f"k{index}", KEYS[kind][0]) for index, kind in enumerate(kinds)]
    columns = pa.schema([*fields, ("part", pa.string()), ("day", pa.date32()), ("value", pa.int32())])
    keys = st.tuples(*(st.sampled_from(KEYS[kind][1]) for kind in kinds))
    rows = st.tuples(keys, st.sampled_from(PARTS), st.sampled_from(DAYS), st.integers(0, 99)).map(lambda parts: (*parts[0], *parts[1:]))
    files = st.lists(_changes(rows, len(kinds)), max_size=8)
    rounds = draw(st.lists(st.lists(files, min_size=1, max_size=3), min_size=1, max_size=3))
    repeated = [[*given, given[0]] if draw(st.booleans()) else given for given in rounds]  # a whole file again
    load = draw(st.none() | st.lists(st.lists(rows, max_size=8), min_size=1, max_size=2))
    return Scenario(columns, len(kinds), draw(_partition_keys(kinds)), load, repeated, draw(_settings()))


@st.composite
def _changes(draw: st.DrawFn, rows: st.SearchStrategy[Row], width: int) -> Change:
    op, row = draw(st.sampled_from("IUUD")), draw(rows)
    key_only = op == "D" and draw(st.booleans())
    return op, (*row[:width], *[None] * (len(row) - width)) if key_only else row


def _partition_keys(kinds: list[str]) -> st.SearchStrategy[str]:
    choices = ["null", "null", "part", "year(day),month(day) as m", "part,day"]
    if kinds[0] not in NOT_A_FOLDER:
        choices.append("k0")
        if len(kinds) == 1:
            choices.append("part,k0")
    return st.sampled_from(choices)


@st.composite
def _settings(draw: st.DrawFn) -> dict[str, str]:
    """Ways through the code: files whole or in pieces, inserts into small files or new ones, one batch or a batch per file."""
    return {
        "stream_file_bytes": draw(st.sampled_from(["0", "16000000"])),
        "small_file_bytes": draw(st.sampled_from(["0", "32000000"])),
        "batch_files": draw(st.sampled_from(["1", "1000"])),
    }


def as_lake(row: Row) -> Row:
    """A row as the lake gives it: timestamps have a zone."""
    return tuple(value.replace(tzinfo=timezone.utc) if isinstance(value, datetime) else value for value in row)
