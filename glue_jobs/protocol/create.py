"""Making an empty table: its item, then its first change. Called again after a crash it goes on.

If we die …            then
  after the item       it is inactive and without a head: nobody does anything with it
  after the commit     the table is there; the next run does the catalog
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from glue_jobs.aws.buckets import check_lake_bucket
from glue_jobs.aws.catalog_table import owner_of
from glue_jobs.aws.objects import list_files
from glue_jobs.aws.records import list_records, read_record
from glue_jobs.core.creation import Definition
from glue_jobs.core.errors import blocked
from glue_jobs.core.foreign_folder import check_alone
from glue_jobs.core.paths import S3Uri, TablePath, by_path, catalog_name
from glue_jobs.core.state import NO_SOURCE, TableState, default_item, read_state
from glue_jobs.protocol.job import run_here
from glue_jobs.protocol.table_run import JobContext, TableRun


@dataclass
class Create:
    """What is done in the table's run. change: of the creation, also of an earlier one that was just the same; note: what was not done."""

    definition: Definition
    change: str = ""
    note: str = ""

    def __call__(self, run: TableRun) -> None:
        run.may_block = False
        run.open()
        if not run.state.head:
            self.change = run.change(lambda _: self.definition.work(), action="create").id
            return
        head = read_record(run.s3, run.state.lake, run.state.head)
        if not self.definition.is_of(head):
            raise _exists(run.state)
        if run.unfinished:
            run.finish()
        self.change, self.note = head.id, "the table was there before, just so"
        run.note = self.note


def create_table(context: JobContext, path: TablePath, definition: Definition) -> Create:
    """Make the table in this process; refused where anything is there already. Raises what the run raises."""
    context.table.ensure()
    item = context.table.get(str(path))
    if item is None:
        new = {**default_item(path, f"s3://{path}"), "Source": NO_SOURCE}
        _check_free(context, read_state(new))
        context.table.create(new)  # somebody else's new item will do too
    elif read_state(item).has_source:
        raise _exists(read_state(item))
    else:
        _check_no_adoption(context, read_state(item))
    act = Create(definition)
    ended = run_here(context, path, act)
    if ended.error is not None:
        raise ended.error
    return act


def _check_free(context: JobContext, state: TableState) -> None:
    """Refuse a bucket that can't keep our promises, a folder that is another table's or holds anything, and records of an earlier table."""
    s3, lake = context.clients.s3, state.lake
    check_lake_bucket(s3, lake.bucket, lake.key)
    items = list(context.table.scan())
    check_alone(state, items)
    name, database = catalog_name(state.path), context.settings.database
    named = {str(item.get("CatalogTable") or catalog_name(path)): str(path) for path, item in by_path(items).items()}
    owner = named.get(name) or (_owner_of(context, database, name) if database else "")  # of another state table, too
    if owner and owner != str(state.path):
        raise blocked(
            "catalog-name-taken",
            f"the catalog name {name} is that of another table",
            where=str(state.path),
            found=owner,
            todo="choose another schema or table name; nothing was made",
        )
    _check_empty(s3, lake, str(state.path))
    record = next(iter(list_records(s3, lake)), "")
    if record:
        raise blocked(
            "records-exist",
            "change records stand here: it was a table before, and its item is gone",
            where=str(state.path),
            found=record,
            todo=f"put the item back (path {state.path}, out_path {lake}, Source none), then `dmslake recover`; or choose another PATH",
        )


def _owner_of(context: JobContext, database: str, name: str) -> str:
    """Whose the Glue table is. A catalog that doesn't answer holds nothing up: its step comes after the change, and tells."""
    try:
        return owner_of(context.clients.glue, database, name) or ""
    except (ClientError, BotoCoreError) as error:
        context.log.event("catalog-not-asked", table=name, error=str(error)[:500])
        return ""


def _check_no_adoption(context: JobContext, state: TableState) -> None:
    """Refuse what an adoption that was refused has left: an item without a head, over another program's files. A table's own files have
    records, and a run says what became of its head."""
    s3 = context.clients.s3
    if not state.head and next(iter(list_records(s3, state.lake)), None) is None:
        _check_empty(s3, state.lake, str(state.path))


def _check_empty(s3: Any, lake: S3Uri, path: str) -> None:
    there = next((file.key for file in list_files(s3, lake.bucket, lake.key)), "")
    if there:
        raise blocked(
            "folder-not-empty",
            "the folder of the new table holds objects",
            where=str(lake),
            expected="nothing",
            found=there,
            todo=f"`dmslake adopt s3://{path} --no-source` takes over the files of another program; or choose another PATH",
        )


def _exists(state: TableState) -> Exception:
    return blocked(
        "table-exists",
        "there is a table already",
        where=str(state.path),
        found=f"Head {state.head}" if state.head else "an item of a table that DMS writes",
        todo=f"`dmslake schema {state.path.in_shell}` lists its columns; nothing was changed",
    )
