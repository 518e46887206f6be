"""The merge for net changes that are too large to send to every task: keys are matched by shuffle, then files are rewritten.

    key scan: (key, file) of every candidate  ─┐
    net changes: the winners of the batch     ─┴→ left join on the key → repartition by bin → sort by file → rewrite file by file

A row that matched no file goes to the small file of its partition if there is one, else to new files. Such rows come last in their group
and in the order of their keys, so that a task need not hold all of them: a batch may have nothing else. Nothing sorts or repartitions after
the step that uploads. Columns: c0… of the lake, op, p0… of the partition folders, n0… of the forms of the keys' texts
(rows.py), k0… of scanned keys, `file` (place of the data file in the list, −1 for new files), `bin`.
"""

from __future__ import annotations

import pickle
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from glue_jobs.core.bins import BINS_PER_SLOT, pack
from glue_jobs.core.partitioning import PartitionValues
from glue_jobs.core.record import Counts, DataFile
from glue_jobs.spark.arrow_types import arrow_schema
from glue_jobs.spark.engine import SparkEngine
from glue_jobs.spark.key_columns import normalised_keys, sort_by_key, take
from glue_jobs.spark.merge import Merged, absorbers_of
from glue_jobs.spark.merge_file import FileMerge, Tally
from glue_jobs.spark.net_changes import DELETE, HELD, OP, POSITION, UPDATE, NetChanges, net_changes
from glue_jobs.spark.open_file import OpenFile
from glue_jobs.spark.partition_columns import partition_values
from glue_jobs.spark.place import Place, Shape
from glue_jobs.spark.raw_file import RawHead
from glue_jobs.spark.row_balance import check_balance
from glue_jobs.spark.row_batches import BATCH_ROWS
from glue_jobs.spark.rows import append_forms, form_names, key_names, plain_names, spark_ranked, spark_type, with_forms
from glue_jobs.spark.taken_up import options_of, taken_up
from glue_jobs.spark.task_errors import carried_rows
from glue_jobs.spark.write_files import WriteOptions, give_up, write_tables

NEW_FILE = -1
LEAVES, ARRIVES = 3, 4  # operations of a row that changes its partition: dropped here, written there; counted as one update
COMES = 5  # that of a row whose key no file has


@dataclass(frozen=True)
class _Group:
    """What one file's rewrite, or one partition's new files, came to."""

    path: str
    added: tuple[DataFile, ...]
    counts: Counts


def merge_by_shuffle(engine: SparkEngine, place: Place, shape: Shape, heads: Sequence[RawHead], files: Sequence[DataFile]) -> Merged:
    """Merge the batch of `heads` into the data files `files`; every file is a candidate, because no task knows all keys."""
    from pyspark.sql import functions as F

    bins = pack(range(len(files)), lambda at: files[at].size_bytes, engine.slots * BINS_PER_SLOT)
    bin_of = {at: number for number, chosen in enumerate(bins) for at in chosen}
    net = _with_partitions(spark_ranked(engine, place, shape, heads), shape)
    joined = _joined(engine, place, shape, files, net)
    routed = _routed(engine, shape, joined, files, bin_of, place.limits.small_file_bytes)
    count = max(1, len(bins))
    ready = routed.repartition(count, "bin").sortWithinPartitions(*(F.expr(text) for text in _order(shape)))
    rewriter = _Rewriter(place, shape, tuple(files))
    groups: list[_Group] = [
        group for row in ready.mapInArrow(carried_rows(rewriter), "groups binary").collect() for group in pickle.loads(bytes(row[0]))
    ]
    added = tuple(file for group in groups for file in group.added)
    superseded = tuple(group.path for group in groups if group.path)
    counts = [group.counts for group in groups]
    return Merged(
        added,
        superseded,
        Counts(sum(c.inserted for c in counts), sum(c.updated for c in counts), sum(c.deleted for c in counts)),
    )


def _order(shape: Shape) -> list[str]:
    """How the rows of a bin are sorted, as Spark's expressions: a file's own first, whatever partition they leave for, then those that
    come, by partition and key."""
    return ["bin", "file", f"op >= {ARRIVES}", *_parts(shape), *key_names(shape)]


def _parts(shape: Shape) -> list[str]:
    return [f"p{index}" for index in range(len(shape.partitioning))]


def _lake_rows(batch: pa.RecordBatch | pa.Table, shape: Shape) -> pa.Table:
    """The first columns of a batch under the lake's names and types."""
    width = len(shape.schema)
    table = pa.Table.from_batches([batch]) if isinstance(batch, pa.RecordBatch) else batch
    rows = table.select(list(range(width))).rename_columns([column.name for column in shape.schema])
    return rows.cast(arrow_schema(shape.schema))


def _with_partitions(winners: Any, shape: Shape) -> Any:
    """The winners with the folders' values they belong to (null for deletes, whose partition column may be missing)."""
    names, parts = plain_names(shape.schema), _parts(shape)
    types = [*(field.type for field in arrow_schema(shape.schema)), pa.int8(), *(pa.string() for _ in parts)]
    schema = with_forms(pa.schema(list(zip([*names, "op", *parts], types, strict=True))), shape)

    def add(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            rows = _lake_rows(batch, shape)
            columns = [*rows.columns, batch.column("op"), *_folder_values(rows, batch.column("op"), shape)]
            found = append_forms(pa.table(columns, names=[*names, "op", *parts]), rows, shape)
            yield from found.cast(schema).to_batches(max_chunksize=BATCH_ROWS)

    return winners.mapInArrow(carried_rows(add), spark_type(schema))


def _folder_values(rows: pa.Table, ops: pa.Array, shape: Shape) -> list[pa.Array]:
    if not shape.partitioning:
        return []
    kept = np.asarray(ops) != DELETE
    values = partition_values(rows.filter(pa.array(kept)), shape.partitioning, shape.schema, shape.empty_as_null, shape.table, shape.key)
    places = np.where(kept, np.cumsum(kept) - 1, 0)
    indices = pa.array(places, mask=~kept, type=pa.int64())
    return [column.combine_chunks().take(indices) for column in values.columns]


def _joined(engine: SparkEngine, place: Place, shape: Shape, files: Sequence[DataFile], net: Any) -> Any:
    """The net changes, each with the file that holds its key (null if none does): c0…, op, p0…, n0…, file."""
    from pyspark.sql import functions as F

    keys = key_names(shape)
    scanned = [f"k{index}" for index in range(len(keys))]
    types = arrow_schema(tuple(column for name in shape.key for column in shape.schema if column.name == name))
    schema = pa.schema([(name, field.type) for name, field in zip(scanned, types, strict=True)]).append(pa.field("file", pa.int32()))
    chosen = pack(range(len(files)), lambda at: files[at].size_bytes, engine.slots * BINS_PER_SLOT)
    payloads = [(pickle.dumps([(at, files[at]) for at in bin_]),) for bin_ in chosen]

    def scan(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for payload in batch.column(0).to_pylist():
                for at, file in pickle.loads(payload):
                    for table in OpenFile.open(place, shape, file).key_batches():
                        found = normalised_keys(table, shape.key).append_column("file", pa.array([at] * table.num_rows, pa.int32()))
                        yield from found.rename_columns(schema.names).cast(schema).to_batches(max_chunksize=BATCH_ROWS)

    tasks = engine.spark.sparkContext.parallelize(payloads, max(1, len(payloads)))
    held = engine.spark.createDataFrame(tasks, "files binary").mapInArrow(carried_rows(scan), spark_type(schema))
    condition = [F.col(key) == F.col(name) for key, name in zip(keys, scanned, strict=True)]
    return net.join(held, condition, "left").drop(*scanned)


def _routed(engine: SparkEngine, shape: Shape, joined: Any, files: Sequence[DataFile], bin_of: dict[int, int], small_bytes: int) -> Any:
    """Each row with the file it must reach and the bin of that file.

    A row that leaves its partition becomes two: it goes to the old file, where its key is dropped, and to its new partition.
    """
    names, parts = plain_names(shape.schema), _parts(shape)
    absorbers = absorbers_of({file.partition for file in files}, files, small_bytes, shape.key_types)
    place_of = {file.path: at for at, file in enumerate(files)}
    router = _Router(
        width=len(names),
        parts=tuple(parts),
        partitions=tuple(file.partition for file in files),
        absorber_of={values: place_of[file.path] for values, file in absorbers.items()},
        bin_of=bin_of,
        bins=max(1, len(set(bin_of.values()))),
    )
    types = [field.type for field in arrow_schema(shape.schema)]
    texts = [*parts, *form_names(shape)]
    schema = pa.schema(
        list(
            zip(
                [*names, "op", *texts, "file", "bin"],
                [*types, pa.int8(), *(pa.string() for _ in texts), pa.int32(), pa.int32()],
                strict=True,
            )
        )
    )
    return joined.mapInArrow(router, spark_type(schema))


@dataclass(frozen=True)
class _Router:
    width: int
    parts: tuple[str, ...]
    partitions: tuple[PartitionValues, ...]
    absorber_of: dict[PartitionValues, int]
    bin_of: dict[int, int]
    bins: int

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield from self._rows(batch, *self._routes(batch))

    def _values(self, batch: pa.RecordBatch) -> list[PartitionValues]:
        columns = [batch.column(name).to_pylist() for name in self.parts]
        return list(zip(*columns, strict=True)) if columns else [()] * batch.num_rows

    def _routes(self, batch: pa.RecordBatch) -> tuple[list[int], list[int], list[int], list[int]]:
        """For each row to send: its place in the batch, the file it goes to, its operation, its bin."""
        routes: list[tuple[int, int, int, int]] = []
        values_of = self._values(batch)
        for at, (op, file, values) in enumerate(
            zip(batch.column("op").to_pylist(), batch.column("file").to_pylist(), values_of, strict=True)
        ):
            stays = file is not None and (op == DELETE or self.partitions[file] == values)
            if file is not None:
                routes.append((at, file, op if stays else LEAVES, self.bin_of[file]))
            if not stays and op != DELETE and not (op == HELD and file is None):
                target = self.absorber_of.get(values, NEW_FILE)
                number = zlib.crc32(repr(values).encode()) % self.bins if target == NEW_FILE else self.bin_of[target]
                routes.append((at, target, COMES if file is None else ARRIVES, number))
        columns = [list(column) for column in zip(*routes, strict=True)] or [[], [], [], []]
        return columns[0], columns[1], columns[2], columns[3]

    def _rows(
        self, batch: pa.RecordBatch, sources: list[int], files: list[int], ops: list[int], bins: list[int]
    ) -> Iterator[pa.RecordBatch]:
        taken = take(pa.Table.from_batches([batch]), pa.array(sources, pa.int64()))
        marks = [pa.array(files, pa.int32()), pa.array(bins, pa.int32())]
        columns = [*taken.columns[: self.width], pa.array(ops, pa.int8()), *taken.columns[self.width + 1 : -1], *marks]
        names = [*taken.column_names[:-1], "file", "bin"]
        yield from pa.table(columns, names=names).to_batches(max_chunksize=BATCH_ROWS)


@dataclass(frozen=True)
class _Rewriter:
    """Cuts rows sorted by file into groups, and rewrites each file with its group."""

    place: Place
    shape: Shape
    files: tuple[DataFile, ...]

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        done: list[_Group] = []
        try:
            for group, rows in self._groups(batches):
                done.append(self._rewrite(group, rows))
        except BaseException:
            give_up(self.place, (file for group in done for file in group.added))
            raise
        yield pa.RecordBatch.from_pydict({"groups": pa.array([pickle.dumps(done)], pa.binary())})

    def _groups(self, batches: Iterator[pa.RecordBatch]) -> Iterator[tuple[tuple[int, PartitionValues], pa.Table]]:
        """Each group with its rows. Of those that come a task holds as many bytes as a file may have; more go to new files beside it."""
        most_bytes = self.place.limits.target_file_bytes
        waiting: list[pa.Table] = []
        size, source, target = 0, (NEW_FILE, ()), (NEW_FILE, ())
        for batch in batches:
            for group, rows in self._pieces(pa.Table.from_batches([batch])):
                is_full = size >= most_bytes and rows[OP][0].as_py() >= ARRIVES
                if waiting and (group != source or is_full):
                    yield target, pa.concat_tables(waiting)
                    waiting, size = [], 0
                    target = (NEW_FILE, self._partition(source))
                if group != source:
                    source = target = group
                waiting.append(rows)
                size += rows.nbytes
        if waiting:
            yield target, pa.concat_tables(waiting)

    def _partition(self, group: tuple[int, PartitionValues]) -> PartitionValues:
        at, values = group
        return values if at == NEW_FILE else self.files[at].partition

    def _pieces(self, table: pa.Table) -> Iterator[tuple[tuple[int, PartitionValues], pa.Table]]:
        """Runs of rows of one file, or of one partition's new files."""
        width = len(self.shape.schema)
        rows = _lake_rows(table, self.shape).append_column(OP, table["op"])
        places = table["file"].to_pylist()
        values = (
            list(zip(*(table.column(width + 1 + i).to_pylist() for i in range(len(self.shape.partitioning))), strict=True))
            or [()] * table.num_rows
        )
        groups = [(at, part if at == NEW_FILE else ()) for at, part in zip(places, values, strict=True)]
        start = 0
        for at in range(1, len(groups) + 1):
            if at == len(groups) or groups[at] != groups[start]:
                yield groups[start], rows.slice(start, at - start)
                start = at

    def _rewrite(self, group: tuple[int, PartitionValues], rows: pa.Table) -> _Group:
        at, partition = group
        ops = rows[OP].to_numpy()
        leaves, arrives = int((ops == LEAVES).sum()), int((ops == ARRIVES).sum())
        plain = np.where(ops == LEAVES, DELETE, np.where((ops == ARRIVES) | (ops == HELD), UPDATE, ops)).astype(np.int8)
        rows = rows.drop_columns([OP]).append_column(OP, pa.array(plain))
        if at == NEW_FILE:
            if (ops < ARRIVES).any():
                raise RuntimeError("rows of a file were sorted behind those that come")  # they would stand twice
            images = sort_by_key(rows.drop_columns([OP]), self.shape.key)
            counts = Counts(inserted=rows.num_rows - arrives, updated=arrives)
            return _Group("", tuple(write_tables(self.place, self.shape, partition, [images])), counts)
        marked = rows.append_column(POSITION, pa.array(range(rows.num_rows), pa.int64()))
        path, added, hits, net = self._rewrite_file(self.files[at], net_changes(marked, self.shape))
        deleted = int((net.ops[hits] == DELETE).sum())
        missed = int((net.ops != DELETE).sum()) - (len(hits) - deleted)
        return _Group(path, added, Counts(inserted=missed - arrives, updated=len(hits) - deleted + arrives, deleted=deleted - leaves))

    def _rewrite_file(self, file: DataFile, net: NetChanges) -> tuple[str, tuple[DataFile, ...], np.ndarray[Any, Any], NetChanges]:
        """The file with its rows merged; one that is small also takes up the rows that no file held."""
        opened = OpenFile.open(self.place, self.shape, file, encoded=True)
        merge, tally = FileMerge(opened, net), Tally()
        if file.size_bytes >= self.place.limits.small_file_bytes:
            added = write_tables(self.place, self.shape, file.partition, merge.rows(tally), WriteOptions(opened.dictionary, split=False))
            self._check(file, added, tally, 0)
            return file.path, tuple(added), tally.all_hits(), net
        merge.locate(tally)
        missed = np.setdiff1d(np.flatnonzero(net.ops != DELETE), tally.all_hits())
        rows = taken_up(opened, net, merge.rows(Tally()), missed)
        added = write_tables(self.place, self.shape, file.partition, rows, options_of(opened))
        self._check(file, added, tally, len(missed))
        return file.path, tuple(added), tally.all_hits(), net

    def _check(self, file: DataFile, added: Sequence[DataFile], tally: Tally, inserted: int) -> None:
        expected = file.rows - tally.dropped + inserted
        check_balance(self.place, self.shape.table, added, expected, f"what replaces {file.path}")
