"""verify: is a table what its head's snapshot says? Folder, records, item and catalog; the data files through a function that the
caller brings, because reading them needs pyarrow. Reads only and takes no lease.

A run that works meanwhile is no difference: item, then folder and catalog, then the item again; if it moved, all is looked at anew.
Data files never change, so reading them may take as long as it takes.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Callable

from glue_jobs.aws.buckets import check_lake_bucket
from glue_jobs.aws.catalog import read_table
from glue_jobs.aws.erased import left_versions, read_erased
from glue_jobs.aws.objects import list_files
from glue_jobs.aws.records import list_records, read_record
from glue_jobs.aws.state_table import StateTable
from glue_jobs.aws.uploads import OpenUpload, list_open_uploads
from glue_jobs.core.errors import ConfigurationError, TableBlocked, UsageError
from glue_jobs.core.limits import Limits
from glue_jobs.core.paths import S3Uri, TablePath, catalog_name, changes_folder
from glue_jobs.core.raw_names import RawFile
from glue_jobs.core.record import ChangeRecord
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
    change_in_name,
    compare_catalog,
    compare_folder,
    foreign,
    overwritten,
)
from glue_jobs.protocol.history import check_not_behind, is_discarded, snapshot_of
from glue_jobs.protocol.lineage import Lineage
from glue_jobs.protocol.publish import catalog_columns
from glue_jobs.protocol.raw import raw_notes
from glue_jobs.protocol.restore import find_sources

TRIES = 5
LOOKS_PER_LEASE = 10
WAIT_SECONDS = 0.5  # before another look at a table that moved; also the most between two looks at a lease
RUN = "`dmslake run PATH` (also if the table is paused), or " + REPAIR
GONE = (
    "the bytes are gone: `dmslake history PATH` shows changes that can still be restored (`dmslake rollback PATH --to CHANGE`);"
    " otherwise reload the table in DMS, then `dmslake reload PATH`"
)
# Reads the data files (path below the folder → object that is there as the record says) and says what is wrong with them.
CheckFiles = Callable[[Any, S3Uri, Snapshot, Mapping[str, RawFile]], FileReport]


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


def verify(place: Place, path: TablePath, check_files: CheckFiles | None = None, wait: Callable[[float], None] = time.sleep) -> Verified:
    """What is not as the table's head says. check_files: None for the quick check, which reads no data file."""
    started = time.monotonic()
    checked = "quick" if check_files is None else "full"
    found = _settled_look(place, path, wait)
    if found is None:
        note = Finding("run-working", NOTE, str(path), "a table that stands still", "runs that kept changing it", "try again later")
        return Verified(str(path), checked=checked, findings=(note,), seconds=time.monotonic() - started, is_busy=True)
    state, look = found
    report = FileReport()
    if check_files is not None and look.folder is not None:
        report = check_files(place.s3, state.lake, look.snapshot, look.folder.right)
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


@contextmanager
def _told(findings: list[Finding], where: str) -> Iterator[None]:
    """What stops a part of the check because the table is damaged becomes a finding."""
    try:
        yield
    except (TableBlocked, ConfigurationError) as error:
        findings.append(Finding(error.code, DIFFERENCE, where, "", error.message, error.todo))


def _look(place: Place, state: TableState) -> _Look:
    findings: list[Finding] = []
    path = str(state.path)
    if not state.out_path or not (state.head or _has_records(place.s3, state.lake)):
        return _Look((Finding("not-loaded", NOTE, path, "a loaded table", "no change yet", "`dmslake run PATH` loads it, once active"),))
    with _told(findings, str(changes_folder(state.lake))):
        check_not_behind(place.s3, state.lake, state.head, state.fence or 0, path)
        head = read_record(place.s3, state.lake, state.head) if state.head else None
        snapshot = snapshot_of(place.s3, state.lake, head) if head else Snapshot()
    if findings:
        return _Look(tuple(findings))
    with _told(findings, f"s3://{state.lake.bucket}"):
        warnings = check_lake_bucket(place.s3, state.lake.bucket, state.lake.key)
        findings += [Finding("bucket-unchecked", NOTE, f"s3://{state.lake.bucket}", "", text) for text in warnings]
    findings += _of_item(state, snapshot)
    folder = compare_folder(snapshot, list_folder(place.s3, state.lake))
    uploads = tuple(list_open_uploads(place.s3, state.lake.bucket, state.lake.key))
    findings += _of_erases(place.s3, state, snapshot)
    findings += _of_folder(place.s3, state, head, folder, {upload.key for upload in uploads})
    with _told(findings, str(changes_folder(state.lake))):
        findings += _of_uploads(place.s3, state, head, uploads)
    if state.publishing or state.catalog_pending:
        return _Look(tuple(findings), snapshot, folder)
    return _Look((*findings, *of_catalog(place, state, snapshot)), snapshot, folder)


def _has_records(s3: Any, lake: S3Uri) -> bool:
    return next(iter(list_records(s3, lake)), None) is not None


def list_folder(s3: Any, lake: S3Uri) -> dict[str, RawFile]:
    """The visible objects below the table's folder: path → object."""
    return {file.key[len(lake.key) :]: file for file in list_files(s3, lake.bucket, lake.key)}


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


# --- the folder


@dataclass(frozen=True)
class Strays:
    """Visible objects that are in no snapshot of the head. ours: path → why it must not be visible, as a record says; unlisted: path →
    why it looks like ours, though no record has it; foreign: the others' paths."""

    ours: Mapping[str, str] = field(default_factory=dict)
    unlisted: Mapping[str, str] = field(default_factory=dict)
    foreign: tuple[str, ...] = ()


def sort_strays(s3: Any, lake: S3Uri, head: str, paths: Iterable[str]) -> Strays:
    """What the objects at `paths` are, by the change records. A listing of these, and a walk only if one of them has one of our names."""
    wanted = {path: change_in_name(path) for path in paths}
    records = set(list_records(s3, lake)) if any(wanted.values()) else set()
    named = {path: change for path, change in wanted.items() if change in records}
    foreign_paths = tuple(sorted(set(wanted) - set(named)))
    if not named:
        return Strays(foreign=foreign_paths)
    superseded: dict[str, str] = {}
    landed: dict[str, ChangeRecord] = {}
    for record in Lineage(s3, lake, head).back():
        superseded.update({path: record.id for path in record.superseded if path in named})
        landed[record.staged_as or record.id] = record  # with which the names of its files begin
        if record.id <= min(named.values()):
            break
    ours, unlisted = {}, {}
    for path, change in sorted(named.items()):
        if path in superseded:
            ours[path] = f"superseded by change {superseded[path]}, and visible again"
        elif change in landed:
            unlisted[path] = f"change {change} has no such file: it is left from an attempt"
        elif change > head:
            unlisted[path] = f"of change {change}, which is later than the head"
        elif any(file.path == path for file in read_record(s3, lake, change, with_checkpoint=False).added):
            ours[path] = f"of change {change}, which never landed"
        else:
            unlisted[path] = f"change {change} never landed, and has no such file"
    return Strays(ours, unlisted, foreign_paths)


def in_publish(state: TableState, head: ChangeRecord | None) -> frozenset[str]:
    """The paths that an unfinished publish has yet to complete or hide."""
    if head is None or not state.publishing:
        return frozenset()
    return frozenset((*(file.path for file in head.added), *head.superseded))


def _of_folder(s3: Any, state: TableState, head: ChangeRecord | None, folder: Folder, open_keys: set[str]) -> list[Finding]:
    lake, awaited, erases = state.lake, in_publish(state, head), head.erases if head else ()
    missing = [file for file in folder.missing if file.path not in awaited]
    sources, _ = find_sources(s3, lake, missing, read_erased(s3, lake, erases)) if missing else ({}, ())
    findings = []
    for file in missing:
        waits = lake.key + file.path in open_keys
        is_there = file.path in sources
        why = "its upload was never completed" if waits else f"its data version {'still exists' if is_there else 'is no more'}"
        todo = REPAIR if is_there or waits else GONE
        findings.append(Finding("missing-file", DIFFERENCE, str(lake.join(file.path)), f"{file.rows} rows", f"not visible; {why}", todo))
    findings += [overwritten(lake, file, there) for file, there in folder.overwritten]
    unknown = {path: there for path, there in folder.unknown.items() if path not in awaited}
    with _told(findings, str(changes_folder(lake))):
        strays = sort_strays(s3, lake, state.head, unknown)
        for path, why in strays.ours.items():
            findings.append(Finding("stray-file", DIFFERENCE, str(lake.join(path)), "not visible", why, REPAIR))
        for path, why in strays.unlisted.items():
            todo = "delete it by hand: --repair hides only what a record names"
            findings.append(Finding("stray-file", DIFFERENCE, str(lake.join(path)), "not visible", why, todo))
        findings += [foreign(str(lake.join(path)), path, unknown[path].size) for path in strays.foreign]
    return findings


def _of_uploads(s3: Any, state: TableState, head: ChangeRecord | None, uploads: Iterable[OpenUpload]) -> list[Finding]:
    """Uploads of attempts that ended, and of staged changes: one note per change. Those of a run that works, and of an unfinished
    publish, are in use."""
    found: dict[str, list[str]] = {}
    for upload in uploads:
        change = change_in_name(upload.key)
        at_work = bool(state.lease_owner) and change.startswith(f"{state.fence or 0:010d}-")
        if not at_work and not (state.publishing and head is not None and change == (head.staged_as or head.id)):
            found.setdefault(change, []).append(upload.key)
    staged = _staged(s3, state.lake, found) if any(found) else {}
    return [_upload_finding(state, change, keys, staged.get(change)) for change, keys in sorted(found.items())]


def _staged(s3: Any, lake: S3Uri, changes: Iterable[str]) -> dict[str, ChangeRecord]:
    """Those of the changes that are staged ones and not discarded. One that was committed has no open upload."""
    known = set(list_records(s3, lake)) & set(changes)
    records = [read_record(s3, lake, change, with_checkpoint=False) for change in sorted(known)]
    return {record.id: record for record in records if record.staged and not is_discarded(s3, lake, record.id)}


def _upload_finding(state: TableState, change: str, keys: Sequence[str], staged: ChangeRecord | None) -> Finding:
    where = f"s3://{state.lake.bucket}/{keys[0]}"
    if staged is None:
        whose = f"change {change}" if change else "another program"
        todo = "nothing: nobody sees them, and the bucket's rule for incomplete uploads removes them"
        return Finding("open-upload", NOTE, where, "", f"{len(keys)} open upload(s) of {whose}", todo)
    if staged.parent == state.head:
        todo = f"`dmslake commit PATH {change}` or `dmslake discard PATH {change}`"
        return Finding("staged-change", NOTE, where, "", f"{len(keys)} open upload(s) of the staged change {change}, which waits", todo)
    what = f"{len(keys)} open upload(s) of the staged change {change}, which can't be committed: the table has gone on"
    return Finding("staged-change", NOTE, where, "", what, f"`dmslake discard PATH {change}`")


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
