"""The row changes of a staged batch, kept beside its record for a person to look at: those of the first keys, up to a limit.

The batch is ranked once more for it, of which only so many keys are taken; of the files that the batch rewrites, those that may hold one
of them are read. Only where a run is staging.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from glue_jobs.core.bins import bins_of_slots
from glue_jobs.core.record import Counts, DataFile
from glue_jobs.core.staged import ROWS
from glue_jobs.core.work import Work
from glue_jobs.spark.attached_rows import as_parquet, from_parquet
from glue_jobs.spark.engine import Engine, Engines, Shared, SparkEngine
from glue_jobs.spark.key_columns import sort_by_key
from glue_jobs.spark.key_index import KeyIndex
from glue_jobs.spark.locate import packed
from glue_jobs.spark.merge import candidates
from glue_jobs.spark.net_changes import HELD, INSERT, OP, POSITION, NetChanges, Unpacker, net_changes
from glue_jobs.spark.open_file import OpenFile
from glue_jobs.spark.partition_columns import as_stored
from glue_jobs.spark.place import Place, Shape
from glue_jobs.spark.plain_rows import plain_rows
from glue_jobs.spark.raw_file import RawHead
from glue_jobs.spark.row_changes import KIND, PREIMAGE, as_told, row_changes
from glue_jobs.spark.rows import collect, key_names, ranked_rows, spark_ranked, with_marks, without_forms


def with_rows(engines: Engines, place: Place, shape: Shape, heads: Sequence[RawHead], files: Mapping[str, DataFile], work: Work) -> Work:
    """The work of a batch with its first row changes in an attachment, and with how many they are of how many. files: of the snapshot."""
    input_bytes = sum(head.size_bytes for head in heads)
    by_shuffle = bool(shape.key) and input_bytes > place.limits.broadcast_bytes
    engine = engines.spark if by_shuffle else engines.for_bytes(input_bytes)
    net = net_changes(first_winners(engine, place, shape, heads, int(place.limits.sample_rows)), shape)
    rewritten = candidates(net, [files[path] for path in work.superseded if path in files])
    before = old_rows(engines.for_files(sum(file.size_bytes for file in rewritten)), place, shape, net, rewritten)
    stay = net.bring_rows
    if before.num_rows:
        stay |= (net.ops == HELD) & np.asarray(pc.is_valid(KeyIndex(before, shape.key).positions(net.images)))
    after = as_stored(net.images.filter(pa.array(stay)), shape)
    return attached(work, row_changes(before, after, shape.schema, shape.key))


def attached(work: Work, rows: pa.Table) -> Work:
    """The work with these row changes, as row_changes makes them, for a person to look at."""
    kinds = np.asarray(rows[KIND])
    details = {**work.details, "rows_kept": int((kinds != PREIMAGE).sum()), "rows_changed": changed(work.counts)}
    return replace(work, attachments={**work.attachments, ROWS: as_parquet(as_told(rows))}, details=details)


def changed(counts: Counts) -> int:
    """The rows that a change inserts, updates and deletes."""
    return counts.inserted + counts.updated + counts.deleted


def plain_lines(data: bytes) -> list[tuple[Any, ...]]:
    """The column names and the rows of what `as_parquet` wrote, in the values of plain_rows."""
    rows = from_parquet(data)
    return [tuple(rows.column_names), *plain_rows(rows)]


def first_winners(engine: Engine, place: Place, shape: Shape, heads: Sequence[RawHead], most: int) -> pa.Table:
    """At most so many winners of the batch, those with the least keys; without a key its first inserts. Columns as of ranked_rows."""
    if isinstance(engine, SparkEngine):
        ranked = spark_ranked(engine, place, shape, heads)
        chosen = ranked if shape.key else ranked.where(f"op = {INSERT}")
        order = key_names(shape) if shape.key else ["position"]
        return collect(without_forms(chosen.orderBy(*order).limit(most), shape), with_marks(shape.schema))
    rows = ranked_rows(engine, place, shape, heads)
    if shape.key:
        return sort_by_key(rows, shape.key).slice(0, most)
    return rows.filter(pa.array(np.asarray(rows[OP]) == INSERT)).sort_by(POSITION).slice(0, most)


def old_rows(engine: Engine, place: Place, shape: Shape, net: NetChanges, files: Sequence[DataFile]) -> pa.Table:
    """The rows of the data files whose keys are among the net changes."""
    shared = engine.share(net.pack(), Unpacker(shape, net.partitions))
    bins = bins_of_slots(files, lambda file: file.size_bytes, engine.slots)
    tables = [pa.ipc.open_stream(data).read_all() for data in engine.map(_OldRows(place, shape, shared), bins)]
    return pa.concat_tables(tables) if tables else net.images.slice(0, 0)


@dataclass(frozen=True)
class _OldRows:
    """One task: the rows of some data files."""

    place: Place
    shape: Shape
    shared: Shared[NetChanges]

    def __call__(self, files: tuple[DataFile, ...]) -> bytes:
        index = self.shared.get().index
        opened = (OpenFile.open(self.place, self.shape, file) for file in files)
        tables = [table.filter(index.positions(table).is_valid()) for each in opened for table in each.batches()]
        return packed(pa.concat_tables(tables))
