"""The overview: how each table stands in a word, and who comes first. From gathered facts, without AWS."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from controller.gather import Facts
from controller.pages.overview import overview_of
from controller.pages.report import LEAST_CHANGES, MOST_CHANGES, MOST_ROWS, MOST_TABLES, cut, foremost, share
from controller.pages.table import commands_of
from controller.pages.views import STATES, Overview, TableRow
from controller.status import read_status
from glue_jobs.core.errors import TableBlocked
from tests.controller.world import NOW, facts, gathered, raw_file, table_path

LOAD = "LOAD00000001.parquet"
APPLIED, PENDING = "20240501-110000000.parquet", "20240501-113000000.parquet"


def loaded(name: str, *pending: str, **attributes: Any) -> Facts:
    """A loaded table with CDC files that wait."""
    path = table_path(name)
    known = (raw_file(path, LOAD, age_hours=9), raw_file(path, APPLIED))
    return facts(path, *(raw_file(path, base) for base in pending), loaded=known, **attributes)


def row_of(fact: Facts) -> TableRow:
    (row,) = overview(fact).tables
    return row


def overview(*tables: Facts) -> Overview:
    seen = gathered(*tables)
    return overview_of(seen, read_status(seen), {})


@pytest.mark.parametrize(
    ("fact", "state", "says"),
    [
        (loaded("a"), "fine", ""),
        (loaded("a", PENDING), "behind", "1 raw file waits"),
        (loaded("a", PENDING, LeaseOwner="x", LeaseBeat=1), "running", "lease"),
        (loaded("a", PENDING, LeaseOwner="x", LeaseBeat=1, Paused="its forget broke off"), "paused", "broke off"),
        (loaded("a", Publishing="0000000001-000001-0123abcd", LeaseOwner="x"), "publishing", "become visible"),
        (loaded("a", PENDING, Paused="rolled back to change 1"), "paused", "rolled back to change 1"),
        (loaded("a", Blocked="I am looking at it"), "blocked", "I am looking at it"),
        (loaded("a", "notes.txt"), "blocked", "notes.txt"),
        (loaded("a", ActiveFlag="false"), "inactive", "not any more"),
        (facts(table_path("a"), is_new=True, ActiveFlag="false"), "inactive", "nobody has said"),
        (facts(table_path("a")), "fine", "no file"),
        (facts(table_path("a"), raw_file(table_path("a"), LOAD)), "behind", ""),
        (Facts(str(table_path("a")), problem=TableBlocked("a bad attribute", "bad-attribute", "mend it")), "blocked", "attribute"),
    ],
)  # fmt: skip
def test_a_table_stands_in_one_word(fact: Facts, state: str, says: str) -> None:
    """With why, where there is something to say."""
    row = row_of(fact)

    assert row.state == state
    assert row.state in STATES
    assert says in row.reason
    assert row.name == "shop.a"


def test_a_blocked_table_says_the_way_out() -> None:
    """As the error does."""
    assert "dmslake unblock" in row_of(loaded("a", "notes.txt")).todo


def test_an_inactive_table_says_how_to_have_it_kept_up() -> None:
    """A key is asked for where there is none yet; the key of a loaded table is not to be changed by the way."""
    path, idle = table_path("a"), {"ActiveFlag": "false"}

    assert row_of(loaded("a", **idle)).todo == f"`dmslake activate {path}`"
    assert row_of(loaded("a", PrimaryKey="null", **idle)).todo == f"`dmslake activate {path}`"
    assert row_of(facts(path, PrimaryKey="null", **idle)).todo == f"`dmslake activate {path} --primary-key COLUMNS`"
    new = facts(path, PrimaryKey="null", **idle)
    assert [commands_of(fact.state, ())[0].line for fact in (loaded("a", PrimaryKey="null", **idle), new)] == [
        f"dmslake activate {path}",
        f"dmslake activate {path} --primary-key COLUMNS",
    ]


def test_lag_and_pending_are_those_of_status() -> None:
    """From the cursor to the newest file's name."""
    row = row_of(loaded("a", PENDING))

    assert (row.lag_seconds, row.pending_files, row.pending_bytes) == (1800.0, 1, 100)
    assert (row.rows, row.bytes, row.files) == (10, 0, 1)


def test_a_failed_run_is_said_beside_the_state() -> None:
    """The table is behind, and needs a person."""
    row = row_of(loaded("a", PENDING, LastRun={"outcome": "failed", "error": {"code": "x", "message": "no memory", "todo": ""}}))

    assert (row.state, row.failed, row.needs_person) == ("behind", "no memory", True)


def test_a_failed_run_has_its_way_out() -> None:
    """As `dmslake status` has it."""
    error = {"code": "x", "message": "no memory", "todo": "give it a larger worker"}

    assert row_of(loaded("a", LastRun={"outcome": "failed", "error": error})).failed == "no memory; what to do: give it a larger worker"


def test_a_catalog_that_does_not_follow_needs_a_person() -> None:
    """The run was fine, but for what it says."""
    last = {"outcome": "committed", "catalog_pending": "x", "warnings": ["Lake Formation refuses"]}
    row = row_of(loaded("a", PENDING, CatalogPending="x", LastRun=last))

    assert (row.state, row.needs_person) == ("behind", True)
    assert row.failed == "the catalog step of change x was not finished; Lake Formation refuses"


def test_what_was_refused_to_a_person_is_no_failure_of_the_table() -> None:
    """A wrong call changed nothing, and who called was told."""
    row = row_of(loaded("a", LastRun={"outcome": "refused", "error": {"code": "x", "message": "no such row", "todo": ""}}))

    assert (row.state, row.failed, row.needs_person) == ("fine", "", False)


def test_those_who_need_a_person_come_first_then_those_furthest_behind() -> None:
    """And within that by name."""
    found = overview(
        loaded("fine"), loaded("behind", PENDING), loaded("far", "20240501-115900000.parquet"), loaded("inactive", ActiveFlag="false"),
        loaded("paused", Paused="wait"), loaded("blocked", "notes.txt"), loaded("also-fine"),
        loaded("running", PENDING, LeaseOwner="x", LeaseBeat=1),
        loaded("failed", PENDING, LastRun={"outcome": "failed", "error": {"code": "x", "message": "no memory", "todo": ""}}),
    )  # fmt: skip

    assert [row.name.removeprefix("shop.") for row in found.tables] == [
        "blocked", "paused", "failed", "running", "far", "behind", "also-fine", "fine", "inactive",
    ]  # fmt: skip
    assert found.totals.states == {"blocked": 1, "running": 1, "paused": 1, "behind": 3, "fine": 2, "inactive": 1}
    assert (found.totals.tables, found.totals.rows, found.totals.most_lag_seconds) == (9, 90, 3540.0)


def test_a_report_has_pages_for_those_who_need_a_person_and_the_last_changed() -> None:
    """However many there are; in the overview's order."""
    row = TableRow("p", "n", "fine", time=NOW)
    rows = [replace(row, path=f"t{number}", time=NOW.replace(minute=number)) for number in range(10)]
    rows[3] = replace(rows[3], state="blocked", time=None)
    one = replace(overview(), tables=tuple(rows))

    assert [each.path for each in foremost(one, 3)] == ["t3", "t8", "t9"]
    assert foremost(one, 100) == one.tables


def test_a_report_is_bounded() -> None:
    """In rows, pages and changes; what is left out is counted."""
    row = TableRow("p", "n", "fine")
    many = replace(overview(), tables=(row,) * (MOST_ROWS + 5))

    assert (len(cut(many).tables), cut(many).left_out) == (MOST_ROWS, 5)
    assert share(20, 1) == 20
    assert share(50, MOST_TABLES) * MOST_TABLES <= MOST_CHANGES
    assert share(50, 10**6) == LEAST_CHANGES
