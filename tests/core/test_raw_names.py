"""The names that DMS gives its files."""

from __future__ import annotations

from datetime import datetime, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from glue_jobs.core.raw_names import RawFile, cdc_name, classify, in_order, is_ignored, is_transactions, load_number, window_start

FOLDER = "dms/sales/orders/"
NOW = datetime(2024, 5, 1, tzinfo=timezone.utc)


def raw(key: str, size: int = 10) -> RawFile:
    return RawFile(FOLDER + key, size, "e", NOW)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("LOAD00000001.parquet", ("", 1)),
        ("LOAD0000000A.csv", ("", 10)),
        ("LOAD0000000a.csv.gz", ("", 10)),
        ("LOAD00000010.parquet", ("", 16)),
        ("LOAD1000000000.parquet", ("", 0x1000000000)),
        ("SEGMENT1_LOAD00000001.parquet", ("SEGMENT1_", 1)),
        ("part/SEGMENT12_LOAD0000FFFF.csv", ("SEGMENT12_", 0xFFFF)),
        ("LOAD0000001.parquet", None),
        ("LOAD0000000G.parquet", None),
        ("load00000001.parquet", None),
        ("LOAD00000001.parquet.tmp", None),
        ("LOAD00000001", None),
        ("20240501-120000123.parquet", None),
    ],
)
def test_a_load_files_counter_is_hexadecimal(name: str, expected: object) -> None:
    """After LOAD00000009 comes LOAD0000000A."""
    assert load_number(FOLDER + name) == expected


@pytest.mark.parametrize("digits", range(11))
def test_a_cdc_name_has_up_to_ten_sub_second_digits(digits: int) -> None:
    """DMS writes three or four; more and fewer are taken."""
    name = cdc_name(f"20201117-153046{'1234567890'[:digits]}.parquet")

    assert name is not None
    assert (name.time, len(name.digits)) == (datetime(2020, 11, 17, 15, 30, 46, tzinfo=timezone.utc), 24)


@pytest.mark.parametrize(
    "name",
    [
        "20201117_153046033.csv",
        "20201117-153046033.csv.gz",
        "2020/11/17/20201117-153046033.parquet",
        "2020-11-17/20201117-153046033.parquet",
    ],
)
def test_separators_formats_and_date_folders_make_no_difference(name: str) -> None:
    """What counts is the base name."""
    assert cdc_name(FOLDER + name) is not None


@pytest.mark.parametrize(
    "name",
    [
        "20201117-15304603312345678.parquet",
        "20201117153046033.parquet",
        "20201117-15304.parquet",
        "20201117-153046033.json",
        "20201117-153046033.parquet.crc",
        "20201317-153046033.parquet",
        "20200230-153046033.parquet",
        "20201117-253046033.parquet",
        "20201117-156046033.parquet",
        "00001117-153046033.parquet",
        "٢٠٢٠1117-153046033.parquet",
        "CDC_TXN-20201117-153046033.csv",
        "CDC_TXN-20201117153046033.parquet",
        "CDC_TXN-20201317153046033.csv",
        "CDC_TXN-2020111715304.csv",
        "cdc_txn-20201117153046033.csv",
        "20200229-240000.parquet",
        "19000229-000000.parquet",
        "20210229-000000.parquet",
        "20200229-000060.parquet",
        "20200431-000000.parquet",
        "20200400-000000.parquet",
    ],
)
def test_other_names_and_impossible_dates_are_no_cdc_files(name: str) -> None:
    """They block the table instead of being put into a wrong place."""
    assert cdc_name(FOLDER + name) is None


def test_sub_second_digits_of_different_length_are_in_order() -> None:
    """.5 comes after .4999 though it is shorter."""
    names = ["20240501-120000.csv", "20240501-1200000.csv", "20240501-1200004999.csv", "20240501-1200005.csv", "20240501-120001.csv"]

    found = sorted(names, key=lambda name: cdc_name(name) or "")  # type: ignore[arg-type, return-value]

    assert found == names


def test_a_listing_is_told_apart() -> None:
    """Load files by segment and counter, CDC files by name whatever their folder, the rest is foreign."""
    files = [
        raw("2024/05/02/20240502-000000000.parquet"),
        raw("20240501-000000000.parquet"),
        raw("LOAD0000000A.parquet"),
        raw("LOAD00000009.parquet"),
        raw("a/SEGMENT2_LOAD00000001.parquet"),
        raw("a/SEGMENT1_LOAD00000002.parquet"),
        raw("notes.txt"),
        raw("_SUCCESS"),
        raw(".part/20240501-000000000.parquet"),
        raw("2024/", 0),
        raw("", 0),
    ]

    listing = classify(files, FOLDER)

    assert [file.key[len(FOLDER) :] for file in listing.loads] == [
        "LOAD00000009.parquet",
        "LOAD0000000A.parquet",
        "a/SEGMENT1_LOAD00000002.parquet",
        "a/SEGMENT2_LOAD00000001.parquet",
    ]
    assert [file.base for file in listing.cdc] == ["20240501-000000000.parquet", "20240502-000000000.parquet"]
    assert [file.base for file in listing.foreign] == ["notes.txt"]


def test_only_empty_keys_with_a_slash_are_markers() -> None:
    """One that has bytes is somebody's file."""
    assert (is_ignored(raw("x/", 0), FOLDER), is_ignored(raw("x/", 1), FOLDER)) == (True, False)


def test_a_table_below_a_hidden_folder_is_still_read() -> None:
    """`_` hides below the table's folder, not above it."""
    assert not is_ignored(RawFile("_dms/sales/orders/LOAD00000001.parquet", 1, "e", NOW), "_dms/sales/orders/")


def test_the_window_begins_so_many_hours_before_the_cursor() -> None:
    """None where the cursor names no CDC file."""
    found = (window_start("20240501-120000000.parquet", 24), window_start("LOAD00000001.parquet", 24), window_start("", 1))

    assert found == ("20240430120000", None, None)


def test_a_window_before_the_calendars_begin_is_everything() -> None:
    """A cursor of year one is odd, not an error."""
    assert (window_start("00010101-000000.csv", 24), window_start("00020101-000000.csv", 24)) == ("0", "0")


def test_transaction_files_are_in_order_with_others() -> None:
    """By their times: a task may be changed to write them, and back."""
    keys = [
        "changes/CDC_TXN-20201117153046032.csv",
        FOLDER + "20201117-1530460325.parquet",
        "changes/CDC_TXN-20201117153046033.csv.gz",
        FOLDER + "20201117-153047.csv",
    ]
    files = [RawFile(key, 1, "e", NOW) for key in keys]

    assert [file.key for file in in_order(reversed(files))] == keys
    assert [is_transactions(key) for key in keys] == [True, False, True, False]


def test_a_transaction_file_has_no_place_in_a_tables_folder() -> None:
    """Its rows are of all tables."""
    listing = classify([raw("CDC_TXN-20201117153046033.csv")], FOLDER)

    assert (len(listing.foreign), listing.cdc) == (1, ())


@given(st.datetimes(datetime(1, 1, 1), datetime(9999, 12, 31)))
def test_every_time_is_a_time(time: datetime) -> None:
    """The check by hand knows leap years."""
    second = f"{time.year:04d}{time:%m%d-%H%M%S}"

    name = cdc_name(f"{second}.csv")

    assert name is not None
    assert name.time == time.replace(microsecond=0, tzinfo=timezone.utc)
