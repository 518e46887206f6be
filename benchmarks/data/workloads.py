"""What is measured: each workload's name, what is done in it, and the rows that are given for it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from benchmarks.data.base import KEY, SEQUENCE, STATUSES, Base, make_rows

FEW = 2000  # changed rows of W1 and W2, half of them deleted
INSERTS_OF_AN_HOUR = 1000
LOAD_FILE_ROWS = 250_000
GIVEN_KEYS = 1000  # deleted by W8, and as many updated
ROWS_OF_A_KEY = (2, 4)  # of those, at least and at most
CORRECTION_KEY = ("product_id", "status", "qty")
HOURS = 24

# (table, base, generator) → one batch of changes: `Op` and the columns, one row for each key.
MakeBatches = Callable[[pa.Table, Base, np.random.Generator], Iterator[pa.Table]]


# What is done with a table: batches of changes are applied; one is undone and done again; the table is loaded, partitioned by month; rows
# are corrected by a key that is not unique.
APPLY, UNDO, LOAD, CORRECT = "apply", "undo", "load", "correct"


@dataclass(frozen=True)
class Workload:
    """batches: the files of DMS for it. Of LOAD they are load files; of CORRECT two files, the keys to delete and the rows to update."""

    name: str
    title: str
    batches: MakeBatches
    kind: str = APPLY

    @property
    def seed(self) -> int:
        return int(self.name[1:])


def scattered(table: pa.Table, base: Base, rng: np.random.Generator) -> Iterator[pa.Table]:
    """1000 updates and 1000 deletes anywhere in the table."""
    yield _changed(table, rng.choice(base.rows, _few(base.rows), replace=False), rng)


def newest(table: pa.Table, base: Base, rng: np.random.Generator) -> Iterator[pa.Table]:
    """The same in the newest hundredth of the rows."""
    yield _changed(table, _newest(base, base.rows, rng), rng)


def many(table: pa.Table, base: Base, rng: np.random.Generator) -> Iterator[pa.Table]:
    """Every twentieth row, half of them deleted: 500,000 of ten million."""
    yield _changed(table, rng.choice(base.rows, base.rows // 20, replace=False), rng)


def inserts(table: pa.Table, base: Base, rng: np.random.Generator) -> Iterator[pa.Table]:
    """Nothing but new rows: 100,000 for ten million."""
    yield _with_op(_new_rows(base, base.rows, base.rows // 100, rng), "I")


def hourly(table: pa.Table, base: Base, rng: np.random.Generator) -> Iterator[pa.Table]:
    """A day of batches: changes among the newest rows as they are by then, and new ones."""
    tail = table.slice(base.rows - _newest_count(base))
    for hour in range(HOURS):
        new = _new_rows(base, base.rows + hour * INSERTS_OF_AN_HOUR, INSERTS_OF_AN_HOUR, rng)
        batch = pa.concat_tables([_changed(tail, _newest(base, tail.num_rows, rng), rng), _with_op(new, "I")])
        yield batch
        tail = applied(tail, batch)


def load(table: pa.Table, base: Base, rng: np.random.Generator) -> Iterator[pa.Table]:
    """The whole table, as load files."""
    for start in range(0, base.rows, LOAD_FILE_ROWS):
        yield _with_op(table.slice(start, LOAD_FILE_ROWS), "I")


def correction(table: pa.Table, base: Base, rng: np.random.Generator) -> Iterator[pa.Table]:
    """All rows of keys that go, then all rows of other keys, with another store."""
    codes = correction_codes(table)
    found, rows = np.unique(codes, return_counts=True)
    several = found[(rows >= ROWS_OF_A_KEY[0]) & (rows <= ROWS_OF_A_KEY[1])]
    picked = rng.choice(several, min(2 * GIVEN_KEYS, len(several) // 2), replace=False)
    half = len(picked) // 2
    gone = table.filter(pa.array(np.isin(codes, picked[:half])))
    changed = table.filter(pa.array(np.isin(codes, picked[half:])))
    at = changed.schema.get_field_index("store_id")
    changed = changed.set_column(at, changed.schema.field(at), pa.array(changed["store_id"].to_numpy() + np.int32(1000)))
    yield _with_op(gone, "D")
    yield _with_op(changed, "U")


def correction_codes(table: pa.Table) -> Any:
    """The key of a correction as one number for each row."""
    statuses = pc.index_in(table["status"], value_set=pa.array(STATUSES)).to_numpy()
    return (table["product_id"].to_numpy().astype(np.int64) * len(STATUSES) + statuses) * 1000 + table["qty"].to_numpy()


def applied(table: pa.Table, batch: pa.Table) -> pa.Table:
    """The rows after a batch of one change for each key."""
    kept = table.filter(pc.invert(pc.is_in(table[KEY], value_set=batch[KEY].combine_chunks())))
    images = batch.filter(pc.not_equal(batch["Op"], "D")).select(table.column_names)
    return pa.concat_tables([kept, images])


def net(batches: Sequence[pa.Table]) -> pa.Table:
    """The last change of each key in batches that follow one another."""
    result = batches[-1]
    for batch in reversed(batches[:-1]):
        older = batch.filter(pc.invert(pc.is_in(batch[KEY], value_set=result[KEY].combine_chunks())))
        result = pa.concat_tables([older, result])
    return result


def _few(rows: int) -> int:
    return min(FEW, rows // 50)


def _newest(base: Base, rows: int, rng: np.random.Generator) -> Any:
    """Numbers of rows among the newest hundredth; at most half of them."""
    newest = min(rows, _newest_count(base))
    return rows - 1 - rng.choice(newest, min(FEW, newest // 2), replace=False)


def _newest_count(base: Base) -> int:
    return max(2, base.rows // 100)


def _changed(table: pa.Table, picked: Any, rng: np.random.Generator) -> pa.Table:
    """The rows with these numbers, in any order: half of them with 100 more of qty, half deleted."""
    rows = table.take(pa.array(picked))
    updated = len(picked) - len(picked) // 2
    at = rows.schema.get_field_index("qty")
    rows = rows.set_column(at, rows.schema.field(at), pa.array(rows["qty"].to_numpy() + np.int32(100)))
    changed = _with_op(rows, ["U"] * updated + ["D"] * (rows.num_rows - updated))
    return changed.take(pa.array(rng.permutation(rows.num_rows)))


def _new_rows(base: Base, first: int, count: int, rng: np.random.Generator) -> pa.Table:
    """Rows that the table does not have, with the keys and days that follow."""
    rows = make_rows(np.arange(first, first + count), base, rng)
    assert base.keys != SEQUENCE or rows[KEY][0].as_py() == first
    return rows


def _with_op(rows: pa.Table, op: str | list[str]) -> pa.Table:
    ops = [op] * rows.num_rows if isinstance(op, str) else op
    return rows.add_column(0, "Op", pa.array(ops, pa.string()))


WORKLOADS = {
    workload.name: workload
    for workload in (
        Workload("W1", "1000 updates + 1000 deletes, scattered", scattered),
        Workload("W2", "the same in the newest 1 % of the rows", newest),
        Workload("W3", "5 % of the rows, scattered", many),
        Workload("W4", "1 % new rows", inserts),
        Workload("W5", "24 hourly batches among the newest rows", hourly),
        Workload("W6", "roll back W1, and apply it again", scattered, UNDO),
        Workload("W7", "full load, partitioned by month, sorted by key", load, LOAD),
        Workload("W8", "1000 keys deleted and 1000 updated, by a key that is not unique", correction, CORRECT),
    )
}
