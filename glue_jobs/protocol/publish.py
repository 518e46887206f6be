"""After the commit point: converge, then the catalog; and what to do when a committed change's uploads are gone."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from glue_jobs.aws.catalog_partitions import add_partitions, refresh_partitions
from glue_jobs.aws.catalog_table import sync_table
from glue_jobs.aws.records import list_records, read_record
from glue_jobs.aws.versions import versions_of
from glue_jobs.core.collation import collation_of
from glue_jobs.core.errors import blocked
from glue_jobs.core.load_plan import leaves_out
from glue_jobs.core.partitioning import file_columns
from glue_jobs.core.paths import S3Uri
from glue_jobs.core.record import GOES_TO, ChangeRecord, Input
from glue_jobs.core.schema import Schema, find
from glue_jobs.core.snapshot import Snapshot
from glue_jobs.core.state import TableState
from glue_jobs.core.work import Work
from glue_jobs.protocol.history_table import unhistory
from glue_jobs.protocol.raw import etags_of


def catalog_columns(snapshot: Snapshot) -> tuple[Schema, list[tuple[str, str]]]:
    """(columns in the files, partition columns with their types) as the catalog shows the table."""
    partitions = []
    for field in snapshot.partitioning:
        column = find(snapshot.schema, field.column)
        partitions.append((field.folder, column.type if column and field.transform == "identity" else "int"))
    return file_columns(snapshot.schema, snapshot.partitioning), partitions


def update_catalog(
    glue: Any, database: str, name: str, state: TableState, snapshot: Snapshot, partitions: set[Any], fence: int, refresh: bool
) -> bool:
    """Make the Glue table and its `partitions` (values of added files) what the snapshot says. Partitions are only added; a table that
    was not there gets all of them. False, and nothing is done, where a greater fence has written it.

    refresh: columns changed, so give each partition the table's; Athena refuses a partition whose types differ.
    """
    columns, partition_columns = catalog_columns(snapshot)
    location = str(state.lake)
    synced = sync_table(
        glue,
        database,
        name,
        location=location,
        columns=columns,
        partition_columns=partition_columns,
        fence=fence,
        path=str(state.path),
    )
    if synced == "later":
        return False
    if partition_columns:
        partitions = {file.partition for file in snapshot.files.values()} if synced == "created" else partitions
        ordered = sorted(partitions, key=lambda values: tuple((value is None, value or "") for value in values))
        add_partitions(glue, database, name, ordered, location=location, columns=columns, partitioning=snapshot.partitioning)
        if refresh or synced == "moved":
            # One that a person has put elsewhere, of which the table has no rows, stays there.
            placed = None if synced == "moved" else {file.partition for file in snapshot.files.values()}
            layout = snapshot.partitioning
            refresh_partitions(glue, database, name, location=location, columns=columns, partitioning=layout, placed=placed)
    return True


def undo_of_lost(s3: Any, state: TableState, lost: ChangeRecord, before: Snapshot) -> Work:
    """The change that takes back `lost`, whose uploads are gone: the snapshot before it, its inputs pending again.

    The files that `lost` superseded are in `added` again, without an upload.
    Nothing was hidden yet (converge hides only when nothing is missing), so every file of `before` is as visible as it was. Refused,
    with the head where it is, if that is not so: then `lost` was published before; or if an input that would be pending again is no
    longer there as it was, unless a person asked for a reload or skips that file by its name.
    """
    back = set(lost.superseded) & set(before.files)
    _check_not_published(s3, state, lost, back)
    pending = _check_inputs(s3, state, lost)
    return Work(
        kind="lost",
        lost=lost.id,
        target=before.stands_for,
        like=replace(before, awaited={**before.awaited, **pending}),
        added=tuple(file for path, file in before.files.items() if path in back),
        schema=before.schema,
        primary_key=before.primary_key,
        partitioning=before.partitioning,
        generation=before.generation,
        superseded=tuple(file.path for file in lost.added),
        timestamp_column=before.timestamp_column,
        cursor_after=before.cursor,
        last_full_load=before.last_full_load,
        history=unhistory(s3, state.lake, lost, before),
        history_at=before.history,
        requests=("Erasing",) if state.erasing == lost.id else (),  # it removed nothing: that waits for converge
    )


def _check_not_published(s3: Any, state: TableState, lost: ChangeRecord, back: Iterable[str]) -> None:
    """Refuse to take back a change that was published before: its files are gone since then, and those that are left are live. It was
    if a file that it superseded is hidden, but for a repair, which supersedes what was hidden before it; or if another change was built on
    it: no run begins one before the publish is finished."""
    lake = state.lake
    seen = versions_of(s3, lake.bucket, [lake.key + path for path in back if lost.kind != "repair"])
    found = [f"s3://{lake.bucket}/{key} is not visible" for key, versions in sorted(seen.items()) if not versions.visible]
    later = (read_record(s3, lake, change, with_checkpoint=False) for change in list_records(s3, lake, lost.id))
    found += [f"change {record.id} was built on it" for record in later if record.parent == lost.id != record.lost]
    if found:
        path = state.path.in_shell
        raise blocked(
            "published-before",
            f"change {lost.id} waits to be published, was published before, and files that it added are gone",
            where=str(state.path),
            expected="a change of which nothing was hidden yet",
            found=found[0],
            todo=f"`dmslake recover {path}`, in case the item is older than its change records; if there is nothing to recover, remove the "
            f"attribute Publishing from the item: `dmslake verify {path}` names the files, and a rollback or a reload goes on from there",
        )


def given_back(state: TableState, lost: ChangeRecord) -> dict[str, Any]:
    """The attributes as a person had set them before `lost` answered them; what was edited since stays."""
    before: dict[str, Any] = dict(lost.details.get("before", {}))
    if state.cursor != lost.cursor_after:
        before["LastIncrementalFile"] = state.item.get("LastIncrementalFile")
    if lost.last_full_load and state.last_full_load_text != lost.last_full_load:
        before["LastFullLoadDate"] = state.item.get("LastFullLoadDate")
    if state.request:
        before.pop("Request", None)
    if state.primary_key != lost.primary_key:
        before.pop("PrimaryKey", None)
    if collation_of(state.primary_key) != collation_of(lost.primary_key):
        before.pop("KeyCollation", None)
    if state.partitioning != lost.partitioning:
        before.pop("PartitionKey", None)
    if lost.kind in GOES_TO:
        before["Paused"] = f"the {lost.kind} {lost.id} was taken back, because its copies were gone before they were published; do it again"
    if lost.staged_as and "Paused" in before:
        before["Paused"] = (
            f"the staged change {lost.staged_as} was committed and taken back, because its uploads were gone before they were published;"
            f" `dmslake activate {state.path.in_shell}`, then stage it again"
        )
    return before


def _check_inputs(s3: Any, state: TableState, lost: ChangeRecord) -> dict[str, Input]:
    """The raw files that become pending again, each of them there as it was."""
    if state.request == "reload":
        return {}  # it will bring every row
    raw = state.path.raw
    pending = {item.key: item for item in lost.inputs if not (item.is_blank or leaves_out(state, lost.generation, item.key, item.etag))}
    wanted = {key: item.etag for key, item in pending.items()}
    listed = etags_of(s3, raw, wanted)
    for key, etag in wanted.items():
        if listed.get(key) != etag:
            raise blocked(
                "reload-needed",
                f"uploads of change {lost.id} are gone before they were published, and so is a raw file it was made from",
                where=str(S3Uri(raw.bucket, key)),
                expected=f"ETag {etag}",
                found=f"ETag {listed[key]}" if key in listed else "no such object",
                todo=f"put the file back, or reload the table in DMS, then `dmslake reload {state.path.in_shell}`; to do without the file: "
                f"`dmslake unblock {state.path.in_shell} --skip-file {key.rsplit('/', 1)[-1]}`",
            )
    return pending
