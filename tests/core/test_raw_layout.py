"""Which keys a listing passes over: never one that a plan would look at, whatever the layouts and their changes."""

from __future__ import annotations

from datetime import date, datetime, timedelta, timezone

import pytest

from glue_jobs.core.raw_layout import Bound, listing_bound, next_after, old_ranges, old_transactions, passed_over
from glue_jobs.core.raw_names import RawFile, cdc_name, classify
from tests.raw_folders import BY_TIME, DATED, ENDINGS, LAYOUTS, LISTED_AT, UNPADDED, Layout, every

F = "dms/sales/orders/"
DAY = timedelta(days=1)
UTC = timezone.utc


def raw(name: str) -> RawFile:
    return RawFile(F + name, 10, "e", LISTED_AT)


@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
def test_every_layout_is_read_in_the_order_of_writing(layout: Layout) -> None:
    """Fourteen months, with the commits of the day before, whatever order the folders sort in."""
    times = every(timedelta(days=3, hours=7, seconds=11), 130, datetime(2023, 11, 28, tzinfo=UTC))
    names = [layout.name(time, time - DAY) for time in times]

    listing = classify(map(raw, sorted(names)), F)

    assert [file.key[len(F) :] for file in listing.cdc] == names
    assert (listing.loads, listing.foreign) == ((), ())


@pytest.mark.parametrize("digits", range(11))
@pytest.mark.parametrize("separator", "-_")
def test_endings_separators_and_digits_may_be_mixed_in_one_table(digits: int, separator: str) -> None:
    """A task that was changed from CSV to Parquet, or DMS to a newer engine."""
    times = every(timedelta(seconds=1), 6, datetime(2024, 5, 1, tzinfo=UTC))
    names = [Layout(separator="-_"[at % 2], digits=at, ending=ENDINGS[at % 3]).name(time) for at, time in enumerate(times)]
    more = [Layout(separator=separator, digits=digits, ending=ending).name(times[-1] + DAY) for ending in ENDINGS]

    listing = classify(map(raw, reversed(names + more)), F)

    assert [file.base for file in listing.cdc] == names + sorted(more)


def test_unpadded_folders_sort_otherwise_and_are_read_in_order() -> None:
    """`10` sorts before `9`."""
    layout = Layout("YYYYMMDD", padded=False)
    names = [layout.name(datetime(2021, 9, day, tzinfo=UTC)) for day in (9, 10, 11)]

    assert sorted(names) != names
    assert [file.key[len(F) :] for file in classify(map(raw, sorted(names)), F).cdc] == names


def test_loads_of_parallel_folders_and_segments_are_loads() -> None:
    """Beside CDC files of any layout."""
    names = ["1/LOAD00000001.parquet", "p2024/LOAD0000000A.csv.gz", "SEGMENT2_LOAD00000001.csv", "p2024/SEGMENT1_LOAD00000001.parquet"]

    assert sorted(file.key[len(F) :] for file in classify(map(raw, names), F).loads) == sorted(names)


# --- ranges

BOUNDS = [date(2023, 12, 27) + DAY * number for number in (*range(9), 13, 14, *range(23, 28), *range(33, 37), *range(62, 66))]
BOUNDS += [date(2024, month, day) for month in (9, 10, 12) for day in (9, 20, 21, 30)]
LATER = [*range(2, 35), 59, 60, 61, 200, 300, 366, 800]


@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
def test_what_comes_next_is_in_no_range(layout: Layout) -> None:
    """For each bound, each later day of a folder and of a name, in every layout."""
    for first in BOUNDS:
        ranges = old_ranges(F, Bound(first, f"{first + 2 * DAY:%Y%m%d}"))
        midnight = datetime(first.year, first.month, first.day, tzinfo=UTC)
        for days in LATER:
            for lag in (0, 1, 5, 40):
                written = midnight + DAY * days
                committed = written - DAY * lag
                if committed < midnight:
                    continue
                key = F + layout.name(written, committed)
                assert next_after(ranges, key) is None, (first, key)


@pytest.mark.parametrize("layout", BY_TIME, ids=str)
def test_what_is_old_is_in_a_range(layout: Layout) -> None:
    """Of the layouts that sort by time; a range's end is behind all of it."""
    for first in BOUNDS:
        bound = Bound(first, f"{first + DAY:%Y%m%d}")
        for days in (1, 2, 20, 32, 64, 365, 1000):
            written = datetime(first.year, first.month, first.day, tzinfo=UTC) - DAY * days
            key = F + layout.name(written)
            assert (next_after(old_ranges(F, bound), key) or "") > key, (first, key)


@pytest.mark.parametrize(
    "name", ["LOAD00000001.parquet", "SEGMENT1_LOAD00000001.csv", "1/LOAD00000001.parquet", "p2020/LOAD00000001.parquet", "eu/x.parquet"]
)
def test_loads_are_in_no_range(name: str) -> None:
    """Nor is anything that does not begin with a year."""
    assert all(next_after(old_ranges(F, Bound(day, f"{day:%Y%m%d}")), F + name) is None for day in BOUNDS)


@pytest.mark.parametrize("layout", [layout for layout in (*DATED, *UNPADDED) if layout.sequence in ("MMYYYYDD", "DDMMYYYY")], ids=str)
def test_folders_that_begin_with_month_or_day_are_in_no_range(layout: Layout) -> None:
    """However old: the 20th of a month reads as a year, if one does not look."""
    ranges = [old_ranges(F, Bound(day, f"{day:%Y%m%d}")) for day in BOUNDS]
    keys = [F + layout.name(datetime(2016, 1, 1, tzinfo=UTC) + DAY * number) for number in range(0, 3000, 7)]

    assert not [key for key in keys for some in ranges if next_after(some, key)]


def test_ranges_are_in_order_and_apart() -> None:
    """So that a listing goes forward."""
    for day in BOUNDS:
        edges = [key for pair in old_ranges(F, Bound(day, f"{day + DAY:%Y%m%d}")) for key in pair]
        assert edges == sorted(edges)
        assert len(set(edges)) == len(edges)


# --- where it begins


def name_at(hours: float, layout: Layout, lag_days: int = 0) -> str:
    written = datetime(2024, 5, 20, 12, tzinfo=UTC) + timedelta(hours=hours)
    return F + layout.name(written, written - DAY * lag_days)


def test_a_listing_begins_a_day_before_the_window() -> None:
    """A commit before midnight may be in a file that is named after it."""
    found = listing_bound(F, [name_at(0, Layout("YYYYMMDD"))], "20240519120000")

    assert found == Bound(date(2024, 5, 18), "20240519")


def test_a_folder_behind_its_files_names_counts() -> None:
    """While DMS catches up after a stop, a file of today is in the folder of last week: the next one may be too."""
    layout = Layout("YYYYMMDD", "dash")
    found = listing_bound(F, [name_at(-1, layout, 7), name_at(0, layout, 5)], "20240519120000")

    assert found is not None
    assert found.commits == date(2024, 5, 12)


def test_the_last_file_before_the_window_counts() -> None:
    """One that comes late, at the window's begin, may be in the folder that DMS was writing then."""
    layout = Layout("YYYYMMDD")
    found = listing_bound(F, [name_at(-60, layout, 30), name_at(-30, layout, 9), name_at(0, layout)], "20240519120000")

    assert found is not None
    assert found.commits == date(2024, 5, 9)


def test_a_months_folder_counts_as_its_first_day() -> None:
    """The next commits may go to folders of days: any of the month. The files of the months are known by their names."""
    found = [listing_bound(F, [name_at(0, Layout("YYYYMM"), lag)], "20240519120000") for lag in (0, 20)]

    assert [bound and bound.commits for bound in found] == [date(2024, 4, 30), date(2024, 3, 31)]
    for bound in found:
        assert bound
        ranges = old_ranges(F, bound)
        for folder in ("2024-04", "2024/04", "202404", "2024_04", "2024-05", "2024/05", "202405", "2024_05"):
            assert next_after(ranges, f"{F}{folder}/20240518-235959999.parquet")
            assert next_after(ranges, f"{F}{folder}/20240519-000000000.parquet") is None


def test_without_a_known_folder_only_files_are_passed_over() -> None:
    """Nothing tells how far the commits have come: folders of any day may get new files."""
    bound = listing_bound(F, [name_at(0, Layout(""))], "20240519120000")

    assert bound == Bound(date(2024, 5, 18), "20240519", knows_folders=False)
    ranges = old_ranges(F, bound)
    for name in ("20231231-230000000.parquet", "20240102-000000000.parquet", "20240517-000000000.parquet"):
        assert next_after(ranges, F + name), name
    for delimiter in "-/_":
        for day in ("2023 11 02", "2024 01 03", "2024 05 01"):
            assert next_after(ranges, f"{F}{day.replace(' ', delimiter)}/20240519-130000000.parquet") is None


@pytest.mark.parametrize("window", ["0", "", "00010101000000", "20121230000000", "21000101000000", "20240231000000"])
def test_times_that_files_of_dms_can_not_have_are_listed_whole(window: str) -> None:
    """Test data, mostly; and years that read as the 20th of a month."""
    assert passed_over(F, [], [], window) == ()
    assert passed_over(F, [], [], None) == ()


def test_nothing_is_passed_over_where_a_wanted_file_would_be() -> None:
    """Load files in folders that are named like years; files that a rollback made pending again."""
    known = [name_at(0, Layout())]

    assert passed_over(F, known, [F + "LOAD00000001.parquet"], "20240519120000")
    assert passed_over(F, known, [F + "2020/LOAD00000001.parquet"], "20240519120000") == ()
    assert passed_over(F, known, [name_at(-1000, Layout())], "20240519120000") == ()


def test_a_file_that_was_taken_from_an_odd_folder_is_shown_again() -> None:
    """Its folder tells no day, and begins with a year."""
    known = [F + "2020-archive/20240520-120000000.parquet"]

    assert cdc_name(known[0]) is not None
    assert passed_over(F, known, [], "20240519120000") == ()


def test_transaction_files_are_passed_over_by_their_names() -> None:
    """They are beside each other in one folder."""
    ranges = old_transactions("dms/changes/", "20240519120000")

    names = ["20240519115959999", "20240519120000000", "20240520000000000"]
    assert [bool(next_after(ranges, f"dms/changes/CDC_TXN-{name}.csv")) for name in names] == [True, False, False]
