"""Status: state, lag, pending, the way out."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import timedelta

import pytest

from controller.gather import Facts
from controller.plan import plan_run
from controller.status import TableStatus, check, read_status, status_dict, wants_files
from glue_jobs.core.errors import blocked
from glue_jobs.core.raw_names import Expiry, RawFile, with_transactions
from glue_jobs.core.state import read_state
from tests.controller.world import NOW, facts, gathered, item_of, raw_file, table_path

ORDERS = table_path()
LOAD = raw_file(ORDERS, "LOAD00000001.parquet", 1000)
CDC = [raw_file(ORDERS, f"20240501-0{hour}0000000.parquet", 10 + hour) for hour in range(1, 6)]
BLOCK = json.dumps({"code": "type-changed", "message": "id was int", "todo": "reload it", "signature": ""})


def one(fact: Facts) -> TableStatus:
    (table,) = read_status(gathered(fact))
    return table


@pytest.mark.parametrize(
    ("fact", "word"),
    [
        (facts(ORDERS, LOAD, ActiveFlag="false"), "inactive"),
        (facts(ORDERS, LOAD), "not-loaded"),
        (facts(ORDERS), "no-files"),
        (facts(ORDERS, loaded=(LOAD, CDC[0])), "up-to-date"),
        (facts(ORDERS, CDC[1], loaded=(LOAD, CDC[0])), "behind"),
        (facts(ORDERS, CDC[1], loaded=(LOAD, CDC[0]), Paused="rolled back"), "paused"),
        (facts(ORDERS, CDC[1], loaded=(LOAD, CDC[0]), Blocked=BLOCK), "blocked"),
        (facts(ORDERS, loaded=(LOAD, CDC[0]), Publishing="x"), "unfinished"),
        (facts(ORDERS, loaded=(LOAD, CDC[0]), Publishing="x", Blocked=BLOCK), "blocked"),
        (facts(ORDERS, loaded=(LOAD, CDC[0]), CatalogPending="x", Blocked=BLOCK), "blocked"),
        (facts(ORDERS, loaded=(LOAD,), Request="repartition"), "requested"),
        (facts(ORDERS, raw_file(ORDERS, "LOAD00000002.parquet"), loaded=(LOAD,)), "reload-due"),
        (facts(ORDERS, raw_file(ORDERS, "LOAD00000002.parquet", age_hours=0), loaded=(LOAD,)), "reload-waits"),
        (Facts(str(ORDERS), problem=blocked("bad-attribute", "the attribute ActiveFlag can't be read")), "error"),
    ],
)
def test_state(fact: Facts, word: str) -> None:
    """One word says how a table stands."""
    assert one(fact).state == word


def without(fact: Facts, *files: RawFile) -> Facts:
    """The facts after raw files were deleted; it is known that the bucket expires none."""
    gone = {file.key for file in files}
    loads, cdc = ([file for file in some if file.key not in gone] for some in (fact.listing.loads, fact.listing.cdc))
    return replace(fact, listing=replace(fact.listing, loads=tuple(loads), cdc=tuple(cdc), expiry=Expiry()))


def test_raw_files_that_are_gone_are_told() -> None:
    """How many, and the newest; a table that has them all says nothing."""
    fact = facts(ORDERS, loaded=(LOAD, *CDC[:2]))

    table = one(without(fact, CDC[0]))
    assert (table.state, one(fact).raw_files_gone) == ("up-to-date", "")
    assert table.raw_files_gone.startswith(f"1 of 3 raw file(s) that were applied are gone, the newest {CDC[0].base}")
    assert status_dict(table)["raw_files_gone"] == table.raw_files_gone


def test_a_truncate_at_the_source_is_due_where_a_person_said_so() -> None:
    """The plan has it for LoadIncremental."""
    fact = without(facts(ORDERS, loaded=(LOAD, CDC[0]), table_bytes=9, OnRawFilesGone="truncate"), LOAD, CDC[0])

    assert one(fact).state == "truncate-due"
    (table,) = plan_run(gathered(fact)).tables
    assert (table.action, table.job) == ("truncate", "LoadIncremental")
    assert check([one(fact)], 0.0) == [str(ORDERS)]


def test_lag_is_from_the_cursor_to_the_newest_file() -> None:
    """Two files wait, the newest is three hours after the cursor's."""
    table = one(facts(ORDERS, CDC[1], CDC[3], loaded=(LOAD, CDC[0])))

    assert (table.lag_seconds, table.pending_files, table.pending_bytes) == (3 * 3600, 2, CDC[1].size + CDC[3].size)


def test_lag_without_a_cursor_is_from_the_first_pending_file() -> None:
    """After the first load nothing was applied yet."""
    assert one(facts(ORDERS, CDC[0], CDC[2], loaded=(LOAD,))).lag_seconds == 2 * 3600


@pytest.mark.parametrize(
    ("last", "hours"),
    [
        ({"job": "LoadIncremental", "outcome": "nothing", "time": "2024-05-01T03:30:00Z"}, 0.5),
        ({"job": "LoadIncremental", "outcome": "failed", "time": "2024-05-01T03:30:00Z"}, 4),
        ({"job": "LoadInitial", "outcome": "nothing", "time": "2024-05-01T03:30:00Z"}, 4),
        ({"job": "LoadIncremental", "outcome": "committed", "time": "2024-05-01T09:30:00Z"}, 0),
        ({}, 4),
    ],
)
def test_lag_of_a_table_with_transaction_files_is_from_the_last_run_that_saw_them(last: dict[str, str], hours: float) -> None:
    """Files without a row of the table move no cursor, and would look like a table that is left behind."""
    fact = facts(ORDERS, loaded=(LOAD, raw_file(ORDERS, "20240501-000000000.parquet")), CdcPath="dms/changes", LastRun=last)
    shared = [RawFile(f"dms/changes/CDC_TXN-202405010{hour}0000000.csv", 1, "e", NOW) for hour in range(1, 5)]

    table = one(replace(fact, listing=with_transactions(fact.listing, shared)))

    assert (table.lag_seconds, table.pending_files) == (hours * 3600, 4)


def test_transaction_files_that_a_run_has_looked_at_wait_for_nothing() -> None:
    """They stay pending until there are as many as a batch takes."""
    last = {"job": "LoadIncremental", "outcome": "nothing", "time": (NOW - timedelta(hours=1)).isoformat()}
    fact = facts(ORDERS, loaded=(LOAD, raw_file(ORDERS, "20240501-000000000.parquet")), CdcPath="dms/changes", LastRun=last)
    old, new = (
        RawFile(f"dms/changes/CDC_TXN-202405010{hour}0000000.csv", 1, "e", NOW - timedelta(hours=age)) for hour, age in ((2, 9), (3, 0.5))
    )

    waiting = [one(replace(fact, listing=with_transactions(fact.listing, files))).waiting_seconds for files in ([old], [old, new])]
    left = replace(fact, state=replace(fact.state, last_run={**last, "leaves": True})) if fact.state else fact

    assert waiting == [None, 1800]
    assert one(replace(left, listing=with_transactions(left.listing, [old]))).waiting_seconds == 9 * 3600, "it did not take all"


def test_what_waits_counts_from_when_it_came() -> None:
    """Of a table that was never loaded nothing else tells how long; one whose source fell silent has a lag that does not grow."""
    waiting = raw_file(ORDERS, "20240501-010005000.parquet", age_hours=5)
    loads = [raw_file(ORDERS, f"LOAD0000000{number}.parquet", age_hours=2 + number) for number in (1, 2)]

    unloaded = one(facts(ORDERS, *loads))
    silent = one(facts(ORDERS, waiting, loaded=(LOAD, CDC[0])))
    unfinished = one(facts(ORDERS, loaded=(LOAD, CDC[0]), Publishing="x", LastRun={"time": NOW.isoformat()}))

    assert [(each.lag_seconds, each.waiting_seconds) for each in (unloaded, silent)] == [(None, 4 * 3600), (5, 5 * 3600)]
    assert (unfinished.state, unfinished.waiting_seconds) == ("unfinished", 12 * 3600)  # the age of its head
    for table, hours in ((unloaded, 4), (silent, 5), (unfinished, 12)):
        assert check([table], hours * 3600) == [str(ORDERS)]
        assert check([table], hours * 3600 + 1) == []
    assert one(facts(ORDERS, loaded=(LOAD, CDC[0]))).waiting_seconds is None


def test_a_catalog_step_that_fails_is_told_by_a_check() -> None:
    """Each change that goes on is a new one to finish: no lag and no time tells that the catalog is far behind. One that no run has tried
    yet is the next run's."""
    left = facts(ORDERS, loaded=(LOAD, CDC[0]), CatalogPending="x", LastRun={"outcome": "committed"})
    tried = facts(ORDERS, loaded=(LOAD, CDC[0]), CatalogPending="x", LastRun={"outcome": "committed", "catalog_pending": "x"})
    since = facts(ORDERS, loaded=(LOAD, CDC[0]), LastRun={"outcome": "committed", "catalog_pending": "x"})

    assert [one(fact).state for fact in (left, tried, since)] == ["unfinished", "unfinished", "up-to-date"]
    assert [check([one(fact)], 24 * 3600) for fact in (left, tried, since)] == [[], [str(ORDERS)], []]


def test_lag_of_an_up_to_date_and_of_an_unloaded_table() -> None:
    """Zero where everything was applied, unknown where there is no lake table."""
    assert one(facts(ORDERS, loaded=(LOAD, CDC[0]))).lag_seconds == 0
    assert one(facts(ORDERS, LOAD)).lag_seconds is None


def test_what_waits_for_a_held_back_table_is_shown() -> None:
    """A pause or a block doesn't hide the pending files."""
    paused = one(facts(ORDERS, CDC[1], loaded=(LOAD, CDC[0]), Paused="x"))
    stopped = one(facts(ORDERS, CDC[1], loaded=(LOAD, CDC[0]), Blocked=BLOCK))

    assert paused.pending_files == stopped.pending_files == 1


def test_what_stopped_the_last_run_before_its_plan_is_a_block() -> None:
    """No plan finds it: the change records say it, for one. A run that came through since has found it gone."""
    block = json.dumps({"code": "state-went-back", "message": "m", "todo": "t", "signature": "before-plan"})

    for outcome, edits, word in (
        ("blocked", {}, "blocked"),
        ("nothing", {}, "up-to-date"),
        ("blocked", {"Paused": "by hand"}, "paused"),
        ("blocked", {"ActiveFlag": "false"}, "inactive"),
    ):
        table = one(facts(ORDERS, loaded=(LOAD, CDC[0]), Blocked=block, LastRun={"outcome": outcome}, **edits))
        assert (table.state, bool(check([table], 86_400))) == (word, word == "blocked")


def test_a_block_comes_with_the_way_out() -> None:
    """Code, message and what to do."""
    data = status_dict(one(facts(ORDERS, loaded=(LOAD,), Blocked=BLOCK)))

    assert data["blocked"] == {"code": "type-changed", "message": "id was int", "todo": "reload it"}


def test_size_of_the_lake_table() -> None:
    """Rows, files and bytes of the head's snapshot."""
    table = one(facts(ORDERS, loaded=(LOAD,), table_bytes=5000))

    assert (table.rows, table.files, table.bytes) == (10, 1, 5000)


def test_tables_that_would_write_to_one_place_are_blocked() -> None:
    """Status and plan say the same."""
    second = table_path("second")

    tables = read_status(gathered(facts(ORDERS, LOAD), facts(second, out_path="s3://lake-bucket/lake/shop/orders/")))

    assert [table.state for table in tables] == ["blocked", "blocked"]


def test_check() -> None:
    """Blocked and behind fail the check; idle, inactive and paused tables don't, nor a lag within the bound."""
    behind = one(facts(ORDERS, raw_file(ORDERS, CDC[1].base, age_hours=0.5), loaded=(LOAD, CDC[0])))
    stopped = one(facts(table_path("b"), loaded=(raw_file(table_path("b"), "LOAD00000001.parquet"),), Blocked=BLOCK))
    paused = one(facts(ORDERS, CDC[1], loaded=(LOAD, CDC[0]), Paused="x"))
    idle = one(facts(ORDERS, loaded=(LOAD,)))

    assert check([behind, stopped, paused, idle], 0) == [behind.path, stopped.path]
    assert check([behind, stopped], 3601) == [stopped.path]
    assert check([behind], 3600) == [behind.path]


def test_whose_files_are_looked_at() -> None:
    """Active tables, paused ones too, and those that were loaded once."""
    assert wants_files(read_state(item_of(ORDERS, Paused="x")))
    assert wants_files(read_state(item_of(ORDERS, ActiveFlag="false", Head="h")))
    assert not wants_files(read_state(item_of(ORDERS, ActiveFlag="false")))
