"""The rows of load files and CDC files, as the settings of a DMS endpoint lay them out."""

from __future__ import annotations

import random
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from glue_jobs.core.dms_columns import BEFORE_PREFIX, SEQUENCE_COLUMN
from glue_jobs.core.dms_names import timestamp_text
from glue_jobs.spark.dms_writer import DmsRow
from infra.local.feed.formats import Format, Sheet, csv_bytes, zipped
from infra.local.feed.simulation import Change, Row, SourceColumn
from infra.local.feed.wish import FeedWish

SCHEMA, TABLE = "shop", "things"
"""What transaction files call the table where nobody says otherwise."""


def commit_text(change: Change) -> str:
    """What stands in a CDC row's timestamp column."""
    return timestamp_text(change.committed_at)


def transfer_text(at: datetime, number: int) -> str:
    """What stands in a loaded row's: when it was read, which is later than the first changes that DMS keeps for after the load."""
    return timestamp_text(at + timedelta(seconds=5, microseconds=number))


class Sheets:
    """How the endpoint is set up. table: (schema, table), which transaction files name."""

    def __init__(self, wish: FeedWish, key: tuple[str, ...], table: tuple[str, str]) -> None:
        self._wish, self._key, self._table = wish, key, table

    def of_load(self, columns: tuple[SourceColumn, ...], rows: Sequence[tuple[Row, str]]) -> Sheet:
        """A load file; rows: with the text of the timestamp column."""
        with_op = self._wish.op == "all"
        return self._sheet(columns, [DmsRow("I" if with_op else None, row, text) for row, text in rows], with_op)

    def of_changes(self, changes: Sequence[Change]) -> Sheet:
        """A CDC file; all changes have the same columns."""
        rows = [DmsRow(change.op, self._values(change), commit_text(change)) for change in changes]
        return self._sheet(changes[0].columns, rows, self._wish.op != "none")

    def _sheet(self, columns: tuple[SourceColumn, ...], rows: Sequence[DmsRow], with_op: bool) -> Sheet:
        wish = self._wish
        return Sheet(columns, rows, wish.timestamp_column, with_op, wish.change_sequence, wish.before_images, wish.header)

    def _values(self, change: Change) -> dict[str, Any]:
        """By column; what isn't named is null."""
        keys_only = change.op == "D" and self._wish.key_only_deletes
        values = {name: value for name, value in change.row.items() if not keys_only or name in self._key}
        if change.before is not None:
            values |= {BEFORE_PREFIX + name: value for name, value in change.before.items()}
        values[SEQUENCE_COLUMN] = f"{change.committed_at:%Y%m%d%H%M%S}00{change.sequence:019d}"
        return values

    def transactions(self, changes: Sequence[Change], form: Format) -> bytes:
        """A file of all tables' changes in the order of their commits: before each row operation, table and schema, and rows of others
        between ours: of tables and schemas with similar names and other columns."""
        schema, table = self._table
        chance = random.Random(changes[0].sequence)
        others = [(schema, f"{table}2"), (schema, table.upper()), (f"{schema}_old", table), (schema, "other")]
        lines: list[bytes] = []
        sheet = self.of_changes(changes)
        for row in sheet.rows:
            while chance.random() < 0.3:
                name = chance.choice(others)
                lines.append(f'{chance.choice("IUD")},{name[1]},{name[0]},{chance.randint(1, 9)},"of another\ntable"\n'.encode())
            one = Sheet(sheet.columns, [row], sheet.timestamp_column)
            lines.append(csv_bytes(one, before=(table, schema)))
        data = b"".join(lines)
        return zipped(data) if form.ending.endswith(".gz") else data
