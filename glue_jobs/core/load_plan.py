"""Whether a table's load files are to be loaded: for the first time, or anew. Pure."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from datetime import datetime, timedelta, timezone

from glue_jobs.core.actions import Action, Rest, TakeLoad
from glue_jobs.core.batch_plan import passed_by_cursor
from glue_jobs.core.errors import blocked
from glue_jobs.core.limits import Limits
from glue_jobs.core.raw_names import DIGITS, WRITTEN_WITHIN, CdcName, RawFile, RawListing, cdc_name, is_ahead, is_transactions
from glue_jobs.core.record import MODIFIED, Generation, Input
from glue_jobs.core.snapshot import Snapshot, loads_again
from glue_jobs.core.state import TableState
from glue_jobs.core.work import input_of

_CLEARLY = WRITTEN_WITHIN  # older by its name than the load


def load_due(state: TableState, snapshot: Snapshot, listing: RawListing, now: datetime, limits: Limits) -> Action | None:
    _check_skipped(state, snapshot, listing)
    loads, left_out = _wanted_loads(state, snapshot, listing), left_out_loads(state, snapshot, listing)
    if not loads and (not state.head or snapshot.is_empty):
        return _asked_without_load(state, listing)
    fresh, asked = fresh_loads(snapshot, loads), asks_reload(state, snapshot)
    if not state.head or snapshot.is_empty:
        is_other = _is_other_load(snapshot, loads)
        if is_other and not asked:
            _check_no_copy(state, snapshot, listing, loads, limits)
        return TakeLoad(loads, is_other, "the first load", left_out=left_out, cdc=listing.cdc)
    if not fresh and not asked:
        return None
    if not loads:
        return _asked_without_load(state, listing)
    reason = "a person asked for it" if asked else f"{len(fresh)} load file(s) are new or changed, first {fresh[0].base}"
    quiet = timedelta(minutes=limits.load_quiet_minutes if state.load_quiet_minutes is None else state.load_quiet_minutes)
    newest = max(file.modified for file in loads)
    margin = timedelta(minutes=limits.load_start_margin_minutes)
    if now - newest < quiet and not is_followed(min(file.modified for file in fresh or loads), newest, listing.cdc, margin):
        return Rest(
            "reload-waits",
            f"a reload is due ({reason}), its newest load file is younger than {quiet} and no CDC file tells that it is over",
        )
    if not asked:
        _check_no_copy(state, snapshot, listing, loads, limits)
    is_again = _is_again(snapshot, loads)
    gone = _gone(state, snapshot, listing) if is_again else ()
    check_gone(state, snapshot, gone, written_at(snapshot, loads).strftime(DIGITS))
    passed = passed_by_cursor(state, snapshot, listing.cdc, limits) if is_again else ()
    return TakeLoad(loads, True, reason, gone, left_out, passed, listing.cdc)


def is_followed(first: datetime, newest: datetime, cdc: Sequence[RawFile], margin: timedelta = WRITTEN_WITHIN) -> bool:
    """Whether a CDC file came after the load files, of which the first and the newest are of these times: a task brings a table's changes
    when it has loaded it, so the load is over. Not where a CDC file was open while a load file was written: it is another task's.
    Transaction files say nothing: other tables' changes are in them too. margin: a task's batch interval is shorter, as a person says."""
    until, follows = newest.strftime(DIGITS), False
    for file in cdc:
        if file.modified <= first or is_transactions(file.key):
            continue
        name = cdc_name(file.key)
        if name and name.digits < until and file.modified <= name.time + max(WRITTEN_WITHIN, margin):  # not a copy
            return False
        follows = follows or file.modified > newest
    return follows


def left_out_loads(state: TableState, snapshot: Snapshot, listing: RawListing) -> tuple[Input, ...]:
    """The load files that a person leaves out, as they were when the table first met them."""
    found = {file.key: input_of(file) for file in listing.loads if state.skips(file.key)}
    found.update((item.key, item) for item in snapshot.generation.left_out if state.skips(item.key))
    return tuple(item for _, item in sorted(found.items()))


def leaves_out(state: TableState, generation: Generation, key: str, etag: str) -> bool:
    """Whether a person leaves the raw file out. DMS gives the same names to each load: the name of a load file means the one that the table
    first met after it was said; only a whole key means whatever stands there."""
    if not state.skips(key):
        return False
    whole = {key, state.path.raw.key + key.rsplit("/", 1)[-1]}  # the latter of a load in folders of its own
    then = next((item for item in generation.left_out if item.key == key), None)
    return then is None or then.etag == etag or not whole.isdisjoint(state.skip_files)


def _check_skipped(state: TableState, snapshot: Snapshot, listing: RawListing) -> None:
    """Refuse to leave out more than a person named: a load in folders of its own has the same names in each. Not where it was loaded so."""
    known = {(item.key, item.etag) for item in (*snapshot.generation.loads, *snapshot.generation.left_out)}
    for name in state.skip_files:
        keys = [file.key for file in listing.loads if file.base == name]
        if len(keys) > 1 and any(file.base == name and (file.key, file.etag) not in known for file in listing.loads):
            start = state.path.raw.key
            first = keys[0] if keys[0] == start + name else keys[0][len(start) :]
            raise blocked(
                "skip-unclear",
                f"SkipFiles has the name {name}, and {len(keys)} load files have it, each in a folder of its own",
                where=str(state.path),
                expected="the path of one file below the table's folder",
                found=", ".join(keys[:3]) + (" …" if len(keys) > 3 else ""),
                todo=f"for each file to leave out: `dmslake unblock {state.path.in_shell} --skip-file {shlex.quote(first)}`",
            )


def _wanted_loads(state: TableState, snapshot: Snapshot, listing: RawListing) -> tuple[RawFile, ...]:
    """Not those that a person leaves out."""
    return tuple(file for file in listing.loads if not leaves_out(state, snapshot.generation, file.key, file.etag))


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
    """Whether the plan asks for inputs from before `known_from`: of a reload of the same load, behind a cursor that was moved there, or
    with a file that is pending again from that time: those after it are ranked with it."""
    if not snapshot.known_from:
        return False
    loads = _wanted_loads(state, snapshot, listing)
    if asks_reload(state, snapshot) or fresh_loads(snapshot, loads):
        return _is_again(snapshot, loads)
    names = late_awaited(state, snapshot)
    if state.cursor != snapshot.cursor:
        names.append(cdc_name(state.cursor) or CdcName("", ""))
    return any(name.digits < snapshot.known_from for name in names)


def late_awaited(state: TableState, snapshot: Snapshot) -> list[CdcName]:
    """The CDC files that are pending again and not after the cursor, by their names."""
    names = ((cdc_name(key), key) for key in snapshot.awaited)
    cursor = cdc_name(state.cursor)
    return [name for name, key in names if name and not is_ahead(name, cursor) and not state.skips(key)]


def wants_all(state: TableState, snapshot: Snapshot, listing: RawListing) -> bool:
    """Whether a load is due that needs the raw files from long ago, which the listing has not: those on which its changes are applied
    again must all be there."""
    loads = _wanted_loads(state, snapshot, listing)
    return not (listing.is_whole or snapshot.is_empty) and bool(fresh_loads(snapshot, loads)) and _is_again(snapshot, loads)


def _is_again(snapshot: Snapshot, loads: Sequence[RawFile]) -> bool:
    return loads_again(snapshot.generation.loads, [input_of(file) for file in loads])


def _check_no_copy(state: TableState, snapshot: Snapshot, listing: RawListing, loads: Sequence[RawFile], limits: Limits) -> None:
    """Refuse a load where CDC files that the table has, or had before an undo, were written with it and are older by their names: the raw
    folder was copied, or written anew in place, its load is no other one, and the changes from before the copy belong to it. Asked only
    where no commit time tells when the load began."""
    if snapshot.timestamp_column or state.timestamp_column:
        return
    margin = timedelta(minutes=limits.load_start_margin_minutes)
    since = written_at(snapshot, loads) - margin
    old = (since - max(_CLEARLY, margin)).strftime(DIGITS)
    young = (file for file in listing.cdc if file.modified >= since and (file.key in snapshot.applied or file.key in snapshot.awaited))
    found = next((file for file in young if (name := cdc_name(file.key)) and name.digits < old), None)
    if found is None:
        return
    path = state.path.in_shell
    # Of a table that was rolled back to nothing the rows are those of the changes that were undone.
    keep = f"`dmslake reapply {path}`" if snapshot.is_empty else f"`dmslake unblock {path} --skip-file NAME` for each new load file"
    raise blocked(
        "reload-unclear",
        "load files are new, and so is a CDC file that the table has or had and that is older by its name: a new load, or copied files",
        where=f"s3://{state.path.bucket}/{found.key}",
        expected="CDC files from before a new load as old as their names",
        found=f"written {found.modified:%Y-%m-%d %H:%M:%S}",
        todo=f"if DMS loaded it anew, `dmslake reload {path}`; if the raw files were written anew, as by an encryption, keep the rows:"
        f" {keep}; if the folder was copied while the table was active already, `dmslake forget {path} --purge`, and activate it once the"
        " copy is whole",
    )


def _gone(state: TableState, snapshot: Snapshot, listing: RawListing) -> tuple[Input, ...]:
    """The generation's load files, and the CDC files that were applied since or are awaited, that are no longer there. One that was
    written again is there: a load takes what the raw files are now."""
    there = {file.key for file in (*listing.loads, *listing.cdc)}
    cdc = [item for item in {**snapshot.applied, **snapshot.awaited}.values() if cdc_name(item.key) and not item.is_blank]
    cdc.sort(key=lambda item: (cdc_name(item.key) or ("", ""), item.key))
    return tuple(
        item
        for item in (*snapshot.generation.loads, *cdc)
        if item.key not in there and not leaves_out(state, snapshot.generation, item.key, item.etag)
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
    why = "a reload from the load files that the table has was asked for"
    if not asks_reload(state, snapshot):
        why = "some load files are new, others are those that the table has"
        wish = f"leave out the load files that are new: `dmslake unblock {state.path.in_shell} --skip-file NAME`; if DMS loaded the table"
        wish += " anew, remove the load files of before, or leave them out"
    raise blocked(
        "reload-without-file",
        f"{why}, and {len(needed)} raw file(s) that its rows come from are gone",
        where=f"s3://{state.path.bucket}/{first.key}",
        expected="the file",
        found="no such object",
        todo=f"reload the table in DMS, or put the file back, or {f'{skip}, or ' if cdc_name(first.key) else ''}keep the rows: {wish}",
    )


def _is_other_load(snapshot: Snapshot, loads: Sequence[RawFile]) -> bool:
    """Of a table that has no rows: after an undo of everything, a load other than the undone one is a reload like any, and the CDC files
    from before it are not its own."""
    undone = {key: item.etag for key, item in snapshot.awaited.items()}
    return bool(undone) and any(undone.get(file.key) != file.etag for file in loads)


def _asked_without_load(state: TableState, listing: RawListing) -> Action | None:
    if state.request != "reload":
        return None
    raise blocked(
        "no-load-files",
        f"a reload was asked for, but the raw folder has no load file{' that SkipFiles does not leave out' if listing.loads else ''}",
        where=f"s3://{state.path}",
        todo="take their names from SkipFiles" if listing.loads else "reload the table in DMS first",
    )
