"""A forget, found out before it is done: which item it ends, also where the item is gone already, and how to have the table back."""

from __future__ import annotations

import shlex

from controller.adopting import Draft
from controller.raw_scope import RawScope
from controller.session import Session
from glue_jobs.aws.attributes import typed_item
from glue_jobs.aws.records import list_records
from glue_jobs.core.errors import UsageError
from glue_jobs.core.paths import S3Uri, TablePath, lake_folder
from glue_jobs.core.printable import json_text
from glue_jobs.core.state import NO_SOURCE, PERSON_ATTRIBUTES, TableState, default_item, read_state
from glue_jobs.protocol.forget import BEING_FORGOTTEN

_OF_RECORDS = ("LastFullLoadDate", "LastIncrementalFile")  # recover sets them
_SAID = tuple(name for name in (*PERSON_ATTRIBUTES, "CatalogTable") if name not in _OF_RECORDS)


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


def ways_back(state: TableState, state_table: str) -> list[str]:
    """The commands that bring a forgotten table back as long as its records are there. Its item comes first, as nothing else knows what a
    person had said in it; activate comes last, so that no run takes the table up before recover has found its head."""
    if not state.out_path or not state.head:
        return []
    item = {**default_item(state.path, state.out_path), **{name: state.item[name] for name in _SAID if name in state.item}}
    # Whether a table whose forget broke off was kept up is not known any more; that it was is likelier.
    is_kept_up = state.paused.startswith(BEING_FORGOTTEN) or (state.active and not state.paused)
    if is_kept_up:
        item["ActiveFlag"] = "false"
        item.pop("Paused", None)
    put = (
        f"aws dynamodb put-item --table-name {shlex.quote(state_table)} --condition-expression 'attribute_not_exists(Head)' "
        f"--item {shlex.quote(json_text(typed_item(item)))}"
    )
    path = state.path.in_shell
    return [put, f"dmslake recover {path}", *([f"dmslake activate {path}"] if is_kept_up else [])]
