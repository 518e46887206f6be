"""What a table's folder holds beside what its records say should be there, as findings. Reads only."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from glue_jobs.aws.erased import read_erased
from glue_jobs.aws.objects import list_files
from glue_jobs.aws.records import list_records, read_record
from glue_jobs.aws.uploads import OpenUpload
from glue_jobs.core.errors import ConfigurationError, TableBlocked
from glue_jobs.core.history_table import history_catalog_name, history_lake, is_changed_by
from glue_jobs.core.paths import S3Uri, catalog_name, changes_folder
from glue_jobs.core.raw_names import RawFile
from glue_jobs.core.record import ChangeRecord, HistoryAt
from glue_jobs.core.snapshot import Snapshot
from glue_jobs.core.state import TableState
from glue_jobs.core.verify import DIFFERENCE, NOTE, REPAIR, Finding, Folder, change_in_name, compare_folder, foreign, overwritten
from glue_jobs.protocol.history import is_discarded, snapshot_of
from glue_jobs.protocol.lineage import Lineage
from glue_jobs.protocol.restore import find_sources

GONE = (
    "the bytes are gone: `dmslake history PATH` shows changes that can still be restored (`dmslake rollback PATH --to CHANGE`);"
    " otherwise reload the table in DMS, then `dmslake reload PATH`"
)


@contextmanager
def told(findings: list[Finding], where: str) -> Iterator[None]:
    """What stops a part of the check because the table is damaged becomes a finding."""
    try:
        yield
    except (TableBlocked, ConfigurationError) as error:
        findings.append(Finding(error.code, DIFFERENCE, where, "", error.message, error.todo))


def list_folder(s3: Any, lake: S3Uri) -> dict[str, RawFile]:
    """The visible objects below the table's folder: path → object."""
    return {file.key[len(lake.key) :]: file for file in list_files(s3, lake.bucket, lake.key)}


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


def of_folder(
    s3: Any, state: TableState, head: ChangeRecord | None, folder: Folder, open_keys: set[str], records: S3Uri | None = None
) -> list[Finding]:
    """records: the lake folder with the records of the erases, where it is not this one: those of a history table's are its table's."""
    lake, awaited, erases = state.lake, in_publish(state, head), head.erases if head else ()
    missing = [file for file in folder.missing if file.path not in awaited]
    sources, _ = find_sources(s3, lake, missing, read_erased(s3, records or lake, erases)) if missing else ({}, ())
    findings = []
    for file in missing:
        waits = lake.key + file.path in open_keys
        is_there = file.path in sources
        why = "its upload was never completed" if waits else f"its data version {'still exists' if is_there else 'is no more'}"
        todo = REPAIR if is_there or waits else GONE
        findings.append(Finding("missing-file", DIFFERENCE, str(lake.join(file.path)), f"{file.rows} rows", f"not visible; {why}", todo))
    findings += [overwritten(lake, file, there) for file, there in folder.overwritten]
    unknown = {path: there for path, there in folder.unknown.items() if path not in awaited}
    with told(findings, str(changes_folder(lake))):
        strays = sort_strays(s3, lake, state.head, unknown)
        for path, why in strays.ours.items():
            findings.append(Finding("stray-file", DIFFERENCE, str(lake.join(path)), "not visible", why, REPAIR))
        for path, why in strays.unlisted.items():
            todo = "delete it by hand: --repair hides only what a record names"
            findings.append(Finding("stray-file", DIFFERENCE, str(lake.join(path)), "not visible", why, todo))
        findings += [foreign(str(lake.join(path)), path, unknown[path].size) for path in strays.foreign]
    return findings


def of_uploads(s3: Any, state: TableState, head: ChangeRecord | None, uploads: Iterable[OpenUpload]) -> list[Finding]:
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


# --- the history table


@dataclass(frozen=True)
class HistoryLook:
    """The history table's folder and what should be there. state: the table's with the history's folder, change and catalog name in the
    place of its own; publishing: only if the head's change has something to publish there."""

    state: TableState
    record: ChangeRecord
    snapshot: Snapshot
    folder: Folder


def look_at_history(s3: Any, state: TableState, head: ChangeRecord, at: HistoryAt) -> HistoryLook:
    """What the history table's folder holds. Reads only."""
    lake = history_lake(state.lake)
    record = read_record(s3, lake, at.change)
    snapshot = snapshot_of(s3, lake, record)
    own = replace(
        state,
        out_path=str(lake),
        head=at.change,
        catalog_table=history_catalog_name(state.catalog_table or catalog_name(state.path)),
        publishing=state.publishing if is_changed_by(head) else "",
    )
    return HistoryLook(own, record, snapshot, compare_folder(snapshot, list_folder(s3, lake)))
