"""The names that DMS gives its files, read once into values that can be put in order."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import date as calendar_date
from datetime import datetime, timedelta, timezone
from functools import lru_cache
from typing import Callable, NamedTuple

DIGITS = "%Y%m%d%H%M%S"  # a time as the first digits of a CDC name
# Of its begin, a CDC file that no one has copied since: its task's batch interval is shorter, if `load_start_margin_minutes` is.
WRITTEN_WITHIN = timedelta(hours=1)
TRANSACTIONS = "CDC_TXN-"  # how names of transaction files begin: the changes of all tables, in a folder of their own
# ASCII: other scripts' digits would pass as digits and sort elsewhere. A listing may have 100,000 names: a pattern says all but the date.
_TIME = r"(?:[01]\d|2[0-3])[0-5]\d[0-5]\d"
_ENDING = r"\.(?:parquet|csv|csv\.gz)"
_LOAD = re.compile(rf"(SEGMENT\d+_)?LOAD([0-9A-Fa-f]{{8,}}){_ENDING}", re.ASCII)  # SEGMENTn_: of a parallel load; a hexadecimal counter
_CDC = re.compile(rf"(\d{{8}})[-_]({_TIME})(\d{{0,10}}){_ENDING}", re.ASCII)
_TRANSACTIONS = re.compile(rf"{TRANSACTIONS}(\d{{8}})({_TIME})(\d{{0,10}})\.csv(?:\.gz)?", re.ASCII)
_SUB_DIGITS = 10


class RawFile(NamedTuple):
    """One object below a table's raw folder, as a listing shows it. A listing may have 100,000 of them, and a controller many listings."""

    key: str
    size: int
    etag: str
    modified: datetime

    @property
    def base(self) -> str:
        return self.key.rsplit("/", 1)[-1]


class CdcName(NamedTuple):
    """A CDC file's place in the order of writing: all digits of its name, padded, then the name itself."""

    digits: str
    base: str

    @property
    def time(self) -> datetime:
        """When DMS began the file, to the second, UTC."""
        return datetime.strptime(self.digits[:14], "%Y%m%d%H%M%S").replace(tzinfo=timezone.utc)


def is_ahead(name: CdcName, cursor: CdcName | None) -> bool:
    """Whether the file comes after the cursor; before the first batch each does."""
    return cursor is None or name > cursor


@dataclass(frozen=True)
class Expiry:
    """Whether raw files go by themselves. days: after which the bucket's rules expire them, None for never; is_known: whether the rules
    could be read."""

    days: float | None = None
    is_known: bool = True


@dataclass(frozen=True)
class RawListing:
    """A table's raw files by what they are. `loads` in order of counter, `cdc` in order of writing.

    gaps: pairs of keys between which nothing was listed (above the first, up to the second). folders: the folders that were listed,
    () for all that matter. expiry: None where it was not looked up, because no table's fate depends on it. blank: keys of transaction
    files that hold no row of the table, as far as that is known. outdated: how many CDC files were seen and left out, because no plan asks
    for them.
    """

    loads: tuple[RawFile, ...] = ()
    cdc: tuple[RawFile, ...] = ()
    foreign: tuple[RawFile, ...] = ()
    gaps: tuple[tuple[str, str], ...] = ()
    folders: tuple[str, ...] = ()
    expiry: Expiry | None = None
    blank: frozenset[str] = frozenset()
    outdated: int = 0

    @property
    def is_whole(self) -> bool:
        """Whether it has all files of the folders."""
        return not self.gaps and not self.outdated

    def covers(self, key: str) -> bool:
        """Whether a file with this key would have been listed, if it is one that the table knows."""
        if self.folders and not key.startswith(self.folders):
            return False
        return not any(after < key <= up_to for after, up_to in self.gaps)


def cdc_name(key: str) -> CdcName | None:
    """The CDC file name at the end of `key`, or None if it is something else (also an impossible date)."""
    base = key.rsplit("/", 1)[-1]
    match = _CDC.fullmatch(base) or _TRANSACTIONS.fullmatch(base)
    if match is None:
        return None
    date, time, sub = match.groups()
    return CdcName(date + time + sub.ljust(_SUB_DIGITS, "0"), base) if _is_date(date) else None


@lru_cache(maxsize=1024)  # many names are of few days
def _is_date(digits: str) -> bool:
    try:
        calendar_date(int(digits[:4]), int(digits[4:6]), int(digits[6:]))
    except ValueError:
        return False
    return True


def is_csv(key: str) -> bool:
    """Whether a raw file has CSV, of DMS's two formats."""
    return not key.endswith(".parquet")


def is_transactions(key: str) -> bool:
    """Whether a key's name is that of a transaction file: its rows say of which table each is."""
    return key.rsplit("/", 1)[-1].startswith(TRANSACTIONS)


def load_number(key: str) -> tuple[str, int] | None:
    """(segment, counter) of a load file's name, or None if it is something else."""
    match = _LOAD.fullmatch(key.rsplit("/", 1)[-1])
    return (match.group(1) or "", int(match.group(2), 16)) if match else None


def is_ignored(file: RawFile, folder: str) -> bool:
    """Whether a listing's entry is no file of the table: folder markers and names hidden by `_` or `.`."""
    rest = file.key[len(folder) :] if file.key.startswith(folder) else file.key
    return (file.key.endswith("/") and file.size == 0) or rest.startswith(("_", ".")) or "/_" in rest or "/." in rest


def classify(files: Iterable[RawFile], folder: str, is_outdated: Callable[[CdcName, str], bool] | None = None) -> RawListing:
    """The files of one table's raw folder, told apart by their names. Transaction files have no place there.

    is_outdated: (name, key) → whether a CDC file is left out. What is left out is not kept while the rest is read.
    """
    loads: list[RawFile] = []
    cdc: list[RawFile] = []
    foreign: list[RawFile] = []
    outdated, in_place, last = 0, True, ("", "", "")
    for file in files:
        if is_ignored(file, folder):
            continue
        name = cdc_name(file.key)
        if name is not None and not name.base.startswith(TRANSACTIONS):
            if is_outdated is not None and is_outdated(name, file.key):
                outdated += 1
                continue
            place = (name.digits, name.base, file.key)
            in_place, last = in_place and last <= place, place
            cdc.append(file)
        elif load_number(file.key) is not None:
            loads.append(file)
        else:
            foreign.append(file)
    loads.sort(key=lambda file: (file.key.rsplit("/", 1)[0], load_number(file.key) or ("", 0)))
    if not in_place:  # of most layouts a listing comes in the order of writing
        cdc.sort(key=_place)
    return RawListing(tuple(loads), tuple(cdc), tuple(foreign), outdated=outdated)


def in_order(cdc: Iterable[RawFile]) -> tuple[RawFile, ...]:
    """CDC files in the order of writing, whatever folders they are in."""
    return tuple(sorted(cdc, key=_place))


def _place(file: RawFile) -> tuple[str, str, str]:
    name = cdc_name(file.key)
    return (name.digits, name.base, file.key) if name else ("", "", file.key)


def with_transactions(listing: RawListing, files: Iterable[RawFile]) -> RawListing:
    """The listing with the transaction files of a folder that the table shares with others."""
    shared = tuple(files)
    known = [file for file in shared if cdc_name(file.key) is not None]
    foreign = [file for file in shared if cdc_name(file.key) is None]
    return replace(listing, cdc=in_order((*listing.cdc, *known)), foreign=(*listing.foreign, *foreign))


def window_start(cursor_key: str, hours: float) -> str | None:
    """The digits of the earliest CDC name that may still be late behind the cursor, or None if the cursor names no CDC file."""
    name = cdc_name(cursor_key)
    if name is None:
        return None
    try:
        start = name.time - timedelta(hours=hours)
    except OverflowError:
        return "0"
    return start.strftime("%Y%m%d%H%M%S") if start.year >= 1000 else "0"
