"""What to do next for one table: a pure function of (state, snapshot, raw listing, now) to one action of a closed set.

Controller and jobs ask this same function, so `--dry-run` shows what a run would do and a job started by hand is safe.
"""

from __future__ import annotations

import hashlib
import json
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from typing import Union

from glue_jobs.core.collation import collation_of, is_same_key
from glue_jobs.core.errors import TableBlocked, blocked
from glue_jobs.core.limits import Limits
from glue_jobs.core.raw_gone import truncate_due
from glue_jobs.core.raw_names import DIGITS, CdcName, RawFile, RawListing, cdc_name, in_order, window_start
from glue_jobs.core.record import MODIFIED, Input
from glue_jobs.core.snapshot import Snapshot
from glue_jobs.core.state import PERSON_ATTRIBUTES, BlockedBy, TableState


@dataclass(frozen=True)
class Rest:
    """Nothing to do. code: up-to-date, inactive, paused, no-files, no-source, reload-waits."""

    code: str
    reason: str


@dataclass(frozen=True)
class Stopped:
    """The table waits for a person. known: it was blocked before and nothing changed since."""

    by: BlockedBy
    known: bool = False


@dataclass(frozen=True)
class Finish:
    """A publish or catalog step was left unfinished; converge and catalog, then plan again."""

    reason: str


@dataclass(frozen=True)
class TakeLoad:
    """Load the table from its load files. reload: it replaces what is there.

    gone: CDC files that were applied since the same load and are not there as they were. All are from before its files were written; which
    of them belong to the load is known when it is read (`check_gone`).
    """

    files: tuple[RawFile, ...]
    reload: bool
    reason: str
    gone: tuple[Input, ...] = ()


@dataclass(frozen=True)
class TakeBatch:
    """Apply CDC files. context: files applied before that are ranked again because `files` came late.

    skipped: files that a person skipped, by the cursor or by name; remaining: pending files beyond this batch. blank: keys of those
    among `files` that are known to have no row of the table.
    """

    files: tuple[RawFile, ...]
    context: tuple[RawFile, ...] = ()
    skipped: tuple[RawFile, ...] = ()
    remaining: int = 0
    remaining_bytes: int = 0
    late: bool = False
    blank: frozenset[str] = frozenset()

    @property
    def size_bytes(self) -> int:
        return sum(file.size for file in self.files + self.context)


@dataclass(frozen=True)
class Rewrite:
    """Rewrite all data files because a person asked: kind is widen, schema, repartition or rekey."""

    kind: str
    reason: str
    value: str = ""


@dataclass(frozen=True)
class Truncate:
    """Empty the table: the source table was emptied, as its raw files tell, and a person wants that to count."""

    reason: str


@dataclass(frozen=True)
class SyncHistory:
    """Bring the history table up to date with the lake table's rows: it begins, or rows changed without it."""

    reason: str


Action = Union[Rest, Stopped, Finish, TakeLoad, TakeBatch, Rewrite, Truncate, SyncHistory]


def plan_table(state: TableState, snapshot: Snapshot, listing: RawListing, now: datetime, limits: Limits) -> Action:
    """The next action for a table. Order: unfinished work, a person's word, blocks, reload, truncate, late files, new files."""
    if state.publishing:
        return Finish(f"publishing change {state.publishing} was not finished")
    if state.catalog_pending:
        return Finish(f"the catalog step of change {state.catalog_pending} was not finished")
    if state.has_source and not state.active:
        return Rest("inactive", f"ActiveFlag is not true; `dmslake activate {state.path.in_shell} --primary-key …`")
    if state.paused:
        return Rest("paused", state.paused)
    if state.blocked and state.blocked.signature in ("", signature(state, listing)):  # made where it is needed: it takes as long as a plan
        return Stopped(state.blocked, known=True)
    try:
        return _plan(state, snapshot, listing, now, limits)
    except TableBlocked as error:
        return Stopped(blocked_by(error, signature(state, listing)))


def blocked_by(error: TableBlocked, mark: str) -> BlockedBy:
    return BlockedBy(error.code, error.message, error.todo, mark)


def signature(state: TableState, listing: RawListing) -> str:
    """A digest of what a block was decided on: a person's attributes and the raw files listed. A change of it means: try again."""
    person = {name: str(state.item.get(name, "")) for name in PERSON_ATTRIBUTES}
    files = sorted((file.key, file.etag) for file in listing.loads + listing.cdc + listing.foreign)
    text = json.dumps([person, files, state.head], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _plan(state: TableState, snapshot: Snapshot, listing: RawListing, now: datetime, limits: Limits) -> Action:
    if not state.has_source:
        return _without_source(state, snapshot)
    if not state.head and not state.is_new and state.request != "reload":
        raise blocked(
            "adopt-or-reload",
            "the item has a cursor or a load date but no Head: another program (the AWS sample?) loaded this table",
            where=str(state.path),
            todo=f"`dmslake adopt {state.path.in_shell} --dry-run` looks whether its files can be taken over as they are; "
            f"`dmslake reload {state.path.in_shell}` loads it anew from the raw files into out_path",
        )
    _check_names(state, listing)
    rewrite = _asked_rewrite(state, snapshot)
    if rewrite is not None:
        return rewrite
    load = _load_due(state, snapshot, listing, now, limits)
    _check_awaited(state, snapshot, listing, loads_only=load is not None)
    if load is not None:
        return load
    emptied = truncate_due(state, snapshot, listing, now)
    if emptied:
        return Truncate(emptied)
    return history_due(state, snapshot) or _batch(state, snapshot, listing, limits)


def history_due(state: TableState, snapshot: Snapshot) -> SyncHistory | None:
    """What must be done for the history table before the next batch; raises where it can't be kept."""
    if not state.keeps_history:
        return None
    if not state.primary_key:
        raise blocked(
            "history-needs-key",
            "a history of row versions can't be kept for a table without a primary key",
            where=str(state.path),
            todo=f"`dmslake activate {state.path.in_shell} --primary-key …`, or set History to 'false'",
        )
    if not state.head or snapshot.is_empty:
        return None  # the load begins it
    if snapshot.history is None:
        return SyncHistory("History is 'true' and there is no history table yet")
    return SyncHistory("rows changed without the history table") if snapshot.history.is_stale else None


def _without_source(state: TableState, snapshot: Snapshot) -> Action:
    """A person's word is all that a table has that DMS does not write. What ActiveFlag says is no matter: nothing is kept up."""
    asked = _asked_rewrite(state, snapshot) or history_due(state, snapshot)
    if asked is not None:
        return asked
    lacking = f"; its Request {state.request!r} needs raw files, and waits for ever" if state.request else ""
    return Rest("no-source", f"the table has no DMS source: it is changed by commands only{lacking}")


def _check_names(state: TableState, listing: RawListing) -> None:
    foreign = [file for file in listing.foreign if not _is_skipped(state, file)]
    if foreign:
        raise blocked(
            "foreign-raw-file",
            f"{len(foreign)} file(s) with a name that DMS does not give",
            where=f"s3://{state.path.bucket}/{foreign[0].key}",
            expected="LOAD00000001.parquet or 20201117-153046033.parquet (also .csv, .csv.gz); CDC_TXN-20201117153046033.csv in CdcPath",
            found=foreign[0].base,
            todo=f"remove the file, or `dmslake unblock {state.path.in_shell} --skip-file {shlex.quote(foreign[0].base)}`",
        )


def _is_skipped(state: TableState, file: RawFile) -> bool:
    return file.base in state.skip_files or file.key in state.skip_files


def _asked_rewrite(state: TableState, snapshot: Snapshot) -> Rewrite | None:
    """A rewrite that an item's Request or a changed PrimaryKey asks for; raises where the item contradicts the table."""
    if not state.head or snapshot.is_empty:
        return None
    if state.request == "schema-rename":
        return Rewrite("schema", f"rename {state.request_value}", state.request_value)
    if state.request == "repartition":
        return Rewrite("repartition", "a person asked for the layout of PartitionKey")
    if state.partitioning != snapshot.partitioning and state.request != "reload":
        raise blocked(
            "partition-key-changed",
            "PartitionKey was changed after the table was loaded; layouts are never mixed",
            where=str(state.path),
            todo=f"`dmslake repartition {state.path.in_shell}` rewrites the table in the new layout, or set PartitionKey back",
        )
    if not is_same_key(state.primary_key, snapshot.primary_key) and state.request != "reload":
        if state.primary_key != snapshot.primary_key:
            return Rewrite("rekey", f"PrimaryKey was changed to {','.join(state.primary_key) or 'null'}")
        return Rewrite("rekey", f"KeyCollation was changed to {collation_of(state.primary_key) or 'null'}")
    return None


def _load_due(state: TableState, snapshot: Snapshot, listing: RawListing, now: datetime, limits: Limits) -> Action | None:
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
    return tuple(file for file in listing.loads if not _is_skipped(state, file))


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
    skipped = set(state.skip_files)
    return tuple(
        item
        for item in (*snapshot.generation.loads, *(cdc[key] for key in sorted(cdc, key=lambda key: (cdc_name(key) or ("", ""), key))))
        if there.get(item.key) != item.etag and not {item.key, item.key.rsplit("/", 1)[-1]} & skipped
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


def _check_awaited(state: TableState, snapshot: Snapshot, listing: RawListing, *, loads_only: bool) -> None:
    """Refuse to go on without a file that an undo made pending again: leaving it out in silence would lose its rows.

    loads_only: a load comes first; it may bring what the awaited CDC files have, and a load file that was written anew is fine.
    """
    if not snapshot.awaited or state.request == "reload":
        return
    listed = {file.key: file.etag for file in (*listing.loads, *listing.cdc)}
    cursor = cdc_name(state.cursor)
    for key, item in sorted(snapshot.awaited.items()):
        name = cdc_name(key)
        base = key.rsplit("/", 1)[-1]
        passed_by_hand = name is not None and state.cursor != snapshot.cursor and not _is_ahead(name, cursor)
        fine = listed.get(key) == item.etag or (name is None and key in listed)
        if fine or passed_by_hand or (loads_only and name is not None) or {key, base} & set(state.skip_files):
            continue
        raise blocked(
            "awaited-file-gone",
            "a rollback made a raw file pending again, and it is not there as it was",
            where=f"s3://{state.path.bucket}/{key}",
            expected=f"ETag {item.etag}",
            found=f"ETag {listed[key]}" if key in listed else "no such object",
            todo=f"put it back, or `dmslake reapply {state.path.in_shell}`, or leave it out: "
            f"`dmslake unblock {state.path.in_shell} --skip-file {base}`",
        )


def _batch(state: TableState, snapshot: Snapshot, listing: RawListing, limits: Limits) -> Action:
    pending, late, passed = _sort_out(state, snapshot, listing.cdc, limits)
    _check_replay(state, snapshot, listing)
    behind = [file for file in late if file.key not in listing.blank]
    if behind:
        return _late_batch(state, snapshot, listing, behind, passed)
    waiting = in_order((*late, *pending)) if late else tuple(pending)
    due = sum(file.key not in listing.blank for file in waiting)
    if not due and (snapshot.is_empty or len(waiting) < max(1, limits.batch_files)):
        return _no_batch(snapshot, listing, len(waiting))
    files: list[RawFile] = []
    count = size = 0
    for file in waiting:
        if file.key not in listing.blank:
            if count and (size + file.size > limits.batch_bytes or count >= limits.batch_files):
                break
            count, size = count + 1, size + file.size
        files.append(file)
    rest = waiting[len(files) :]
    blank = listing.blank.intersection(file.key for file in files)
    return TakeBatch(tuple(files), (), tuple(passed), len(rest), sum(file.size for file in rest), blank=blank)


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

    A cursor that a person moved on skips the files in between; one that was moved back makes the files after it pending again.
    """
    hours = limits.late_window_hours if state.late_window_hours is None else state.late_window_hours
    cursor, old_cursor = cdc_name(state.cursor), cdc_name(snapshot.cursor)
    oldest = window_start(state.cursor, hours) or ""
    moved = bool(state.head) and state.cursor != snapshot.cursor
    pending: list[RawFile] = []
    late: list[RawFile] = []
    passed: list[RawFile] = []
    for file in cdc:
        name = cdc_name(file.key)
        if name is None or name.digits < snapshot.generation.cdc_from:
            continue
        taken = _same(snapshot.applied.get(file.key), file) or _same(snapshot.skipped.get(file.key), file)
        ahead = _is_ahead(name, cursor)
        if _is_skipped(state, file):
            if not taken:
                passed.append(file)
        elif ahead and (moved or not taken):
            pending.append(file)
        elif not ahead and not taken:
            if moved and _is_ahead(name, old_cursor):
                passed.append(file)
            elif name.digits >= max(oldest, snapshot.known_from) or file.key in snapshot.awaited:  # awaited: also if the window shrank
                late.append(file)
    return pending, late, passed


def _check_replay(state: TableState, snapshot: Snapshot, listing: RawListing) -> None:
    """Refuse a cursor that was moved back over a file that raw has no more, and that had rows.

    Without it the files before it would put older rows in the place of those it brought.
    """
    if state.cursor == snapshot.cursor:
        return
    cursor, listed = cdc_name(state.cursor), {file.key for file in listing.cdc}
    for key, item in sorted(snapshot.applied.items()):
        name = cdc_name(key)
        if name is None or not _is_ahead(name, cursor) or key in listed or item.is_blank or {name.base, key} & set(state.skip_files):
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


def _same(taken: Input | None, file: RawFile) -> bool:
    return taken is not None and taken.etag == file.etag


def _is_ahead(name: CdcName, cursor: CdcName | None) -> bool:
    return cursor is None or name > cursor


def _late_batch(state: TableState, snapshot: Snapshot, listing: RawListing, late: list[RawFile], passed: list[RawFile]) -> Action:
    """The late files, with every applied file of the generation that was written after the first of them and up to the cursor."""
    first, late_keys = cdc_name(late[0].key), {file.key for file in late}
    listed = {file.key: file for file in listing.cdc}
    context: list[RawFile] = []
    for key, item in snapshot.applied.items():
        name = cdc_name(key)
        if name is None or first is None or name < first or key in late_keys:
            continue
        if item.is_blank:
            continue
        if key not in listed or not _same(item, listed[key]):
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
    return TakeBatch(tuple(late), tuple(context), tuple(passed), late=True)
