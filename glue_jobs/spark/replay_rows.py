"""The rows that a table should have, made anew from its raw files, from rows that persons gave, and from adopted files. Arrow only.

A pass makes the rows of a part of the keys, so that memory does not grow with the table. Rows of a table without a key do not meet each
other: each goes its own way through the changes after it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from glue_jobs.aws.records import read_attachment
from glue_jobs.core.erasure import texts_among
from glue_jobs.core.raw_names import CdcName, RawFile, cdc_name
from glue_jobs.core.raw_reading import reading_again
from glue_jobs.core.record import ChangeRecord, ErasedKeys, Given, Input
from glue_jobs.core.replay import ADOPT, BY_HAND, ERASE, FULL_LOAD, INCREMENTAL, LATE, Fold, renamed_column, steps_of
from glue_jobs.core.schema import Schema
from glue_jobs.spark.arrow_types import arrow_schema, conform
from glue_jobs.spark.attached_rows import from_parquet
from glue_jobs.spark.erased_keys import texts_of_keys
from glue_jobs.spark.key_columns import normalised_keys
from glue_jobs.spark.key_index import KeyIndex
from glue_jobs.spark.locate import GivenKeys
from glue_jobs.spark.net_changes import DELETE, HELD, INSERT, OP, are_rows
from glue_jobs.spark.open_file import OpenFile
from glue_jobs.spark.partition_columns import empty_as_null
from glue_jobs.spark.past import PastFile
from glue_jobs.spark.place import Place, Shape
from glue_jobs.spark.ranking import rank
from glue_jobs.spark.raw_batch import Unit, read_heads, read_unit, units_of
from glue_jobs.spark.raw_file import RawHead
from glue_jobs.spark.row_hashes import row_hashes
from glue_jobs.spark.rows import keep_late, with_marks

AHEAD = 8  # raw files that are read at a time
_BUFFER_SHARE = 4  # of the memory for rows, what is read before it is merged
_T = TypeVar("_T")
_R = TypeVar("_R")


@dataclass(frozen=True)
class Part:
    """Those rows whose key's hash says this part of `count`; without a key the whole row's."""

    number: int = 0
    count: int = 1

    def of(self, rows: pa.Table, key: Sequence[str]) -> pa.Table:
        """The rows of the part."""
        return rows if self.count == 1 else rows.filter(pa.array(self.mask(rows, key)))

    def mask(self, rows: pa.Table, key: Sequence[str]) -> np.ndarray[Any, Any]:
        """For each row whether it is of the part."""
        if self.count == 1:
            return np.ones(rows.num_rows, bool)
        hashes = row_hashes(normalised_keys(rows, key) if key else rows)
        return hashes % np.uint64(self.count) == self.number


def in_threads_ahead(work: Callable[[_T], _R], items: Iterable[_T]) -> Iterator[_R]:
    """`work` on every item, in order; a few are begun before they are wanted."""
    pool = ThreadPoolExecutor(AHEAD)
    waiting: deque[Future[_R]] = deque()
    try:
        for item in items:
            waiting.append(pool.submit(work, item))
            if len(waiting) >= AHEAD:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    finally:
        pool.shutdown(cancel_futures=True)


class ReplayRows:
    """Makes the rows of one fold. adopted: the files of the base, if another program wrote it, as far as they are there."""

    def __init__(self, place: Place, table: str, fold: Fold, adopted: Sequence[PastFile]) -> None:
        self._place, self._table, self._fold, self._adopted = place, table, fold, adopted
        self._steps = steps_of(fold.records)
        self._heads: dict[str, list[RawHead]] = {}
        self._given: dict[str, tuple[GivenKeys, pa.Table]] = {}

    def rows(self, part: Part) -> pa.Table:
        """The rows of a part, in the head's columns."""
        if not any(record.primary_key for record in self._fold.records):
            tables = [part.of(table, ()) for table in self._streamed()]
            return pa.concat_tables([arrow_schema(self._fold.head.schema).empty_table(), *tables])
        state, schema = pa.table({}), ()
        for step in self._steps:
            state = self._carried(state, schema, step[-1])
            state = self._after(state, step, part)
            schema = step[-1].schema
        return conform(state, self._fold.head.schema, self._table)

    # --- rows that are there

    def _carried(self, rows: pa.Table, before: Schema, record: ChangeRecord) -> pa.Table:
        """Rows of the state before a change, those that stay, in its columns."""
        if record.kind in (FULL_LOAD, ADOPT) or not before:
            return arrow_schema(record.schema).empty_table()
        names = renamed_column(before, record)
        if names:
            rows = rows.rename_columns([names[1] if name == names[0] else name for name in rows.column_names])
        rows = as_written(conform(rows, record.schema, self._table), record)
        if record.kind in BY_HAND and record.given and record.id not in self._fold.gone:
            gone, _ = self.of_person(record, record.given)
            return rows.filter(pa.array(gone.places(rows) < 0))
        if record.kind == ERASE and record.erased_keys is not None:
            return without_erased(rows, record.erased_keys)
        return rows.slice(0, 0) if record.kind == "truncate" else rows

    def _streamed(self) -> Iterator[pa.Table]:
        """The rows of a table without a key, in pieces."""
        for at, step in enumerate(self._steps):
            for rows in self._new_rows(step):
                table, schema = rows, step[-1].schema
                for later in self._steps[at + 1 :]:
                    table, schema = self._carried(table, schema, later[-1]), later[-1].schema
                yield conform(table, self._fold.head.schema, self._table)

    def _new_rows(self, step: Sequence[ChangeRecord]) -> Iterator[pa.Table]:
        """The rows that a step of changes without a key brings."""
        record = step[-1]
        shape = self._shape(record)
        if record.kind == INCREMENTAL:
            for rows in self._raw_tables(self.ordered(step), shape, Part()):
                yield as_written(_lake_rows(rows.filter(pc.equal(rows[OP], INSERT)), shape), record)
        elif record.kind == FULL_LOAD:
            for rows in self._raw_tables(self.heads_of(record, record.inputs), shape, Part()):
                yield as_written(_lake_rows(rows.filter(pc.not_equal(rows[OP], DELETE)), shape), record)
        elif record.kind == ADOPT:
            yield from self.adopted_rows(shape)
        else:
            yield self._after(arrow_schema(record.schema).empty_table(), step, Part())

    # --- rows that come

    def _after(self, state: pa.Table, step: Sequence[ChangeRecord], part: Part) -> pa.Table:
        """The state after a step; `state` is what stays of the one before."""
        record = step[-1]
        shape = self._shape(record)
        if record.kind == FULL_LOAD:
            heads = self.heads_of(record, record.inputs)
            winners = rank(_together(self._raw_tables(heads, shape, part), shape), shape.key)
            return as_written(_lake_rows(winners.filter(are_rows(winners)), shape), record)
        if record.kind == ADOPT:
            return pa.concat_tables([state, *(part.of(rows, shape.key) for rows in self.adopted_rows(shape))])
        if record.kind == INCREMENTAL:
            return self._merge_batches(state, step, shape, part)
        if record.kind == LATE:
            return self._merge_late(state, record, shape, part)
        if record.kind in BY_HAND and record.given and record.id not in self._fold.gone:
            rows = part.of(as_written(self.of_person(record, record.given)[1], record), shape.key)
            return pa.concat_tables([state, rows])
        return state

    def _merge_batches(self, state: pa.Table, step: Sequence[ChangeRecord], shape: Shape, part: Part) -> pa.Table:
        limit = self._place.limits.replay_bytes / part.count / _BUFFER_SHARE
        waiting: list[pa.Table] = []
        size = 0
        for rows in self._raw_tables(self.ordered(step), shape, part):
            waiting.append(rows)
            size += rows.nbytes
            if size > limit:
                state = merged(state, rank(pa.concat_tables(waiting), shape.key), shape, step[-1])
                waiting, size = [], 0
        return merged(state, rank(_together(waiting, shape), shape.key), shape, step[-1])

    def _merge_late(self, state: pa.Table, record: ChangeRecord, shape: Shape, part: Part) -> pa.Table:
        late = frozenset(item.key for item in record.inputs)
        heads = self.heads_of(record, sorted((*record.context, *record.inputs), key=by_name), late)
        rows = _together(self._raw_tables(heads, shape, part), shape)
        return merged(state, keep_late(rank(rows, shape.key), heads), shape, record)

    def ordered(self, step: Sequence[ChangeRecord]) -> list[RawHead]:
        """The raw files of changes that follow on each other, those of the first change before those of the next, whatever their names."""
        heads: list[RawHead] = []
        for record in step:
            heads += [replace(head, ordinal=len(heads) + at) for at, head in enumerate(self.heads_of(record, record.inputs))]
        return heads

    def heads_of(self, record: ChangeRecord, inputs: Sequence[Input], late: frozenset[str] = frozenset()) -> list[RawHead]:
        if record.id not in self._heads:
            files = [raw_file(item) for item in inputs if not item.is_blank]
            self._heads[record.id] = read_heads(self._place, files, reading_again(record), late)
        return self._heads[record.id]

    def _raw_tables(self, heads: Sequence[RawHead], shape: Shape, part: Part) -> Iterator[pa.Table]:
        def read(unit: Unit) -> list[pa.Table]:
            return [part.of(rows, shape.key) for rows in read_unit(self._place, shape, unit)]

        for tables in in_threads_ahead(read, [unit for head in heads for unit in units_of(head)]):
            yield from tables

    def adopted_rows(self, shape: Shape) -> Iterator[pa.Table]:
        for each in self._adopted:
            yield from OpenFile.open(self._place, shape, each.file, version=each.version).batches()

    def _shape(self, record: ChangeRecord) -> Shape:
        return Shape(self._table, record.schema, record.primary_key, record.partitioning, True)

    def of_person(self, record: ChangeRecord, given: Given) -> tuple[GivenKeys, pa.Table]:
        """(the keys whose rows go, the rows that come) of a correction, as they took effect."""
        if record.id not in self._given:
            keys = tuple(column for name in given.key for column in record.schema if column.name == name)
            gone = self._attached(given.deletes, keys)
            came = self._attached(given.updates, record.schema)
            new = self._attached(given.inserts, record.schema)
            both = pa.concat_tables([gone, came.select(list(given.key))])
            keys_gone = GivenKeys.of(both, given.key) if given.key else GivenKeys((), both)
            self._given[record.id] = (keys_gone, pa.concat_tables([came, new]))
        return self._given[record.id]

    def _attached(self, name: str, schema: Schema) -> pa.Table:
        if not name:
            return arrow_schema(schema).empty_table()
        data = read_attachment(self._place.s3, self._place.lake, name)
        return conform(from_parquet(data), schema, name)


def by_name(item: Input) -> tuple[CdcName, str]:
    return cdc_name(item.key) or CdcName("", ""), item.key


def raw_file(item: Input) -> RawFile:
    """The raw file of an input, as it was when it was applied."""
    modified = datetime.fromisoformat((item.modified or "1970-01-01T00:00:00Z").replace("Z", "+00:00"))
    return RawFile(item.key, item.size_bytes, item.etag, modified)


def _together(tables: Iterable[pa.Table], shape: Shape) -> pa.Table:
    return pa.concat_tables([with_marks(shape.schema).empty_table(), *tables])


def _lake_rows(rows: pa.Table, shape: Shape) -> pa.Table:
    return rows.select([column.name for column in shape.schema])


def merged(state: pa.Table, winners: pa.Table, shape: Shape, record: ChangeRecord) -> pa.Table:
    """The rows after the last changes of some keys; without a key only inserts count. Columns stand as `shape` says."""
    if not shape.key:
        came = winners.filter(pc.equal(winners[OP], INSERT))
    else:
        came = winners.filter(are_rows(winners))
        if winners.num_rows and state.num_rows:
            held = winners.filter(pc.equal(winners[OP], HELD))
            if held.num_rows:
                came = pa.concat_tables([came, held.filter(pc.is_valid(KeyIndex(state, shape.key).positions(held)))])
            state = state.filter(pc.is_null(KeyIndex(winners, shape.key).positions(state)))
    return pa.concat_tables([state, as_written(_lake_rows(came, shape), record)])


def as_written(rows: pa.Table, record: ChangeRecord) -> pa.Table:
    """The rows as the lake has them: an empty text that only a folder's name would say is null there."""
    return empty_as_null(rows, record.partitioning)


def without_erased(rows: pa.Table, keys: ErasedKeys) -> pa.Table:
    """The rows whose key was not erased, by the hashes that the record has of the keys."""
    distinct = GivenKeys.of(rows, keys.columns)
    texts = texts_of_keys(distinct.table)
    gone = texts_among(keys, texts)
    chosen = [at for at, text in enumerate(texts) if text in gone]
    if not chosen:
        return rows
    erased = GivenKeys(keys.columns, distinct.table.take(pa.array(chosen)))
    return rows.filter(pa.array(erased.places(rows) < 0))
