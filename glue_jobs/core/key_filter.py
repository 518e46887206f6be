"""Key filters: what tells, without opening a data file, that it holds none of some keys. Values and decisions; pure.

A key filter has a few bits of a hash of each key of one data file. It may say that a key is there that is not; never that one is not there
that is. It is a cache: change records know nothing of it, and without it every file whose key range meets a key is opened. So an object
that is gone, damaged, or of another key is as none.

A filter has sections, each of the keys of rows that follow on each other, most often those of a row group. So it says too which row groups
of a large file hold none of the keys, and what it says of one stays true where that is copied into another file.

An object of key filters: MAGIC, the length of the index, the index (JSON, compressed), then the filters' sections one after the other.
"""

from __future__ import annotations

import json
import struct
import unicodedata
import zlib
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import accumulate

from glue_jobs.core.collation import collation_of
from glue_jobs.core.ids import change_of_name
from glue_jobs.core.keys import decode_bound
from glue_jobs.core.record import DataFile

FOLDER = "key_filters/"  # below the folder of change records
ENDING = ".keys"
MAGIC = b"DMSKEYS1"
HASHES = 2  # of the hash function, and of what a filter is made of: another number makes all filters those of another key

LEAST_FILES, LEAST_BYTES = 16, 64 * 1024 * 1024  # of candidates: with fewer of both, opening them costs no more than asking
LEAST_SPREAD = 1.5  # candidates that a key meets on average; where ranges tell files apart it is one
MOST_ROWS_A_FILE, ROWS_A_CHANGE = 8, 100  # changed keys for each candidate, rows for each changed key: with more of the ones and fewer of
# the others, hardly a file is without a changed key
MOST_FILE_ROWS = 8_000_000  # of a file that gets a filter: the hashes of its keys are held in memory, 8 bytes each
ROW_BYTES = 5  # a filter has about four for each row of its file, and never more than this for two rows and more
LEAST_SECTION_ROWS = 65_536  # the rows of smaller row groups share a section: each is asked about all keys of a batch
SAMPLE, SAMPLED_BYTES = 32, 16 * 1024 * 1024  # filters that are looked at first, and their bytes, at most
LEAST_SAMPLE = 2  # however large they are
SPREAD_SAMPLE = 200  # files of which is counted how many keys or ranges meet them
MOST_SAMPLE_HITS = 0.8  # share of the sample above which the other filters are not read
SMALL_BYTES = 1024 * 1024  # an object below this is always taken into the next one

_HEAD = struct.Struct("<8sQ")


@dataclass(frozen=True)
class Section:
    """What is kept of the keys of so many rows."""

    rows: int
    data: bytes


@dataclass(frozen=True)
class KeyFilter:
    """The filter of one data file, which is known by path, size, rows and ETag. sections: of all its rows, in their order."""

    path: str
    size_bytes: int
    rows: int
    etag: str
    sections: tuple[Section, ...]

    @classmethod
    def of(cls, file: DataFile, sections: Iterable[Section]) -> KeyFilter:
        return cls(file.path, file.size_bytes, file.rows, file.etag, tuple(sections))

    @property
    def length(self) -> int:
        """In bytes."""
        return sum(len(each.data) for each in self.sections)


@dataclass(frozen=True)
class Span:
    """Where the section of so many rows stands in its object: from byte `start` to before `stop`, with this CRC-32."""

    rows: int
    start: int
    stop: int
    crc: int

    def section(self, data: bytes) -> Section | None:
        """Of its bytes; None if these are not what was written."""
        whole = len(data) == self.stop - self.start and zlib.crc32(data) == self.crc
        return Section(self.rows, data) if whole else None


@dataclass(frozen=True)
class Entry:
    """Where a data file's filter stands in its object: from byte `start` to before `stop`."""

    path: str
    size_bytes: int
    rows: int
    etag: str
    spans: tuple[Span, ...]

    @property
    def start(self) -> int:
        return self.spans[0].start

    @property
    def stop(self) -> int:
        return self.spans[-1].stop

    @property
    def length(self) -> int:
        return self.stop - self.start

    def is_of(self, file: DataFile) -> bool:
        """Whether the filter is of the bytes of this file. A restored file has those of its original, uploaded in other parts."""
        same = (self.size_bytes, self.rows) == (file.size_bytes, file.rows)
        return same and (self.etag == file.etag if self.path == file.path else self.path == file.origin)


@dataclass(frozen=True)
class Answer:
    """What a file's filter says of a batch's keys. key, etag: of the object in which it stands; holds: for each section whether one of the
    keys may be among those of its rows."""

    key: str
    etag: str
    spans: tuple[Span, ...]
    holds: tuple[bool, ...]

    @property
    def may_hold(self) -> bool:
        return any(self.holds)

    def of_groups(self, group_rows: Sequence[int]) -> tuple[bool | None, ...]:
        """For each of the file's row groups, which have so many rows: whether it holds one of the keys; None where that is not known,
        because the section has rows of another one too."""
        stretches = list(zip(*_bounds([span.rows for span in self.spans])))
        held = [stretch for stretch, holds in zip(stretches, self.holds) if holds]
        firsts, stops = [first for first, _ in held], [stop for _, stop in held]
        found: list[bool | None] = []
        for start, end in zip(*_bounds(group_rows)):
            met = held[bisect_right(stops, start) : bisect_left(firsts, end)] if start < end else []  # with a row in the group
            found.append(bool(met) and (any(start <= first and stop <= end for first, stop in met) or None))
        return tuple(found)

    def span_of(self, group_rows: Sequence[int], number: int) -> Span | None:
        """The section of a row group, if it is that group's own."""
        starts, ends = _bounds(group_rows)
        firsts, stops = _bounds([span.rows for span in self.spans])
        mine = (starts[number], ends[number])
        return next((span for span, first, stop in zip(self.spans, firsts, stops) if (first, stop) == mine), None)


def _bounds(rows: Sequence[int]) -> tuple[list[int], list[int]]:
    """Of stretches of so many rows each: where they begin, and before what they end."""
    stops = list(accumulate(rows))
    return [0, *stops[:-1]], stops


def section_rows(group_rows: Iterable[int]) -> list[int]:
    """How many rows the sections of a filter have whose file has row groups of so many."""
    found, waiting = [], 0
    for rows in group_rows:
        waiting += rows
        if waiting >= LEAST_SECTION_ROWS:
            found.append(waiting)
            waiting = 0
    return [*found, waiting] if waiting else found


@dataclass(frozen=True)
class Stored:
    """An object of key filters in S3. entries: none where it can't be read or is of another key; data: all of a small one, else nothing."""

    key: str
    size_bytes: int
    etag: str
    entries: tuple[Entry, ...] = ()
    data: bytes = field(default=b"", repr=False)


def is_filter_name(name: str) -> bool:
    """Whether an object is one of key filters. name: below the folder of change records."""
    bare = name[len(FOLDER) :]
    change = change_of_name(bare)
    return name.startswith(FOLDER) and bool(change) and bare == change + ENDING


def signature(key: Sequence[str], types: Sequence[str]) -> str:
    """What hashes of keys depend on: columns, lake types and how texts compare, which is said in the Unicode data of this Python."""
    collation = collation_of(key)
    return json.dumps([HASHES, [str(name) for name in key], list(types), str(collation), unicodedata.unidata_version if collation else ""])


def encode(signed: str, filters: Sequence[KeyFilter]) -> bytes:
    """The bytes of an object with these filters. signed: the signature of their key."""
    files = [
        [each.path, each.size_bytes, each.rows, each.etag, [[one.rows, len(one.data), zlib.crc32(one.data)] for one in each.sections]]
        for each in filters
    ]
    index = zlib.compress(json.dumps({"key": signed, "files": files}).encode(), 6)
    return b"".join([_HEAD.pack(MAGIC, len(index)), index, *(one.data for each in filters for one in each.sections)])


def head_bytes(data: bytes) -> int:
    """How many bytes the object has before its first filter, by its beginning. ValueError where it is none of key filters."""
    if len(data) < _HEAD.size:
        raise ValueError("shorter than the head of key filters")
    magic, length = _HEAD.unpack_from(data)
    if magic != MAGIC:
        raise ValueError("does not begin like key filters")
    return int(_HEAD.size + length)


def decode(data: bytes, signed: str) -> tuple[Entry, ...]:
    """The entries in an object's first `head_bytes`; none if the filters are of another key. ValueError where they can't be read."""
    try:
        start = head_bytes(data)
        said = json.loads(zlib.decompress(data[_HEAD.size : start]))
        if said["key"] != signed:
            return ()
        entries = []
        for path, size_bytes, rows, etag, sections in said["files"]:
            stops = list(accumulate((length for _, length, _ in sections), initial=start))
            spans = tuple(Span(count, at, stop, crc) for (count, _, crc), at, stop in zip(sections, stops, stops[1:]))
            if not spans or sum(span.rows for span in spans) != rows:
                raise ValueError(f"the sections of a key filter are not of the {rows} rows of {path}")
            entries.append(Entry(path, size_bytes, rows, etag, spans))
            start = stops[-1]
        return tuple(entries)
    except (zlib.error, KeyError, TypeError) as error:
        raise ValueError(f"the index of key filters can't be read: {error}") from error


# --- when they are worth it


def may_pay(rows: int, files: Sequence[DataFile]) -> bool:
    """Whether asking filters may be cheaper than opening the candidates `files`. rows: changed keys."""
    is_much = len(files) >= LEAST_FILES or (len(files) > 1 and sum(file.size_bytes for file in files) >= LEAST_BYTES)
    return is_much and 0 < rows <= max(MOST_ROWS_A_FILE * len(files), sum(file.rows for file in files) // ROWS_A_CHANGE)


def first_asked(lengths: Sequence[int]) -> list[int]:
    """The places of the filters that are looked at first, to see whether nearly all files hold a changed key; none where a look at some
    would take about as many requests as one at all. lengths: of the filters, in bytes."""
    total = sum(lengths)
    if total <= SAMPLED_BYTES:
        return []
    count = max(LEAST_SAMPLE, min(SAMPLE, SAMPLED_BYTES * len(lengths) // total))
    return evenly(len(lengths), count) if len(lengths) > 2 * count else []


def overlap(files: Sequence[DataFile], types: Sequence[str]) -> float:
    """In how many of the files' key ranges a file's least key lies, on average, as far as some of them tell. types: of the key."""
    ranges = [(decode_bound(types, file.low) or (), decode_bound(types, file.high)) for file in files]
    some = [ranges[at][0] for at in evenly(len(ranges), SPREAD_SAMPLE)]
    met = sum(1 for key in some for low, high in ranges if low <= key and (high is None or key[: len(high)] <= high))
    return met / max(1, len(some))


def evenly(count: int, wanted: int) -> list[int]:
    """So many places out of `count`, evenly spread; all if there are no more."""
    return list(range(count)) if count <= wanted else [at * count // wanted for at in range(wanted)]


def to_absorb(stored: Iterable[Stored], new_bytes: int, is_live: Callable[[Entry], bool], most_bytes: int) -> list[Stored]:
    """The objects whose filters go into the next one, which makes them needless: those not larger than it, and those of which less than
    half is of live files; no more than `most_bytes` in all. So there are few objects, and a filter is written anew few times."""
    chosen, total = [], new_bytes
    for each in sorted(stored, key=lambda each: each.size_bytes):
        live = sum(entry.length for entry in each.entries if is_live(entry))
        half_dead = 2 * live < sum(entry.length for entry in each.entries)
        if not live or ((half_dead or each.size_bytes <= max(SMALL_BYTES, total)) and total + live <= most_bytes):
            chosen.append(each)
            total += live
    return chosen
