"""`dmslake backfill-history`: a table's history built anew from the raw files; first shown, then done by the job BackfillHistory."""

from __future__ import annotations

from typing import Any

import click

from controller.backfilling import backfill_run, look
from controller.cli.call import Call, one_table, warn, with_call
from controller.cli.output import Answer, View, labelled, say, size_text
from controller.cli.running import REPORT_COLUMNS, report_lines, report_row, without_effect
from glue_jobs.aws.translate import translated
from glue_jobs.core.backfill import Backfill
from glue_jobs.core.errors import DmslakeError, name_table
from glue_jobs.protocol.backfill import left_out_text

BACKFILL = 1


@click.command("backfill-history")
@click.argument("path")
@click.option("--dry-run", is_flag=True, help="Show what would be done, and write nothing.")
@with_call
def backfill_history(call: Call, path: str, dry_run: bool) -> int:
    """Build the history table of the table PATH anew from all raw files that were applied, and from the rows that persons gave.

    The table itself stays as it is. It is one change: `dmslake rollback` brings the history back that was there.
    """
    with call.session() as session:
        if not dry_run:
            session.check_runner()
        started = session.host.now()
        _, state = one_table(session, path, wants=lambda state: False)
        try:
            with translated():
                plan = look(session.clients.s3, state)
        except DmslakeError as error:
            raise name_table(error, str(state.path)) from None
        title = f"{state.path}: build the history table anew"
        warn([left_out_text(plan.rebuild)] if plan.rebuild.left_out else ())
        if dry_run:
            return call.show(Answer(_data(plan, True), (), _lines(plan), [title, "nothing was changed"]))
        say(title, *_lines(plan))
        report = session.execute(backfill_run(plan), started)
    warn((*without_effect(call), *report.warnings))
    data = {**report.to_dict(), "plan": _data(plan, False)}
    call.output.show(Answer(data, [View(REPORT_COLUMNS, [report_row(table) for table in report.tables])], report_lines(report)))
    return report.exit_code


def _lines(plan: Backfill) -> list[str]:
    facts = plan.facts()
    return labelled(
        [
            ("begins", f"with change {facts['begins']} of {facts['begins_at'][:19].replace('T', ' ')} UTC"),
            ("changes", f"{facts['changes']:,}"),
            ("raw files", f"{facts['raw_files']:,} read again, {size_text(facts['raw_bytes'])}"),
            ("replaced", f"{facts['versions_replaced']:,} row version(s)" if plan.history.files else "nothing: it begins now"),
        ]
    )


def _data(plan: Backfill, dry_run: bool) -> dict[str, Any]:
    return {"backfill": BACKFILL, "dry_run": dry_run, "path": str(plan.state.path), "head": plan.snapshot.change, **plan.facts()}
