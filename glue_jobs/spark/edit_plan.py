"""What an edit would do to a table: a correction by the primary key, which also inserts, and whose updates need not say all columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from glue_jobs.core.errors import UsageError
from glue_jobs.core.record import DataFile
from glue_jobs.core.row_edit import CORRECT, DELETE, INSERT, NAMED_PROBLEMS, UPDATE, RowEdit, check_key, not_there
from glue_jobs.core.schema import Column, find
from glue_jobs.core.snapshot import Snapshot
from glue_jobs.core.state import TableState
from glue_jobs.spark.apply_plan import ApplyPlan
from glue_jobs.spark.apply_rows import partitions_of, rows_of_keys
from glue_jobs.spark.arrow_types import arrow_schema, to_arrow
from glue_jobs.spark.edit_rows import Union, Wanted
from glue_jobs.spark.engine import Engine, Engines
from glue_jobs.spark.feed_values import moment_value
from glue_jobs.spark.given_rows import GivenRows, chosen, texts_of, too_much
from glue_jobs.spark.key_columns import take
from glue_jobs.spark.locate import GivenKeys, Located, Places, candidates_by_range, locate
from glue_jobs.spark.merge import absorbers_of
from glue_jobs.spark.past import PastFile
from glue_jobs.spark.place import Place, Shape


def wanted_for(snapshot: Snapshot, edit: RowEdit, table: str) -> Wanted:
    """What rows the table takes for the edit; UsageError where it takes none."""
    check_key(snapshot.primary_key, edit.word, edit.upsert, table)
    return Wanted(snapshot.schema, snapshot.primary_key, edit.word)


def plan_edit(
    engines: Engines, place: Place, state: TableState, snapshot: Snapshot, edit: RowEdit, rows: Union, now: datetime
) -> ApplyPlan:
    """Find the rows of the given keys, and check that the edit can be made. Reads only. now: the change's time, for a timestamp column.

    Raises UsageError: given-twice; TableBlocked: row-exists, row-unknown.
    """
    shape = Shape(str(state.path), snapshot.schema, snapshot.primary_key, snapshot.partitioning, state.empty_partition.lower() == "null")
    keys = _keys(rows, shape)
    rows = rows if edit.word == DELETE else _timed(rows, snapshot, now)
    files = [PastFile(snapshot.files[path], "") for path in sorted(snapshot.files)]
    candidates = candidates_by_range(keys, shape, files)
    engine = engines.for_files(sum(each.file.size_bytes for each in candidates))
    located = tuple(locate(engine, place, shape, keys, candidates))
    before = np.zeros(len(keys), np.int64)
    for each in located:
        before[each.hits] += each.counts
    _check_there(edit, shape, keys, rows, before)
    if edit.word == DELETE:
        given = GivenRows(keys, len(keys), arrow_schema(shape.schema).empty_table(), np.empty(0, np.int64))
        return ApplyPlan(snapshot, shape, given, located, before, np.zeros(len(keys), np.int64), edit.word)
    old = _old_rows(engine, place, shape, keys, [snapshot.files[each.path] for each in located]) if edit.word == UPDATE else None
    written = _written(rows, shape, keys, old)
    given = GivenRows(keys, 0, written, np.arange(len(keys)) if len(keys) else np.full(written.num_rows, -1))
    located = _with_hosts(located, shape, snapshot.files, chosen(written, np.flatnonzero(before == 0)) if len(keys) else written, place)
    return ApplyPlan(snapshot, shape, given, located, before, np.ones(len(keys), np.int64), edit.word, inserts=True)


def _keys(rows: Union, shape: Shape) -> GivenKeys:
    """The rows' keys, in the rows' order; none where the table has no key. UsageError that names rows with a key that stands above."""
    if not shape.key:
        return GivenKeys((), pa.table({}))
    keys = GivenKeys.of(rows.rows, shape.key)
    if len(keys) == rows.rows.num_rows:
        return keys
    places = keys.places(rows.rows)
    _, first = np.unique(places, return_index=True)
    again = np.setdiff1d(np.arange(rows.rows.num_rows), first)
    texts = texts_of(chosen(keys.table, places[again[:NAMED_PROBLEMS]]))
    named = [f"{rows.place(int(row))} ({text}, as {rows.place(int(first[places[row]]))})" for row, text in zip(again, texts, strict=False)]
    more = "; …" if len(again) > len(named) else ""
    raise UsageError(f"{len(again):,} row(s) have a key that another row has: {'; '.join(named)}{more}", "given-twice", CORRECT)


def _timed(rows: Union, snapshot: Snapshot, now: datetime) -> Union:
    """The rows with the change's time in the table's timestamp column, in its own form, where they don't say one themselves."""
    column = find(snapshot.schema, snapshot.timestamp_column) if snapshot.timestamp_column else None
    moment = moment_value(column.type, now) if column else None
    if column is None or moment is None or (column.name in rows.rows.column_names and column.name not in rows.said):
        return rows
    value = pa.scalar(moment, to_arrow(column.type))
    table = rows.rows
    if column.name in table.column_names:
        said = pa.array(rows.said[column.name])
        at = table.column_names.index(column.name)
        table = table.set_column(at, column.name, pc.if_else(said, table.column(column.name), value))
    else:
        table = table.append_column(column.name, pa.repeat(value, table.num_rows))
    return Union(rows.sources, table, {name: mask for name, mask in rows.said.items() if name != column.name})


def _check_there(edit: RowEdit, shape: Shape, keys: GivenKeys, rows: Union, before: Places) -> None:
    """Refuse keys that an insert finds in the table, and those that an update or delete does not find."""
    wrong = np.flatnonzero(before > 0 if edit.word == INSERT else before == 0)
    if edit.upsert or not len(wrong):
        return
    texts = texts_of(chosen(keys.table, wrong[:NAMED_PROBLEMS]))
    named = [f"{rows.place(int(row))} ({text})" for row, text in zip(wrong, texts, strict=False)]
    raise not_there(edit.word, shape.table, named, len(wrong))


def _written(rows: Union, shape: Shape, keys: GivenKeys, old: pa.Table | None) -> pa.Table:
    """The rows as they will stand in the table: what they don't say is as before, or null."""
    before = old if old is not None else arrow_schema(shape.schema).empty_table()
    at = pa.array(_place_of(before, keys, rows.rows.num_rows), pa.int64(), from_pandas=True)
    at = pc.if_else(pc.equal(at, -1), pa.scalar(None, pa.int64()), at)
    columns = [_values(column, rows.rows, rows.said, before, at) for column in shape.schema]
    return pa.Table.from_arrays(columns, schema=arrow_schema(shape.schema)).combine_chunks()


def _place_of(before: pa.Table, keys: GivenKeys, count: int) -> Places:
    """For each given row the place of its row among those of the table, −1 for none."""
    places = np.full(count, -1, np.int64)
    if before.num_rows:
        places[keys.places(before)] = np.arange(before.num_rows)
    return places


def _values(column: Column, given: pa.Table, said: Mapping[str, Places], before: pa.Table, at: pa.Array) -> Any:
    kept = take(before.select([column.name]), at).column(0) if before.num_rows else pa.nulls(len(at), to_arrow(column.type))
    if column.name not in given.column_names:
        return kept
    values = given.column(column.name)
    return pc.if_else(pa.array(said[column.name]), values, kept) if column.name in said else values


def _old_rows(engine: Engine, place: Place, shape: Shape, keys: GivenKeys, files: Sequence[DataFile]) -> pa.Table:
    rows = rows_of_keys(engine, place, shape, keys, files)
    if rows.nbytes > place.limits.apply_bytes:
        raise too_much(place.limits.apply_bytes)
    return rows.combine_chunks()


def _with_hosts(
    located: tuple[Located, ...], shape: Shape, files: Mapping[str, DataFile], new: pa.Table, place: Place
) -> tuple[Located, ...]:
    """The located files, and in each partition of new rows where none of them is small a small file, to take these up."""
    _, partitions = partitions_of(shape, new)
    small = place.limits.small_file_bytes
    served = {files[each.path].partition for each in located if files[each.path].size_bytes < small}
    hosts = absorbers_of(set(partitions) - served, list(files.values()), small, shape.key_types)
    none = np.empty(0, np.int64)
    return located + tuple(Located(file.path, "", none, none) for file in hosts.values())
