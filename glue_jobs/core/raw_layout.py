"""Which of a table's raw files a listing may pass over, whatever layouts DMS was told to write. Pure.

A table's folder may hold any of DMS's layouts, and several, because a task can be changed at any time: files beside each other, folders
by date in five sequences with four delimiters, folders of a parallel load. So no layout is detected. Instead there are ranges of keys in
which every layout has only what is known already, or is older than the late window:

- a folder that begins with a year is named by the commits in it, and commits come in their order: what comes next stands in the folder
  of the files taken last, or behind it, or a day before it;
- a file that begins with a year is named by the time of its writing: what is older than the late window does not matter.

Where none of the known files stands in such a folder, nothing tells how far the commits have come: DMS may lag by days, and be told now to
write folders. Then folders are listed, but for those without a delimiter (`20240517/`), which stand between the files; and once a folder
shows up, everything is listed.

Keys that begin with a month or a day, or with anything else, are in no range. Nor is a folder without padding (`2021/9/11`) that a padded
one of the same day would not be: single digits sort behind two.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date, timedelta

from glue_jobs.core.raw_names import TRANSACTIONS, cdc_name

KeyRange = tuple[str, str]  # from the first key on, below the second
MARGIN = timedelta(days=1)  # commits of one moment may go to the folders of two days, by time zone and by the order of a log
# Four digits that are a year and nothing else: 2012 and less are also the 20th of a month, and files of DMS's are younger.
FIRST_YEAR, LAST_YEAR = 2013, 2099
_FOLDER = re.compile(r"(\d{4})([-_/]?)(\d{1,2})(?:\2(\d{1,2})(?:\2\d{1,2})?)?", re.ASCII)


@dataclass(frozen=True)
class Bound:
    """What a listing must show. commits: the first day of which a folder may get a file; knows_folders: whether a known file says so, else
    it is only what the files' names let expect; written: `yyyymmdd` of the first name that matters."""

    commits: date
    written: str
    knows_folders: bool = True


def listing_bound(folder: str, known: Iterable[str], window: str) -> Bound | None:
    """From where on files of a table's folder must be listed, None if from the start.

    known: keys of CDC files that were taken, the last one among them; window: digits of the first name that may still come late.
    A folder may lag behind its files' names for days, while DMS catches up: the folders of the known files tell, of those in the window
    and of the last one before it, or of the last one that has such a folder.
    """
    first = _day(window[:8])
    if first is None:
        return None
    names = [(name.digits, key[len(folder) :]) for key in known if (name := cdc_name(key))]
    before = max((pair for pair in names if pair[0] < window), default=("", ""))
    days = [day for digits, rest in names if (digits >= window or (digits, rest) == before) and (day := _folder_day(rest))]
    if not days:
        _, day = max(((digits, day) for digits, rest in names if (day := _folder_day(rest))), default=("", None))
        days = [day] if day else []
    first = min([first, *days])
    if not (date(FIRST_YEAR, 1, 1) + MARGIN <= first and window < str(LAST_YEAR + 1)):
        return None
    return Bound(first - MARGIN, window[:8], bool(days))


def shows_folders(folder: str, keys: Iterable[str]) -> bool:
    """Whether a CDC file among these stands in a folder that is named by its commits."""
    return any(cdc_name(key) and _folder_day(key[len(folder) :]) for key in keys)


def _folder_day(rest: str) -> date | None:
    """The first day that a key's folder stands for, None where it is not named by year, month and maybe day and hour."""
    match = _FOLDER.fullmatch(rest.rpartition("/")[0])
    if match is None:
        return None
    year, month, day = (int(text) if text else 0 for text in match.group(1, 3, 4))
    try:
        return date(year, month, day or 1)
    except ValueError:
        return None


def _day(digits: str) -> date | None:
    try:
        return date(int(digits[:4]), int(digits[4:6]), int(digits[6:8]))
    except ValueError:
        return None


def old_ranges(folder: str, bound: Bound) -> tuple[KeyRange, ...]:
    """The ranges of keys below `folder` that need not be listed, in order, none inside another."""
    year, month, day = f"{bound.commits:%Y %m %d}".split(" ")
    first, written = str(FIRST_YEAR), bound.written
    dashed, slashed, joined, lined = f"{year}-{month}", f"{year}/{month}", f"{year}{month}", f"{year}_{month}"
    last = str(int(year) - 1)
    among_files = (
        (f"{year}0", joined),
        (f"{joined}/{first}", f"{joined}/{written}"),
        (f"{joined}0", f"{joined}{day}"),
    )
    ranges: tuple[KeyRange, ...] = (
        (first, dashed),  # all years before, and months before with dashes
        (f"{dashed}-0", f"{dashed}-{day}"),
        (f"{dashed}/{first}", f"{dashed}/{written}"),
        (f"{year}/0", slashed),
        (f"{slashed}/0", f"{slashed}/{min(day, '200')}"),  # in a month's folder, files of 20yy stand between the 20th and the 21st
        (f"{slashed}/{first}", f"{slashed}/{written}"),
        (f"{slashed}/21", f"{slashed}/{day}"),
        *among_files,
        (f"{year}_0", lined),
        (f"{lined}/{first}", f"{lined}/{written}"),
        (f"{lined}_0", f"{lined}_{day}"),
        *_later_months(bound),
    )
    if not bound.knows_folders:
        ranges = ((first, f"{last}-"), (f"{last}0", f"{last}:"), *among_files, *_later_months(bound))  # ":" is behind all digits
    return tuple(sorted((folder + low, folder + high) for low, high in ranges if low < high))


def _later_months(bound: Bound) -> Iterator[KeyRange]:
    """Of the folders of whole months after that of the first commit: the files that are older than the late window."""
    month, last = bound.commits.replace(day=1), bound.written[:6]
    while f"{month:%Y%m}" < last:
        month = (month + timedelta(days=31)).replace(day=1)
        for name in (f"{month:%Y-%m}", f"{month:%Y/%m}", f"{month:%Y%m}", f"{month:%Y_%m}"):
            yield f"{name}/{FIRST_YEAR}", f"{name}/{bound.written}"


def passed_over(folder: str, known: Iterable[str], wanted: Iterable[str], window: str | None) -> tuple[KeyRange, ...]:
    """The ranges of a table's folder that a listing passes over; none where it must show everything. known, window: as for
    `listing_bound`, None for no window; wanted: keys that must be shown if they are there, whatever their name."""
    keys = tuple(known)
    bound = listing_bound(folder, keys, window) if window else None
    if bound is None or window is None:
        return ()
    recent = (key for key in keys if (name := cdc_name(key)) and name.digits >= window)
    return without(old_ranges(folder, bound), (*recent, *wanted))


def old_transactions(folder: str, window: str) -> tuple[KeyRange, ...]:
    """The same for a folder of transaction files, which lie beside each other."""
    return ((f"{folder}{TRANSACTIONS}", f"{folder}{TRANSACTIONS}{window}"),)


def without(ranges: tuple[KeyRange, ...], wanted: Iterable[str]) -> tuple[KeyRange, ...]:
    """The ranges, none if one of them would pass over a key that must be shown."""
    return () if any(next_after(ranges, key) for key in wanted) else ranges


def next_after(ranges: Sequence[KeyRange], key: str) -> str | None:
    """From where a listing goes on whose last key was `key`, if that is in a range; None: with the next key."""
    return next((high for low, high in ranges if low <= key < high), None)
