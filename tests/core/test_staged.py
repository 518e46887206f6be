"""What a staged change keeps, and what its commit makes of it."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timezone
from typing import Any

import pytest

from glue_jobs.core.record import from_json, to_json
from glue_jobs.core.staged import as_committed, as_staged, commit_of, edited_since, is_paused_for, pause_text
from glue_jobs.core.state import TableState, default_item, read_state
from glue_jobs.core.work import Work
from tests.core.records import minimal
from tests.core.tables import PATH

WORK = Work("incremental", (), (), (), minimal().generation, requests=("Request",), values={"PrimaryKey": "id"})
NOW = datetime(2024, 5, 1, 12, 30, tzinfo=timezone.utc)
CHANGE = "0000000004-000001-0123abcd"


def state(**item: Any) -> TableState:
    return read_state({**default_item(PATH, "s3://lake/lake/sales/orders/"), **item})


def staged(**item: Any) -> Any:
    record = replace(minimal(), details={"before": {"Request": "widen"}, "engine": "driver"})
    return as_staged(record, WORK, state(**item))


def test_a_record_that_is_staged_comes_back_from_json() -> None:
    """With what its commit needs."""
    record = staged(Request="widen")

    again = from_json(to_json(record), "bucket/key")

    assert (again.staged, again) == (True, record)
    assert commit_of(again, state()) == ({"PrimaryKey": "id"}, ("Request",))


def test_a_commit_keeps_all_but_what_was_the_staged_ones() -> None:
    """Id, time and run are new, and what it overwrites in the item is said anew."""
    record = staged()

    done = as_committed(record, CHANGE, now=NOW, run_id="r2", before={"before": {"Paused": "x"}})

    same = replace(
        record, staged=False, staged_as=record.id, id=CHANGE, time="2024-05-01T12:30:00.000000Z", run_id="r2", program=done.program
    )
    assert replace(done, details={}) == replace(same, details={})
    assert done.details == {"engine": "driver", "before": {"Paused": "x"}}


def test_a_commit_lifts_its_own_pause_only() -> None:
    """A person's reason stays."""
    record = staged()
    path = state().path.in_shell

    ours, theirs = state(Paused=pause_text(record.id, path)), state(Paused=pause_text(CHANGE, path))

    assert (is_paused_for(ours, record.id), is_paused_for(theirs, record.id)) == (True, False)
    assert commit_of(record, ours)[1] == ("Request", "Paused")
    assert commit_of(record, theirs)[1] == ("Request",)


@pytest.mark.parametrize(
    ("then", "now", "edited"),
    [
        ({}, {}, []),
        ({"PrimaryKey": "id"}, {"PrimaryKey": "id,name"}, [("PrimaryKey", "id", "id,name")]),
        ({}, {"LateWindowHours": 3}, [("LateWindowHours", "", "3")]),
        ({"Request": "widen"}, {}, [("Request", "widen", "")]),
        ({"ActiveFlag": "true"}, {"ActiveFlag": False, "Paused": "holidays"}, []),
        ({"SkipFiles": {"a", "b", "c"}}, {"SkipFiles": {"c", "b", "a"}}, []),
        ({"SkipFiles": {"a"}}, {"SkipFiles": {"a", "b"}}, [("SkipFiles", '["a"]', '["a", "b"]')]),
    ],
)
def test_what_a_person_edited_since_is_named(then: dict[str, Any], now: dict[str, Any], edited: list[Any]) -> None:
    """ActiveFlag and Paused decide nothing that the change does; a set has no order."""
    record = from_json(to_json(staged(**then)), "bucket/key")

    assert edited_since(record, state(**now)) == edited
