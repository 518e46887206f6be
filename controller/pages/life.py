"""The life of a row, read for whoever shows it."""

from __future__ import annotations

import csv
import importlib
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from controller.amounts import size_text
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


@dataclass(frozen=True)
class Most:
    """Of a life that is read for a page. changes: of the table. size_bytes: of the files that may have to do with the row; most are not
    read whole."""

    changes: int
    size_bytes: int


def split_key(text: str, width: int) -> tuple[str, ...]:
    """The values of a key of so many columns, one at least; a single one is taken as it is. UsageError for what is no CSV."""
    if width == 1:
        return (text,)
    try:
        return tuple(next(csv.reader([text]), [])) or ("",)
    except csv.Error as error:
        raise UsageError(f"{text!r} can't be read as CSV: {error}", "bad-key", "put a value that holds a comma in double quotes") from error


def read_life(s3: Any, place: Any, state: TableState, snapshot: Snapshot, text: str, most: Most | None = None) -> Found:
    """The life of the row with the key `text`, in the table whose rows are those of `snapshot`. place: glue_jobs.spark.place.Place.

    most: what is beyond it is a UsageError, code too-much-for-a-page, before a data file is read.
    """
    explaining: Any = importlib.import_module("glue_jobs.spark.explain")
    if snapshot.is_empty:
        raise UsageError(f"{state.path} has no rows yet", "not-loaded", "`dmslake run PATH` loads it, once it is active")
    key = explaining.key_of(snapshot.schema, snapshot.primary_key, split_key(text, len(snapshot.primary_key)))
    lineage = Lineage(s3, state.lake, snapshot.change)
    every = list(islice(lineage.back(), most.changes + 1 if most else None))
    if most and len(every) > most.changes:
        what = f"the table has more than {most.changes:,} changes, and all of them tell of the row: more than a page reads"
        raise _too_much(state, text, what)
    records = list(rows_path(lineage, snapshot.stands_for))[::-1]
    followed = explaining.followed(records, key)
    roots = {file.path: root(file) for record in every for file in record.added}
    size = explaining.bytes_of(followed, roots, key) if most else 0
    if most and size > most.size_bytes:
        what = f"the files that may tell of the row have {size_text(size)}, more than a page reads ({size_text(most.size_bytes)})"
        raise _too_much(state, text, what)
    erased = read_erased(s3, state.lake, snapshot.erases)
    life = explaining.life_of(place, str(state.path), followed, roots, key, erased)
    earlier = f"change {followed[0].id} began to tell rows by this key: what was before is not followed"
    notes = (earlier,) if len(followed) < len(records) else ()
    taken = {step.gone: erased.change_of(state.lake.key + step.gone) for step in life.steps if step.gone}
    return Found(snapshot, explaining.key_texts(key), life, _undone(every, records), notes, taken)


def _too_much(state: TableState, text: str, what: str) -> UsageError:
    """The error of a life that is more than a page reads; the command line has no such bound."""
    return UsageError(what, "too-much-for-a-page", f"dmslake explain {state.path.in_shell} --key {shlex.quote(text)}")


def _undone(every: Sequence[ChangeRecord], records: Sequence[ChangeRecord]) -> int:
    """How many changes took effect once and are no part of the table's rows now."""
    out = {record.lost for record in every} | {record.id for record in records}
    return sum(record.kind not in GOES_TO and record.id not in out for record in every)
