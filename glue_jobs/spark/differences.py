"""What lies between two states of a table that fits one machine: counts and samples of row changes, on Arrow.

Only files that one state has and the other lacks are read.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pyarrow.compute as pc

from glue_jobs.core.collation import is_same_key
from glue_jobs.core.schema import Column, Schema, find, widened
from glue_jobs.core.snapshot import Snapshot
from glue_jobs.spark.past import past_table
from glue_jobs.spark.place import Place
from glue_jobs.spark.plain_rows import plain_rows
from glue_jobs.spark.row_changes import DELETE, INSERT, KIND, POSTIMAGE, PREIMAGE, common_schema, files_apart, row_changes

Row = tuple[Any, ...]
_KINDS = (INSERT, PREIMAGE, POSTIMAGE, DELETE)


@dataclass(frozen=True)
class Difference:
    """columns: of the rows here, as plain values. key: by which rows were told apart, () where equal rows were counted.

    incomparable: columns whose two types have no common one; they were left out. updated: (before, after). files: read.
    """

    columns: tuple[str, ...]
    key: tuple[str, ...]
    incomparable: tuple[str, ...]
    inserts: int
    updates: int
    deletes: int
    inserted: tuple[Row, ...]
    updated: tuple[tuple[Row, Row], ...]
    deleted: tuple[Row, ...]
    files: int


def comparable_schema(before: Schema, after: Schema) -> tuple[Schema, tuple[str, ...]]:
    """(the columns in which two states can be compared, names of those whose types have nothing in common)."""
    columns = common_schema(before, after)
    apart = [column.name for column in columns if _is_apart(find(before, column.name), find(after, column.name))]
    return tuple(column for column in columns if column.name not in apart), tuple(apart)


def _is_apart(old: Column | None, new: Column | None) -> bool:
    """Whether neither type holds the other's values."""
    return old is not None and new is not None and widened(old.type, new.type) is None and widened(new.type, old.type) is None


def common_key(before: Snapshot, after: Snapshot, schema: Schema) -> tuple[str, ...]:
    """The key by which rows of both states are told apart: the one both have; () if there is none."""
    keys = [state.primary_key for state in (before, after) if not state.is_empty]
    key = keys[0] if keys and all(is_same_key(keys[0], other) for other in keys) else ()
    return key if all(find(schema, name) for name in key) else ()


def difference(place: Place, table: str, before: Snapshot, after: Snapshot, limit: int) -> Difference:
    """The row changes that make `after` of `before`; at most `limit` rows of each kind."""
    schema, apart = comparable_schema(before.schema, after.schema)
    key = common_key(before, after, schema)
    gone, came = files_apart(before, after)
    old = past_table(place, table, before, gone).read()
    new = past_table(place, table, after, came).read()
    changes = row_changes(old, new, schema, key)
    kinds = {kind: changes.filter(pc.equal(changes[KIND], kind)).drop_columns([KIND]) for kind in _KINDS}
    sample = {kind: tuple(plain_rows(rows.slice(0, limit))) for kind, rows in kinds.items()}
    return Difference(
        columns=tuple(column.name for column in schema),
        key=key,
        incomparable=apart,
        inserts=kinds[INSERT].num_rows,
        updates=kinds[PREIMAGE].num_rows,
        deletes=kinds[DELETE].num_rows,
        inserted=sample[INSERT],
        updated=tuple(zip(sample[PREIMAGE], sample[POSTIMAGE], strict=True)),
        deleted=sample[DELETE],
        files=len(gone) + len(came),
    )
