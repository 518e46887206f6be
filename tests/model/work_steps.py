"""The work of a job, up to its record: uploads that nobody sees yet, copies of hidden files, and what the change will say."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from tests.model import requests
from tests.model.erase_steps import erase_work
from tests.model.stage_steps import commit_staged, discard, stage
from tests.model.state import Change, Item, State, change, made_from, origins
from tests.model.turn import Step, Turn

# Jobs that a schedule starts → (files added, whether the head's are superseded, whether the columns change)
BATCHES = {
    "batch": (2, True, False),
    "append": (1, False, False),
    "partition": (1, False, False),
    "rewrite": (1, True, False),
    "columns": (0, False, True),
    "layout": (0, False, True),
}

# What has steps of its own before its commit
OTHERS: dict[str, Callable[[Turn], Iterator[Step]]] = {"stage": stage, "commit": commit_staged, "discard": discard, "erase": erase_work}


def work(turn: Turn) -> Iterator[Step]:
    """Uploads and record of the next job. One step: nobody looks at either before the commit."""
    job, head, seen = turn.writer.jobs[0], turn.mine, turn.seen
    if job in BATCHES:
        yield _batch(turn, job, head, seen)
        return
    if job in OTHERS:
        yield from OTHERS[job](turn)
        return
    target = _target(turn, job, head)
    if target is None or (job == "reapply" and head.kind != "rollback"):
        yield turn.to("release", f"nothing to {job}", seen=None, mine=None)
    else:
        yield _restore(turn, job, head, target.content, seen)


def _target(turn: Turn, job: str, head: Change) -> Change | None:
    """The change that is gone back or forth to; `to-A1` names it."""
    if job.startswith("to-"):
        return turn.state.record(job[len("to-") :])
    return head.parent if job == "reapply" else head.content.parent


def _id(turn: Turn, head: Change) -> str:
    return f"{turn.writer.name}{turn.writer.counter + 1}" if turn.rules.change_ids_are_unique else f"c{len(head.history)}"


def _batch(turn: Turn, job: str, head: Change, seen: Item) -> Step:
    """Apply the next raw file after the cursor; a rewrite takes none."""
    if not head.awaited <= turn.state.raw | head.applied:
        return turn.end("a raw file that is waited for is gone: blocked")
    takes = frozenset(sorted(number for number in turn.state.raw if number > seen.cursor)[: job != "rewrite"])
    if not takes and job != "rewrite":
        return turn.to("release", "nothing pending", seen=None, mine=None)
    count, supersedes, columns = BATCHES[job]
    id_ = _id(turn, head)
    added = tuple(f"f{turn.writer.name}{turn.writer.counter + 1}{part}{made_from(head.files)}" for part in "ab"[:count])
    superseded = tuple(sorted(head.files)) if supersedes else ()
    record = change(
        id_,
        parent=head,
        fence=turn.writer.fence,
        files=(head.files - set(superseded)) | set(added),
        added=added,
        superseded=superseded,
        cursor=max(takes, default=head.cursor),
        applied=head.applied | takes,
        awaited=head.awaited - takes,
        columns=id_ if columns else head.columns,
        layout=id_ if job == "layout" else head.layout,
        partitions=head.partitions | ({id_} if job in ("columns", "partition") else set()),
        planned_with=(seen.cursor, seen.paused),
    )
    return _recorded(turn, turn.state, record)


def _restore(turn: Turn, job: str, head: Change, target: Change, seen: Item) -> Step:
    """A change with the rows of `target`: its hidden files come back as copies under new keys."""
    rules, writer = turn.rules, turn.writer
    inputs = head.applied - target.applied
    gone = inputs - turn.state.raw
    if gone and rules.rollback_inputs_must_be_there:
        return turn.to("release", f"raw files {sorted(gone)} would be pending and are gone: refused", seen=None, mine=None)
    id_, have = _id(turn, head), {min(origins((name,))): name for name in head.files}
    wanted = sorted(target.files)
    kept = {have[origin] for name in wanted for origin in origins((name,)) if origin in have}
    missing = [name for name in wanted if not origins((name,)) & set(have)]
    if head.listed & set(missing) and rules.listed_versions_are_not_restored:
        return turn.to("release", "a data version was erased: refused", seen=None, mine=None)
    copyable = [name for name in missing if requests.has_data(turn.state, name)]
    if copyable != missing and rules.every_copy_or_no_rollback:
        return turn.to("release", "a data version has expired: refused", seen=None, mine=None)
    copies = tuple(f"{min(origins((name,)))}@{writer.name}{writer.counter + 1}" for name in copyable)
    back = copies if rules.restore_by_copy else tuple(copyable)
    record = change(
        id_ if rules.undo_is_a_new_change else target.id,
        parent=head if rules.undo_is_a_new_change else target.parent,
        kind="reapply" if job == "reapply" else "rollback",
        fence=writer.fence,
        files=frozenset(kept | set(back)),
        added=copies if rules.restore_by_copy else (),
        superseded=tuple(sorted(head.files - kept)),
        cursor=target.cursor,
        applied=target.applied,
        awaited=target.awaited | (inputs if rules.awaited_inputs_are_listed else frozenset()),
        stands_for=target,
        columns=target.columns,
        layout=target.layout,
        partitions=target.partitions,
        planned_with=(seen.cursor, seen.paused),
        rests=job == "rollback",
        stranded=gone,
        unhidden=() if rules.restore_by_copy else back,
    )
    return _recorded(turn, turn.state, record)


def _recorded(turn: Turn, state: State, record: Change) -> Step:
    for name in record.added:
        state = requests.open_upload(state, name)
        if not turn.rules.uploads_wait_for_the_commit:
            state, _ = requests.complete(state, name, lenient=False)
    if turn.rules.record_before_commit:
        state = state.with_record(record)
    return turn.to("commit", f"upload and record {record.id} ({record.kind})", state, mine=record, counter=turn.writer.counter + 1)
