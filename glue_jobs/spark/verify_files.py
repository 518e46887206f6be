"""The data files of a snapshot, read: do footers, key bounds and keys say what the change records say?

Of each file the footer and the key columns are fetched, by ranged reads. Keys are compared by 64-bit hashes, 12 bytes a row, so that
memory depends neither on the keys' width nor, since larger sets go to files on disk by parts of the hash, on the table's size. What
has one hash is read again and compared by value. Files whose key ranges do not meet those of the others are done with at once.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np

from glue_jobs.core.keys import Bound
from glue_jobs.core.paths import S3Uri
from glue_jobs.core.raw_names import RawFile
from glue_jobs.core.record import DataFile
from glue_jobs.core.snapshot import Snapshot
from glue_jobs.core.verify import FileReport, Finding
from glue_jobs.spark.doubled_keys import BUCKET_ROWS, Seen, doubled_keys
from glue_jobs.spark.key_hashes import Hashes
from glue_jobs.spark.verify_reader import Checked, Reader, range_of

THREADS = 8


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
