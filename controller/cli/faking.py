"""`dmslake fake`: made-up rows that a table would take: printed, written to a file, or inserted."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import click

from controller.cli.call import Call, not_empty, with_call
from controller.cli.editing import Wish, edit_rows
from controller.cli.looking import looking
from controller.cli.output import Answer
from controller.cli.reading import csv_field, print_json, put
from glue_jobs.core.errors import UsageError
from glue_jobs.core.printable import json_text
from glue_jobs.core.row_edit import INSERT, ROW_ENDINGS, RowEdit

FAKED = 1


@click.command("fake")
@click.argument("path")
@click.option("--rows", "count", required=True, type=click.IntRange(0), metavar="N", help="So many rows.")
@click.option("--seed", default=0, metavar="N", help="The same seed gives the same rows while the table is the same. [default: 0]")
@click.option("--insert", "insert_now", is_flag=True, help="Insert them.")
@click.option(
    "--out", default="", callback=not_empty, metavar="FILE", help=f"Write them to a file of this machine: {', '.join(ROW_ENDINGS)}."
)
@with_call
def fake(call: Call, path: str, count: int, seed: int, insert_now: bool, out: str) -> int:
    """Make up rows for the table PATH by its columns' names and types: with keys that it has not, sometimes null where a column may be.

    Without --insert and --out they are printed, a JSON object per line, as `dmslake insert PATH --rows -` reads them; with --output json
    as one document.
    """
    if insert_now and out:
        raise UsageError("--insert with --out", "bad-argument", "give one of them; `dmslake insert PATH --rows FILE` inserts a file")
    if out and not out.lower().endswith(ROW_ENDINGS):
        raise UsageError(f"--out is {out!r}", "bad-argument", f"its name must end in {' or '.join(ROW_ENDINGS)}")
    with looking(call, path) as looked:
        snapshot, place = looked.at("").snapshot, str(looked.state.path)
        if snapshot.is_empty:
            raise UsageError(f"{place} has no columns yet", "not-loaded", "`dmslake run PATH` loads it, once it is active")
        rows = importlib.import_module("glue_jobs.spark.fake_rows").fake_rows(looked.table(snapshot), snapshot, count, seed)
    if insert_now:
        job: Any = importlib.import_module("glue_jobs.apply")
        return edit_rows(call, place, Wish(RowEdit(INSERT), give=lambda edit, settings: job.edit_rows_of(rows, edit, settings)))
    if out:
        return _write(call, place, rows, snapshot.schema, out)
    if call.format == "json":
        kinds = [{"name": column.name, "type": column.type} for column in snapshot.schema]
        print_json({"fake": FAKED, "path": place, "columns": kinds}, rows.column_names, iter([_plain(rows)]))
        return 0
    put("".join(f"{line}\n" for line in _lines(rows)))
    return 0


def _write(call: Call, place: str, rows: Any, schema: Any, out: str) -> int:
    """Write the rows to a file; UsageError where it can't be."""
    data, count = _bytes(rows, schema, out.lower()), rows.num_rows
    try:
        Path(out).expanduser().write_bytes(data)
    except OSError as error:
        raise UsageError(f"{out} can't be written: {error.strerror}", "bad-argument", "give --out another file") from error
    return call.show(Answer({"fake": FAKED, "path": place, "rows": count, "out": out}, (), [f"{count:,} row(s) in {out}"]))


def _plain(rows: Any) -> list[tuple[Any, ...]]:
    found: list[tuple[Any, ...]] = importlib.import_module("glue_jobs.spark.plain_rows").plain_rows(rows)
    return found


def _lines(rows: Any) -> list[str]:
    return [json_text(dict(zip(rows.column_names, row))) for row in _plain(rows)]


def _bytes(rows: Any, schema: Any, name: str) -> bytes:
    """The rows as a file of the kind that its name says."""
    if name.endswith(".parquet"):
        data: bytes = importlib.import_module("glue_jobs.spark.apply_rows").parquet_bytes(rows, schema)
        return data
    if name.endswith(".csv"):
        lines = [",".join(map(csv_field, row)) for row in [tuple(rows.column_names), *_plain(rows)]]
    else:
        lines = _lines(rows)
    return "".join(f"{line}\n" for line in lines).encode()
