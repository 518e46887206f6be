"""What to do next for one table: a pure function of (state, snapshot, raw listing, now) to one action of a closed set.

Controller and jobs ask this same function, so `--dry-run` shows what a run would do and a job started by hand is safe.
"""

from __future__ import annotations

import hashlib
import json
import shlex
from dataclasses import replace
from datetime import datetime

from glue_jobs.core.actions import Action, Finish, Rest, Rewrite, Stopped, SyncHistory, TakeBatch, Truncate
from glue_jobs.core.awaited import FILE_GONE, check_pending_again, check_unread, mark_in, still_awaited, waiting_for
from glue_jobs.core.batch_plan import next_batch
from glue_jobs.core.collation import collation_of, is_same_key
from glue_jobs.core.errors import TableBlocked, blocked
from glue_jobs.core.limits import Limits
from glue_jobs.core.load_plan import asks_reload, left_out_loads, load_due
from glue_jobs.core.raw_gone import truncate_due
from glue_jobs.core.raw_names import DIGITS, CdcName, RawListing, cdc_name
from glue_jobs.core.snapshot import Snapshot
from glue_jobs.core.state import PERSON_ATTRIBUTES, BlockedBy, TableState

# Of these the job may know more than the controller, which would start one for each new file.
_LATER_CHANGES_CURE_NOTHING = frozenset({"reload-unclear", "reload-without-file"})


def plan_table(state: TableState, snapshot: Snapshot, listing: RawListing, now: datetime, limits: Limits) -> Action:
    """The next action for a table. Order: unfinished work, a person's word, blocks, reload, truncate, late files, new files."""
    if state.publishing:
        return Finish(f"publishing change {state.publishing} was not finished")
    if state.catalog_pending:
        return Finish(f"the catalog step of change {state.catalog_pending} was not finished")
    if state.has_source and not state.active:
        key = "" if state.has_key else " --primary-key …"
        return Rest("inactive", f"ActiveFlag is not true; `dmslake activate {state.path.in_shell}{key}`")
    if state.paused:
        return Rest("paused", state.paused)
    if state.blocked and _is_as_then(state.blocked, state, listing):
        return Stopped(state.blocked, known=True)
    try:
        return _plan(state, snapshot, listing, now, limits)
    except TableBlocked as error:
        if state.blocked and error.code == FILE_GONE and error.message == state.blocked.message:
            return Stopped(state.blocked, known=True)  # other files came or went, not the one that it waits for
        return Stopped(waiting_for(blocked_by(error, mark_of(state, listing, now)), still_awaited(state, snapshot, listing)))


def blocked_by(error: TableBlocked, mark: str) -> BlockedBy:
    """The block by the error, with the signature that `mark_of` its plan has."""
    signed = mark if error.code in _LATER_CHANGES_CURE_NOTHING else mark.partition("@")[0]
    return BlockedBy(error.code, error.message, error.todo, signed)


def mark_of(state: TableState, listing: RawListing, now: datetime) -> str:
    """What a block found by a plan of `now` is decided on, and up to which names of CDC files: later ones are new."""
    newest = max(((cdc_name(file.key) or CdcName("", "")).digits for file in listing.cdc), default="")
    return f"{signature(state, listing)}@{max(newest, format(now, DIGITS))}"


def _is_as_then(by: BlockedBy, state: TableState, listing: RawListing) -> bool:
    mark, _, until = mark_in(by).partition("@")
    return not mark or mark == signature(state, listing, until)  # made where it is needed: it takes as long as a plan


def signature(state: TableState, listing: RawListing, until: str = "") -> str:
    """A digest of what a block was decided on: a person's attributes and the raw files listed, CDC files named after `until` (digits, ''
    for never) left out. A change of it means: try again."""
    person = {name: str(state.item.get(name, "")) for name in PERSON_ATTRIBUTES}
    cdc = [file for file in listing.cdc if not until or (cdc_name(file.key) or CdcName("", "")).digits <= until]
    files = sorted((file.key, file.etag) for file in (*listing.loads, *cdc, *listing.foreign))
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
    # A load that a person asked for brings key and layout by itself.
    load = load_due(state, snapshot, listing, now, limits) if asks_reload(state, snapshot) else None
    rewrite = None if load is not None else _asked_rewrite(state, snapshot)
    if rewrite is not None:
        return rewrite
    # So does one that DMS began: the item may already say the names that the source has by now.
    load = load or load_due(state, snapshot, listing, now, limits)
    rewrite = None if load is not None else _changed_item(state, snapshot)
    if rewrite is not None:
        return rewrite
    check_pending_again(state, snapshot, listing, loads_only=load is not None)
    emptied = truncate_due(state, snapshot, listing, now) if load is None else ""
    if emptied:
        return Truncate(emptied)
    check_unread(state, snapshot, listing, loads_only=load is not None)
    if load is not None:
        return load
    action = history_due(state, snapshot) or next_batch(state, snapshot, listing, limits)
    return replace(action, left_out=left_out_loads(state, snapshot, listing)) if isinstance(action, TakeBatch) else action


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
    asked = _asked_rewrite(state, snapshot) or _changed_item(state, snapshot) or history_due(state, snapshot)
    if asked is not None:
        return asked
    lacking = f"; its Request {state.request!r} needs raw files, and waits for ever" if state.request else ""
    return Rest("no-source", f"the table has no DMS source: it is changed by commands only{lacking}")


def _check_names(state: TableState, listing: RawListing) -> None:
    foreign = [file for file in listing.foreign if not state.skips(file.key)]
    if foreign:
        raise blocked(
            "foreign-raw-file",
            f"{len(foreign)} file(s) with a name that DMS does not give",
            where=f"s3://{state.path.bucket}/{foreign[0].key}",
            expected="LOAD00000001.parquet or 20201117-153046033.parquet (also .csv, .csv.gz); CDC_TXN-20201117153046033.csv in CdcPath",
            found=foreign[0].base,
            todo=f"remove the file, or `dmslake unblock {state.path.in_shell} --skip-file {shlex.quote(foreign[0].base)}`",
        )


def _asked_rewrite(state: TableState, snapshot: Snapshot) -> Rewrite | None:
    """A rewrite that an item's Request asks for."""
    if not state.head or snapshot.is_empty:
        return None
    if state.request == "schema-rename":
        return Rewrite("schema", f"rename {state.request_value}", state.request_value)
    if state.request == "repartition":
        return Rewrite("repartition", "a person asked for the layout of PartitionKey")
    return None


def _changed_item(state: TableState, snapshot: Snapshot) -> Rewrite | None:
    """A rewrite that a changed PrimaryKey asks for; raises where the item contradicts the table."""
    if not state.head or snapshot.is_empty:
        return None
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
