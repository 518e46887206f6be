"""Where a feed's files go: a folder of this machine, or one in S3."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

from glue_jobs.aws.clients import make_clients
from glue_jobs.aws.objects import list_files
from glue_jobs.core.errors import UsageError
from glue_jobs.core.paths import S3Uri


class RawPlace(Protocol):
    """A folder of raw files. Paths are below it, with slashes."""

    def names(self) -> set[str]:
        """The paths of all files there."""

    def get(self, path: str) -> bytes:
        """The bytes of a file that is there."""

    def put(self, path: str, data: bytes) -> None: ...
    def remove(self, path: str) -> None: ...


@contextmanager
def writing(file: Path, option: str) -> Iterator[None]:
    """Within it, a file of this machine that can't be written is a UsageError. option: what the person named it, or its folder, by."""
    try:
        yield
    except OSError as error:
        reason = os.strerror(error.errno) if error.errno else str(error)  # in pyarrow's own words the path stands once more
        raise UsageError(f"{file} can't be written: {reason}", "bad-argument", f"give {option} a place that can be written") from error


class LocalPlace:
    """A folder of this machine; folders below it are made as they are needed. UsageError where nothing can be written."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def __str__(self) -> str:
        return f"{self._folder}{os.sep}"

    def names(self) -> set[str]:
        return {path.relative_to(self._folder).as_posix() for path in self._folder.rglob("*") if path.is_file()}

    def get(self, path: str) -> bytes:
        return (self._folder / path).read_bytes()

    def put(self, path: str, data: bytes) -> None:
        file = self._folder / path
        with writing(file, "--to"):
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(data)

    def remove(self, path: str) -> None:
        file = self._folder / path
        with writing(file, "--to"):
            file.unlink(missing_ok=True)


class S3Place:
    """A folder in S3."""

    def __init__(self, s3: Any, folder: S3Uri) -> None:
        self._s3, self._folder = s3, folder

    def __str__(self) -> str:
        return str(self._folder)

    def names(self) -> set[str]:
        prefix = self._folder.key
        return {file.key[len(prefix) :] for file in list_files(self._s3, self._folder.bucket, prefix)}

    def get(self, path: str) -> bytes:
        data: bytes = self._s3.get_object(Bucket=self._folder.bucket, Key=self._folder.key + path)["Body"].read()
        return data

    def put(self, path: str, data: bytes) -> None:
        self._s3.put_object(Bucket=self._folder.bucket, Key=self._folder.key + path, Body=data)

    def remove(self, path: str) -> None:
        self._s3.delete_object(Bucket=self._folder.bucket, Key=self._folder.key + path)


def is_s3(text: str) -> bool:
    """Whether it is an address in S3, in any of the spellings that `S3Uri` takes."""
    return re.match(r"\s*s3[an]?://", text) is not None


def open_place(text: str, variables: Mapping[str, str]) -> LocalPlace | S3Place:
    """The folder that `text` names: `s3://bucket/prefix/` or a path. variables: where credentials and endpoints are looked up."""
    if is_s3(text):
        return S3Place(make_clients(variables).s3, S3Uri.folder(text))
    return LocalPlace(Path(text))
