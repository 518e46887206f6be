"""Adoption of one table: look (reads only, also for a dry run), then do it as the table's first change.

If we die …                     then
  before the commit             nothing was changed; the other program's files are as they were
  after it                      the change counts: files and cursor went in one write; the next run does the catalog
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

from glue_jobs.aws.catalog_table import check_owner, read_table
from glue_jobs.aws.objects import list_files
from glue_jobs.aws.records import list_records, read_records
from glue_jobs.aws.state_table import StateTable
from glue_jobs.core.adoption import (
    Adoption,
    AdoptWish,
    RawPlace,
    assemble,
    place_in_raw,
)
from glue_jobs.core.errors import DmslakeError, TableBlocked, blocked
from glue_jobs.core.foreign_folder import (
    Footer,
    check_alone,
    check_same,
    data_files,
    merged_schema,
    partition_of,
    untyped,
    with_partition_types,
)
from glue_jobs.core.limits import Limits
from glue_jobs.core.partitioning import Partitioning, PartitionValues, check_partitioning
from glue_jobs.core.paths import catalog_name
from glue_jobs.core.raw_names import RawFile, RawListing
from glue_jobs.core.schema import Schema, find
from glue_jobs.core.schema_change import reconcile
from glue_jobs.core.snapshot import Snapshot
from glue_jobs.core.state import TableState
from glue_jobs.core.work import Work
from glue_jobs.protocol.history import check_own
from glue_jobs.protocol.job import Act
from glue_jobs.protocol.lineage import Lineage
from glue_jobs.protocol.raw import list_raw
from glue_jobs.protocol.sent_twice import done_by_twin, said_done
from glue_jobs.protocol.table_run import TableRun

Listing = Mapping[str, RawFile]


class FileReader(Protocol):
    """Reads Parquet files: glue_jobs.spark.adopt_files.AdoptReader."""

    def footers(self, s3: Any, state: TableState, files: Listing) -> list[Footer]: ...
    def check_partitions(self, schema: Schema, partitioning: Partitioning, partitions: Iterable[PartitionValues]) -> None: ...
    def raw_columns(self, s3: Any, state: TableState, file: RawFile) -> Schema: ...
    def checked(self, s3: Any, adoption: Adoption) -> Adoption: ...
    def keep_filters(self, s3: Any, adoption: Adoption, change: str) -> str: ...


@dataclass(frozen=True)
class Look:
    """Where to look, and by what. database: of the catalog, '' for none; glue is not used then."""

    s3: Any
    glue: Any
    table: StateTable
    database: str
    limits: Limits
    reader: FileReader


@dataclass(frozen=True)
class Planned:
    """An adoption that can be carried out, and the folder as it was listed before anything was read."""

    adoption: Adoption
    listing: Listing


def plan_adoption(look: Look, state: TableState, wish: AdoptWish, *, check_keys: bool) -> Planned:
    """What would be done for the wish. Reads only. check_keys: read the key columns of all rows too; without that the files have no
    key bounds, and keys that come twice are not found. Raises TableBlocked for a folder that can't be taken over as it is."""
    if state.head:
        raise blocked(
            "adopt-loaded",
            "the table has changes already, and only a table without any can be adopted",
            where=str(state.path),
            expected="no Head",
            found=f"Head {state.head}",
            todo="nothing, if it was adopted before" + ("; to replace what it has, `dmslake reload PATH`" if state.has_source else ""),
        )
    state = wish.on(state)
    check_alone(state, look.table.scan())
    for record in read_records(look.s3, state.lake, [*list_records(look.s3, state.lake)]):
        check_own(record, state.lake, str(state.path))  # the item of that table may be in another state table
    if look.database:
        check_owner(look.glue, look.database, state.catalog_table or catalog_name(state.path), str(state.path))
    listing = _list(look.s3, state)
    files, passed_over = data_files(listing, state.lake)
    for path in sorted(files):
        partition_of(path, state.partitioning, state.lake)
    footers = look.reader.footers(look.s3, state, files)
    raw = list_raw(look.s3, state, Snapshot(), look.limits)
    place = place_in_raw(state, raw, bool(wish.cursor))
    own, mixed = merged_schema(footers, state.lake)
    raw_schema, problem = _raw_schema(look, state, raw)
    schema = _with_partitions(look, state, own, wish, raw_schema)
    check_partitioning(state.partitioning, schema, str(state.path))
    adoption = assemble(state, place, schema, footers, passed_over, mixed)
    look.reader.check_partitions(schema, state.partitioning, [file.partition for file in adoption.files])
    unlike = sorted({column for footer in footers for column in footer.unlike})
    adoption = replace(adoption, warnings=tuple(_warnings(adoption, raw_schema, problem, unlike)))
    return Planned(look.reader.checked(look.s3, adoption) if check_keys else adoption, listing)


def _list(s3: Any, state: TableState) -> Listing:
    lake = state.lake
    return {file.key[len(lake.key) :]: file for file in list_files(s3, lake.bucket, lake.key)}


def _with_partitions(look: Look, state: TableState, own: Schema, wish: AdoptWish, raw: Schema) -> Schema:
    said = dict(wish.columns)
    needs_catalog = any(name not in said and find(raw, name) is None for name in untyped(state.partitioning))
    catalog = _catalog_types(look, state) if needs_catalog else {}
    return with_partition_types(own, state.partitioning, said, raw, catalog, state.lake)


def _catalog_types(look: Look, state: TableState) -> dict[str, str]:
    """The types of the partition columns of a Glue table at the same place, if there is one."""
    if not look.database:
        return {}
    found = read_table(look.glue, look.database, state.catalog_table or catalog_name(state.path))
    if found is None or found.location.rstrip("/") != str(state.lake).rstrip("/"):
        return {}
    return {name.lower(): kind for name, kind in found.partition_columns}


def _raw_schema(look: Look, state: TableState, raw: RawListing) -> tuple[Schema, str]:
    """(the columns of the newest raw file, why they can't be told)."""
    files = [file for file in (*raw.loads, *raw.cdc) if file.key.endswith(".parquet")]
    if not files:
        return (), ""
    newest = max(files, key=lambda file: (file.modified, file.key))
    try:
        return look.reader.raw_columns(look.s3, state, newest), ""
    except TableBlocked as error:
        return (), f"the newest raw file can't be read: {error.message}"


def _warnings(adoption: Adoption, raw: Schema, problem: str, unlike: Sequence[str]) -> Iterable[str]:
    place, path = adoption.place, str(adoption.state.path)
    if problem:
        yield problem
    way = f"; `dmslake repartition {adoption.state.path.in_shell}` rewrites all files" if adoption.state.has_source else ""
    if unlike:
        cut = " (nanoseconds are cut to microseconds in each file that is rewritten)" if any("[ns" in column for column in unlike) else ""
        yield (
            f"{', '.join(unlike)}: of a type in the files that not every reader takes for the catalog's, as Athena, Trino and Spark may"
            f" refuse it or show other values{cut}{way}"
        )
    if adoption.mixed:
        yield (
            f"the type of {', '.join(adoption.mixed)} is not the same in all files: dmslake reads them alike, but Athena and Spark may "
            f"refuse them{way}"
        )
    if raw and adoption.schema:
        try:
            reconcile(path, adoption.schema, [("the newest raw file", raw)])
        except DmslakeError as error:
            yield f"the next batch will be refused: {error.message}"
    if place.pending_loads:
        yield _newer_loads(place)
    if place.is_beyond:
        yield (
            f"the cursor {place.cursor.rsplit('/', 1)[-1]} names none of the {len(place.applied)} CDC file(s), and is newer than all:"
            " they count as applied, and so will every later file with a name up to it"
        )
    if adoption.state.has_source and not adoption.state.primary_key:
        yield "PrimaryKey is null: inserts will be appended, updates and deletes only counted; --primary-key names the key"


def _newer_loads(place: RawPlace) -> str:
    newest = max(file.modified for file in place.pending_loads)
    return (
        f"{len(place.pending_loads)} load file(s) are newer than LastFullLoadDate {place.last_full_load}: the next run reloads the table. "
        f"If they are in it (the AWS sample notes the time of the first load file only), give --load-date '{newest:%Y-%m-%d %H:%M:%S}'"
    )


def adopt_with(reader: FileReader, wish: AdoptWish, dry_run: bool = False) -> Act:
    """What the job Adopt does in a table's run."""

    def act(run: TableRun) -> None:
        run.may_block = False
        run.open()
        done = "" if dry_run else done_by_twin(run, Lineage(run.s3, run.state.lake, run.snapshot.change), "adopt")
        if done:
            run.note = said_done(done)
            return
        if run.unfinished and not dry_run:
            run.finish()
            run.note = "a step that an earlier run left undone was finished"
            return
        context = run.context
        look = Look(run.s3, context.clients.glue, context.table, context.settings.database, context.settings.limits, reader)
        planned = plan_adoption(look, run.state, wish, check_keys=True)
        context.log.event("plan", dry_run=dry_run, **facts(planned.adoption))
        run.warnings += planned.adoption.warnings
        if dry_run:
            run.note = "dry run: nothing was changed"
            return

        def work(change: str) -> Work:
            check_same(planned.listing, _list(run.s3, run.state), run.state.lake)
            if context.settings.limits.key_filter_bytes:
                trouble = reader.keep_filters(run.s3, planned.adoption, change)
                if trouble:
                    context.log.event("no-key-filters", error=trouble[:500])
            return planned.adoption.work()

        run.change(work, action="adopt", files=len(planned.adoption.files), bytes=planned.adoption.size_bytes)

    return act


def facts(adoption: Adoption) -> dict[str, Any]:
    """An adoption for reports and logs."""
    state, place = adoption.state, adoption.place
    return {
        "lake": str(state.lake),
        "files": len(adoption.files),
        "rows": adoption.rows,
        "bytes": adoption.size_bytes,
        "columns": [{"name": column.name, "type": column.type} for column in adoption.schema],
        "left_out": list(adoption.left_out),
        "mixed_types": list(adoption.mixed),
        "passed_over": len(adoption.passed_over),
        "primary_key": list(state.primary_key),
        "partition_key": [field.folder for field in state.partitioning],
        "partitions": len({file.partition for file in adoption.files}) if state.partitioning else 0,
        "keys_checked": adoption.keys_checked,
        "cursor": place.cursor,
        "last_full_load": place.last_full_load,
        "load_files": len(place.generation.loads),
        "applied_files": len(place.applied),
        "pending_load_files": len(place.pending_loads),
        "pending_files": len(place.pending),
    }
