"""Which CDC files no change took, and what is said of them."""

from __future__ import annotations

from datetime import datetime, timezone
from typing import Any

import pytest

from glue_jobs.core.never_taken import never_taken, of_never_taken
from glue_jobs.core.raw_names import RawFile
from glue_jobs.core.record import ChangeRecord, Generation, Input
from glue_jobs.core.snapshot import Snapshot
from glue_jobs.core.state import TableState, read_state

PATH = "raw/dms/shop/orders/"
FOLDER = "dms/shop/orders/"


def key(day: int) -> str:
    return f"{FOLDER}202405{day:02}-120000000.parquet"


def file(day: int) -> RawFile:
    return RawFile(key(day), 1, "e", datetime(2024, 5, 30, 1, 2, tzinfo=timezone.utc))


def change(kind: str, *days: int, **values: Any) -> ChangeRecord:
    inputs = tuple(Input(key(day), "e") for day in days)
    return ChangeRecord("0000000001-000001-0badcafe", "", kind, PATH, "s3://lake/t/", "2024-05-30T00:00:00Z", inputs=inputs, **values)


def state_of(cursor: int = 20, **values: Any) -> TableState:
    return read_state({"path": PATH, "PrimaryKey": "id", "LastIncrementalFile": f"raw/{key(cursor)}", **values})


def head_of(cursor: int = 20, **values: Any) -> Snapshot:
    return Snapshot(cursor=f"raw/{key(cursor)}", **values)


LOADED = (change("full-load"), change("incremental", 3, 20))


def days_of(found: list[RawFile]) -> list[int]:
    return [int(each.base[6:8]) for each in found]


@pytest.mark.parametrize(
    ("head", "state", "records", "found"),
    [
        (head_of(), state_of(), LOADED, [2, 10]),
        (head_of(), state_of(SkipFiles=key(2).rsplit("/", 1)[1]), LOADED, [10]),
        (head_of(skipped={key(10): Input(key(10), "e")}), state_of(), LOADED, [2]),
        (head_of(awaited={key(10): Input(key(10), "e")}), state_of(), LOADED, [2]),
        (head_of(), state_of(cursor=5), LOADED, [2]),  # moved back by a person: what follows is pending
        (head_of(), state_of(cursor=25, Head="0000000001-000001-0badcafe"), LOADED, [2, 10]),  # moved on: 19 is late all the same
        (head_of(generation=Generation(1, (), "20240505")), state_of(), LOADED, [10]),
        (head_of(), state_of(), (change("adopt", cursor_after=f"raw/{key(4)}"), LOADED[1]), [10]),
        (head_of(), state_of(), (change("incremental", 20, cursor_before=f"raw/{key(10)}"),), []),
        (head_of(known_from="20240515"), state_of(), (LOADED[0], change("incremental", 3, 20, skipped=(Input(key(2), "e"),))), [10]),
        (head_of(), state_of(), (), []),
    ],
)
def test_what_no_change_took_and_no_run_will(
    head: Snapshot, state: TableState, records: tuple[ChangeRecord, ...], found: list[int]
) -> None:
    """Files 2 and 10 are in no change; 19, a day behind the cursor, is still taken as late, and 25 is ahead."""
    cdc = [file(day) for day in (2, 3, 10, 19, 20, 25)]

    assert days_of(never_taken(state, head, records, cdc, 36.0)) == found


@pytest.mark.parametrize(
    ("first", "cursor"),
    [(LOADED[0], "3-120000000.parquet"), (change("adopt", cursor_after=f"raw/{key(4)}"), "4-120000000.parquet")],
)
def test_the_way_out_begins_right_before_the_file(first: ChangeRecord, cursor: str) -> None:
    """At what the table took last before it, or at the cursor of the adoption: what the adopted rows have is not taken once more."""
    taken = change("incremental", 3 if first is LOADED[0] else 20)

    (finding,) = of_never_taken(state_of(), head_of(), (first, taken), [file(10)])

    assert (finding.is_difference, finding.where) == (True, f"s3://raw/{key(10)}")
    assert f"set LastIncrementalFile of the table's item to raw/{FOLDER}2024050{cursor} and run" in finding.todo
    assert "written 2024-05-30 01:02 UTC" in finding.found


def test_without_a_key_the_files_after_it_must_not_come_again() -> None:
    """Their rows would be doubled."""
    (finding,) = of_never_taken(state_of(PrimaryKey="null"), head_of(), LOADED, [file(10)])

    assert ("LastIncrementalFile" in finding.todo, f"dmslake reload {PATH}" in finding.todo) == (False, True)
