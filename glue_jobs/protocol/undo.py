"""Rollback and re-apply of one table: look (reads only, also for a dry run), then do it as one change.

If we die …                     then
  before the commit             uploads of copies that nobody sees; the table is as it was
  after it                      the change counts: files, cursor and pause went in one write; the next run converges
  after a lost change was taken back, where that is all there was to undo, and before the pause
                                its files are pending and the table is active, as where a run had found it lost: the next one applies them
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Callable

from glue_jobs.aws.copies import version_gone
from glue_jobs.aws.erased import read_erased
from glue_jobs.aws.records import read_record
from glue_jobs.core.erasure import NOTHING_ERASED, Erased, version_erased
from glue_jobs.core.errors import CommitRefused, UsageError, blocked
from glue_jobs.core.history_table import history_lake
from glue_jobs.core.paths import S3Uri
from glue_jobs.core.record import ChangeRecord, Counts, DataFile
from glue_jobs.core.replay import began_at, fold_of
from glue_jobs.core.snapshot import Snapshot
from glue_jobs.core.state import TableState
from glue_jobs.core.undo import Older, UndoPlan, Wish, asks_older, plan_undo, root, rows_apart, undone_tail
from glue_jobs.core.verify import change_in_name
from glue_jobs.core.work import Work
from glue_jobs.protocol.history import read_snapshot, snapshot_of
from glue_jobs.protocol.history_table import HistoryUndo, plan_history_undo, snapshot_at
from glue_jobs.protocol.job import Act
from glue_jobs.protocol.lineage import Lineage, find_goal
from glue_jobs.protocol.raw import etags_of
from glue_jobs.protocol.restore import Source, aborted_on_error, copy_files, erased_file, find_sources
from glue_jobs.protocol.sent_twice import done_by_twin, said_done
from glue_jobs.protocol.table_run import TableRun

NAMED_CHANGES = 200  # ids of undone changes that a record lists


@dataclass(frozen=True)
class Prepared:
    """A plan that can be carried out: every file to restore has its source."""

    plan: UndoPlan
    sources: dict[str, Source]
    history: HistoryUndo = HistoryUndo()


def prepare(s3: Any, state: TableState, head: Snapshot, wish: Wish, goal_id: str | None = None) -> Prepared:
    """What would be done for the wish, checked: raw files that become pending and data versions are there. Reads only.

    goal_id: the change that the wish leads to, where that was found out before. Raises UsageError for a wish that can't be meant,
    TableBlocked (code version-gone, pending-file-gone) for one that can't be kept.
    """
    wish.check()
    lineage = Lineage(s3, state.lake, head.change)
    if goal_id is None:
        goal_id = find_goal(lineage, wish)
    goal = snapshot_of(s3, state.lake, read_record(s3, state.lake, goal_id)) if goal_id else Snapshot()
    since = tuple(lineage.back(after=goal_id))
    undone, redone = rows_apart(lineage, head.stands_for, goal.stands_for)
    left = wish.reapply is not None and len(redone) < len(undone_tail(lineage, lineage(head.change)))
    older = _older(lineage, goal) if goal_id and asks_older(goal, since) else None
    plan = plan_undo(state, head, goal, since, undone, redone, wish, left=left, older=older)
    if wish.skip and goal.is_empty and not plan.is_nothing:
        raise UsageError(
            f"--skip would leave {state.path} empty for good, without the rows of its load",
            "skip-of-load",
            "roll back without --skip: the table is paused until it is to be loaded again; or `dmslake deactivate PATH`",
        )
    if not wish.skip:
        _check_pending(s3, state, plan)
    erased = read_erased(s3, state.lake, head.erases)
    sources, gone = find_sources(s3, state.lake, plan.restored, erased)
    if gone:
        raise _gone(state.lake, gone, "that change", erased, _how_far(s3, state.lake, head, since, erased))
    history = plan_history_undo(s3, state.lake, head, goal, erased)
    if history.gone:
        whose = "that change's history table"
        raise _gone(history_lake(state.lake), history.gone, whose, erased, _how_far(s3, state.lake, head, since, erased))
    if not state.publishing:  # else what is yet to be hidden is visible
        _check_hidden(state, (*sources.values(), *history.sources.values()))
    return Prepared(plan, sources, history)


def _older(lineage: Lineage, goal: Snapshot) -> Older:
    records = fold_of(lineage, goal.stands_for)
    return Older.of(records, began_at(records[0]))


def roll_back(wish: Wish, dry_run: bool = False, from_change: str = "") -> Act:
    """What the job Rollback does in a table's run. from_change: the head that a person was shown; on another one it is refused."""

    def act(run: TableRun) -> None:
        run.may_block = False
        run.open()
        lineage = Lineage(run.s3, run.state.lake, run.snapshot.change)
        done = "" if dry_run else done_by_twin(run, lineage, "rollback" if wish.reapply is None else "reapply")
        if done:
            run.note = said_done(done)
            return
        if from_change and run.snapshot.change != from_change:
            raise CommitRefused(
                f"{run.state.path} has gone on since the rollback was planned: its head was {from_change}, now it is {run.snapshot.change}",
                "moved-on",
                "look again with --dry-run, then run again; nothing was changed",
            )
        # Found before anything is finished: where the last change turns out lost, `previous` must not be one more.
        before = run.snapshot
        if lineage.head != before.change:  # the other run's change was taken back
            lineage = Lineage(run.s3, run.state.lake, before.change)
        goal_id = find_goal(lineage, wish.check())
        if run.unfinished and not dry_run:
            run.finish()
        is_taken_back = run.snapshot.change != before.change
        # Taken back in this run, its raw files are pending by the rollback, not before it: --skip leaves them out.
        head = replace(run.snapshot, awaited=before.awaited) if is_taken_back else run.snapshot
        prepared = prepare(run.s3, run.state, head, wish, goal_id)
        run.context.log.event("plan", dry_run=dry_run, **facts(prepared.plan))
        if prepared.plan.is_nothing:
            run.note = "nothing to do: the table already has that state"
            if is_taken_back and "Paused" in prepared.plan.values:
                run.pause(prepared.plan.values["Paused"])
            return
        if dry_run:
            run.note = "dry run: nothing was changed"
            return
        run.wished(lambda change: work_of(run.s3, run.state.lake, prepared, change), action=prepared.plan.kind)

    return act


def work_of(s3: Any, lake: S3Uri, prepared: Prepared, change: str) -> Work:
    """The change: files are copied now, and become visible after the commit."""
    plan, after = prepared.plan, prepared.plan.after
    added = copy_files(s3, lake, plan.restored, prepared.sources, change)
    with aborted_on_error(s3, lake, added):
        history = prepared.history.work(s3, lake, change)
    return Work(
        kind=plan.kind,
        target=plan.goal.stands_for,
        like=after,
        added=added,
        superseded=plan.superseded,
        schema=after.schema,
        primary_key=after.primary_key,
        partitioning=after.partitioning,
        generation=after.generation,
        timestamp_column=after.timestamp_column,
        cursor_after=after.cursor,
        last_full_load=after.last_full_load,
        skipped=plan.skipped,
        counts=Counts(),
        history=history,
        history_at=prepared.history.at,
        values=plan.values,
        requests=("Paused",) if plan.lifts_pause else (),
        details={
            "state_of": plan.goal.change,
            "rows_before": plan.head.rows,
            "bytes_copied": plan.bytes_to_copy,
            "undone": [record.id for record in plan.undone[:NAMED_CHANGES]],
            "redone": [record.id for record in plan.redone[:NAMED_CHANGES]],
            "undone_count": len(plan.undone),
            "redone_count": len(plan.redone),
        },
    )


def facts(plan: UndoPlan) -> dict[str, Any]:
    """A plan for reports and logs: which changes go and come, files, bytes, rows, cursors, partitions."""
    partitions = {file.partition for file in plan.restored} | {plan.head.files[path].partition for path in plan.superseded}
    return {
        "kind": plan.kind,
        "from_change": plan.head.change,
        "to_change": plan.goal.change,
        "undone": [record.id for record in plan.undone],
        "redone": [record.id for record in plan.redone],
        "files_superseded": len(plan.superseded),
        "files_restored": len(plan.restored),
        "files_kept": len(plan.head.files) - len(plan.superseded),
        "bytes_to_copy": plan.bytes_to_copy,
        "rows_before": plan.head.rows,
        "rows_after": plan.goal.rows,
        "cursor_before": plan.head.cursor,
        "cursor_after": plan.after.cursor,
        "partitions": len(partitions),
        "pending_again": [item.key for item in plan.awaited],
        "skipped": [item.key for item in plan.skipped],
        "paused": plan.values.get("Paused", ""),
        "columns": [f"{column.name} {column.type}" for column in plan.after.schema] if plan.after.schema != plan.head.schema else [],
        "nothing": plan.is_nothing,
    }


def _check_pending(s3: Any, state: TableState, plan: UndoPlan) -> None:
    """Refuse a rollback that makes raw files pending which are no longer there as they were: the table could never catch up."""
    if not plan.awaited:
        return
    raw = state.path.raw
    listed = etags_of(s3, raw, (item.key for item in plan.awaited))
    wrong = [item for item in plan.awaited if not item.matches(listed.get(item.key))]
    if wrong:
        first = wrong[0]
        skip = "give --skip: the table keeps its cursor, and these files are left out for good"
        whole = f"`dmslake reapply {state.path.in_shell}` brings back all that is undone"
        raise blocked(
            "pending-file-gone",
            f"after this {plan.kind} {len(plan.awaited)} raw file(s) would have to be applied again, and {len(wrong)} of them are not there"
            " as they were",
            where=str(S3Uri(raw.bucket, first.key)),
            expected=f"ETag {first.etag}" if first.etag else "the file",
            found=f"ETag {listed[first.key]}" if first.key in listed else "no such object",
            todo=f"put the files back, or {whole if plan.kind == 'reapply' else skip}",
        )


def _check_hidden(state: TableState, sources: Iterable[Source]) -> None:
    """Refuse to restore a file that readers see, although the head lacks it: they would see it and its copy."""
    visible = [key for source in sources for key in source.visible]
    if visible:
        bucket, first = state.lake.bucket, visible[0]
        by_hand = f"`aws s3api delete-object --bucket {shlex.quote(bucket)} --key {shlex.quote(first)}` hides it"
        raise blocked(
            "visible-again",
            f"{len(visible)} data file(s) that were hidden are visible again: somebody removed their delete markers",
            where=f"s3://{bucket}/{first}",
            expected="a delete marker",
            found="a visible object",
            # An adopted file's name does not say that it is ours, so that a repair leaves it alone.
            todo=(f"`dmslake verify {state.path.in_shell} --repair` hides them" if change_in_name(first) else by_hand) + ", then go back",
        )


def _how_far(s3: Any, lake: S3Uri, head: Snapshot, since: Sequence[ChangeRecord], erased: Erased) -> str:
    """What a refusal says of the oldest change that can still be gone back to."""
    lost = {record.lost for record in since}  # never a state
    oldest = oldest_restorable(s3, lake, head, [record.id for record in since[1:] if record.id not in lost], erased)
    where = f"one can still go back as far as change {oldest}" if oldest else "no earlier state can be restored any more"
    return f"nothing was changed; {where}"


def _gone(lake: S3Uri, gone: Sequence[DataFile], whose: str, erased: Erased, todo: str) -> Exception:
    """The refusal for files of the folder `lake` that are no more. whose: the change they are of, or its history table."""
    taken = erased_file(lake, gone, erased)
    if taken is not None:
        file, erase = taken
        what = f"a data file of {whose} ({len(gone)} of its files are no more)"
        return version_erased(lake.bucket, lake.key + file.path, erase, what, todo)
    return version_gone(lake.bucket, lake.key + gone[0].path, f"{len(gone)} data file(s) of {whose}, this one first", todo)


def oldest_restorable(s3: Any, lake: S3Uri, head: Snapshot, newest_first: Sequence[str], erased: Erased = NOTHING_ERASED) -> str:
    """The oldest of the changes whose files all exist, the history table's too, '' if it is none.

    Searched by halves: versions expire in the order of age. After an erase older changes may be restorable that this search does not find:
    it names one that is. A history that was built anew hid all its files at once; changes from before it began need none of them.
    """

    def has_files(goal: Snapshot) -> bool:
        return not missing_files(s3, lake, head, goal, erased)

    oldest = _search(s3, lake, newest_first, has_files)
    if not oldest or head.history is None:
        return oldest
    beside, history = history_lake(lake), snapshot_at(s3, lake, head)

    def has_history(goal: Snapshot) -> bool:
        return not missing_files(s3, beside, history, snapshot_at(s3, lake, goal), erased)

    if has_history(read_snapshot(s3, lake, oldest)):
        return oldest
    newer = newest_first[: newest_first.index(oldest)]
    return _search(s3, lake, newer, lambda goal: has_files(goal) and has_history(goal))


def _search(s3: Any, lake: S3Uri, newest_first: Sequence[str], is_there: Callable[[Snapshot], bool]) -> str:
    best = ""
    low, high = 0, len(newest_first) - 1
    while low <= high:
        middle = (low + high) // 2
        if is_there(read_snapshot(s3, lake, newest_first[middle])):
            best, low = newest_first[middle], middle + 1
        else:
            high = middle - 1
    return best


def missing_files(s3: Any, lake: S3Uri, head: Snapshot, goal: Snapshot, erased: Erased = NOTHING_ERASED) -> tuple[DataFile, ...]:
    """The files that a return to `goal` would need and that S3 has no more."""
    roots = {root(file) for file in head.files.values()}
    return find_sources(s3, lake, [file for file in goal.files.values() if root(file) not in roots], erased)[1]
