"""Key filters in S3: asked which of a batch's candidates can be left out, and kept for the next batch.

They stand in `key_filters/` beside the change records. Whatever goes wrong here costs time and no more: files are opened then that need
not be, and the change's details say what was wrong.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import numpy as np

from glue_jobs.aws.objects import hide, list_files, read_bytes, write_bytes
from glue_jobs.core.key_filter import (
    ENDING,
    FOLDER,
    LEAST_SPREAD,
    MOST_SAMPLE_HITS,
    ROW_BYTES,
    SPREAD_SAMPLE,
    Answer,
    Entry,
    KeyFilter,
    Section,
    Stored,
    decode,
    encode,
    evenly,
    first_asked,
    head_bytes,
    is_filter_name,
    may_pay,
    signature,
    to_absorb,
)
from glue_jobs.core.paths import S3Uri, changes_folder
from glue_jobs.core.raw_names import RawFile
from glue_jobs.core.record import DataFile
from glue_jobs.spark.key_filter_bits import Hashes, hashes_of, may_hold
from glue_jobs.spark.key_notes import TROUBLE, Noting
from glue_jobs.spark.net_changes import NetChanges
from glue_jobs.spark.place import Place, Shape

_T = TypeVar("_T")

THREADS = 4
HEAD_BYTES = 256 * 1024  # fetched first of an object: mostly its index, or all of it
PIECE_BYTES = 4 * 1024 * 1024  # fetched at once
GAP_BYTES = 64 * 1024  # between two filters that are fetched together
JOINED_SHARE = 0.25  # of the bytes of new filters, for files that are joined besides


@dataclass(frozen=True)
class Search:
    """The candidates that a merge opens. spared: how many it need not, thanks to filters, and their bytes; known: those of `files` that
    have a filter, with what it says; build_bytes: how many bytes of filters may be made, 0 for none; trouble: what was wrong with filters,
    '' for nothing."""

    files: tuple[DataFile, ...]
    spared: int = 0
    spared_bytes: int = 0
    known: Mapping[str, Answer] = field(default_factory=dict)
    build_bytes: int = 0
    stored: tuple[Stored, ...] = ()
    trouble: str = ""
    asked: bool = False

    @property
    def most_joined_rows(self) -> float:
        """Of files that are joined besides, so that what they become gets a filter, as they had: else each batch would search it."""
        return self.build_bytes * JOINED_SHARE / ROW_BYTES if self.build_bytes else math.inf

    def noting(self, tasks: int, joined_rows: int = 0) -> Noting:
        """What each of so many tasks is told. Two steps of tasks share the bytes that the files which are joined besides, of so many rows,
        leave them."""
        each, left = max(1, tasks), self.build_bytes - joined_rows * ROW_BYTES
        return Noting(max(0, left) // 2 // each, self.spared_bytes // each, self.known)

    def is_useful(self, hits: int) -> bool:
        """Whether new filters are worth keeping. hits: how many of the opened files hold a changed key."""
        return bool(self.build_bytes) and hits <= self.spared + len(self.files) - hits

    def facts(self) -> dict[str, Any]:
        """For the change's details; nothing where filters were not asked."""
        if not self.asked:
            return {}
        told = {"key_filters_trouble": self.trouble[:500]} if self.trouble else {}
        return {"files_searched": len(self.files), "files_spared_by_key_filters": self.spared, **told}


def search(place: Place, net: NetChanges, files: Sequence[DataFile]) -> Search:
    """What to open of the candidates `files`. No request is made where ranges tell files apart, or few are to be opened."""
    everything = Search(tuple(files))
    most = place.limits.key_filter_bytes
    if not most or not may_pay(net.rows, files) or _spread(net, files) <= LEAST_SPREAD:
        return everything
    everything = replace(everything, build_bytes=int(most), asked=True)
    try:
        stored, trouble = _list_stored(place, net.shape)
    except TROUBLE as error:
        return replace(everything, build_bytes=0, trouble=_told(error))
    everything = replace(everything, stored=tuple(stored), trouble=trouble)
    wanted = _entries_of(stored, files)
    hashes = np.sort(hashes_of(net.table, net.shape))
    first = first_asked([entry.length for _, entry, _ in wanted])
    answers, trouble = _ask(place, [wanted[at] for at in first], hashes)
    if sum(each.may_hold for each in answers.values()) > MOST_SAMPLE_HITS * len(first) > 0:
        return replace(everything, build_bytes=0)
    chosen = set(first)
    more, more_trouble = _ask(place, [each for at, each in enumerate(wanted) if at not in chosen], hashes)
    answers.update(more)
    known = {path: each for path, each in answers.items() if each.may_hold}
    kept = tuple(file for file in files if file.path in known or file.path not in answers)
    trouble = everything.trouble or trouble or more_trouble
    spared = sum(file.size_bytes for file in files) - sum(file.size_bytes for file in kept)
    return replace(everything, files=kept, spared=len(files) - len(kept), spared_bytes=spared, known=known, trouble=trouble)


def _spread(net: NetChanges, files: Sequence[DataFile]) -> float:
    """How many candidates a changed key meets, on average, as far as some of them tell."""
    some = [files[at] for at in evenly(len(files), SPREAD_SAMPLE)]
    meetings = sum(len(range(*net.slice_for(file))) for file in some)
    return meetings / len(some) * len(files) / net.rows


def keep(place: Place, shape: Shape, found: Search, made: Sequence[KeyFilter], live: Mapping[str, DataFile]) -> str:
    """Keep new filters for the next batch, with what is still of use of older objects; what was wrong, '' for nothing.

    live: path → data file, after the change. A run that lost its lease does no harm here: an object says what is so for good.
    """
    if not made:
        return ""
    by_path = {**{file.origin: file for file in live.values() if file.origin}, **live}
    fresh = {each.path for each in made}

    def is_live(entry: Entry) -> bool:
        file = by_path.get(entry.path)
        return entry.path not in fresh and file is not None and entry.is_of(file)

    folder = changes_folder(place.lake).join(FOLDER)
    new = folder.key + place.change + ENDING
    try:
        others = [each for each in found.stored if each.key != new]
        absorbed = to_absorb(others, sum(each.length for each in made), is_live, int(place.limits.key_filter_bytes))
        older, trouble = _read(place, [(each, entry) for each in absorbed for entry in each.entries if is_live(entry)])
        write_bytes(place.s3, folder.bucket, new, encode(signature(shape.key, shape.key_types), [*made, *older]))
        hide(place.s3, folder.bucket, [each.key for each in absorbed])
    except TROUBLE as error:
        return _told(error)
    return trouble


def keep_first(s3: Any, lake: S3Uri, change: str, shape: Shape, made: Sequence[KeyFilter]) -> str:
    """Keep the filters of a table that has none yet; what was wrong, '' for nothing. change: the one that they are written with."""
    if not made:
        return ""
    folder = changes_folder(lake).join(FOLDER)
    try:
        write_bytes(s3, folder.bucket, folder.key + change + ENDING, encode(signature(shape.key, shape.key_types), made))
    except TROUBLE as error:
        return _told(error)
    return ""


def _told(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"


def _in_threads(function: Callable[[_T], Any], items: Sequence[_T]) -> list[Any]:
    with ThreadPoolExecutor(THREADS) as pool:
        return list(pool.map(function, items))


# --- objects


def _list_stored(place: Place, shape: Shape) -> tuple[list[Stored], str]:
    """The objects of key filters, newest first, and what was wrong with one of them."""
    records = changes_folder(place.lake)
    files = [
        file for file in list_files(place.s3, records.bucket, records.join(FOLDER).key) if is_filter_name(file.key[len(records.key) :])
    ]
    signed = signature(shape.key, shape.key_types)
    found = _in_threads(lambda file: _opened(place, file, signed), files)
    return [stored for stored, _ in reversed(found)], next((trouble for _, trouble in found if trouble), "")


def _opened(place: Place, file: RawFile, signed: str) -> tuple[Stored, str]:
    stored = Stored(file.key, file.size, file.etag)
    try:
        head = _bytes_of(place, stored, 0, min(file.size, HEAD_BYTES))
        missing = head_bytes(head) - len(head)
        if missing > 0:
            head += _bytes_of(place, stored, len(head), len(head) + missing)
        return replace(stored, entries=decode(head, signed), data=head if len(head) == file.size else b""), ""
    except TROUBLE as error:
        return stored, f"{file.key}: {_told(error)}"


def _bytes_of(place: Place, stored: Stored, start: int, stop: int) -> bytes:
    if stored.data:
        return stored.data[start:stop]
    return read_bytes(place.s3, place.lake.bucket, stored.key, start=start, stop=stop, etag=stored.etag)


# --- filters


_Wanted = tuple[Stored, Entry, str]  # the path of the file that the filter is asked about


def _entries_of(stored: Sequence[Stored], files: Sequence[DataFile]) -> list[_Wanted]:
    """For each of the files that has one: its filter. Of restored files it is that of the original."""
    by_path = {**{file.origin: file for file in files if file.origin}, **{file.path: file for file in files}}
    found: dict[str, _Wanted] = {}
    for each in stored:
        for entry in each.entries:
            file = by_path.get(entry.path)
            if file is not None and file.path not in found and entry.is_of(file):
                found[file.path] = (each, entry, file.path)
    return list(found.values())


def _ask(place: Place, wanted: Sequence[_Wanted], hashes: Hashes) -> tuple[dict[str, Answer], str]:
    """Path → what the file's filter says of the keys, for those whose filter could be read; and what was wrong."""
    path_of = {(each.key, entry.start): path for each, entry, path in wanted}

    def answers(piece: Sequence[tuple[Stored, Entry]]) -> tuple[dict[str, Answer], str]:
        filters, trouble = _fetched(place, piece)
        return {path_of[stored.key, entry.start]: answer(stored, entry, sections) for stored, entry, sections in filters}, trouble

    def answer(stored: Stored, entry: Entry, sections: Sequence[Section]) -> Answer:
        return Answer(stored.key, stored.etag, entry.spans, tuple(may_hold(each.data, hashes) for each in sections))

    found = _in_threads(answers, list(_pieces((each, entry) for each, entry, _ in wanted)))
    return {path: each for some, _ in found for path, each in some.items()}, next((trouble for _, trouble in found if trouble), "")


def _read(place: Place, wanted: Sequence[tuple[Stored, Entry]]) -> tuple[list[KeyFilter], str]:
    found = _in_threads(lambda piece: _fetched(place, piece), list(_pieces(wanted)))
    filters = [
        KeyFilter(entry.path, entry.size_bytes, entry.rows, entry.etag, sections) for some, _ in found for _, entry, sections in some
    ]
    return filters, next((trouble for _, trouble in found if trouble), "")


def _pieces(wanted: Iterable[tuple[Stored, Entry]]) -> Iterator[list[tuple[Stored, Entry]]]:
    """Runs of filters that are fetched by one request."""
    piece: list[tuple[Stored, Entry]] = []
    for stored, entry in sorted(wanted, key=lambda pair: (pair[0].key, pair[1].start)):
        if piece:
            first, last = piece[0], piece[-1]
            near = stored.key == last[0].key and entry.start - last[1].stop <= GAP_BYTES and entry.stop - first[1].start <= PIECE_BYTES
            if not near:
                yield piece
                piece = []
        piece.append((stored, entry))
    if piece:
        yield piece


def _fetched(place: Place, piece: Sequence[tuple[Stored, Entry]]) -> tuple[list[tuple[Stored, Entry, tuple[Section, ...]]], str]:
    """The filters of one piece that are what they were when they were written, and what was wrong."""
    stored, start = piece[0][0], piece[0][1].start
    try:
        data = _bytes_of(place, stored, start, piece[-1][1].stop)
    except TROUBLE as error:
        return [], f"{stored.key}: {_told(error)}"
    good = []
    for each, entry in piece:
        sections = [span.section(data[span.start - start : span.stop - start]) for span in entry.spans]
        if None not in sections:
            good.append((each, entry, tuple(section for section in sections if section is not None)))
    return good, "" if len(good) == len(piece) else f"{stored.key}: {len(piece) - len(good)} filter(s) are damaged"
