"""The history table beside a lake table: one row per version of a key. Its names, columns and place; what it holds is spark's.

It is a second folder of data files that changes with the lake table, in the same change: the change's record says which record in the
history's own `_changes` folder lists its files (`history`), so that one conditional write decides on both, and one undo takes both back.
"""

from __future__ import annotations

from dataclasses import replace

from glue_jobs.core.collation import is_same_key
from glue_jobs.core.errors import blocked
from glue_jobs.core.partitioning import Partitioning, parse_partition_key
from glue_jobs.core.paths import MAX_CATALOG_NAME, S3Uri
from glue_jobs.core.record import GOES_TO, ChangeRecord, Counts, HistoryAt
from glue_jobs.core.schema import Column, Schema, find, widened
from glue_jobs.core.snapshot import Snapshot, apply, checkpoint_due, checkpoint_of
from glue_jobs.core.work import HistoryWork, Work

SUFFIX = "_history"
OPERATION, VALID_FROM, VALID_TO, FLAG = "operation", "valid_from", "valid_to", "validity_flag"
CHANGE, SOURCE_FILE, SOURCE_ROW = "change_id", "source_file", "source_row"
INSERT, UPDATE, DELETE = "insert", "update", "delete"  # values of the column operation
# valid_to: null while it is its key's latest version; validity_flag: 1 then, else 0. source_file: name of the raw file, null for rows
# that are from none; source_row: from 0.
COLUMNS: Schema = (
    Column(OPERATION, "string"),
    Column(VALID_FROM, "timestamp"),
    Column(VALID_TO, "timestamp"),
    Column(FLAG, "int"),
    Column(CHANGE, "string"),
    Column(SOURCE_FILE, "string"),
    Column(SOURCE_ROW, "bigint"),
)
PARTITIONING: Partitioning = parse_partition_key(f"year({VALID_FROM}), month({VALID_FROM})")


def history_lake(lake: S3Uri) -> S3Uri:
    """The folder of the history table of the lake table at `lake` (`…/schema/table/`): beside it."""
    return S3Uri(lake.bucket, lake.key.rstrip("/") + SUFFIX + "/")


def history_catalog_name(name: str) -> str:
    """The Glue table of the history, of that of the lake table."""
    return (name + SUFFIX)[:MAX_CATALOG_NAME]


def history_schema(schema: Schema, table: str) -> Schema:
    """The columns of the history table; raises TableBlocked where the table has a column of one of our names."""
    ours = (*(column.name for column in COLUMNS), *(field.folder for field in PARTITIONING))
    taken = {name.lower() for name in ours}
    clash = [column.name for column in schema if column.name.lower() in taken]
    if clash:
        raise blocked(
            "history-column-clash",
            f"the table has a column {clash[0]!r}, which is the name of one of the history table's own, or of its folders",
            where=table,
            expected="no column named " + ", ".join(ours),
            found=", ".join(clash),
            todo="rename it at the source, or set the attribute History to 'false'",
        )
    return (*schema, *COLUMNS)


def columns_after(before: Schema, lake: Schema, table: str) -> Schema:
    """The history's columns after a change, of those before it and the lake table's: old versions keep columns that a reload left out."""
    schema = history_schema(lake, table)
    ours = {column.name for column in COLUMNS}
    columns = [_wider(find(before, column.name), column, table) for column in lake]
    left = [replace(column, absent=True) for column in before if find(schema, column.name) is None and column.name not in ours]
    lower = {column.name.lower(): column.name for column in lake}
    for column in left:
        if column.name.lower() in lower:
            raise blocked(
                "history-column-clash",
                f"column {lower[column.name.lower()]!r} was {column.name!r} before the reload: the history table would have both, and Spark"
                " and Athena can't read such a table",
                where=table,
                expected=column.name,
                found=lower[column.name.lower()],
                todo="take away the DMS rule that changed the names, and reload; or set the attribute History to 'false'",
            )
    return history_schema((*columns, *left), table)


def _wider(old: Column | None, new: Column, table: str) -> Column:
    kind = new.type if old is None else widened(old.type, new.type)
    if kind is None:
        raise blocked(
            "history-type-changed",
            f"column {new.name!r} has another type since the reload, which the versions in the history table can't have",
            where=table,
            expected=old.type if old else "",
            found=new.type,
            todo="rename the column by a DMS transformation rule and reload; or set the attribute History to 'false'",
        )
    return replace(new, type=kind)


def history_after(parent: Snapshot, work: Work, change: str) -> HistoryAt | None:
    """Where the history table stands after a change: it was kept, or stays where it was, and then it is stale if rows changed."""
    if work.history is not None:
        return HistoryAt(change, work.history.is_stale)
    if work.kind in GOES_TO:
        return work.history_at
    if parent.history is None or not (changes_rows(work) or not is_same_key(work.primary_key, parent.primary_key)):
        return parent.history
    return HistoryAt(parent.history.change, True)


def changes_rows(work: Work) -> bool:
    """Whether row versions may differ after the change: its rows, or the columns they have."""
    return bool(work.added or work.superseded) and (work.kind != "repartition" or work.counts.updated > 0)


def history_record(record: ChangeRecord, work: HistoryWork, parent: Snapshot) -> ChangeRecord:
    """The record in the history's folder of what `record`'s change does there. parent: the history's snapshot before it."""
    counts = Counts(inserted=work.inserted, updated=work.closed)
    plain = ChangeRecord(
        id=record.id,
        parent=parent.change,
        kind=record.kind,
        table=record.table,
        lake=str(history_lake(S3Uri.folder(record.lake))),
        time=record.time,
        run_id=record.run_id,
        program=record.program,
        counts=counts,
        added=work.added,
        superseded=work.superseded,
        schema=work.schema,
        primary_key=work.primary_key,
        partitioning=PARTITIONING,
        chain=parent.chain,
        target=work.target,
        staged=record.staged,
        erases=record.erases,
    )
    after = apply(parent, plain)
    due = not parent.change or checkpoint_due(parent, len(after.files))
    counts = Counts(inserted=work.inserted, updated=work.closed, table_rows=after.rows)
    return replace(plain, counts=counts, checkpoint=checkpoint_of(after, 0.0) if due else None)


def unchanged(snapshot: Snapshot, reason: str) -> Work:
    """The change that leaves the lake table as it is, for its history table's sake."""
    return Work(
        kind="history",
        schema=snapshot.schema,
        primary_key=snapshot.primary_key,
        partitioning=snapshot.partitioning,
        generation=snapshot.generation,
        timestamp_column=snapshot.timestamp_column,
        cursor_after=snapshot.cursor,
        last_full_load=snapshot.last_full_load,
        details={"reason": reason},
    )


def is_changed_by(record: ChangeRecord) -> str:
    """The id of the record in the history's folder that says what `record`'s change did there; '' if it did nothing.

    A change that commits a staged one did what that prepared.
    """
    at = record.history.change if record.history is not None else ""
    return at if at in (record.id, record.staged_as) else ""
