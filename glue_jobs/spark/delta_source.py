"""A Delta table's versions as a source of feeds, read by the package `deltalake` without Spark.

Between two versions only files are read that one has and the other lacks. What that package can't read rightly (deletion vectors,
column mapping) is an error, never a row too many.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from itertools import pairwise
from typing import Any

import pyarrow as pa

from glue_jobs.aws.clients import make_clients
from glue_jobs.core.errors import ConfigurationError, DmslakeError, UsageError, to_install
from glue_jobs.core.feed_wish import FeedWish
from glue_jobs.spark.delta_rows import rows_of
from glue_jobs.spark.differences import comparable_schema
from glue_jobs.spark.feed_source import Between, Bronze, check_keys, conformed, feed_schema, make_bronze
from glue_jobs.spark.row_changes import row_changes

EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
BY_SPARK = "use --reader spark where Spark has Delta, or let Delta rewrite the table without them (REORG TABLE … APPLY (PURGE))"


@dataclass(frozen=True)
class DeltaSource:
    """A Delta table in a folder of this machine or of S3."""

    wish: FeedWish
    environment: Mapping[str, str]

    @property
    def uri(self) -> str:
        return self.wish.delta

    def bronze(self, version: str) -> Bronze:
        """The rows of a version, '' for version 0."""
        number, times = int(version or 0), self._times()
        self._check_exists(number, times)
        rows = self._rows(self._dataset(self.open(number), number), number)
        return make_bronze(self._named(number), rows, self.wish.primary_key, self.wish, times[number])

    def exact(self, version: str) -> str:
        """The version, '' for the last one."""
        return version or str(max(self._times()))

    def between(self, start: str, end: str) -> Iterator[Between]:
        """What each version after `start` up to `end` did."""
        times = self._times()
        first, last = int(start), int(end)
        if last < first:
            raise UsageError(f"version {last} is before version {first}", "bad-order", "give the older one as --from")
        self._check_exists(last, times)
        for old, new in pairwise(range(first, last + 1)):
            yield self._step(old, new, times[new])

    def _step(self, old: int, new: int, time: datetime) -> Between:
        before, after = self.open(old), self.open(new)
        gone, came = _files_apart(self._dataset(before, old), self._dataset(after, new))
        rows = [self._rows(part, number) for part, number in ((gone, old), (came, new))]
        return step_between(self.wish, (self._named(old), self._named(new)), (rows[0], rows[1]), time)

    def open(self, version: int) -> Any:
        """The table at a version, looked at for what can't be read."""
        delta = _package()
        with self._said(version):
            table = delta.DeltaTable(self.uri, version=version, storage_options=self._storage())
            modes = table.metadata().configuration
        if modes.get("delta.columnMapping.mode", "none") != "none":
            raise UsageError(f"{self._named(version)} maps its columns to other names", "delta-feature", BY_SPARK)
        return table

    def _dataset(self, table: Any, version: int) -> Any:
        with self._said(version):
            return table.to_pyarrow_dataset()

    def _check_exists(self, version: int, times: Mapping[int, datetime]) -> None:
        """Before it is opened: the package would look for each version up to a great one."""
        if version > max(times):
            raise self._no_version(version)

    def _rows(self, dataset: Any, version: int) -> pa.Table:
        with self._said(version):
            try:
                return rows_of(dataset)
            except FileNotFoundError as error:
                what = f"a data file of {self._named(version)} is no more: {error}"
                raise UsageError(what, "version-gone", "give a version whose files VACUUM has left") from error

    def _times(self) -> _Times:
        """Version → when it was made. Asked of the latest version: on an older one the package counts wrongly."""
        delta = _package()
        with self._said(None):
            entries = delta.DeltaTable(self.uri, storage_options=self._storage()).history()
        known = {int(entry["version"]): EPOCH + timedelta(milliseconds=int(entry.get("timestamp") or 0)) for entry in entries}
        return _Times(known)

    def _storage(self) -> dict[str, str] | None:
        return storage_options(self.environment) if self.uri.startswith("s3") else None

    def _named(self, version: int) -> str:
        return named(self.uri, version)

    @contextmanager
    def _said(self, version: int | None) -> Iterator[None]:
        """The package's errors in our words."""
        errors = importlib.import_module("deltalake.exceptions")
        try:
            yield
        except errors.TableNotFoundError as error:
            raise UsageError(f"there is no Delta table at {self.uri}", "no-delta-table", "give the folder that holds _delta_log") from error
        except errors.DeltaProtocolError as error:
            raise UsageError(f"{self.uri} can't be read: {_line(error)}", "delta-feature", BY_SPARK) from error
        except (errors.DeltaError, OSError, ValueError) as error:
            if isinstance(error, DmslakeError):
                raise
            raise self._unreadable(version, error) from error

    def _unreadable(self, version: int | None, error: Exception) -> DmslakeError:
        if version is not None and re.search(r"end version|invalid.*version|version.*(invalid|not found)", str(error), re.IGNORECASE):
            return self._no_version(version)
        if re.search(r"unsupported|not supported", str(error), re.IGNORECASE):
            return UsageError(f"{self.uri} can't be read: {_line(error)}", "delta-feature", BY_SPARK)
        return UsageError(f"{self.uri} can't be read: {_line(error)}", "delta-unreadable", "look at the table and at the access to it")

    def _no_version(self, version: int) -> UsageError:
        return UsageError(f"{self.uri} has no version {version}", "no-version", "its history lists the versions that are kept")


class _Times(dict[int, datetime]):
    """A version whose commit is in the log no more has the time of the next one that is; the last one's time for any later."""

    def __missing__(self, version: int) -> datetime:
        return self[min((known for known in self if known > version), default=max(self))]


def named(uri: str, version: int) -> str:
    """The version in messages."""
    return f"{uri} version {version}"


def step_between(wish: FeedWish, names: tuple[str, str], rows: tuple[pa.Table, pa.Table], time: datetime) -> Between:
    """What lies between the rows of two versions, of which equal ones may be left out; names: of the versions, in messages."""
    key = wish.primary_key
    schemas = [feed_schema(name, part.schema, key, wish) for name, part in zip(names, rows, strict=True)]
    before, after = (conformed(name, part, schema) for name, part, schema in zip(names, rows, schemas, strict=True))
    for name, part in zip(names, (before, after), strict=True):
        check_keys(name, part, key)
    schema, apart = comparable_schema(schemas[0], schemas[1])
    if apart:
        todo = "ask for the versions before and after it by themselves"
        raise UsageError(f"column {apart[0]!r} has another type as of {names[1]}, and no type holds both", "types-apart", todo)
    return Between(time, schema, row_changes(before, after, schema, key))


def _files_apart(before: Any, after: Any) -> tuple[Any, Any]:
    """The two data sets with only the files that the other one lacks."""
    old, new = ({fragment.path for fragment in each.get_fragments()} for each in (before, after))
    return _only(before, old - new), _only(after, new - old)


def _only(dataset: Any, paths: set[str]) -> Any:
    chosen: Sequence[Any] = [fragment for fragment in dataset.get_fragments() if fragment.path in paths]
    return type(dataset)(chosen, dataset.schema, dataset.format, dataset.filesystem)


def storage_options(environment: Mapping[str, str]) -> dict[str, str]:
    """What `deltalake` needs for S3: the credentials, region and endpoint that our own clients use."""
    s3 = make_clients(environment).s3
    credentials = s3._request_signer._credentials
    options = {"AWS_REGION": s3.meta.region_name or "us-east-1"}
    if credentials is not None:
        frozen = credentials.get_frozen_credentials()
        options |= {"AWS_ACCESS_KEY_ID": frozen.access_key, "AWS_SECRET_ACCESS_KEY": frozen.secret_key}
        options |= {"AWS_SESSION_TOKEN": frozen.token} if frozen.token else {}
    endpoint = environment.get("AWS_ENDPOINT_URL_S3") or environment.get("AWS_ENDPOINT_URL")
    if endpoint:
        options |= {"AWS_ENDPOINT_URL": endpoint, "AWS_ALLOW_HTTP": str(endpoint.startswith("http://")).lower()}
    return options


def _package() -> Any:
    try:
        return importlib.import_module("deltalake")
    except ImportError:
        todo = f"{to_install('feed')}; a Glue job takes it by --additional-python-modules deltalake"
        raise ConfigurationError("the package deltalake is not installed", "no-package", todo) from None


def _line(error: Exception) -> str:
    return " ".join(str(error).split())[:300]
