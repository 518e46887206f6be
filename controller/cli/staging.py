"""`dmslake commit | discard`: what becomes of a staged change; done in this process, under the table's lease."""

from __future__ import annotations

from typing import Any

import click

from controller.cli.call import Call, one_table, warn, with_call
from controller.cli.output import Answer, say_error
from glue_jobs.core.errors import name_table
from glue_jobs.core.record import ChangeRecord
from glue_jobs.core.record import summary as record_summary
from glue_jobs.core.staged import is_paused_for
from glue_jobs.core.state import TableState
from glue_jobs.protocol.job import run_here
from glue_jobs.protocol.stage import CommitStaged, DiscardStaged

COMMIT, DISCARD = 1, 1
REWRITES = ("schema", "widen", "repartition", "rekey")


@click.command()
@click.argument("path")
@click.argument("change")
@with_call
def commit(call: Call, path: str, change: str) -> int:
    """Make the staged CHANGE of the table PATH count, as `dmslake show` shows it.

    Refused, and nothing changed, if another change came since it was staged, the table's item was edited, or uploads are gone.
    """
    act = CommitStaged(change.strip())
    state, code = _do(call, path, "Commit", act)
    if act.record is None or code:
        return code
    return call.show(_committed(state, act.record))


@click.command()
@click.argument("path")
@click.argument("change")
@with_call
def discard(call: Call, path: str, change: str) -> int:
    """Drop the staged CHANGE of the table PATH for good: its uploads go, and so does the pause that it brought."""
    act = DiscardStaged(change.strip())
    state, code = _do(call, path, "Discard", act)
    if code:
        return code
    lines = [f"the staged change {act.change} of {state.path} is discarded; {act.aborted} upload(s) were aborted"]
    if act.lifted:
        lines.append(f"the table is not paused any more: {_next_text(act.kind)}")
    data = {"discard": DISCARD, "path": str(state.path), "change": act.change, "aborted": act.aborted, "unpaused": act.lifted}
    return call.show(Answer(data, (), lines))


def _next_text(kind: str) -> str:
    """What the next run does after a discard of a staged change of this kind."""
    if kind == "truncate":
        return "the next run empties it, unless you take OnRawFilesGone from its item"
    return "the next run does what was asked of it" if kind in REWRITES else "the next run takes its raw files"


def _do(call: Call, path: str, job: str, act: CommitStaged | DiscardStaged) -> tuple[TableState, int]:
    """(the table before, the exit code); an error is printed."""
    call.settings.require("database")
    with call.session() as session:
        _, state = one_table(session, path, wants=lambda state: False)
        ended = run_here(session.job_context(job), state.path, act)
    warn(act.warnings)
    if ended.error is not None:
        say_error(name_table(ended.error, str(state.path)))
    return state, ended.code


def _committed(state: TableState, record: ChangeRecord) -> Answer:
    counts = record.counts
    done = f"{counts.inserted:,} inserted, {counts.updated:,} updated, {counts.deleted:,} deleted; {counts.table_rows:,} rows in the table"
    path = state.path.in_shell
    lines = [f"the staged change {record.staged_as} of {state.path} is committed as change {record.id}", done]
    if state.paused and is_paused_for(state, record.staged_as):
        lines.append("the table is not paused any more")
    lines.append(f"to undo it: dmslake rollback {path} --undo {record.id}")
    data: dict[str, Any] = {"commit": COMMIT, "path": str(state.path), "staged": record.staged_as, **record_summary(record)}
    return Answer(data, (), lines)
