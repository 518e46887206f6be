"""Raw files that a block waits for, because a run had listed them and could not read them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from glue_jobs.core import awaited as module
from glue_jobs.core.actions import Action, Stopped, TakeBatch, TakeLoad, Truncate
from glue_jobs.core.awaited import awaited_after, awaited_by, gone_before_read, vanished, waiting_for
from glue_jobs.core.intake import blocked_by, mark_of, plan_table
from glue_jobs.core.limits import Limits
from glue_jobs.core.raw_names import Expiry, RawFile, with_transactions
from glue_jobs.core.record import Generation, Input
from glue_jobs.core.snapshot import Snapshot
from glue_jobs.core.state import TableState
from tests.core.records import minimal
from tests.core.tables import NOW, cdc, cdc_key, cursor, listing_of, load, loaded, plan, state_of


def waiting(snapshot: Snapshot, action: Action, before: tuple[RawFile, ...], after: tuple[RawFile, ...], **edits: Any) -> TableState:
    """The table after a run that planned `action` by the first files and found the second."""
    state = state_of(snapshot, **edits)
    gone = vanished(state, snapshot, action, listing_of(*before), listing_of(*after))
    error = gone_before_read(state, next(iter(gone.values())))
    by = waiting_for(blocked_by(error, mark_of(state, listing_of(*after), NOW)), gone)
    return replace(state, blocked=by)


def planned(state: TableState, snapshot: Snapshot, *files: RawFile) -> Action:
    return plan_table(state, snapshot, listing_of(*files), NOW, Limits())


def test_the_block_lasts_until_the_file_is_there() -> None:
    """Under any ETag: it was put back. Whatever else comes, the block stays the same, so that nobody writes it anew."""
    snapshot, files = loaded(), (load(), cdc(1), cdc(2))
    state = waiting(snapshot, TakeBatch(files[1:]), files, (load(), cdc(2)))

    actions = [planned(state, snapshot, load(), *more) for more in ((cdc(2),), (cdc(2), cdc(3)), ())]

    assert actions == [Stopped(state.blocked, known=True)] * 3  # type: ignore[arg-type]
    back = (cdc(1, etag="uploaded again"), cdc(2))
    assert planned(state, snapshot, load(), *back) == TakeBatch(back)


def test_what_a_person_decides_first_does_not_end_it() -> None:
    """Another block that comes before it waits for the file, too."""
    snapshot, files = loaded(), (load(), cdc(1), cdc(2))
    state = waiting(snapshot, TakeBatch(files[1:]), files, (load(), cdc(2)))
    strange = RawFile(load().key.replace("LOAD00000001", "notes"), 1, "e", NOW)

    action = planned(state, snapshot, load(), cdc(2), strange)

    assert isinstance(action, Stopped)
    assert action.by.code == "foreign-raw-file"
    again = planned(replace(state, blocked=action.by), snapshot, load(), cdc(2))
    assert isinstance(again, Stopped)
    assert again.by.code == "raw-file-gone"


def test_only_files_that_nobody_has_read_are_waited_for() -> None:
    """Those that expired since they were applied are not, nor those that a person leaves out, nor transaction files of other tables."""
    snapshot = loaded([cdc(1), cdc(2)], at=2)
    shared = RawFile("dms/changes/CDC_TXN-20240501001000000.csv", 1, "e", NOW)
    before = replace(with_transactions(listing_of(load(), *map(cdc, range(1, 6))), [shared]), blank=frozenset({shared.key}))
    state = state_of(snapshot, SkipFiles=cdc(5).base)

    gone = vanished(state, snapshot, TakeBatch((cdc(3), shared)), before, listing_of(load(), cdc(3)))

    assert gone == {cdc_key(4): Input(cdc_key(4), "")}


def test_a_load_is_told_from_the_next_by_one_of_its_files() -> None:
    """However many it has, a block can name it."""
    loads = tuple(load(number, etag=f"l{number}") for number in range(1, 600))
    state = waiting(Snapshot(), TakeLoad(loads, False, ""), loads, loads[:-1])

    assert len(awaited_by(state, Snapshot())) == 2
    assert isinstance(planned(state, Snapshot(), *loads[:-1]), Stopped)
    assert isinstance(planned(state, Snapshot(), *loads), TakeLoad)
    assert isinstance(planned(state, Snapshot(), load(1, etag="anew"), load(2, etag="anew too")), TakeLoad)


def test_more_files_than_a_block_names_wait_for_a_persons_word(monkeypatch: pytest.MonkeyPatch) -> None:
    """The block does not know of all of them whether they are there."""
    monkeypatch.setattr(module, "MOST_NAMED", 2)
    snapshot, files = loaded(), tuple(map(cdc, range(1, 5)))
    state = waiting(snapshot, TakeBatch(files), (load(), *files), (load(),))

    assert planned(state, snapshot, load(), *files) == Stopped(state.blocked, known=True)  # type: ignore[arg-type]


def test_a_source_that_was_emptied_ends_the_wait() -> None:
    """A person said that raw files that are all gone mean that; the file went with them."""
    snapshot = loaded([cdc(1)], at=1, files={"a": None}, generation=Generation(1, (Input(load().key, "l", 1, 1, "2024-05-01T00:00:00Z"),)))
    state = waiting(snapshot, TakeBatch((cdc(2),)), (load(), cdc(1), cdc(2)), (), OnRawFilesGone="truncate")
    listing = replace(listing_of(), expiry=Expiry())

    assert isinstance(plan_table(state, snapshot, listing, NOW, Limits()), Truncate)


@pytest.mark.parametrize(
    ("kind", "outlives"),
    [("rollback", True), ("lost", True), ("edit", True), ("rekey", True), ("full-load", False), ("adopt", False), ("truncate", False)],
)
def test_the_block_outlives_changes_that_the_file_is_not_in(kind: str, outlives: bool) -> None:
    """A load has what was changed before it."""
    awaited = {cdc_key(3): Input(cdc_key(3), "")}
    record = minimal(kind=kind, generation=Generation(2, (), cdc_key(4).rsplit("/", 1)[-1].replace("-", "")[:14]), cursor_after=cursor(5))

    assert awaited_after(awaited, record) is outlives
    assert awaited_after({}, record) is False


def test_a_load_that_the_file_comes_after_does_not_end_the_wait() -> None:
    """A reload from the load files that the table has: the file still belongs on top of it."""
    record = minimal(kind="full-load", generation=Generation(2, (), "20240501000000"))

    assert awaited_after({cdc_key(3): Input(cdc_key(3), "")}, record)


@pytest.mark.parametrize("signature", ["mark {", "mark []", "mark nothing", "", "mark"])
def test_a_signature_that_names_no_file_waits_for_none(signature: str) -> None:
    """Of most blocks it doesn't; and a person may have written it."""
    block = {"code": "c", "message": "m", "todo": "t", "signature": signature}

    assert awaited_by(state_of(loaded(), Blocked=block), loaded()) == {}


def test_a_file_of_an_earlier_generation_is_not_waited_for() -> None:
    """A load came since."""
    snapshot = loaded()
    state = waiting(snapshot, TakeBatch((cdc(1),)), (load(), cdc(1)), (load(),))
    later = replace(snapshot, generation=replace(snapshot.generation, cdc_from="20240502000000"))

    assert (list(awaited_by(state, snapshot)), awaited_by(state, later)) == ([cdc_key(1)], {})


def test_a_plan_without_raw_files_loses_none() -> None:
    """A rewrite reads the table's own files."""
    action = plan(loaded(), load(), Request="repartition")

    assert vanished(state_of(loaded()), loaded(), action, listing_of(load(), cdc(1)), listing_of()) == {}
