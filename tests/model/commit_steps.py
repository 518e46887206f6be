"""Requests around the commit point: the one conditional write, reading back what became of it, dropping what did not land."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tests.model import requests
from tests.model.converge_steps import start_converge
from tests.model.rules import Harm, Rules
from tests.model.state import Change, Commit, Item, State
from tests.model.turn import Step, Turn


def accepts(item: Item, request: Commit, rules: Rules) -> bool:
    """Whether the commit's condition holds."""
    return (
        (item.fence == request.fence or not rules.commit_checks_fence)
        and (item.head == request.parent or not rules.commit_checks_head)
        and (item.publishing == request.publishing or not rules.commit_checks_publishing)
        and ((item.cursor, item.paused) == request.change.planned_with or not rules.commit_checks_attributes)
    )


def land(state: State, request: Commit, rules: Rules, faults: frozenset[str]) -> State:
    """The item after a commit that was accepted: Head, cursor, Paused and what is left to do, in one write."""
    change, item = request.change, state.item
    return state._replace(
        item=item._replace(
            head=change.id,
            publishing=change.id if rules.commit_sets_publishing else "",
            catalog_pending=change.id if "catalog" in faults and rules.commit_sets_catalog_pending else "",
            cursor=change.cursor if rules.cursor_moves_with_head else item.cursor,
            paused=_paused(change, item, rules),
            erasing=_erasing(change, item, rules),
        )
    )


def _paused(change: Change, item: Item, rules: Rules) -> str:
    staged = change.staged_as
    if change.rests and rules.rollback_pauses:
        return "rollback"
    lifted = staged is not None and (item.paused == staged.id or not rules.only_its_own_pause_is_lifted)
    return "" if lifted or change.kind == "reapply" else item.paused


def _erasing(change: Change, item: Item, rules: Rules) -> str:
    if change.kind == "erase":
        return change.id if rules.commit_sets_erasing else item.erasing
    taken_back = change.kind == "lost" and change.parent is not None and change.parent.id == item.erasing
    return "" if taken_back and rules.lost_erase_clears_erasing else item.erasing


def commit(turn: Turn) -> Iterator[Step]:
    """The one conditional update; its answer may be lost, it may arrive late, or twice."""
    writer, mine, state = turn.writer, turn.mine, turn.state
    request = Commit(mine, writer.fence, turn.seen.head, turn.seen.publishing if mine.kind == "lost" else "")
    sent: dict[str, Any] = {"sent_with": writer.fence}
    if accepts(turn.item, request, turn.rules):
        landed = land(state, request, turn.rules, turn.faults)
        yield after_landing(turn, f"commit {mine.id}", landed)
        if "duplicate" in turn.faults and state.network is None:
            yield after_landing(turn, f"commit {mine.id}, sent twice", landed._replace(network=request))
            yield _refused(turn, f"commit {mine.id}, sent twice, the second refused", landed)
        if "lost_answer" in turn.faults:
            yield turn.to("read_back", f"commit {mine.id}, answer lost", landed, **sent)
    else:
        harm = Harm.REFUSED_FOR_NOTHING if turn.fence_is_mine and not state.edited else None
        yield _refused(turn, f"commit {mine.id} refused", state)._replace(harm=harm)
    if "delay" in turn.faults and state.network is None:
        yield turn.to("read_back", f"commit {mine.id} delayed in the network", state._replace(network=request), **sent)


def _refused(turn: Turn, label: str, state: State) -> Step:
    """Go on after a plain refusal: it may be the answer to a request that botocore sent a second time."""
    if turn.rules.refusal_is_read_back:
        return turn.to("read_back", label, state, sent_with=turn.writer.fence)
    return _give_up(turn, label, state)


def after_landing(turn: Turn, label: str, state: State) -> Step:
    """Go on after the commit is known to have landed; without their rules, record and cursor are still to be written."""
    mine = turn.mine
    if not turn.rules.record_before_commit and state.record(mine.id) is not mine:
        return turn.to("write_record", label, state)
    if not turn.rules.cursor_moves_with_head and state.item.cursor != mine.cursor:
        return turn.to("write_cursor", label, state)
    seen = state.item._replace(fence=0, owner="", publishing=mine.id)
    jobs = turn.writer.jobs if mine.kind == "lost" else turn.writer.jobs[1:]
    if mine.kind == "erase" and not turn.rules.versions_go_after_publishing:
        return turn.to("read", label, state, mine=None, seen=None, jobs=jobs, sent_with=0)
    return start_converge(turn, label, state, mine=mine, jobs=jobs, seen=seen, redo=mine.kind == "lost", missing=False, sent_with=0)


def write_record(turn: Turn) -> Iterator[Step]:
    """The record, after the head names it: only without its rule."""
    mine = turn.mine
    yield after_landing(turn, f"record {mine.id}", turn.state.with_record(mine))


def write_cursor(turn: Turn) -> Iterator[Step]:
    """The cursor in a second write: only without its rule."""
    mine = turn.mine
    if turn.fence_is_mine:
        yield after_landing(turn, f"cursor {mine.cursor}", turn.state._replace(item=turn.item._replace(cursor=mine.cursor)))
    else:
        yield turn.end("cursor refused: lease lost")


def read_back(turn: Turn) -> Iterator[Step]:
    """GetItem: did the change land? 'No' is known only under another fence than the commit was sent with."""
    writer, mine, head = turn.writer, turn.mine, turn.state.record(turn.item.head)
    if _is_landed(turn.rules, mine, head):
        if turn.fence_is_mine:
            yield after_landing(turn, f"{mine.id} landed", turn.state)
        else:
            yield turn.end(f"{mine.id} landed and another run took over")
    elif turn.item.fence == writer.sent_with and turn.rules.fence_moves_before_giving_up:
        yield turn.to("move_fence", f"{mine.id} has not landed yet")
    else:
        yield _give_up(turn, f"{mine.id} did not land", turn.state)


def _is_landed(rules: Rules, mine: Change, head: Change | None) -> bool:
    if head is None:
        return False
    return mine.id in head.history if rules.landed_means_ancestor else mine.id == head.id


def move_fence(turn: Turn) -> Iterator[Step]:
    """Raise the fence if it is still mine, so that a delayed commit can't land any more; then read again."""
    state, fence = turn.state, turn.writer.fence
    if turn.fence_is_mine:
        fence += 1
        state = state._replace(item=turn.item._replace(fence=fence))
    if turn.rules.read_again_after_moving:
        yield turn.to("read_back", f"fence moved to {fence}", state, fence=fence)
    else:
        yield _give_up(turn, f"fence moved to {fence}", state, fence=fence)


def _give_up(turn: Turn, label: str, state: State, **memory: int) -> Step:
    mine = turn.mine
    state = state._replace(reported=state.reported | {mine.id})
    left = () if mine.staged_as and turn.rules.failed_commit_keeps_staged_uploads else mine.added
    return turn.to("drop" if left else "release", label, state, left=left, sent_with=0, **memory)


def drop(turn: Turn) -> Iterator[Step]:
    """AbortMultipartUpload of an upload of the attempt."""
    name, left = turn.writer.left[0], turn.writer.left[1:]
    state = requests.abort(turn.state, name) if turn.rules.dropping_aborts else requests.delete(turn.state, name)
    yield turn.to("drop" if left else "release", f"drop {name}", state, left=left)
