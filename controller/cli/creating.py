"""`dmslake create`: an empty table for which no DMS task writes."""

from __future__ import annotations

from pathlib import Path

import click

from controller.cli.call import Call, not_empty, warn, with_call
from controller.cli.output import Answer, labelled
from controller.edits import is_null
from glue_jobs.aws.translate import translated
from glue_jobs.core.creation import Definition, define, read_schema, table_path
from glue_jobs.core.errors import UsageError
from glue_jobs.core.given import split_key
from glue_jobs.core.partitioning import partition_key_text
from glue_jobs.core.paths import TablePath
from glue_jobs.core.schema import Schema
from glue_jobs.protocol.create import create_table

CREATED = 1


@click.command("create")
@click.argument("path")
@click.option("--schema", required=True, metavar="TEXT|FILE", help='\'id bigint, price decimal(12,2)\', or a .json file: {"id": "bigint"}.')
@click.option(
    "--primary-key", default="null", callback=not_empty, metavar="A,B",
    help="The columns by which rows are told apart; null, as without it: rows can only be added.",
)  # fmt: skip
@click.option(
    "--partition-key", metavar="TEXT", callback=not_empty,
    help="Columns, year(c), month(c), day(c); null for none. [default: year and month of C]",
)  # fmt: skip
@click.option(
    "--timestamp-column", default="", callback=not_empty, metavar="C", help="A column that inserts and updates set to their time."
)
@with_call
def create(call: Call, path: str, schema: str, primary_key: str, partition_key: str | None, timestamp_column: str) -> int:
    """Make an empty table at PATH, its folder in the lake: s3://bucket/prefix/schema/table/, or schema.table below --lake.

    Nothing is read from raw for it: `dmslake insert`, `update` and `delete` change it, `dmslake fake` makes up rows for it. Refused where
    anything is there already; called again after a crash it goes on.
    """
    key = () if is_null(primary_key) else split_key(primary_key)
    definition = define(_schema(schema), key, partition_key, timestamp_column.strip())
    place = table_path(path, call.settings.lake)
    with call.session() as session, translated():
        made = create_table(session.job_context("Create"), place, definition)
    if not call.settings.database:
        warn(["the table is in no catalog, because the setting database is not given"])
    data = {"create": CREATED, "path": str(place), "change": made.change, "note": made.note, **_facts(definition)}
    title = f"{place}: {made.note or 'an empty table was made'}"
    return call.show(Answer(data, (), labelled(_pairs(place, definition, made.change)), [title]))


def _schema(text: str) -> Schema:
    if not text.strip().lower().endswith(".json"):
        return read_schema(text)
    try:
        return read_schema(Path(text.strip()).expanduser().read_text("utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(
            f"the schema's file {text} can't be read: {error}", "bad-schema", "give a file of this machine, or a text"
        ) from error


def _facts(definition: Definition) -> dict[str, object]:
    return {
        "columns": [{"name": column.name, "type": column.type} for column in definition.schema],
        "primary_key": list(definition.primary_key),
        "partition_key": partition_key_text(definition.partitioning),
        "timestamp_column": definition.timestamp_column,
    }


def _pairs(place: TablePath, definition: Definition, change: str) -> list[tuple[str, str]]:
    return [
        ("change", change),
        ("columns", ", ".join(f"{column.name} {column.type}" for column in definition.schema)),
        ("primary key", ",".join(definition.primary_key) or "null: rows can only be added"),
        ("partition key", partition_key_text(definition.partitioning)),
        ("timestamp", definition.timestamp_column),
        ("next", f"dmslake insert {place.in_shell} --row '{{…}}', or dmslake fake {place.in_shell} --rows 10 --insert"),
    ]
