"""`dmslake generate-feed`: what DMS would write, made of a table that has versions; as the job GenerateFeed does, in this process."""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable
from typing import Any

import click

from controller.cli.call import Call, not_empty, with_call
from controller.cli.looking import need
from controller.cli.output import Answer, labelled
from glue_jobs.core.feed_wish import DEFAULTS, FILE_NAMES, READERS, read_feed_wish

GENERATED = 1
OPTIONS: tuple[tuple[str, str, str], ...] = (
    ("staging", "FOLDER", "Where the feed goes: a folder, or s3://bucket/prefix/."),
    ("delta", "FOLDER", "The Delta table, local or s3://; or give PATH, a lake table."),
    ("primary_key", "A,B", "The key of the Delta table."),
    ("version", "N", "Of the Delta table. [default: 0]"),
    ("as_of", "CHANGE|previous|TIME", "Of the lake table; else it is taken as it is now."),
    ("from", "VERSION", "Send what lies between two versions or states, and make nothing up."),
    ("to", "VERSION", "The later one. [default: the last]"),
    ("inserts", "N|N%", "Rows to insert; a share is of the version's rows."),
    ("updates", "N|N%", "Keys to update."),
    ("updated_twice", "N|N%", "How many of these are updated again, later."),
    ("deletes", "N|N%", "Keys to delete."),
    ("deleted_inserts", "N|N%", "How many of these were inserted in the same feed. [default: 1 where there is an insert]"),
    ("seed", "N", "The same seed gives the same files."),
    ("start", "TIME", "When the changes begin. [default: when the version was made]"),
    ("interval_seconds", "N", "Between two files."),
    ("files", "N", "So many files at most; one without rows is left out."),
    ("expected", "FILE", "Also write the rows that the table must have after the feed, as Parquet."),
    ("timestamp_column", "NAME", "What TimestampColumnName is in DMS."),
    ("drop", "A,B", "Columns of the table that are not sent."),
    ("created_column", "NAME", "An insert sets it, an update leaves it."),
    ("modified_column", "NAME", "Inserts and updates set it."),
)
Command = Callable[..., Any]


def feed_options(command: Command) -> Command:
    """Add an option for every argument of the job."""
    command = click.option("--full-load", "full_load", is_flag=True, help="Also write the version itself, as load files.")(command)
    for name, allowed, text in (("reader", READERS, "What reads the Delta table."), ("file_name", FILE_NAMES, "How files are called.")):
        command = click.option(flag(name), name, type=click.Choice(allowed), help=f"{text} [default: {DEFAULTS[name]}]")(command)
    for name, metavar, text in reversed(OPTIONS):
        default = f" [default: {DEFAULTS[name]}]" if DEFAULTS[name] else ""
        command = click.option(flag(name), name, callback=not_empty, metavar=metavar, help=text + default)(command)
    return command


def flag(name: str) -> str:
    return "--" + name.replace("_", "-")


@click.command("generate-feed")
@click.argument("path", default="", callback=not_empty)
@feed_options
@with_call
def generate_feed(call: Call, path: str, full_load: bool, **given: Any) -> int:
    """Write the files that DMS would: changes made up of a version's rows, or what lies between two versions.

    The table is a Delta table (--delta), or the lake table PATH. It is only read. Files are <staging>/yyyy/mm/dd/<name of a CDC file>, with
    the columns Op and dms_timestamp before the table's own.
    """
    texts = {name: text for name, text in given.items() if text is not None}
    wish = read_feed_wish({**texts, "path": path, "full_load": str(full_load).lower()})
    need("pyarrow", "numpy")
    job: Any = importlib.import_module("glue_jobs.generate_feed")
    facts: dict[str, Any] = job.generate(wish, os.environ, {"state_table": call.settings.state_table}).facts()
    return call.show(Answer({"generate_feed": GENERATED, **facts}, (), labelled(_pairs(facts)), [_title(facts)]))


def _title(facts: dict[str, Any]) -> str:
    if not facts["files"]:
        return f"{facts['source']}: no row changed between the two; no file was written"
    return f"{facts['source']}: {facts['files']:,} file(s) below {facts['staging']}"


def _pairs(facts: dict[str, Any]) -> list[tuple[str, str]]:
    load = f"{facts['load_rows']:,} row(s) in {facts['load_files']:,} file(s)" if facts["load_files"] else ""
    counts = ", ".join(f"{facts[name]:,} {name}" for name in ("inserts", "updates", "deletes") if facts[name])
    return [
        ("full load", load),
        ("rows", counts),
        ("first file", facts["first_file"] or ""),
        ("last file", facts["last_file"] or ""),
        ("seed", "" if facts["seed"] is None else str(facts["seed"])),
        ("found there", f"{facts['found_unchanged']:,} file(s), the same bytes" if facts["found_unchanged"] else ""),
        ("expected", f"{facts['expected_rows']:,} row(s)" if facts["expected_rows"] is not None else ""),
    ]
