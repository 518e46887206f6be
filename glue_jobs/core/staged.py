"""A staged change: made up to its record and not committed, so that a person can look at it first. Its values; what is done with them is
protocol/stage.py's."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any

import glue_jobs
from glue_jobs.core.record import ChangeRecord
from glue_jobs.core.state import PERSON_ATTRIBUTES, TableState
from glue_jobs.core.work import Work

COMMIT, ITEM, BEFORE = "commit", "item", "before"  # details of a staged change's record
# What a person may set while a staged change waits: neither decides what the change does.
FREE = frozenset({"Paused", "ActiveFlag"})
ROWS = "rows.parquet"  # ending of the object beside the record that holds row changes for a person to look at


def as_staged(record: ChangeRecord, work: Work, state: TableState) -> ChangeRecord:
    """The record as a staged change's. It keeps what its commit sets and removes, and the item that it was made with."""
    details = {name: value for name, value in record.details.items() if name != BEFORE}
    commit = {"values": dict(work.values), "remove": list(work.requests)}
    return replace(record, staged=True, details={**details, COMMIT: commit, ITEM: _item(state.item)})


def commit_of(staged: ChangeRecord, state: TableState) -> tuple[dict[str, Any], tuple[str, ...]]:
    """(attributes that the commit of the staged change sets, those that it removes: its own pause is one of them)."""
    kept = staged.details.get(COMMIT, {})
    ours = ("Paused",) if is_paused_for(state, staged.id) else ()
    return dict(kept.get("values", {})), (*kept.get("remove", ()), *ours)


def as_committed(staged: ChangeRecord, change: str, *, now: datetime, run_id: str, before: Mapping[str, Any]) -> ChangeRecord:
    """The record of the change that commits `staged`: all that it did, under an id and a time of its own.

    before: see commit.answered. A checkpoint stays as it is: the parent is the same.
    """
    details = {name: value for name, value in staged.details.items() if name not in (COMMIT, ITEM)}
    return replace(
        staged,
        id=change,
        time=now.strftime("%Y-%m-%dT%H:%M:%S.%fZ"),
        run_id=run_id,
        program=glue_jobs.__version__,
        staged=False,
        staged_as=staged.id,
        details={**details, **before},
    )


def edited_since(staged: ChangeRecord, state: TableState) -> list[tuple[str, str, str]]:
    """(attribute, its value when the change was staged, its value now) of what a person has set to something else since."""
    then, now = staged.details.get(ITEM, {}), _item(state.item)
    return [(name, then.get(name, ""), now.get(name, "")) for name in PERSON_ATTRIBUTES if then.get(name, "") != now.get(name, "")]


def pause_text(change: str, path: str) -> str:
    """The pause of a table whose next change is staged. path: as a shell takes it."""
    return f"change {change} is staged: `dmslake show {path} {change}`, then `dmslake commit {path} {change}` or `dmslake discard …`"


def is_paused_for(state: TableState, change: str) -> bool:
    """Whether the table is paused for this staged change, and not for a person's reason."""
    return state.paused.startswith(f"change {change} is staged")


def _item(item: Mapping[str, Any]) -> dict[str, str]:
    """A person's attributes as texts, those that are not set left out."""
    return {name: _text(item[name]) for name in PERSON_ATTRIBUTES if name not in FREE and item.get(name) is not None}


def _text(value: Any) -> str:
    if isinstance(value, (list, tuple, set, frozenset)):
        return json.dumps(sorted(map(str, value)))
    return str(value)
