"""Row versions of a history table as a reader wants them: of some keys, or those that were valid at a time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime

import pyarrow as pa
import pyarrow.compute as pc

from glue_jobs.core.history_table import DELETE, OPERATION, VALID_FROM, VALID_TO
from glue_jobs.spark.arrow_types import UTC_MICROSECONDS
from glue_jobs.spark.explain import key_of
from glue_jobs.spark.late_versions import in_order
from glue_jobs.spark.locate import GivenKeys
from glue_jobs.spark.past import PastTable


def chosen_versions(table: PastTable, keys: GivenKeys | None = None, at: datetime | None = None) -> Iterator[pa.RecordBatch]:
    """The versions of some keys, None for all, and of these the ones that were valid at a time (aware), None for whenever.

    Those of some keys come in the order in which they followed on each other, key by key; they lie in memory.
    """
    found = _chosen(table, keys, at)
    if keys is None:
        yield from found
        return
    rows = pa.Table.from_batches(found, table.schema)
    yield from in_order(rows, GivenKeys.of(rows, keys.columns)).to_batches()


def versions_for(table: PastTable, key: Sequence[str], at: datetime | None) -> Iterator[pa.RecordBatch]:
    """The same of one key, whose values are texts, () for every key."""
    keys = GivenKeys.of(key_of(table.shape.schema, table.shape.key, key), table.shape.key) if key else None
    return chosen_versions(table, keys, at)


def _chosen(table: PastTable, keys: GivenKeys | None, at: datetime | None) -> Iterator[pa.RecordBatch]:
    for batch in table.batches():
        rows = pa.Table.from_batches([batch])
        if keys is not None:
            rows = rows.filter(pa.array(keys.places(rows) >= 0))
        if at is not None:
            rows = rows.filter(_is_valid(rows, at))
        yield from rows.to_batches()


def _is_valid(rows: pa.Table, at: datetime) -> pa.ChunkedArray:
    """Whether a version was a row of the table at that time: it had begun and not ended, and is no delete."""
    moment = pa.scalar(at, UTC_MICROSECONDS)
    begun = pc.less_equal(rows[VALID_FROM], moment)
    ended = pc.fill_null(pc.less_equal(rows[VALID_TO], moment), False)
    return pc.and_(pc.and_not(begun, ended), pc.not_equal(rows[OPERATION], DELETE))
