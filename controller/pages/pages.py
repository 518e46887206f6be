"""The pages read from AWS: each method is one page, as a value. What was read of a change is kept, because a change never changes."""

from __future__ import annotations

import contextlib
import math
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime

from botocore.exceptions import ClientError

from controller.gather import Facts, Gathered, in_threads
from controller.history import HEAD, PastChange
from controller.pages.change import ChangeReader
from controller.pages.kept_files import KeptFiles
from controller.pages.overview import overview_of
from controller.pages.rows import RowReader
from controller.pages.shelf import Shelf
from controller.pages.steps import Place, Walk
from controller.pages.table import table_page_of
from controller.pages.views import ChangePage, DiffPage, ExplainPage, Overview, TablePage
from controller.session import Session
from controller.status import TableStatus, read_status, wants_files
from controller.ways import ways
from glue_jobs.aws.translate import aws_error, translated
from glue_jobs.core.errors import DmslakeError, TableBlocked, UsageError, name_table
from glue_jobs.core.state import TableState
from glue_jobs.protocol.history import read_snapshot

STEPS_SHOWN = 50  # changes on a table's page
BARS_SHOWN = 12  # changes of a table in the overview
FILES_SECONDS, CHANGES_SECONDS = 0.4, 0.2  # of a glance; items, names and the page itself take the rest of a second
LEAST_READ = 10  # tables whose changes are read in every glance
MOST_READ = 100  # tables whose changes are read anew for one overview; of further ones they are read for the next


class Pages:
    """The pages of one session. May be used by several threads. Every method raises DmslakeError: UsageError with code unknown-table or
    unknown-change where there is no such thing, any other UsageError for a wrong wish, and errors of AWS in our words."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._s3 = session.clients.s3  # made before there are threads: making a client is not thread-safe
        self._shelf = Shelf(self._s3)
        self._files = KeptFiles()
        self._reading_on = threading.Lock()
        self._rows = RowReader(session)
        self._change = ChangeReader(session, self._shelf, self._rows)

    def overview(self, paths: Sequence[str] = (), most_read: int | None = MOST_READ) -> Overview:
        """All tables of the session's settings, or those named, the ones that need a person first. Of at most `most_read` tables (None:
        all) the last changes are read; what was read before is there again."""
        with translated():
            gathered = self.gather(paths)
            return self.overview_of(gathered, read_status(gathered), most_read)

    def glance(self, paths: Sequence[str] = ()) -> Overview:
        """The same within about a second, however many tables there are: those that there was no time for are `unread`. They are read
        while somebody looks at the others, so that the next glance has them."""
        with translated():
            gathered = self.gather(paths, FILES_SECONDS)
            found = self.overview_of(gathered, read_status(gathered), MOST_READ, CHANGES_SECONDS)
        if found.unread or any(fact.is_unread for fact in gathered.tables):
            self._read_on(paths)
        return found

    def _read_on(self, paths: Sequence[str]) -> None:
        """Read what a glance left, unless that is done already. A daemon thread: it does not keep the process."""

        def read() -> None:
            with self._reading_on, contextlib.suppress(DmslakeError):
                self.overview(paths)

        if not self._reading_on.locked():
            threading.Thread(target=read, name="read on", daemon=True).start()

    def overview_of(
        self, gathered: Gathered, statuses: Sequence[TableStatus], most_read: int | None, within_seconds: float | None = None
    ) -> Overview:
        """The overview of tables that were gathered; only their last changes are read."""
        walks, unread = self._walks(gathered, most_read, within_seconds)
        return overview_of(gathered, statuses, walks, unread)

    def gather(self, paths: Sequence[str] = (), within_seconds: float | None = None) -> Gathered:
        """Everything of all tables, or of those named: their items together, of each the head's record, without its list of files where
        that is long, and a listing of new raw files, unless it was read a little while ago. within_seconds: for the files; what takes
        longer is left."""
        discover, files = bool(self._session.settings.raw), self._files.look(within_seconds)
        gathered = self._session.gather(paths, everything=True, wants=wants_files, discover=discover, files=files)
        self._files.keep({fact.path for fact in gathered.tables if fact.state is not None and wants_files(fact.state)})
        return gathered

    def table(self, path: str, at: str = "", count: int = STEPS_SHOWN) -> TablePage:
        """One table with `count` of its changes: the newest, or those that `TablePage.older` of another page leads to."""
        place = Place.parse(at) if at else None
        with self._gathered(path) as (gathered, fact):
            (status,) = read_status(gathered)
            return self.table_of(gathered, fact, status, place, count)

    def table_of(self, gathered: Gathered, fact: Facts, status: TableStatus, place: Place | None, count: int) -> TablePage:
        """The page of a table that was gathered; only its changes are read, and the list of its files where that was left out. place: where
        the changes begin, None for the head."""
        walked, commands = None, []
        fact, warnings = self._with_files(fact)
        if fact.state is not None and fact.state.head and fact.state.out_path:
            try:
                walked = self._shelf.walk(fact.state.lake, fact.state.head, place, count)
                commands = self._ways(fact.state) if place is None else []
            except TableBlocked as error:
                warnings.append(f"its changes can't be shown: {error.message}")
        return table_page_of(fact, status, gathered, walked, str(place or ""), commands, warnings)

    def _with_files(self, fact: Facts) -> tuple[Facts, list[str]]:
        """(the table with the list of its files; why that can't be read)."""
        state, snapshot = fact.state, fact.snapshot
        if state is None or snapshot.totals is None:
            return fact, []
        try:
            return replace(fact, snapshot=read_snapshot(self._s3, state.lake, snapshot.change)), []
        except (TableBlocked, ClientError) as error:
            return replace(fact, snapshot=replace(snapshot, files={})), [f"its data files can't be listed: {aws_error(error).message}"]

    def change(self, path: str, change: str, rows: int = 10) -> ChangePage:
        """One change, with up to `rows` rows of each kind that it changed, where they can be had cheaply."""
        with self._gathered(path, files=False) as (gathered, fact):
            return self.change_of(_state(fact), change.strip(), gathered.now, rows)

    def change_of(self, state: TableState, change: str, now: datetime, rows: int) -> ChangePage:
        """The page of a change of a table whose item was read."""
        return self._change.page(state, change, now, rows)

    def diff(self, path: str, a: str, b: str = "") -> DiffPage:
        """What lies between two states: changes, times or `previous`; '' for now. Needs pyarrow."""
        with self._gathered(path, files=False) as (gathered, fact):
            return self._rows.diff(_state(fact), a.strip(), b.strip(), gathered.now)

    def explain(self, path: str, key: str) -> ExplainPage:
        """The life of one row. key: its values, separated by commas as in CSV. Needs pyarrow."""
        with self._gathered(path, files=False) as (gathered, fact):
            return self._rows.explain(_state(fact), key, gathered.now)

    @contextmanager
    def _gathered(self, path: str, files: bool = True) -> Iterator[tuple[Gathered, Facts]]:
        """One table's facts; errors in our words, with the table's name in their way out. files: its snapshot and raw files too."""
        try:
            with translated():
                gathered = self._one(path, files)
                (fact,) = gathered.tables
                yield gathered, fact
        except DmslakeError as error:
            raise name_table(error, path) from None

    def _one(self, path: str, files: bool) -> Gathered:
        """One table; also one that the overview found below the raw folder, and that has no item until a run gives it one."""
        try:
            return self._session.gather((path,), alone=not files, wants=wants_files if files else lambda state: False)
        except UsageError as error:
            if error.code != "unknown-table" or not self._session.settings.raw:
                raise
            found = self._session.gather(wants=lambda state: False)
            new = tuple(fact for fact in found.tables if fact.is_new and fact.path == path)
            if not new:
                raise
            return replace(found, tables=new)

    def _walks(self, gathered: Gathered, most_read: int | None, within_seconds: float | None) -> tuple[Mapping[str, Walk], int]:
        """The last changes of the tables, of the most lately changed first, and of how many they were left for another time."""
        loaded = [fact for fact in gathered.tables if fact.state is not None and fact.state.head and fact.snapshot.change]
        states = {fact.path: fact.state for fact in loaded if fact.state is not None}
        known = [fact.path for fact in loaded if self._shelf.has(states[fact.path].lake, states[fact.path].head)]
        at_hand = set(known)
        others = sorted((fact for fact in loaded if fact.path not in at_hand), key=lambda fact: fact.snapshot.time, reverse=True)
        chosen = [*known, *(fact.path for fact in others[:most_read])]
        until = math.inf if within_seconds is None else time.monotonic() + within_seconds
        least, left = {*at_hand, *(fact.path for fact in others[:LEAST_READ])}, list[str]()

        def read(path: str) -> Walk | None:
            if path not in least and time.monotonic() > until:
                left.append(path)
                return None
            try:
                return self._shelf.walk(states[path].lake, states[path].head, None, BARS_SHOWN, at_once=False)
            except TableBlocked:
                return None  # its page says so

        walks = dict(zip(chosen, in_threads(read, chosen)))
        return {path: walked for path, walked in walks.items() if walked is not None}, len(loaded) - len(chosen) + len(left)

    def _ways(self, state: TableState) -> list[tuple[str, str]]:
        read = self._shelf.reader(state.lake, STEPS_SHOWN)
        return ways(state, lambda change: read(change).record, PastChange(read(state.head).record, HEAD))


def _state(fact: Facts) -> TableState:
    """The table's state; what hides it is raised."""
    if fact.state is None:
        assert fact.problem is not None
        raise fact.problem
    return fact.state
