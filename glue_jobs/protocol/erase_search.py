"""What an erase would take: every version that S3 keeps of a table's rows, its history table's too, searched for the keys. Reads only."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from glue_jobs.aws.erased import read_erased
from glue_jobs.aws.records import list_records, read_records
from glue_jobs.aws.removal import held_versions
from glue_jobs.core.erase_plan import (
    ErasePlan,
    FileShape,
    Found,
    HeldVersion,
    Holdings,
    Rename,
    Rewritten,
    Searchable,
    change_of_path,
    is_attachment,
    older_names,
    plan_of,
    renames_of,
    with_history,
)
from glue_jobs.core.erasure import Erased
from glue_jobs.core.errors import DmslakeError
from glue_jobs.core.history_table import history_lake
from glue_jobs.core.ids import change_of_name
from glue_jobs.core.paths import S3Uri, changes_folder
from glue_jobs.core.record import ChangeRecord, DataFile, stands_for
from glue_jobs.core.snapshot import Snapshot
from glue_jobs.core.state import TableState
from glue_jobs.protocol.history_table import has_history, snapshot_at

READ_AT_ONCE = 500  # records


class Eraser(Protocol):
    """Knows the keys, and how data files are read and written. Never touches the state."""

    def read_keys(self, state: TableState, shape: FileShape) -> None:
        """Read the keys against the lake table's columns and key, once for all folders. Raises what is wrong with them."""

    def search(self, state: TableState, holdings: Holdings) -> Found:
        """The versions that hold one of the keys."""

    def rewrite(self, state: TableState, snapshot: Snapshot, found: Found, change: str, *, is_history: bool = False) -> Rewritten:
        """The head's files among the hits, written anew as uploads that are not completed. is_history: they are a history table's."""


@dataclass(frozen=True)
class Planned:
    """What an erase would do, and what its search found: of the lake table and of its history table, whose snapshot is `history`."""

    plan: ErasePlan
    found: Found
    history: Snapshot = Snapshot()
    history_found: Found | None = None


def plan_erase(s3: Any, state: TableState, snapshot: Snapshot, eraser: Eraser) -> Planned:
    """What an erase would do. Reads only. Raises DmslakeError, no-key-found, where no version holds any of the keys."""
    lake = state.lake
    hidden = read_erased(s3, lake, snapshot.erases)
    known = read_known(s3, lake, head=snapshot.change)
    eraser.read_keys(state, known.newest if snapshot.is_empty else FileShape(snapshot.schema, snapshot.primary_key))
    found, plan = _plan_folder(state, snapshot, look_at_versions(s3, lake, snapshot, known), eraser, hidden)
    planned = Planned(plan, found)
    beside = history_lake(lake)
    if snapshot.history is not None or has_history(s3, lake, str(state.path)):
        history = snapshot_at(s3, lake, snapshot)
        holdings = look_at_versions(s3, beside, history, read_known(s3, beside, known.renames), is_history=True)
        own = replace(state, out_path=str(beside))
        found_there, there = _plan_folder(own, history, holdings, eraser, hidden)
        planned = Planned(with_history(plan, found, there, found_there), found, history, found_there)
    if not planned.plan.versions:
        raise DmslakeError(
            f"none of the {plan.keys} key(s) ({', '.join(plan.columns)}) is in {state.path}: neither in its rows nor in any version that"
            f" S3 keeps of its files ({planned.plan.searched} searched)",
            "no-key-found",
            "look at the keys and their columns (--key); nothing was changed",
        )
    return planned


def _plan_folder(state: TableState, snapshot: Snapshot, holdings: Holdings, eraser: Eraser, hidden: Erased) -> tuple[Found, ErasePlan]:
    found = eraser.search(state, holdings)
    return found, plan_of(snapshot.change, snapshot.files, found, holdings.unsearched, hidden, str(state.lake))


def look_at_versions(s3: Any, lake: S3Uri, snapshot: Snapshot, known: Known, *, is_history: bool = False) -> Holdings:
    """All that S3 keeps of the table's rows, with what the records know of it. is_history: of a history table the files' key ranges are
    not of all their rows, and those of the head may have names of before a rename that came while it was not kept."""
    for path, file in snapshot.files.items():
        known.files.setdefault(path, (file, FileShape(snapshot.schema, snapshot.primary_key, snapshot.partitioning)))
    searchable, unsearched = [], []
    for held in held_versions(s3, lake.bucket, lake.key):
        path = held.key[len(lake.key) :]
        # What was adopted has the names that another program gave it.
        if path not in known.files and not (path.endswith(".parquet") and change_of_path(path)):
            if held.size_bytes:
                unsearched.append(held.key)
            continue
        item = _searchable(held, path, known.files.get(path))
        item = replace(item, file=None) if is_history else item
        # A rename writes all files anew: those of the head have the names of now.
        searchable.append(item if path in snapshot.files and not is_history else known.with_older_names(item))
    folder = changes_folder(lake)
    for held in held_versions(s3, lake.bucket, folder.key):
        name = held.key[len(folder.key) :]
        if is_attachment(name):
            searchable.append(known.with_older_names(Searchable(held, shape=known.shapes.get(change_of_name(name)))))
    return Holdings(tuple(searchable), tuple(dict.fromkeys(unsearched)))


def _searchable(held: HeldVersion, path: str, known: tuple[DataFile, FileShape] | None) -> Searchable:
    if known is None:
        return Searchable(held, path)
    file, shape = known
    same = file.size_bytes == held.size_bytes and file.etag in ("", held.etag)
    return Searchable(held, path, file if same else None, shape)


@dataclass
class Known:
    """What all records say, those of undone, lost and never landed changes too: path → file and shape, change → shape, renames.
    newest: the shape of the newest change that has columns."""

    files: dict[str, tuple[DataFile, FileShape]] = field(default_factory=dict)
    shapes: dict[str, FileShape] = field(default_factory=dict)
    renames: list[Rename] = field(default_factory=list)
    newest: FileShape = FileShape()
    _older: dict[tuple[int, int], Mapping[str, tuple[str, ...]]] = field(default_factory=dict)

    def with_older_names(self, item: Searchable) -> Searchable:
        shape = item.shape or FileShape()
        later = sum(rename.change > shape.change for rename in self.renames)
        if (shape.generation, later) not in self._older:
            self._older[shape.generation, later] = older_names(self.renames, shape.generation, shape.change)
        return replace(item, older=self._older[shape.generation, later])


def read_known(s3: Any, lake: S3Uri, renames: Iterable[Rename] = (), head: str = "") -> Known:
    """What the records in the folder's `_changes` say. renames: further ones, that the folder's own records don't tell. head: the change
    of the state by which renames are told that were undone; '' for a folder whose records have none."""
    known = Known(renames=[*renames])
    before: dict[str, tuple[str, str]] = {}  # change → the state that it made, and the one it was made of
    for record in _all_records(s3, lake):
        before[record.id] = (stands_for(record), record.parent)
        shape = FileShape(record.schema, record.primary_key, record.partitioning, record.generation.number, record.id)
        known.shapes[record.id] = shape
        known.newest = shape if shape.schema else known.newest
        known.renames += renames_of(record)
        for file in record.added:
            known.files.setdefault(file.path, (file, shape))
    if head:
        states = _states_of(known.newest.change if head not in before or not before[head][0] else head, before)
        known.renames = [replace(rename, undone=rename.change not in states) for rename in known.renames]
    return known


def _states_of(head: str, before: Mapping[str, tuple[str, str]]) -> set[str]:
    """The ordinary changes that the head's rows come of. before: as of read_known."""
    states: set[str] = set()
    while head in before:
        state, parent = before[head]
        if state != head:
            head = state  # a rollback or a re-apply makes the state of another change
            continue
        states.add(head)
        head = parent
    return states


def _all_records(s3: Any, lake: S3Uri) -> Iterable[ChangeRecord]:
    changes = list(list_records(s3, lake))
    for at in range(0, len(changes), READ_AT_ONCE):
        yield from read_records(s3, lake, changes[at : at + READ_AT_ONCE])
