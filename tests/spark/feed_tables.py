"""Versions of a table for tests of change feeds: the sample's columns, and what becomes of rows when a feed's files are applied."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import date, datetime, timezone
from typing import Any

import pyarrow as pa

from glue_jobs.core.feed_wish import FeedWish, read_feed_wish
from glue_jobs.spark.feed_source import Bronze, make_bronze

STAMP = pa.timestamp("us", tz="UTC")
MADE = datetime(2024, 1, 1, tzinfo=timezone.utc)
LATER = datetime(2024, 5, 1, 12, tzinfo=timezone.utc)
SAMPLE = pa.schema(
    [
        ("id", pa.int64()), ("release_date", pa.date32()), ("name", pa.string()), ("color", pa.string()), ("description", pa.string()),
        ("created", STAMP), ("modified", STAMP), ("src_batch_id", pa.int64()), ("src_file", pa.string()),
    ]
)  # fmt: skip
SENT = SAMPLE.names[:-2]


def sample_rows(count: int) -> pa.Table:
    """Rows of the sample, with the columns that only bronze has."""
    rows = [
        {
            "id": number,
            "release_date": date(2020, 1, 1 + number % 28),
            "name": f"thing {number}",
            "color": ("red", "blue")[number % 2],
            "description": None if number % 3 == 0 else "as it was",
            "created": MADE,
            "modified": MADE,
            "src_batch_id": 7,
            "src_file": "one.csv",
        }
        for number in range(count)
    ]
    return pa.Table.from_pylist(rows, schema=SAMPLE)


def wish_of(**arguments: str) -> FeedWish:
    """A wish for a Delta table with the key `id`."""
    return read_feed_wish({"delta": "/bronze", "primary_key": "id", "staging": "/staging", **arguments})


def bronze_of(rows: pa.Table, wish: FeedWish) -> Bronze:
    """The rows as a version made at LATER."""
    return make_bronze("bronze", rows, wish.primary_key, wish, LATER)


def applied(rows: pa.Table, files: Iterable[pa.Table], key: tuple[str, ...] = ("id",)) -> list[dict[str, Any]]:
    """The rows after the files, one change after the other, in the order of their keys. An insert must be new, the others' key there."""
    now = {key_of(row, key): row for row in rows.to_pylist()}
    for file in files:
        for row in file.to_pylist():
            op, _ = row.pop(file.column_names[0]), row.pop(file.column_names[1])
            assert (key_of(row, key) in now) == (op != "I"), (op, row)
            if op == "D":
                assert now.pop(key_of(row, key)) == row
            else:
                now[key_of(row, key)] = row
    return [now[each] for each in sorted(now)]


def key_of(row: Mapping[str, Any], key: tuple[str, ...]) -> tuple[Any, ...]:
    """The key's values."""
    return tuple(row[name] for name in key)
