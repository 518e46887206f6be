"""What must be true: after every step, and when everybody has stopped."""

from __future__ import annotations

from collections.abc import Iterator

from tests.model.rules import Harm
from tests.model.state import Change, State, holds, origins, visible


def after_step(before: State, after: State, faults: frozenset[str]) -> Iterator[Harm]:
    """The harm that a step did. `after` is the state as the step left it, before it is made canonical."""
    if after.item is not before.item or after.reported != before.reported:
        yield from _item_harm(before, after)
    if after.keys is not before.keys:
        yield from _key_harm(before, after)
        if "lifecycle" not in faults:
            yield from _landed_lost(before, after)
    if after.item is not before.item or after.keys is not before.keys:
        yield from folder_harm(after)
        yield from erase_harm(after)
    if "catalog" in faults and (after.item is not before.item or after.catalog is not before.catalog):
        yield from catalog_harm(after)


def _item_harm(before: State, after: State) -> Iterator[Harm]:
    if after.item.fence < before.item.fence:
        yield Harm.FENCE_WENT_BACK
    head = after.record(after.item.head)
    if head is None:
        return
    if after.reported & head.history:
        yield Harm.FALSE_REPORT
    if before.item.paused == "person" != after.item.paused and (after.item.head == before.item.head or head.staged_as):
        yield Harm.EDIT_OVERWRITTEN
    if after.item.head == before.item.head:
        return
    yield from _staged_harm(before, head)
    if before.item.head not in head.history:
        yield Harm.HISTORY_SHRANK
    if (before.item.cursor, before.item.paused) != head.planned_with and before.edited:
        yield Harm.EDIT_OVERWRITTEN
    if head.stranded:
        yield Harm.STRANDED
    if head.stands_for is not None and origins(head.files) != origins(head.stands_for.files):
        yield Harm.HALF_RESTORED
    if head.applied - head.content.applied:
        yield Harm.INPUT_LOST
    if head.kind == "batch" and head.parent is not None and head.parent.rests:
        yield Harm.ROLLBACK_UNDONE


def _staged_harm(before: State, head: Change) -> Iterator[Harm]:
    if head.fence != before.item.fence:
        yield Harm.BACKDATED
    if head.staged_as and before.item.cursor != head.staged_as.planned_with[0]:
        yield Harm.EDIT_OVERWRITTEN
    if head.half:
        yield Harm.LOST_FROM_THE_START


def _landed_lost(before: State, after: State) -> Iterator[Harm]:
    """Where no lifecycle rule aborts uploads, nobody else may abort one that converge is still to complete."""
    head = after.record(after.item.head)
    if head and any(before.key(name).upload == "open" and after.key(name).upload == "gone" for name in head.added):
        yield Harm.LANDED_LOST


def _key_harm(before: State, after: State) -> Iterator[Harm]:
    old = dict(before.keys)
    for name, key in after.keys:
        was = old.get(name)
        if was is None or was is key:
            continue
        if key.visible and not was.visible and was.data:
            yield Harm.VISIBLE_TWICE
        if key.data.count("ours") > 1:
            yield Harm.SECOND_VERSION
        if len(key.data) < len(was.data) and not _may_be_removed(after, name):
            yield Harm.VERSION_DELETED


def _may_be_removed(state: State, name: str) -> bool:
    head = state.record(state.item.head)
    return head is not None and name in head.listed and name not in head.files


def erase_harm(state: State) -> Iterator[Harm]:
    """Where an erase landed and nothing says that it is unfinished, nothing that can be read or committed has its rows."""
    head = state.record(state.item.head)
    if head is None or not head.listed or state.item.publishing or state.item.erasing:
        return
    waiting = {name for _, record in state.records if record.staged for name in record.added}
    if any(holds(name) and (key.data or (key.upload == "open" and name in waiting)) for name, key in state.keys):
        yield Harm.KEY_LEFT


def folder_harm(state: State) -> Iterator[Harm]:
    """Where nothing says that a publish is unfinished, the folder is the head's snapshot."""
    head = state.record(state.item.head)
    if state.item.publishing or head is None:
        return
    shown = visible(state)
    if head.files - shown:
        yield Harm.ROWS_LOST
    if shown - head.files:
        yield Harm.ROWS_DOUBLED
    if any("foreign" in state.key(name).data for name in head.files):
        yield Harm.FOREIGN_ROWS


def catalog_harm(state: State) -> Iterator[Harm]:
    """Where nothing says that the catalog step is unfinished, the catalog is the head's, written under its fence or a later one."""
    head, table = state.record(state.item.head), state.catalog
    if state.item.catalog_pending or head is None:
        return
    same = table is not None and (table.columns, table.layout) == (head.columns, head.layout)
    under_its_fence = table is not None and (table.fence >= head.fence or head.columns != head.id)
    if table is None or not same or not under_its_fence or not head.partitions <= table.partitions:
        yield Harm.CATALOG_STALE


def at_rest(state: State, inputs: int) -> Iterator[Harm]:
    """Where everybody has stopped, every raw file is applied, pending, waited for, or skipped by a person."""
    head = state.record(state.item.head)
    if head is None or state.edited:
        return
    for number in range(1, inputs + 1):
        waits = number > state.item.cursor if number in state.raw else number in head.awaited
        if number not in head.applied and not waits and _was_applied(head, number):
            yield Harm.INPUT_LOST


def _was_applied(head: Change, number: int) -> bool:
    """Whether the table ever applied the file: one removed before that is DMS's loss, which nobody can see."""
    return number in head.applied or (head.parent is not None and _was_applied(head.parent, number))
