"""Requests around a run: look at the item, take the lease, read and plan, give the lease back. Readers, who have none."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from tests.model.converge_steps import start_converge
from tests.model.erase_steps import start_removing
from tests.model.rules import Harm
from tests.model.state import Item
from tests.model.turn import Step, Turn
from tests.model.work_steps import BATCHES


def look(turn: Turn) -> Iterator[Step]:
    """GetItem before the lease."""
    alone = all(other.at in ("end", "look") for other in turn.state.writers)
    if alone or "one_at_a_time" not in turn.faults:
        yield turn.to("take", f"look, fence {turn.item.fence}", seen=turn.item)


def take(turn: Turn) -> Iterator[Step]:
    """The conditional update that takes the lease; over a held one too, because a pause can be longer than any watch."""
    rules, item, writer = turn.rules, turn.item, turn.writer
    owner = writer.name if rules.owner_is_random else "run"
    fence = turn.seen.fence + 1
    if item.owner and not rules.dead_lease_is_taken_over:
        yield turn.end("lease held, for good")
    elif rules.lease_is_conditional and (item.fence, item.owner) != (turn.seen.fence, turn.seen.owner):
        if (item.fence, item.owner) == (fence, owner):
            yield _taken(turn, f"lease refused, but fence {fence} is mine: the answer was lost", item, fence)
        else:
            yield turn.end("lease refused")
    else:
        taken = item._replace(fence=fence, owner=owner)
        yield _taken(turn, f"lease, fence {fence}" + (f", taken over from {item.owner}" if item.owner else ""), taken, fence)


def _taken(turn: Turn, label: str, item: Item, fence: int) -> Step:
    taken = turn.to("read", label, turn.state._replace(item=item), fence=fence, seen=None)
    if turn.rules.item_is_read_after_lease:
        return taken
    planned = plan(replace(turn, state=taken.state), turn.seen)
    return planned._replace(label=f"{turn.writer.name}: {label} / {planned.label}")


def read(turn: Turn) -> Iterator[Step]:
    """GetItem under the lease, and the plan made from it."""
    yield plan(turn, turn.item)


def plan(turn: Turn, seen: Item) -> Step:
    """What to do next: unfinished steps first, then the next job."""
    writer, head = turn.writer, turn.state.record(seen.head)
    seen = seen._replace(fence=0, owner="")
    if head is None:
        return turn.to("end", "the head has no record: blocked")
    erase = turn.state.record(seen.erasing) if writer.eraser else None
    if erase is not None and not (seen.publishing and turn.rules.versions_go_after_publishing):
        return start_removing(turn, erase, head, seen)
    if seen.publishing and turn.rules.unfinished_first:
        return start_converge(turn, f"finish {head.id}", turn.state, seen=seen, mine=head, redo=True, missing=False)
    if seen.catalog_pending:
        return turn.to("catalog_read", f"finish the catalog of {head.id}", seen=seen, mine=head)
    if writer.jobs in ((), ("resume",)) or (seen.paused and writer.jobs[0] in (*BATCHES, "stage")):
        return turn.to("release", "nothing to do", seen=None, mine=None)
    return turn.to("work", f"plan {writer.jobs[0]} on {head.id}", seen=seen, mine=head)


def release(turn: Turn) -> Iterator[Step]:
    """Give the lease back; under the fence, unless nothing is."""
    if turn.fence_is_mine or not turn.rules.writes_carry_the_fence:
        yield turn.to("end", "release", turn.state._replace(item=turn.item._replace(owner="")))
    else:
        yield turn.end("release refused")


def reader_look(turn: Turn) -> Iterator[Step]:
    """A reader chooses a snapshot: the head's; while that is unpublished its parent's. A change that takes back a lost one needs nothing
    completed, and its parent never was: there it is the head's after all."""
    head = turn.state.record(turn.item.head)
    if head is None:
        yield turn.end("no record to read")
        return
    older = turn.item.publishing and head.kind != "lost" and turn.rules.readers_pass_over_unpublished
    snapshot = head.parent if older and head.parent else head
    yield turn.to("reader_get", f"read {snapshot.id}", mine=snapshot)


def reader_get(turn: Turn) -> Iterator[Step]:
    """GET of the data version of every file of the snapshot."""
    missing = {file for file in turn.mine.files if not turn.state.key(file).data}
    head = turn.state.record(turn.item.head)
    erased = missing & head.listed if head else set()
    step = turn.end(f"{sorted(erased)} were erased" if erased else f"no data in {sorted(missing)}" if missing else "all read")
    yield step._replace(harm=Harm.READ_HALF if missing - erased else None)
