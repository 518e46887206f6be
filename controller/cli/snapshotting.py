"""`dmslake snapshot`: the state of a table as of a day, from its DMS files alone."""

from __future__ import annotations

import importlib
from dataclasses import asdict
from typing import Any

import click

from controller.cli.call import Call, not_empty, with_call
from controller.cli.output import Answer, count_text, labelled, problem_lines, size_text
from controller.session import Session
from controller.snapshotting import Snapshotted, plan_here, take_snapshot
from glue_jobs.aws.translate import translated
from glue_jobs.core.snapshot_plan import Manifest, SnapshotPlan, layout_of
from glue_jobs.core.snapshot_sources import LAYOUTS, SnapshotWish, read_wish

SNAPSHOT = 1


@click.command("snapshot")
@click.argument("table")
@click.option("--sources", default="", callback=not_empty, metavar="FILE", help="The sources file, JSON or YAML, in which TABLE stands.")
@click.option("--to", default="", callback=not_empty, metavar="S3", help="Where snapshots are: s3://bucket/prefix/.")
@click.option("--run-date", default="", callback=not_empty, metavar="DATE", help="As of the end of this day, UTC. [default: today]")
@click.option("--layout", type=click.Choice(LAYOUTS), default="flat", show_default=True, help="One folder, or partitions by date.")
@click.option(
    "--keep", type=click.IntRange(0), default=0, metavar="N", help="Keep N versions, remove older ones that nothing points to; 0: keep all."
)
@click.option("--full", is_flag=True, help="Read all raw files, also where a snapshot before could be gone on from.")
@click.option(
    "--path", default="", callback=not_empty, metavar="S3", help="Where DMS writes the table; instead of the sources file, or over it."
)
@click.option("--primary-keys", default="", callback=not_empty, metavar="A,B", help="The columns that identify a row.")
@click.option("--cdc-start-date", default="", callback=not_empty, metavar="DATE", help="CDC files from this day on count.")
@click.option(
    "--partition-date", default="", callback=not_empty, metavar="COLUMN",
    help="For --layout dated: a date of the data; without it by run date.",
)  # fmt: skip
@click.option("--schema", default="", callback=not_empty, metavar="COLUMNS", help="The columns of every file: 'id bigint, name string'.")
@click.option("--timestamp-column", default="", callback=not_empty, metavar="COLUMN", help="DMS's TimestampColumnName.")
@click.option(
    "--last-change-column", default="", callback=not_empty, metavar="NAME", help="The output's column for it. [default: last_change]"
)
@click.option("--dry-run", is_flag=True, help="Show what would be read, and write nothing.")
@with_call
def snapshot(call: Call, table: str, sources: str, dry_run: bool, keep: int, full: bool, **given: Any) -> int:
    """Write the state of every key of TABLE as of a day, from DMS's files alone, and point the Glue table to it.

    It needs no lake table and no item. The Glue table is <table>_snapshot in --database (`default` where none is set).
    """
    texts = {name: str(value) for name, value in given.items()}
    texts.update(table=table, keep=str(keep), full="true" if full else "false", database=call.settings.database)
    with call.session() as session:
        wish = _wish(session, sources, texts)
        if dry_run:
            return call.show(_planned(wish, plan_here(session, wish)))
        done = take_snapshot(session, wish)
    call.output.show(_done(wish, done))
    return done.exit_code


def _wish(session: Session, sources: str, texts: dict[str, str]) -> SnapshotWish:
    file: Any = importlib.import_module("glue_jobs.spark.sources_file")
    with translated():
        entry = file.read_entry(session.clients.s3, sources, texts["table"])
    return read_wish(texts, entry, session.host.now().date())


def _head(wish: SnapshotWish) -> dict[str, Any]:
    return {
        "snapshot": SNAPSHOT, "table": wish.source.table, "path": str(wish.source.path), "run_date": wish.run_date.isoformat(),
        "catalog_table": f"{wish.database}.{wish.name}", "folder": str(wish.folder), "layout": layout_of(wish),
    }  # fmt: skip


def _planned(wish: SnapshotWish, plan: SnapshotPlan) -> Answer:
    counted = plan.counted
    size = sum(file.size for file in plan.fresh)
    facts = {
        "mode": plan.mode, "reason": plan.reason, "load_files": len(counted.loads), "cdc_files": len(counted.cdc),
        "other_days": counted.later, "to_read": len(plan.fresh), "bytes": size, "base": plan.base.version.name if plan.base else "",
    }  # fmt: skip
    days = f", {counted.later:,} of other days do not count" if counted.later else ""
    pairs = [
        ("as of", f"{wish.run_date}, {layout_of(wish)}, in {wish.database}.{wish.name}"),
        ("raw files", f"{len(counted.loads):,} load file(s), {len(counted.cdc):,} CDC file(s){days}"),
        ("mode", plan.mode + (f": {plan.reason}" if plan.reason else f", on the version {facts['base']}")),
        ("to read", f"{len(plan.fresh):,} file(s)" + (f", {size_text(size)}" if size else "")),
    ]
    title = f"{wish.source.table}: a snapshot would be made of this; nothing was written"
    return Answer({**_head(wish), "dry_run": True, **facts}, (), labelled(pairs), [title])


def _done(wish: SnapshotWish, done: Snapshotted) -> Answer:
    manifest, problem = done.manifest, done.problem
    if manifest is None:
        assert problem is not None
        error = {"code": problem.code, "message": problem.message, "todo": problem.todo}
        title = f"{wish.source.table}: the snapshot was not made"
        data = {**_head(wish), "dry_run": False, "outcome": "failed", "error": error}
        return Answer(data, (), problem_lines(wish.source.table, "failed", problem.message, problem.todo), [title])
    facts = _facts(manifest)
    pairs = [
        ("as of", f"{manifest.run_date}, {manifest.layout}, in {wish.database}.{wish.name}"),
        ("rows", f"{manifest.rows:,}"),
        ("mode", manifest.mode + (f": {manifest.reason}" if manifest.reason else f", on the version {manifest.base}")),
        ("read", f"{manifest.counts.input_rows:,} row(s) of {len(manifest.inputs):,} raw file(s) that count"),
        ("backward", f"{manifest.counts.backward:,} row(s) have a time before their predecessor's" if manifest.counts.backward else ""),
        ("written", f"{len(manifest.written):,} file(s){_size(manifest)}, version {manifest.version.name}"),
        ("partitions", count_text(len(manifest.partitions))),
    ]
    return Answer({**_head(wish), "dry_run": False, "outcome": "committed", **facts}, (), labelled(pairs))


def _size(manifest: Manifest) -> str:
    size = sum(file.size_bytes for file in manifest.written)
    return f", {size_text(size)}" if size else ""


def _facts(manifest: Manifest) -> dict[str, Any]:
    return {
        "version": manifest.version.name, "run_id": manifest.run_id, "mode": manifest.mode, "reason": manifest.reason,
        "base": manifest.base, "rows": manifest.rows, "inputs": len(manifest.inputs),
        "files": len(manifest.files), "files_written": len(manifest.written),
        "partitions": [list(pair) for pair in manifest.partitions], "counts": asdict(manifest.counts),
    }  # fmt: skip
