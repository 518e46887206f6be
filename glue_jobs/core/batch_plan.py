"""Which CDC files are applied next: those after the cursor, or those that came late with what was applied after them. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

from glue_jobs.core.actions import Action, Rest, TakeBatch
from glue_jobs.core.errors import blocked
from glue_jobs.core.limits import Limits
from glue_jobs.core.raw_names import CdcName, RawFile, RawListing, cdc_name, in_order, is_ahead, window_start
from glue_jobs.core.record import Input
from glue_jobs.core.snapshot import Snapshot
from glue_jobs.core.state import TableState

_AHEAD = timedelta(days=7)  # of a name: more than any zone, and than a made-up feed runs ahead


def next_batch(state: TableState, snapshot: Snapshot, listing: RawListing, limits: Limits) -> Action:
    pending, late, passed = _sort_out(state, snapshot, listing.cdc, limits)
    _check_not_ahead(state, pending)
    for file in late:
        _check_once(state, snapshot, file)
    _check_replay(state, snapshot, listing)
    _check_replayable(state, snapshot, pending)
    behind = [file for file in late if file.key not in listing.blank]
    if behind:
        some = _first_of(behind, listing, limits)
        context = _context_of(state, snapshot, listing, some, behind)
        rest = (*behind[len(some) :], *pending)
        return TakeBatch(some, context, tuple(passed), len(rest), sum(file.size for file in rest), late=True)
    waiting = in_order((*late, *pending)) if late else tuple(pending)
    due = sum(file.key not in listing.blank for file in waiting)
    if not due and (snapshot.is_empty or len(waiting) < max(1, limits.batch_files)):
        return _no_batch(snapshot, listing, len(waiting))
    files = _first_of(waiting, listing, limits)
    rest = waiting[len(files) :]
    blank = listing.blank.intersection(file.key for file in files)
    return TakeBatch(files, (), tuple(passed), len(rest), sum(file.size for file in rest), blank=blank)


def _first_of(waiting: Sequence[RawFile], listing: RawListing, limits: Limits) -> tuple[RawFile, ...]:
    """As many of the files as one change takes, one at least; transaction files without a row of the table do not count."""
    files: list[RawFile] = []
    count = size = 0
    for file in waiting:
        if file.key not in listing.blank:
            if count and (size + file.size > limits.batch_bytes or count >= limits.batch_files):
                break
            count, size = count + 1, size + file.size
        files.append(file)
    return tuple(files)


def _check_not_ahead(state: TableState, pending: Sequence[RawFile]) -> None:
    """Refuse a file that is named after a time to come: as the cursor it would put all that DMS writes until then behind it, unseen. By
    S3's clock alone: a file was begun before it was written, whatever the zone of its name."""
    file = max(pending, key=lambda file: cdc_name(file.key) or CdcName("", ""), default=None)
    name = cdc_name(file.key) if file else None
    if file is None or name is None or name.time - file.modified <= _AHEAD:
        return
    raise blocked(
        "cdc-file-ahead",
        f"the CDC file {file.base} has a name of a time to come: all that DMS writes until then would be taken for older, and passed over",
        where=f"s3://{state.path.bucket}/{file.key}",
        expected=f"a name from before {file.modified:%Y-%m-%d %H:%M:%S} (UTC), when it was written",
        found=f"{name.time:%Y-%m-%d %H:%M:%S}",
        todo=f"move it away, or leave it out: `dmslake unblock {state.path.in_shell} --skip-file {file.base}`",
    )


def passed_by_cursor(state: TableState, snapshot: Snapshot, cdc: Sequence[RawFile], limits: Limits) -> tuple[RawFile, ...]:
    """The CDC files that a person skipped by moving the cursor on, and that no change has noted yet."""
    _, _, passed = _sort_out(state, snapshot, cdc, limits)
    return tuple(file for file in passed if not state.skips(file.key))


def _no_batch(snapshot: Snapshot, listing: RawListing, blank: int) -> Rest:
    """Why there is no batch. Transaction files without a row of the table wait for the next one that has some: so there is no change
    without a row in every run; when there are as many as a batch takes, they are one."""
    none = f"no row is pending, {blank} transaction file(s) have none of the table" if blank else "no file is pending"
    if not snapshot.change and blank == len(listing.cdc):
        return Rest("no-files", f"the raw folder has no load file; {none}" if blank else "the raw folder has no load file and no CDC file")
    return Rest("up-to-date", none)


def _sort_out(
    state: TableState, snapshot: Snapshot, cdc: Sequence[RawFile], limits: Limits
) -> tuple[list[RawFile], list[RawFile], list[RawFile]]:
    """(pending, late, skipped by a person) among the CDC files of this generation.

    A cursor that a person moved on skips the files in between; one that was moved back makes the files after it pending again, up to where
    it was: of those beyond, which a reload's cursor has yet to reach, some may be left out for good.
    """
    hours = state.window_hours(limits.late_window_hours)
    cursor, old_cursor = cdc_name(state.cursor), cdc_name(snapshot.cursor)
    moved = bool(state.head) and state.cursor != snapshot.cursor
    oldest = late_from(state, snapshot, hours)
    pending: list[RawFile] = []
    late: list[RawFile] = []
    passed: list[RawFile] = []
    for file in cdc:
        name = cdc_name(file.key)
        if name is None or name.digits < snapshot.generation.cdc_from:
            continue
        taken = _same(snapshot.applied.get(file.key), file) or _same(snapshot.skipped.get(file.key), file)
        ahead = is_ahead(name, cursor)
        if state.skips(file.key):
            if not taken:
                passed.append(file)
        elif ahead and (not taken or (moved and not is_ahead(name, old_cursor))):
            pending.append(file)
        elif not ahead and not taken:
            if moved and is_ahead(name, old_cursor):
                passed.append(file)
            elif name.digits >= oldest or file.key in snapshot.awaited:  # awaited: also if the window shrank
                late.append(file)
    return pending, late, passed


def late_from(state: TableState, snapshot: Snapshot, hours: float) -> str:
    """The digits from which on a CDC file behind the cursor is taken as a late one. A person who moves the cursor on passes over what is
    pending, not over what came late before that and nobody has seen: so the earlier of both cursors counts."""
    cursors = {state.cursor, snapshot.cursor} if state.head else {state.cursor}
    return max(min(window_start(each, hours) or "" for each in cursors), snapshot.known_from)


def _check_once(state: TableState, snapshot: Snapshot, file: RawFile) -> None:
    """Refuse to apply the inserts of a file again, because it was written again, where no key tells that they are the same rows."""
    before = snapshot.applied.get(file.key)
    if state.primary_key or before is None or before.is_blank:
        return
    raise blocked(
        "file-written-again",
        "a CDC file that was applied has changed, and the table has no primary key: its rows would be inserted twice",
        where=f"s3://{state.path.bucket}/{file.key}",
        expected=f"ETag {before.etag}",
        found=f"ETag {file.etag}",
        todo=f"if it has other rows, `dmslake reload {state.path.in_shell}`; if it was only copied, keep the rows:"
        f" `dmslake unblock {state.path.in_shell} --skip-file {file.base}` (a reload would leave it out, too)",
    )


def _check_replay(state: TableState, snapshot: Snapshot, listing: RawListing) -> None:
    """Refuse a cursor that was moved back over a file that raw has no more, and that had rows.

    Without it the files before it would put older rows in the place of those it brought.
    """
    if state.cursor == snapshot.cursor:
        return
    cursor, listed = cdc_name(state.cursor), {file.key for file in listing.cdc}
    for key, item in sorted(snapshot.applied.items()):
        name = cdc_name(key)
        if name is None or not is_ahead(name, cursor) or key in listed or item.is_blank or state.skips(key):
            continue
        raise blocked(
            "replay-without-file",
            "the cursor was moved back, and a file that was applied after it is no longer there",
            where=f"s3://{state.path.bucket}/{key}",
            expected="every file that was applied after the cursor",
            found="no such object",
            todo=f"put the file back, or set LastIncrementalFile to {snapshot.cursor} again, or replay without the file: "
            f"`dmslake unblock {state.path.in_shell} --skip-file {name.base}`",
        )


def _check_replayable(state: TableState, snapshot: Snapshot, pending: Sequence[RawFile]) -> None:
    """Refuse a cursor that was moved back where no key tells that the rows of the files after it are there already."""
    again = [] if state.primary_key else [file for file in pending if _brought_rows(snapshot, file)]
    if not again:
        return
    raise blocked(
        "replay-without-key",
        "the cursor was moved back, and the table has no primary key: the rows of the files after it would be inserted twice",
        where=f"s3://{state.path.bucket}/{again[0].key}",
        expected=f"LastIncrementalFile {snapshot.cursor}, as the table's last change has it",
        found=f"{state.cursor}, and {len(again)} file(s) after it that were applied",
        todo=f"set LastIncrementalFile to {snapshot.cursor} again; to have the files applied anew, go back to the change before they came: "
        f"`dmslake rollback {state.path.in_shell} --to CHANGE --resume`",
    )


def _brought_rows(snapshot: Snapshot, file: RawFile) -> bool:
    before = snapshot.applied.get(file.key)
    return before is not None and not before.is_blank


def _same(taken: Input | None, file: RawFile) -> bool:
    return taken is not None and taken.matches(file.etag)


def _context_of(
    state: TableState, snapshot: Snapshot, listing: RawListing, late: Sequence[RawFile], behind: Sequence[RawFile]
) -> tuple[RawFile, ...]:
    """Every applied file of the generation that was written after the first of the late ones and up to the cursor, those aside. behind: all
    that are late: one that was applied and is written anew, and waits for the next change, has newer rows all the same."""
    first, late_keys, waiting = cdc_name(late[0].key), {file.key for file in late}, {file.key for file in behind[len(late) :]}
    listed = {file.key: file for file in listing.cdc}
    context: list[RawFile] = []
    for key, item in snapshot.applied.items():
        name = cdc_name(key)
        if name is None or first is None or name < first or key in late_keys:
            continue
        if item.is_blank:
            continue
        if key not in listed or not (_same(item, listed[key]) or key in waiting):
            raise blocked(
                "late-file-without-context",
                f"{late[0].base} came late, and a file that was applied after it is no longer there as it was",
                where=f"s3://{state.path.bucket}/{key}",
                expected=f"ETag {item.etag}",
                found=f"ETag {listed[key].etag}" if key in listed else "no such object",
                todo="put the file back, or reload the table in DMS, or leave out the late one: "
                f"`dmslake unblock {state.path.in_shell} --skip-file {late[0].base}`",
            )
        context.append(listed[key])
    context.sort(key=lambda file: (cdc_name(file.key) or CdcName("", ""), file.key))
    return tuple(context)
