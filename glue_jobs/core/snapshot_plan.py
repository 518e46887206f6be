"""Which raw files a snapshot is made of, whether the version before can be gone on from, and the manifest that says what a run wrote."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import date, datetime, timezone
from typing import Any

from glue_jobs.core.csv_form import NULL
from glue_jobs.core.dms_columns import BEFORE_IMAGES
from glue_jobs.core.errors import TableBlocked, blocked
from glue_jobs.core.paths import S3Uri
from glue_jobs.core.raw_names import RawFile, RawListing, cdc_name, is_csv
from glue_jobs.core.record import Counts, DataFile, Input
from glue_jobs.core.schema import Column, Schema
from glue_jobs.core.snapshot_inputs import (
    Counted,
    are_rewritten,
    check_has_load,
    check_load_is_over,
    check_none_gone,
    count_files,
    gone_inputs,
)
from glue_jobs.core.snapshot_sources import SnapshotWish, Source

FORMAT = 1
RUNS = "_runs/"
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
    csv_null: how CSV files among them are read; no columns in what older versions wrote. before_images: patterns of their names.
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
    before_images: tuple[str, ...] = BEFORE_IMAGES

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
        said["before_images"] = tuple(said.get("before_images", BEFORE_IMAGES))
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


def plan_snapshot(
    wish: SnapshotWish, listing: RawListing, current: Manifest | None, missing: Sequence[str] = (), *, quiet_since: datetime
) -> SnapshotPlan:
    """The plan of a run. current: of the version that the catalog points to; missing: those of its data files that are not there;
    quiet_since: a load file that was written since may not be its load's last one."""
    counted = count_files(wish, listing)
    before = current.inputs if current is not None and current.path == str(wish.source.path) else ()
    if before:
        check_load_is_over(wish, counted, listing, before, quiet_since)
    gone = gone_inputs(wish, listing, before)
    reason = "asked for (full)" if wish.full else why_full(wish, counted, current, missing, gone)
    if current is None or reason:
        if not wish.full:
            check_none_gone(wish, counted, gone, before, reason)
        check_has_load(wish, counted, listing)
        return SnapshotPlan(wish, counted, counted.files, None, reason, current)
    known = {item.key for item in current.inputs}
    return SnapshotPlan(wish, counted, tuple(file for file in counted.files if file.key not in known), current, "", current)


def why_full(
    wish: SnapshotWish, counted: Counted, current: Manifest | None, missing: Sequence[str] = (), gone: Sequence[Input] = ()
) -> str:
    """Why the version before can't be gone on from; '' if it can. gone: of its inputs, whose rows it has."""
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
        "before_image_prefix": (current.before_images, source.before_images),
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
    return _why_inputs(counted, current, gone)


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


def _why_inputs(counted: Counted, current: Manifest, gone: Sequence[Input]) -> str:
    """Why the raw files are not those of the version before and later CDC files; '' if they are, or some have only gone."""
    now = {file.key: file.etag for file in counted.files}
    away = {item.key for item in gone}
    for item in current.inputs:
        if item.key not in now and item.key not in away:
            return f"an input of the version before does not count any more: {item.key}"
        if item.key in now and now[item.key] != item.etag:
            return f"an input of the version before has changed: {item.key}"
    if gone and are_rewritten(counted.loads, current.inputs):
        return "the load files were written again"
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


def removable(listed: Iterable[tuple[str, datetime]], keep: int) -> tuple[list[str], list[str]]:
    """(the names of the newest `keep` versions, those of the others, oldest first). listed: name, and when its manifest was written."""
    newest = [name for name, _ in sorted(listed, key=lambda each: (each[1], each[0]), reverse=True)]
    return newest[: max(1, keep)], newest[max(1, keep) :][::-1]


def as_made(wish: SnapshotWish, manifest: Manifest) -> SnapshotWish:
    """The wish with the names that the version's files have, where another run asks for others."""
    source = replace(wish.source, primary_keys=manifest.primary_keys, last_change_column=manifest.last_change_column)
    return replace(wish, source=replace(source, partition_date=manifest.partition_date))


def folders_of(manifest: Manifest) -> set[str]:
    """The names of the versions in whose folders its data files are: dated by a column, those of versions before, too."""
    return {file.path.split("/", 1)[0].partition("=")[2] for file in manifest.files}


def with_inputs(plan: SnapshotPlan, read: Sequence[Input]) -> tuple[Input, ...]:
    """All inputs of the new version: those of the version before, and those that were read."""
    return (*(plan.base.inputs if plan.base else ()), *read)


def below(prefix: str, files: Iterable[DataFile]) -> tuple[DataFile, ...]:
    """Files with paths below the snapshot's folder instead of below the version's prefix."""
    return tuple(replace(file, path=prefix + file.path) for file in files)
