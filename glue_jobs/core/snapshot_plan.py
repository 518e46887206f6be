"""Which raw files a snapshot is made of, whether the version before can be gone on from, and the manifest that says what a run wrote."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import date, datetime, timedelta, timezone
from typing import Any

from glue_jobs.core.csv_form import NULL
from glue_jobs.core.errors import TableBlocked, blocked
from glue_jobs.core.paths import S3Uri
from glue_jobs.core.raw_names import RawFile, RawListing, cdc_name, is_csv
from glue_jobs.core.record import Counts, DataFile, Input
from glue_jobs.core.schema import Column, Schema
from glue_jobs.core.snapshot_sources import SnapshotWish, Source

FORMAT = 1
RUNS = "_runs/"
LOAD_GAP = timedelta(hours=1)  # load files that come within it of one another are of one load
FLAT, BY_COLUMN, BY_RUN_DATE = "flat", "dated by column", "dated by run date"


@dataclass(frozen=True)
class Version:
    """One run's output: its prefix below the snapshot's folder is `version=<name>/`. fence: grows with the runs' beginnings."""

    name: str
    fence: int

    @classmethod
    def of(cls, run_date: date, now: datetime, run_id: str) -> Version:
        return cls(f"{run_date.isoformat()}T{now.strftime('%H%M%S%f')}-{run_id}", int(now.timestamp() * 1_000_000))

    @property
    def prefix(self) -> str:
        return f"version={self.name}/"

    @property
    def time(self) -> str:
        """When the run began, UTC."""
        return datetime.fromtimestamp(self.fence / 1_000_000, timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.%fZ")

    @property
    def manifest(self) -> str:
        """The manifest's key below the snapshot's folder."""
        return f"{RUNS}{self.name}.json"


def version_of(location: str, folder: S3Uri) -> str:
    """The name of the version that a location in the catalog lies in, '' if it lies elsewhere."""
    start = f"{folder}version="
    return location[len(start) :].split("/", 1)[0] if location.startswith(start) else ""


@dataclass(frozen=True)
class Manifest:
    """What a run read and wrote. Written once, before the catalog is moved.

    files: all data files that the version is made of, paths below the snapshot's folder; those that begin with the version's own prefix
    were written by this run. partitions: (folder value, location) that the catalog has for this version. schema: of the raw files;
    inputs: every raw file that counts, those of the versions before included. csv_columns (their order), csv_delimiter,
    csv_null: how CSV files among them are read; no columns in what older versions wrote.
    """

    version: Version
    table: str
    database: str
    run_id: str
    run_date: str
    time: str
    layout: str
    path: str
    primary_keys: tuple[str, ...]
    schema: Schema
    last_change_column: str
    timestamp_column: str = ""
    cdc_start_date: str = ""
    partition_date: str = ""
    mode: str = "full"
    reason: str = ""
    base: str = ""
    inputs: tuple[Input, ...] = ()
    files: tuple[DataFile, ...] = ()
    partitions: tuple[tuple[str | None, str], ...] = ()
    rows: int = 0
    counts: Counts = Counts()
    csv_columns: tuple[str, ...] = ()
    csv_delimiter: str = ","
    csv_null: str = NULL

    @property
    def written(self) -> tuple[DataFile, ...]:
        """The files that this run wrote itself."""
        return tuple(file for file in self.files if file.path.startswith(self.version.prefix))


def manifest_json(manifest: Manifest) -> str:
    said = {"format": FORMAT, **asdict(manifest)}
    said["schema"] = [{name: value for name, value in column.items() if name != "older"} for column in said["schema"]]
    said["files"] = [{name: value for name, value in file.items() if name not in ("upload", "origin")} for file in said["files"]]
    return json.dumps(said, indent=1, ensure_ascii=False)


def read_manifest(text: str, where: str) -> Manifest:
    """The manifest in `text`; TableBlocked if it is damaged, or of a newer dmslake."""
    try:
        said: dict[str, Any] = json.loads(text)
        if said.pop("format") != FORMAT:
            raise ValueError("another format")
        said["version"] = Version(**said["version"])
        said["schema"] = tuple(Column(**item) for item in said["schema"])
        said["inputs"] = tuple(Input(**item) for item in said["inputs"])
        said["files"] = tuple(_file(item) for item in said["files"])
        said["partitions"] = tuple((value, location) for value, location in said["partitions"])
        said["counts"] = Counts(**said["counts"])
        said["primary_keys"] = tuple(said["primary_keys"])
        said["csv_columns"] = tuple(said.get("csv_columns", ()))
        return Manifest(**said)
    except (ValueError, KeyError, TypeError) as error:
        raise bad_manifest(where, str(error)) from error


def _file(item: dict[str, Any]) -> DataFile:
    listed = {name: None if item.get(name) is None else tuple(item[name]) for name in ("low", "high")}
    return DataFile(**{**item, "partition": tuple(item.get("partition", ())), **listed})


def bad_manifest(where: str, found: str) -> TableBlocked:
    return blocked(
        "snapshot-manifest",
        "the manifest of a snapshot can't be read",
        where=where,
        expected="the manifest of the version that the Glue table points to",
        found=found[:200],
        todo="restore the object; or drop the Glue table of the snapshot, and the next run makes it anew",
    )


@dataclass(frozen=True)
class Counted:
    """The raw files that count, in DMS's order. later: files that do not, because they are of other days."""

    loads: tuple[RawFile, ...]
    cdc: tuple[RawFile, ...]
    later: int = 0

    @property
    def files(self) -> tuple[RawFile, ...]:
        return (*self.loads, *self.cdc)


def count_files(wish: SnapshotWish, listing: RawListing) -> Counted:
    """The load files last modified up to the run date, and the CDC files of the days from the CDC start date to it, in UTC."""
    where = str(wish.source.path)
    if listing.foreign:
        raise blocked(
            "foreign-raw-file",
            f"{len(listing.foreign)} file(s) in the raw folder have names that DMS does not give",
            where=f"s3://{wish.source.path.bucket}/{listing.foreign[0].key}",
            expected="LOAD00000001.parquet, 20240501-120000000.parquet",
            found=listing.foreign[0].base,
            todo="move them away; of a transaction-ordered target set no CdcPath in DMS",
        )
    if not listing.loads and not listing.cdc:
        raise blocked(
            "no-raw-files", "there is no file of DMS", where=where, expected="load and CDC files", found="nothing",
            todo="correct the source's path: the folder of one table, bucket/prefix/schema/table",
        )  # fmt: skip
    loads = tuple(file for file in listing.loads if file.modified.date() <= wish.run_date)
    cdc = tuple(file for file in listing.cdc if _counts(wish, file))
    if not loads:
        raise blocked(
            "no-load-files",
            "no load file counts: the rows that changed since could not be told from those that did not",
            where=where,
            expected=f"a load file last modified up to {wish.run_date} (UTC)",
            found=f"{len(listing.loads)} younger one(s)" if listing.loads else "none",
            todo="take a later run date, or reload the table in DMS",
        )
    _check_ended(wish, loads, [file for file in listing.loads if file not in loads])
    return Counted(loads, cdc, len(listing.loads) + len(listing.cdc) - len(loads) - len(cdc))


def _check_ended(wish: SnapshotWish, loads: Sequence[RawFile], later: Sequence[RawFile]) -> None:
    """Refuse the half of a load that goes on after the run date's midnight: it would be the day's state for good."""
    last = max(file.modified for file in loads)
    first = min((file.modified for file in later), default=None)
    if first is not None and first - last < LOAD_GAP:
        raise blocked(
            "load-not-ended",
            f"a load goes on after the run date: {len(loads)} of its files count, {len(later)} do not",
            where=str(wish.source.path),
            expected=f"the whole load up to {wish.run_date} (UTC)",
            found=f"files of {last:%Y-%m-%d %H:%M:%S} and of {first:%Y-%m-%d %H:%M:%S}",
            todo="take a later run date",
        )


def _counts(wish: SnapshotWish, file: RawFile) -> bool:
    name, start = cdc_name(file.key), wish.source.cdc_start_date
    return name is not None and (start is None or start <= name.time.date()) and name.time.date() <= wish.run_date


@dataclass(frozen=True)
class SnapshotPlan:
    """What a run reads. base: the version to go on from, None for all from the raw files, with the reason. fresh: what is read of raw.

    current: the version that the catalog points to.
    """

    wish: SnapshotWish
    counted: Counted
    fresh: tuple[RawFile, ...]
    base: Manifest | None = None
    reason: str = ""
    current: Manifest | None = None

    def after(self, version: Version) -> Version:
        """The version with a fence above the current one's: a clock may have gone back since."""
        return replace(version, fence=max(version.fence, self.current.version.fence + 1)) if self.current else version

    @property
    def mode(self) -> str:
        return "incremental" if self.base else "full"


def plan_snapshot(wish: SnapshotWish, listing: RawListing, current: Manifest | None, missing: Sequence[str] = ()) -> SnapshotPlan:
    """The plan of a run. current: of the version that the catalog points to; missing: those of its data files that are not there."""
    counted = count_files(wish, listing)
    reason = "asked for (full)" if wish.full else why_full(wish, counted, current, missing)
    if current is None or reason:
        return SnapshotPlan(wish, counted, counted.files, None, reason, current)
    known = {item.key for item in current.inputs}
    return SnapshotPlan(wish, counted, tuple(file for file in counted.files if file.key not in known), current, "", current)


def why_full(wish: SnapshotWish, counted: Counted, current: Manifest | None, missing: Sequence[str] = ()) -> str:
    """Why the version before can't be gone on from; '' if it can."""
    if current is None:
        return "there is no version before"
    source = wish.source
    start = source.cdc_start_date.isoformat() if source.cdc_start_date else ""
    same = {
        "path": (current.path, str(source.path)),
        "primary_keys": (current.primary_keys, source.primary_keys),
        "cdc_start_date": (current.cdc_start_date, start),
        "timestamp_column": (current.timestamp_column, source.timestamp_column),
        "last_change_column": (current.last_change_column, source.last_change_column),
        "layout": (current.layout, layout_of(wish)),
        "partition_date": (current.partition_date, source.partition_date if wish.by_column else ""),
    }
    for name, (before, now) in same.items():
        if before != now:
            return f"{name} was {before!r} in the version before, and is {now!r} now"
    if source.schema and set(source.expected) != set(current.schema):
        return "the schema is another one than in the version before"
    form = _why_form(source, current) if any(is_csv(item.key) for item in current.inputs) else ""
    if form:
        return form
    if missing:
        return f"{len(missing)} data file(s) of the version before are not there any more: {missing[0]}"
    return _why_inputs(counted, current)


def _why_form(source: Source, current: Manifest) -> str:
    """Why rows of CSV files would be others today; '' if they would not."""
    columns = csv_columns(source)
    if current.csv_columns and current.csv_columns != columns:
        return f"the fields of CSV files were {', '.join(current.csv_columns)} in the version before, and are {', '.join(columns)} now"
    form = {"csv_delimiter": (current.csv_delimiter, source.csv_delimiter), "csv_null": (current.csv_null, source.csv_null)}
    for name, (before, now) in form.items():
        if before != now:
            return f"{name} was {before!r} in the version before, and is {now!r} now"
    return ""


def csv_columns(source: Source) -> tuple[str, ...]:
    """The order of the fields of CSV files, as the source has it; () where it declares none."""
    return tuple(column.name for column in source.schema)


def _why_inputs(counted: Counted, current: Manifest) -> str:
    """Why the raw files are not those of the version before and later CDC files; '' if they are."""
    now = {file.key: file.etag for file in counted.files}
    for item in current.inputs:
        if item.key not in now:
            return f"an input of the version before does not count or is not there any more: {item.key}"
        if now[item.key] != item.etag:
            return f"an input of the version before has changed: {item.key}"
    known = {item.key for item in current.inputs}
    new_load = next((file.key for file in counted.loads if file.key not in known), None)
    if new_load:
        return f"there is a new load file: {new_load}"
    last = max((name for name in (cdc_name(item.key) for item in current.inputs) if name), default=None)
    for file in counted.cdc:
        name = cdc_name(file.key)
        if file.key not in known and last is not None and name is not None and name <= last:
            return f"a CDC file came late: {file.key}"
    return ""


def layout_of(wish: SnapshotWish) -> str:
    return BY_COLUMN if wish.by_column else BY_RUN_DATE if wish.by_run_date else FLAT


def unreferenced(manifests: Iterable[Manifest], used: set[str], keep: int, mine: Version) -> list[Manifest]:
    """The versions that go: older than the newest `keep`, older than this run's, and not among the `used` ones. Oldest first."""
    newest = sorted(manifests, key=lambda manifest: (manifest.version.fence, manifest.version.name), reverse=True)
    old = [each for each in newest[max(1, keep) :] if each.version.name not in used and each.version.fence < mine.fence]
    return old[::-1]


def with_inputs(plan: SnapshotPlan, read: Sequence[Input]) -> tuple[Input, ...]:
    """All inputs of the new version: those of the version before, and those that were read."""
    return (*(plan.base.inputs if plan.base else ()), *read)


def below(prefix: str, files: Iterable[DataFile]) -> tuple[DataFile, ...]:
    """Files with paths below the snapshot's folder instead of below the version's prefix."""
    return tuple(replace(file, path=prefix + file.path) for file in files)
