"""The raw listing of one table."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Callable

from botocore.exceptions import ClientError

from glue_jobs.aws.buckets import expiry_of
from glue_jobs.aws.objects import list_files
from glue_jobs.aws.pages import iter_passing, list_passing
from glue_jobs.core.errors import DmslakeError
from glue_jobs.core.limits import Limits
from glue_jobs.core.load_plan import asks_reload, late_awaited, wants_all
from glue_jobs.core.paths import S3Uri
from glue_jobs.core.raw_gone import gone_text, is_left_alone, may_be_truncate
from glue_jobs.core.raw_layout import next_after, old_transactions, passed_over, shows_folders, without
from glue_jobs.core.raw_names import TRANSACTIONS, CdcName, RawFile, RawListing, classify, is_transactions, window_start, with_transactions
from glue_jobs.core.snapshot import Snapshot
from glue_jobs.core.state import TRUNCATE, TableState
from glue_jobs.core.verify import NOTE, Finding


def list_raw(s3: Any, state: TableState, snapshot: Snapshot, limits: Limits) -> RawListing:
    """The table's raw files that a plan may look at: all load files, and CDC files from the late window on, or from an awaited one.

    CDC files are in the table's folder, and those of the item's CdcPath. Of older ones those are there that the table knows: what is kept
    in memory does not grow with the folder, whatever its layout.
    """
    if not state.has_source:
        return RawListing()
    listing = _list(s3, state, _window(state, snapshot, limits), snapshot)
    if wants_all(state, snapshot, listing):
        listing = _list(s3, state, None, snapshot)
    return _with_fate(s3, state, snapshot, listing)


def list_cdc(s3: Any, state: TableState, snapshot: Snapshot) -> tuple[RawFile, ...]:
    """All CDC files of the table's own folder, in the order of writing, however old; none without a source."""
    return _list_folder(s3, state, None, snapshot).cdc if state.has_source else ()


def _window(state: TableState, snapshot: Snapshot, limits: Limits) -> str | None:
    """The digits of the first CDC name that matters, None for all. The earlier of the item's and the head's cursor counts, because a
    person may have moved the item's. A file that is pending again from before what the snapshot knows needs those after it, which the
    records know. A reload that a person asked for needs all of the generation's files."""
    if asks_reload(state, snapshot):
        return None
    hours = state.window_hours(limits.late_window_hours)
    starts = [window_start(cursor, hours) for cursor in (state.cursor, snapshot.cursor)]
    starts += [name.digits for name in late_awaited(state, snapshot) if name.digits < snapshot.known_from]
    return None if None in starts else min(text for text in starts if text is not None)


def _list(s3: Any, state: TableState, window: str | None, snapshot: Snapshot) -> RawListing:
    """The files of the table's folder and of CdcPath, from `window` on, None for all."""
    listing = _list_folder(s3, state, window, snapshot)
    if not state.cdc_path:
        return listing
    shared = S3Uri.folder(state.cdc_path)
    prefix = shared.key + TRANSACTIONS
    ranges = without(old_transactions(shared.key, window), snapshot.awaited) if window else ()
    files, gaps = list_passing(s3, shared.bucket, prefix, partial(next_after, ranges))
    return replace(with_transactions(listing, files), gaps=(*listing.gaps, *gaps), folders=(*listing.folders, prefix))


def _list_folder(s3: Any, state: TableState, window: str | None, snapshot: Snapshot) -> RawListing:
    """What is in the table's own folder. Where a load went to folders of its own, all of it: they can have any name."""
    raw = state.path.raw
    cursors = [cursor[len(state.path.bucket) + 1 :] for cursor in (state.cursor, snapshot.cursor)]
    known = [key for key in (*snapshot.applied, *snapshot.skipped, *cursors) if key.startswith(raw.key)]
    loads = [item.key for item in snapshot.generation.loads]
    ranges = () if _in_folders(raw, loads) else passed_over(raw.key, known, (*loads, *snapshot.awaited), window)
    gaps: list[tuple[str, str]] = []
    files = iter_passing(s3, raw.bucket, raw.key, partial(next_after, ranges), gaps)
    listing = classify(files, raw.key, _is_outdated(snapshot, window) if window else None)
    listing = replace(listing, gaps=tuple(gaps), folders=(raw.key,))
    # What was not expected when the ranges were chosen: a load in folders, or the first folders by date.
    is_new = bool(gaps) and (
        _in_folders(raw, [file.key for file in listing.loads])
        or (shows_folders(raw.key, [file.key for file in listing.cdc]) and not shows_folders(raw.key, known))
    )
    return _list_folder(s3, state, None, snapshot) if is_new else listing


def _is_outdated(snapshot: Snapshot, window: str) -> Callable[[CdcName, str], bool]:
    """Which CDC files no plan asks for: those named before the late window that the table neither took nor waits for."""
    applied, skipped, awaited = snapshot.applied, snapshot.skipped, snapshot.awaited
    return lambda name, key: name.digits < window and not (key in applied or key in skipped or key in awaited)


def _in_folders(raw: S3Uri, keys: Sequence[str]) -> bool:
    return any("/" in key[len(raw.key) :] for key in keys)


def _with_fate(s3: Any, state: TableState, snapshot: Snapshot, listing: RawListing) -> RawListing:
    """The listing with what tells whether raw files that are gone were deleted. It costs requests only where that decides something."""
    raw = state.path.raw
    wants_whole = state.on_raw_files_gone == TRUNCATE and not listing.is_whole and is_left_alone(snapshot, listing)
    if wants_whole:
        listing = _list(s3, state, None, snapshot)
    if not may_be_truncate(state, snapshot, listing):
        return listing
    return replace(listing, expiry=expiry_of(s3, raw.bucket, raw.key))


def etags_of(s3: Any, raw: S3Uri, keys: Iterable[str]) -> dict[str, str]:
    """Key → ETag of the raw files that are there: all in the table's folder `raw`, or in a folder of transaction files, from the first of
    `keys` in it to the last."""
    places: dict[str, list[str]] = defaultdict(list)
    for key in keys:
        is_shared = is_transactions(key) and not key.startswith(raw.key)
        places[key.rsplit("/", 1)[0] + "/" + TRANSACTIONS if is_shared else raw.key].append(key)
    found: dict[str, str] = {}
    for prefix, some in places.items():
        for file in list_files(s3, raw.bucket, prefix, min(some)[:-1]):
            if file.key > max(some):
                break
            found[file.key] = file.etag
    return found


def raw_notes(s3: Any, state: TableState, snapshot: Snapshot, limits: Limits) -> list[Finding]:
    """Notes on raw files that are gone since they were applied. What can't be looked at is said."""
    where = f"s3://{state.path}"
    try:
        text = gone_text(state, snapshot, list_raw(s3, state, snapshot, limits))
    except (ClientError, DmslakeError) as error:
        return [Finding("raw-unchecked", NOTE, where, "", f"the raw files could not be listed: {error}")]
    return [Finding("raw-files-gone", NOTE, where, "the raw files that were applied", text)] if text else []
