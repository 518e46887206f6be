"""verify: is a table what its head's snapshot says? Folder, records, item and catalog; the data files through a function that the
caller brings, because reading them needs pyarrow. Reads only and takes no lease.

A run that works meanwhile is no difference: item, then folder and catalog, then the item again; if it moved, all is looked at anew.
Data files never change, so reading them may take as long as it takes.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Callable

from glue_jobs.aws.buckets import check_lake_bucket
from glue_jobs.aws.catalog_table import read_table
from glue_jobs.aws.erased import left_versions
from glue_jobs.aws.records import list_records, read_record
from glue_jobs.aws.state_table import StateTable
from glue_jobs.aws.uploads import list_open_uploads
from glue_jobs.core.errors import UsageError
from glue_jobs.core.history_table import history_lake
from glue_jobs.core.limits import Limits
from glue_jobs.core.paths import S3Uri, TablePath, catalog_name, changes_folder
from glue_jobs.core.raw_names import RawFile
from glue_jobs.core.record import ChangeRecord, HistoryAt
from glue_jobs.core.snapshot import Snapshot
from glue_jobs.core.state import TableState, read_state
from glue_jobs.core.verify import (
    DIFFERENCE,
    NOTE,
    REPAIR,
    CatalogWanted,
    FileReport,
    Finding,
    Folder,
    Verified,
    compare_catalog,
    compare_folder,
    of_living,
)
from glue_jobs.protocol.history import check_not_behind, snapshot_of
from glue_jobs.protocol.publish import catalog_columns
from glue_jobs.protocol.raw import raw_notes
from glue_jobs.protocol.verify_folder import HistoryLook, list_folder, look_at_history, of_folder, of_uploads, told

TRIES = 5
LOOKS_PER_LEASE = 10
WAIT_SECONDS = 0.5  # before another look at a table that moved; also the most between two looks at a lease
RUN = "`dmslake run PATH` (also if the table is paused), or " + REPAIR
CheckFiles = Callable[[Any, S3Uri, Snapshot, Mapping[str, RawFile]], FileReport]


@dataclass(frozen=True)
class FileChecks:
    """What reads data files: those of the lake table, those of its history table."""

    files: CheckFiles
    history: CheckFiles


@dataclass(frozen=True)
class Place:
    """Where to look. database: of the catalog, '' for none; glue is not used then."""

    s3: Any
    glue: Any
    table: StateTable
    database: str


@dataclass(frozen=True)
class _Look:
    """One look at a table that stood still. folder is None where the records did not say what should be there."""

    findings: tuple[Finding, ...]
    snapshot: Snapshot = Snapshot()
    folder: Folder | None = None
    history: HistoryLook | None = None


def verify(place: Place, path: TablePath, checks: FileChecks | None = None, wait: Callable[[float], None] = time.sleep) -> Verified:
    """What is not as the table's head says. checks: None for the quick check, which reads no data file."""
    started = time.monotonic()
    checked = "quick" if checks is None else "full"
    found = _settled_look(place, path, wait)
    if found is None:
        note = Finding("run-working", NOTE, str(path), "a table that stands still", "runs that kept changing it", "try again later")
        return Verified(str(path), checked=checked, findings=(note,), seconds=time.monotonic() - started, is_busy=True)
    state, look = found
    report = FileReport()
    if checks is not None and look.folder is not None:
        report = checks.files(place.s3, state.lake, look.snapshot, look.folder.right)
        if look.history is not None:
            report = _with_history(place, checks, look.snapshot, look.history, report)
    return Verified(
        str(path),
        look.snapshot.change,
        checked,
        (*look.findings, *raw_notes(place.s3, state, look.snapshot, Limits()), *report.findings),
        files=len(look.snapshot.files),
        rows=look.snapshot.rows,
        size_bytes=look.snapshot.size_bytes,
        bytes_read=report.bytes_read,
        seconds=time.monotonic() - started,
    )


def _with_history(place: Place, checks: FileChecks, snapshot: Snapshot, look: HistoryLook, report: FileReport) -> FileReport:
    """The report with that on the history's files; and whether the open versions are the table's rows, where all could be read."""
    lake = look.state.lake
    found = checks.history(place.s3, lake, look.snapshot, look.folder.right)
    findings = (*report.findings, *found.findings)
    is_whole = not findings and report.files == len(snapshot.files) and found.files == len(look.snapshot.files)
    if is_whole and snapshot.history is not None and not snapshot.history.is_stale:
        findings = tuple(of_living(str(lake), snapshot, look.snapshot, report, found))
    return replace(report, findings=findings, bytes_read=report.bytes_read + found.bytes_read)


def _settled_look(place: Place, path: TablePath, wait: Callable[[float], None]) -> tuple[TableState, _Look] | None:
    """A look during which the item did not move; None if it moved each time."""
    for attempt in range(TRIES):
        if attempt:
            wait(WAIT_SECONDS)
        item = _item(place.table, path)
        state = read_state(item)
        at_work = state.publishing or state.catalog_pending or (state.erasing and state.erasing == state.head)
        if state.lease_owner and at_work and not _is_dead(place.table, path, state, wait):
            continue
        look = _look(place, state)
        if _mark(_item(place.table, path)) == _mark(item):
            return state, look
    return None


def _item(table: StateTable, path: TablePath) -> Mapping[str, Any]:
    item = table.get(str(path))
    if item is None:
        raise UsageError(f"no item for {path} in {table.name}", "unknown-table", "`dmslake tables` lists the tables")
    return item


def _mark(item: Mapping[str, Any]) -> tuple[Any, ...]:
    """What moves when a run does something that shows in folder or catalog."""
    return tuple(item.get(name) for name in ("Head", "Publishing", "CatalogPending", "Erasing", "Fence", "out_path", "CatalogTable"))


def _is_dead(table: StateTable, path: TablePath, state: TableState, wait: Callable[[float], None]) -> bool:
    """Whether the lease's owner gives no sign of life for the lease's length; by what changes, never by a clock's time of day."""
    length = state.lease_seconds or 60.0
    until = time.monotonic() + length * 1.05
    while time.monotonic() < until:
        wait(min(length / LOOKS_PER_LEASE, WAIT_SECONDS))
        now = _item(table, path)
        if _mark(now) != _mark(state.item) or any(now.get(name) != state.item.get(name) for name in ("LeaseOwner", "LeaseBeat")):
            return False
    return True


def _look(place: Place, state: TableState) -> _Look:
    findings: list[Finding] = []
    path = str(state.path)
    if not state.out_path or not (state.head or _has_records(place.s3, state.lake)):
        return _Look((Finding("not-loaded", NOTE, path, "a loaded table", "no change yet", "`dmslake run PATH` loads it, once active"),))
    with told(findings, str(changes_folder(state.lake))):
        check_not_behind(place.s3, state.lake, state.head, state.fence, path)
        head = read_record(place.s3, state.lake, state.head) if state.head else None
        snapshot = snapshot_of(place.s3, state.lake, head) if head else Snapshot()
    if findings:
        return _Look(tuple(findings))
    with told(findings, f"s3://{state.lake.bucket}"):
        warnings = check_lake_bucket(place.s3, state.lake.bucket, state.lake.key)
        findings += [Finding("bucket-unchecked", NOTE, f"s3://{state.lake.bucket}", "", text) for text in warnings]
    findings += _of_item(state, snapshot)
    folder = compare_folder(snapshot, list_folder(place.s3, state.lake))
    uploads = tuple(list_open_uploads(place.s3, state.lake.bucket, state.lake.key))
    findings += _of_erases(place.s3, state, snapshot)
    findings += of_folder(place.s3, state, head, folder, {upload.key for upload in uploads})
    with told(findings, str(changes_folder(state.lake))):
        findings += of_uploads(place.s3, state, head, uploads)
    history = None
    if head is not None and snapshot.history is not None:
        with told(findings, str(changes_folder(history_lake(state.lake)))):
            history = look_at_history(place.s3, state, head, snapshot.history)
            findings += _of_history(place, state, head, history, snapshot.history)
    if state.publishing or state.catalog_pending:
        return _Look(tuple(findings), snapshot, folder, history)
    return _Look((*findings, *of_catalog(place, state, snapshot)), snapshot, folder, history)


def _of_history(place: Place, state: TableState, head: ChangeRecord, look: HistoryLook, at: HistoryAt) -> Iterator[Finding]:
    """The same of the history table's folder and of its table in the catalog."""
    own = look.state
    uploads = tuple(list_open_uploads(place.s3, own.lake.bucket, own.lake.key))
    yield from of_folder(place.s3, own, look.record, look.folder, {upload.key for upload in uploads}, state.lake)
    yield from of_uploads(place.s3, own, look.record, uploads)
    if at.is_stale and state.keeps_history:
        todo = "nothing: the next run brings it up to date"
        yield Finding("history-behind", NOTE, str(own.lake), f"that of change {head.id}", f"that of change {at.change}", todo)
    if not (state.publishing or state.catalog_pending):
        yield from of_catalog(place, own, look.snapshot)


def _has_records(s3: Any, lake: S3Uri) -> bool:
    return next(iter(list_records(s3, lake)), None) is not None


# --- the item


def _of_item(state: TableState, snapshot: Snapshot) -> Iterator[Finding]:
    path = str(state.path)
    if state.publishing:
        what = f"change {state.publishing} is committed and perhaps not wholly visible"
        yield Finding("unfinished-publish", DIFFERENCE, path, "no publish under way", what, RUN)
    elif state.catalog_pending:
        what = f"change {state.catalog_pending} is not in the catalog yet"
        yield Finding("unfinished-catalog", DIFFERENCE, path, "no catalog step under way", what, RUN)
    if state.cursor != snapshot.cursor:
        todo = "nothing: the next batch goes on from there"
        yield Finding("cursor-moved", NOTE, path, snapshot.cursor or "no cursor", state.cursor or "no cursor", todo)


def _of_erases(s3: Any, state: TableState, snapshot: Snapshot) -> Iterator[Finding]:
    """Versions that an erase should have removed."""
    left = left_versions(s3, state.lake, snapshot.erases)
    if left or state.erasing:
        key, version = (left[0][0].key, left[0][0].version) if left else (state.lake.key, "")
        where = f"s3://{state.lake.bucket}/{key}"
        what = f"{len(left)} erased version(s), first {version}" if left else f"the attribute Erasing still names change {state.erasing}"
        yield Finding("unfinished-erase", DIFFERENCE, where, "no erased version", what, "`dmslake erase PATH --resume`")


# --- the catalog


def of_catalog(place: Place, state: TableState, snapshot: Snapshot) -> list[Finding]:
    """How the catalog differs from the snapshot. An empty table keeps whatever columns the catalog has."""
    name = state.catalog_table or catalog_name(state.path)
    if not place.database:
        note = "the setting database is not given: give --database, or set DMSLAKE_DATABASE"
        return [Finding("catalog-unchecked", NOTE, name, "", "the catalog was not checked", note)]
    if snapshot.is_empty:
        return []
    columns, partition_columns = catalog_columns(snapshot)
    wanted = CatalogWanted(
        name=f"{place.database}.{name}",
        path=str(state.path),
        lake=state.lake,
        columns=columns,
        partition_columns=partition_columns,
        partitioning=snapshot.partitioning,
        partitions=frozenset(file.partition for file in snapshot.files.values()),
    )
    return compare_catalog(wanted, read_table(place.glue, place.database, name))
