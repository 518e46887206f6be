"""Which raw files a snapshot is made of, and whether they are all there: not the half of a load, nor what is left of vanished files.

Raw files expire. A version that was made of them has their rows, and can be gone on from; all raw files that are left have not.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from glue_jobs.core.errors import blocked
from glue_jobs.core.limits import Limits
from glue_jobs.core.load_plan import is_followed
from glue_jobs.core.raw_names import RawFile, RawListing, cdc_name
from glue_jobs.core.record import Input
from glue_jobs.core.snapshot import loads_again
from glue_jobs.core.snapshot_sources import SnapshotWish
from glue_jobs.core.work import input_of

LOAD_GAP = timedelta(hours=1)  # load files that come within it of one another are of one load


def quiet_since(limits: Limits, now: datetime) -> datetime:
    """A load file that was written since this time may not be the last of its load."""
    return now - timedelta(minutes=limits.load_quiet_minutes)


@dataclass(frozen=True)
class Counted:
    """The raw files that count, in DMS's order. later: files that do not, because they are of other days."""

    loads: tuple[RawFile, ...]
    cdc: tuple[RawFile, ...]
    later: int = 0

    @property
    def files(self) -> tuple[RawFile, ...]:
        return (*self.loads, *self.cdc)


def count_files(wish: SnapshotWish, listing: RawListing) -> Counted:
    """The load files last modified up to the run date, and the CDC files of the days from the CDC start date to it, in UTC."""
    where = str(wish.source.path)
    if listing.foreign:
        raise blocked(
            "foreign-raw-file",
            f"{len(listing.foreign)} file(s) in the raw folder have names that DMS does not give",
            where=f"s3://{wish.source.path.bucket}/{listing.foreign[0].key}",
            expected="LOAD00000001.parquet, 20240501-120000000.parquet",
            found=listing.foreign[0].base,
            todo="move them away; of a transaction-ordered target set no CdcPath in DMS",
        )
    if not listing.loads and not listing.cdc:
        raise blocked(
            "no-raw-files", "there is no file of DMS", where=where, expected="load and CDC files", found="nothing",
            todo="correct the source's path: the folder of one table, bucket/prefix/schema/table",
        )  # fmt: skip
    loads = tuple(file for file in listing.loads if file.modified.date() <= wish.run_date)
    cdc = tuple(file for file in listing.cdc if _counts(wish, file.key))
    _check_ended(wish, loads, [file for file in listing.loads if file not in loads])
    return Counted(loads, cdc, len(listing.loads) + len(listing.cdc) - len(loads) - len(cdc))


def check_has_load(wish: SnapshotWish, counted: Counted, listing: RawListing) -> None:
    """Refuse to begin without a load file."""
    if not counted.loads:
        raise blocked(
            "no-load-files",
            "no load file counts: the rows that changed since could not be told from those that did not",
            where=str(wish.source.path),
            expected=f"a load file last modified up to {wish.run_date} (UTC)",
            found=f"{len(listing.loads)} younger one(s)" if listing.loads else "none",
            todo="take a later run date, or reload the table in DMS",
        )


def _check_ended(wish: SnapshotWish, loads: Sequence[RawFile], later: Sequence[RawFile]) -> None:
    """Refuse the half of a load that goes on after the run date's midnight: it would be the day's state for good."""
    last = max((file.modified for file in loads), default=None)
    first = min((file.modified for file in later), default=None)
    if last is not None and first is not None and first - last < LOAD_GAP:
        raise blocked(
            "load-not-ended",
            f"a load goes on after the run date: {len(loads)} of its files count, {len(later)} do not",
            where=str(wish.source.path),
            expected=f"the whole load up to {wish.run_date} (UTC)",
            found=f"files of {last:%Y-%m-%d %H:%M:%S} and of {first:%Y-%m-%d %H:%M:%S}",
            todo="take a later run date",
        )


def _counts(wish: SnapshotWish, key: str) -> bool:
    """Whether a CDC file does."""
    name, start = cdc_name(key), wish.source.cdc_start_date
    return name is not None and (start is None or start <= name.time.date()) and name.time.date() <= wish.run_date


def check_load_is_over(wish: SnapshotWish, counted: Counted, listing: RawListing, before: Sequence[Input], quiet_since: datetime) -> None:
    """Refuse a load that may go on, as the lake's reload waits for it: half of it would replace the whole table. before: the inputs of the
    version that readers have."""
    known = {item.key: item.etag for item in before}
    fresh = [file.modified for file in counted.loads if known.get(file.key) != file.etag]
    newest = max((file.modified for file in counted.loads), default=quiet_since)
    if not fresh or newest <= quiet_since or is_followed(min(fresh), newest, listing.cdc):
        return
    raise blocked(
        "load-not-ended",
        f"the table is loaded anew, and the load may go on: {len(counted.loads)} of its files are there",
        where=str(wish.source.path),
        expected=f"load files from before {quiet_since:%Y-%m-%d %H:%M:%S} (UTC), or a CDC file after them",
        found=f"the newest one is of {newest:%Y-%m-%d %H:%M:%S}",
        todo="run again later; if the load is over, with --load-quiet-minutes 0",
    )


def gone_inputs(wish: SnapshotWish, listing: RawListing, before: Sequence[Input]) -> tuple[Input, ...]:
    """Those of a version's inputs that would count, and are not there any more."""
    there = {file.key for file in (*listing.loads, *listing.cdc)}
    return tuple(item for item in before if item.key not in there and (cdc_name(item.key) is None or _counts(wish, item.key)))


def are_rewritten(loads: Sequence[RawFile], before: Sequence[Input]) -> bool:
    """Whether each of the load files was written again since, with the same bytes: another load, or a copy in place."""
    known = {item.key: item.modified for item in before}
    now = {item.key: item.modified for item in map(input_of, loads)}
    return bool(now) and all(known.get(key) not in (modified, "") for key, modified in now.items())


def _is_copied(cdc: Sequence[RawFile], before: Sequence[Input]) -> bool:
    """Whether a CDC file was written anew, as where the folder was copied in place: DMS writes load files anew, and no old CDC file."""
    known = {item.key: item for item in before}
    return any((item := known.get(file.key)) is not None and item.etag != file.etag for file in cdc)


def check_none_gone(wish: SnapshotWish, counted: Counted, gone: Sequence[Input], before: Sequence[Input], why: str) -> None:
    """Refuse to make a version of what is left where raw files that the version before is made of have vanished, as by an expiration: its
    rows would be fewer, or older. Not where the table was loaded anew, which removes them. why: it can't be gone on from."""
    again = loads_again([item for item in before if cdc_name(item.key) is None], [input_of(file) for file in counted.loads])
    if gone and (again or not counted.loads or _is_copied(counted.cdc, before)):
        raise blocked(
            "snapshot-input-gone",
            f"{len(gone)} raw file(s) that the version before is made of are gone, and it can't be gone on from: {why}",
            where=f"s3://{wish.source.path.bucket}/{gone[0].key}",
            expected="the file",
            found="no such object",
            todo="put it back, or reload the table in DMS; --full makes the snapshot of what is there: rows will be missing, or older",
        )
