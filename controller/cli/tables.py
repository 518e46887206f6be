"""`dmslake tables | activate | deactivate`: which tables there are, and which of them are kept up."""

from __future__ import annotations

import click

from controller import edits
from controller.cli.asking import write_edit
from controller.cli.call import Call, not_empty, one_table, warn, with_call
from controller.cli.output import Answer, View
from controller.cli.running import activate_lines
from controller.gather import Facts
from glue_jobs.core.state import TableState


@click.command()
@with_call
def tables(call: Call) -> int:
    """List the tables below --raw and those of the state table. New ones get an inactive item (if --lake is known)."""
    with call.session() as session:
        gathered = session.gather(create=bool(call.settings.raw and call.settings.lake), everything=True, wants=lambda state: False)
    warn(gathered.warnings)
    if call.settings.raw and not call.settings.lake and any(fact.is_new for fact in gathered.tables):
        warn(["new tables got no item, because --lake is not set"])
    data = {"tables": [_data(fact) for fact in gathered.tables], "warnings": list(gathered.warnings)}
    rows = [
        [str(_data(fact)[name] or "") for name in ("path", "state", "primary_key", "partition_key", "out_path")] for fact in gathered.tables
    ]
    idle = [fact.state for fact in gathered.tables if fact.state and fact.state.has_source and not fact.state.active]
    lines = activate_lines([(str(state.path), state.has_key) for state in idle])
    return call.show(Answer(data, [View(("table", "state", "primary key", "partition key", "lake table"), rows)], lines))


def _data(fact: Facts) -> dict[str, object]:
    state = fact.state
    if state is None:
        return {"path": fact.path, "state": f"error: {fact.problem.message if fact.problem else ''}", **dict.fromkeys(_NAMES)}
    return {
        "path": fact.path, "state": _word(state), "primary_key": ",".join(state.primary_key),
        "partition_key": _text(state, "PartitionKey"), "out_path": state.out_path, "is_new": fact.is_new,
    }  # fmt: skip


_NAMES = ("primary_key", "partition_key", "out_path", "is_new")


def _text(state: TableState, name: str) -> str:
    value = str(state.item.get(name) or "")
    return "" if value.lower() == "null" else value


def _word(state: TableState) -> str:
    if not state.has_source:
        return "no source"
    if not state.active:
        return "inactive"
    if state.paused:
        return "paused"
    if state.blocked:
        return "blocked"
    return "active" if state.head else "not loaded"


@click.command()
@click.argument("path")
@click.option(
    "--primary-key", metavar="A,B", callback=not_empty,
    help="The columns that identify a row; null: none, then inserts are only appended.",
)  # fmt: skip
@click.option("--partition-key", metavar="C", callback=not_empty, help="Columns or year(c), month(c), day(c), comma separated; null: none.")
@with_call
def activate(call: Call, path: str, primary_key: str | None, partition_key: str | None) -> int:
    """Have the table PATH kept up: loaded, and every change applied, by each run. Lifts a pause too."""
    with call.session() as session:
        _, state = one_table(session, path, wants=lambda state: False)
        edit = edits.activate(state, primary_key, partition_key, call.settings.lake)
        return call.show(write_edit(session, state, edit))


@click.command()
@click.argument("path")
@with_call
def deactivate(call: Call, path: str) -> int:
    """Leave the table PATH as it is from now on; nothing is deleted."""
    with call.session() as session:
        _, state = one_table(session, path, wants=lambda state: False)
        return call.show(write_edit(session, state, edits.deactivate(state)))
