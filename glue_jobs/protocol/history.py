"""Reading a table's history: the snapshot after a change, ancestors, and whether the state went back behind the records."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from glue_jobs.aws.objects import list_files
from glue_jobs.aws.records import list_hidden_records, list_records, read_record, read_record_outline, read_records
from glue_jobs.aws.versions import versions_of
from glue_jobs.core.errors import TableBlocked, UsageError, blocked
from glue_jobs.core.history_table import COLUMNS, history_lake, is_changed_by
from glue_jobs.core.ids import ChangeId, attachment_name
from glue_jobs.core.paths import S3Uri, changes_folder
from glue_jobs.core.record import ChangeRecord
from glue_jobs.core.snapshot import TOTALS, Snapshot, apply, outline, replay

WENT_BACK = "state-went-back"
BATCHES = ("incremental", "late")
BEGIN_WITHOUT_FILES = ("adopt", "create")  # kinds of a table's first change
# Endings of empty objects beside a record.
DISCARDED = "discarded"  # of a staged change
REMOVING = "removing"  # of an erase that landed and was published: what it lists may be removed from then on


def read_snapshot(s3: Any, lake: S3Uri, head: str) -> Snapshot:
    """The snapshot after change `head`; the empty one for ''. Reads the head's record and at most those since the last checkpoint."""
    if not head:
        return Snapshot()
    return snapshot_of(s3, lake, read_record(s3, lake, head))


def read_outline(s3: Any, lake: S3Uri, head: str) -> Snapshot:
    """The same without its files where there are many, of which only number, rows and bytes are known: all that a plan needs. What is
    read does not grow with the table. The files of a small table are there."""
    if not head:
        return Snapshot()
    record, is_whole = read_record_outline(s3, lake, head)
    if TOTALS not in record.details:  # of a small table, or by an older version
        return snapshot_of(s3, lake, record if is_whole else read_record(s3, lake, head))
    chain = () if record.checkpoint is not None or not record.parent else record.chain
    with ThreadPoolExecutor(max(1, len(chain))) as pool:
        before = [found for found, _ in pool.map(lambda change: read_record_outline(s3, lake, change), chain)]
    return outline([*before, record])


def snapshot_of(s3: Any, lake: S3Uri, record: ChangeRecord) -> Snapshot:
    """The snapshot after `record`."""
    if record.checkpoint is not None or not record.parent:
        return apply(Snapshot(), record)
    return apply(replay(read_records(s3, lake, record.chain)), record)


def ancestors(s3: Any, lake: S3Uri, change: str) -> Iterator[ChangeRecord]:
    """The records of `change`, its parent, and so on to the first."""
    while change:
        record = read_record(s3, lake, change)
        yield record
        change = record.parent


def is_landed(s3: Any, lake: S3Uri, head: str, change: str) -> bool:
    """Whether `change` is `head` or an ancestor of it. Ids sort by commit, so the walk ends at the first id that is not greater."""
    if head < change:
        return False
    for record in ancestors(s3, lake, head):
        if record.id <= change:
            return record.id == change
    return False


def is_discarded(s3: Any, lake: S3Uri, change: str) -> bool:
    """Whether a person discarded the staged change."""
    return _is_marked(s3, lake, change, DISCARDED)


def _is_marked(s3: Any, lake: S3Uri, change: str, ending: str) -> bool:
    mark = changes_folder(lake).join(attachment_name(change, ending))
    return any(file.key == mark.key for file in list_files(s3, mark.bucket, mark.key))


def greatest_fence(s3: Any, lake: S3Uri) -> int:
    """The greatest fence in the names of the table's records, 0 without any: a new item's fence starts above it.

    Where no record is visible those that a forget has hidden count, so that no request from before it can land on the new item.
    """
    changes = list(list_records(s3, lake)) or list_hidden_records(s3, lake)
    return max((ChangeId.parse(change).fence for change in changes), default=0)


def check_not_behind(s3: Any, lake: S3Uri, head: str, fence_before: int | None, path: str) -> None:
    """Refuse to go on where the records say that the item went back (deleted, restored from a backup, a stale form saved).

    fence_before: the greatest that the item gave out, None where it has none; it is never less than the head's own. Records after the
    head are attempts that never landed, with a fence the item has already given out, and with no file that was ever completed. One with
    a greater fence, or with a completed file, was the head once. Of a table without a head any record of another table tells that the
    folder is not its own: a change that landed need not have left a file, or was not published yet.
    """
    if head and fence_before is not None and head_fence(head) > fence_before:
        raise _went_back(path, f"a Fence of {head_fence(head)} at least, that of the item's Head {head}", f"Fence {fence_before}")
    for change in list_records(s3, lake, head):
        record = read_record(s3, lake, change)
        if not head:
            check_own(record, lake, path)
        if ChangeId.parse(change).fence > (fence_before or 0) or _was_published(s3, lake, record):
            check_own(record, lake, path)
            raise _went_back(path, f"no committed change after the item's Head {head or '(none)'}", change)


def head_fence(head: str) -> int:
    """That under which the item's Head was committed; 0 for a text that is no change, whose record will be missed."""
    try:
        return ChangeId.parse(head).fence
    except UsageError:
        return 0


def _went_back(path: str, expected: str, found: str) -> TableBlocked:
    return blocked(
        WENT_BACK,
        "the table's item is older than its change records: it was deleted, restored from a backup or overwritten",
        where=path,
        expected=expected,
        found=found,
        todo=f"`dmslake recover {shlex.quote(path)}` sets Head and Fence from the records",
    )


def check_own(record: ChangeRecord, lake: S3Uri, path: str) -> None:
    """Refuse a table whose folder is another table's, or another's history table, as `record`, one of those in it, tells."""
    if record.table == path:
        return
    if record.schema[-len(COLUMNS) :] == COLUMNS:
        raise blocked(
            "history-folder-taken",
            "the table's folder is the history table of another",
            where=str(lake),
            expected="a folder of its own",
            found=f"the row versions of {record.table}",
            todo=f"set out_path of {path} to another folder (s3://bucket/prefix/schema/table/)",
        )
    raise blocked(
        "lake-folder-taken",
        f"the lake folder of {path} is that of the table {record.table}: its change records stand there",
        where=str(lake),
        expected="a folder of its own",
        found=f"change {record.id} of {record.table}",
        todo=f"set out_path of {shlex.quote(path)} to another folder (s3://bucket/prefix/schema/table/); if it was loaded here before, "
        f"`dmslake forget {shlex.quote(path)}` comes first, without --purge",
    )


def _was_published(s3: Any, lake: S3Uri, record: ChangeRecord, thorough: bool = False) -> bool:
    """Whether the record's change was published: an uploaded file has data, or, where none was uploaded, a superseded one is hidden.

    Only converge does either, and only for a change that landed. An erase may do neither, and leaves a mark that it removes. A change
    that takes back a lost one leaves no trace: what it adds was there before, and what it supersedes may never have been.
    All uploaded ones are looked at: who was killed may have completed any.
    thorough: and all superseded ones, since versions and markers expire; a change that only removed files was published too where none of
    them is visible. That tells only of one that no later change was built on: what it removes was visible before it.
    """
    if record.staged:
        return False  # if it was committed, that change has a record of its own
    beside = is_changed_by(record)
    if beside and not (record.added or record.superseded):  # only its history changed
        lake = history_lake(lake)
        record = read_record(s3, lake, beside)  # a staged one's, if that is what the change commits
    uploaded = [file.path for file in record.added if file.upload is not None]
    if not uploaded and record.erased and _is_marked(s3, lake, record.id, REMOVING):
        return True
    paths = uploaded or record.superseded
    keys = [lake.key + path for path in (paths if uploaded or thorough else paths[:1])]
    seen = versions_of(s3, lake.bucket, keys).values()
    if uploaded:
        return any(versions.data or versions.marked for versions in seen)
    hidden = [versions for versions in seen if not versions.visible]
    return any(versions.marked for versions in hidden) or (thorough and 0 < len(hidden) == len(keys))


def last_published(s3: Any, lake: S3Uri, went_back: bool = False) -> str:
    """The change that Head should name, as far as the records tell: the greatest that was published or that a later one builds on.

    A change that neither added nor superseded a file leaves no trace; if it was the last one it is taken as not landed, and its
    inputs are pending again, which is safe because applying them twice gives the same rows. An erase leaves one before it removes.
    went_back: the item is known to be older than its records. Then a batch without a trace counts if it skips files: not to count it
    would apply what a person left out, and to count one that never landed changes no row.
    """
    skipping: dict[str, str] = {}  # by parent
    for change in sorted(list_records(s3, lake), reverse=True):
        try:
            record = read_record(s3, lake, change)
            is_published = _was_published(s3, lake, record, thorough=True)  # reads the history's record, which may be gone as well
        except TableBlocked:
            continue
        if is_published:
            while went_back and change in skipping:
                change = skipping[change]
            return change
        if record.kind in BATCHES and record.skipped and not (record.added or record.superseded or record.staged):
            skipping.setdefault(record.parent, change)
    return ""


def last_begun(s3: Any, lake: S3Uri) -> str:
    """The last attempt to begin a table without writing a file, '' for none. Whether it landed no record tells, so that its files, which
    are another program's, are not known to be the table's."""
    for change in sorted(list_records(s3, lake), reverse=True):
        try:
            record = read_record(s3, lake, change, with_checkpoint=False)
        except TableBlocked:
            continue
        if record.kind in BEGIN_WITHOUT_FILES:
            return change
    return ""
