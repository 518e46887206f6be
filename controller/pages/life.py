"""The life of a row, read for whoever shows it."""

from __future__ import annotations

import csv
import importlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from glue_jobs.aws.erased import read_erased
from glue_jobs.core.errors import UsageError
from glue_jobs.core.record import GOES_TO, ChangeRecord
from glue_jobs.core.snapshot import Snapshot
from glue_jobs.core.state import TableState
from glue_jobs.core.undo import root, rows_path
from glue_jobs.protocol.lineage import Lineage


@dataclass(frozen=True)
class Found:
    """A row's life, and what surrounds it. undone: changes of which the table has no rows; notes: what isn't followed."""

    snapshot: Snapshot
    key: dict[str, Any]
    life: Any
    undone: int
    notes: tuple[str, ...]
    erased: dict[str, str]  # data file that is no more → the erase that took it, '' for none


def split_key(text: str, width: int) -> tuple[str, ...]:
    """The values of a key of so many columns, one at least; a single one is taken as it is. UsageError for what is no CSV."""
    if width == 1:
        return (text,)
    try:
        return tuple(next(csv.reader([text]), [])) or ("",)
    except csv.Error as error:
        raise UsageError(f"{text!r} can't be read as CSV: {error}", "bad-key", "put a value that holds a comma in double quotes") from error


def read_life(s3: Any, place: Any, state: TableState, snapshot: Snapshot, text: str) -> Found:
    """The life of the row with the key `text`, in the table whose rows are those of `snapshot`. place: glue_jobs.spark.place.Place."""
    explaining: Any = importlib.import_module("glue_jobs.spark.explain")
    if snapshot.is_empty:
        raise UsageError(f"{state.path} has no rows yet", "not-loaded", "`dmslake run PATH` loads it, once it is active")
    key = explaining.key_of(snapshot.schema, snapshot.primary_key, split_key(text, len(snapshot.primary_key)))
    lineage = Lineage(s3, state.lake, snapshot.change)
    every = list(lineage.back())
    records = list(rows_path(lineage, snapshot.stands_for))[::-1]
    followed = explaining.followed(records, key)
    roots = {file.path: root(file) for record in every for file in record.added}
    erased = read_erased(s3, state.lake, snapshot.erases)
    life = explaining.life_of(place, str(state.path), followed, roots, key, erased)
    earlier = f"change {followed[0].id} began to tell rows by this key: what was before is not followed"
    notes = (earlier,) if len(followed) < len(records) else ()
    taken = {step.gone: erased.change_of(state.lake.key + step.gone) for step in life.steps if step.gone}
    return Found(snapshot, explaining.key_texts(key), life, _undone(every, records), notes, taken)


def _undone(every: Sequence[ChangeRecord], records: Sequence[ChangeRecord]) -> int:
    """How many changes took effect once and are no part of the table's rows now."""
    out = {record.lost for record in every} | {record.id for record in records}
    return sum(record.kind not in GOES_TO and record.id not in out for record in every)
