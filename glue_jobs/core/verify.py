"""What a check of a lake table finds: findings as values, and the comparisons of folder and catalog with a snapshot. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from glue_jobs.core.errors import UsageError
from glue_jobs.core.ids import ChangeId
from glue_jobs.core.partitioning import Partitioning, PartitionValues, folder_of
from glue_jobs.core.paths import S3Uri
from glue_jobs.core.raw_names import RawFile
from glue_jobs.core.record import DataFile
from glue_jobs.core.schema import Schema
from glue_jobs.core.snapshot import Snapshot

DIFFERENCE = "difference"
NOTE = "note"
REPAIR = "`dmslake verify PATH --repair`"
_ID_LENGTH = len(str(ChangeId(0, 0, "00000000")))
NAMED = 5  # of many alike, those that a finding names


@dataclass(frozen=True)
class Finding:
    """One thing that is not as expected. severity: a difference is wrong for readers or for the next run; a note is only said.

    where: the address in S3, the name in the catalog, or the item's path.
    """

    code: str
    severity: str
    where: str
    expected: str = ""
    found: str = ""
    todo: str = ""

    @property
    def is_difference(self) -> bool:
        return self.severity == DIFFERENCE


@dataclass(frozen=True)
class FileReport:
    """What reading the data files gave. bytes_read: of the files' footers and key columns, as far as they were fetched.

    living, key_sum: rows that the table has, and a checksum of their keys; of a history table those that its open versions say.
    """

    findings: tuple[Finding, ...] = ()
    files: int = 0
    rows: int = 0
    bytes_read: int = 0
    living: int = 0
    key_sum: int = 0


@dataclass(frozen=True)
class Verified:
    """A table that was looked at. change: its head; files, rows, bytes: of the head's snapshot.

    checked: replay (rows made anew), full (data files read) or quick. is_busy: runs kept working on it, so that nothing can be said.
    bytes_read: see FileReport.
    """

    path: str
    change: str = ""
    checked: str = "quick"
    findings: tuple[Finding, ...] = ()
    files: int = 0
    rows: int = 0
    size_bytes: int = 0
    bytes_read: int = 0
    seconds: float = 0.0
    is_busy: bool = False

    @property
    def differences(self) -> tuple[Finding, ...]:
        return tuple(finding for finding in self.findings if finding.is_difference)


@dataclass(frozen=True)
class Folder:
    """A table's folder compared with a snapshot. missing: not visible; overwritten: visible with another size or ETag, beside what
    is there; unknown: visible and in no snapshot; right: path → what is there as the snapshot says.
    """

    missing: tuple[DataFile, ...] = ()
    overwritten: tuple[tuple[DataFile, RawFile], ...] = ()
    unknown: Mapping[str, RawFile] = field(default_factory=dict)
    right: Mapping[str, RawFile] = field(default_factory=dict)


def compare_folder(snapshot: Snapshot, visible: Mapping[str, RawFile]) -> Folder:
    """The visible objects (path below the table's folder → object) beside the snapshot's files."""
    missing, overwritten, right = [], [], {}
    for path, file in sorted(snapshot.files.items()):
        there = visible.get(path)
        if there is None:
            missing.append(file)
        elif there.size != file.size_bytes or (file.etag and there.etag != file.etag):
            overwritten.append((file, there))
        else:
            right[path] = there
    unknown = {path: there for path, there in visible.items() if path not in snapshot.files}
    return Folder(tuple(missing), tuple(overwritten), unknown, right)


def change_in_name(path: str) -> str:
    """The change id that a data file's name begins with, '' if it begins with none."""
    text = path.rsplit("/", 1)[-1][:_ID_LENGTH]
    try:
        return str(ChangeId.parse(text))
    except UsageError:
        return ""


def is_skipped_by_readers(path: str, size: int) -> bool:
    """Whether readers pass over the object: it has no bytes, or a part of its path begins with . or _ (partition folders excepted)."""
    hidden = any(part.startswith(".") or (part.startswith("_") and "=" not in part) for part in path.split("/"))
    return hidden or size == 0


def foreign(where: str, path: str, size: int) -> Finding:
    """An object that is not ours."""
    if is_skipped_by_readers(path, size):
        return Finding("foreign-file", NOTE, where, "only our data files", f"{size} bytes that readers pass over", "delete it, if you like")
    what = "rows that readers see beside the table's" if path.endswith(".parquet") else "an object that readers by path take for Parquet"
    todo = "find out who writes there and remove it: dmslake never touches what is not its own"
    return Finding("foreign-file", DIFFERENCE, where, "only our data files", f"{size} bytes: {what}", todo)


def overwritten(lake: S3Uri, file: DataFile, there: RawFile) -> Finding:
    """A data file whose key somebody else wrote to."""
    expected = f"{file.size_bytes} bytes, ETag {file.etag or 'any'}"
    return Finding("wrong-file", DIFFERENCE, str(lake.join(file.path)), expected, f"{there.size} bytes, ETag {there.etag}", REPAIR)


# --- the catalog


@dataclass(frozen=True)
class CatalogPartition:
    """A partition as Glue has it, null as None; columns: (name, type)."""

    values: PartitionValues
    location: str
    columns: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class CatalogTable:
    """A Glue table. owner: the path that it says to be of, '' if it says nothing; columns, partition_columns: (name, type)."""

    location: str
    owner: str
    columns: tuple[tuple[str, str], ...]
    partition_columns: tuple[tuple[str, str], ...]
    partitions: tuple[CatalogPartition, ...] = ()


@dataclass(frozen=True)
class CatalogWanted:
    """What the catalog should say. partitions: those that hold a file."""

    name: str  # database.table
    path: str
    lake: S3Uri
    columns: Schema
    partition_columns: Sequence[tuple[str, str]]
    partitioning: Partitioning
    partitions: frozenset[PartitionValues]


def compare_catalog(wanted: CatalogWanted, found: CatalogTable | None) -> list[Finding]:
    """What the catalog says otherwise."""
    location = str(wanted.lake)
    if found is None:
        return [Finding("catalog-missing", DIFFERENCE, wanted.name, f"a table at {location}", "no such table", REPAIR)]
    if found.owner not in ("", wanted.path) or (not found.owner and not _same_place(found.location, location)):
        todo = "set the attribute CatalogTable of the table's item to another name, or drop that Glue table; then " + REPAIR
        taken = f"a table of {found.owner or 'another program'} at {found.location or 'no location'}"
        return [Finding("catalog-name-taken", DIFFERENCE, wanted.name, f"a table of {wanted.path}", taken, todo)]
    findings = []
    if not _same_place(found.location, location):
        findings.append(Finding("catalog-location", DIFFERENCE, wanted.name, location, found.location or "no location", REPAIR))
    columns = tuple((column.name.lower(), column.type) for column in wanted.columns)
    if found.columns != columns:
        findings.append(_columns_differ("catalog-columns", wanted.name, columns, found.columns))
    layout = tuple((name.lower(), kind) for name, kind in wanted.partition_columns)
    if found.partition_columns != layout:
        return [*findings, _columns_differ("catalog-partition-columns", wanted.name, layout, found.partition_columns)]
    return [*findings, *(_compare_partitions(wanted, columns, found.partitions) if layout else ())]


def _compare_partitions(
    wanted: CatalogWanted, columns: tuple[tuple[str, str], ...], found: Sequence[CatalogPartition]
) -> Iterator[Finding]:
    """One finding for all partitions that differ in the same way."""

    def place(values: PartitionValues) -> str:
        return str(wanted.lake.join(folder_of(wanted.partitioning, values)))

    def named(code: str, severity: str, which: Iterable[PartitionValues], what: str, todo: str) -> Iterator[Finding]:
        folders = sorted(folder_of(wanted.partitioning, values).rstrip("/") for values in which)
        if folders:
            more = f" and {len(folders) - NAMED} more" if len(folders) > NAMED else ""
            yield Finding(code, severity, wanted.name, what, f"{len(folders)} not so: {', '.join(folders[:NAMED])}{more}", todo)

    known = {partition.values for partition in found}
    ours = [partition for partition in found if partition.values in wanted.partitions]
    elsewhere = [partition.values for partition in ours if not _same_place(partition.location, place(partition.values))]
    drop = "drop these partitions in Glue, then " + REPAIR
    everything = "every partition that holds a file"
    yield from named("catalog-missing-partition", DIFFERENCE, wanted.partitions - known, everything, REPAIR)
    yield from named("catalog-partition-location", DIFFERENCE, elsewhere, f"the partition's folder below {wanted.lake}", drop)
    others = [partition.values for partition in found if partition.columns != columns]
    yield from named("catalog-partition-types", DIFFERENCE, others, "the table's columns and types", REPAIR)
    empty = known - wanted.partitions
    yield from named("catalog-empty-partition", NOTE, empty, "partitions that hold a file", "nothing: they show no rows")


def _same_place(one: str, other: str) -> bool:
    return one.rstrip("/") == other.rstrip("/")


def _columns_differ(code: str, name: str, wanted: Sequence[tuple[str, str]], found: Sequence[tuple[str, str]]) -> Finding:
    """Names the columns that differ; the whole lists where only their order does."""
    expected = [column for column in wanted if column not in found] or list(wanted)
    there = [column for column in found if column not in wanted] or (list(found) if not set(wanted) - set(found) else [])
    return Finding(code, DIFFERENCE, name, _columns_text(expected), _columns_text(there) or "not there", REPAIR)


def _columns_text(columns: Sequence[tuple[str, Any]]) -> str:
    return ", ".join(f"{name} {kind}" for name, kind in columns[:20]) + (", …" if len(columns) > 20 else "")


# --- the history table


def of_living(where: str, snapshot: Snapshot, history: Snapshot, rows: FileReport, versions: FileReport) -> Iterator[Finding]:
    """Whether the open versions that are no deletes have the keys of the table's rows. Both were read whole."""
    types = [[column.type for name in each.primary_key for column in each.schema if column.name == name] for each in (snapshot, history)]
    differs = rows.living != versions.living or (types[0] == types[1] and rows.key_sum != versions.key_sum)
    if differs:
        same = " of other keys" if rows.living == versions.living else ""
        yield Finding(
            "history-differs",
            DIFFERENCE,
            where,
            f"an open version for each of the {rows.living} rows",
            f"{versions.living} open versions that are no deletes{same}",
            "`dmslake backfill-history PATH` builds it anew; report how it came to this",
        )
