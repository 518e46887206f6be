"""The layouts that DMS can write, as names; and a listing of such names that counts its requests."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from itertools import islice, takewhile
from typing import Any

SEQUENCES = {
    "YYYYMMDD": "{y:04d}|{m:02d}|{d:02d}",
    "YYYYMMDDHH": "{y:04d}|{m:02d}|{d:02d}|{h:02d}",
    "YYYYMM": "{y:04d}|{m:02d}",
    "MMYYYYDD": "{m:02d}|{y:04d}|{d:02d}",
    "DDMMYYYY": "{d:02d}|{m:02d}|{y:04d}",
}
DELIMITERS = {"slash": "/", "dash": "-", "underscore": "_", "none": ""}
ENDINGS = (".parquet", ".csv", ".csv.gz")


@dataclass(frozen=True)
class Layout:
    """Where DMS puts a CDC file. sequence '': directly in the table's folder. separator: between date and time in a name; digits: of
    the part of a second; padded: False for folders as some programs that move DMS's files write them."""

    sequence: str = ""
    delimiter: str = "slash"
    separator: str = "-"
    digits: int = 3
    ending: str = ".parquet"
    padded: bool = True
    folder: str = ""  # one that has nothing to do with a date

    def name(self, written: datetime, committed: datetime | None = None) -> str:
        """The name below the table's folder of a file that DMS begins at `written` with commits of `committed`."""
        part = f"{written.microsecond:06d}0000"[: self.digits]
        return self.folder + self.day(committed or written) + f"{written:%Y%m%d}{self.separator}{written:%H%M%S}{part}{self.ending}"

    def day(self, committed: datetime) -> str:
        """The folder of a commit's time, '' or with a slash at its end."""
        if not self.sequence:
            return ""
        form = SEQUENCES[self.sequence]
        form = form if self.padded else form.replace("02d", "d")
        text = form.format(y=committed.year, m=committed.month, d=committed.day, h=committed.hour)
        return text.replace("|", DELIMITERS[self.delimiter]) + "/"


DATED = tuple(Layout(sequence, delimiter) for sequence in SEQUENCES for delimiter in DELIMITERS)
UNPADDED = tuple(Layout(sequence, delimiter, padded=False) for sequence in SEQUENCES for delimiter in ("slash", "dash", "underscore"))
LAYOUTS = (Layout(), Layout(separator="_"), *DATED, *UNPADDED, Layout(folder="p1/"), Layout("YYYYMMDD", folder="eu/"))
# Those whose keys sort by time, so that a listing need not begin at their first file.
BY_TIME = tuple(layout for layout in (Layout(), Layout(separator="_"), *DATED) if layout.sequence not in ("MMYYYYDD", "DDMMYYYY"))
LISTED_AT = datetime(2024, 12, 31, tzinfo=timezone.utc)  # later than any of the names


def every(step: timedelta, count: int, since: datetime) -> list[datetime]:
    """`count` times from `since` on."""
    return [since + step * number for number in range(count)]


class CountedListing:
    """Answers ListObjectsV2 as S3 does, of keys alone, and counts."""

    def __init__(self, keys: Iterable[str], page: int = 1000) -> None:
        self.keys = sorted(set(keys))  # as their bytes sort, being ASCII
        self.page = page
        self.requests = 0
        self.listed = 0

    def list_objects_v2(
        self,
        Bucket: str,  # noqa: N803 - AWS's names
        Prefix: str,  # noqa: N803
        StartAfter: str = "",  # noqa: N803
        ContinuationToken: str = "",  # noqa: N803
    ) -> dict[str, Any]:
        self.requests += 1
        first = max(bisect_right(self.keys, ContinuationToken or StartAfter), bisect_left(self.keys, Prefix))
        some = list(takewhile(lambda key: key.startswith(Prefix), islice(self.keys, first, first + self.page)))
        after = self.keys[first + len(some) : first + len(some) + 1]
        self.listed += len(some)
        answer: dict[str, Any] = {
            "IsTruncated": any(key.startswith(Prefix) for key in after),
            "Contents": [{"Key": key, "Size": 10, "ETag": f'"{key[-30:]}"', "LastModified": LISTED_AT} for key in some],
        }
        if answer["IsTruncated"]:
            answer["NextContinuationToken"] = some[-1]
        return answer
