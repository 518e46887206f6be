"""`dmslake diff`: what lies between two states of a table, in its columns and in its rows, without Spark."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from typing import Any

import click

from controller.cli.call import MOST, Call, not_empty, with_call
from controller.cli.looking import Looked, cell, looking, state_data, state_text
from controller.cli.output import Answer, View, aligned, labelled
from controller.form import columns_apart
from glue_jobs.core.snapshot import Snapshot

DIFF = 1
SHOWN = 10  # rows of each kind
ARROW = " → "


@click.command("diff")
@click.argument("path")
@click.argument("a", callback=not_empty)
@click.argument("b", default="", callback=not_empty)
@click.option("--limit", type=click.IntRange(0, MOST), default=SHOWN, show_default=True, metavar="N", help="So many rows of each kind.")
@with_call
def diff(call: Call, path: str, a: str, b: str, limit: int) -> int:
    """Show what lies between the states A and B of the table PATH: columns, rows inserted, updated and deleted.

    A and B are changes, times or `previous`; without B, the table as it is now. Only files that differ are read. If A is the later
    one, it shows what going back would do.
    """
    with looking(call, path) as looked:
        before, after = looked.at(a).snapshot, looked.at(b).snapshot
        differences: Any = importlib.import_module("glue_jobs.spark.differences")
        found = differences.difference(looked.place, str(looked.state.path), before, after, limit)
        answer = Answer(_data(looked, before, after, found), (), _lines(looked, before, after, found))
    return call.show(answer)


def _data(looked: Looked, before: Snapshot, after: Snapshot, found: Any) -> dict[str, Any]:
    def named(row: Sequence[Any]) -> dict[str, Any]:
        return dict(zip(found.columns, row))

    updates = [
        {"before": named(old), "after": named(new), "changed": [name for name, one, other in zip(found.columns, old, new) if one != other]}
        for old, new in found.updated
    ]
    return {
        "diff": DIFF,
        "path": str(looked.state.path),
        "from": state_data(before),
        "to": state_data(after),
        "schema": columns_apart(before, after),
        "key": list(found.key),
        "not_compared": list(found.incomparable),
        "counts": {"insert": found.inserts, "update": found.updates, "delete": found.deletes},
        "sample": {"insert": list(map(named, found.inserted)), "update": updates, "delete": list(map(named, found.deleted))},
        "files_read": found.files,
    }


def _lines(looked: Looked, before: Snapshot, after: Snapshot, found: Any) -> list[str]:
    counts = f"{found.inserts:,} inserted, {found.updates:,} updated, {found.deletes:,} deleted"
    pairs = [
        ("table", str(looked.state.path)),
        ("from", state_text(before)),
        ("to", state_text(after)),
        *_form_pairs(columns_apart(before, after)),
        ("rows", f"{before.rows:,}{ARROW}{after.rows:,}: {counts}"),
        ("without a key", "" if found.key else "an update is a delete and an insert"),
        ("not compared", ", ".join(f"{cell(name)} (its types have nothing in common)" for name in found.incomparable)),
        ("read", f"{found.files:,} file(s) that differ"),
    ]
    lines = labelled(pairs)
    lines += _rows_lines("inserted", found.inserts, found.columns, [list(map(cell, row)) for row in found.inserted])
    lines += _rows_lines("updated", found.updates, found.columns, [[*map(_updated, old, new)] for old, new in found.updated])
    return lines + _rows_lines("deleted", found.deletes, found.columns, [list(map(cell, row)) for row in found.deleted])


def _form_pairs(form: dict[str, Any]) -> list[tuple[str, str]]:
    """What differs in columns, key and partitions, as labels and texts."""
    plain = [(word, ", ".join(f"{cell(item['name'])} {item['type']}" for item in form[word])) for word in ("added", "dropped")]
    grown = ", ".join(f"{cell(item['name'])} {item['from']}{ARROW}{item['to']}" for item in form["changed"])
    others = [
        (name.replace("_", " "), f"{form[name]['from']}{ARROW}{form[name]['to']}") for name in ("primary_key", "partitions") if name in form
    ]
    return [*((f"columns {word}", text) for word, text in plain), ("columns changed", grown), *others]


def _updated(old: Any, new: Any) -> str:
    """A cell of an updated row: both values where they differ."""
    return cell(new) if old == new else f"{cell(old)}{ARROW}{cell(new)}"


def _rows_lines(what: str, count: int, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """A sample with its heading."""
    if not count:
        return []
    more = [f"  … and {count - len(rows):,} more: --limit N"] if count > len(rows) else []
    view = View(tuple(map(cell, columns)), rows)
    return ["", f"{what} ({count:,})", *(f"  {line}" for line in (aligned(view) if rows else [])), *more]
