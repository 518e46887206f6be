"""Items of tables that were found: an inactive one for a table without, and what a person's short item lacks."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from glue_jobs.aws.state_table import StateTable
from glue_jobs.core.paths import TablePath, lake_folder
from glue_jobs.core.state import default_item

COMPLETE_ATTEMPTS = 3


def register(table: StateTable, found: Iterable[TablePath], items: dict[str, dict[str, Any]], lake: str, *, may_write: bool) -> set[str]:
    """Add to `items`, by path, what they lack of the tables that were found; the keys that are new.

    lake: the setting `--lake`. It is written to the state table only where that may be and the lake is known: an item's out_path is written
    once.
    """
    new = set()
    for path in found:
        key, write = str(path), may_write and bool(lake)
        default = default_item(path, str(lake_folder(lake, path)) if lake else "")
        if key in items:
            whole = _completed(table, items[key], default) if write else {**items[key], **_lacking(items[key], default)}
            if whole:
                items[key] = whole
            else:
                del items[key]
        elif write and not table.create(default):
            items[key] = table.get(key) or default  # somebody else was faster
        else:
            items[key] = default
            new.add(key)
    return new


def _completed(table: StateTable, item: dict[str, Any], default: dict[str, Any]) -> dict[str, Any]:
    """The item with what it lacks of the default one, as it is stored then; empty if a person has deleted it since. All items are read
    before the first is written to, so that a person or a run may have set what lacked: that stays, and is looked at again."""
    path = str(item["path"])
    stored: dict[str, Any] = {}
    for _ in range(COMPLETE_ATTEMPTS):
        lacking = _lacking(item, default)
        if not lacking or table.complete(path, item, lacking, stored.update):
            return stored or item
        item = table.get(path) or {}
        if not item:
            return item
    return item  # edited again and again: the next run completes it


def _lacking(item: dict[str, Any], default: dict[str, Any]) -> dict[str, Any]:
    """What the item lacks of the default one. A loaded table without out_path must not be sent to another folder."""
    return {} if item.get("Head") else {name: value for name, value in default.items() if item.get(name) in (None, "")}
