"""What a history table can be built anew from: the changes that the head's rows come from, as far back as they can be made again. Pure."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from glue_jobs.core.collation import identity
from glue_jobs.core.errors import TableBlocked, blocked
from glue_jobs.core.history_table import columns_after
from glue_jobs.core.record import ChangeRecord, Input
from glue_jobs.core.replay import ADOPT, BASES, KNOWN, Fold, inputs_of, renamed, renamed_column
from glue_jobs.core.schema import Schema
from glue_jobs.core.snapshot import Snapshot
from glue_jobs.core.state import TableState

NOT_POSSIBLE = "backfill-not-possible"


@dataclass(frozen=True)
class Rebuild:
    """The changes to make again, oldest first, the first of which says all rows or is the table's first. columns: the history's after
    each of them. left_out: how many changes before them are not, and why."""

    records: tuple[ChangeRecord, ...]
    columns: tuple[Schema, ...]
    left_out: int = 0
    why: str = ""

    @property
    def inputs(self) -> dict[str, Input]:
        """Raw key → raw file, of all that is read."""
        return inputs_of(self.records)

    @property
    def rows(self) -> int:
        """About how many rows are read."""
        adopted = sum(record.counts.table_rows for record in self.records if record.kind == ADOPT)
        by_hand = sum(record.counts.inserted + record.counts.updated + record.counts.deleted for record in self.records if record.given)
        return adopted + by_hand + sum(max(0, item.rows) for item in self.inputs.values())


@dataclass(frozen=True)
class Backfill:
    """What a backfill would do. history: the snapshot of the history table that it replaces; fold: the changes, with what they need.
    erases: those that stay although a rollback went to before them, so that they are none of the changes; oldest first."""

    state: TableState
    snapshot: Snapshot
    history: Snapshot
    rebuild: Rebuild
    fold: Fold
    erases: tuple[ChangeRecord, ...] = ()

    def facts(self) -> dict[str, Any]:
        """For people, logs and the change's record."""
        inputs, records = self.rebuild.inputs, self.rebuild.records
        return {
            "begins": records[0].id,
            "begins_at": records[0].time,
            "changes": len(records),
            "left_out": self.rebuild.left_out,
            "raw_files": len(inputs),
            "raw_bytes": sum(item.size_bytes for item in inputs.values()),
            "raw_rows": self.rebuild.rows,
            "versions_replaced": self.history.rows,
        }


def rebuild_for(path: str, bucket: str, records: Sequence[ChangeRecord], listed: Mapping[str, str]) -> Rebuild:
    """The longest end of `records` (of the head's rows, oldest first) that can be made again. listed: raw key → ETag of all raw files.

    Raises TableBlocked, code backfill-not-possible, if not even the changes since the last that says all rows can be.
    """
    starts = [at for at, record in enumerate(records) if at == 0 or record.kind in BASES]
    turns = _turns(records)
    error: TableBlocked | None = None
    chosen: list[tuple[int, Schema]] = []
    end = len(records)  # what comes from there on was looked at with a later start
    for start in reversed(starts):
        try:
            _check(path, bucket, records[start:end], listed)
            chosen = _columns_from(path, records, start, turns)
        except TableBlocked as found:
            error = found
            break
        end = start
    if not chosen:
        assert error is not None
        raise error
    columns = _each(chosen, len(records))
    return Rebuild(tuple(records[end:]), columns, left_out=end, why=error.message if error else "")


def _check(path: str, bucket: str, records: Sequence[ChangeRecord], listed: Mapping[str, str]) -> None:
    """Refuse these changes if they can't be made again."""
    for record in records:
        if record.kind not in KNOWN:
            raise _impossible(
                path, f"change {record.id} is of kind {record.kind}, which can't be made again", "loads, batches, corrections"
            )
        if not record.primary_key:
            raise _impossible(path, f"the table had no primary key at change {record.id}", "a key, of which rows are versions")
    gone = [item for record in records for item in inputs_of([record]).values() if listed.get(item.key) != item.etag]
    if gone:
        first = min(gone, key=lambda item: item.key)
        more = f", and {len(gone) - 1} more" if len(gone) > 1 else ""
        what = "was written anew" if first.key in listed else "is gone"
        raise _impossible(
            f"s3://{bucket}/{first.key}", f"a raw file that was applied {what}: {first.key.rsplit('/', 1)[-1]}{more}", first.etag
        )


def _impossible(where: str, what: str, expected: str) -> TableBlocked:
    return blocked(
        NOT_POSSIBLE,
        f"the history can't be built anew: {what}",
        where=where,
        expected=expected,
        todo="put back what is missing; without a backfill the history goes on, or begins with the rows of now; nothing was changed",
    )


def _turns(records: Sequence[ChangeRecord]) -> list[int]:
    """The places of the changes after which the columns are others than before. They are few, and a table may have many loads, with each
    of which the history could begin."""

    def said(record: ChangeRecord) -> list[tuple[Any, ...]]:
        return [(column, column.added, column.older) for column in record.schema]  # a column equals another one without these

    return [at for at in range(1, len(records)) if renamed(records[at]) or said(records[at]) != said(records[at - 1])]


def _columns_from(path: str, records: Sequence[ChangeRecord], start: int, turns: Sequence[int]) -> list[tuple[int, Schema]]:
    """(place of a change, the history's columns from it on), if the history begins with the change at `start`. turns: as `_turns` says."""
    history = columns_after((), records[start].schema, path)
    found = [(start, history)]
    for at in turns[bisect_right(turns, start) :]:
        names = renamed_column(records[at - 1].schema, records[at])
        if names:
            history = tuple(replace(column, name=names[1]) if column.name == names[0] else column for column in history)
        history = columns_after(history, records[at].schema, path)
        found.append((at, history))
    return found


def _each(columns: Sequence[tuple[int, Schema]], count: int) -> tuple[Schema, ...]:
    """The columns after each change from the first place on. columns: as `_columns_from` says; count: of all changes."""
    ends = [*(at for at, _ in columns[1:]), count]
    return tuple(history for (at, history), end in zip(columns, ends) for _ in range(at, end))


def rekeyed(records: Sequence[ChangeRecord]) -> bool:
    """Whether the key changes on the way: then no part of the keys can be made alone."""
    return len({identity(record.primary_key) for record in records}) > 1
