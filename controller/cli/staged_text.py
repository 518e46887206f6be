"""A staged change in words: what became of it, until when it can be committed, and the commands that do so."""

from __future__ import annotations

from typing import Any

from controller.cli.output import View
from controller.cli.undo_text import count_cells
from controller.history import shown_time, time_text
from glue_jobs.core.record import ChangeRecord
from glue_jobs.core.state import TableState
from glue_jobs.protocol.stage import COMMITTED, WAITING, StagedChange

COLUMNS = ("staged change", "time (UTC)", "kind", "ins", "upd", "del", "rows", "standing", "commit until")
NAMED = 3


def standing_text(staged: StagedChange) -> str:
    """`waiting`, `committed as <id>` …"""
    return f"committed as {staged.committed_as}" if staged.standing == COMMITTED else staged.standing


def until_text(staged: StagedChange) -> str:
    """Until when it can be committed; '' for one that can't be."""
    if staged.standing != WAITING:
        return ""
    return f"{time_text(staged.until, 'minutes')}" if staged.until else "no end"


def staged_view(changes: list[StagedChange]) -> View:
    """Staged changes as rows, as `history` shows them."""
    rows = [
        [each.record.id, time_text(shown_time(each.record), "milliseconds"), each.record.kind, *count_cells(each.record),
         standing_text(each), until_text(each)]
        for each in changes
    ]  # fmt: skip
    return View(COLUMNS, rows, (("rows",), ("ins", "upd", "del"))).without_empty("commit until")


def staged_dict(staged: StagedChange) -> dict[str, Any]:
    """One staged change for JSON."""
    return {
        "change": staged.record.id, "time": staged.record.time, "kind": staged.record.kind, "parent": staged.record.parent,
        "standing": staged.standing, "committed_as": staged.committed_as, "between": list(staged.between),
        "commit_until": staged.until.isoformat() if staged.until and staged.standing == WAITING else None,
    }  # fmt: skip


def staged_pairs(staged: StagedChange) -> list[tuple[str, str]]:
    """What a staged change has beside what every change has."""
    between = ", ".join(staged.between[:NAMED]) + (", …" if len(staged.between) > NAMED else "")
    until = until_text(staged)
    return [
        ("committed as", staged.committed_as),
        ("came between", between),
        ("commit until", f"{until} UTC: from then on the bucket's rule may abort its uploads" if staged.until and until else until),
    ]


def rows_text(record: ChangeRecord) -> str:
    """How many of its row changes are kept beside the record; '' for none."""
    if "rows_kept" not in record.details:
        return ""
    return f"{record.details['rows_kept']:,} of at most {record.details.get('rows_changed', 0):,} kept: --rows FILE writes them"


def staged_ways(state: TableState, staged: StagedChange) -> list[tuple[str, str]]:
    """(what it does, the command)."""
    path, change = state.path.in_shell, staged.record.id
    if staged.standing == COMMITTED:
        return [("to see what became of it", f"dmslake show {path} {staged.committed_as}")]
    commit = [("to commit it", f"dmslake commit {path} {change}")] if staged.standing == WAITING else []
    return [*commit, *([] if staged.standing == "discarded" else [("to discard it", f"dmslake discard {path} {change}")])]
