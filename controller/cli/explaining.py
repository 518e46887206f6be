"""`dmslake explain`: the life of a row, change by change, with the raw file and row that each image came from."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import click

from controller.cli.call import Call, with_call
from controller.cli.looking import Looked, cell, looking, moment_text, state_text
from controller.cli.output import Answer, labelled
from controller.pages.life import Found, read_life

EXPLAIN = 1
UNSURE = {
    True: "not known: a data file of this change, {file}, is no more",
    False: "not known whether it was there before",
}


@click.command("explain")
@click.argument("path")
@click.option("--key", required=True, metavar="VALUE[,VALUE]...", help="The row's primary key, one value for each column, in its order.")
@with_call
def explain(call: Call, path: str, key: str) -> int:
    """Tell the life of one row of the table PATH, oldest first: what each change did to it, and where it came from.

    Several key values are separated by commas, as in CSV. Rows of a raw file are counted from 0. Changes that are undone are no part of
    the life.
    """
    with looking(call, path) as looked:
        found = read_life(looked.session.clients.s3, looked.place, looked.state, looked.at("").snapshot, key)
    return call.show(Answer(_data(looked, found), (), _lines(looked, found)))


def what_text(step: Any, erase: str = "") -> str:
    """What a change did to the row, in one line. erase: the change that took the file which would tell."""
    if step.what == "unknown" and erase:
        return f"not known (version-erased): a data file of this change, {cell(step.gone)}, was erased for good by change {erase}"
    if step.what == "unknown":
        return UNSURE[bool(step.gone)].format(file=cell(step.gone)) + ("" if step.gone else "; " + _after_text(step.after))
    if step.what == "update":
        pairs = [(name, (step.before or {}).get(name), (step.after or {}).get(name)) for name in step.changed]
        return "update: " + ", ".join(f"{cell(name)}: {cell(old)} → {cell(new)}" for name, old, new in pairs)
    return f"{step.what}: {_values_text(step.after if step.what == 'insert' else step.before)}"


def _after_text(values: dict[str, Any] | None) -> str:
    return f"there since: {_values_text(values)}" if values else "not there since"


def _values_text(values: dict[str, Any] | None) -> str:
    return ", ".join(f"{cell(name)}={cell(value)}" for name, value in (values or {}).items())


def source_text(source: Any) -> tuple[str, str]:
    """(raw file, row) as far as they are known."""
    if source is None:
        return "", ""
    gone = f"{len(source.missing)} raw file(s) gone or changed"
    if source.file:
        name = cell(source.file.rsplit("/", 1)[-1])
        return (f"{name} ({gone} after it)" if source.missing else name), str(source.row)
    return (gone if source.missing else "not found"), ""


def _lines(looked: Looked, found: Found) -> list[str]:
    rows = [
        [
            moment_text(step.record.time)[:-4],
            step.record.id,
            step.record.kind,
            what_text(step, found.erased.get(step.gone, "")),
            *source_text(step.source),
        ]
        for step in found.life.steps
    ]
    undone = f"{found.undone} undone change(s) are not part of this" if found.undone else ""
    now = _values_text(found.life.now) if found.life.now else "no such row" + (" is known" if _is_unsure(found) else "")
    pairs = [("table", str(looked.state.path)), ("key", _values_text(found.key)), ("now", now), ("as of", state_text(found.snapshot))]
    return [*labelled(pairs), "", *_step_lines(rows), *filter(None, ["", undone, *found.notes])]


def _step_lines(rows: Sequence[Sequence[str]]) -> list[str]:
    """Two lines for each step: when and by what, and what happened; the second one may be long."""
    lines = []
    for moment, change, kind, what, file, row in rows:
        came = f"  from {file}" + (f", row {row}" if row else "") if file else ""
        lines += [f"{moment}  {change}  {kind}{came}", f"  {what}"]
    return lines or ["no change touched this key"]


def _is_unsure(found: Found) -> bool:
    steps = found.life.steps
    return bool(steps) and bool(steps[-1].gone)


def _data(looked: Looked, found: Found) -> dict[str, Any]:
    return {
        "explain": EXPLAIN,
        "path": str(looked.state.path),
        "change": found.snapshot.change,
        "key": found.key,
        "now": found.life.now,
        "steps": [_step_data(step, found.erased.get(step.gone) or None) for step in found.life.steps],
        "undone": found.undone,
        "notes": list(found.notes),
        "files_read": found.life.files,
    }


def _step_data(step: Any, erase: str | None) -> dict[str, Any]:
    source = step.source
    told = source and {
        "file": source.file or None, "row": source.row if source.file else None, "operation": source.operation or None,
        "missing": list(source.missing),
    }  # fmt: skip
    return {
        "change": step.record.id,
        "time": step.record.time,
        "kind": step.record.kind,
        "what": step.what,
        "before": step.before,
        "after": step.after,
        "changed": list(step.changed),
        "source": told,
        "gone": step.gone or None,
        "erased_by": erase,
    }
