"""A lake table's past for programs: its rows as of a change or a time, and the row changes between two of them.

    from glue_jobs.past import open_past

    past = open_past("shop.orders")
    past.table("2024-05-01").frame(spark)            # a DataFrame; .batches() and .read() are Arrow, without Spark
    past.changes_frame(spark, "2024-05-01", "")      # _change_type, _commit_version, _commit_timestamp beside the columns
    past.history().frame(spark)                      # the row versions, of a table whose item says History = 'true'
    past.valid_at(datetime(2024, 5, 1, tzinfo=UTC))  # Arrow batches: those that were valid then, by the source's clock

A moment is a change id, `previous`, an ISO time or epoch seconds, '' for now. Nothing is written, and no lease is taken.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from glue_jobs.aws.clients import Clients, make_clients
from glue_jobs.aws.state_table import StateTable
from glue_jobs.aws.translate import translated
from glue_jobs.core.paths import TablePath
from glue_jobs.core.settings import read_settings
from glue_jobs.core.snapshot import Snapshot
from glue_jobs.protocol.as_of import Reading, look
from glue_jobs.protocol.history_table import history_at
from glue_jobs.protocol.lineage import Lineage
from glue_jobs.protocol.steps import States, states_between
from glue_jobs.spark.change_feed import change_feed, change_frame, state_changes
from glue_jobs.spark.history_rows import chosen_versions
from glue_jobs.spark.past import PastTable, past_history, past_table
from glue_jobs.spark.place import Place
from glue_jobs.spark.reading import reading_place


@dataclass(frozen=True)
class Past:
    """One lake table. place: of its reader."""

    clients: Clients
    items: StateTable
    path: TablePath
    place: Place

    def snapshot(self, moment: str = "") -> Snapshot:
        """The state as of a moment: which files it has, its columns, its key and its time."""
        with translated():
            return self._at(moment).snapshot

    def table(self, moment: str = "") -> PastTable:
        """The table as of a moment. Raises TableBlocked, code version-gone or version-erased, if bytes are no more."""
        with translated():
            return past_table(self.place, str(self.path), self._at(moment).snapshot)

    def history(self, moment: str = "") -> PastTable:
        """The row versions that the history table had as of a moment. Raises UsageError, code no-history, where there was none."""
        with translated():
            return self._history(moment)

    def valid_at(self, time: datetime, moment: str = "") -> Iterator[Any]:
        """The versions, as far as they were known at a moment, that were valid at a time of the source (aware): Arrow batches."""
        with translated():
            yield from chosen_versions(self._history(moment, time), at=time)

    def _history(self, moment: str, until: datetime | None = None) -> PastTable:
        snapshot = self._at(moment).snapshot
        history = history_at(self.clients.s3, self.place.lake, snapshot)
        return past_history(self.place, str(self.path), snapshot, history, until)

    def changes(self, start: str, end: str = "") -> Iterator[Any]:
        """The row changes after `start` up to `end`, on Arrow: a table for each change that has any."""
        with translated():
            yield from change_feed(self.place, str(self.path), self._states(start, end))

    def steps(self, start: str, end: str = "") -> Iterator[tuple[Snapshot, Any]]:
        """The same, each table with the state after its change."""
        with translated():
            yield from state_changes(self.place, str(self.path), self._states(start, end))

    def changes_frame(self, spark: Any, start: str, end: str = "") -> Any:
        """The same as a Spark DataFrame."""
        with translated():
            return change_frame(spark, self.place, str(self.path), self._states(start, end))

    def _at(self, moment: str) -> Reading:
        return look(self.clients.s3, self.items, self.path, moment, time.sleep)

    def _states(self, start: str, end: str) -> States:
        first, last = self._at(start).snapshot, self._at(end).snapshot
        lineage = Lineage(self.clients.s3, self.place.lake, last.change)
        states = states_between(self.clients.s3, self.place.lake, lineage, first.change, last.change)
        return replace(states, erases=last.erases)  # what was erased later is for no reader of the past


def open_past(path: str, environment: Mapping[str, str] | None = None, **settings: str) -> Past:
    """The past of the table at `path` (bucket/prefix/schema/table, or schema.table where that is unique).

    settings: as on the command line (`state_table`, limits); else DMSLAKE_… variables, then defaults.
    """
    environment = os.environ if environment is None else environment
    chosen = read_settings(dict(settings), environment)
    with translated():
        clients = make_clients(environment)
        items = StateTable(clients, chosen.state_table)
        found = items.find(path)
        state = look(clients.s3, items, found, "", time.sleep).state
    return Past(clients, items, found, reading_place(environment, found.bucket, state.lake, chosen.limits, state.before_images))
