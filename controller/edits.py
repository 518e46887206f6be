"""A person's edits of a table's item, as commands make them: which attributes to set and to remove, and what happens next. Pure."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from glue_jobs.core.errors import DmslakeError, UsageError
from glue_jobs.core.partitioning import check_partitioning, parse_partition_key
from glue_jobs.core.paths import lake_folder
from glue_jobs.core.raw_names import load_number
from glue_jobs.core.schema import Schema
from glue_jobs.core.state import NO_SOURCE, TableState

RUN_NEXT = "the next run does it; now: dmslake run {path}"


@dataclass(frozen=True)
class Edit:
    """Attributes to set and to remove, and lines that say what was done and what happens next."""

    values: dict[str, Any] = field(default_factory=dict)
    remove: tuple[str, ...] = ()
    lines: tuple[str, ...] = ()


def is_null(text: str) -> bool:
    """Whether a person says that there is to be no key, or no layout. An empty text says nothing: it may be a variable that is not set."""
    return text.strip().lower() == "null"


def column_list(text: str, option: str) -> tuple[str, ...]:
    """The names in `a,b`; UsageError for an empty or repeated one."""
    names = tuple(part.strip() for part in text.split(","))
    if not all(names) or len(set(names)) != len(names):
        raise UsageError(f"{option} is {text!r}", "bad-columns", "give column names, each once, separated by commas")
    return names


def activate(state: TableState, primary_key: str | None, partition_key: str | None, lake: str) -> Edit:
    """Have the controller keep the table up. A key that isn't given stays as it is; 'null' takes it away. Lifts a pause too."""
    values: dict[str, Any] = {"ActiveFlag": "true"}
    if primary_key is not None:
        values["PrimaryKey"] = _key_text(primary_key, "--primary-key")
    if partition_key is not None:
        values["PartitionKey"] = _partition_text(state, partition_key)
    if not state.out_path:
        if not lake:
            raise UsageError(f"the item of {state.path} has no out_path", "no-out-path", "give --lake s3://bucket/prefix/")
        values["out_path"] = str(lake_folder(lake, state.path))
    key = values.get("PrimaryKey", ",".join(state.primary_key) or "null")
    lines = [f"{state.path} is active: primary key {key}, partition key {values.get('PartitionKey', _item_text(state, 'PartitionKey'))}"]
    if key == "null":
        lines.append("without a primary key inserts are appended, updates and deletes are only counted")
    if state.head and "PrimaryKey" in values and _names(key) != state.primary_key:
        lines.append("the primary key of a loaded table changes: the next run checks that it is unique and rewrites the table")
    if state.paused:
        lines.append(f"the pause is lifted ({state.paused})")
    lines.append(RUN_NEXT.format(path=state.path.in_shell))
    return Edit(values, ("Paused",) if state.paused else (), tuple(lines))


def _names(text: str) -> tuple[str, ...]:
    return () if text == "null" else tuple(text.split(","))


def _key_text(text: str, option: str) -> str:
    return "null" if is_null(text) else ",".join(column_list(text, option))


def _partition_text(state: TableState, text: str) -> str:
    wanted = _checked_partition_text(text)
    fields = parse_partition_key(wanted) if wanted != "null" else ()
    if state.head and fields != state.partitioning:
        raise UsageError(
            f"{state.path} is loaded; its layout can't change by activate",
            "partition-key-changed",
            f"dmslake repartition {state.path.in_shell} --partition-key {shlex.quote(wanted)}",
        )
    return wanted


def _checked_partition_text(text: str, schema: Schema = (), table: str = "") -> str:
    """The text as an item has it; UsageError for one that can't be read, or does not fit the columns of the table, where there are some."""
    if is_null(text):
        return "null"
    try:
        fields = parse_partition_key(text)
        if schema:
            check_partitioning(fields, schema, table)
    except DmslakeError as error:
        raise UsageError(error.message, error.code, "give columns or year(c), month(c), day(c), separated by commas") from error
    return text.strip()


def _item_text(state: TableState, name: str) -> str:
    return str(state.item.get(name) or "null")


def deactivate(state: TableState) -> Edit:
    """Leave the table as it is from now on."""
    lines = [f"{state.path} is inactive: the lake table stays as it is; dmslake activate {state.path.in_shell} goes on from there"]
    return Edit({"ActiveFlag": "false"}, (), tuple(lines))


def request(state: TableState, text: str, what: str, *, by_raw_files: bool = True) -> Edit:
    """Ask the jobs for something that they do as one change of their own. by_raw_files: it is done with what DMS writes."""
    if by_raw_files and not state.has_source:
        raise UsageError(
            f"{state.path} has no source (its item says Source = {NO_SOURCE}): the request needs raw files, and would wait for ever",
            "bad-argument",
            f"`dmslake update {state.path.in_shell}`, `dmslake apply` and `dmslake erase` change such a table",
        )
    lines = [f"{state.path}: {what}"]
    if state.request:
        lines.append(f"this replaces the earlier request {state.request!r}")
    if state.has_source and not state.active:
        lines.append(f"the table is inactive, nothing happens until: dmslake activate {state.path.in_shell}")
    elif state.paused:
        lines.append(f"the table is paused ({state.paused}), nothing happens until: dmslake activate {state.path.in_shell}")
    else:
        lines.append(RUN_NEXT.format(path=state.path.in_shell))
    return Edit({"Request": text}, (), tuple(lines))


def reload(state: TableState) -> Edit:
    return request(state, "reload", "it will be loaded again from its load files, as one change that replaces the table")


def widen(state: TableState) -> Edit:
    edit = _loaded(state, request(state, "widen", "its data files will be rewritten in the wider types that its raw files need"))
    return _answering(state, "widening-needs-a-word", edit)


def accept_schema(state: TableState) -> Edit:
    """Of a file that also needs wider types the jobs take this one word for both."""
    what = "a column that vanished and one that appeared will be taken as a dropped and an added column"
    return _answering(state, "rename-or-drop-and-add", _loaded(state, request(state, "schema-accept", what)))


def rename_column(state: TableState, text: str, columns: Sequence[str]) -> Edit:
    """`old=new`; old must be a column of the lake table, new must not."""
    old, equals, new = (part.strip() for part in text.partition("="))
    if not (old and equals and new) or old == new:
        raise UsageError(f"--rename is {text!r}", "bad-rename", "write it as old=new")
    if columns and old not in columns:
        raise UsageError(f"{state.path} has no column {old!r}; it has {', '.join(columns)}", "no-column", "correct --rename")
    if new in columns:
        raise UsageError(f"{state.path} already has a column {new!r}", "column-taken", "correct --rename")
    return _loaded(state, request(state, f"schema-rename:{old}={new}", f"the column {old} will be named {new}", by_raw_files=False))


def repartition(state: TableState, partition_key: str | None, schema: Schema = ()) -> Edit:
    """Rewrite the table in the layout of PartitionKey, which is set first if it is given. schema: the lake table's, if it has one."""
    what = "its data files will be rewritten in the layout of PartitionKey"
    edit = _loaded(state, request(state, "repartition", what, by_raw_files=False))
    if partition_key is None:
        return edit
    return Edit({**edit.values, "PartitionKey": _checked_partition_text(partition_key, schema, str(state.path))}, edit.remove, edit.lines)


def _loaded(state: TableState, edit: Edit) -> Edit:
    """The edit, refused for a table without a head."""
    if not state.head:
        raise UsageError(f"{state.path} was never loaded", "not-loaded", f"dmslake run {state.path.in_shell} loads it, once it is active")
    return edit


def _answering(state: TableState, code: str, edit: Edit) -> Edit:
    """The edit, refused for a table that is not blocked with that code. The jobs would keep the answer for a file of another day."""
    if state.blocked is None or state.blocked.code != code:
        raise UsageError(
            f"{state.path} waits for no such answer; expected: a table blocked with {code}; "
            f"found: {f'the block {state.blocked.code}' if state.blocked else 'no block'}. "
            "The answer would be kept, and given to a later file that nobody has seen",
            "nothing-asked",
            f"`dmslake run {state.path.in_shell}` blocks the table where a file needs it; then answer",
        )
    return edit


def unblock(state: TableState, skip_files: Sequence[str]) -> Edit:
    """Try again, the given raw files left out for good."""
    for name in skip_files:
        if "," in name or not name.strip():
            raise UsageError(f"--skip-file is {name!r}", "bad-file-name", "name one raw file; give the option several times for more")
    values: dict[str, Any] = {}
    lines = [f"{state.path}: was blocked: {state.blocked.message}" if state.blocked else f"{state.path}: its item holds no block"]
    fresh = [name for name in dict.fromkeys(skip_files) if name not in state.skip_files]
    # DMS gives the same names to each load: of one that is named already the file may be another one by now, and block the table as well.
    again = [name for name in dict.fromkeys(skip_files) if name in state.skip_files and load_number(name)]
    is_unclear = state.blocked is not None and state.blocked.code == "skip-unclear"
    blocks = [name for name in again if state.blocked and (name in state.blocked.message or state.blocked.code.startswith("reload-"))]
    blocks = [] if is_unclear else blocks
    fresh += [key for name in blocks if (key := state.path.raw.key + name) not in state.skip_files]
    for name in (name for name in again if name not in blocks):
        way = "say which one is meant, by FOLDER/NAME" if is_unclear else f"whatever stands there: --skip-file {state.path.raw.key}{name}"
        lines.append(f"{name} is left out by its name already; {way}")
    if fresh:
        # Who says a path means that file, and not all of its name.
        said = [(name, name.rsplit("/", 1)[-1]) for name in skip_files if "/" in name]
        paths = {base for name, base in said if is_unclear or name != state.path.raw.key + base}
        kept = [name for name in state.skip_files if name not in paths]
        values["SkipFiles"] = ",".join((*kept, *fresh))
        lines.append(f"left out for good: {', '.join(fresh)}")
    lines.append(f"the next run looks at it anew, and blocks it again if the cause still stands; now: dmslake run {state.path.in_shell}")
    return Edit(values, ("Blocked",) if "Blocked" in state.item else (), tuple(lines))
