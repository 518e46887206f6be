"""Which CDC files belong to a load: those that hold what was changed since its first row was read. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta, timezone

from glue_jobs.core.actions import TakeLoad
from glue_jobs.core.load_plan import written_at
from glue_jobs.core.raw_names import DIGITS, WRITTEN_WITHIN, RawFile, cdc_name
from glue_jobs.core.snapshot import Snapshot
from glue_jobs.core.state import TableState


def load_start(state: TableState, snapshot: Snapshot, action: TakeLoad, first_time: str, margin: timedelta) -> str:
    """The digits of the first CDC name that belongs to the load, '' for all: from its least commit time, else, for a reload, its first
    file's time less a margin.

    A commit time later than that file is none: what is taken for it may be another text with times in it, and files would be left out.
    A first load goes by its commit times alone, less the margin: where a raw folder was copied, all CDC names are from before the files'
    times. One whose changes come in transaction files is as a reload: their folder is older than the table.
    """
    written = written_at(snapshot, action.files)
    digits = "".join(char for char in first_time[:19] if char.isdigit())
    is_time = bool(digits) and digits <= written.strftime(DIGITS)
    if not (action.reload or state.cdc_path):
        return snapshot.generation.cdc_from or (_earlier(digits, margin) if is_time else "")
    if not is_time:
        return (written - margin).strftime(DIGITS)
    # What such a file inserted before the load began would stand twice where no key tells.
    return _with_open_file(digits, action.cdc, margin) if state.primary_key else digits


def _with_open_file(start: str, cdc: Iterable[RawFile], margin: timedelta) -> str:
    """The digits from which on files were begun, or open still, when the load began at `start`: where one task only loads and another one
    only brings changes, a file that was begun before has what changed since. What it has from before the load does no harm: all that
    came after it is applied, too.

    A file was closed by then if it was written before. One that may not be there yet was begun after the last of those, and no longer ago
    than the margin. A file that was written long after its name is a copy, and its time tells nothing.
    """
    least, began = _earlier(start, margin), _time_of(start)
    if not least or began is None:
        return start
    first = start
    closed = ""
    for file in cdc:
        name = cdc_name(file.key)
        if name is None or not least <= name.digits < start:
            continue
        if began <= file.modified <= name.time + max(WRITTEN_WITHIN, margin):
            first = min(first, name.digits)
        else:
            closed = max(closed, name.digits)
    return min(first, str(int(closed) + 1) if closed else least)


def _earlier(digits: str, margin: timedelta) -> str:
    """The digits of the time that is earlier by the margin, '' where there is none: a source may have the year 0."""
    time = _time_of(digits)
    try:
        start = time - margin if time else None
    except OverflowError:
        return ""
    return start.strftime(DIGITS) if start and start.year >= 1000 else ""


def _time_of(digits: str) -> datetime | None:
    try:
        return datetime.strptime(digits, DIGITS).replace(tzinfo=timezone.utc)
    except ValueError:
        return None
