"""Requests that change what readers see: complete, hide, say that it is published; and the taking back of a lost change."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tests.model import requests
from tests.model.state import Change, State, change
from tests.model.turn import Step, Turn


def start_converge(turn: Turn, label: str, state: State, **memory: Any) -> Step:
    """Begin to publish the writer's change."""
    mine: Change = memory["mine"]
    at = "complete" if turn.rules.complete_before_hiding else "hide"
    left = (*mine.added, *mine.unhidden) if at == "complete" else mine.superseded
    return _skip_done(turn, turn.to(at, label, state, **{**memory, "left": left}))


def _skip_done(turn: Turn, step: Step) -> Step:
    """Go on to the next phase without a request where nothing is left in this one."""
    phases = ("complete", "hide", "clear") if turn.rules.complete_before_hiding else ("hide", "complete", "clear")
    while True:
        state, writer = step.state, step.state.writers[turn.index]
        if writer.mine is None or writer.left or writer.at not in phases[:2]:
            return step
        if writer.at == "complete" and writer.missing and turn.rules.hide_only_when_complete:
            return _lost(turn, step)
        at = phases[phases.index(writer.at) + 1]
        left = {"hide": _to_hide(turn, state), "complete": writer.mine.added, "clear": ()}[at]
        step = step._replace(state=state.with_writer(turn.index, writer._replace(at=at, left=left)))


def _to_hide(turn: Turn, state: State) -> tuple[str, ...]:
    writer = state.writers[turn.index]
    assert writer.mine is not None
    if not turn.rules.hide_only_what_the_record_says:
        return tuple(name for name, key in state.keys if key.visible and name not in writer.mine.files)
    return tuple(name for name in writer.mine.superseded if not writer.redo or state.key(name).visible)


def complete(turn: Turn) -> Iterator[Step]:
    """CompleteMultipartUpload of one of the files left: they go out in parallel, in any order."""
    choices = turn.writer.left if "lifecycle" in turn.faults else turn.writer.left[:1]
    for name in choices:
        yield _skip_done(turn, _complete_one(turn, name))


def _complete_one(turn: Turn, name: str) -> Step:
    writer, state, rules = turn.writer, turn.state, turn.rules
    left = tuple(other for other in writer.left if other != name)
    if name in turn.mine.unhidden:
        return turn.to("complete", f"remove the marker of {name}", requests.remove_marker(state, name), left=left)
    done = writer.redo and rules.look_before_completing and bool(state.key(name).data)
    if not done:
        state, done = requests.complete(state, name, "lenient" in turn.faults)
        done = done or (rules.completed_before_is_done and bool(state.key(name).data))
    if done and writer.redo and rules.bytes_are_checked and "foreign" in state.key(name).data:
        return turn.end(f"foreign bytes in {name}: blocked")
    if not done and not rules.every_upload_is_tried:
        left = ()
    return turn.to("complete", f"complete {name}" if done else f"{name} is gone", state, left=left, missing=writer.missing or not done)


def hide(turn: Turn) -> Iterator[Step]:
    """DeleteObjects, key by key; the answer is 200 even where a key failed."""
    name, left = turn.writer.left[0], turn.writer.left[1:]
    hidden = requests.delete(turn.state, name, keep_version=turn.rules.hiding_keeps_versions)
    yield _skip_done(turn, turn.to("hide", f"hide {name}", hidden, left=left))
    if "hide_fails" in turn.faults and not turn.rules.hide_answers_are_read_per_key:  # else it is sent again: no new state
        yield _skip_done(turn, turn.to("hide", f"hiding {name} failed inside a 200", left=left))


def clear(turn: Turn) -> Iterator[Step]:
    """The conditional update that takes Publishing away."""
    mine = turn.fence_is_mine and turn.item.publishing == turn.seen.publishing
    if mine or not turn.rules.writes_carry_the_fence:
        at = "catalog_read" if "catalog" in turn.faults else "read"
        memory: dict[str, Any] = {} if at == "catalog_read" else {"seen": None, "mine": None}
        if turn.mine.kind == "erase" and not turn.writer.redo and not turn.rules.erase_list_is_in_the_record:
            at, memory = "remove", {"left": tuple(sorted(turn.mine.erased))}
        yield turn.to(at, "clear Publishing", turn.state._replace(item=turn.item._replace(publishing="")), redo=False, **memory)
    else:
        yield turn.end("clear Publishing refused: lease lost")


def _lost(turn: Turn, step: Step) -> Step:
    """Uploads of the writer's change are gone: take it back, if its inputs are there to be applied again."""

    def go(at: str, label: str = "", **memory: Any) -> Step:
        return Step(step.label + label, step.state.with_writer(turn.index, step.state.writers[turn.index]._replace(at=at, **memory)))

    lost = step.state.writers[turn.index].mine
    assert lost is not None
    if lost.parent is None:
        return go("end", f"; nothing before {lost.id}: blocked")
    gone = lost.applied - lost.parent.applied - step.state.raw
    if gone and turn.rules.lost_inputs_must_be_there:
        return go("end", f"; inputs of {lost.id} are gone too: blocked")
    aborts = turn.rules.lost_uploads_are_aborted and lost.added
    return go("abort_lost" if aborts else "record_lost", left=lost.added, missing=False, known_gone=gone)


def abort_lost(turn: Turn) -> Iterator[Step]:
    """AbortMultipartUpload of every upload of the lost change, before it is taken back."""
    name, left = turn.writer.left[0], turn.writer.left[1:]
    state = requests.abort(turn.state, name) if turn.rules.dropping_aborts else requests.delete(turn.state, name)
    yield turn.to("abort_lost" if left else "record_lost", f"drop {name}", state, left=left)


def record_lost(turn: Turn) -> Iterator[Step]:
    """The record of the change that takes the lost one back. Nothing was hidden, so its files are all visible."""
    writer, lost, seen, before = turn.writer, turn.mine, turn.seen, turn.mine.parent
    assert before is not None
    as_before = before if turn.rules.lost_inputs_are_pending_again else lost
    inputs = lost.applied - before.applied
    record = change(
        f"{writer.name}{writer.counter + 1}",
        parent=lost,
        kind="lost",
        fence=writer.fence,
        files=before.files,
        superseded=lost.added,
        cursor=as_before.cursor,
        applied=as_before.applied,
        awaited=before.awaited | (inputs if turn.rules.awaited_inputs_are_listed else frozenset()),
        stands_for=before.content,
        columns=before.columns,
        layout=before.layout,
        partitions=before.partitions,
        planned_with=(seen.cursor, seen.paused),
        stranded=writer.known_gone,
        rests=lost.kind in ("rollback", "reapply", "lost"),
    )
    yield turn.to(
        "commit",
        f"record {record.id}: {lost.id} is lost",
        turn.state.with_record(record),
        mine=record,
        counter=writer.counter + 1,
        redo=True,
        known_gone=frozenset(),
    )
