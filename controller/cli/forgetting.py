"""`dmslake forget`: a table's life ends in state, catalog and, if that is wanted, in the lake; first shown, then asked, then done in
this process, under the table's lease."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import click

from controller.adopting import Draft
from controller.cli.call import Call, one_table, with_call
from controller.cli.confirming import confirmed
from controller.cli.output import Answer, labelled, say, say_error, size_text
from controller.forgetting import draft_of, ways_back
from controller.session import Session
from glue_jobs.aws.translate import translated
from glue_jobs.core.errors import DmslakeError, name_table
from glue_jobs.core.paths import TablePath
from glue_jobs.core.state import TableState
from glue_jobs.protocol.forget import OURS, ForgetPlan, ForgetTable, look
from glue_jobs.protocol.job import run_here
from glue_jobs.protocol.verify import Place

FORGET = 1
SHOWN = 5  # keys that are named
WHY = "docs/forget.md says how to have a table back"


@click.command()
@click.argument("path")
@click.option("--purge", is_flag=True, help="Hide the data files and change records too, by delete markers; their versions stay.")
@click.option("--yes", is_flag=True, help="Don't ask.")
@click.option("--dry-run", is_flag=True, help="Show what would be done, and change nothing.")
@with_call
def forget(call: Call, path: str, purge: bool, yes: bool, dry_run: bool) -> int:
    """End the life of the table PATH: its Glue table and its state item go; its data files and change records stay where they are.

    With --purge these are hidden as well. No data version is deleted, and none of DMS's raw files: the next run finds them, and lists
    the table as new and inactive. What is shown is done, or it is refused. A forget that broke off is ended by the same call.
    """
    call.settings.require("database")
    with call.session() as session:
        draft = _draft(session, path)
        state = draft.state
        place = Place(session.clients.s3, session.clients.glue, session.table, call.settings.database)
        try:
            with translated():
                plan = look(place, state, purge=purge)
        except DmslakeError as error:
            raise name_table(error, str(state.path)) from None
        title, lines = f"{state.path}: forget", _lines(state, plan, call.settings.database)
        back = ways_back(state, call.settings.state_table)
        if dry_run:
            return call.show(Answer(_data(state, plan, back, True), (), lines, [title, "nothing was changed"]))
        say(title, *lines)
        if not confirmed(yes, "purge this table?" if purge else "forget this table?", WHY):
            say("nothing was forgotten")
            return 1
        with translated():
            draft.write(session.table)
        ended = run_here(session.job_context("Forget"), state.path, ForgetTable(plan))
    if ended.error is not None:
        say_error(name_table(ended.error, str(state.path)))
        return ended.code
    return call.show(Answer(_data(state, plan, back, False), (), _done_lines(state, plan, back)))


def _draft(session: Session, path: str) -> Draft:
    """By a full path also where there is no item any more."""
    with translated():
        if "/" not in path:
            return Draft(one_table(session, path, wants=lambda state: False)[1])
        return draft_of(session, TablePath.parse(path))


# --- in words


def _lines(state: TableState, plan: ForgetPlan, database: str) -> list[str]:
    glue = [f"{database}.{name}: {'is dropped' if whose == OURS else f'{whose}, stays'}" for name, whose in plan.catalog if whose != "none"]
    does = "hidden, their versions stay as long as the bucket keeps them" if plan.purge else "stay"
    pairs = [
        ("state item", f"is deleted (fence {state.fence or 0}, head {state.head or 'none'})"),
        ("Glue table", "; ".join(glue) or "there is none"),
        *((("lake folder" if not at else ""), folder.lake) for at, folder in enumerate(plan.folders)),
        ("data files", f"{len(plan.files):,}, {size_text(plan.size_bytes) or '0 B'}: {does}"),
        ("change records", f"{len(plan.records):,} object(s): {does}"),
        ("not touched", _some(plan.foreign, "object(s) of others")),
        ("inside it", _some(plan.inside, "other table(s), not touched")),
        ("raw files", "not touched: the next run lists the table again, as new and inactive" if state.has_source else ""),
    ]
    return labelled(pairs)


def _some(names: Sequence[str], what: str) -> str:
    more = f", … and {len(names) - SHOWN:,} more" if len(names) > SHOWN else ""
    return f"{len(names):,} {what}: {', '.join(names[:SHOWN])}{more}" if names else ""


def _done_lines(state: TableState, plan: ForgetPlan, back: Sequence[str]) -> list[str]:
    if plan.purge:
        hidden = f"{len(plan.files):,} data file(s) and {len(plan.records):,} object(s) beside them are hidden"
        said, title, lines = f"{state.path} is forgotten; {hidden}; {WHY}", "its item, to be put back for that:", back[:1]
    else:
        said, title, lines = f"{state.path} is forgotten; its files are where they were", "to have it back:", back
    return [said, *([title, *(f"  {line}" for line in lines)] if lines else [])]


def _data(state: TableState, plan: ForgetPlan, back: Sequence[str], dry_run: bool) -> dict[str, Any]:
    """For JSON, with the whole item, so that it can be put back."""
    return {
        "forget": FORGET,
        "dry_run": dry_run,
        "path": plan.path,
        "purge": plan.purge,
        "catalog": [{"table": name, "whose": whose} for name, whose in plan.catalog],
        "lake": [folder.lake for folder in plan.folders],
        "files": len(plan.files),
        "bytes": plan.size_bytes,
        "records": len(plan.records),
        "foreign": list(plan.foreign),
        "inside": list(plan.inside),
        "ways_back": list(back),
        "item": dict(state.item),
    }
