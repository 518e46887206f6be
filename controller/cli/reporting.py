"""`dmslake report`: how all tables stand and what happened to them, as one HTML file."""

from __future__ import annotations

import importlib
import importlib.util
from pathlib import Path
from typing import Any

import click

from controller.cli.call import Call, warn, with_call
from controller.cli.output import Answer, size_text
from controller.session import Session
from glue_jobs.aws.objects import write_bytes
from glue_jobs.aws.translate import translated
from glue_jobs.core.errors import ConfigurationError, DmslakeError, UsageError, to_install
from glue_jobs.core.paths import S3Uri

REPORT = 1
HTML = "text/html; charset=utf-8"


@click.command()
@click.option("--out", required=True, metavar="FILE", help="Where to write it: FILE.html, or s3://bucket/key.html.")
@click.option("--changes", type=click.IntRange(1, 50), default=20, show_default=True, metavar="N", help="The last N changes of each table.")
@click.option(
    "--rows", type=click.IntRange(0, 50), default=0, show_default=True, metavar="N", help="Up to N rows of each kind that a change touched."
)
@with_call
def report(call: Call, out: str, changes: int, rows: int) -> int:
    """Write one HTML file that shows all tables, what needs a person first, and what their last changes did.

    The file needs no network and asks for none. It has names and counts; values of rows only with --rows,
    but for those in names of partitions and in messages of errors.
    """
    target = _target(out)
    if importlib.util.find_spec("jinja2") is None:
        raise ConfigurationError("the package jinja2, which makes the pages, is not installed", "no-package", to_install("cli"))
    pages: Any = importlib.import_module("controller.pages.pages")
    reports: Any = importlib.import_module("controller.pages.report")
    render: Any = importlib.import_module("controller.pages.render")
    with call.session() as session:
        made = reports.read_report(pages.Pages(session), changes, rows)
        data = render.render_report(made).encode("utf-8")
        _write(session, target, data)
    warn(made.overview.warnings)
    totals = made.overview.totals
    answer = {
        "report": REPORT, "out": str(target), "bytes": len(data), "tables": totals.tables, "table_pages": len(made.tables),
        "change_pages": len(made.changes), "states": totals.states, "notes": list(made.notes),
    }  # fmt: skip
    done = f"{target}: {totals.tables:,} table(s), {len(made.changes):,} change(s), {size_text(len(data))}"
    return call.show(Answer(answer, (), [done, *made.notes]))


def _target(out: str) -> Path | S3Uri:
    """Where the report goes; UsageError for what is no such place."""
    if out.startswith(("s3://", "s3a://", "s3n://")):
        uri = S3Uri.parse(out)
        if not uri.key or uri.key.endswith("/"):
            raise UsageError(f"--out {out}: that is a folder", "bad-argument", "name the object too: s3://bucket/key.html")
        return uri
    path = Path(out)
    if path.is_dir():
        raise UsageError(f"--out {out}: that is a folder", "bad-argument", "name the file too: report.html")
    return path


def _write(session: Session, target: Path | S3Uri, data: bytes) -> None:
    if isinstance(target, S3Uri):
        with translated():
            write_bytes(session.clients.s3, target.bucket, target.key, data, HTML)
        return
    try:
        target.write_bytes(data)
    except OSError as error:
        raise DmslakeError(f"can't write {target}: {error.strerror}", "report-not-written", "give another file with --out") from error
