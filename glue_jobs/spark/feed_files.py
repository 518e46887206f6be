"""Where a feed goes: a folder of this machine or of S3. A file appears whole or not at all, and none is written over another."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, Protocol

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from glue_jobs.aws.objects import list_files, read_bytes, write_bytes
from glue_jobs.core.dms_names import load_file_name, timestamp_text
from glue_jobs.core.errors import ConfigurationError, UsageError
from glue_jobs.core.paths import S3Uri
from glue_jobs.spark.dms_files import OP_COLUMN
from glue_jobs.spark.dms_writer import dms_parquet, with_dms_columns
from glue_jobs.spark.feed_rows import FeedFile
from glue_jobs.spark.feed_source import Bronze

LOAD_ROWS = 500_000  # in one load file


class Folder(Protocol):
    """A place for files. Paths are below it."""

    def read(self, path: str) -> bytes | None:
        """The file's bytes, None where there is none."""
        ...

    def write(self, path: str, data: bytes) -> None:
        """Make the file, whole."""
        ...


@dataclass(frozen=True)
class LocalFolder:
    """A folder of this machine."""

    root: Path

    def read(self, path: str) -> bytes | None:
        try:
            return (self.root / path).read_bytes()
        except FileNotFoundError:
            return None
        except OSError as error:
            raise self._refused(error) from error

    def write(self, path: str, data: bytes) -> None:
        target = self.root / path
        part = target.with_name(f".{target.name}.{secrets.token_hex(4)}")
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            part.write_bytes(data)
            os.replace(part, target)
        except OSError as error:
            part.unlink(missing_ok=True)
            raise self._refused(error) from error

    def _refused(self, error: OSError) -> ConfigurationError:
        found = f"{error.filename or self.root}: {error.strerror}"
        return ConfigurationError(found, "staging-refused", "give another folder, or allow writing")


@dataclass(frozen=True)
class S3Folder:
    """A folder of S3."""

    s3: Any
    folder: S3Uri

    def read(self, path: str) -> bytes | None:
        key = self.folder.key + path
        there = any(file.key == key for file in list_files(self.s3, self.folder.bucket, key))
        return read_bytes(self.s3, self.folder.bucket, key) if there else None

    def write(self, path: str, data: bytes) -> None:
        write_bytes(self.s3, self.folder.bucket, self.folder.key + path, data)


def open_folder(text: str, s3: Any) -> Folder:
    """The folder that `text` names. s3: a function that makes the client; called only for an s3:// address."""
    if text.startswith(("s3://", "s3a://", "s3n://")):
        return S3Folder(s3(), S3Uri.folder(text))
    return LocalFolder(Path(text).expanduser())


@dataclass
class Written:
    """What was written, or was there already with the same bytes. rows: by `Op`."""

    paths: list[str] = field(default_factory=list)
    rows: dict[str, int] = field(default_factory=lambda: {"I": 0, "U": 0, "D": 0})
    load_files: list[str] = field(default_factory=list)
    load_rows: int = 0
    found: int = 0


def write_feed(folder: Folder, files: Iterable[FeedFile], written: Written) -> None:
    """Write the files one by one, oldest first: who reads meanwhile sees the beginning of the feed."""
    for file in files:
        _put(folder, file.path, dms_parquet(file.rows), written)
        written.paths.append(file.path)
        for pair in pc.value_counts(file.rows.column(OP_COLUMN)).to_pylist():
            written.rows[pair["values"]] += pair["counts"]


def write_load(folder: Folder, bronze: Bronze, timestamp_column: str, time: datetime, written: Written) -> None:
    """Write the version itself as the full load before the feed. time: of the transfer."""
    for path, rows in _load_files(bronze.rows):
        table = with_dms_columns(rows, ["I"] * rows.num_rows, [timestamp_text(time)] * rows.num_rows, timestamp_column)
        _put(folder, path, dms_parquet(table), written)
        written.load_files.append(path)
        written.load_rows += rows.num_rows


def _load_files(rows: pa.Table) -> Iterator[tuple[str, pa.Table]]:
    for number, start in enumerate(range(0, max(rows.num_rows, 1), LOAD_ROWS), 1):
        yield load_file_name(number), rows.slice(start, LOAD_ROWS)


def _put(folder: Folder, path: str, data: bytes, written: Written) -> None:
    there = folder.read(path)
    if there is None:
        folder.write(path, data)
    elif there == data:
        written.found += 1
    else:
        raise UsageError(
            f"{path} is in the staging folder already, and is not the file of this feed",
            "feed-file-taken",
            "give an empty --staging folder, or another --start; what was written before it is the same feed's",
        )


def write_expected(text: str, rows: pa.Table, s3: Any) -> None:
    """Write the rows that the table must have, as one Parquet file."""
    head, _, name = text.rpartition("/")
    stream = pa.BufferOutputStream()
    pq.write_table(rows, stream)
    if not name:
        raise UsageError(f"{text!r} names no file", "bad-argument", "give --expected the name of a Parquet file")
    open_folder(head if head or text.startswith("/") else ".", s3).write(name, stream.getvalue().to_pybytes())
