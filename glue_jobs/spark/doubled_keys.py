"""Keys that come more than once in many files, found by hashes in bounded memory and confirmed by value."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from glue_jobs.aws.versions import key_versions
from glue_jobs.core.paths import S3Uri
from glue_jobs.core.record import DataFile
from glue_jobs.core.snapshot import Snapshot
from glue_jobs.core.verify import DIFFERENCE, Finding
from glue_jobs.spark.arrow_types import shown
from glue_jobs.spark.key_columns import SortedKeys, normalised_keys
from glue_jobs.spark.key_hashes import Hashes, key_hashes
from glue_jobs.spark.verify_reader import Reader

BUCKET_ROWS = 4_000_000  # rows whose hashes are held and sorted at once
NAMED_KEYS = 20  # of doubled keys, those that are named
TODO_DOUBLED = "reload the table in DMS, then `dmslake reload PATH`; report how it came to this"


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
