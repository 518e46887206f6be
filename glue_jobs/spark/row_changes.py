"""Row changes: what lies between two states of a table, row by row, with the kinds of Delta's change data feed.

A kind is insert, update_preimage, update_postimage or delete. It stands in the column `__op`, whose name no table has; those who read it
outside know it as `_change_type`, which a table may have. Two files with the same origin have the same rows, so only files that one state
has and the other lacks are read. Comparing is null-safe, and NaN equals itself.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from glue_jobs.core.record import DataFile
from glue_jobs.core.schema import Column, Schema, find, widened
from glue_jobs.core.snapshot import Snapshot
from glue_jobs.core.undo import root
from glue_jobs.spark.arrow_types import conform
from glue_jobs.spark.key_columns import normal_floats, sort_by_key, take
from glue_jobs.spark.key_index import KeyIndex
from glue_jobs.spark.row_marks import OP

KIND = OP
CHANGE_TYPE, COMMIT_VERSION, COMMIT_TIMESTAMP = "_change_type", "_commit_version", "_commit_timestamp"
INSERT, PREIMAGE, POSTIMAGE, DELETE = "insert", "update_preimage", "update_postimage", "delete"


def files_apart(before: Snapshot, after: Snapshot) -> tuple[list[str], list[str]]:
    """(paths of the files whose rows only `before` has, those whose rows only `after` has)."""
    old = {root(file): file for file in before.files.values()}
    new = {root(file): file for file in after.files.values()}

    def only(these: dict[str, DataFile], those: dict[str, DataFile]) -> list[str]:
        return sorted(file.path for name, file in these.items() if name not in those)

    return only(old, new), only(new, old)


def common_schema(before: Schema, after: Schema) -> Schema:
    """The columns in which rows of two states are compared and shown: those of `after`, each in the wider of its two types."""
    if not after:
        return before
    columns = []
    for column in after:
        old = find(before, column.name)
        wide = (widened(old.type, column.type) or widened(column.type, old.type)) if old else column.type
        columns.append(Column(column.name, wide or column.type))
    return tuple(columns)


def row_changes(before: pa.Table, after: pa.Table, schema: Schema, key: Sequence[str]) -> pa.Table:
    """The changes that make the rows `after` of `before`: the columns of `schema` and KIND; sorted by key, pre before post.

    Without a key a changed row is a delete and an insert, and equal rows count as often as they stand there.
    """
    old, new = conform(before, schema, "before"), conform(after, schema, "after")
    if not key:
        return pa.concat_tables([_marked(_surplus(old, new), DELETE), _marked(_surplus(new, old), INSERT)])
    there = KeyIndex(new, key).positions(old)
    stays = pc.is_valid(there)
    kept, images = old.filter(stays), take(new, there.drop_null())
    differs = differing(kept, images)
    came = pc.is_null(KeyIndex(old, key).positions(new))
    found = [
        _marked(old.filter(pc.invert(stays)), DELETE),
        _marked(new.filter(came), INSERT),
        _marked(kept.filter(differs), PREIMAGE),
        _marked(images.filter(differs), POSTIMAGE),
    ]
    return sort_by_key(pa.concat_tables(found), key)


def as_told(changes: pa.Table) -> pa.Table:
    """Row changes under the names that people know; the kind keeps its own where the table has a column called CHANGE_TYPE."""
    if CHANGE_TYPE in changes.column_names:
        return changes
    return changes.rename_columns([CHANGE_TYPE if name == KIND else name for name in changes.column_names])


def differing(one: pa.Table, other: pa.Table) -> pa.Array:
    """For each place whether the rows of two tables of the same columns differ; null equals null, NaN equals NaN."""
    result = pa.array([False] * one.num_rows, pa.bool_())
    for mine, theirs in zip(one.columns, other.columns, strict=True):
        differ = pc.fill_null(pc.not_equal(mine, theirs), False)
        if pt.is_floating(mine.type):
            both_nan = pc.and_(pc.fill_null(pc.is_nan(mine), False), pc.fill_null(pc.is_nan(theirs), False))
            differ = pc.and_not(differ, both_nan)
        one_null = pc.xor(pc.is_null(mine), pc.is_null(theirs))
        result = pc.or_(result, pc.or_(differ, one_null))
    return result.combine_chunks() if isinstance(result, pa.ChunkedArray) else result


def _marked(rows: pa.Table, kind: str) -> pa.Table:
    return rows.append_column(KIND, pa.array([kind] * rows.num_rows, pa.string()))


def _surplus(rows: pa.Table, others: pa.Table) -> pa.Table:
    """The rows that `rows` has more often than `others`, so many times."""
    names = [f"c{index}" for index in range(rows.num_columns)]

    def plain(table: pa.Table, sign: int) -> pa.Table:
        columns = [normal_floats(column) for column in table.columns]
        return pa.table([*columns, pa.array([sign] * table.num_rows, pa.int64())], names=[*names, "n"])

    counts = pa.concat_tables([plain(rows, 1), plain(others, -1)]).group_by(names).aggregate([("n", "sum")])
    more = counts.filter(pc.greater(counts["n_sum"], 0))
    places = [place for place, count in enumerate(more["n_sum"].to_pylist()) for _ in range(count)]
    chosen = take(more.select(names), pa.array(places, pa.int64()))
    return chosen.rename_columns(rows.column_names).cast(rows.schema)
