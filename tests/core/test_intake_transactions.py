"""What is planned of transaction files: each holds rows of many tables, and maybe none of this one."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from glue_jobs.core.actions import Action, Rest, TakeBatch, TakeLoad
from glue_jobs.core.intake import plan_table
from glue_jobs.core.limits import Limits
from glue_jobs.core.raw_names import RawFile, RawListing, with_transactions
from glue_jobs.core.record import Input
from glue_jobs.core.snapshot import Snapshot
from tests.core.tables import NOW, OLD, cdc, listing_of, load, loaded, state_of, taken

SHARED = "dms/changes/"
LIMITS = replace(Limits(), batch_files=4)


def txn(minute: int) -> RawFile:
    key = f"{SHARED}CDC_TXN-202405010{minute // 60}{minute % 60:02d}00000.csv"
    return RawFile(key, 10, f"t{minute}", OLD)


def listing(*files: RawFile, blank: tuple[int, ...] = ()) -> RawListing:
    own = [file for file in files if not file.key.startswith(SHARED)]
    shared = [file for file in files if file.key.startswith(SHARED)]
    return replace(with_transactions(listing_of(*own), shared), blank=frozenset(txn(minute).key for minute in blank))


def at(minute: int, *applied: RawFile, rows: int = -1) -> Snapshot:
    """Loaded, with the cursor at a transaction file."""
    return replace(loaded(cursor=f"raw/{txn(minute).key}"), applied={file.key: replace(taken(file), rows=rows) for file in applied})


def planned(snapshot: Snapshot, files: RawListing, **edits: Any) -> Action:
    return plan_table(state_of(snapshot, **{"CdcPath": SHARED, **edits}), snapshot, files, NOW, LIMITS)


def test_transaction_files_are_taken_like_others() -> None:
    """Behind the cursor, in the order of their times, with the table's own files of before or after."""
    action = planned(at(1, txn(1)), listing(load(), txn(1), txn(4), cdc(3), txn(2)))

    assert action == TakeBatch((txn(2), cdc(3), txn(4)))


def test_files_that_are_known_to_have_no_row_are_taken_with_the_next_one_that_has() -> None:
    """Those before and behind it, in one change."""
    action = planned(at(1, txn(1)), listing(load(), *map(txn, range(1, 6)), blank=(2, 3, 5)))

    assert action == TakeBatch(tuple(map(txn, (2, 3, 4, 5))), blank=frozenset(txn(minute).key for minute in (2, 3, 5)))


def test_they_make_no_change_of_their_own() -> None:
    """Not in every run."""
    action = planned(at(1, txn(1)), listing(load(), *map(txn, range(1, 5)), blank=(2, 3, 4)))

    assert action == Rest("up-to-date", "no row is pending, 3 transaction file(s) have none of the table")


def test_as_many_as_a_change_takes_move_the_cursor() -> None:
    """Or else each run would read more of them again."""
    action = planned(at(1, txn(1)), listing(load(), *map(txn, range(1, 7)), blank=(2, 3, 4, 5, 6)))

    assert isinstance(action, TakeBatch)
    assert (action.files, len(action.blank), action.remaining) == (tuple(map(txn, range(2, 7))), 5, 0)


def test_only_files_with_rows_fill_a_batch() -> None:
    """A backlog of which the table has little is no hundred changes."""
    action = planned(at(1, txn(1)), listing(load(), *map(txn, range(1, 13)), blank=(2, 4, 6, 8, 9, 10)))

    assert isinstance(action, TakeBatch)
    assert action.files == tuple(map(txn, range(2, 12)))
    assert (action.remaining, action.remaining_bytes) == (1, 10)


def test_a_late_file_without_a_row_needs_no_ranking() -> None:
    """It goes along with what is pending, or waits."""
    snapshot = at(5, txn(1), txn(5))
    files = (load(), *map(txn, (1, 3, 5, 7)))

    late = planned(snapshot, listing(*files))
    action = planned(snapshot, listing(*files, blank=(3,)))

    assert late == TakeBatch((txn(3),), (txn(5),), remaining=1, remaining_bytes=txn(7).size, late=True)
    assert action == TakeBatch((txn(3), txn(7)), blank=frozenset({txn(3).key}))
    assert isinstance(planned(snapshot, listing(*files[:-1], blank=(3,))), Rest)


def test_a_reload_or_a_replay_needs_no_file_without_a_row() -> None:
    """It would bring nothing."""
    snapshot = replace(at(5), applied={**at(5, txn(2), rows=3).applied, **at(5, txn(4), txn(5), rows=0).applied})

    assert planned(snapshot, listing(load(), txn(2)), Request="reload") == TakeLoad((load(),), True, "a person asked for it")
    assert planned(snapshot, listing(load(), txn(2)), LastIncrementalFile=txn(1).base) == TakeBatch((txn(2),))


def test_files_without_a_row_are_no_context_of_a_late_one() -> None:
    """They may be gone, and are not read."""
    snapshot = replace(at(5), applied={**at(5, txn(2), rows=3).applied, **at(5, txn(4), txn(5), rows=0).applied})

    assert planned(snapshot, listing(load(), txn(1), txn(2), txn(5))) == TakeBatch((txn(1),), (txn(2),), late=True)


def test_a_new_table_without_a_row_rests() -> None:
    """However many files there are: a change without columns is none."""
    action = planned(Snapshot(), listing(*map(txn, range(9)), blank=tuple(range(9))))

    assert isinstance(action, Rest)
    assert action.code == "no-files"


def test_a_load_comes_from_the_tables_own_folder() -> None:
    """Whatever the shared folder holds."""
    assert isinstance(planned(Snapshot(), listing(load(), txn(1))), TakeLoad)


@pytest.mark.parametrize("name", ["CDC_TXN-20240501000300000.csv", f"raw/{SHARED}CDC_TXN-20240501000300000.csv"])
def test_a_cursor_that_a_person_moved_on_skips_transaction_files(name: str) -> None:
    """By key or bare name."""
    action = planned(at(1, txn(1)), listing(load(), *map(txn, range(1, 6))), LastIncrementalFile=name)

    assert action == TakeBatch((txn(4), txn(5)), skipped=(txn(2), txn(3)))


def test_inputs_without_a_row_are_applied_ones() -> None:
    """They are known by key and ETag like any."""
    snapshot = replace(at(3), applied={txn(minute).key: Input(txn(minute).key, f"t{minute}", 10, 0) for minute in (1, 2, 3)})

    assert isinstance(planned(snapshot, listing(load(), *map(txn, (1, 2, 3)))), Rest)
