"""Where a table lives: its raw folder, its lake folder, its change records and its name in the catalog."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from glue_jobs.core.errors import UsageError, blocked

CONTROL_TABLE_PREFIX = "awsdms_"
_BUCKET = re.compile(r"[a-z0-9][a-z0-9.\-]{1,61}[a-z0-9]")
# No XML, thus no DeleteObjects, can hold the two last ones.
_UNSAFE_CHARS = "\x00-\x1f\x7f-\x9f\ufffe\uffff"
# What S3, Hive folders, Glue and a terminal all bear: no slash, no control character, no leading dot or underscore.
_UNSAFE_NAME = re.compile(rf"[{_UNSAFE_CHARS}/\\]|^[._]|^\s|\s$")
_CONTROL = re.compile(rf"[{_UNSAFE_CHARS}]")
MAX_NAME_BYTES = 200
MAX_CATALOG_NAME = 255  # Glue's
MAX_KEY_BYTES = 1024  # S3's


@dataclass(frozen=True)
class S3Uri:
    """`s3://bucket/key`, the key without a leading slash."""

    bucket: str
    key: str

    @classmethod
    def parse(cls, text: str) -> S3Uri:
        """The URI in `text`; raises UsageError that says what was expected."""
        match = re.fullmatch(r"s3[an]?://([^/]+)(?:/(.*))?", text.strip(), re.DOTALL)
        if not match or not _BUCKET.fullmatch(match.group(1)):
            raise UsageError(f"not an S3 address: {text!r}", "bad-uri", "write it as s3://bucket/prefix/")
        return cls(match.group(1), match.group(2) or "")

    @classmethod
    def folder(cls, text: str) -> S3Uri:
        """As `parse`, with exactly one slash at the end of a key that isn't empty. A folder that others would read as another one is
        refused: to S3 `a/../b` is a name, to Hadoop and to programs that copy it is `b`."""
        uri = cls.parse(text)
        key = uri.key.strip("/")
        if not _is_plain(key):
            raise UsageError(
                f"not a folder: {text!r}", "bad-uri", "write it as s3://bucket/prefix/, without . and .. and control characters"
            )
        return cls(uri.bucket, key + "/" if key else "")

    def __str__(self) -> str:
        return f"s3://{self.bucket}/{self.key}"

    def join(self, *parts: str) -> S3Uri:
        return S3Uri(self.bucket, self.key + "".join(parts))


@dataclass(frozen=True)
class TablePath:
    """A table's identity: where DMS writes it. Its text, `bucket/prefix/schema/table/`, is the key of its state item."""

    bucket: str
    prefix: str  # of the schema, with slash at the end: 'dms/sales/'
    folder: str  # 'orders/'

    @classmethod
    def parse(cls, text: str) -> TablePath:
        """The path in `[s3://]bucket/prefix/schema/table[/]`; at least schema and table must stand behind the bucket."""
        bare = re.sub(r"^s3[an]?://", "", text.strip()).strip("/")
        parts = bare.split("/")
        if len(parts) < 3 or not all(parts) or not _BUCKET.fullmatch(parts[0]) or not _is_plain(bare):
            raise UsageError(f"not a table path: {text!r}", "bad-path", "write it as bucket/prefix/schema/table, or schema.table")
        return cls(parts[0], "/".join(parts[1:-1]) + "/", parts[-1] + "/")

    def __str__(self) -> str:
        return f"{self.bucket}/{self.prefix}{self.folder}"

    @property
    def in_shell(self) -> str:
        """The path as it stands in a command that a person pastes: names may hold spaces, quotes and backticks."""
        return shlex.quote(str(self))

    @property
    def raw(self) -> S3Uri:
        return S3Uri(self.bucket, self.prefix + self.folder)

    @property
    def schema(self) -> str:
        return self.prefix.rstrip("/").rsplit("/", 1)[-1]

    @property
    def table(self) -> str:
        return self.folder.rstrip("/")

    @property
    def name(self) -> str:
        """`schema.table`, for people."""
        return f"{self.schema}.{self.table}"


def _is_plain(key: str) -> bool:
    """Whether no part of the key means another folder to some programs, and none can forge a line."""
    return not _CONTROL.search(key) and not {".", ".."} & set(key.split("/"))


def is_name(text: str) -> bool:
    """Whether `text` may be a schema's or table's folder name (control tables aside)."""
    return bool(text) and not _UNSAFE_NAME.search(text) and len(text.encode()) <= MAX_NAME_BYTES


def has_catalog_name(path: TablePath) -> bool:
    """Whether Glue would take the name that the table has in the catalog."""
    return len(catalog_name(path)) <= MAX_CATALOG_NAME


def data_key(lake: S3Uri, path: str) -> str:
    """The key of a data file at `path` below the table's folder; raises TableBlocked where S3 would refuse it."""
    key = lake.key + path
    if len(key.encode()) > MAX_KEY_BYTES:
        raise blocked(
            "key-too-long",
            "the name of a partition folder makes a data file's key too long for S3",
            where=str(lake),
            expected=f"at most {MAX_KEY_BYTES} bytes from the bucket on, escapes included",
            found=f"{len(key.encode())} bytes: {path[:200]}…",
            todo="take another column in PartitionKey, or shorten the value at the source",
        )
    return key


def lake_folder(lake: str, path: TablePath) -> S3Uri:
    """The folder of the lake table of `path` below the setting `--lake`."""
    return S3Uri.folder(lake).join(path.schema, "/", path.table, "/")


RECORDS = "_changes"


def changes_folder(out_path: S3Uri) -> S3Uri:
    """The folder of the change records of the lake table at `out_path` (`…/schema/table/`).

    It stands beside the schema folders, so that crawlers and Spark, which skip `_`, never read it.
    """
    parts = out_path.key.rstrip("/").split("/")
    if len(parts) < 2:
        raise UsageError(
            f"out_path {out_path} has no schema and table folder",
            "bad-out-path",
            "write it as s3://bucket/prefix/schema/table/",
        )
    head = "/".join(parts[:-2])
    return S3Uri(out_path.bucket, (head + "/" if head else "") + f"{RECORDS}/{parts[-2]}/{parts[-1]}/")


def is_beside_records(key: str) -> bool:
    """Whether an object lies in some table's folder of change records."""
    return f"/{RECORDS}/" in f"/{key}"


def catalog_name(path: TablePath) -> str:
    """The Glue table's name: lower case, every other character an underscore."""
    return re.sub(r"[^a-z0-9_]", "_", f"{path.schema}_{path.table}".lower())


def catalog_collision(path: TablePath, others: Iterable[TablePath]) -> TablePath | None:
    """Another table that would have the same catalog name, if there is one."""
    name = catalog_name(path)
    return next((other for other in others if other != path and catalog_name(other) == name), None)


def by_path(items: Iterable[Mapping[str, Any]]) -> dict[TablePath, Mapping[str, Any]]:
    """The items of tables by their paths. One whose key is no path, or another spelling of one, is passed over: no run would find a table
    by it, and what is wrong with it is said where the tables are listed."""
    out = {}
    for item in items:
        key = str(item.get("path", ""))
        try:
            path = TablePath.parse(key)
        except UsageError:
            continue
        if str(path) == key:
            out[path] = item
    return out


def find_path(text: str, known: Iterable[TablePath]) -> TablePath:
    """The table that a person means by `text`: a full path, or `schema.table` where that is unique among `known`."""
    if "/" in text:
        return TablePath.parse(text)
    candidates: tuple[TablePath, ...] = tuple(path for path in known if text in (path.name, path.table))
    exact = tuple(path for path in candidates if path.name == text)
    chosen = exact or candidates
    if len(chosen) == 1:
        return chosen[0]
    if not chosen:
        raise UsageError(f"no table {text!r} is known", "unknown-table", "`dmslake tables` lists them")
    raise UsageError(
        f"{text!r} is the name of {len(chosen)} tables: {', '.join(map(str, chosen))}",
        "ambiguous-table",
        "give the whole path",
    )
