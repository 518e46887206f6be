"""Staging a change, committing or discarding a staged one."""

from __future__ import annotations

from collections.abc import Iterator

from tests.model import requests
from tests.model.state import Change, State, change, made_from
from tests.model.turn import Step, Turn


def stage(turn: Turn) -> Iterator[Step]:
    """Uploads, rows to look at, and the record of a change that waits for a person. The first raw file after the cursor."""
    head, seen, writer = turn.mine, turn.seen, turn.writer
    takes = frozenset(sorted(number for number in turn.state.raw if number > seen.cursor)[:1])
    if turn.rules.deadline_stops_writes and not turn.fence_is_mine:
        yield turn.end("the deadline is over: stopped")
    elif not takes:
        yield turn.to("release", "nothing pending", seen=None, mine=None)
    else:
        id_, end = f"{writer.name}{writer.counter + 1}", made_from(head.files)
        staged = change(
            id_,
            parent=head,
            fence=writer.fence,
            files=frozenset({f"f{id_}a{end}"}),
            added=(f"f{id_}a{end}",),
            superseded=tuple(sorted(head.files)),
            cursor=max(takes),
            applied=head.applied | takes,
            awaited=head.awaited - takes,
            columns=head.columns,
            layout=head.layout,
            partitions=head.partitions,
            planned_with=(seen.cursor, seen.paused),
            staged=True,
        )
        state = requests.put(requests.open_upload(turn.state, staged.added[0]), f"rows of {id_}{end}")
        if not turn.rules.uploads_wait_for_the_commit:
            state, _ = requests.complete(state, staged.added[0], lenient=False)
        yield turn.to("stage_pause", f"stage {id_}", state.with_record(staged), mine=staged, counter=writer.counter + 1)


def stage_pause(turn: Turn) -> Iterator[Step]:
    """The conditional update that pauses the table for the staged change."""
    if not turn.fence_is_mine and turn.rules.writes_carry_the_fence:
        yield turn.end("pause refused: lease lost")
    elif turn.item.paused and turn.rules.stage_keeps_another_pause:
        yield turn.to("release", "paused by somebody else")
    else:
        state = turn.state._replace(item=turn.item._replace(paused=turn.mine.id))
        yield turn.to("release", f"pause for {turn.mine.id}", state, seen=None, mine=None)


def commit_staged(turn: Turn) -> Iterator[Step]:
    """For each staged change: look whether it can be committed, and write the record of the change that does so."""
    for staged in _staged(turn.state):
        refused = _why_not(turn, staged)
        yield turn.to("release", f"commit of {staged.id}: {refused}", seen=None, mine=None) if refused else _recorded(turn, staged)


def _staged(state: State) -> list[Change]:
    return [record for _, record in state.records if record.staged]


def _why_not(turn: Turn, staged: Change) -> str:
    head, rules = turn.mine, turn.rules
    if staged.id in head.committed:
        return "was committed"
    if turn.state.key(_mark(staged)).data:
        return "was discarded"
    if staged.parent is not head and rules.staged_commit_checks_parent:
        return "another change came between"
    if staged.planned_with[0] != turn.seen.cursor and rules.staged_commit_checks_attributes:
        return "the item was edited"
    return "uploads are gone" if _gone(turn.state, staged) and rules.staged_commit_checks_uploads else ""


def _gone(state: State, staged: Change) -> frozenset[str]:
    return frozenset(name for name in staged.added if state.key(name).upload != "open")


def _recorded(turn: Turn, staged: Change) -> Step:
    writer, is_new = turn.writer, turn.rules.staged_commit_is_a_new_change
    record = change(
        f"{writer.name}{writer.counter + 1}" if is_new else staged.id,
        parent=turn.mine,
        fence=writer.fence if is_new else staged.fence,
        files=staged.files,
        added=staged.added,
        superseded=staged.superseded,
        cursor=staged.cursor,
        applied=staged.applied,
        awaited=staged.awaited,
        columns=staged.columns,
        layout=staged.layout,
        partitions=staged.partitions,
        planned_with=(turn.seen.cursor, turn.seen.paused),
        staged_as=staged,
        half=_gone(turn.state, staged),
    )
    label = f"record {record.id}, which commits {staged.id}"
    return turn.to("commit", label, turn.state.with_record(record), mine=record, counter=writer.counter + 1)


def discard(turn: Turn) -> Iterator[Step]:
    """Look whether a staged change has landed, before its uploads are aborted."""
    for staged in _staged(turn.state):
        if staged.id in turn.mine.committed and turn.rules.discard_refuses_what_landed:
            yield turn.to("release", f"discard of {staged.id}: was committed", seen=None, mine=None)
        else:
            yield turn.to("discard_mark", f"discard {staged.id}", mine=staged)


def discard_mark(turn: Turn) -> Iterator[Step]:
    """PUT of the mark that says that the staged change is none any more. The deadline keeps a late one back."""
    if turn.rules.deadline_stops_writes and not turn.fence_is_mine:
        yield turn.end("the deadline is over: stopped")
    else:
        yield turn.to("discard_abort", f"mark {turn.mine.id}", requests.put(turn.state, _mark(turn.mine)), left=turn.mine.added)


def _mark(staged: Change) -> str:
    return f"mark of {staged.id}-"


def discard_abort(turn: Turn) -> Iterator[Step]:
    """AbortMultipartUpload of an upload of the staged change. It has no condition: the deadline keeps a late one back."""
    if turn.rules.deadline_stops_writes and not turn.fence_is_mine:
        yield turn.end("the deadline is over: stopped")
    else:
        name, left = turn.writer.left[0], turn.writer.left[1:]
        yield turn.to("discard_abort" if left else "unpause", f"abort {name}", requests.abort(turn.state, name), left=left)


def unpause(turn: Turn) -> Iterator[Step]:
    """The conditional update that lifts the pause for the discarded change, and no other."""
    own = turn.item.paused == turn.mine.id or not turn.rules.only_its_own_pause_is_lifted
    if not turn.fence_is_mine and turn.rules.writes_carry_the_fence:
        yield turn.end("lifting the pause refused: lease lost")
    else:
        item = turn.item._replace(paused="") if own else turn.item
        yield turn.to("release", "lift the pause" if own else "another pause stays", turn.state._replace(item=item), seen=None, mine=None)
