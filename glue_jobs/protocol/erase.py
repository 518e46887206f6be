"""Erase: the rows of given keys, and every data version that still holds one. One change, and a removal that goes on until it is done.

    look        every version that S3 keeps below the table's folder, and the rows kept beside its records, is searched; reads only
    rewrite     the head's files that hold a key are written anew without these rows, as uploads
    commit      kind `erase`: the new files, the files they replace, and the exact list (key, version) of all that holds a key. The
                same write sets the item's `Erasing` to the change. From here on nobody may use a listed version: rollback,
                re-apply, repair and as-of reads look at the lists of all erases up to the head
    converge, catalog    as for any change
    drop        open uploads of older changes that never landed, staged ones too, are aborted: their rows may be those of a key,
                and nobody can read them to find out; their parent is no longer the head
    mark        an empty object beside the record says that it removes: where the item goes back, that is how the erase is found
    hide        a listed version that is still visible gets a delete marker first, so that nothing older shows in its place
    remove      the listed versions, in pages; under the lease, never while a publish is unfinished, never a file of the head
    forget      all key filters go for good, the hidden ones too: they have bits of hashes of erased keys. Later batches make new ones
    look again  none of the list may be left; then `Erasing` is cleared

If we die …                             then                                                  who goes on
  before the commit                     uploads that nobody sees; nothing is erased           run it again
  after the commit, before converge     the table as after any change: doubled or old rows    the next run of any job converges; then
                                        may be visible, nothing is removed yet                a run of Erase (--resume) removes
  uploads gone before converge          the erase is taken back as `lost`, `Erasing` with it: the commit of `lost` drops it from
                                        `erases`; nothing was removed, because removing waits for converge
  between two removals                  some versions are gone; `Erasing` stands              a run of Erase: what is gone is not left
  after the last, before the clearing   `Erasing` stands, nothing is left                     a run of Erase clears it; any other job
                                                                                              leaves it alone and works on meanwhile
  a person removes `Erasing`            the list is in the records: a run of Erase and `verify` look at the lists of all erases
  another run, stalled past its lease   it can commit nothing, but what it writes beside a     an erase of the same key finds it
                                        record that never lands comes after the look

Only the job Erase removes versions: its role alone need be allowed to. Removing twice, or by two at once, removes what is gone already.
"""

from __future__ import annotations

from dataclasses import replace

from glue_jobs.aws.erased import erase_records, left_versions
from glue_jobs.aws.objects import hide
from glue_jobs.aws.records import write_attachment
from glue_jobs.aws.removal import held_versions, remove_versions
from glue_jobs.aws.uploads import abort_upload, list_open_uploads
from glue_jobs.core.erase_plan import Rewritten, change_of_path
from glue_jobs.core.erasure import KIND, hashed
from glue_jobs.core.errors import CommitRefused, DmslakeError, LeaseLost, RetryLater, blocked
from glue_jobs.core.history_table import history_lake
from glue_jobs.core.key_filter import FOLDER, is_filter_name
from glue_jobs.core.paths import changes_folder
from glue_jobs.core.record import ErasedVersion
from glue_jobs.core.state import read_state
from glue_jobs.core.work import HistoryWork, Work
from glue_jobs.protocol.converge import in_parallel
from glue_jobs.protocol.erase_search import Eraser, Planned, plan_erase
from glue_jobs.protocol.history import REMOVING
from glue_jobs.protocol.job import Act
from glue_jobs.protocol.lineage import Lineage
from glue_jobs.protocol.sent_twice import done_by_twin, said_done
from glue_jobs.protocol.table_run import TableRun

READ_AT_ONCE = 500  # records
ATTRIBUTE = "Erasing"
RESUME = "`dmslake erase PATH --resume`"


def erase(eraser: Eraser, salt: str, *, from_change: str = "", shown: str = "", dry_run: bool = False) -> Act:
    """What the job Erase does in a table's run. salt: random, hex. from_change, shown: the head that a person saw, and the digest of the
    list and its keys; if either is another one now, it is refused."""

    def act(run: TableRun) -> None:
        run.may_block = False
        run.open()
        done = "" if dry_run else done_by_twin(run, Lineage(run.s3, run.state.lake, run.snapshot.change), KIND)
        if done:
            finish_erases(run)
            run.note = said_done(done)
            return
        _check_head(run, from_change)
        if not dry_run:
            if run.unfinished:
                run.finish()
                _check_head(run, from_change)
            finish_erases(run)
        _check_uploaded(run)
        planned = plan_erase(run.s3, run.state, run.snapshot, eraser)
        plan = planned.plan
        if shown and plan.digest != shown:
            now = f"{plan.keys} key(s) are given now, and {len(plan.versions)} version(s) hold one"
            raise _moved_on(run, f"other keys or versions than those that were shown: {now}")
        run.context.log.event("plan", dry_run=dry_run, **plan.facts())
        if dry_run:
            run.note = "dry run: nothing was changed"
            return
        run.wished(lambda change: _work(run, eraser, planned, salt, change), action=KIND)
        finish_erases(run)
        run.note = f"{len(plan.versions)} version(s) were removed for good"
        if plan.lacking:
            columns = ", ".join(plan.columns)
            run.warnings.append(f"{plan.lacking} version(s) that S3 keeps have no column {columns}, and were not searched (docs/erase.md)")
        if plan.unsearched:
            others = f"{len(plan.unsearched)} object(s) of others or damaged were not searched, first {plan.unsearched[0]}"
            run.warnings.append(f"{others}: look whether they hold a key that was erased")

    return act


def resume() -> Act:
    """Remove what earlier erases left, without a new one."""

    def act(run: TableRun) -> None:
        run.may_block = False
        run.open()
        if run.unfinished:
            run.finish()
        removed = finish_erases(run)
        run.note = f"{removed} version(s) were removed for good" if removed else "nothing to do: no erase has a version left"

    return act


def _check_uploaded(run: TableRun) -> None:
    """Refuse where files that the table has are open uploads still, as where an unfinished publish was taken off its item by hand: their
    rows could not be searched, and what is left open is aborted at the end."""
    for lake, snapshot in ((run.state.lake, run.snapshot), (history_lake(run.state.lake), run.history())):
        keys = {lake.key + path for path in snapshot.files}
        waiting = sorted(keys & {upload.key for upload in list_open_uploads(run.s3, lake.bucket, lake.key)})
        if waiting:
            raise blocked(
                "unfinished-upload",
                f"{len(waiting)} data file(s) of the table were never made visible",
                where=f"s3://{lake.bucket}/{waiting[0]}",
                expected="a data file",
                found="an open upload",
                todo=f"`dmslake verify {run.state.path.in_shell} --repair` completes it; then erase. Nothing was erased",
            )


def _check_head(run: TableRun, from_change: str) -> None:
    if from_change and run.snapshot.change != from_change:
        raise _moved_on(run, f"its head was {from_change}, now it is {run.snapshot.change}")


def _moved_on(run: TableRun, what: str) -> CommitRefused:
    return CommitRefused(
        f"{run.state.path} has gone on since the erase was planned: {what}",
        "moved-on",
        "look again with --dry-run, then run again; nothing was erased",
    )


def _work(run: TableRun, eraser: Eraser, planned: Planned, salt: str, change: str) -> Work:
    """The change: nothing of raw moves, and a reload that a person asked for by LastFullLoadDate still waits."""
    snapshot, plan, found = run.snapshot, planned.plan, planned.found
    done = eraser.rewrite(run.state, snapshot, found, change) if plan.files else Rewritten()
    if done.superseded != plan.files:
        raise _differs(f"{len(done.superseded)} files were written anew, not the {len(plan.files)} that were found")
    if done.counts.deleted != plan.rows:
        raise _differs(f"{done.counts.deleted} rows were left out, not the {plan.rows} that were found")
    kept = {name: run.state.item[name] for name in ("LastFullLoadDate",) if name in run.state.item}
    return Work(
        kind=KIND,
        schema=snapshot.schema,
        primary_key=snapshot.primary_key,
        partitioning=snapshot.partitioning,
        generation=snapshot.generation,
        added=done.added,
        superseded=done.superseded,
        counts=done.counts,
        timestamp_column=snapshot.timestamp_column,
        cursor_after=snapshot.cursor,
        last_full_load=snapshot.last_full_load,
        values={**kept, ATTRIBUTE: change},
        erased=plan.versions,
        erased_keys=hashed(plan.columns, _salt_of(run) or salt, found.texts),
        history=_history_work(run, eraser, planned, change),
        details=plan.facts(),
    )


def _salt_of(run: TableRun) -> str:
    """The salt of the table's erase before, '' where there is none: a batch then hashes each of its keys once, however many erases were."""
    last = run.snapshot.erases[-1:]
    keys = [record.erased_keys for record in erase_records(run.s3, run.state.lake, last)]
    return keys[0].salt if keys and keys[0] is not None else ""


def _history_work(run: TableRun, eraser: Eraser, planned: Planned, change: str) -> HistoryWork | None:
    """The history table's files without the keys; None where none of them holds one."""
    history, found, plan = planned.history, planned.history_found, planned.plan
    if found is None or not plan.history_files:
        return None
    own = replace(run.state, out_path=str(history_lake(run.state.lake)))
    done = eraser.rewrite(own, history, found, change, is_history=True)
    if done.superseded != plan.history_files or done.counts.deleted != plan.history_rows:
        raise _differs(
            f"{len(done.superseded)} files and {done.counts.deleted} rows of the history table, not {len(plan.history_files)} and"
            f" {plan.history_rows}"
        )
    at = run.snapshot.history
    stale = at is None or at.is_stale
    return HistoryWork(history.schema, history.primary_key, done.added, done.superseded, is_stale=stale)


def _differs(what: str) -> DmslakeError:
    return DmslakeError(f"searching and rewriting don't agree: {what}", "erase-differs", "this is a defect: report it; nothing was erased")


def finish_erases(run: TableRun) -> int:
    """Remove what is left of the lists of all erases up to the head, look again, and clear `Erasing`; how many there were to remove."""
    erases = run.snapshot.erases
    if run.state.publishing:
        raise RetryLater(f"change {run.state.publishing} of {run.state.path} is not published yet", "unfinished-publish", RESUME)
    left = left_versions(run.s3, run.state.lake, erases)
    if left or run.state.erasing:
        _drop_older_uploads(run, max(erases, default=""))
        if left:
            write_attachment(run.s3, run.state.lake, max(erases), REMOVING, b"")
        _remove(run, left)
        _remove_key_filters(run)
        again = left_versions(run.s3, run.state.lake, erases)
        if again:
            first = again[0][0]
            raise DmslakeError(
                f"{len(again)} erased version(s) of {run.state.path} are still there, first {first.key} version {first.version}",
                "not-removed",
                f"find out who keeps them (an object lock?), then {RESUME}",
            )
    if run.state.erasing:
        _clear(run)
    return len(left)


def _remove(run: TableRun, left: tuple[tuple[ErasedVersion, bool], ...]) -> None:
    lake = run.state.lake
    folders = ((lake, run.snapshot), (history_lake(lake), run.history()))
    in_use = {folder.key + path for folder, snapshot in folders for path in snapshot.files}
    needed = [each.key for each, _ in left if each.key in in_use]
    if needed:
        raise DmslakeError(
            f"{len(needed)} version(s) on the list of an erase are of files that the table has now, first {needed[0]}",
            "erase-in-use",
            "this is a defect: report it; nothing was removed",
        )
    visible = sorted({each.key for each, is_visible in left if is_visible})
    if visible:
        run.lease.check()
        hide(run.s3, lake.bucket, visible)
    run.context.log.event("removing", versions=len(left), bytes=sum(each.size_bytes for each, _ in left))
    remove_versions(run.s3, lake.bucket, [each for each, _ in left], run.lease.check, pause=run.context.wait)


def _remove_key_filters(run: TableRun) -> None:
    """Also those of files that held no erased key: they are only a cache, and no record says what is in them."""
    folder = changes_folder(run.state.lake)
    held = held_versions(run.s3, folder.bucket, folder.join(FOLDER).key)
    filters = [ErasedVersion(each.key, each.version, each.size_bytes) for each in held if is_filter_name(each.key[len(folder.key) :])]
    remove_versions(run.s3, folder.bucket, filters, run.lease.check, pause=run.context.wait)


def _drop_older_uploads(run: TableRun, newest: str) -> None:
    """Abort what changes before the erase uploaded and never completed. Later ones, a staged change's too, are built on erased rows."""
    older = []
    for lake in (run.state.lake, history_lake(run.state.lake)):
        uploads = list_open_uploads(run.s3, lake.bucket, lake.key)
        older += [upload for upload in uploads if "" < change_of_path(upload.key[len(lake.key) :]) < newest]
    run.lease.check()
    in_parallel(lambda upload: abort_upload(run.s3, run.state.lake.bucket, upload.key, upload.id), older)


def _clear(run: TableRun) -> None:
    table, path = run.context.table, str(run.state.path)
    if not table.write_under_fence(path, run.lease.fence, {}, (ATTRIBUTE,)):
        raise LeaseLost(f"another run took the lease of {path}", "lease-lost", f"nothing is left to remove; {RESUME} says so")
    run.state = read_state(table.get(path) or {})
