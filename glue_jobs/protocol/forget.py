"""Forget: a table's life ends in catalog and state and, with `purge`, for readers of the lake. No data version is deleted.

    lease     as for any run; a publish or an erase that is not finished refuses the forget
    look      the same look as was shown; if it finds anything else, nothing is done
    mark      ActiveFlag = false and Paused, so that no run takes the table up any more
    catalog   the Glue table goes, if its parameter `dmslake.path` says that it is this table's; its history's too
    purge     the visible data files get a delete marker, by exact list; then, last, what stands in the folder of change records
    item      the state item goes, if the fence is still ours

Without `purge` data files and records stay as they are. A data file is the table's if one of its records names it; any other object,
and whatever lies in the folder of a table inside this one, is reported and not touched. The folders of a history table are its
table's. Every step can be done again: a forget that
broke off is ended by the same call.

If we die …                     then                                                       and to go back instead
  before the mark               the table is as it was, its lease runs out                 nothing to do
  after the mark                a paused, inactive table with all its files                `dmslake activate`
  after the catalog             the same without a Glue table                              `verify --repair`, then activate
  while data files are hidden   readers by path see fewer files; no run takes it up        `verify --repair`, then activate
  while records are hidden      no data file is visible; `status` says record-gone         docs/forget.md
  after the item                nothing is left to do                                      docs/forget.md

A forget that was paused past its lease and wakes up can only hide what is on its list. Its keys never come back, so this hides no file
that somebody made since; its requests are stopped by the lease's deadline besides, and the item goes only with its fence.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from glue_jobs.aws.buckets import check_lake_bucket
from glue_jobs.aws.catalog_table import drop_table, owner_of
from glue_jobs.aws.objects import hide, list_files
from glue_jobs.aws.records import list_records, read_record, read_records
from glue_jobs.core.erase_plan import change_of_path
from glue_jobs.core.errors import CommitRefused, DmslakeError, LeaseLost, TableBlocked, UsageError
from glue_jobs.core.history_table import history_catalog_name, history_lake
from glue_jobs.core.ids import change_of_name
from glue_jobs.core.key_filter import is_filter_name
from glue_jobs.core.paths import S3Uri, catalog_name, changes_folder
from glue_jobs.core.raw_names import RawFile
from glue_jobs.core.state import TableState
from glue_jobs.protocol.history import last_published, read_snapshot
from glue_jobs.protocol.table_run import TableRun
from glue_jobs.protocol.verify import Place

OURS, OTHERS, NONE = "ours", "of others", "none"  # whose the Glue table is
BEING_FORGOTTEN = "it is being forgotten"  # how the reason of a forget's pause begins


@dataclass(frozen=True)
class LakeFolder:
    """What is visible of a folder of data files and of its records. foreign: keys of objects that are not the table's."""

    lake: str
    files: tuple[RawFile, ...] = ()
    records: tuple[RawFile, ...] = ()
    foreign: tuple[str, ...] = ()


@dataclass(frozen=True)
class ForgetPlan:
    """What a forget does. catalog: (name of a Glue table, whose it is); inside: the tables whose lake folder lies in this one's.
    Equal plans do the same."""

    path: str
    purge: bool
    catalog: tuple[tuple[str, str], ...] = ()
    folders: tuple[LakeFolder, ...] = ()
    inside: tuple[str, ...] = ()

    @property
    def files(self) -> tuple[RawFile, ...]:
        return tuple(file for folder in self.folders for file in folder.files)

    @property
    def records(self) -> tuple[RawFile, ...]:
        return tuple(file for folder in self.folders for file in folder.records)

    @property
    def foreign(self) -> tuple[str, ...]:
        return tuple(key for folder in self.folders for key in folder.foreign)

    @property
    def size_bytes(self) -> int:
        """Of the visible data files."""
        return sum(file.size for file in self.files)


# --- looking


def look(place: Place, state: TableState, *, purge: bool) -> ForgetPlan:
    """What a forget of the table would do now. Reads only. Raises DmslakeError where it must wait or would take another table's files."""
    _check_finished(state)
    name = state.catalog_table or catalog_name(state.path)
    whose = [(each, _whose(place, each, str(state.path))) for each in (name, history_catalog_name(name))]
    catalog = tuple((each, word) for each, word in whose if word == OURS or (each == name and word != NONE))
    if not state.out_path:
        return ForgetPlan(str(state.path), purge, catalog)
    lake, s3 = state.lake, place.s3
    if purge:
        check_lake_bucket(s3, lake.bucket, lake.key)  # without versioning a hidden file would be a deleted one
        _check_own(s3, state)
    inside = _tables_inside(place.table.scan(), state, purge)
    folders = [_look_at(s3, lake, state.head, inside)]
    if _is_of(s3, history_lake(lake), str(state.path)):
        folders.append(_look_at(s3, history_lake(lake), "", inside))
    return ForgetPlan(str(state.path), purge, catalog, tuple(folders), tuple(inside))


def _is_of(s3: Any, lake: S3Uri, path: str) -> bool:
    """Whether the records of the folder are of this table."""
    newest = sorted(list_records(s3, lake))[-1:]
    return any(record.table == path for record in read_records(s3, lake, newest))


def _check_own(s3: Any, state: TableState) -> None:
    """Refuse to purge what is another table's, as the records tell, whose item may be in another state table. A head that the item names is
    the table's, whatever path it had then."""
    lake, path = state.lake, str(state.path)
    change = last_published(s3, lake) or ("" if state.head else max(list_records(s3, lake), default=""))
    record = next(iter(read_records(s3, lake, [change])), None) if change not in ("", state.head) else None
    if record is not None and record.table != path:
        raise UsageError(
            f"the lake folder {lake} is that of the table {record.table}, whose change {record.id} stands there: purging it for {path}"
            " would take that table's files",
            "lake-folder-taken",
            "forget PATH without --purge",
        )


def _check_finished(state: TableState) -> None:
    if state.publishing:
        what = f"change {state.publishing} of {state.path} is not wholly published"
        raise DmslakeError(what, "unfinished-publish", "`dmslake run PATH` finishes it (also if the table is paused); then forget")
    if state.erasing:
        what = f"the erase {state.erasing} of {state.path} has not removed all versions on its list"
        raise DmslakeError(what, "unfinished-erase", "`dmslake erase PATH --resume` ends it; then forget")


def _whose(place: Place, name: str, path: str) -> str:
    if not place.database:
        return NONE
    owner = owner_of(place.glue, place.database, name)
    return NONE if owner is None else OURS if owner == path else OTHERS


def _tables_inside(items: Iterator[Mapping[str, Any]], state: TableState, purge: bool) -> dict[str, str]:
    """The tables whose lake folder is inside this one's, with its key; refused where another one has the very same folder."""
    mine, inside = str(state.lake), {}
    for item in items:
        path, other = str(item.get("path", "")), str(item.get("out_path") or "").strip().rstrip("/") + "/"
        if path == str(state.path) or not other.startswith(mine):
            continue
        if other == mine and purge:
            raise UsageError(
                f"the lake folder {mine} is also that of the table {path}: purging it would take that table's files",
                "lake-folder-taken",
                "forget PATH without --purge, or correct the out_path of one of the two items",
            )
        inside[path] = other[len(f"s3://{state.lake.bucket}/") :]
    return inside


def _look_at(s3: Any, lake: S3Uri, head: str, inside: Mapping[str, str]) -> LakeFolder:
    names = _Names(s3, lake, head)
    files, foreign = [], []
    for file in list_files(s3, lake.bucket, lake.key):
        is_inside = any(file.key.startswith(folder) for folder in inside.values() if folder != lake.key)
        if not is_inside and names.has(file.key[len(lake.key) :]):
            files.append(file)
        else:
            foreign.append(file.key)
    records = []
    folder = changes_folder(lake)
    for file in list_files(s3, folder.bucket, folder.key):
        name = file.key[len(folder.key) :]
        if (change_of_name(name) and "/" not in name) or is_filter_name(name):
            records.append(file)
        else:
            foreign.append(file.key)
    return LakeFolder(str(lake), tuple(files), tuple(records), tuple(foreign))


class _Names:
    """Knows a table's data files by the records that name them, each read when it is wanted first."""

    def __init__(self, s3: Any, lake: S3Uri, head: str) -> None:
        self._s3, self._lake, self._head = s3, lake, head
        self._of_head: frozenset[str] | None = None
        self._by_change: dict[str, frozenset[str]] = {}

    def has(self, path: str) -> bool:
        if self._of_head is None:
            self._of_head = _files_of_head(self._s3, self._lake, self._head)
        change = change_of_path(path)
        if path in self._of_head or not change:
            return path in self._of_head
        if change not in self._by_change:
            self._by_change[change] = _files_of(self._s3, self._lake, change)
        return path in self._by_change[change]


def _files_of_head(s3: Any, lake: S3Uri, head: str) -> frozenset[str]:
    """The head's files, also where the item is older than the records or new. A head whose record is hidden already has none."""
    head = max(last_published(s3, lake), head)
    try:
        return frozenset(read_snapshot(s3, lake, head).files)
    except TableBlocked as error:
        if error.code != "record-gone":
            raise
        return frozenset()


def _files_of(s3: Any, lake: S3Uri, change: str) -> frozenset[str]:
    """The files that a change added; none without a record of it: a name alone makes no file ours."""
    try:
        return frozenset(file.path for file in read_record(s3, lake, change, with_checkpoint=False).added)
    except TableBlocked as error:
        if error.code != "record-gone":
            raise
        return frozenset()


# --- doing


@dataclass
class ForgetTable:
    """What `dmslake forget` does in a table's run. shown: what a person has seen; if anything else is found, it is refused."""

    shown: ForgetPlan

    def __call__(self, run: TableRun) -> None:
        run.may_block = False
        context, shown = run.context, self.shown
        place = Place(run.s3, context.clients.glue, context.table, context.settings.database)
        if look(place, run.state, purge=shown.purge) != shown:
            raise CommitRefused(
                f"{run.state.path} is not what it was when the forget was planned: a change, an object or the Glue table came or went",
                "moved-on",
                "look again with --dry-run, then run again; nothing was forgotten",
            )
        _mark(run, shown.purge)
        for name, whose in shown.catalog:
            if whose == OURS:
                run.lease.check()
                drop_table(place.glue, place.database, name, str(run.state.path))
        if shown.purge and shown.folders:
            _hide(run, shown.files)
            _hide(run, shown.records)
        if not context.table.delete(str(run.state.path), run.lease.fence):
            raise _taken_over(run)


def _mark(run: TableRun, purge: bool) -> None:
    path = run.state.path
    again = f"`dmslake forget {path.in_shell}{' --purge' if purge else ''}`"
    values = {"ActiveFlag": "false", "Paused": f"{BEING_FORGOTTEN}: {again} ends what was begun"}
    if not run.context.table.write_under_fence(str(path), run.lease.fence, values):
        raise _taken_over(run)


def _taken_over(run: TableRun) -> LeaseLost:
    return LeaseLost(f"another run took the lease of {run.state.path}", "lease-lost", "run the same forget again when it has ended")


def _hide(run: TableRun, files: Sequence[RawFile]) -> None:
    run.lease.check()
    hide(run.s3, run.state.lake.bucket, [file.key for file in files], pause=run.context.wait)
