"""Which CDC files a load begins with: none that has a change since its first row is left out."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta, timezone
from typing import Any

import pytest

from glue_jobs.core.actions import TakeLoad
from glue_jobs.core.load_plan import is_followed
from glue_jobs.core.load_start import load_start
from glue_jobs.core.raw_names import RawFile
from glue_jobs.core.record import Generation
from glue_jobs.core.snapshot import Snapshot
from tests.core.tables import FOLDER, state_of

MARGIN = timedelta(minutes=10)
NOON = datetime(2024, 5, 1, 12, tzinfo=timezone.utc)
BEGAN = "2024-05-01 12:01:00.5"  # the load's first row
LOAD = RawFile(f"{FOLDER}LOAD00000001.parquet", 1, "e", NOON + timedelta(minutes=3))


def cdc(name: str, modified: str) -> RawFile:
    """A file that was begun and written at these times of the day."""
    hours, minutes, seconds = map(int, modified.split(":"))
    return RawFile(f"{FOLDER}20240501-{name}000.parquet", 1, "e", NOON.replace(hour=hours, minute=minutes, second=seconds))


def start_of(*files: RawFile, first_time: str = BEGAN, reload: bool = True, margin: timedelta = MARGIN, **edits: Any) -> str:
    state = state_of(Snapshot(), **edits)
    return load_start(state, Snapshot(), TakeLoad((LOAD,), reload, "", cdc=files), first_time, margin)


def is_taken(file: RawFile, start: str) -> bool:
    return file.base.replace("-", "") >= start


@pytest.mark.parametrize(
    ("first_time", "digits", "of_first_load"),
    [
        ("2024-05-01 11:00:03.5", "20240501110003", "20240501105003"),
        ("2024-05-01 11:59:30", "20240501115930", "20240501114930"),
        ("2024-05-01 12:00:01", "20240501115000", ""),
        ("2031-01-01 00:00:00", "20240501115000", ""),
        ("0000-00-00 00:00:00", "00000000000000", ""),
        ("0001-01-01 00:00:00", "00010101000000", ""),
        ("0998-01-01 00:00:00", "09980101000000", ""),
        ("", "20240501115000", ""),
    ],
)
def test_a_load_leaves_no_file_out_for_a_time_to_come(first_time: str, digits: str, of_first_load: str) -> None:
    """A text column may hold times of the future, and look like the commit time. A first load goes by no file's time."""
    files = (LOAD._replace(modified=NOON + timedelta(hours=1)), LOAD._replace(modified=NOON))

    found = []
    for is_reload, cdc_path, known in ((True, "", ""), (False, "s3://raw/changes/", ""), (False, "", ""), (False, "", "2023")):
        snapshot = Snapshot(generation=Generation(1, (), known))
        state = replace(state_of(Snapshot()), cdc_path=cdc_path, primary_key=())
        found.append(load_start(state, snapshot, TakeLoad(files, is_reload, ""), first_time, MARGIN))

    assert found == [digits, digits, of_first_load, "2023"]


def test_a_file_that_was_open_when_the_load_began_belongs_to_it() -> None:
    """One task loads, another one brings changes: what changed after the first row was read is in a file that was begun before."""
    closed, is_open, after = cdc("115930", "12:00:30"), cdc("120030", "12:01:30"), cdc("120130", "12:02:30")

    start = start_of(closed, is_open, after)

    assert [is_taken(file, start) for file in (closed, is_open, after)] == [False, True, True]


def test_so_does_one_that_is_not_there_yet() -> None:
    """It is written when its interval is over: all that is begun after the last file that was closed by then is taken."""
    closed, coming = cdc("115930", "12:00:30"), cdc("120030", "12:01:30")

    start = start_of(closed)

    assert [is_taken(file, start) for file in (closed, coming)] == [False, True]
    assert start_of() == "20240501115100"  # nothing tells when the last one was closed: the margin does


def test_files_of_the_task_that_loads_are_closed_when_it_begins() -> None:
    """Whatever a reload leaves of them (TargetTablePrepMode=DO_NOTHING) stays out, up to the last second before its first row."""
    old = [cdc("110000", "11:01:00"), cdc("115958", "12:00:58"), cdc("120059", "12:00:59")]

    start = start_of(*old, cdc("120500", "12:06:00"))

    assert not any(is_taken(file, start) for file in old)


def test_a_copied_file_does_not_tell_when_it_was_open() -> None:
    """Its time is that of the copy, hours after its name."""
    copied = cdc("115930", "14:00:00")

    assert not is_taken(copied, start_of(copied))


def test_no_file_from_before_the_margin_is_taken() -> None:
    """A task with so long an interval is told by `load_start_margin_minutes`."""
    assert not is_taken(cdc("115030", "12:01:30"), start_of(cdc("115030", "12:01:30")))


def test_files_of_an_interval_of_hours_are_none_that_were_copied() -> None:
    """Where a person has said so: one was open when the load began, and another one tells nothing of the load's end."""
    margin, hours = timedelta(minutes=150), cdc("110000", "13:00:03")

    assert [is_taken(hours, start_of(hours, margin=given)) for given in (MARGIN, margin)] == [False, True]
    first, newest = NOON, NOON + timedelta(minutes=50)
    assert [is_followed(first, newest, [hours], given) for given in (MARGIN, margin)] == [True, False]


def test_without_a_key_nothing_is_taken_that_the_load_may_have() -> None:
    """What such a file inserted before the load began would stand twice."""
    assert start_of(cdc("120030", "12:01:30"), PrimaryKey="null") == "20240501120100"


def test_a_transaction_file_that_was_open_is_taken_by_a_first_load() -> None:
    """Its folder is older than the table, which takes no more of it than a reload would."""
    closed, is_open = (
        RawFile(f"changes/CDC_TXN-20240501{time}000.csv", 1, "e", NOON + timedelta(seconds=written))
        for time, written in (("115930", 30), ("120030", 90))
    )

    start = start_of(closed, is_open, reload=False, CdcPath="s3://raw/changes/")

    assert "20240501115930000" < start <= "20240501120030000"
