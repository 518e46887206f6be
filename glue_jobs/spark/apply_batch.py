"""One batch of CDC files as a change: schema, ranking, merge, counts."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa

from glue_jobs.core.actions import TakeBatch
from glue_jobs.core.bins import groups
from glue_jobs.core.errors import blocked
from glue_jobs.core.limits import Limits
from glue_jobs.core.partitioning import check_partitioning
from glue_jobs.core.raw_names import CdcName, cdc_name, is_ahead, is_transactions
from glue_jobs.core.raw_reading import Reading
from glue_jobs.core.record import DataFile, Generation, Input
from glue_jobs.core.schema import Schema, find
from glue_jobs.core.schema_change import FileSchema, SchemaChange, possible_renames, reconcile
from glue_jobs.core.work import NothingForTable, Task, Work, input_of
from glue_jobs.spark.dms_files import check_before_images, check_key_columns
from glue_jobs.spark.engine import Engine, Engines
from glue_jobs.spark.key_filters import Search, keep, search
from glue_jobs.spark.load import foreign_files
from glue_jobs.spark.merge import Merged, candidates, merge_net_changes
from glue_jobs.spark.net_changes import INSERT, OP, net_changes
from glue_jobs.spark.place import Place, Shape
from glue_jobs.spark.raw_batch import Taken, read_heads
from glue_jobs.spark.raw_file import RawHead, csv_form
from glue_jobs.spark.raw_notes import raw_notes
from glue_jobs.spark.rows import ranked_rows
from glue_jobs.spark.shuffle import merge_by_shuffle
from glue_jobs.spark.staged_rows import with_rows
from glue_jobs.spark.timestamps import backward_steps, find_timestamp

# What the driver ranks by itself: its memory has all net changes anyway, and Arrow ranks a million rows while Spark starts its tasks.
RANK_BYTES, RANK_ROWS = 64 * 1024 * 1024, 2_000_000
BACKWARD_CHECK_FILES = 200  # reading the timestamp column again of more files than this would cost more than the figure is worth


def apply_batch(engines: Engines, place: Place, task: Task, action: TakeBatch) -> Taken:
    """The change that applies the action's files (fewer, if they hold more rows than a batch may)."""
    state, snapshot = task.state, task.snapshot
    foreign_files(place, task)
    column = state.timestamp_column or snapshot.timestamp_column
    reading = Reading(str(state.path), column, snapshot.schema, state.csv, task.settings.state_table)
    heads = _heads(place, action, reading, engines.for_bytes(action.size_bytes))
    if not heads:
        return Taken(_without_rows(task, action))
    whole = action
    action = _without_refused(action, heads)
    action, heads = _cut(action, heads, task.settings.limits)
    action, heads = _before_rename(task, action, heads)
    fresh = [head for head in heads if head.file in action.files]
    if all(is_transactions(head.file.key) and not head.rows for head in fresh):
        raise NothingForTable(frozenset(head.file.key for head in fresh))
    for head in fresh:
        check_key_columns(head.schema, state.primary_key, head.where)
        check_before_images(head.schema, snapshot.schema, state.primary_key, head.where, place.before_images)
    accept = state.request == "schema-accept"
    change = reconcile(str(state.path), snapshot.schema, _schemas(fresh), accept=accept, late=action.late)
    _check_context(state.path.in_shell, [head for head in heads if head not in fresh], fresh, change.schema)
    partitioning = state.partitioning if snapshot.is_empty else snapshot.partitioning
    check_partitioning(partitioning, change.schema, str(state.path))
    shape = Shape(str(state.path), change.schema, state.primary_key, partitioning, state.empty_partition.lower() == "null")
    _check_widening(task, change)
    merged, ignored = _merge(engines, place, task, shape, heads, bool(change.widened))
    timestamp = column
    if not column and snapshot.is_empty:
        timestamp, _ = find_timestamp(engines.for_bytes(action.size_bytes), place, "", fresh)
    backward = sum(backward_steps(place, head, timestamp) for head in fresh) if timestamp and len(fresh) <= BACKWARD_CHECK_FILES else 0
    input_rows = sum(head.rows for head in fresh)
    cursor = state.cursor if action.late else f"{state.path.bucket}/{action.files[-1].key}"
    work = Work(
        kind="late" if action.late else "incremental",
        schema=change.schema,
        primary_key=state.primary_key,
        partitioning=partitioning,
        generation=replace(Generation(1) if snapshot.is_empty else snapshot.generation, left_out=action.left_out),
        added=merged.added,
        superseded=merged.superseded,
        counts=replace(merged.counts, ignored=ignored, input_rows=input_rows, backward=backward),
        inputs=_inputs(action, fresh),
        context=tuple(input_of(file) for file in action.context),
        skipped=_skipped(action, cursor),
        timestamp_column=timestamp,
        cursor_after=cursor,
        last_full_load=snapshot.last_full_load,
        requests=("Request",) if _is_answered(task, whole, action, fresh, change) else (),
        details={
            **_details(change),
            **merged.details,
            **csv_form(reading, heads),
            **raw_notes(engines.for_bytes(action.size_bytes), place, fresh),
        },
    )
    work = with_rows(engines, place, shape, heads, snapshot.files, work) if task.staging else work
    return Taken(work, tuple(heads))


def _heads(place: Place, action: TakeBatch, reading: Reading, engine: Engine) -> list[RawHead]:
    """The heads of all files, late and context ones together, in DMS's order; of those that are known to have no row there is none, nor of
    those from the first on of which a person must say which columns its fields are, if others come before it."""
    read = (file for file in action.files if file.key not in action.blank)
    files = sorted((*action.context, *read), key=lambda file: (cdc_name(file.key) or CdcName("", ""), file.key))
    late = frozenset(file.key for file in action.files) if action.late else frozenset()
    return read_heads(place, files, reading, late, engine, up_to_columns=not action.late)


def _without_refused(action: TakeBatch, heads: Sequence[RawHead]) -> TakeBatch:
    """No file after those whose heads could be read."""
    is_cut = len(heads) < len([file for file in action.files if file.key not in action.blank])
    return _up_to(action, heads) if is_cut and not action.late else action


def _cut(action: TakeBatch, heads: Sequence[RawHead], limits: Limits) -> tuple[TakeBatch, list[RawHead]]:
    """No more files than the limits allow by their rows, and by their bytes, of which those that are packed very well count more; one at
    least. Late files are taken together, because their context is one."""
    if action.late:
        return action, list(heads)
    kept = groups(list(heads), lambda head: head.rows, limits.batch_rows, len(heads))[0]
    kept = groups(kept, lambda head: head.size_bytes, limits.batch_bytes, len(kept))[0]
    return _up_to(action, kept) if len(kept) < len(heads) else action, kept


def _before_rename(task: Task, action: TakeBatch, heads: list[RawHead]) -> tuple[TakeBatch, list[RawHead]]:
    """No file from the first one on of which a person must say whether a column was renamed, if others come before it: they have the
    columns of now, and would not after the rename. Of several, a person has accepted the first."""
    if action.late:
        return action, heads
    accepted = 1 if task.state.request == "schema-accept" else 0
    asked = [at for at, _, _ in possible_renames(task.snapshot.schema, _schemas(heads))][accepted:]
    if not asked or not asked[0]:
        return action, heads
    kept = heads[: asked[0]]
    return _up_to(action, kept), kept


def _up_to(action: TakeBatch, kept: Sequence[RawHead]) -> TakeBatch:
    """The action with no file after the last of `kept`."""
    files = action.files[: action.files.index(kept[-1].file) + 1]
    return replace(action, files=files, blank=action.blank.intersection(file.key for file in files))


def _schemas(heads: Sequence[RawHead]) -> list[FileSchema]:
    return [(head.where, head.schema.columns) for head in heads]


def _is_answered(task: Task, whole: TakeBatch, taken: TakeBatch, fresh: Sequence[RawHead], change: SchemaChange) -> bool:
    """Whether the change answers what a person asked for: it needed that, or no file is left that might."""
    if task.state.request == "schema-accept":
        used = any(possible_renames(task.snapshot.schema, _schemas(fresh), taken.late))
    elif task.state.request == "widen":
        used = bool(change.widened)
    else:
        return False
    return used or not (taken.late or whole.remaining or len(taken.files) < len(whole.files))


def _inputs(action: TakeBatch, fresh: Sequence[RawHead]) -> tuple[Input, ...]:
    """The files that the change takes, in their order, those without a row of the table among them."""
    read = {head.file.key: head for head in fresh}
    return tuple(read[file.key].input() if file.key in read else input_of(file, 0) for file in action.files)


def _skipped(action: TakeBatch, cursor: str) -> tuple[Input, ...]:
    """What the change passes over for good. Of files beyond its cursor a person may still think otherwise."""
    end = cdc_name(cursor)
    return tuple(input_of(file) for file in action.skipped if (name := cdc_name(file.key)) and end and not is_ahead(name, end))


def _without_rows(task: Task, action: TakeBatch) -> Work:
    """The change that only moves the cursor: so many transaction files have no row of the table that they need not be read again. All of
    them may have come late: then the cursor stays, or what is beyond them would be pending again."""
    cursor = max(task.state.cursor, f"{task.state.path.bucket}/{action.files[-1].key}", key=lambda key: cdc_name(key) or CdcName("", ""))
    return Work(
        kind="incremental",
        schema=task.snapshot.schema,
        primary_key=task.snapshot.primary_key,
        partitioning=task.snapshot.partitioning,
        generation=replace(task.snapshot.generation, left_out=action.left_out),
        inputs=_inputs(action, ()),
        skipped=_skipped(action, cursor),
        timestamp_column=task.snapshot.timestamp_column,
        cursor_after=cursor,
        last_full_load=task.snapshot.last_full_load,
    )


def _check_context(table: str, context: Sequence[RawHead], late: Sequence[RawHead], schema: Schema) -> None:
    """Refuse late files before a rename: the files to rank with them have the column under its old name, and would say null for it."""
    for head in context:
        unknown = [column.name for column in head.schema.columns if find(schema, column.name) is None]
        if unknown:
            base = late[0].file.base
            raise blocked(
                "late-file-without-context",
                f"{base} came late, and a file that was applied after it has a column that was renamed in the lake since",
                where=head.where,
                expected=", ".join(column.name for column in schema),
                found=", ".join(unknown),
                todo=f"reload the table, or `dmslake unblock {table} --skip-file {shlex.quote(base)}`",
            )


def _check_widening(task: Task, change: SchemaChange) -> None:
    """A grown type means rewriting the table: by itself up to a size, above it when a person says so.

    The text of a folder says a float in fewer digits than the double of the same value has: its rows would change.
    """
    folders = [field.column for field in task.snapshot.partitioning if field.transform == "identity"]
    grown = next((name for name, old, _ in change.widened if old == "float" and name in folders), None)
    if grown is not None:
        raise blocked(
            "type-changed",
            f"column {grown!r} grew from float to double, and the table's folders have its values",
            where=str(task.state.path),
            expected="float, as in the table's folders",
            found="double",
            todo="reload the table in DMS",
        )
    size, limit = task.snapshot.size_bytes, task.settings.limits.widen_bytes
    # Who accepts the columns of a file that both renames and widens has seen it, and can't give two words at once.
    if change.widened and size > limit and task.state.request not in ("widen", "schema-accept"):
        name, old, new = change.widened[0]
        raise blocked(
            "widening-needs-a-word",
            f"column {name!r} grew from {old} to {new}; that means rewriting the table's {size} bytes",
            where=str(task.state.path),
            expected=f"at most {limit} bytes (setting widen_bytes) to do it unasked",
            todo=f"`dmslake widen {task.state.path.in_shell}`",
        )


def _merge(engines: Engines, place: Place, task: Task, shape: Shape, heads: Sequence[RawHead], rewrite_all: bool) -> tuple[Merged, int]:
    """(what the merge did, rows ignored because the table has no key)."""
    files = tuple(task.snapshot.files.values())
    input_bytes = sum(head.size_bytes for head in heads)
    if shape.key and input_bytes > place.limits.broadcast_bytes and not rewrite_all:
        return merge_by_shuffle(engines.spark, place, shape, heads, files), 0
    few = sum(head.rows for head in heads) <= RANK_ROWS
    rows = ranked_rows(engines.for_driver(input_bytes, RANK_BYTES if few else 0), place, shape, heads)
    ignored = 0
    if not shape.key:
        inserts = np.asarray(rows[OP]) == INSERT
        ignored = int((~inserts).sum())
        rows = rows.filter(pa.array(inserts))
    net = net_changes(rows, shape)
    del rows  # nearly all of them stand in it, a second time
    impacted = candidates(net, files, rewrite_all)
    found = Search(tuple(impacted)) if rewrite_all else search(place, net, impacted)
    engine = engines.for_files(sum(file.size_bytes for file in found.files), input_bytes)
    merged = merge_net_changes(engine, place, shape, net, files, rewrite_all=rewrite_all, found=found)
    return _with_filters_kept(place, shape, found, merged, files), ignored


def _with_filters_kept(place: Place, shape: Shape, found: Search, merged: Merged, files: Sequence[DataFile]) -> Merged:
    """Keep the key filters that the merge made."""
    gone = set(merged.superseded)
    live = {file.path: file for file in (*files, *merged.added) if file.path not in gone}
    trouble = keep(place, shape, found, merged.filters, live)
    return replace(merged, details={**merged.details, **replace(found, trouble=found.trouble or trouble).facts()})


def _details(change: SchemaChange) -> dict[str, object]:
    details: dict[str, object] = {}
    if change.added:
        details["columns_added"] = list(change.added)
    if change.widened:
        details["columns_widened"] = [f"{name}: {old} to {new}" for name, old, new in change.widened]
    if change.absent:
        details["columns_absent"] = list(change.absent)
    if change.back:
        details["columns_back"] = list(change.back)
    return details
