"""One run of the Snapshot job: from a table's DMS files to a version of its snapshot, and the catalog that readers follow to it.

The state of a snapshot is what the Glue table says: its location is the prefix of the current version, whose manifest says
everything else. There is no lake table, no state item and no lease.

| step | what | if we die after it |
| --- | --- | --- |
| 1 look | the source, the raw listing, the Glue table, the current version's manifest; its partitions are put right | nothing was written |
| 2 rows | ranked, as uploads below a version prefix of this run's own | open uploads: nobody sees them, a lifecycle rule aborts them |
| 3 complete | the uploads become objects | objects that nothing points to and no manifest names |
| 4 manifest | inputs, counts, schema, data files, partitions | a version that nobody reads: a later `--keep` removes it |
| 5 **commit** | one UpdateTable with the VersionId read before: the new location | flat: done. Dated: the next run does step 6 |
| 6 partitions | dated only: each partition's location, as the manifest says | redone by the next run |
| 7 keep | old versions' data files by the exact keys of their manifests, then the manifest | the next `--keep` goes on |

Two runs at once: each has a prefix of its own, and the later one's beginning (its fence, in the table's parameters) decides. A run that
finds a later fence in the table leaves it alone and says so; one that is passed after its commit has committed. After its partitions a run
looks again, and puts right those of whoever is current then, so that the last one to look leaves the partitions of one version. A version
that goes on with data files of the one before (dated by a column) is committed only in place of that very one: else `--keep` of a run
in between may have removed them.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, Protocol

from botocore.exceptions import ClientError

from glue_jobs.aws.catalog_partitions import place_partitions
from glue_jobs.aws.catalog_table import read_table, sync_table
from glue_jobs.aws.clients import Clients
from glue_jobs.aws.objects import hide, list_files, read_bytes, write_bytes
from glue_jobs.aws.translate import error_code
from glue_jobs.aws.uploads import abort_upload, complete_upload
from glue_jobs.core.errors import RetryLater, TableBlocked, UsageError, blocked
from glue_jobs.core.paths import S3Uri
from glue_jobs.core.raw_names import RawListing, classify
from glue_jobs.core.record import DataFile
from glue_jobs.core.schema import Schema, widened
from glue_jobs.core.snapshot_plan import (
    BY_COLUMN,
    BY_RUN_DATE,
    FLAT,
    RUNS,
    Manifest,
    SnapshotPlan,
    Version,
    as_made,
    bad_manifest,
    folders_of,
    layout_of,
    manifest_json,
    plan_snapshot,
    read_manifest,
    removable,
    version_of,
)
from glue_jobs.core.snapshot_sources import RUN_DATE_COLUMN, SnapshotWish, date_folder, output_schema
from glue_jobs.core.verify import CatalogTable

THREADS = 16
TURNS = 5  # looks at who is current, after the partitions
PLACING = timedelta(hours=1)  # a run takes at most from its manifest to its partition: seconds, but for a catalog that is busy


class SnapshotWorker(Protocol):
    """Writes a version's data files: uploads that are not completed. The manifest says what was read and written."""

    def __call__(self, plan: SnapshotPlan, version: Version) -> Manifest: ...


@dataclass(frozen=True)
class Made:
    """What a run did. removed: the versions that `--keep` removed; partitions: those that were moved."""

    manifest: Manifest
    removed: tuple[str, ...] = ()
    partitions: int = 0


def look(clients: Clients, wish: SnapshotWish, *, quiet_since: datetime, mend: bool = False) -> SnapshotPlan:
    """What a run would read. quiet_since: as of plan_snapshot. mend: finish the partitions of the current version, if its run broke off;
    else nothing is written."""
    raw = wish.source.path
    listing = _listing(clients.s3, raw)
    current, table = _current(clients, wish)
    if current is not None and table is not None and mend:
        _place(clients, wish, current)
    missing = _missing(clients.s3, wish.folder, current) if current is not None else ()
    return plan_snapshot(wish, listing, current, missing, quiet_since=quiet_since)


def make_snapshot(clients: Clients, wish: SnapshotWish, version: Version, work: SnapshotWorker, *, quiet_since: datetime) -> Made:
    """Make the version and move the catalog to it. RetryLater, code snapshot-overtaken, if another run was quicker."""
    plan = look(clients, wish, quiet_since=quiet_since, mend=True)
    version = plan.after(version)
    uploads = work(plan, version)
    _check_types(clients, wish, uploads)
    manifest = _complete(clients.s3, wish.folder, uploads)
    write_bytes(clients.s3, wish.folder.bucket, wish.folder.key + version.manifest, manifest_json(manifest).encode(), "application/json")
    _commit(clients, wish, manifest)
    moved = _place_current(clients, wish, manifest)
    return Made(manifest, _prune(clients, wish, version) if wish.keep else (), moved)


def find_manifest(s3: Any, folder: S3Uri, run_date: str, run_id: str) -> Manifest | None:
    """The manifest that a run has written, None if it has not."""
    start = f"{folder.key}{RUNS}{run_date}T"
    keys = [file.key for file in list_files(s3, folder.bucket, start) if file.key.endswith(f"-{run_id}.json")]
    return _read(s3, S3Uri(folder.bucket, keys[-1])) if keys else None


def _listing(s3: Any, raw: S3Uri) -> RawListing:
    return classify(list_files(s3, raw.bucket, raw.key), raw.key)


# --- the catalog


def _current(clients: Clients, wish: SnapshotWish) -> tuple[Manifest | None, CatalogTable | None]:
    """The manifest of the version that the Glue table points to, and that table; None where there is none."""
    table = read_table(clients.glue, wish.database, wish.name)
    if table is None:
        return None, None
    _check_table(wish, table)
    name = version_of(table.location, wish.folder)
    if not name:
        return None, table
    at = wish.folder.join(f"{RUNS}{name}.json")
    manifest = _read(clients.s3, at)
    if manifest is None:
        raise bad_manifest(str(at), "no such object")
    if manifest.table != wish.source.table:
        raise blocked(
            "catalog-name-taken",
            f"the Glue table {wish.database}.{wish.name} is the snapshot of another table",
            where=str(wish.folder),
            expected=f"no table, or the snapshot of {wish.source.table!r}",
            found=f"the snapshot of {manifest.table!r}: names are in lower case there, with `_` for what is no letter or digit",
            todo="take another --database or --to for one of them",
        )
    return manifest, table


def _check_table(wish: SnapshotWish, table: CatalogTable) -> None:
    """Refuse a Glue table of something else, before anything is read or written."""
    if table.owner != str(wish.folder):
        raise blocked(
            "catalog-name-taken",
            f"the Glue table {wish.database}.{wish.name} is of something else",
            where=table.location or "a table without location",
            expected=f"no table, or the snapshot at {wish.folder}",
            found=f"a table of {table.owner or 'another program'}",
            todo="take another --database or --to, or drop that Glue table",
        )
    columns, chosen = [name for name, _ in table.partition_columns], wish.source.partition_date.lower()
    fits = {FLAT: not columns, BY_RUN_DATE: columns == [RUN_DATE_COLUMN], BY_COLUMN: columns in ([chosen], [f"{chosen}_date"])}
    if not fits[layout_of(wish)]:
        raise _other_layout(wish, f"dated by {columns[0]}" if columns else FLAT)


def _other_layout(wish: SnapshotWish, found: str) -> UsageError:
    return UsageError(
        f"the Glue table {wish.database}.{wish.name} has the layout {found}, and this run has {layout_of(wish)}",
        "snapshot-layout",
        "give the layout it has, or another --database, or drop the Glue table: the data files stay",
    )


def partition_columns(wish: SnapshotWish, schema: Schema) -> list[tuple[str, str]]:
    """The Glue table's partition columns with their types."""
    if wish.by_run_date:
        return [(RUN_DATE_COLUMN, "date")]
    return [(date_folder(wish.source, schema), "date")] if wish.by_column else []


def file_columns(wish: SnapshotWish, schema: Schema) -> Schema:
    """The columns in the snapshot's data files. schema: of the raw files."""
    away = {name for name, _ in partition_columns(wish, schema)}
    return tuple(column for column in output_schema(wish.source, schema) if column.name not in away)


def _commit(clients: Clients, wish: SnapshotWish, manifest: Manifest) -> None:
    """The one UpdateTable after which readers see this version."""
    synced = sync_table(
        clients.glue,
        wish.database,
        wish.name,
        location=str(wish.folder.join(manifest.version.prefix)),
        columns=file_columns(wish, manifest.schema),
        partition_columns=partition_columns(wish, manifest.schema),
        fence=manifest.version.fence,
        path=str(wish.folder),
        description=f"snapshot of {manifest.path} as of {manifest.run_date}",
        moved_from=str(wish.folder.join(f"version={manifest.base}/")) if manifest.base and manifest.layout == BY_COLUMN else None,
    )
    if synced == "later":
        raise RetryLater(
            f"the Glue table {wish.database}.{wish.name} was moved by another run meanwhile: version {manifest.version.name} is written,"
            " and nobody reads it",
            "snapshot-overtaken",
            "none needed if that run is the one you want; else run again when no other runs",
        )


def _check_types(clients: Clients, wish: SnapshotWish, manifest: Manifest) -> None:
    """Refuse a column of another type where other days keep the one that they have: no reader could read both."""
    table = read_table(clients.glue, wish.database, wish.name) if wish.by_run_date else None
    others = table is not None and any(each.values[0] != wish.run_date.isoformat() for each in table.partitions)
    before = dict(table.columns) if table is not None and others else {}
    for column in file_columns(wish, manifest.schema):
        old = before.get(column.name.lower(), column.type)
        if widened(old, column.type) != column.type:
            for file in manifest.files:
                if file.upload is not None:
                    abort_upload(clients.s3, wish.folder.bucket, wish.folder.key + file.path, file.upload.id)
            raise UsageError(
                f"the column {column.name!r} of {wish.database}.{wish.name} has the type {old} in other days, and now {column.type}",
                "snapshot-schema",
                "give another --database, so that the days from now on are a table of their own",
            )


def _place_current(clients: Clients, wish: SnapshotWish, mine: Manifest) -> int:
    """The partitions of this version, and of whoever is current after that; how many were moved.

    Dated by a column only those of the current one: where another run has come since, this version's files may be removed already, and who
    dies after placing them would leave the table without.
    """
    moved, placed = (0, "") if mine.layout == BY_COLUMN else (_place(clients, wish, mine), mine.version.name)
    for _ in range(TURNS):
        current, _table = _current(clients, wish)
        if current is None or current.version.name == placed:
            return moved
        moved, placed = moved + _place(clients, wish, current), current.version.name
    raise RetryLater(f"the Glue table {wish.database}.{wish.name} was moved by others all the time", "catalog-busy", "run again")


def _place(clients: Clients, wish: SnapshotWish, manifest: Manifest) -> int:
    """Make the partitions what the manifest says. By run date, those of other days stay."""
    if manifest.layout == FLAT:
        return 0
    columns = file_columns(as_made(wish, manifest), manifest.schema)  # another wish may have other names than this version's files
    return place_partitions(
        clients.glue,
        wish.database,
        wish.name,
        {(value,): location for value, location in manifest.partitions},
        columns=columns,
        others="drop" if manifest.layout == BY_COLUMN else "keep",
    )


# --- objects


def _read(s3: Any, at: S3Uri) -> Manifest | None:
    try:
        text = read_bytes(s3, at.bucket, at.key).decode()
    except TableBlocked as error:
        if error.code != "raw-file-gone":
            raise
        return None
    except UnicodeDecodeError as error:
        raise bad_manifest(str(at), "no text") from error
    return read_manifest(text, str(at))


def _missing(s3: Any, folder: S3Uri, manifest: Manifest) -> tuple[str, ...]:
    """The version's data files that are not there any more, or are of another size."""
    prefixes = sorted({file.path.split("/", 1)[0] + "/" for file in manifest.files})
    there = {file.key: file.size for prefix in prefixes for file in list_files(s3, folder.bucket, folder.key + prefix)}
    return tuple(file.path for file in manifest.files if there.get(folder.key + file.path) != file.size_bytes)


def _complete(s3: Any, folder: S3Uri, made: Manifest) -> Manifest:
    """Make the uploads objects; the manifest without them."""

    def complete(file: DataFile) -> DataFile:
        if file.upload is None:
            return file
        if complete_upload(s3, folder.bucket, folder.key + file.path, file.upload, look_first=False) == "gone":
            raise RetryLater(f"an upload of this run was aborted by others: {folder.join(file.path)}", "uploads-gone", "run again")
        return replace(file, upload=None)

    with ThreadPoolExecutor(THREADS) as pool:
        return replace(made, files=tuple(pool.map(complete, made.files)))


def _prune(clients: Clients, wish: SnapshotWish, mine: Version) -> tuple[str, ...]:
    """Remove whole old versions that no location in the catalog lies in, and whose files none of those that are kept has; their names.
    Damaged manifests are left alone. One manifest at a time is read, and none of a version that stays anyway: they name all raw files.

    Dated by the run, young ones stay too: the run of another day may have committed one, and have yet to place the day's partition.
    """
    table = read_table(clients.glue, wish.database, wish.name)
    if table is None:
        return ()
    current, _ = _current(clients, wish)
    named = (location for _, location in (current.partitions if current else ()))
    locations = (table.location, *(part.location for part in table.partitions), *named)
    used = {version_of(location, wish.folder) for location in locations}
    s3, folder = clients.s3, wish.folder
    start = folder.key + RUNS
    written = {
        file.key[len(start) : -len(".json")]: file.modified for file in list_files(s3, folder.bucket, start) if file.key.endswith(".json")
    }
    now = max(written.values(), default=None)  # by S3's clock: this run's own is the last, or nearly
    kept, old = removable(written.items(), wish.keep)
    if wish.by_column:
        for name in kept:
            manifest = _undamaged(s3, folder, name)
            if manifest is None:
                return ()  # nothing tells whose files it has
            used = used | folders_of(manifest)
    removed = []
    for name in old:
        manifest = _undamaged(s3, folder, name) if name not in used else None
        if manifest is None or manifest.version.fence >= mine.fence:
            continue
        if manifest.layout == BY_RUN_DATE and now is not None and now - written[name] < PLACING:
            continue
        hide(s3, folder.bucket, [folder.key + file.path for file in manifest.written])
        hide(s3, folder.bucket, [folder.key + manifest.version.manifest])
        removed.append(name)
    return tuple(removed)


def _undamaged(s3: Any, folder: S3Uri, name: str) -> Manifest | None:
    """The manifest of a version; None where it is gone, damaged, or not to be read."""
    try:
        manifest = _read(s3, folder.join(f"{RUNS}{name}.json"))
    except (TableBlocked, ClientError) as error:
        if isinstance(error, ClientError) and error_code(error) != "AccessDenied":
            raise
        return None
    return manifest if manifest is not None and manifest.version.name == name else None
