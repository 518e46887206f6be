"""`dmslake adopt`: take over a folder of Parquet that another program wrote; first shown, then done by the job Adopt."""

from __future__ import annotations

import importlib
from typing import Any

import click

from controller.adopting import Draft, adopt_runs, draft_with_source, draft_without_source
from controller.cli.call import Call, not_empty, one_table, warn, with_call
from controller.cli.looking import need
from controller.cli.output import Answer, View, labelled, say, size_text
from controller.cli.running import REPORT_COLUMNS, report_lines, report_row, without_effect
from controller.session import Session
from glue_jobs.aws.translate import translated
from glue_jobs.core.adoption import Adoption, AdoptWish, check_types
from glue_jobs.core.errors import DmslakeError, UsageError, name_table
from glue_jobs.core.partitioning import partition_key_text
from glue_jobs.protocol.adopt import Look, facts, plan_adoption

ADOPT = 1
COLUMNS_SHOWN = 12


@click.command()
@click.argument("path")
@click.option(
    "--primary-key", metavar="A[,B]", callback=not_empty, help="The key's columns; else as the item's PrimaryKey says. null: none."
)
@click.option(
    "--partition-key", metavar="C", callback=not_empty, help="What the folders are: columns, year(c) as NAME …; else as PartitionKey says."
)
@click.option("--column", "columns", multiple=True, metavar="NAME=TYPE", help="The type of a partition column; may stand several times.")
@click.option(
    "--cursor", default="", callback=not_empty, metavar="NAME",
    help="The last CDC file that the table has, 0.parquet for none; else the item's.",
)  # fmt: skip
@click.option(
    "--load-date", default="", callback=not_empty, metavar="TIME",
    help="The time of the newest load file that the table has (UTC); else the item's.",
)  # fmt: skip
@click.option("--out-path", default="", callback=not_empty, metavar="S3URI", help="The table's folder, where the item does not say it.")
@click.option("--no-source", is_flag=True, help="DMS does not write for the table: PATH is its folder in the lake.")
@click.option("--dry-run", is_flag=True, help="Show what would be done, and write nothing; keys that come twice are found too.")
@with_call
def adopt(
    call: Call,
    path: str,
    primary_key: str | None,
    partition_key: str | None,
    columns: tuple[str, ...],
    cursor: str,
    load_date: str,
    out_path: str,
    no_source: bool,
    dry_run: bool,
) -> int:
    """Make the Parquet files that another program wrote the first change of the table PATH, as they are.

    The other program must have been stopped for good. Nothing is moved or rewritten; the files' footers and key columns are read.
    """
    need("pyarrow", "numpy")
    wish = AdoptWish(primary_key, partition_key, _types(columns), cursor.strip(), load_date.strip())
    if no_source and (wish.cursor or wish.load_date):
        raise UsageError("--cursor or --load-date with --no-source", "bad-argument", "without a source there are no raw files to have")
    with call.session() as session:
        if not dry_run:
            session.check_runner()
        started = session.host.now()
        draft = _draft(call, session, path, out_path.strip(), no_source)
        adoption = _planned(call, session, draft, wish, dry_run)
        warn(adoption.warnings if dry_run else ())
        if dry_run:
            return call.show(Answer(_data(adoption, True), (), _plan_lines(adoption), [_title(adoption)]))
        say(_title(adoption), *_plan_lines(adoption))
        with translated():
            draft.write(session.table)
        report = session.execute(adopt_runs(adoption, wish, call.settings.limits), started)
    warn((*without_effect(call), *report.warnings))
    lines = [*report_lines(report), *(_next_lines(adoption) if report.exit_code == 0 else [])]
    data = {**report.to_dict(), "plan": _data(adoption, False)}
    call.output.show(Answer(data, [View(REPORT_COLUMNS, [report_row(table) for table in report.tables])], lines))
    return report.exit_code


def _types(columns: tuple[str, ...]) -> tuple[tuple[str, str], ...]:
    pairs = []
    for text in columns:
        name, equals, kind = text.rpartition("=")
        if not equals:
            raise UsageError(f"--column is {text!r}", "bad-argument", "write it as NAME=TYPE")
        pairs.append((name, kind))
    return check_types(pairs)


def _draft(call: Call, session: Session, path: str, out_path: str, no_source: bool) -> Draft:
    with translated():
        if no_source:
            return draft_without_source(session.table, path, out_path)
        _, state = one_table(session, path, wants=lambda state: False)
        return draft_with_source(state, out_path, call.settings.lake)


def _planned(call: Call, session: Session, draft: Draft, wish: AdoptWish, check_keys: bool) -> Adoption:
    reader: Any = importlib.import_module("glue_jobs.spark.adopt_files").AdoptReader()
    database, clients = call.settings.database, session.clients
    look = Look(clients.s3, clients.glue if database else None, session.table, database, call.settings.limits, reader)
    try:
        with translated():
            return plan_adoption(look, draft.state, wish, check_keys=check_keys).adoption
    except DmslakeError as error:
        raise name_table(error, str(draft.state.path)) from None


# --- in words


def _title(adoption: Adoption) -> str:
    return f"{adoption.state.path}: adopt {adoption.state.lake} as it is"


def _plan_lines(adoption: Adoption) -> list[str]:
    state, place = adoption.state, adoption.place
    partitions = len({file.partition for file in adoption.files})
    keys = f"read: no null, none comes twice in {adoption.rows:,} rows" if adoption.keys_checked else "the run reads them before it commits"
    return labelled(
        [
            ("files", f"{len(adoption.files):,}, {size_text(adoption.size_bytes)}"),
            ("passed over", _some(adoption.passed_over)),
            ("rows", f"{adoption.rows:,}"),
            ("columns", _some([f"{column.name} {column.type}" for column in adoption.schema])),
            ("left out", ", ".join(adoption.left_out)),
            ("primary key", ",".join(state.primary_key) or "null"),
            ("keys", keys if state.primary_key else ""),
            ("partition key", f"{partition_key_text(state.partitioning)}: {partitions:,} partition(s)" if state.partitioning else ""),
            ("load files", f"{len(place.generation.loads)} taken, {len(place.pending_loads)} pending" if state.has_source else ""),
            ("cursor", (place.cursor.rsplit("/", 1)[-1] or "no CDC file applied") if state.has_source else ""),
            ("CDC files", f"{len(place.applied)} applied, {len(place.pending)} pending" if state.has_source else ""),
            ("source", "" if state.has_source else "none: the table is changed by commands only"),
        ]
    )


def _some(texts: Any) -> str:
    more = f", … ({len(texts)} in all)" if len(texts) > COLUMNS_SHOWN else ""
    return ", ".join(list(texts)[:COLUMNS_SHOWN]) + more


def _next_lines(adoption: Adoption) -> list[str]:
    """What happens next."""
    state = adoption.state
    if not state.has_source:
        return [f"the table is dmslake's now: dmslake verify {state.path.in_shell}"]
    if not state.active:
        return [f"to have it kept up: dmslake activate {state.path.in_shell}"]
    pending = len(adoption.place.pending)
    what = f"{pending} pending CDC file(s)" if pending else "whatever DMS writes from now on"
    return [f"the next run goes on with {what}: dmslake run {state.path.in_shell}"]


def _data(adoption: Adoption, dry_run: bool) -> dict[str, Any]:
    return {
        "adopt": ADOPT,
        "dry_run": dry_run,
        "path": str(adoption.state.path),
        **facts(adoption),
        "warnings": list(adoption.warnings),
    }
