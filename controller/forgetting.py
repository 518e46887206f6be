"""A forget, found out before it is done: which item it ends, also where the item is gone already, and how to have the table back."""

from __future__ import annotations

import shlex

from controller.adopting import Draft
from controller.raw_scope import RawScope
from controller.session import Session
from glue_jobs.aws.records import list_records
from glue_jobs.core.errors import UsageError
from glue_jobs.core.paths import S3Uri, TablePath, lake_folder
from glue_jobs.core.state import NO_SOURCE, TableState, default_item, read_state


def draft_of(session: Session, path: TablePath) -> Draft:
    """The item to forget. Where there is none, one that leads to the records that an earlier forget has left, below the setting `lake` or
    PATH itself, as of a table without source. UsageError where nothing is left at all."""
    table, raw, lake = session.table, session.settings.raw, session.settings.lake
    item = table.get(str(path))
    if item is not None:
        return Draft(read_state(item))
    is_raw = bool(raw) and RawScope.parse(raw).has(path)
    for folder in (*([lake_folder(lake, path)] if lake else []), S3Uri.folder(f"s3://{path}")):
        if next(list_records(session.clients.s3, folder), None) is not None:
            new = default_item(path, str(folder))
            if str(folder) == f"s3://{path}" and not is_raw:
                new["Source"] = NO_SOURCE
            return Draft(read_state(new), new=new)
    raise UsageError(
        f"nothing of {path} is left to forget: no item in {table.name}, and no change records{f' below {lake}' if lake else ''}",
        "unknown-table",
        "`dmslake tables` lists the tables; a table whose records are elsewhere needs an item with its out_path first",
    )


def ways_back(state: TableState) -> list[str]:
    """The commands that bring a forgotten table back as long as its records are there; its keys are the item's, which is gone."""
    if not state.out_path or not state.head:
        return []
    path, item = state.path.in_shell, state.item
    keys = [
        f" --{option} {shlex.quote(str(item[name]))}"
        for option, name in (("primary-key", "PrimaryKey"), ("partition-key", "PartitionKey"))
        if str(item.get(name) or "null").lower() != "null"
    ]
    made = "dmslake tables" if state.has_source else "put the item back into the state table (--output json prints it)"
    return [made, f"dmslake activate {path}{''.join(keys)}", f"dmslake recover {path}"]
