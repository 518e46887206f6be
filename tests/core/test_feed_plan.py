"""The plan of a made-up change feed, and the arguments that it is made of."""

from __future__ import annotations

import random
from collections import defaultdict
from datetime import datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from glue_jobs.core.errors import UsageError
from glue_jobs.core.feed_plan import Counts, FeedNames, PlannedFile, count_changes, plan_feed
from glue_jobs.core.feed_wish import Amount, read_feed_wish
from glue_jobs.core.raw_names import cdc_name

START = datetime(2024, 2, 29, 23, 58, tzinfo=timezone.utc)
SOURCE = {"delta": "/bronze", "primary_key": "id", "staging": "/staging"}


def planned(counts: Counts, seed: int = 1, file_name: str = "dms", **more: str) -> tuple[PlannedFile, ...]:
    """The plan with a start of its own."""
    wish = read_feed_wish({**SOURCE, "file_name": file_name, **more})
    return plan_feed(counts, wish.making, START, file_name, random.Random(seed))


@given(st.integers(0, 9), st.integers(0, 9), st.integers(0, 9), st.data())
def test_every_key_lives_its_life_in_order(inserts: int, updates: int, deletes: int, data: st.DataObject) -> None:
    """An inserted key is deleted after its insert, a key is updated twice at different times, and nothing else happens."""
    counts = Counts(inserts, updates, data.draw(st.integers(0, updates)), deletes, data.draw(st.integers(0, inserts)))
    lives: dict[tuple[str, int], str] = defaultdict(str)
    times = []
    for file in planned(counts, data.draw(st.integers(0, 99))):
        for step in file.steps:
            lives[step.of, step.row] += step.operation
            times.append(step.at)

    found = sorted(lives.values())
    wanted = ["I"] * (inserts - counts.deleted_inserts) + ["ID"] * counts.deleted_inserts + ["D"] * deletes
    assert found == sorted([*wanted, *["U"] * (updates - counts.updated_twice), *["UU"] * counts.updated_twice])
    assert times == sorted(set(times))


@pytest.mark.parametrize("file_name", ["dms", "sample"])
def test_names_are_in_order_and_dms_like(file_name: str) -> None:
    """Every file's name is one that the controller takes for a CDC file, later than the rows in it and than the names before."""
    files = planned(Counts(30, 0, 0, 0, 0), file_name=file_name, interval_seconds="60", files="5")
    names = [cdc_name(file.path) for file in files]

    assert len(files) == 5
    assert names == sorted(names, key=lambda name: name.digits if name else "")
    assert all(name and step.at <= name.time for name, file in zip(names, files, strict=True) for step in file.steps)


def test_names_of_both_kinds_stand_in_folders_by_date() -> None:
    """DMS's date partitions, and the sample's without leading zeros."""
    when = datetime(2024, 3, 1, 4, 5, 6, 789_999, timezone.utc)

    assert FeedNames("dms").next(when) == "2024/03/01/20240301-040506789.parquet"
    assert FeedNames("sample").next(when) == "2024/3/1/20240301_040506.parquet"


@pytest.mark.parametrize(("file_name", "names"), [("dms", ["001", "002", "003"]), ("sample", ["_000000", "_000001", "_000002"])])
def test_a_clock_that_goes_back_does_not_show_in_the_names(file_name: str, names: list[str]) -> None:
    """Each name is later than the one before."""
    day = datetime(2024, 3, 1, tzinfo=timezone.utc)
    maker = FeedNames(file_name)
    times = [timedelta(milliseconds=1), timedelta(milliseconds=1), timedelta(0)]

    found = [maker.next(day + time).rsplit(".", 1)[0] for time in times]

    assert [path[-len(name) :] for path, name in zip(found, names, strict=True)] == names


def test_amounts_are_numbers_or_shares() -> None:
    """What is begun of a share counts whole."""
    assert [Amount(text).of(3) for text in ("2", "10%", "0%", "33.3%", "100%")] == [2, 1, 0, 1, 3]


def test_counts_are_of_the_rows_that_are_there() -> None:
    """Shares are of the table's rows; one delete is of a key inserted in the same feed."""
    making = read_feed_wish({**SOURCE, "inserts": "5", "updates": "20%", "updated_twice": "50%", "deletes": "10%"}).making

    assert count_changes(making, 100, "bronze") == Counts(inserts=5, updates=20, updated_twice=10, deletes=9, deleted_inserts=1)


@pytest.mark.parametrize(
    ("rows", "code", "arguments"),
    [
        (0, "empty-source", {}),
        (0, "empty-source", {"inserts": "0"}),
        (0, "empty-source", {"inserts": "3", "updates": "1", "deletes": "0"}),
        (10, "too-many-changes", {"updates": "6", "deletes": "6"}),
        (10, "bad-argument", {"deleted_inserts": "2", "inserts": "1"}),
        (10, "bad-argument", {"updates": "2", "updated_twice": "3"}),
    ],
)
def test_counts_that_cannot_be_had(rows: int, code: str, arguments: dict[str, str]) -> None:
    """Each has its error."""
    making = read_feed_wish({**SOURCE, **arguments}).making

    with pytest.raises(UsageError) as caught:
        count_changes(making, rows, "bronze")
    assert caught.value.code == code


def test_an_empty_table_can_get_inserts() -> None:
    """Where nothing else is asked for."""
    making = read_feed_wish({**SOURCE, "inserts": "3", "updates": "0", "deletes": "0"}).making

    assert count_changes(making, 0, "bronze") == Counts(3, 0, 0, 0, 0)


def test_more_changes_than_microseconds() -> None:
    """Every change has a time of its own."""
    with pytest.raises(UsageError, match="do not fit"):
        planned(Counts(1001, 0, 0, 0, 0), interval_seconds="0.001", files="1")


@pytest.mark.parametrize(
    ("found", "arguments"),
    [
        ("no source", {"delta": ""}),
        ("or two", {"path": "shop.things"}),
        ("--staging is missing", {"staging": " "}),
        ("no primary key", {"primary_key": ""}),
        ("not an S3 address", {"staging": "s3:/bucket"}),
        ("--insert is not known", {"insert": "1"}),
        ("--inserts is 'many'", {"inserts": "many"}),
        ("--inserts is '-1'", {"inserts": "-1"}),
        ("--updates is '101%'", {"updates": "101%"}),
        ("--seed is 'x'", {"seed": "x"}),
        ("--start is 'soon'", {"start": "soon"}),
        ("--interval_seconds is '0.5'", {"interval_seconds": "0.5", "file_name": "sample"}),
        ("--interval_seconds is 'nan'", {"interval_seconds": "nan"}),
        ("--files is '0'", {"files": "0"}),
        ("--file_name is 'odd'", {"file_name": "odd"}),
        ("--reader is 'odd'", {"reader": "odd"}),
        ("--full_load is 'perhaps'", {"full_load": "perhaps"}),
        ("'latest' is no version", {"version": "latest"}),
        ("'-1' is no version", {"from": "-1"}),
        ("--as_of is 'given'", {"as_of": "previous"}),
        ("--to is given without --from", {"to": "1"}),
        ("--seed is 'given'", {"from": "0", "seed": "1"}),
        ("--version is 'given'", {"from": "0", "version": "1"}),
        ("--path is 'a.b,c.d'", {"delta": "", "path": "a.b,c.d"}),
        ("--primary_key is 'id'", {"delta": "", "path": "a.b"}),
        ("--version is 'given'", {"delta": "", "path": "a.b", "primary_key": "", "version": "1"}),
    ],
)
def test_arguments_that_cannot_be_meant(found: str, arguments: dict[str, Any]) -> None:
    """Each is refused in words that name it."""
    with pytest.raises(UsageError) as caught:
        read_feed_wish({**SOURCE, **arguments})
    assert found in caught.value.message


def test_glues_own_arguments_and_the_settings_pass() -> None:
    """A Glue job is started with more than its own arguments."""
    wish = read_feed_wish({**SOURCE, "JOB_NAME": "GenerateFeed", "job-bookmark-option": "x", "lake": "s3://lake/", "run_id": "r"})

    assert (wish.delta, wish.primary_key, wish.between) == ("/bronze", ("id",), None)
