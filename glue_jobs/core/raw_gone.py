"""Raw files that are gone since they were applied: which, what it means, and when it means that the source table was emptied. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta, timezone

from glue_jobs.core.raw_names import RawListing, cdc_name
from glue_jobs.core.record import Input
from glue_jobs.core.snapshot import Snapshot
from glue_jobs.core.state import TRUNCATE, TableState

EXPIRY_MARGIN = timedelta(days=2)  # lifecycle rules run once a day, and late
UNKNOWN_EXPIRY = (
    "all known raw files are gone, and the table was not emptied although OnRawFilesGone is truncate: the raw bucket's lifecycle rules"
    " can't be read (s3:GetLifecycleConfiguration is denied), so they may just have expired"
)


@dataclass(frozen=True)
class RawGone:
    """Of the `known` raw files that the table's rows come from and that a listing covers, those that it has not."""

    gone: tuple[Input, ...] = ()
    known: int = 0
    is_all: bool = False

    @property
    def newest(self) -> Input | None:
        return max(self.gone, key=lambda item: (item.modified, item.key), default=None)


def raw_gone(snapshot: Snapshot, listing: RawListing) -> RawGone:
    """The files of the generation's load and of the changes after it that are not listed. is_all: none that the table knows is left;
    said only of a whole listing."""
    known = {item.key: item for item in (*snapshot.generation.loads, *snapshot.applied.values())}
    covered = {key: item for key, item in known.items() if listing.covers(key)}
    listed = {file.key for file in (*listing.loads, *listing.cdc)}
    gone = tuple(item for key, item in sorted(covered.items()) if key not in listed)
    is_all = bool(gone) and len(gone) == len(known) and listing.is_whole
    return RawGone(gone, len(covered), is_all and not _has_passed(snapshot, listing) and not _has_older(snapshot, listing))


def is_left_alone(snapshot: Snapshot, listing: RawListing) -> bool:
    """Whether none of the files that the table knows is in the listing, which need not be a whole one."""
    gone = raw_gone(snapshot, listing)
    return bool(snapshot.generation.loads or snapshot.applied) and len(gone.gone) == gone.known and not _has_passed(snapshot, listing)


def _has_passed(snapshot: Snapshot, listing: RawListing) -> bool:
    """Whether files are there that were taken once and undone, or left out: DMS would have deleted them too."""
    return any(file.key in snapshot.awaited or file.key in snapshot.skipped for file in (*listing.loads, *listing.cdc))


def _has_older(snapshot: Snapshot, listing: RawListing) -> bool:
    """Whether there are files from so long ago that the snapshot does not keep their names any more."""
    first, end = snapshot.generation.cdc_from, snapshot.known_from
    return any(name and first <= name.digits < end for name in (cdc_name(file.key) for file in listing.cdc))


def may_be_truncate(state: TableState, snapshot: Snapshot, listing: RawListing) -> bool:
    """Whether it must be known how raw files expire: the table has rows to lose, and nothing that they came from is left."""
    return state.on_raw_files_gone == TRUNCATE and bool(snapshot.file_count) and raw_gone(snapshot, listing).is_all


def truncate_due(state: TableState, snapshot: Snapshot, listing: RawListing, now: datetime) -> str:
    """Why the table is to be emptied, '' if it is not: all known raw files are gone, and one of them was too young to have expired."""
    if listing.expiry is None or not listing.expiry.is_known or not may_be_truncate(state, snapshot, listing):
        return ""
    gone = raw_gone(snapshot, listing)
    newest = gone.newest
    if newest is None:
        return ""
    days = listing.expiry.days
    if days is None:
        return f"all {gone.known} known raw file(s) are gone, and the raw bucket expires none"
    if _modified(newest) <= now - (timedelta(days=days) - EXPIRY_MARGIN):
        return ""
    return f"all {gone.known} known raw file(s) are gone, and {_base(newest)} was too young to expire (after {days:g} days)"


def _modified(item: Input) -> datetime:
    """When the file was written; long ago where that was not recorded, so that nothing is concluded from it."""
    return datetime.fromisoformat(item.modified.replace("Z", "+00:00")) if item.modified else datetime(1970, 1, 1, tzinfo=timezone.utc)


def _base(item: Input) -> str:
    return item.key.rsplit("/", 1)[-1]


def gone_text(state: TableState, snapshot: Snapshot, listing: RawListing) -> str:
    """What a person should know of raw files that are gone, '' if there are none."""
    gone = raw_gone(snapshot, listing)
    if gone.newest is None or not state.has_source:
        return ""
    since = f", written {gone.newest.modified}" if gone.newest.modified else ""
    what = f"{len(gone.gone)} of {gone.known} raw file(s) that were applied are gone, the newest {_base(gone.newest)}{since}"
    if not gone.is_all:
        return f"{what}: the table keeps their rows; a late file, a moved cursor or a reload that needs them would block it"
    if state.on_raw_files_gone != TRUNCATE:
        return f"{what}: the table keeps their rows (they expired, or DMS deleted them because the source table was truncated or reloads)"
    if listing.expiry is not None and not listing.expiry.is_known:
        return UNKNOWN_EXPIRY
    return f"{what}; OnRawFilesGone is truncate: the table is emptied, unless they may have expired"
