"""Whether a table's load files are to be loaded: for the first time, or anew. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta, timezone

from glue_jobs.core.actions import Action, Rest, TakeLoad
from glue_jobs.core.errors import blocked
from glue_jobs.core.limits import Limits
from glue_jobs.core.raw_names import DIGITS, CdcName, RawFile, RawListing, cdc_name
from glue_jobs.core.record import MODIFIED, Input
from glue_jobs.core.snapshot import Snapshot
from glue_jobs.core.state import TableState


def load_due(state: TableState, snapshot: Snapshot, listing: RawListing, now: datetime, limits: Limits) -> Action | None:
    loads = _wanted_loads(state, listing)
    if not state.head or snapshot.is_empty:
        return _first_load(snapshot, loads) if loads else _asked_without_load(state)
    fresh, asked = fresh_loads(snapshot, loads), asks_reload(state, snapshot)
    if not fresh and not asked:
        return None
    if not loads:
        return _asked_without_load(state)
    gone = () if fresh else _gone(state, snapshot, listing)
    check_gone(state, snapshot, gone, written_at(snapshot, loads).strftime(DIGITS))
    reason = "a person asked for it" if asked else f"{len(fresh)} load file(s) are new or changed, first {fresh[0].base}"
    quiet = timedelta(minutes=limits.load_quiet_minutes if state.load_quiet_minutes is None else state.load_quiet_minutes)
    newest = max(file.modified for file in loads)
    if now - newest < quiet and not any(file.modified > newest for file in listing.cdc):
        return Rest(
            "reload-waits",
            f"a reload is due ({reason}), its newest load file is younger than {quiet} and no CDC file follows it",
        )
    return TakeLoad(loads, True, reason, gone)


def _wanted_loads(state: TableState, listing: RawListing) -> tuple[RawFile, ...]:
    return tuple(file for file in listing.loads if not state.skips(file.key))


def asks_reload(state: TableState, snapshot: Snapshot) -> bool:
    """Whether a person wants the table to be loaded again, by request or by a load date that was set back."""
    return state.request == "reload" or state.last_full_load_text < snapshot.last_full_load


def fresh_loads(snapshot: Snapshot, loads: Sequence[RawFile]) -> list[RawFile]:
    """The load files that are new, or have changed, since the generation was loaded."""
    known = {item.key: item.etag for item in snapshot.generation.loads}
    return [file for file in loads if known.get(file.key) != file.etag]


def written_at(snapshot: Snapshot, loads: Sequence[RawFile]) -> datetime:
    """When the first of the load files was written. Of the generation's own files that is told by what it knows of them as well: one that
    was put back is as old as it was."""
    times = [file.modified for file in loads]
    if not fresh_loads(snapshot, loads):
        known = (item.modified for item in snapshot.generation.loads if item.modified)
        times += (datetime.strptime(text, MODIFIED).replace(tzinfo=timezone.utc) for text in known)
    return min(times)


def looks_back(state: TableState, snapshot: Snapshot, listing: RawListing) -> bool:
    """Whether the plan asks for inputs from before `known_from`: of a reload of the same load, or behind a cursor that was moved there."""
    if not snapshot.known_from:
        return False
    if asks_reload(state, snapshot):
        return not fresh_loads(snapshot, _wanted_loads(state, listing))
    return state.cursor != snapshot.cursor and (cdc_name(state.cursor) or CdcName("", "")).digits < snapshot.known_from


def _gone(state: TableState, snapshot: Snapshot, listing: RawListing) -> tuple[Input, ...]:
    """The generation's load files, and the CDC files that were applied since or are awaited, that are not there as they were."""
    there = {file.key: file.etag for file in (*listing.loads, *listing.cdc)}
    cdc = {key: item for key, item in {**snapshot.applied, **snapshot.awaited}.items() if cdc_name(key) and not item.is_blank}
    return tuple(
        item
        for item in (*snapshot.generation.loads, *(cdc[key] for key in sorted(cdc, key=lambda key: (cdc_name(key) or ("", ""), key))))
        if there.get(item.key) != item.etag and not state.skips(item.key)
    )


def check_gone(state: TableState, snapshot: Snapshot, gone: Sequence[Input], cdc_from: str) -> None:
    """Refuse to load the same files again if one of them, or of the CDC files from `cdc_from` on, is among those that are gone: without
    it the table would lose rows, and the files after it would be applied over the gap."""
    needed = [item for item in gone if (cdc_name(item.key) or CdcName(cdc_from, "")).digits >= cdc_from]
    if not needed:
        return
    first = needed[0]
    skip = f"leave it out: `dmslake unblock {state.path.in_shell} --skip-file {first.key.rsplit('/', 1)[-1]}`"
    wish = "remove the attribute Request" if state.request == "reload" else f"set LastFullLoadDate to {snapshot.last_full_load}"
    raise blocked(
        "reload-without-file",
        f"a reload from the load files that the table has was asked for, and {len(needed)} raw file(s) that its rows come from are not"
        " there as they were",
        where=f"s3://{state.path.bucket}/{first.key}",
        expected=f"ETag {first.etag}",
        found="no such object, or another ETag",
        todo=f"reload the table in DMS, or put the file back, or {f'{skip}, or ' if cdc_name(first.key) else ''}keep the rows: {wish}",
    )


def _first_load(snapshot: Snapshot, loads: tuple[RawFile, ...]) -> TakeLoad:
    """The load of a table that has no rows. After an undo of everything, a load other than the undone one is a reload like any: the
    CDC files from before it are not its own."""
    undone = {key: item.etag for key, item in snapshot.awaited.items()}
    fresh = bool(undone) and any(undone.get(file.key) != file.etag for file in loads)
    return TakeLoad(loads, fresh, "the first load")


def _asked_without_load(state: TableState) -> Action | None:
    if state.request != "reload":
        return None
    raise blocked(
        "no-load-files",
        "a reload was asked for, but the raw folder has no load file",
        where=f"s3://{state.path}",
        todo="reload the table in DMS first",
    )
