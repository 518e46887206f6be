"""The pages as values: all that a template shows, and nothing that it would have to read or work out. Times are aware, UTC."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any, Union

# States, in the order in which a person should look: the first ones can't go on without one.
STATES = ("blocked", "publishing", "running", "paused", "behind", "unread", "fine", "inactive")


@dataclass(frozen=True)
class Bar:
    """One change as a bar: rows that it inserted, updated and deleted. undone: its rows are not in the table."""

    change: str
    kind: str
    inserted: int = 0
    updated: int = 0
    deleted: int = 0
    undone: bool = False

    @property
    def rows(self) -> int:
        return self.inserted + self.updated + self.deleted


@dataclass(frozen=True)
class TableRow:
    """One table of the overview. state: of STATES. reason: why it is in it; todo: the way out, '' for none.

    lag_seconds: from the cursor to the newest CDC file by their names; None where nothing can be compared. change, kind, time: of the
    last change; '' and None for a table without one. recent: its last changes, oldest first, as many as were read. failed: the last
    run's error with its way out, '' for none. notices: what a person should know beside the state.
    """

    path: str
    name: str  # schema.table
    state: str
    reason: str = ""
    todo: str = ""
    lag_seconds: float | None = None
    pending_files: int = 0
    pending_bytes: int = 0
    change: str = ""
    kind: str = ""
    time: datetime | None = None
    rows: int = 0
    bytes: int = 0
    files: int = 0
    recent: tuple[Bar, ...] = ()
    failed: str = ""
    notices: tuple[str, ...] = ()

    @property
    def needs_person(self) -> bool:
        """Whether it can't go on, or did not, until a person does something."""
        return bool(self.state in ("blocked", "paused") or self.failed or self.notices)


@dataclass(frozen=True)
class Totals:
    """Of all tables. states: state → tables in it, in the order of STATES, those without any left out."""

    tables: int
    rows: int
    bytes: int
    files: int
    states: dict[str, int]
    most_lag_seconds: float | None = None


@dataclass(frozen=True)
class Overview:
    """All tables, those that need a person first. unread: tables whose last changes were not read this time. left_out: tables that a
    report has no row for."""

    now: datetime
    tables: tuple[TableRow, ...]
    totals: Totals
    warnings: tuple[str, ...] = ()
    unread: int = 0
    left_out: int = 0


@dataclass(frozen=True)
class Step:
    """One change in a table's timeline. standing: head, live, undone, step, lost (see controller/history.py), staged, or '' where it
    was not looked up. target: the change whose state a rollback or re-apply gave the table, '' for none.

    rows_written, bytes_written: of the data files it added by writing (copies of hidden files are not written: files_copied).
    rows_changed: inserted, updated and deleted. amplification: rows written for each row changed, None where none changed or none was
    written. input_bytes: of the raw files it took. seconds: that its run worked on it, None where its record does not say.
    """

    change: str
    kind: str
    time: datetime
    standing: str
    inserted: int = 0
    updated: int = 0
    deleted: int = 0
    table_rows: int = 0
    input_files: int = 0
    input_bytes: int = 0
    files_added: int = 0
    files_copied: int = 0
    files_superseded: int = 0
    rows_written: int = 0
    bytes_written: int = 0
    seconds: float | None = None
    target: str = ""
    lost: str = ""

    @property
    def rows_changed(self) -> int:
        return self.inserted + self.updated + self.deleted

    @property
    def amplification(self) -> float | None:
        return self.rows_written / self.rows_changed if self.rows_changed and self.rows_written else None

    @property
    def bytes_changed(self) -> int | None:
        """About how many of the written bytes are of changed rows; None where that can't be said."""
        return round(self.bytes_written * min(1.0, self.rows_changed / self.rows_written)) if self.rows_written else None


@dataclass(frozen=True)
class SchemaStep:
    """A change that changed the table's form. texts: what of it, a sentence each."""

    change: str
    time: datetime
    texts: tuple[str, ...]


@dataclass(frozen=True)
class Partition:
    """The data files of one partition. folder: '' for a table without partitions. sizes: of at most SIZES_SHOWN files, the largest
    first; small: files below the setting small_file_bytes."""

    folder: str
    files: int
    rows: int
    bytes: int
    small: int
    sizes: tuple[int, ...] = ()


@dataclass(frozen=True)
class PendingFile:
    """A raw file that waits."""

    name: str
    bytes: int
    modified: datetime | None = None


@dataclass(frozen=True)
class Command:
    """A line to copy into a shell, and what it does."""

    does: str
    line: str


@dataclass(frozen=True)
class TablePage:
    """One table. steps: newest first. older: what `at` must be for the page of the changes before these, '' for none; at: '' for the
    newest. partitions: the first of them, `partitions_left` more are not listed. columns: (name, type)."""

    row: TableRow
    now: datetime
    steps: tuple[Step, ...] = ()
    at: str = ""
    older: str = ""
    schema_steps: tuple[SchemaStep, ...] = ()
    columns: tuple[tuple[str, str], ...] = ()
    primary_key: tuple[str, ...] = ()
    partition_key: str = ""
    partitions: tuple[Partition, ...] = ()
    partitions_left: int = 0
    small_files: int = 0
    small_file_bytes: int = 0
    cursor: str = ""
    pending: tuple[PendingFile, ...] = ()
    out_path: str = ""
    catalog_table: str = ""
    last_run: dict[str, Any] | None = None
    commands: tuple[Command, ...] = ()
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True)
class ListedFile:
    """A file in a change's lists. rows: None where they were not counted. origin: the change whose file's bytes a copy has."""

    name: str
    rows: int | None = None
    bytes: int | None = None
    origin: str = ""


@dataclass(frozen=True)
class Files:
    """A list of files, cut off. total: of all; title: what they are."""

    title: str
    total: int
    files: tuple[ListedFile, ...]


@dataclass(frozen=True)
class Update:
    """One updated row as it was and as it is; changed: the places of the columns whose values differ."""

    before: tuple[Any, ...]
    after: tuple[Any, ...]
    changed: frozenset[int]


@dataclass(frozen=True)
class RowsApart:
    """Rows that two states have not in common, a sample of each kind. Values are those of glue_jobs.spark.plain_rows."""

    columns: tuple[str, ...]
    key: tuple[str, ...]
    inserts: int
    updates: int
    deletes: int
    inserted: tuple[tuple[Any, ...], ...] = ()
    updated: tuple[Update, ...] = ()
    deleted: tuple[tuple[Any, ...], ...] = ()
    incomparable: tuple[str, ...] = ()
    files_read: int = 0


@dataclass(frozen=True)
class ChangePage:
    """One change. rows: a sample of what it did to rows, None where none was read: rows_note then says why, and how to see them.

    facts: (label, text) of what else its record says. parent: '' for the first change.
    """

    path: str
    name: str
    step: Step
    now: datetime
    parent: str = ""
    rows_before: int = 0
    restorable: str = ""
    facts: tuple[tuple[str, str], ...] = ()
    lists: tuple[Files, ...] = ()
    rows: RowsApart | None = None
    rows_note: str = ""
    rows_command: str = ""
    commands: tuple[Command, ...] = ()
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True)
class DiffPage:
    """What lies between two states of a table. from_change, to_change: '' for the empty table before the first change.

    asked_from, asked_to: what a person typed. form: (label, text) of columns, key and partitions that differ.
    """

    path: str
    name: str
    asked_from: str
    asked_to: str
    from_change: str
    to_change: str
    now: datetime
    from_time: datetime | None = None
    to_time: datetime | None = None
    rows_before: int = 0
    rows_after: int = 0
    form: tuple[tuple[str, str], ...] = ()
    rows: RowsApart | None = None


@dataclass(frozen=True)
class LifeStep:
    """What one change did to a row. what: insert, update, delete or unknown; text: in words, for unknown. cells: (column, before, after)
    of an update's changed columns; of an insert or delete all columns, with the other value None. source: raw file and row, '' unknown.
    """

    change: str
    kind: str
    time: datetime
    what: str
    cells: tuple[tuple[str, Any, Any], ...] = ()
    text: str = ""
    source: str = ""


@dataclass(frozen=True)
class ExplainPage:
    """The life of one row, oldest step first. current: (column, value) as it is now; None for no such row."""

    path: str
    name: str
    asked: str
    key: tuple[tuple[str, Any], ...]
    now: datetime
    change: str = ""
    current: tuple[tuple[str, Any], ...] | None = None
    steps: tuple[LifeStep, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class ErrorPage:
    """What went wrong, in words. path: the table that was asked for, '' for none."""

    title: str
    message: str
    todo: str = ""
    path: str = ""


@dataclass(frozen=True)
class Report:
    """Everything that a report file holds. changes: in the order of the tables that they are of. notes: what is left out, and where to
    see it."""

    overview: Overview
    tables: tuple[TablePage, ...] = ()
    changes: tuple[ChangePage, ...] = ()
    notes: tuple[str, ...] = ()


Page = Union[Overview, TablePage, ChangePage, DiffPage, ExplainPage, ErrorPage]
