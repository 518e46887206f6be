"""Rows for pages: what two states have not in common, and the life of one. Reads data files, on Arrow, in bounded amounts."""

from __future__ import annotations

import importlib
import importlib.util
import time
from dataclasses import replace
from datetime import datetime
from typing import Any

from controller.amounts import size_text
from controller.form import columns_apart
from controller.pages.life import Found, Most, read_life
from controller.pages.steps import when
from controller.pages.views import DiffPage, ExplainPage, LifeStep, RowsApart, Update
from controller.problems import NO_PYARROW
from controller.session import Session
from glue_jobs.aws.translate import aws_error
from glue_jobs.core.errors import ConfigurationError, UsageError
from glue_jobs.core.record import DataFile
from glue_jobs.core.snapshot import Snapshot
from glue_jobs.core.state import TableState
from glue_jobs.core.undo import record_time, root
from glue_jobs.protocol.as_of import look

ROWS_SHOWN = 50  # of each kind on a page of two states
MOST_BYTES = 256 << 20  # of data files that are read for such a page
MOST_SAMPLE_BYTES = 32 << 20  # that are read for the sample on a change's page
# For a row's life: of files that are mostly read in part, and of changes whose records are read.
MOST_LIFE_BYTES, MOST_LIFE_CHANGES = 4 * MOST_BYTES, 5000


class RowReader:
    """Reads rows of the session's tables. Where data files can't be read on this machine, it raises ConfigurationError."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def diff(self, state: TableState, a: str, b: str, now: datetime) -> DiffPage:
        """The page of two states, of which the second is '' for now. UsageError where that would be too much to read."""
        place = self._place(state)
        before, after = self._at(state, a), self._at(state, b)
        size = bytes_apart(before, after)
        if size > MOST_BYTES:
            raise UsageError(
                f"the files that differ have {size_text(size)}, more than a page reads ({size_text(MOST_BYTES)})",
                "too-much-for-a-page",
                f"dmslake diff {state.path.in_shell} {before.change or a} {after.change}",
            )
        return DiffPage(
            path=str(state.path),
            name=state.path.name,
            asked_from=a,
            asked_to=b,
            from_change=before.change,
            to_change=after.change,
            now=now,
            from_time=when(before.time),
            to_time=when(after.time),
            rows_before=before.rows,
            rows_after=after.rows,
            form=form_lines(before, after),
            rows=rows_apart(place, state, before, after, ROWS_SHOWN),
        )

    def sample(self, state: TableState, before: Snapshot, after: Snapshot, rows: int) -> tuple[RowsApart | None, str]:
        """(rows that a change changed, why there are none). before: the state that it was made on; only cheap ones are read."""
        size = bytes_apart(before, after)
        if size > MOST_SAMPLE_BYTES:
            return None, f"Its data files have {size_text(size)}: more than is read for a look."
        try:
            return rows_apart(self._place(state), state, before, after, rows), ""
        except Exception as error:  # noqa: BLE001 - one change's failure becomes its own words, the others are shown all the same
            return None, f"They can't be read: {aws_error(error).message}."

    def explain(self, state: TableState, key: str, now: datetime) -> ExplainPage:
        """The page of one row's life. UsageError where that would be too much to read."""
        most = Most(MOST_LIFE_CHANGES, MOST_LIFE_BYTES)
        found = read_life(self._session.clients.s3, self._place(state), state, self._at(state, ""), key, most)
        now_values = found.life.now
        return ExplainPage(
            path=str(state.path),
            name=state.path.name,
            asked=key,
            key=tuple(found.key.items()),
            now=now,
            change=found.snapshot.change,
            current=tuple(now_values.items()) if now_values is not None else None,
            steps=tuple(life_step(found, step) for step in found.life.steps),
            notes=tuple(_life_notes(found)),
        )

    def _place(self, state: TableState) -> Any:
        """glue_jobs.spark.place.Place of somebody who only reads."""
        for package in ("pyarrow", "numpy"):
            if importlib.util.find_spec(package) is None:
                raise ConfigurationError(f"the package {package}, which reads data files, is not installed", "no-package", NO_PYARROW)
        reading: Any = importlib.import_module("glue_jobs.spark.reading")
        limits = self._session.settings.limits
        return reading.reading_place(self._session.host.variables, state.path.bucket, state.lake, limits, state.before_images)

    def _at(self, state: TableState, as_of: str) -> Snapshot:
        return look(self._session.clients.s3, self._session.table, state.path, as_of, time.sleep).snapshot


def bytes_apart(before: Snapshot, after: Snapshot) -> int:
    """The bytes of the data files that only one of two states has."""
    old, new = ({root(file): file for file in state.files.values()} for state in (before, after))
    apart: list[DataFile] = [file for name, file in old.items() if name not in new]
    apart += [file for name, file in new.items() if name not in old]
    return sum(file.size_bytes for file in apart)


def rows_apart(place: Any, state: TableState, before: Snapshot, after: Snapshot, limit: int) -> RowsApart:
    """What two states have not in common, with at most `limit` rows of each kind. Whatever an erase has on its list is read of neither."""
    differences: Any = importlib.import_module("glue_jobs.spark.differences")
    erases = max(before.erases, after.erases, key=len)
    found = differences.difference(place, str(state.path), replace(before, erases=erases), replace(after, erases=erases), limit)
    updates = (
        Update(old, new, frozenset(at for at, (one, other) in enumerate(zip(old, new)) if one != other)) for old, new in found.updated
    )
    return RowsApart(
        found.columns, found.key, found.inserts, found.updates, found.deletes, found.inserted, tuple(updates), found.deleted,
        found.incomparable, found.files,
    )  # fmt: skip


def form_lines(before: Snapshot, after: Snapshot) -> tuple[tuple[str, str], ...]:
    """What differs in columns, key and partitions, as labels and texts."""
    form = columns_apart(before, after)
    plain = [(f"columns {word}", ", ".join(f"{item['name']} ({item['type']})" for item in form[word])) for word in ("added", "dropped")]
    changed = ", ".join(f"{item['name']}: {item['from']} → {item['to']}" for item in form["changed"])
    others = [
        (name.replace("_", " "), f"{form[name]['from'] or 'none'} → {form[name]['to'] or 'none'}")
        for name in ("primary_key", "partitions")
        if name in form
    ]
    return tuple(pair for pair in (*plain, ("columns changed", changed), *others) if pair[1])


def life_step(found: Found, step: Any) -> LifeStep:
    """One of glue_jobs.spark.explain's steps."""
    before, after = step.before or {}, step.after or {}
    names = step.changed if step.what == "update" else tuple(after or before)
    return LifeStep(
        change=step.record.id,
        kind=step.record.kind,
        time=record_time(step.record),
        what=step.what,
        cells=tuple((name, before.get(name), after.get(name)) for name in names),
        text=_unknown_text(step, found.erased.get(step.gone, "")) if step.what == "unknown" else "",
        source=source_text(step.source),
    )


def _unknown_text(step: Any, erase: str) -> str:
    if not step.gone:
        return "It is not known whether the row was there before."
    if erase:
        return f"Not known: a data file of this change was erased for good by change {erase}."
    return "Not known: a data file of this change is no more."


def source_text(source: Any) -> str:
    """The raw file and row that an image came from, as far as they are known."""
    if source is None:
        return ""
    gone = f"{len(source.missing)} raw file(s) gone or changed" if source.missing else ""
    if not source.file:
        return gone or "not found in the raw files"
    name = source.file.rsplit("/", 1)[-1]
    return f"{name}, row {source.row}" + (f" ({gone} after it)" if gone else "")


def _life_notes(found: Found) -> list[str]:
    undone = f"{found.undone} undone change(s) are not part of this" if found.undone else ""
    return [text for text in (*found.notes, undone) if text]
