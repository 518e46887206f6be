"""Erasing: the work before the commit, and what is removed once it was published."""

from __future__ import annotations

from collections.abc import Iterator

from tests.model import requests
from tests.model.state import Change, Item, State, change, holds
from tests.model.turn import Step, Turn


def erase_work(turn: Turn) -> Iterator[Step]:
    """List every version that has the rows, upload what replaces the head's files among them, write the record."""
    head, seen, writer, rules = turn.mine, turn.seen, turn.writer, turn.rules
    listed = frozenset(name for name, key in turn.state.keys if key.data and holds(name))
    if not listed:
        yield turn.to("release", "nothing to erase", seen=None, mine=None)
        return
    id_ = f"{writer.name}{writer.counter + 1}"
    superseded = tuple(sorted(name for name in head.files if holds(name)))
    added = (f"f{id_}-",) if superseded else ()
    record = change(
        id_,
        parent=head,
        kind="erase",
        fence=writer.fence,
        files=(head.files - set(superseded)) | set(added),
        added=added,
        superseded=superseded,
        cursor=head.cursor,
        applied=head.applied,
        awaited=head.awaited,
        columns=head.columns,
        layout=head.layout,
        partitions=head.partitions,
        planned_with=(seen.cursor, seen.paused),
        erased=listed,
    )
    state = turn.state
    for name in added:
        state = requests.open_upload(state, name)
    state = state.with_record(record if rules.erase_list_is_in_the_record else _without_list(record))
    yield turn.to("commit", f"upload and record {id_} (erase)", state, mine=record, counter=writer.counter + 1)


def _without_list(record: Change) -> Change:
    values = {name: getattr(record, name) for name in record.__dataclass_fields__}
    return change(**{**values, "erased": frozenset()})


def start_removing(turn: Turn, erase: Change, head: Change, seen: Item) -> Step:
    """Begin to remove what is left of the erase: uploads of changes before it, and the versions of its list."""
    there = erase.erased if turn.rules.only_listed_versions_are_removed else frozenset(_hidden(turn.state))
    kept = head.files if turn.rules.head_files_are_never_removed else frozenset()
    versions = tuple(sorted(name for name in there - kept if turn.state.key(name).data))
    uploads = _older_uploads(turn, erase) if turn.rules.erase_drops_older_uploads else ()
    at = "drop_older" if uploads else "removal_mark" if versions else "clear_erasing"
    return turn.to(at, f"finish erase {erase.id}", seen=seen, mine=erase, left=(*uploads, *versions), uploads=len(uploads))


def _hidden(state: State) -> list[str]:
    return [name for name, key in state.keys if key.data and not key.visible]


def _older_uploads(turn: Turn, erase: Change) -> tuple[str, ...]:
    """The open uploads of changes with a smaller id than the erase's."""
    fences = {name: record.fence for _, record in turn.state.records for name in record.added if not record.staged_as}
    open_now = [name for name, key in turn.state.keys if key.upload == "open"]
    return tuple(name for name in open_now if fences.get(name, 0) < erase.fence or not turn.rules.only_older_uploads_are_dropped)


def drop_older(turn: Turn) -> Iterator[Step]:
    """AbortMultipartUpload of what could only have landed on the snapshot before the erase."""
    name, left, more = turn.writer.left[0], turn.writer.left[1:], turn.writer.uploads - 1
    at = "drop_older" if more else "removal_mark" if left else "clear_erasing"
    yield turn.to(at, f"abort {name}", requests.abort(turn.state, name), left=left, uploads=more)


def removal_mark(turn: Turn) -> Iterator[Step]:
    """PUT of the mark that versions are being removed. Only a recover reads it, where the item went back behind its records."""
    yield turn.to("remove", f"mark {turn.mine.id}")


def remove(turn: Turn) -> Iterator[Step]:
    """DELETE of one version of the list. Not fenced: nobody may use it any more."""
    name, left = turn.writer.left[0], turn.writer.left[1:]
    at = "remove" if left else "clear_erasing"
    yield turn.to(at, f"remove {name}", requests.remove_version(turn.state, name), left=left)
    if "remove_fails" in turn.faults:
        yield turn.to(at, f"removing {name} failed", left=left)


def clear_erasing(turn: Turn) -> Iterator[Step]:
    """List what is left; the conditional update that takes Erasing away."""
    left = sorted(name for name in turn.mine.erased if turn.state.key(name).data)
    if left and turn.rules.erasing_stays_until_all_are_gone:
        yield turn.end(f"{left} are left: failed")
    elif not turn.fence_is_mine and turn.rules.writes_carry_the_fence:
        yield turn.end("clear Erasing refused: lease lost")
    else:
        erasing = "" if turn.item.erasing == turn.mine.id else turn.item.erasing
        state = turn.state._replace(item=turn.item._replace(erasing=erasing))
        yield turn.to("read", "clear Erasing", state, seen=None, mine=None)
