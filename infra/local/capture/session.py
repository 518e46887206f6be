"""A capture: the full load, then rounds that bring the raw folder up to the binlog's end."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pyarrow as pa

from infra.local.capture.binlog import LoggedRow, Transaction, transactions
from infra.local.capture.errors import CaptureError
from infra.local.capture.raw_folder import CaptureState, RawFolder
from infra.local.capture.source import (
    BinlogPosition,
    Source,
    SourceTable,
    binlog_end,
    consistent_snapshot,
)
from infra.local.dms_files import CdcFileNames, DmsRow, dms_parquet, dms_table, load_file_name

LOAD_FILE_ROWS = 250_000
CDC_FLUSH_ROWS = 100_000
"""A long backlog is written, and its position saved, in pieces of about this many rows, at transaction ends."""

BEFORE_PREFIX = "BI_"


@dataclass(frozen=True)
class CaptureOptions:
    """How the files look; the defaults are those of the AWS walkthrough's endpoint."""

    tables: tuple[str, ...] | None = None
    """None: all of the database, those created later too."""
    timestamp_column: str | None = None
    before_images: bool = False
    op_in_full_load: bool = True
    """DMS's IncludeOpForFullLoad."""
    load_file_rows: int = LOAD_FILE_ROWS
    cdc_flush_rows: int = CDC_FLUSH_ROWS


@dataclass
class TableSummary:
    """What was written for one table."""

    load_files: int = 0
    load_rows: int = 0
    cdc_files: int = 0
    inserts: int = 0
    updates: int = 0
    deletes: int = 0

    def __str__(self) -> str:
        load = f"{self.load_rows} rows in {self.load_files} load files" if self.load_files else ""
        counts = f"{self.inserts} inserts, {self.updates} updates, {self.deletes} deletes in {self.cdc_files} CDC files"
        return ", ".join(filter(None, [load, counts if self.cdc_files else ""]))


@dataclass
class CaptureSummary:
    """What a capture, or one round of it, wrote."""

    position: BinlogPosition | None = None
    tables: dict[str, TableSummary] = field(default_factory=dict)
    keys: list[str] = field(default_factory=list)
    """Keys of the files, in the order of writing. A following capture keeps those of its last round only."""
    warnings: list[str] = field(default_factory=list)

    def of(self, table: str) -> TableSummary:
        """The table's part, made where it isn't there."""
        return self.tables.setdefault(table, TableSummary())


def _utc_now() -> datetime:
    return datetime.now(timezone.utc)


class Capture:
    """One database into one raw folder. Two at the same time on the same folder are a misconfiguration, as with DMS."""

    def __init__(self, source: Source, raw: RawFolder, options: CaptureOptions, clock: Callable[[], datetime] = _utc_now) -> None:
        self._source = source
        self._raw = raw
        self._options = options
        self._clock = clock
        self._told: set[str] = set()  # of the wanted tables those that are not there, and were warned of

    def full_load(self, on_load: Callable[[], None] | None = None) -> CaptureSummary:
        """Write every table's rows as of one binlog position, which is saved last. on_load: called when the folder begins to change.

        As with DMS, a table's older load and CDC files are deleted first: they belong to the load before. A table
        without rows gets no file. A crash leaves the state's word that a load was begun, which the rounds refuse: run
        the full load again.
        """
        with self._source.refusals():
            return self._full_load(on_load)

    def round(self) -> CaptureSummary:
        """Write the changes from the saved position to the binlog's present end; without a position, start there."""
        with self._source.refusals():
            return self._round()

    def _full_load(self, on_load: Callable[[], None] | None) -> CaptureSummary:
        summary = CaptureSummary()
        old, only = self._raw.load_state(), self._only()
        if old is not None and only is not None and (old.tables is None or not set(old.tables) <= set(only)):
            raise self._other_tables(old, "changes of the others would be left out up to the new position")
        with consistent_snapshot(self._source) as (connection, position):
            with self._source.connect() as other:
                self._source.check(other)
                tables = self._source.tables(other, self._options.tables)
                summary.warnings += self._cascades(other)
            state = CaptureState(position, old.last_files if old else {}, is_loading=True, tables=only)
            if on_load:
                on_load()
            self._raw.save_state(state)  # before the first file goes: from now on the folder has no whole load
            for table in tables:
                self._raw.remove_files(table.name)
                self._load_table(connection, table, summary)
        self._raw.save_state(replace(state, is_loading=False))
        summary.position = position
        return summary

    def _round(self) -> CaptureSummary:
        with self._source.connect() as connection:
            self._source.check(connection)
            names = self._source.names(connection, self._options.tables)
            cascades = self._cascades(connection)
            end = binlog_end(connection)
        state = self._raw.load_state()
        summary = CaptureSummary(position=end, warnings=[*self._not_there(names), *cascades])
        if state is None:
            self._raw.save_state(CaptureState(end, tables=self._only()))
            summary.warnings.append(f"no saved position in {self._raw.state_place}: changes are captured from {end} on")
            return summary
        if state.is_loading:
            raise CaptureError(
                f"{self._raw.state_place}: the full load that began at {state.position} did not come to its end: "
                "rows and tables are missing in the raw folder",
                "load-broke-off",
                "run it again with --full-load, before any `dmslake run`: that would take what is there for the whole tables",
            )
        if state.tables != self._only():
            raise self._other_tables(state, "rows of some would be left out")
        if state.position.order > end.order:
            raise CaptureError(
                f"{self._raw.state_place}: position {state.position} lies behind the binlog's end {end}: "
                "it is another server, or its binlog was reset",
                "binlog-position",
                "run with --full-load",
            )
        only = self._options.tables
        wanted = (lambda name: name in only) if only is not None else (lambda name: True)
        pending: list[LoggedRow] = []
        for transaction in transactions(self._source, state.position, end, wanted):
            self._take(transaction, pending, state, summary)
        self._flush(pending, state, summary)
        summary.position = state.position
        return summary

    def _only(self) -> tuple[str, ...] | None:
        """The tables that are captured, in one order; None for all."""
        return None if self._options.tables is None else tuple(sorted(set(self._options.tables)))

    def _other_tables(self, state: CaptureState, what: str) -> CaptureError:
        """One position is of all tables that are captured: with others it would be wrong for some."""
        before, now = (", ".join(tables) if tables is not None else "all" for tables in (state.tables, self._only()))
        return CaptureError(
            f"{self._raw.state_place}: position {state.position} is of other tables than are asked for: {what}; "
            f"expected --tables as before ({before}), found {now}",
            "other-tables",
            "give the tables as before; or capture all of both with --full-load; or remove the file, to leave the others as they are",
        )

    def _not_there(self, names: Sequence[str]) -> list[str]:
        """A warning of wanted tables that the database doesn't have, once: under a wrong name nothing is ever captured."""
        missing = sorted(set(self._options.tables or ()) - set(names) - self._told)
        self._told.update(missing)
        return [f"--tables: {', '.join(missing)} not in database {self._source.database}; there are: {names}"] if missing else []

    def _cascades(self, connection: Any) -> list[str]:
        """A warning of tables whose rows may go or change without a word in the binlog, once."""
        found = [name for name in self._source.cascades(connection, self._options.tables) if f"{name} by cascade" not in self._told]
        self._told.update(f"{name} by cascade" for name in found)
        what = "rows that a foreign key deletes or changes with those of another table are not in the binlog, and not captured"
        return [f"{', '.join(found)}: {what}; after such a statement, --full-load"] if found else []

    def _take(self, transaction: Transaction, pending: list[LoggedRow], state: CaptureState, summary: CaptureSummary) -> None:
        pending += transaction.rows
        summary.warnings += transaction.warnings
        state.position = transaction.position_after
        if len(pending) >= self._options.cdc_flush_rows:
            self._flush(pending, state, summary)

    def _flush(self, pending: list[LoggedRow], state: CaptureState, summary: CaptureSummary) -> None:
        """One CDC file per table, more only where its columns changed; then the position.

        A crash before the position is saved repeats these rows under later names: at least once, in the same order.
        """
        for name, rows in _by_table(pending).items():
            names = CdcFileNames(state.last_files.get(name))
            for _, part in itertools.groupby(rows, key=lambda row: row.columns):
                file = names.next(self._clock())
                summary.keys.append(self._raw.put(name, file, dms_parquet(self._cdc_table(list(part)))))
                summary.of(name).cdc_files += 1
                state.last_files[name] = file
            _count(summary.of(name), rows)
        pending.clear()
        self._raw.save_state(state)

    def _cdc_table(self, rows: list[LoggedRow]) -> pa.Table:
        columns = rows[0].columns
        fields = [pa.field(column.name, column.type) for column in columns]
        if self._options.before_images:
            fields += [pa.field(BEFORE_PREFIX + column.name, column.type) for column in columns]
        nothing = [None] * len(columns)

        def values(row: LoggedRow) -> list[Any]:
            return row.values + (row.before or nothing) if self._options.before_images else row.values

        written = (DmsRow(row.op, values(row), row.event_time) for row in rows)
        return dms_table(pa.schema(fields), written, timestamp_column=self._options.timestamp_column)

    def _load_table(self, connection: Any, table: SourceTable, summary: CaptureSummary) -> None:
        schema = pa.schema([(column.name, column.type) for column in table.columns])
        with connection.cursor() as cursor:
            cursor.execute(table.select)
            for number in itertools.count(1):
                rows = cursor.fetchmany(self._options.load_file_rows)
                if not rows:
                    return
                content = self._load_file(schema, table, rows)
                summary.keys.append(self._raw.put(table.name, load_file_name(number), content))
                summary.of(table.name).load_files += 1
                summary.of(table.name).load_rows += len(rows)

    def _load_file(self, schema: pa.Schema, table: SourceTable, rows: Sequence[Sequence[Any]]) -> bytes:
        """The timestamp column of a full load is the time of transfer, as with DMS."""
        now, convert = self._clock(), table.converters

        def values(row: Sequence[Any]) -> list[Any]:
            pairs = zip(convert, row, strict=True)
            return [value if value is None or make is None else make(value) for make, value in pairs]

        return dms_parquet(
            dms_table(
                schema,
                (DmsRow("I", values(row), now) for row in rows),
                timestamp_column=self._options.timestamp_column,
                with_op=self._options.op_in_full_load,
            )
        )


def capture(
    mysql_url: str,
    raw: str,
    *,
    s3_client: Any,
    full_load: bool = False,
    follow: bool = False,
    interval_seconds: float = 60.0,
    options: CaptureOptions = CaptureOptions(),
    state_file: Path | None = None,
    stop: threading.Event | None = None,
    on_round: Callable[[CaptureSummary], None] | None = None,
    on_load: Callable[[], None] | None = None,
) -> CaptureSummary:
    """Capture the database: the full load if asked for, then the binlog up to its present end, or on and on.

    `on_round` gets what the full load and each round wrote; `on_load` is called when the full load begins to change
    the folder. With `follow` a round begins every `interval_seconds` until `stop` is set; the answer is then the sum,
    with the keys and warnings of the last round.
    """
    source = Source.from_url(mysql_url)
    session = Capture(source, RawFolder(raw, source.database, s3_client, state_file), options)
    stop = stop or threading.Event()
    total = CaptureSummary()
    if full_load:
        _report(total, session.full_load(on_load), on_round)
    _report(total, session.round(), on_round)
    while follow and not stop.wait(interval_seconds):
        total.keys.clear()
        total.warnings.clear()
        _report(total, session.round(), on_round)
    return total


def _report(total: CaptureSummary, part: CaptureSummary, on_round: Callable[[CaptureSummary], None] | None) -> None:
    total.position = part.position
    total.keys += part.keys
    total.warnings += part.warnings
    for name, table in part.tables.items():
        whole = total.of(name)
        for count in vars(table):
            setattr(whole, count, getattr(whole, count) + getattr(table, count))
    if on_round:
        on_round(part)


def _by_table(rows: list[LoggedRow]) -> dict[str, list[LoggedRow]]:
    tables: dict[str, list[LoggedRow]] = {}
    for row in rows:
        tables.setdefault(row.table, []).append(row)
    return tables


def _count(summary: TableSummary, rows: list[LoggedRow]) -> None:
    ops = [row.op for row in rows]
    summary.inserts += ops.count("I")
    summary.updates += ops.count("U")
    summary.deletes += ops.count("D")
