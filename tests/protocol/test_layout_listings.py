"""Listings that pass over old files: the same plan as from a whole listing, and requests that do not grow with what is old."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta, timezone
from types import MappingProxyType
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from glue_jobs.aws.pages import list_passing
from glue_jobs.core.intake import plan_table
from glue_jobs.core.limits import Limits
from glue_jobs.core.raw_names import RawListing, cdc_name, classify, with_transactions
from glue_jobs.core.record import Generation, Input
from glue_jobs.core.snapshot import Snapshot
from glue_jobs.core.state import TableState
from glue_jobs.protocol.raw import list_raw
from tests.core.tables import FOLDER, NOW, loaded, state_of
from tests.raw_folders import BY_TIME, LAYOUTS, SEQUENCES, CountedListing, Layout, every

UTC = timezone.utc
LOAD = f"{FOLDER}LOAD00000001.parquet"
SHARED = "dms/changes/"
Switch = tuple[int, Layout]  # from which file on


@dataclass(frozen=True)
class Story:
    """CDC files in the order of their writing, and which of them the table has: up to `cursor`, but for `late`."""

    keys: tuple[str, ...]
    cursor: int
    late: frozenset[int] = frozenset()

    def snapshot(self, loads: Sequence[str] = (LOAD,)) -> Snapshot:
        taken = {key: known(key) for at, key in enumerate(self.keys[: self.cursor + 1]) if at not in self.late}
        generation = Generation(1, tuple(map(known, loads)))
        return replace(loaded(cursor=f"raw/{self.keys[self.cursor]}", generation=generation), applied=taken)


def known(key: str) -> Input:
    return Input(key, key[-30:], 10)


def listed(s3: Any, state: TableState, snapshot: Snapshot) -> RawListing:
    return list_raw(s3, state, snapshot, Limits())


def assert_same_plan(story: Story, page: int = 4, edits: Mapping[str, Any] = MappingProxyType({})) -> CountedListing:
    """The plan from the listing is the one from all keys. What was listed, for its figures."""
    s3 = CountedListing([*story.keys, LOAD], page)
    snapshot = story.snapshot()
    state = state_of(snapshot, **edits)
    everything: Any = CountedListing(s3.keys)
    whole = classify(list_passing(everything, "raw", FOLDER, lambda key: None)[0], FOLDER)
    plans = [plan_table(state, snapshot, listing, NOW, Limits()) for listing in (listed(s3, state, snapshot), whole)]
    assert plans[0] == plans[1], story
    return s3


def story_of(switches: Sequence[Switch], files: int, chance: random.Random) -> Story:
    """Files of a task that is changed now and then, that stops and lags and catches up, and whose log is in order up to some hours."""
    written = datetime(2023, 11, 1, tzinfo=UTC) + timedelta(days=chance.randrange(200), hours=chance.randrange(24))
    reached = written - timedelta(days=chance.choice((0, 0, 1, 12)))
    keys = []
    for at in range(files):
        layout = [layout for first, layout in switches if first <= at][-1]
        written += timedelta(hours=chance.choice((1, 5, 20, 20, 40, 200)), milliseconds=chance.randrange(1000))
        reached = min(written, reached + timedelta(hours=chance.choice((0, 1, 24, 24, 100, 1000))))
        keys.append(FOLDER + layout.name(written, reached - timedelta(hours=chance.choice((0, 0, 6, 20)))))
    cursor = chance.randrange(files // 2, files)
    first = max(1, cursor - 6)  # the table knows a file from before each late one
    late = frozenset(at for at in range(first, cursor) if chance.random() < 0.3)
    return Story(tuple(keys), cursor, late)


PAIRS = [(first, second) for first in LAYOUTS for second in LAYOUTS]


@pytest.mark.parametrize("some", range(8))
def test_a_task_may_change_its_layout_and_change_it_back(some: int) -> None:
    """Every pair of layouts: nothing that a whole listing would call pending or late is passed over."""
    for number, (first, second) in enumerate(PAIRS):
        if number % 8 == some:
            chance = random.Random(number)
            back = chance.choice((first, second))
            story = story_of([(0, first), (chance.randrange(8, 14), second), (chance.randrange(15, 24), back)], 24, chance)
            moved = {"LastIncrementalFile": f"raw/{chance.choice(story.keys[8:])}"} if number % 3 == 0 else {}
            assert_same_plan(story, edits=moved)


@given(st.lists(st.tuples(st.integers(0, 30), st.sampled_from(LAYOUTS)), min_size=1, max_size=5), st.integers(2, 9), st.randoms())
@settings(max_examples=150, deadline=None)
def test_any_changes_of_layout_lose_nothing(switches: list[Switch], page: int, chance: random.Random) -> None:
    """Also several of them, in short succession."""
    assert_same_plan(story_of([(0, switches[0][1]), *sorted(switches, key=lambda pair: pair[0])], 32, chance), page=page)


def caught_up_late(layouts: Sequence[Layout], commit_hours: int = 1) -> Story:
    """A task that stopped for nine days reads its log from there, first in the one layout, then in the other; none of the last files is
    taken yet."""
    stopped = datetime(2023, 11, 1, 20, tzinfo=UTC)
    before = [FOLDER + layouts[0].name(stopped - timedelta(hours=hours), stopped - timedelta(hours=hours)) for hours in range(20, 0, -1)]
    after = []
    for at in range(24):
        written, commit = stopped + timedelta(days=9, minutes=at), stopped + timedelta(hours=at * commit_hours / 24)
        after.append(FOLDER + layouts[at >= 8].name(written, commit))
    return Story((*before, *after), len(before) + 7)


@pytest.mark.parametrize("second", [layout for layout in BY_TIME if layout.sequence], ids=str)
@pytest.mark.parametrize("first", [Layout(""), Layout("YYYYMM", "dash")], ids=str)
@pytest.mark.parametrize("page", [2, 1000])
def test_a_task_that_catches_up_may_change_its_layout(first: Layout, second: Layout, page: int) -> None:
    """Its files stand in folders of nine days ago, and nothing that was taken says so. Where such folders can't be told from files without
    listing these, they are found as soon as one is of the last days: then all are taken in their order."""
    story = caught_up_late((first, second))
    if second.delimiter == "none" and not first.sequence:
        story = replace(
            story, keys=(*story.keys, FOLDER + second.name(datetime(2023, 11, 10, 22, tzinfo=UTC), datetime(2023, 11, 10, 20, tzinfo=UTC)))
        )

    assert_same_plan(story, page=page)


@pytest.mark.parametrize("layout", BY_TIME, ids=str)
def test_requests_do_not_grow_with_what_is_old(layout: Layout) -> None:
    """Ten new files beside those of two, four and eight years."""
    requests = [new_beside(layout, old).requests for old in (6_000, 12_000, 24_000)]

    assert len(set(requests)) == 1
    assert requests[0] <= 6


def new_beside(layout: Layout, old: int) -> CountedListing:
    """The listing of a table with ten new files, and one every three hours in the time before. A page has 100 keys."""
    end = datetime(2024, 5, 17, 10, tzinfo=UTC)
    times = every(timedelta(hours=3), old + 10, end - timedelta(hours=3) * old)
    story = Story(tuple(FOLDER + layout.name(time, time - timedelta(minutes=3)) for time in times), old - 1)
    s3 = CountedListing([*story.keys, LOAD], 100)
    snapshot = story.snapshot()
    recent = {key: item for key, item in snapshot.applied.items() if cdc_name(key).digits >= "20240514"}  # type: ignore[union-attr]
    listing = listed(s3, state_of(snapshot), replace(snapshot, applied=recent))

    assert [file.key for file in listing.cdc[-10:]] == list(story.keys[-10:])
    assert [file.key for file in listing.loads] == [LOAD]
    return s3


def test_a_small_table_is_listed_in_one_request() -> None:
    """Whatever its layout."""
    for layout in LAYOUTS:
        times = every(timedelta(hours=3), 200, datetime(2024, 4, 1, tzinfo=UTC))
        s3 = assert_same_plan(Story(tuple(FOLDER + layout.name(time) for time in times), 190), page=1000)
        assert s3.requests == 1


@pytest.mark.parametrize("sequence", [name for name in SEQUENCES if not name.startswith("Y")])
def test_folders_that_do_not_sort_by_time_are_listed_whole(sequence: str) -> None:
    """Every key, each once."""
    layout = Layout(sequence)
    times = every(timedelta(hours=1), 3000, datetime(2023, 4, 1, tzinfo=UTC))

    s3 = assert_same_plan(Story(tuple(FOLDER + layout.name(time) for time in times), 2990), page=1000)

    assert (s3.requests, s3.listed) == (4, 3001)


@pytest.mark.parametrize("place", ["1/", "p2024/", "2020/", "2024-05-01/"])
def test_a_parallel_load_is_seen_in_whatever_folder(place: str) -> None:
    """Known or new: folders of a load can have any name."""
    times = every(timedelta(hours=6), 400, datetime(2023, 9, 1, tzinfo=UTC))
    story = Story(tuple(FOLDER + Layout("YYYYMMDD").name(time) for time in times), 390)
    load = f"{FOLDER}{place}LOAD00000001.parquet"
    s3 = CountedListing([*story.keys, load, f"{FOLDER}9/LOAD00000001.parquet"], 10)
    for loads in ((LOAD,), (load,)):
        snapshot = story.snapshot(loads)
        listing = listed(s3, state_of(snapshot), snapshot)
        assert load in [file.key for file in listing.loads]
        assert listing.gaps == ()
    assert s3.requests <= 100 / 10 + 2 + 400 / 10 * 2, "known to be so, it is listed once"


def test_a_log_that_is_read_again_from_days_ago_is_found_by_a_wider_window() -> None:
    """New files in old folders: DMS delivered their rows before, so that nobody looks there unasked."""
    layout = Layout("YYYYMMDD")
    times = every(timedelta(hours=6), 80, datetime(2024, 4, 20, tzinfo=UTC))
    again = FOLDER + layout.name(times[-1] + timedelta(hours=1), times[-1] - timedelta(days=8))
    story = Story(tuple(FOLDER + layout.name(time) for time in times), 79)
    s3: Any = CountedListing([*story.keys, again, LOAD], 4)

    found = [again in [file.key for file in listed(s3, state_of(story.snapshot(), **edits), story.snapshot()).cdc] for edits in WINDOWS]

    assert found == [False, True]


WINDOWS: tuple[dict[str, str], ...] = ({}, {"LateWindowHours": "192"})


def test_what_was_not_listed_is_not_said_to_be_gone() -> None:
    """A listing knows between which keys it did not look."""
    times = every(timedelta(hours=6), 400, datetime(2023, 9, 1, tzinfo=UTC))
    story = Story(tuple(FOLDER + Layout("YYYYMMDD", "dash").name(time) for time in times), 390)
    snapshot = story.snapshot()
    s3 = CountedListing([*story.keys, LOAD], 10)

    listing = listed(s3, state_of(snapshot), snapshot)

    shown = {file.key for file in listing.cdc}
    assert listing.gaps
    assert {key for key in story.keys if listing.covers(key)} == shown
    assert len(shown) < 50


# --- transaction files


def transactions(count: int, since: datetime = datetime(2024, 4, 1, tzinfo=UTC)) -> list[str]:
    """Keys, one an hour."""
    return [f"{SHARED}CDC_TXN-{time:%Y%m%d%H%M%S}033.csv" for time in every(timedelta(hours=1), count, since)]


def test_transaction_files_are_listed_with_the_loads_of_the_tables_folder() -> None:
    """In the order of writing, with CDC files of the time before the task was changed; others of the shared folder are not looked at."""
    keys = transactions(5)
    own = [FOLDER + Layout().name(datetime(2024, 4, 1, 2, 30, tzinfo=UTC)), LOAD]
    s3 = CountedListing([*keys, *own, f"{SHARED}other/x.csv", f"{SHARED}readme.txt"])

    listing = listed(s3, state_of(Snapshot(), CdcPath=f"s3://raw/{SHARED}"), Snapshot())

    assert [file.key for file in listing.cdc] == [*keys[:3], own[0], *keys[3:]]
    assert [file.key for file in listing.loads] == [LOAD]
    assert listing.foreign == ()


def test_old_transaction_files_cost_no_requests() -> None:
    """The folder of all tables grows fastest."""
    found = []
    for count in (3_000, 9_000):
        keys = transactions(count, datetime(2024, 5, 1, tzinfo=UTC) - timedelta(hours=count))
        s3 = CountedListing([*keys, LOAD])
        snapshot = loaded(cursor=f"raw/{keys[-11]}")
        listing = listed(s3, state_of(snapshot, CdcPath=SHARED), snapshot)
        assert [file.key for file in listing.cdc[-10:]] == keys[-10:]
        found.append(s3.requests)

    assert found == [3, 3]


def test_a_strange_transaction_file_blocks_and_one_in_the_tables_folder_too() -> None:
    """Neither can be put in order."""
    strange = f"{SHARED}CDC_TXN-2024.csv"
    s3 = CountedListing([strange, f"{FOLDER}CDC_TXN-20240501000000000.csv", LOAD])

    listing = listed(s3, state_of(Snapshot(), CdcPath=SHARED), Snapshot())

    assert len(listing.foreign) == 2
    assert with_transactions(listing, ()) == listing


def test_without_its_folder_a_tables_transaction_files_are_not_said_to_be_gone() -> None:
    """The task was changed back, and CdcPath removed."""
    keys = transactions(3)
    snapshot = replace(loaded(cursor=f"raw/{keys[2]}"), applied={key: known(key) for key in keys})

    listing = listed(CountedListing([*keys, LOAD]), state_of(snapshot), snapshot)

    assert (listing.cdc, [listing.covers(key) for key in keys]) == ((), [False] * 3)
