"""The data files of a snapshot, read: do footers, key bounds and keys say what the change records say?

Of each file the footer and the key columns are fetched, by ranged reads. Keys are compared by 64-bit hashes, 12 bytes a row, so that
memory depends neither on the keys' width nor, since larger sets go to files on disk by parts of the hash, on the table's size. What
has one hash is read again and compared by value. Files whose key ranges do not meet those of the others are done with at once.
"""

from __future__ import annotations

import tempfile
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pyarrow.types as pt

from glue_jobs.aws.ranged import RangedFile
from glue_jobs.aws.versions import key_versions
from glue_jobs.core.errors import TableBlocked
from glue_jobs.core.keys import Bound, decode_bound
from glue_jobs.core.partitioning import file_columns
from glue_jobs.core.paths import S3Uri
from glue_jobs.core.raw_names import RawFile
from glue_jobs.core.record import DataFile
from glue_jobs.core.schema import find, widened
from glue_jobs.core.snapshot import Snapshot
from glue_jobs.core.undo import root
from glue_jobs.core.verify import DIFFERENCE, FileReport, Finding, change_in_name
from glue_jobs.spark.arrow_types import conform, lake_type_of, shown, to_arrow
from glue_jobs.spark.data_files import read_data_file, read_rows
from glue_jobs.spark.key_columns import SortedKeys, bounds, comparable, normalised_keys
from glue_jobs.spark.partition_columns import with_partition_columns

THREADS = 8
BUCKET_ROWS = 4_000_000  # rows whose hashes are held and sorted at once
NAMED_KEYS = 20  # of doubled keys, those that are named
TODO = "find out who wrote it; roll the table back to a change before this file came, or reload it"
TODO_DOUBLED = "reload the table in DMS, then `dmslake reload PATH`; report how it came to this"
_GONE = ("raw-file-gone", "raw-file-changed")
Hashes = np.ndarray[Any, np.dtype[np.uint64]]


@dataclass(frozen=True)
class Checked:
    """One file. hashes: of its rows' keys, in order; bytes_read: at least those of footer and key columns; living: of a history's file,
    for each hash whether the version is no delete, None for all."""

    file: DataFile
    findings: tuple[Finding, ...] = ()
    hashes: Hashes = field(default_factory=lambda: np.empty(0, np.uint64))
    rows: int = 0
    bytes_read: int = 0
    living: np.ndarray[Any, np.dtype[np.bool_]] | None = None

    @property
    def keys(self) -> Hashes:
        """The hashes of the keys of rows that the table has."""
        return self.hashes if self.living is None else self.hashes[self.living]


def check_files(
    s3: Any, lake: S3Uri, snapshot: Snapshot, there: Mapping[str, RawFile], *, threads: int = THREADS, bucket_rows: int = BUCKET_ROWS
) -> FileReport:
    """Check the files of the snapshot that are `there` (path → object as it was listed)."""
    reader = Reader(s3, lake, snapshot)
    files = _by_low(snapshot, [file for path, file in snapshot.files.items() if path in there])
    findings: list[Finding] = []
    rows = bytes_read = 0
    sums = KeySum()
    with ThreadPoolExecutor(threads) as pool:
        results = checked_by(pool, reader, files, threads * 2)
        for group in _groups(snapshot, files):
            seen = Seen(sum(file.rows for file in group), bucket_rows)
            with seen:
                for number, (_, checked) in enumerate(zip(group, results, strict=False)):
                    findings += checked.findings
                    rows, bytes_read = rows + checked.rows, bytes_read + checked.bytes_read
                    seen.add(number, checked.hashes)
                    sums = sums.plus(checked.keys)
                findings += doubled_keys(reader, group, seen)
    return FileReport(tuple(findings), len(files), rows, bytes_read, sums.rows, sums.value)


@dataclass(frozen=True)
class KeySum:
    """A checksum of keys that does not depend on their order."""

    rows: int = 0
    value: int = 0

    def plus(self, hashes: Hashes) -> KeySum:
        return KeySum(self.rows + len(hashes), (self.value + int(hashes.sum(dtype=np.uint64))) % 2**64)


def checked_by(pool: ThreadPoolExecutor, reader: Reader, files: Sequence[DataFile], ahead: int) -> Iterator[Checked]:
    """The files checked by the pool, in their order; at most `ahead` are begun before they are wanted."""
    waiting: deque[Future[Checked]] = deque()
    for file in files:
        waiting.append(pool.submit(reader.check, file))
        if len(waiting) >= ahead:
            yield waiting.popleft().result()
    while waiting:
        yield waiting.popleft().result()


# --- ranges


def range_of(snapshot: Snapshot, file: DataFile) -> tuple[Bound | None, Bound | None]:
    types = _key_types(snapshot)
    return decode_bound(types, file.low), decode_bound(types, file.high)


def _key_types(snapshot: Snapshot) -> list[str]:
    columns = [find(snapshot.schema, name) for name in snapshot.primary_key]
    return [column.type for column in columns if column is not None]


def _by_low(snapshot: Snapshot, files: Iterable[DataFile]) -> list[DataFile]:
    """The files by their least key, those without a bound first."""
    if not snapshot.primary_key:
        return sorted(files, key=lambda file: file.path)
    return sorted(files, key=lambda file: (range_of(snapshot, file)[0] or (), file.path))


def _groups(snapshot: Snapshot, files: Sequence[DataFile]) -> Iterator[list[DataFile]]:
    """Runs of the files, which come by their least key, that hold all files whose ranges meet. Without a key each is alone."""
    group: list[DataFile] = []
    high: Bound | None = None
    for file in files:
        low, top = range_of(snapshot, file)
        if group and (not snapshot.primary_key or _is_above(low, high)):
            yield group
            group, high = [], ()
        high = top if not group else _greater(high, top)
        group.append(file)
    if group:
        yield group


def _is_above(low: Bound | None, high: Bound | None) -> bool:
    """Whether every key from `low` on is above all up to `high`. A bound that was cut holds all keys that begin with it."""
    return low is not None and high is not None and low[: len(high)] > high


def _greater(one: Bound | None, other: Bound | None) -> Bound | None:
    """The upper bound that holds what both hold."""
    if one is None or other is None:
        return None
    width = min(len(one), len(other))
    if one[:width] == other[:width]:
        return one if len(one) == width else other
    return max(one, other)


# --- one file


class Reader:
    """Reads and checks the files of one snapshot; used by many threads."""

    def __init__(self, s3: Any, lake: S3Uri, snapshot: Snapshot) -> None:
        self.s3, self.lake, self.snapshot = s3, lake, snapshot
        self.key = snapshot.primary_key
        self._columns = {column.name: column.type for column in file_columns(snapshot.schema, snapshot.partitioning)}
        self.key_schema = tuple(column for column in snapshot.schema if column.name in self.key)

    def key_of(self, file: DataFile) -> tuple[str, ...]:
        """The key columns that the file must have."""
        return self.key

    def where(self, file: DataFile) -> str:
        return str(self.lake.join(file.path))

    def check(self, file: DataFile) -> Checked:
        """The file as it stands; where it was hidden since it was listed, its data version."""
        try:
            return self.checked(file)
        except TableBlocked as error:
            if error.code in _GONE:
                return self._checked_version(file)
            return Checked(file, (self._as_finding(file, error),))

    def _checked_version(self, file: DataFile) -> Checked:
        versions = key_versions(self.s3, self.lake.bucket, self.lake.key + file.path)
        ids = [entry.version_id for entry in versions.data if entry.size == file.size_bytes and file.etag in ("", entry.etag)]
        try:
            return self.checked(file, ids[0]) if ids else Checked(file, (self._vanished(file),))
        except TableBlocked as error:
            return Checked(file, (self._as_finding(file, error),))

    def _vanished(self, file: DataFile) -> Finding:
        found = "it vanished while it was to be read, and no data version is left"
        return Finding("missing-file", DIFFERENCE, self.where(file), f"{file.rows} rows", found, "verify again")

    def _as_finding(self, file: DataFile, error: TableBlocked) -> Finding:
        return Finding("wrong-file", DIFFERENCE, self.where(file), f"{file.rows} rows that can be read", error.message, error.todo or TODO)

    def open(self, file: DataFile, version: str | None = None) -> pq.ParquetFile:
        key = self.lake.key + file.path
        source = RangedFile(self.s3, self.lake.bucket, key, file.size_bytes, etag=file.etag or None, version=version)
        return read_data_file(source, file.path)

    def checked(self, file: DataFile, version: str | None = None) -> Checked:
        parquet = self.open(file, version)
        wrong = [*self.of_footer(file, parquet)]
        read = fetched(parquet, set(self.key))
        if wrong or not self.key:
            return Checked(file, self.wrong(file, wrong), rows=parquet.metadata.num_rows, bytes_read=read)
        hashes, found = [np.empty(0, np.uint64)], None
        for table in self.keys(file, parquet):
            if any(column.null_count for column in table.itercolumns()):
                wrong.append(("a key in every row", "a null in a key column"))
                break
            found = wider_bounds(found, bounds(table, self.key))
            hashes.append(key_hashes(normalised_keys(table, self.key)))
        low, high = range_of(self.snapshot, file)
        if found is not None:
            wrong += outside(found, low, high, "keys")
        return Checked(file, self.wrong(file, wrong), np.concatenate(hashes), parquet.metadata.num_rows, read)

    def keys(self, file: DataFile, parquet: pq.ParquetFile) -> Iterator[pa.Table]:
        """The key columns, in pieces, those that stand in the folder's name with them."""
        for table in read_rows(parquet, self.key, file.path):
            whole = with_partition_columns(table, self.snapshot.partitioning, file.partition, self.snapshot.schema)
            yield conform(whole, self.key_schema, file.path)

    def wrong(self, file: DataFile, wrong: Iterable[tuple[str, str]]) -> tuple[Finding, ...]:
        return tuple(Finding("wrong-file", DIFFERENCE, self.where(file), expected, found, TODO) for expected, found in wrong)

    def of_footer(self, file: DataFile, parquet: pq.ParquetFile) -> Iterator[tuple[str, str]]:
        """(expected, found) for what the footer says otherwise. A file may lack columns that came after it, but no key column.

        One that another program wrote may have columns that are not the table's, and narrower types.
        """
        adopted = not change_in_name(root(file))
        if parquet.metadata.num_rows != file.rows:
            yield f"{file.rows} rows", f"{parquet.metadata.num_rows} rows in the footer"
        physical = parquet.schema_arrow
        for name in sorted({name for name in physical.names if physical.names.count(name) > 1}):
            yield "each column once", f"the column {name!r} twice"
        for column in physical:
            wanted, kind = self._columns.get(column.name), lake_type_of(column.type)
            if wanted is None and adopted:
                continue
            if wanted is None:
                yield "the table's columns", f"a column {column.name!r}, which the table has not in its files"
            elif kind != wanted and not (adopted and kind and widened(kind, wanted) == wanted):
                yield f"{column.name} {wanted}", f"{column.name} {kind or column.type}"
        for name in self.key_of(file):
            if name in self._columns and name not in physical.names:
                yield f"the key column {name}", "no such column in the file"
        if not adopted:  # other writers cut long texts in them
            yield from self.of_statistics(file, parquet)

    def of_statistics(self, file: DataFile, parquet: pq.ParquetFile) -> Iterator[tuple[str, str]]:
        """The first key column's least and greatest value, as far as the footer says them."""
        if not self.key or self.key[0] not in self._columns or self.key[0] not in parquet.schema_arrow.names:
            return
        kind = to_arrow(self._columns[self.key[0]])
        low, high = range_of(self.snapshot, file)
        for found in _statistics(parquet, self.key[0], kind):
            yield from outside(found, low and low[:1], high and high[:1], "statistics")


def fetched(parquet: pq.ParquetFile, names: set[str]) -> int:
    """Bytes of the footer and of the columns with these names."""
    metadata = parquet.metadata
    groups = (metadata.row_group(index) for index in range(metadata.num_row_groups))
    chunks = (group.column(index) for group in groups for index in range(group.num_columns))
    return int(metadata.serialized_size) + sum(chunk.total_compressed_size for chunk in chunks if chunk.path_in_schema in names)


def _statistics(parquet: pq.ParquetFile, name: str, kind: pa.DataType) -> Iterator[tuple[Bound, Bound]]:
    """(least, greatest) of the column in each row group that says them in a form that can be compared.

    Not of floats: of infinite values the writer says a finite least one, of NaN nothing.
    """
    if pt.is_floating(kind):
        return
    index = parquet.schema_arrow.names.index(name)
    for number in range(parquet.metadata.num_row_groups):
        statistics = parquet.metadata.row_group(number).column(index).statistics
        if statistics is None or not statistics.has_min_max:
            continue
        raw = pt.is_date(kind) or pt.is_timestamp(kind)  # Python's own dates end at the year 9999
        least, most = (statistics.min_raw, statistics.max_raw) if raw else (statistics.min, statistics.max)
        try:
            yield (_value(least, kind),), (_value(most, kind),)
        except (pa.ArrowException, TypeError, ValueError):
            continue


def _value(value: Any, kind: pa.DataType) -> Any:
    return int(value) if pt.is_date(kind) or pt.is_timestamp(kind) else comparable(pa.scalar(value, kind))


def wider_bounds(one: tuple[Bound, Bound] | None, other: tuple[Bound, Bound] | None) -> tuple[Bound, Bound] | None:
    if one is None or other is None:
        return one or other
    return min(one[0], other[0]), max(one[1], other[1])


def outside(found: tuple[Bound, Bound], low: Bound | None, high: Bound | None, what: str) -> Iterator[tuple[str, str]]:
    if (low is not None and found[0] < low) or (high is not None and found[1][: len(high)] > high):
        yield f"{what} between the bounds that the record gives", f"{what} outside of them: a merge would pass over rows of this file"


# --- keys of many files


class Seen:
    """Hashes of the rows of many files, `number` by file; in memory, or in files on disk where they are many."""

    _TYPE = np.dtype([("hash", np.uint64), ("file", np.uint32)])

    def __init__(self, rows: int, bucket_rows: int) -> None:
        buckets = max(1, -(-rows // bucket_rows))
        self._bits = (buckets - 1).bit_length()
        self._parts: list[np.ndarray[Any, Any]] = []
        self._folder = tempfile.TemporaryDirectory(prefix="dmslake-verify-") if self._bits else None

    def __enter__(self) -> Seen:
        return self

    def __exit__(self, *_: object) -> None:
        if self._folder is not None:
            self._folder.cleanup()

    def add(self, number: int, hashes: Hashes) -> None:
        part = np.empty(len(hashes), self._TYPE)
        part["hash"], part["file"] = hashes, number
        if self._folder is None:
            self._parts.append(part)
            return
        bucket = (hashes >> np.uint64(64 - self._bits)).astype(np.int64)
        order = np.argsort(bucket, kind="stable")
        ends = np.searchsorted(bucket[order], np.arange(2**self._bits + 1))
        for index in range(2**self._bits):
            rows = part[order[ends[index] : ends[index + 1]]]
            if len(rows):
                with self._file(index).open("ab") as file:
                    rows.tofile(file)

    def _file(self, index: int) -> Path:
        assert self._folder is not None
        return Path(self._folder.name) / str(index)

    def doubled(self) -> Iterator[np.ndarray[Any, Any]]:
        """The rows whose hash comes more than once, those of a hash together."""
        if self._folder is None:
            yield _of_more_than_one(np.concatenate([np.empty(0, self._TYPE), *self._parts]))
            return
        for index in range(2**self._bits):
            if self._file(index).exists():
                yield _of_more_than_one(np.fromfile(self._file(index), self._TYPE))


def find_doubled(
    s3: Any,
    lake: S3Uri,
    snapshot: Snapshot,
    hashed: Iterable[tuple[DataFile, Hashes]],
    rows: int,
    bucket_rows: int = BUCKET_ROWS,
) -> list[Finding]:
    """A finding for each of the first keys that come more than once, of files whose keys (`key_hashes`, `rows` in all) come one by one."""
    files: list[DataFile] = []
    with Seen(rows, bucket_rows) as seen:
        for number, (file, hashes) in enumerate(hashed):
            files.append(file)
            seen.add(number, hashes)
        return doubled_keys(Reader(s3, lake, snapshot), files, seen)


def _of_more_than_one(rows: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    rows = rows[np.argsort(rows["hash"], kind="stable")]
    same = rows["hash"][1:] == rows["hash"][:-1]
    held = np.zeros(len(rows), np.bool_)
    held[1:] |= same
    held[:-1] |= same
    return rows[held]


def doubled_keys(reader: Reader, group: Sequence[DataFile], seen: Seen) -> list[Finding]:
    """A finding for each of the first doubled keys, and one that counts the others."""
    named: list[Finding] = []
    more = 0
    for rows in seen.doubled():
        hashes = np.unique(rows["hash"])
        chosen = hashes[: NAMED_KEYS - len(named)]
        more += len(hashes) - len(chosen)
        if len(chosen):
            numbers = np.unique(rows["file"][np.isin(rows["hash"], chosen)])
            named += _confirmed(reader, [group[number] for number in numbers], chosen)
    if more:
        found = f"about {more:,} more keys that come more than once"
        named.append(Finding("doubled-key", DIFFERENCE, str(reader.lake), "each key once", found, TODO_DOUBLED))
    return named


def _confirmed(reader: Reader, files: Sequence[DataFile], hashes: Hashes) -> list[Finding]:
    """The keys with these hashes that really come more than once: two keys may have one hash."""
    places: dict[Any, list[DataFile]] = {}
    texts: dict[Any, str] = {}
    for file in files:
        for table in reader.keys(file, reader.open(file, _version_if_hidden(reader, file))):
            keys = normalised_keys(table, reader.key)
            hits = table.filter(pa.array(np.isin(key_hashes(keys), hashes)))
            for row, key in enumerate(SortedKeys(hits, reader.key)):
                places.setdefault(key, []).append(file)
                texts[key] = ", ".join(f"{name}={shown(hits.column(name)[row])}" for name in reader.key)
    return [_doubled(reader, texts[key], held_by) for key, held_by in places.items() if len(held_by) > 1]


def _version_if_hidden(reader: Reader, file: DataFile) -> str | None:
    versions = key_versions(reader.s3, reader.lake.bucket, reader.lake.key + file.path)
    return None if versions.visible or not versions.data else versions.data[0].version_id


def _doubled(reader: Reader, key: str, files: Sequence[DataFile]) -> Finding:
    paths = sorted({file.path for file in files})
    others = f", in {', '.join(paths[1:])} too" if len(paths) > 1 else ""
    found = f"{key} {len(files)} times{others}"
    return Finding("doubled-key", DIFFERENCE, str(reader.lake.join(paths[0])), "each key once", found, TODO_DOUBLED)


# --- hashes

_PRIME = np.uint64(0x9E3779B97F4A7C15)
_WEIGHTS = np.random.default_rng(20240501).integers(1, 2**63, 4096, np.uint64) | np.uint64(1)


def key_hashes(keys: pa.Table) -> Hashes:
    """A 64-bit hash for each row. `keys`: of `normalised_keys`, without nulls; equal keys have equal hashes."""
    total = np.zeros(keys.num_rows, np.uint64)
    for column in keys.itercolumns():
        pieces = [_column_hashes(chunk) for chunk in column.chunks]
        total = _mixed(total * _PRIME + np.concatenate([np.empty(0, np.uint64), *pieces]))
    return total


def _mixed(values: Hashes) -> Hashes:
    """Every bit of the input moves every bit of the output (the end of splitmix64)."""
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return values ^ (values >> np.uint64(31))


def _column_hashes(values: pa.Array) -> Hashes:
    kind = values.type
    if pt.is_floating(kind):
        return values.cast(pa.float64()).to_numpy(zero_copy_only=False).view(np.uint64)
    if pt.is_date32(kind):
        values = values.cast(pa.int32())
    if pt.is_decimal(kind):
        values = values.cast(pa.string())
    if pt.is_string(values.type) or pt.is_binary(values.type):
        return _byte_hashes(values)
    return values.cast(pa.int64()).to_numpy(zero_copy_only=False).view(np.uint64)


def _byte_hashes(values: pa.Array) -> Hashes:
    """Sums of the bytes, each weighted by its place."""
    lengths = pc.binary_length(values).cast(pa.int64()).to_numpy(zero_copy_only=False)
    _, offsets, data = values.buffers()
    first = int(np.frombuffer(offsets, np.int32)[values.offset]) if len(values) else 0
    stops = np.cumsum(lengths)
    size = int(stops[-1]) if len(stops) else 0
    raw = np.frombuffer(data, np.uint8)[first : first + size] if size else np.empty(0, np.uint8)
    places = np.arange(size, dtype=np.int64) - np.repeat(stops - lengths, lengths)
    sums = np.concatenate([np.zeros(1, np.uint64), np.cumsum((raw.astype(np.uint64) + np.uint64(1)) * _WEIGHTS[places % len(_WEIGHTS)])])
    return sums[stops] - sums[stops - lengths] + lengths.astype(np.uint64) * _PRIME
