"""The names that DMS gives its files, read once into values that can be put in order."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone

# LOAD + hexadecimal counter, also SEGMENTn_LOAD of a parallel load; or date, time and 0-10 sub-second digits.
_NAME = re.compile(
    r"(?:(?P<segment>SEGMENT\d+_)?LOAD(?P<counter>[0-9A-Fa-f]{8,})"
    r"|(?P<date>\d{8})[-_](?P<time>\d{6})(?P<sub>\d{0,10}))"
    r"\.(?P<format>parquet|csv|csv\.gz)",
    re.ASCII,  # other scripts' digits would pass as digits and sort elsewhere
)
_SUB_DIGITS = 10


@dataclass(frozen=True)
class RawFile:
    """One object below a table's raw folder, as a listing shows it."""

    key: str
    size: int
    etag: str
    modified: datetime

    @property
    def base(self) -> str:
        return self.key.rsplit("/", 1)[-1]


@dataclass(frozen=True, order=True)
class CdcName:
    """A CDC file's place in the order of writing: all digits of its name, padded, then the name itself."""

    digits: str
    base: str

    @property
    def time(self) -> datetime:
        """When DMS began the file, to the second, UTC."""
        return datetime.strptime(self.digits[:14], "%Y%m%d%H%M%S").replace(tzinfo=timezone.utc)


@dataclass(frozen=True)
class Expiry:
    """Whether raw files go by themselves. days: after which the bucket's rules expire them, None for never; is_known: whether the rules
    could be read."""

    days: float | None = None
    is_known: bool = True


@dataclass(frozen=True)
class RawListing:
    """A table's raw files by what they are. `loads` in order of counter, `cdc` in order of writing.

    after: files up to this key were not listed, '' if all were. expiry: None where it was not looked up, because no table's fate
    depends on it.
    """

    loads: tuple[RawFile, ...] = ()
    cdc: tuple[RawFile, ...] = ()
    foreign: tuple[RawFile, ...] = ()
    after: str = ""
    expiry: Expiry | None = None


def cdc_name(key: str) -> CdcName | None:
    """The CDC file name at the end of `key`, or None if it is something else (also an impossible date)."""
    base = key.rsplit("/", 1)[-1]
    match = _NAME.fullmatch(base)
    if not match or match.group("date") is None:
        return None
    name = CdcName(match.group("date") + match.group("time") + match.group("sub").ljust(_SUB_DIGITS, "0"), base)
    return name if _is_time(name.digits[:14]) else None


def _is_time(digits: str) -> bool:
    try:
        datetime.strptime(digits + "+0000", "%Y%m%d%H%M%S%z")
    except ValueError:
        return False
    return True


def load_number(key: str) -> tuple[str, int] | None:
    """(segment, counter) of a load file's name, or None if it is something else."""
    match = _NAME.fullmatch(key.rsplit("/", 1)[-1])
    if not match or match.group("counter") is None:
        return None
    return (match.group("segment") or "", int(match.group("counter"), 16))


def is_ignored(file: RawFile, folder: str) -> bool:
    """Whether a listing's entry is no file of the table: folder markers and names hidden by `_` or `.`."""
    rest = file.key[len(folder) :] if file.key.startswith(folder) else file.key
    return (file.key.endswith("/") and file.size == 0) or any(part[:1] in ("_", ".") for part in rest.split("/"))


def classify(files: Iterable[RawFile], folder: str) -> RawListing:
    """The files of one table's raw folder, told apart by their names."""
    loads: list[RawFile] = []
    cdc: list[tuple[CdcName, RawFile]] = []
    foreign: list[RawFile] = []
    for file in files:
        name = cdc_name(file.key)
        if is_ignored(file, folder):
            continue
        if name is not None:
            cdc.append((name, file))
        elif load_number(file.key) is not None:
            loads.append(file)
        else:
            foreign.append(file)
    loads.sort(key=lambda file: (file.key.rsplit("/", 1)[0], load_number(file.key) or ("", 0)))
    cdc.sort(key=lambda pair: (pair[0], pair[1].key))
    return RawListing(tuple(loads), tuple(file for _, file in cdc), tuple(foreign))


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


def list_after(folder: str, cursor_key: str, hours: float) -> str | None:
    """The key to give S3 as StartAfter so that new and late files are listed, or None where the whole folder must be.

    It can be used only where the cursor's file lies directly in the table's folder: there, names sort by time, and load
    files (`L` > any digit) come after all of them. Folders by date are listed whole.
    """
    start = window_start(cursor_key, hours)
    if start is None or cursor_key.rsplit("/", 1)[0] + "/" != folder:
        return None
    return folder + start[:8] if len(start) >= 8 else None
