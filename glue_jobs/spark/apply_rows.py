"""A correction carried out: the files that hold its keys are rewritten, small neighbours as one, as uploads that are not completed."""

from __future__ import annotations

import io
import pickle
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from glue_jobs.aws.erased import erase_records
from glue_jobs.core.bins import BINS_PER_SLOT, bins_of_slots
from glue_jobs.core.erasure import BACK
from glue_jobs.core.given import ATTACHED, DELETES, INSERTS, UPDATES
from glue_jobs.core.ids import attachment_name
from glue_jobs.core.partitioning import PartitionValues
from glue_jobs.core.record import DataFile, Given
from glue_jobs.core.row_edit import KIND
from glue_jobs.core.schema import Schema
from glue_jobs.core.state import TableState
from glue_jobs.core.work import Work
from glue_jobs.spark.apply_plan import ApplyPlan, facts
from glue_jobs.spark.arrow_types import arrow_schema
from glue_jobs.spark.data_file_writer import DataFileWriter
from glue_jobs.spark.engine import Engine, Engines, Shared, chain
from glue_jobs.spark.erased_keys import erased_among
from glue_jobs.spark.given_rows import chosen
from glue_jobs.spark.group_search import GroupSearch
from glue_jobs.spark.joined_files import Joining, of_groups, to_join
from glue_jobs.spark.key_columns import sort_by_key
from glue_jobs.spark.key_notes import KeyNotes, Noting
from glue_jobs.spark.locate import GivenKeys, Places, packed, unpack_keys
from glue_jobs.spark.open_file import OpenFile
from glue_jobs.spark.partition_columns import as_stored, partition_values
from glue_jobs.spark.place import Place, Shape
from glue_jobs.spark.row_changes import row_changes
from glue_jobs.spark.side_by_side import in_order
from glue_jobs.spark.staged_rows import attached
from glue_jobs.spark.stored_groups import StoredGroup
from glue_jobs.spark.write_files import WriteOptions, give_up, given_up_on_error, write_tables


def work_of(engines: Engines, place: Place, state: TableState, plan: ApplyPlan, *, staged_rows: int = 0) -> Work:
    """The change. place: with its id. staged_rows: of how many rows at most the row changes are kept, for a person to look at."""
    snapshot, key = plan.snapshot, plan.given.keys.columns
    added = rewrite(engines.for_files(plan.size_bytes), place, plan)
    attachments = _attachments(plan)
    names = {ending: attachment_name(place.change, ending) for ending in attachments}
    # A load date that a person set back (a reload that is asked for) stays, as does a cursor that a person moved: no file is taken here.
    kept = {name: state.item[name] for name in ("LastFullLoadDate",) if name in state.item}
    work = Work(
        kind=KIND if plan.edit else "apply",
        schema=snapshot.schema,
        primary_key=snapshot.primary_key,
        partitioning=snapshot.partitioning,
        generation=snapshot.generation,
        added=tuple(added),
        superseded=tuple(each.path for each in plan.located),
        counts=plan.counts(),
        timestamp_column=snapshot.timestamp_column,
        cursor_after=snapshot.cursor,
        last_full_load=snapshot.last_full_load,
        values=kept,
        given=Given(key, *(names.get(ATTACHED[what], "") for what in (DELETES, UPDATES, INSERTS))),
        attachments=attachments,
        details={**facts(plan), **_keys_back(place, plan), "engine": engines.names},
    )
    return attached(work, staged_changes(engines.for_files(plan.size_bytes), place, plan, staged_rows)) if staged_rows else work


def _keys_back(place: Place, plan: ApplyPlan) -> dict[str, int]:
    """The detail that tells how many erased keys the rows written bring back; none for a table without an erase."""
    erases = plan.snapshot.erases if len(plan.rows_in) else ()
    wanted = (record.erased_keys for record in erase_records(place.s3, place.lake, erases))
    there = set(plan.updates.column_names)
    found = erased_among([keys for keys in wanted if keys is not None and there.issuperset(keys.columns)], plan.updates)
    return {BACK: len(found)} if found else {}


def _attachments(plan: ApplyPlan) -> dict[str, bytes]:
    """What took effect, as objects beside the record: the keys deleted, the rows written."""
    out = {}
    if plan.deletes.num_rows:
        key = tuple(column for name in plan.given.keys.columns for column in plan.shape.schema if column.name == name)
        out[ATTACHED[DELETES]] = parquet_bytes(plan.deletes, key)
    for what, chosen_rows in ((UPDATES, plan.replaces), (INSERTS, ~plan.replaces)):
        if chosen_rows.any():
            out[ATTACHED[what]] = parquet_bytes(plan.updates.filter(pa.array(chosen_rows)), plan.shape.schema)
    return out


def parquet_bytes(rows: pa.Table, schema: Schema) -> bytes:
    """The rows as a Parquet file."""
    sink = io.BytesIO()
    writer = DataFileWriter(sink, schema)
    writer.write(rows)
    writer.close()
    return sink.getvalue()


@dataclass(frozen=True)
class _Rewrite:
    """One file to rewrite, and the places of the given rows that it takes up."""

    file: DataFile
    rows: Places


@dataclass(frozen=True)
class _NewFile:
    """The places of given rows of a partition in which no file held their key."""

    partition: PartitionValues
    rows: Places


def rewrite(engine: Engine, place: Place, plan: ApplyPlan) -> list[DataFile]:
    """The located files without the rows of given keys, and with the rows given for them: uploads that are not completed.

    A given row goes into the first file that holds its key in its partition, otherwise into a small file that is rewritten there anyway,
    otherwise into a new file of its partition.
    """
    written, key_of = plan.updates, plan.given.key_of[plan.rows_in]
    homes, partitions, codes = _homes(plan, written, key_of, place.limits.small_file_bytes)
    shared = engine.share(pickle.dumps((plan.given.keys.pack(), packed(written))), _unpack)
    taken = grouped(homes, len(plan.files))
    rewrites = {file.path: _Rewrite(file, rows) for file, rows in zip(plan.files, taken, strict=True)}
    share_bytes = plan.size_bytes / (engine.slots * BINS_PER_SLOT)
    groups = to_join(place.limits, plan.shape, plan.files, plan.snapshot.files.values(), share_bytes)
    several = [tuple(rewrites[file.path] for file in group) for group in groups]
    bins = bins_of_slots(several, lambda group: sum(map(_size, group)), engine.slots)
    added = chain(engine.map(_RewriteTask(place, plan.shape, shared), bins))
    left = grouped(np.where(homes < 0, codes, -1), len(partitions))
    new = [_NewFile(values, rows) for values, rows in zip(partitions, left, strict=True)]
    with given_up_on_error(place, added):
        return added + chain(engine.map(_NewFileTask(place, plan.shape, shared), [task for task in new if len(task.rows)]))


def _homes(plan: ApplyPlan, written: pa.Table, key_of: Places, small_bytes: int) -> tuple[Places, list[PartitionValues], Places]:
    """(for each row the place of the file that takes it up, −1 for none; the rows' partitions; for each row which of these it is in)."""
    codes, partitions = partitions_of(plan.shape, written)
    numbers = {values: code for code, values in enumerate(partitions)}
    homes = np.full(written.num_rows, -1, np.int64)
    # There may be ten thousand files, and a million rows: each file looks at the rows of its own keys alone.
    order = np.argsort(key_of, kind="stable")
    edges = np.searchsorted(key_of[order], np.arange(len(plan.given.keys) + 1))
    for at, (located, file) in enumerate(zip(plan.located, plan.files, strict=True)):
        if file.partition in numbers and len(located.hits):
            rows = order[_spans(edges[located.hits], edges[located.hits + 1])]
            homes[rows[(homes[rows] < 0) & (codes[rows] == numbers[file.partition])]] = at
    of_partitions = grouped(codes, len(partitions))
    for at, file in enumerate(plan.files):
        code = numbers.get(file.partition)
        if plan.inserts and code is not None and file.size_bytes < small_bytes:
            rows, of_partitions[code] = of_partitions[code], of_partitions[code][:0]  # the first one takes all
            homes[rows[homes[rows] < 0]] = at
    return homes, partitions, codes


def _spans(starts: Places, stops: Places) -> Places:
    """The numbers from each start to before its stop, one span after the other."""
    lengths = stops - starts
    return np.repeat(starts - np.cumsum(lengths) + lengths, lengths) + np.arange(lengths.sum())


def grouped(codes: Places, count: int) -> list[Places]:
    """For each code from 0 to `count` where it stands, ascending."""
    order = np.argsort(codes, kind="stable")
    edges = np.searchsorted(codes[order], np.arange(count + 1))
    return [order[edges[code] : edges[code + 1]] for code in range(count)]


def partitions_of(shape: Shape, rows: pa.Table) -> tuple[Places, list[PartitionValues]]:
    """(for each row which of the partitions it is in, the partitions)."""
    if not shape.partitioning or not rows.num_rows:
        return np.zeros(rows.num_rows, np.int64), [()] if rows.num_rows else []
    values = partition_values(rows, shape.partitioning, shape.schema, shape.empty_as_null, shape.table, shape.key)
    numbers: dict[PartitionValues, int] = {}
    folders = zip(*(column.to_pylist() for column in values.columns), strict=True)
    codes = np.array([numbers.setdefault(row, len(numbers)) for row in folders], np.int64)
    return codes, list(numbers)


def _unpack(payload: bytes) -> tuple[GivenKeys, pa.Table]:
    keys, rows = pickle.loads(payload)
    return unpack_keys(keys), pa.ipc.open_stream(rows).read_all()


_Group = tuple[_Rewrite, ...]


def _size(rewrite: _Rewrite) -> int:
    return rewrite.file.size_bytes


@dataclass(frozen=True)
class _RewriteTask:
    place: Place
    shape: Shape
    shared: Shared[tuple[GivenKeys, pa.Table]]

    def __call__(self, groups: tuple[_Group, ...]) -> list[DataFile]:
        done: list[DataFile] = []

        def one(rewrite: _Rewrite) -> None:
            done.extend(self._one(rewrite))

        def several(group: _Group, threads: ThreadPoolExecutor) -> Callable[[], None]:
            joining = self._joined(group, threads)
            return lambda: done.extend(joining.finish().files)

        try:
            of_groups(one, several, groups, _size)
        except BaseException:
            give_up(self.place, done)
            raise
        return done

    def _one(self, rewrite: _Rewrite) -> list[DataFile]:
        """A file that stays a file of its own: its rows go from it to its replacement a piece at a time."""
        opened = OpenFile.open(self.place, self.shape, rewrite.file)
        pieces = self._rows(opened, rewrite) if opened.whole else self._pieces(opened, rewrite)
        return write_tables(self.place, self.shape, rewrite.file.partition, pieces, WriteOptions(opened.dictionary, split=False))

    def _joined(self, group: _Group, threads: ThreadPoolExecutor) -> Joining:
        """Neighbours: read a few at a time, written one after the other; to be finished."""

        def read(rewrite: _Rewrite) -> tuple[DataFile, Iterable[pa.Table]]:
            opened = OpenFile.open(self.place, self.shape, rewrite.file)
            rows = self._rows(opened, rewrite)
            # A small file of very many rows would not lie in memory: it is read when its turn comes.
            return rewrite.file, list(rows) if opened.whole else rows

        joining = Joining(self.place, self.shape, KeyNotes(self.shape, Noting()))
        with joining.or_abort(), in_order(read, group, _size, threads) as found:
            for file, rows in found:
                joining.take(file, rows)
                del rows  # the next file is being read
        return joining

    def _rows(self, opened: OpenFile, rewrite: _Rewrite) -> Iterator[pa.Table]:
        """The rows that stay, in their order; given rows come at the end, or, in a file that lies in memory, where their key belongs."""
        given = self._given(rewrite)
        if opened.whole and self.shape.key and given.num_rows:
            yield sort_by_key(pa.concat_tables([*self._stay(opened), given]), self.shape.key)
            return
        yield from self._stay(opened)
        yield given

    def _pieces(self, opened: OpenFile, rewrite: _Rewrite) -> Iterator[pa.Table | StoredGroup]:
        """The same of a file that is read in pieces; row groups without a row of the keys as they are stored, where that can be."""
        keys, _ = self.shared.get()
        for run in GroupSearch(opened, keys.columns, lambda rows: bool((keys.places(rows) >= 0).any())).runs():
            if isinstance(run, StoredGroup):
                yield run
            else:
                yield from self._stay(opened, run)
        yield self._given(rewrite)

    def _stay(self, opened: OpenFile, groups: Sequence[int] | None = None) -> Iterator[pa.Table]:
        keys, _ = self.shared.get()
        return (rows.filter(pa.array(keys.places(rows) < 0)) for rows in opened.batches(groups))

    def _given(self, rewrite: _Rewrite) -> pa.Table:
        _, given = self.shared.get()
        return chosen(given, rewrite.rows)


@dataclass(frozen=True)
class _NewFileTask:
    place: Place
    shape: Shape
    shared: Shared[tuple[GivenKeys, pa.Table]]

    def __call__(self, task: _NewFile) -> list[DataFile]:
        _, given = self.shared.get()
        return write_tables(self.place, self.shape, task.partition, [sort_by_key(chosen(given, task.rows), self.shape.key)])


# --- For a person to look at before the commit


def staged_changes(engine: Engine, place: Place, plan: ApplyPlan, most_rows: int) -> pa.Table:
    """The row changes of the first keys, so many that they have at most `most_rows` rows before and after."""
    takes = np.ones(len(plan.given.keys), bool) if plan.inserts else plan.found
    totals = np.cumsum(np.where(takes, plan.before + plan.after, 0))
    some = GivenKeys(plan.given.keys.columns, chosen(plan.given.keys.table, np.flatnonzero(takes & (totals <= most_rows))))
    before = rows_of_keys(engine, place, plan.shape, some, plan.files)
    is_shown = some.places(plan.updates) >= 0 if some.columns else np.arange(plan.updates.num_rows) < most_rows
    after = as_stored(plan.updates.filter(pa.array(is_shown)), plan.shape)
    return row_changes(before, after, plan.shape.schema, plan.shape.key)


def rows_of_keys(engine: Engine, place: Place, shape: Shape, keys: GivenKeys, files: Sequence[DataFile]) -> pa.Table:
    """The rows of some keys in data files, all columns."""
    shared = engine.share(keys.pack(), unpack_keys)
    bins = bins_of_slots(files, lambda file: file.size_bytes, engine.slots)
    streams = chain(engine.map(_RowsTask(place, shape, shared), bins)) if len(keys) else []
    return pa.concat_tables([arrow_schema(shape.schema).empty_table(), *(pa.ipc.open_stream(stream).read_all() for stream in streams)])


@dataclass(frozen=True)
class _RowsTask:
    """The rows of given keys in data files, packed."""

    place: Place
    shape: Shape
    shared: Shared[GivenKeys]

    def __call__(self, files: tuple[DataFile, ...]) -> list[bytes]:
        keys = self.shared.get()
        out = []
        for file in files:
            for rows in OpenFile.open(self.place, self.shape, file).batches():
                hits = rows.filter(pa.array(keys.places(rows) >= 0))
                out += [packed(hits)] if hits.num_rows else []
        return out
