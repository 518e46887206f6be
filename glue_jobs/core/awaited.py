"""Raw files without which a table must not go on: those that are pending again, and those that a run had listed and could not read. Pure.

The latter stand in the block that they caused, in no change record: it is all that is known of them, so it stays until they are there, or
a person does without them.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import replace

from glue_jobs.core.actions import Action, TakeBatch, TakeLoad
from glue_jobs.core.errors import TableBlocked, blocked
from glue_jobs.core.load_plan import leaves_out
from glue_jobs.core.raw_names import RawFile, RawListing, cdc_name, is_ahead, load_number
from glue_jobs.core.record import ChangeRecord, Input
from glue_jobs.core.snapshot import Snapshot
from glue_jobs.core.state import BlockedBy, TableState

FILE_GONE = "raw-file-gone"
MOST_NAMED = 200  # files that a block names: an item is no place for long lists
_BEHIND = " "  # between the mark in a block's signature, which has no space, and the files
_BEGIN_ANEW = frozenset({"full-load", "adopt"})  # kinds of changes after which no load file of before is needed


def check_pending_again(state: TableState, snapshot: Snapshot, listing: RawListing, *, loads_only: bool) -> None:
    """Refuse to go on without a file that is pending again: leaving it out in silence would lose its rows. loads_only: a load comes first,
    as in the next one."""
    item = next(_missing(state, snapshot, listing, snapshot.awaited, loads_only=loads_only), None)
    if item is None or state.request == "reload":
        return
    found = next((file.etag for file in (*listing.loads, *listing.cdc) if file.key == item.key), None)
    raise blocked(
        "awaited-file-gone",
        "a raw file was applied once and is pending again (by a rollback, a reload or a cursor that was moved back), and it is not"
        " there as it was",
        where=f"s3://{state.path.bucket}/{item.key}",
        expected=f"ETag {item.etag}" if item.etag else "the file",
        found=f"ETag {found}" if found is not None else "no such object",
        todo=f"put it back, or go to rows that have it (`dmslake reapply {state.path.in_shell}` where a rollback undid them, else"
        f" `dmslake rollback {state.path.in_shell} --to CHANGE` with the one before in `dmslake history`), or leave it out: "
        f"`dmslake unblock {state.path.in_shell} --skip-file {item.key.rsplit('/', 1)[-1]}`",
    )


def check_unread(state: TableState, snapshot: Snapshot, listing: RawListing, *, loads_only: bool) -> None:
    """The same for a file that the item's block waits for."""
    item = next(_missing(state, snapshot, listing, awaited_by(state, snapshot), loads_only=loads_only), None)
    if item is not None:
        raise gone_before_read(state, item)


def gone_before_read(state: TableState, item: Input) -> TableBlocked:
    """The refusal to go on without a raw file that a run had listed and could not read."""
    return blocked(
        FILE_GONE,
        "a raw file was listed, and was gone before it was read: the table waits for it",
        where=f"s3://{state.path.bucket}/{item.key}",
        expected="the file",
        found="no such object",
        todo="put it back, or reload the table in DMS, or leave it out: "
        f"`dmslake unblock {state.path.in_shell} --skip-file {shlex.quote(item.key.rsplit('/', 1)[-1])}`",
    )


def _missing(
    state: TableState, snapshot: Snapshot, listing: RawListing, awaited: Mapping[str, Input], *, loads_only: bool
) -> Iterator[Input]:
    """The files among `awaited` that are not there as they were, and that a person neither leaves out nor passed over by the cursor.

    loads_only: a load comes first; it may bring what the awaited CDC files have, and a load file that was written anew is fine. So is one
    that is gone where none of the awaited load files is there as it was: the load is another one.
    """
    listed = {file.key: file.etag for file in (*listing.loads, *listing.cdc)} if awaited else {}
    cursor = cdc_name(state.cursor)
    is_other_load = loads_only and not any(listed.get(key) == item.etag for key, item in awaited.items() if load_number(key))
    for key, item in sorted(awaited.items()):
        name = cdc_name(key)
        passed_by_hand = name is not None and state.cursor != snapshot.cursor and not is_ahead(name, cursor)
        fine = item.is_blank or item.matches(listed.get(key)) or (name is None and (key in listed or is_other_load))
        if not (fine or passed_by_hand or (loads_only and name is not None) or leaves_out(state, snapshot.generation, key, item.etag)):
            yield item


def awaited_by(state: TableState, snapshot: Snapshot) -> dict[str, Input]:
    """The raw files that the item's block waits for, those of an earlier generation left out. etag: '' for any; of a load, of which a file
    that was still there is among them, that of then: so the next load is told from it."""
    text = state.blocked.signature.partition(_BEHIND)[2] if state.blocked else ""
    try:
        found = json.loads(text) if text else {}
    except ValueError:  # a person wrote it
        found = {}
    items = {str(key): Input(str(key), str(etag)) for key, etag in found.items()} if isinstance(found, dict) else {}
    return {key: item for key, item in items.items() if (name := cdc_name(key)) is None or name.digits >= snapshot.generation.cdc_from}


def still_awaited(state: TableState, snapshot: Snapshot, listing: RawListing) -> dict[str, Input]:
    """The same, for as long as one of them is missing."""
    awaited = awaited_by(state, snapshot)
    return awaited if any(_missing(state, snapshot, listing, awaited, loads_only=False)) else {}


def awaited_after(awaited: Mapping[str, Input], record: ChangeRecord) -> bool:
    """Whether the block that waits for these files must outlive the change. A table that begins anew misses only CDC files that come after
    that, and none of a source that was emptied."""
    if record.kind not in _BEGIN_ANEW:
        return bool(awaited) and record.kind != "truncate"
    names = [name for name in map(cdc_name, awaited) if name and name.digits >= record.generation.cdc_from]
    return any(is_ahead(name, cdc_name(record.cursor_after)) for name in names)


def waiting_for(by: BlockedBy, awaited: Mapping[str, Input]) -> BlockedBy:
    """The block, which waits for these files: they stand in its signature behind a mark that no plan has, since the block may end without
    another raw file, as by a reload that is old enough. Where they are more than it may name, only a person's word ends it."""
    if not awaited:
        return by
    named = {key: item.etag for key, item in list(awaited.items())[:MOST_NAMED]}
    mark = "awaits" if len(named) == len(awaited) else ""
    return replace(by, signature=f"{mark}{_BEHIND}{json.dumps(named, ensure_ascii=False)}")


BEFORE_PLAN = "before-plan"  # the signature of a block that was found before there was a plan: no plan has it


def mark_in(by: BlockedBy) -> str:
    """What the block was decided on, without the files that it waits for."""
    return by.signature.partition(_BEHIND)[0]


def vanished(state: TableState, snapshot: Snapshot, action: Action, before: RawListing, after: RawListing) -> dict[str, Input]:
    """The raw files that no run has read and that only the first of two listings has, from which `action` was planned: as `awaited_by`
    has them. Another plan would not miss them: it knows of pending files by its listing alone."""
    if not isinstance(action, (TakeLoad, TakeBatch)):
        return {}
    there = {file.key for file in (*after.loads, *after.cdc)}
    pending = (file for file in before.cdc if _is_unread(state, snapshot, file))
    gone = sorted({file.key for file in (*action.files, *pending)} - there - before.blank)
    loads = {file.key: file.etag for file in action.files if load_number(file.key)}
    still_there = [key for key in loads if key in there][:1] if any(key in loads for key in gone) else []
    return {key: Input(key, loads.get(key, "")) for key in (*gone, *still_there)}


def _is_unread(state: TableState, snapshot: Snapshot, file: RawFile) -> bool:
    """Whether the CDC file waits for its turn after the cursor."""
    name = cdc_name(file.key)
    is_pending = name is not None and name.digits >= snapshot.generation.cdc_from and is_ahead(name, cdc_name(state.cursor))
    return is_pending and not (file.key in snapshot.applied or file.key in snapshot.skipped or state.skips(file.key))
