"""`dmslake feed`: files as DMS writes them, of a table that is made up. Loaded when it is called: it needs more packages."""

from __future__ import annotations

import importlib
import os
import shlex
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import click

from controller.cli.call import Call, not_empty, with_call
from controller.cli.looking import need
from controller.cli.output import Answer, labelled
from glue_jobs.core.errors import UsageError

FED = 1


@click.command("feed")
@click.option("--to", required=True, metavar="FOLDER", help="The table's raw folder: s3://bucket/prefix/schema/table/, or a local one.")
@click.option("--seed", type=int, default=1, show_default=True, help="The same seed and options give the same files.")
@click.option("--rows", type=int, default=100, show_default=True, help="Rows of the full load.")
@click.option("--rounds", type=int, default=3, show_default=True, help="Rounds of changes, after the load.")
@click.option("--changes", type=int, default=60, show_default=True, help="Changes in a round.")
@click.option("--files", type=int, default=3, show_default=True, help="CDC files in a round, if no folder or column asks for more.")
@click.option("--load-files", type=int, default=1, show_default=True, help="Load files; of more than 9 the names count in hexadecimal.")
@click.option("--round", "only", type=int, help="Write only this round, 0 for the load; run `dmslake run` between them. [default: all]")
@click.option("--key", type=click.Choice(["single", "composite"]), default="single", show_default=True, help="Columns of the primary key.")
@click.option(
    "--layout", default="", callback=not_empty, metavar="NAME,…",
    help="Folders and names: docs/dms-feed.md lists them. [default: flat,dash,one-folder]",
)  # fmt: skip
@click.option("--format", default="parquet", callback=not_empty, show_default=True, help="The files' format: docs/dms-feed.md lists all.")
@click.option("--timestamp-column", default="dms_timestamp", metavar="NAME", show_default=True, help="The commit timestamp; '' for none.")
@click.option("--ties", type=float, default=0.5, show_default=True, help="Share of changes with the commit timestamp of the one before.")
@click.option("--duplicates", is_flag=True, help="DMS starts again at earlier points: rows and files come twice.")
@click.option("--late", is_flag=True, help="In each round but the last a file is missing, and comes with the next.")
@click.option(
    "--reload", type=click.Choice(["kept", "gone"]), default=None, help="The middle round loads anew; old CDC files are kept or gone."
)
@click.option("--schema-changes", is_flag=True, help="A column grows, then one is dropped, then one added: one of these in each round.")
@click.option("--before-images", is_flag=True, help="BI_ columns; keys change, too.")
@click.option("--key-only-deletes", is_flag=True, help="A D has nothing but the key.")
@click.option("--change-sequence", is_flag=True, help="A column AR_H_CHANGE_SEQ.")
@click.option("--no-load-op", "op", flag_value="cdc", help="No Op in load files: IncludeOpForFullLoad is false.")
@click.option("--no-op", "op", flag_value="none", help="No Op in any file, and inserts only: CdcInsertsOnly.")
@click.option("--header", is_flag=True, help="CSV begins with the names of the columns: AddColumnName.")
@click.option(
    "--start", callback=not_empty, metavar="TIME",
    help="When the first change is committed; CDC files are named by it, in UTC. [default: 2024-09-29T23:59Z]",
)  # fmt: skip
@click.option(
    "--truth", type=click.Path(dir_okay=False), callback=not_empty, metavar="FILE", help="Also write the rows that the lake must have."
)
@with_call
def feed(
    call: Call,
    to: str,
    only: int | None,
    truth: str | None,
    start: str | None,
    op: str | None,
    reload: str | None,
    **given: Any,
) -> int:
    """Write a full load and rounds of changes as DMS would, of a table that is made up, with every type that DMS writes.

    The table, and what happens in it, follow from the seed. For the changes of a table that you have: `dmslake generate-feed`.
    """
    need("pyarrow", "numpy", "pandas")
    wish: Any = importlib.import_module("infra.local.feed.wish")
    command: Any = importlib.import_module("infra.local.feed.command")
    began = {} if start is None else {"start": _time(start)}
    wanted = wish.FeedWish(op=op or "all", reload=reload or "", **began, **given)
    fed: Any = command.feed(wanted, to, os.environ, only=only, truth=Path(truth) if truth else None)
    lines = [f"round {number}: {sentence}" if number else sentence for number, said in fed.said.items() for sentence in said]
    return call.show(Answer({"feed": FED, **fed.facts()}, (), [*lines, "", *labelled(_pairs(fed))], [f"{fed.files} file(s) below {to}"]))


def _time(text: str) -> datetime:
    try:
        found = datetime.fromisoformat(text.replace("Z", "+00:00"))
    except ValueError as error:
        raise UsageError(f"--start: expected a time as 2024-05-01T12:00:00Z, found {text!r}", "bad-feed") from error
    return found if found.tzinfo else found.replace(tzinfo=timezone.utc)


def _pairs(fed: Any) -> list[tuple[str, str]]:
    held = "" if fed.is_current else " (a file is still missing)"
    texts = [f"{name}={value}" for name, value in fed.item.items()]
    return [
        ("rows written", f"{fed.rows:,}"),
        ("removed", f"{fed.removed:,} file(s)" if fed.removed else ""),
        ("lake", f"{fed.truth_rows:,} row(s){held}"),
        ("item", shlex.join(texts)),
    ]
