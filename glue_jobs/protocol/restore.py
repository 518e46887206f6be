"""Restoring data files: hidden ones come back as new keys, by server-side copies of their data versions that converge completes.

Before the commit every copy exists, or none is left: a file that can't be restored refuses the whole change.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from glue_jobs.aws.copies import copy_version
from glue_jobs.aws.versions import KeyVersions, VersionEntry, versions_of
from glue_jobs.core.erasure import NOTHING_ERASED, Erased
from glue_jobs.core.paths import S3Uri, data_key
from glue_jobs.core.record import DataFile
from glue_jobs.core.undo import root
from glue_jobs.protocol.converge import THREADS, abort_uploads


@dataclass(frozen=True)
class Source:
    """Where a data file's bytes are: a version of a key of the lake's bucket. visible: the file's keys that readers see, of which a hidden
    file has none."""

    key: str
    version: VersionEntry
    visible: tuple[str, ...] = ()


def find_sources(
    s3: Any, lake: S3Uri, files: Iterable[DataFile], erased: Erased = NOTHING_ERASED
) -> tuple[dict[str, Source], tuple[DataFile, ...]]:
    """(path → source of its bytes, the files that have none any more). A copy's bytes may also be those of its original.

    erased: versions that are for nobody any more, whether they were removed already or not.
    """
    wanted = tuple(files)
    keys = sorted({lake.key + path for file in wanted for path in (file.path, root(file))})
    seen = versions_of(s3, lake.bucket, keys)
    sources: dict[str, Source] = {}
    for file in wanted:
        source = _source(lake, file, seen, erased)
        if source is not None:
            own = dict.fromkeys(lake.key + path for path in (file.path, root(file)))
            sources[file.path] = replace(source, visible=tuple(key for key in own if seen[key].visible))
    return sources, tuple(file for file in wanted if file.path not in sources)


def _source(lake: S3Uri, file: DataFile, seen: Mapping[str, KeyVersions], erased: Erased) -> Source | None:
    """A version with the bytes of the file. Its ETag is its own; the original's may differ, because it was uploaded in other parts.

    Where no ETag tells, the oldest version counts: whatever came later is somebody else's.
    """
    for version in _usable(seen, lake.key + file.path, erased):
        if version.size == file.size_bytes and file.etag in ("", version.etag):
            return Source(lake.key + file.path, version)
    if file.origin:
        for version in _usable(seen, lake.key + file.origin, erased):
            if version.size == file.size_bytes:
                return Source(lake.key + file.origin, version)
    return None


def _usable(seen: Mapping[str, KeyVersions], key: str, erased: Erased) -> list[VersionEntry]:
    """The key's data versions that may be used, oldest first."""
    return [version for version in reversed(seen[key].data) if not erased.has(key, version.version_id)]


def erased_file(lake: S3Uri, files: Iterable[DataFile], erased: Erased) -> tuple[DataFile, str] | None:
    """The first of `files` whose bytes an erase took, with that erase's id."""
    for file in files:
        for path in (file.path, root(file)):
            if erased.change_of(lake.key + path):
                return file, erased.change_of(lake.key + path)
    return None


@contextmanager
def aborted_on_error(s3: Any, lake: S3Uri, files: Sequence[DataFile]) -> Iterator[None]:
    """What fails while these copies wait for their commit leaves none of them."""
    try:
        yield
    except BaseException:
        abort_uploads(s3, lake, files)
        raise


def copy_files(s3: Any, lake: S3Uri, files: Sequence[DataFile], sources: Mapping[str, Source], change: str) -> tuple[DataFile, ...]:
    """Copies of `files` under keys of the change `change`, as uploads that are not completed. If one fails, all are aborted."""

    def copy(file: DataFile) -> DataFile:
        folder = file.path[: len(file.path) - len(file.path.rsplit("/", 1)[-1])]
        path = f"{folder}{change}-{uuid.uuid4()}.parquet"
        source = sources[file.path]
        done = copy_version(s3, lake.bucket, source.key, source.version, data_key(lake, path))
        return replace(file, path=path, etag=done.etag, origin=root(file), upload=done.upload)

    with ThreadPoolExecutor(THREADS) as pool:
        futures = [pool.submit(copy, file) for file in files]
    failed = next((future.exception() for future in futures if future.exception() is not None), None)
    if failed is not None:
        abort_uploads(s3, lake, [future.result() for future in futures if future.exception() is None])
        raise failed
    return tuple(future.result() for future in futures)
