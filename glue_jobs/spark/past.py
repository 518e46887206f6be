"""A lake table as of a change: its rows, hidden files included. Files are read by the version that holds their bytes.

On Arrow (`PastTable.batches`) in this process, or on Spark (`PastTable.frame`) for tables of any size.
"""

from __future__ import annotations

import pickle
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from itertools import islice
from typing import Any

import pyarrow as pa

from glue_jobs.aws.copies import version_gone
from glue_jobs.aws.erased import read_erased
from glue_jobs.aws.versions import versions_of
from glue_jobs.core.bins import bins_of_slots
from glue_jobs.core.erasure import NOTHING_ERASED, Erased, version_erased
from glue_jobs.core.history_table import history_lake
from glue_jobs.core.record import DataFile
from glue_jobs.core.snapshot import Snapshot
from glue_jobs.spark.arrow_types import arrow_schema
from glue_jobs.spark.open_file import OpenFile
from glue_jobs.spark.place import Place, Shape
from glue_jobs.spark.row_batches import BATCH_ROWS
from glue_jobs.spark.rows import spark_type
from glue_jobs.spark.task_errors import carried_rows

MOST_AHEAD = 8  # files; small ones lie in memory whole


@dataclass(frozen=True)
class PastFile:
    """A data file and the version of its key that holds its bytes."""

    file: DataFile
    version: str


@dataclass(frozen=True)
class PastTable:
    """The table as of `change` ('' for before the first). files: those asked for, each with its version."""

    change: str
    place: Place
    shape: Shape
    files: tuple[PastFile, ...]

    @property
    def size_bytes(self) -> int:
        return sum(each.file.size_bytes for each in self.files)

    @property
    def schema(self) -> pa.Schema:
        """The columns as Arrow has them, in the lake's order."""
        return arrow_schema(self.shape.schema)

    def batches(self, columns: Sequence[str] | None = None) -> Iterator[pa.RecordBatch]:
        """The rows, file by file, in batches; all columns or those named."""
        for opened in self._opened():
            for table in opened.batches():
                chosen = table if columns is None else table.select(list(columns))
                yield from chosen.to_batches(max_chunksize=BATCH_ROWS)

    def _opened(self) -> Iterator[OpenFile]:
        """The files, opened in their order. While rows are taken the next files are fetched, the more the more were taken."""
        if len(self.files) < 2:
            yield from map(self._open, self.files)
            return
        waiting: deque[Future[OpenFile]] = deque()
        pool = ThreadPoolExecutor(MOST_AHEAD)
        try:
            left = iter(self.files)
            for done in range(len(self.files)):
                ahead = min(done + 1, MOST_AHEAD) - len(waiting)
                waiting.extend(pool.submit(self._open, each) for each in islice(left, ahead))
                yield waiting.popleft().result()
        finally:
            pool.shutdown(cancel_futures=True)

    def read(self) -> pa.Table:
        """All rows at once."""
        return pa.Table.from_batches(self.batches(), self.schema)

    def _open(self, each: PastFile) -> OpenFile:
        return OpenFile.open(self.place, self.shape, each.file, version=each.version)

    def frame(self, spark: Any) -> Any:
        """The rows as a Spark DataFrame. Nothing is read before Spark asks for it."""
        slots = spark.sparkContext.defaultParallelism
        bins = bins_of_slots(self.files, lambda each: each.file.size_bytes, slots)
        payloads = [(pickle.dumps(replace(self, files=chosen)),) for chosen in bins]
        tasks = spark.sparkContext.parallelize(payloads, max(1, len(payloads)))
        return spark.createDataFrame(tasks, "files binary").mapInArrow(carried_rows(_read_past), spark_type(self.schema))


def _read_past(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        for payload in batch.column(0).to_pylist():
            part: PastTable = pickle.loads(payload)
            yield from part.batches()


def past_table(place: Place, table: str, snapshot: Snapshot, paths: Sequence[str] | None = None) -> PastTable:
    """The table of a snapshot, or only the files at `paths` of it. Raises TableBlocked, code version-gone or version-erased, if
    bytes are no more. snapshot: its `erases` are those up to now, not those of its time."""
    chosen = [snapshot.files[path] for path in (sorted(snapshot.files) if paths is None else paths)]
    return _past_table(place, table, snapshot, chosen, _erased(place, snapshot, chosen))


def past_history(place: Place, table: str, snapshot: Snapshot, history: Snapshot, until: datetime | None = None) -> PastTable:
    """The history table that belongs to a snapshot. place: of the lake table; history: the history's snapshot; until: leave out files
    whose versions all begin later."""
    chosen = [file for _, file in sorted(history.files.items()) if until is None or _month(file) <= _month_of(until)]
    return _past_table(replace(place, lake=history_lake(place.lake)), table, history, chosen, _erased(place, snapshot, chosen))


def _month(file: DataFile) -> tuple[int, ...]:
    return tuple(int(value or 0) for value in file.partition)


def _month_of(time: datetime) -> tuple[int, ...]:
    """The month that the time is in in UTC, as partitions are; a time without zone is UTC."""
    utc = time.astimezone(timezone.utc) if time.tzinfo else time
    return utc.year, utc.month


def _erased(place: Place, snapshot: Snapshot, chosen: Sequence[DataFile]) -> Erased:
    return read_erased(place.s3, place.lake, snapshot.erases) if chosen else NOTHING_ERASED


def _past_table(place: Place, table: str, snapshot: Snapshot, chosen: Sequence[DataFile], erased: Erased) -> PastTable:
    shape = Shape(table, snapshot.schema, snapshot.primary_key, snapshot.partitioning)
    found = find_versions(place, chosen, erased)
    files = []
    for file in chosen:
        version = found[file.path]
        if version is None:
            raise _gone(place, snapshot, file, erased)
        files.append(PastFile(file, version))
    return PastTable(snapshot.change, place, shape, tuple(files))


def _gone(place: Place, snapshot: Snapshot, file: DataFile, erased: Erased) -> Exception:
    """The error for a file whose bytes are no more."""
    key, what = place.lake.key + file.path, f"a data file of change {snapshot.change}"
    erase = erased.change_of(key)
    return version_erased(place.lake.bucket, key, erase, what) if erase else version_gone(place.lake.bucket, key, what)


def find_versions(place: Place, files: Sequence[DataFile], erased: Erased = NOTHING_ERASED) -> dict[str, str | None]:
    """Path → the version of the key that holds the file's bytes, None where they are no more, or are on the list of an erase."""
    lake = place.lake
    seen = versions_of(place.s3, lake.bucket, [lake.key + file.path for file in files])
    found: dict[str, str | None] = {}
    for file in files:
        key = lake.key + file.path
        entries = [each for each in seen[key].data if not erased.has(key, each.version_id)]
        ids = [each.version_id for each in entries if each.size == file.size_bytes and file.etag in ("", each.etag)]
        found[file.path] = ids[0] if ids else None
    return found
