"""Raw files that are gone: what is said of them, and when they mean that the source table was emptied."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from glue_jobs.core.actions import Action, Stopped, TakeBatch, TakeLoad, Truncate
from glue_jobs.core.intake import plan_table
from glue_jobs.core.limits import Limits
from glue_jobs.core.raw_gone import gone_text, raw_gone
from glue_jobs.core.raw_names import Expiry, RawFile
from glue_jobs.core.record import DataFile, Generation, Input
from glue_jobs.core.snapshot import Snapshot
from glue_jobs.core.truncate import truncated
from tests.core.tables import NOW, cdc, listing_of, load, loaded, plan, state_of, taken

FILES = {"a.parquet": DataFile("a.parquet", 10, 3)}
NEVER = Expiry()


def known(file: RawFile, age: timedelta = timedelta(days=1)) -> Input:
    return replace(taken(file), modified=(NOW - age).strftime("%Y-%m-%dT%H:%M:%SZ"))


def full(age: timedelta = timedelta(days=1), **values: Any) -> Snapshot:
    """A loaded table with two CDC files applied, all raw files of one age."""
    inputs = {file.key: known(file, age) for file in (cdc(1), cdc(2))}
    snapshot = loaded(at=2, files=FILES, **values)
    return replace(snapshot, applied=inputs, generation=Generation(1, (known(load(), age),)))


def planned(snapshot: Snapshot, *files: RawFile, expiry: Expiry | None = NEVER, seen: str = "", **edits: Any) -> Action:
    gaps = (("", seen),) if seen else ()
    listing = replace(listing_of(*files), expiry=expiry, gaps=gaps)
    return plan_table(state_of(snapshot, **{"OnRawFilesGone": "truncate", **edits}), snapshot, listing, NOW, Limits())


def test_a_table_whose_raw_files_are_all_gone_is_emptied_if_a_person_said_so() -> None:
    """The reason counts the files."""
    action = planned(full())

    assert action == Truncate("all 3 known raw file(s) are gone, and the raw bucket expires none")


@pytest.mark.parametrize(
    ("files", "edits"),
    [
        ((), {"OnRawFilesGone": "null"}),  # nobody said so
        ((load(),), {}),  # a known one is left
        ((cdc(2),), {}),
        ((cdc(2, etag="other"),), {}),  # written anew, but there
    ],
)
def test_otherwise_it_keeps_its_rows(files: tuple[RawFile, ...], edits: dict[str, Any]) -> None:
    """Whatever else is due."""
    assert not isinstance(planned(full(), *files, **edits), Truncate)


@pytest.mark.parametrize("snapshot", [loaded(at=2), full(generation=Generation(1)), Snapshot()])
def test_a_table_without_rows_is_not_emptied(snapshot: Snapshot) -> None:
    """Nor one that is not loaded."""
    assert not isinstance(planned(replace(snapshot, files={})), Truncate)


def test_a_table_that_knows_no_raw_file_is_not_emptied() -> None:
    """After a truncate and a late insert by hand, say: nothing is concluded from nothing."""
    assert not isinstance(planned(loaded(at=2, files=FILES, loads=())), Truncate)


@pytest.mark.parametrize(
    ("age_days", "expiry", "is_due"),
    [
        (4.9, Expiry(7.0), True),
        (5.1, Expiry(7.0), False),  # an idle table: its files expired
        (0.5, Expiry(1.0), False),  # less than the margin: nothing can be told
        (900, Expiry(), True),
        (0.1, Expiry(is_known=False), False),
        (0.1, None, False),
    ],
)
def test_files_that_may_have_expired_mean_nothing(age_days: float, expiry: Expiry | None, is_due: bool) -> None:
    """Two days before the rule's end are left to it; rules that nobody can read may be any."""
    assert isinstance(planned(full(timedelta(days=age_days)), expiry=expiry), Truncate) == is_due


def test_one_young_file_among_the_gone_is_enough() -> None:
    """The others may have expired, it can't have."""
    snapshot = full(timedelta(days=30))
    young = {**snapshot.applied, cdc(2).key: known(cdc(2))}

    assert isinstance(planned(replace(snapshot, applied=young), expiry=Expiry(7.0)), Truncate)


def test_files_whose_age_is_not_known_are_taken_for_old() -> None:
    """A record of an older program has no time for them."""
    snapshot = full()
    unknown = {key: replace(item, modified="") for key, item in snapshot.applied.items()}

    action = planned(replace(snapshot, applied=unknown, generation=Generation(1)), expiry=Expiry(7.0))

    assert not isinstance(action, Truncate)


def test_part_of_a_listing_is_not_enough() -> None:
    """Files before its start may be there."""
    assert not isinstance(planned(full(), seen=cdc(1).key), Truncate)


def test_files_from_before_those_that_are_known_are_enough_to_keep_the_rows() -> None:
    """The names of old ones are not kept: those of this generation that are there were applied once."""
    snapshot = replace(full(), known_from="20240501000100")

    assert not isinstance(planned(snapshot, cdc(0)), Truncate)
    assert isinstance(planned(replace(snapshot, known_from=""), cdc(3)), Truncate)


def test_new_cdc_files_wait_for_the_truncate() -> None:
    """They were written after it."""
    assert isinstance(planned(full(), cdc(7)), Truncate)


def test_a_new_load_replaces_everything_anyway() -> None:
    """One change instead of two."""
    assert isinstance(planned(full(), load(7, etag="fresh")), TakeLoad)


def test_a_file_that_a_rollback_waits_for_blocks_as_ever() -> None:
    """Its rows are to come back: they are not forgotten because it is gone too."""
    snapshot = replace(full(), awaited={cdc(5).key: known(cdc(5))})

    action = planned(snapshot)

    assert isinstance(action, Stopped)
    assert action.by.code == "awaited-file-gone"


def test_after_it_nothing_is_known_and_new_files_are_taken() -> None:
    """Columns, keys, cursor, and what a person left out, stay."""
    left_out = {cdc(1).key: known(cdc(1))}
    before = replace(full(), skipped=left_out)
    work = truncated(before, "because")

    assert (work.kind, work.superseded, work.counts.deleted, work.cursor_after) == ("truncate", ("a.parquet",), 3, before.cursor)
    assert work.like is not None
    assert (work.like.applied, work.like.skipped) == ({}, left_out)
    assert (work.generation.number, work.generation.loads) == (2, ())
    after = replace(work.like, files={}, generation=work.generation)
    assert isinstance(plan(after, cdc(3), OnRawFilesGone="truncate"), TakeBatch)
    assert not isinstance(planned(after), Truncate)


@pytest.mark.parametrize(
    ("files", "edits", "words"),
    [
        ((load(), cdc(1), cdc(2)), {}, ""),
        ((cdc(2),), {}, "2 of 3 raw file(s) that were applied are gone, the newest"),
        ((), {}, "3 of 3 raw file(s) that were applied are gone"),
        ((), {"OnRawFilesGone": "truncate"}, "OnRawFilesGone is truncate"),
        ((), {"Source": "none"}, ""),
    ],
)
def test_what_is_gone_is_said(files: tuple[RawFile, ...], edits: dict[str, Any], words: str) -> None:
    """How many, the newest of them, and what it means."""
    snapshot = full()

    text = gone_text(state_of(snapshot, **edits), snapshot, listing_of(*files))

    assert (words in text) if words else not text


def test_only_what_the_listing_covers_is_said_to_be_gone() -> None:
    """A listing from the late window on says nothing of older files."""
    snapshot = full()
    found = raw_gone(snapshot, replace(listing_of(load(), cdc(2)), gaps=(("", cdc(1).key),)))

    assert (found.gone, found.known, found.is_all) == ((), 2, False)
