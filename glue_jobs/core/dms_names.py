"""The names that DMS gives its files, made from times: the other direction is core.raw_names."""

from __future__ import annotations

import re
from datetime import datetime, timedelta, timezone

_CDC_NAME = re.compile(r"(\d{8}-\d{6})(\d{3})\.parquet")
_MILLISECOND = timedelta(milliseconds=1)


def load_file_name(number: int) -> str:
    """The name of load file `number`, counted from 1; the counter in it is hexadecimal."""
    if not 1 <= number <= 0xFFFFFFFF:
        raise ValueError(f"load file number: expected 1 to 4294967295, found {number}")
    return f"LOAD{number:08X}.parquet"


def cdc_file_name(when: datetime) -> str:
    """The name of a CDC file written at `when` (aware; the name is in UTC, cut to milliseconds)."""
    if when.tzinfo is None:
        raise ValueError(f"time of a CDC file: expected an aware datetime, found {when!r}")
    utc = when.astimezone(timezone.utc)
    return f"{utc:%Y%m%d-%H%M%S}{utc.microsecond // 1000:03d}.parquet"


def cdc_file_time(name: str) -> datetime:
    """The time (UTC) that a CDC file's name says."""
    match = _CDC_NAME.fullmatch(name)
    if match is None:
        raise ValueError(f"CDC file name: expected YYYYMMDD-HHMMSSmmm.parquet, found {name!r}")
    whole = datetime.strptime(match[1], "%Y%m%d-%H%M%S").replace(tzinfo=timezone.utc)
    return whole + int(match[2]) * _MILLISECOND


class CdcFileNames:
    """One table's CDC file names: each greater than the one before, whatever the clock says.

    The order of names is the order of the changes, so a clock that stands still or goes back must not show in them.
    """

    def __init__(self, last: str | None = None) -> None:
        self.last = last

    def next(self, when: datetime) -> str:
        """The name for a file written at `when`; a millisecond after the last name if that isn't later."""
        name = cdc_file_name(when)
        if self.last is not None and name <= self.last:
            name = cdc_file_name(cdc_file_time(self.last) + _MILLISECOND)
        self.last = name
        return name


def timestamp_text(when: datetime) -> str:
    """DMS's text for a commit timestamp (aware datetimes in UTC)."""
    utc = when if when.tzinfo is None else when.astimezone(timezone.utc)
    return utc.isoformat(sep=" ", timespec="microseconds")[:26]
