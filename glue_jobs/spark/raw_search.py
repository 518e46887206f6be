"""The raw file and row that a change's image of a key came from. Of a raw file only the key columns are read."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime

import pyarrow as pa
import pyarrow.compute as pc

from glue_jobs.core.errors import TableBlocked
from glue_jobs.core.raw_names import CdcName, RawFile, cdc_name
from glue_jobs.core.raw_reading import reading_again
from glue_jobs.core.record import ChangeRecord, Input
from glue_jobs.spark.key_index import KeyIndex
from glue_jobs.spark.net_changes import MOVES_OUT, OP, POSITION, STEPS, moves_of
from glue_jobs.spark.place import Place, Shape
from glue_jobs.spark.raw_batch import Unit, read_heads, read_unit

THREADS = 16  # raw files are read so many at a time, those that rank highest first
OPERATIONS = ("insert", "update", "delete")
GONE = frozenset({"raw-file-gone", "raw-file-changed"})


@dataclass(frozen=True)
class Source:
    """Where a row image came from. row: from 0; operation: the CDC row's. missing: raw files that are gone or changed, and of which the
    image may have come if `file` is ''; else they rank higher than it."""

    file: str = ""
    row: int = -1
    operation: str = ""
    missing: tuple[str, ...] = ()


def source_of(place: Place, table: str, record: ChangeRecord, key: pa.Table, *, lives: bool = False) -> Source | None:
    """The raw file and row of the image that won; without a file if none that is still there has the key. None where the change took
    no raw files. lives: the key has a row after the change, so that no move to another key is its last (key_moves.py)."""
    inputs = sorted((item for item in (*record.inputs, *record.context) if not item.is_blank), key=_rank, reverse=True)
    if not inputs:
        return None
    shape = Shape(table, tuple(column for column in record.schema if column.name in key.column_names), record.primary_key)
    missing: list[str] = []
    for start in range(0, len(inputs), THREADS):
        some = inputs[start : start + THREADS]
        with ThreadPoolExecutor(THREADS) as pool:
            found = list(pool.map(lambda item: _last_row(place, shape, record, item, key, lives), some))
        for item, rows in zip(some, found, strict=True):
            if rows is None:
                missing.append(item.key)
            elif rows:
                return Source(item.key, *rows[0], tuple(missing))
    return Source(missing=tuple(missing))


def _rank(item: Input) -> tuple[CdcName, str]:
    """The order in which raw files are ranked."""
    return cdc_name(item.key) or CdcName("", ""), item.key


def _last_row(place: Place, shape: Shape, record: ChangeRecord, item: Input, key: pa.Table, lives: bool) -> list[tuple[int, str]] | None:
    """(number, operation) of the last row with the key in a raw file, none if it has none; None if the file is gone or changed.

    An update that changed its row's key counts as a delete of the old one.
    """
    file = RawFile(item.key, item.size_bytes, item.etag, datetime.fromisoformat((item.modified or "1970-01-01").replace("Z", "+00:00")))
    index = KeyIndex(key, record.primary_key)
    best: tuple[int, int] | None = None
    try:
        (head,) = read_heads(place, [file], reading_again(record))
        for rows in read_unit(place, shape, Unit(head)):
            hits = rows.filter(pc.is_valid(index.positions(rows)))
            if lives:
                hits = hits.filter(pa.array(moves_of(hits[POSITION].to_numpy(), hits[OP].to_numpy()) != MOVES_OUT))
            for found in zip(hits[POSITION].to_pylist(), hits[OP].to_pylist(), strict=True):
                best = found if best is None else max(best, found)
    except TableBlocked as error:
        if error.code in GONE:
            return None
        raise
    return [] if best is None else [(best[0] // STEPS, OPERATIONS[best[1]])]
