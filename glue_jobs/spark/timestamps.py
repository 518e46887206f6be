"""The timestamp column: which one it is, its least time, and how often it runs backwards. Never part of the order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from glue_jobs.spark.dms_files import damage_named, looks_like_timestamp, open_dms, read_batches
from glue_jobs.spark.engine import Engine
from glue_jobs.spark.place import Place
from glue_jobs.spark.raw_file import RawHead, open_raw


def find_timestamp(engine: Engine, place: Place, named: str, heads: Sequence[RawHead]) -> tuple[str, str]:
    """(the timestamp column, '' if there is none; the least time in it): read from that column alone."""
    name = named or next((head.schema.timestamp_column for head in heads if head.schema.timestamp_column), None) or ""
    if not name:
        return "", ""
    found = engine.map(_TimeRange(place, name), list(heads))
    least = min((least for _, least in found if least), default="")
    if not named and not (least and all(is_time for is_time, _ in found)):
        return "", ""  # also where no file has a row: the first column may be any text
    return name, least


@dataclass(frozen=True)
class _TimeRange:
    place: Place
    column: str

    def __call__(self, head: RawHead) -> tuple[bool, str]:
        if not head.rows or self.column not in head.schema.physical.names:
            return True, ""
        if head.csv is not None:
            facts = head.csv.head.facts_of(self.column)
            return facts.times, facts.least
        values = _values(self.place, head, self.column)
        with damage_named(head.where):  # what is no UTF-8 shows only here
            is_time = looks_like_timestamp(values)
            least = pc.min(values).as_py() if is_time else None
        return is_time, str(least or "")


def backward_steps(place: Place, head: RawHead, timestamp_column: str) -> int:
    """How many rows of a CDC file have a commit time before their predecessor's."""
    if timestamp_column not in head.schema.physical.names:
        return 0
    if head.csv is not None:
        return head.csv.head.facts_of(timestamp_column).backward
    times = _values(place, head, timestamp_column).combine_chunks()
    if len(times) < 2:
        return 0
    return int(pc.sum(pc.less(times.slice(1), times.slice(0, len(times) - 1))).as_py() or 0)


def _values(place: Place, head: RawHead, column: str) -> pa.ChunkedArray:
    """The column of a Parquet file. It may be the first that is read of the file, so that it meets the damage."""
    source = open_raw(place, head.file)
    parquet = open_dms(source, head.where)
    batches = list(read_batches(source, parquet, [column], range(parquet.num_row_groups), head.where, head.schema.renamed))
    kind = head.schema.physical.field(column).type
    values = pa.chunked_array([batch.column(column) for batch in batches], kind)
    return values.cast(kind.value_type) if pt.is_dictionary(kind) else values  # Arrow knows no least one of a dictionary
