"""The difference of two versions as a change feed: what DMS would have sent between them, a file for each version that changed rows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime

import pyarrow as pa
import pyarrow.compute as pc

from glue_jobs.core.dms_names import timestamp_text
from glue_jobs.core.feed_plan import DELETE as D
from glue_jobs.core.feed_plan import INSERT as I
from glue_jobs.core.feed_plan import UPDATE as U
from glue_jobs.core.feed_plan import FeedNames
from glue_jobs.core.feed_wish import FeedWish
from glue_jobs.spark.arrow_types import arrow_schema
from glue_jobs.spark.dms_writer import with_dms_columns
from glue_jobs.spark.feed_rows import FeedFile
from glue_jobs.spark.feed_source import Between
from glue_jobs.spark.row_changes import DELETE, INSERT, KIND, POSTIMAGE, PREIMAGE, differing

LETTERS = {INSERT: I, POSTIMAGE: U, DELETE: D}


def changed_files(steps: Iterable[Between], wish: FeedWish) -> Iterator[FeedFile]:
    """The files, oldest first. Versions that changed no row that DMS would send have none."""
    names, last = FeedNames(wish.file_name), None
    for step in steps:
        rows = sent_changes(step)
        if not rows.num_rows:
            continue
        last = step.time if last is None else max(step.time, last)  # commit times can go back, commits can't
        yield FeedFile(names.next(last), _with_letters(rows, last, wish.timestamp_column))


def sent_changes(step: Between) -> pa.Table:
    """Its row changes without images before, and without updates that changed nothing but columns that are not sent."""
    columns = [column.name for column in step.schema]
    kinds = step.changes.column(KIND)
    before = step.changes.filter(pc.equal(kinds, PREIMAGE)).select(columns)
    after = step.changes.filter(pc.equal(kinds, POSTIMAGE)).select(columns)
    same = pc.invert(differing(before, after)) if after.num_rows else pa.array([], pa.bool_())
    others = step.changes.filter(pc.is_in(kinds, value_set=pa.array([INSERT, DELETE])))
    updates = step.changes.filter(pc.equal(kinds, POSTIMAGE)).filter(pc.invert(same))
    return pa.concat_tables([others, updates]).select([*columns, KIND]).cast(_schema(step))


def _schema(step: Between) -> pa.Schema:
    return arrow_schema(step.schema).append(pa.field(KIND, pa.string()))


def _with_letters(rows: pa.Table, time: datetime, timestamp_column: str) -> pa.Table:
    ops: Sequence[str] = [LETTERS[kind] for kind in rows.column(KIND).to_pylist()]
    return with_dms_columns(rows.drop_columns([KIND]), ops, [timestamp_text(time)] * rows.num_rows, timestamp_column)
