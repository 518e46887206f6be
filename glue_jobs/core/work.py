"""What a job hands to the commit: the values of a change whose data files are uploaded and not yet visible."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timezone
from typing import Any, Protocol

from glue_jobs.core.actions import Action
from glue_jobs.core.partitioning import Partitioning
from glue_jobs.core.raw_names import RawFile
from glue_jobs.core.record import MODIFIED, Counts, DataFile, ErasedKeys, ErasedVersion, Generation, Given, HistoryAt, Input
from glue_jobs.core.schema import Schema
from glue_jobs.core.settings import Settings
from glue_jobs.core.snapshot import Snapshot
from glue_jobs.core.state import TableState

_EPOCH = datetime.fromtimestamp(0, timezone.utc)


@dataclass(frozen=True)
class HistoryWork:
    """What a change does to the history table; paths are below its folder. schema: with the columns of core.history_table.

    inserted, closed: row versions that are new, and those that are no longer their key's latest. target: of a change that goes back
    or forth, the change whose history it has, '' for none. is_stale: the history is not that of the rows after the change.
    """

    schema: Schema
    primary_key: tuple[str, ...]
    added: tuple[DataFile, ...] = ()
    superseded: tuple[str, ...] = ()
    inserted: int = 0
    closed: int = 0
    target: str = ""
    is_stale: bool = False


@dataclass(frozen=True)
class Work:
    """A change as it will stand in its record. superseded: paths of the parent's snapshot.

    taken_over: paths in the lake's folder that no snapshot has (another program's files) and that a reload replaces.
    lost: the change that this one takes back because its uploads are gone. target: of a change that goes back or forth, the change
    whose rows it has. like: a snapshot whose applied, skipped and awaited inputs are those after the change. requests: the item's
    attributes that this change answers and that its commit removes. values: attributes that its commit sets. attachments: ending →
    bytes of objects that are written beside the record before it (`<change id>.<ending>`). history: None where the history table's files
    stay; if rows change, it is stale from then on. history_at: of a change that goes back or forth, where the history then stands.
    """

    kind: str
    schema: Schema
    primary_key: tuple[str, ...]
    partitioning: Partitioning
    generation: Generation
    added: tuple[DataFile, ...] = ()
    superseded: tuple[str, ...] = ()
    taken_over: tuple[str, ...] = ()
    counts: Counts = Counts()
    inputs: tuple[Input, ...] = ()
    context: tuple[Input, ...] = ()
    skipped: tuple[Input, ...] = ()
    timestamp_column: str = ""
    cursor_after: str = ""
    last_full_load: str = ""
    like: Snapshot | None = None
    lost: str = ""
    target: str = ""
    requests: tuple[str, ...] = ()
    values: Mapping[str, Any] = field(default_factory=dict)
    given: Given | None = None
    erased: tuple[ErasedVersion, ...] = ()
    erased_keys: ErasedKeys | None = None
    attachments: Mapping[str, bytes] = field(default_factory=dict, repr=False)
    history: HistoryWork | None = None
    history_at: HistoryAt | None = None
    details: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Task:
    """All that the work on one action may know. change: the id that its files' names begin with. staging: a person wants to look at
    the rows before they count. history: the snapshot of the history table, empty where there is none. now: when the work began."""

    state: TableState
    snapshot: Snapshot
    action: Action
    change: str
    settings: Settings
    staging: bool = False
    history: Snapshot = Snapshot()
    now: datetime = _EPOCH


class NothingForTable(Exception):
    """None of a batch's files, which are transaction files, has a row of the table: there is no change to make. keys: of the files."""

    def __init__(self, keys: frozenset[str]) -> None:
        super().__init__(keys)
        self.keys = keys


class Worker(Protocol):
    """Reads raw files, writes data files as uploads that are not completed, and says what it did. Never touches the state."""

    def __call__(self, task: Task) -> Work:
        """Raises TableBlocked where the input can't be taken; uploads it leaves behind are aborted by a lifecycle rule. NothingForTable
        where the batch has no row, unless the plan knew that and wants a change all the same."""


def input_of(file: RawFile, rows: int = -1) -> Input:
    return Input(file.key, file.etag, file.size, rows, file.modified.strftime(MODIFIED))
