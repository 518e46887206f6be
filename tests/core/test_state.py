"""Reading a table's item: kind about form, strict about nonsense."""

from __future__ import annotations

import json
from datetime import datetime, timezone
from decimal import Decimal
from typing import Any

import pytest

from glue_jobs.core.errors import TableBlocked
from glue_jobs.core.partitioning import PartitionField
from glue_jobs.core.paths import TablePath
from glue_jobs.core.state import BlockedBy, default_item, read_state

PATH = TablePath("raw", "dms/sales/", "orders/")
OUT = "s3://lake/tables/sales/orders/"
CDC = "20240501-120000000.parquet"


def item(**values: Any) -> dict[str, Any]:
    return {**default_item(PATH, OUT), **values}


def test_a_new_item_has_the_names_and_defaults_of_the_sample() -> None:
    """Users of the AWS sample know them."""
    assert default_item(PATH, OUT) == {
        "path": "raw/dms/sales/orders/",
        "bucket": "raw",
        "prefix": "dms/sales/",
        "folder": "orders/",
        "PrimaryKey": "null",
        "PartitionKey": "null",
        "LastFullLoadDate": "1900-01-01 00:00:00",
        "LastIncrementalFile": "raw/dms/sales/orders/0.parquet",
        "ActiveFlag": "false",
        "out_path": OUT,
    }


def test_a_new_items_state_is_new() -> None:
    """Inactive, without key, partitions, cursor and head."""
    state = read_state(item())

    assert (state.is_new, state.active, state.primary_key, state.partitioning, state.cursor, state.head, state.fence) == (
        True, False, (), (), "", "", None,
    )  # fmt: skip


def test_an_item_with_nothing_but_its_path_can_be_read() -> None:
    """A person may make one by hand."""
    state = read_state({"path": str(PATH)})

    assert (state.path, state.is_new, state.out_path) == (PATH, True, "")


@pytest.mark.parametrize("value", ["true", "True", " TRUE ", True, 1, Decimal(1), "1", "yes", "on"])
def test_every_way_to_say_active_is_taken(value: Any) -> None:
    """As text, BOOL or number."""
    assert read_state(item(ActiveFlag=value)).active


@pytest.mark.parametrize("value", ["false", "False", False, 0, "no", "", None, "null"])
def test_every_way_to_say_inactive_is_taken(value: Any) -> None:
    """NULL included."""
    assert not read_state(item(ActiveFlag=value)).active


@pytest.mark.parametrize("value", ["id,line", " id , line ", ["id", "line"], ["id ", " line", ""], "id,line,"])
def test_column_lists_may_have_spaces_or_be_lists(value: Any) -> None:
    """Order counts, blanks don't."""
    assert read_state(item(PrimaryKey=value)).primary_key == ("id", "line")


@pytest.mark.parametrize("value", ["null", "Null", "NULL", "", "  ", None, "none"])
def test_null_in_every_spelling_means_nothing(value: Any) -> None:
    """For every attribute a person sets."""
    state = read_state(item(PrimaryKey=value, PartitionKey=value, out_path=value, Request=value, TimestampColumn=value, Paused=value))

    assert (state.primary_key, state.partitioning, state.out_path, state.request, state.timestamp_column, state.paused) == (
        (), (), "", "", "", "",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2024-05-01 12:30:15", datetime(2024, 5, 1, 12, 30, 15, tzinfo=timezone.utc)),
        ("2024-05-01T12:30:15Z", datetime(2024, 5, 1, 12, 30, 15, tzinfo=timezone.utc)),
        ("2024-05-01 12:30:15.123456", datetime(2024, 5, 1, 12, 30, 15, tzinfo=timezone.utc)),
        ("2024-05-01T12:30:15.5+00:00", datetime(2024, 5, 1, 12, 30, 15, tzinfo=timezone.utc)),
        ("2024-05-01 12:30", datetime(2024, 5, 1, 12, 30, tzinfo=timezone.utc)),
        ("2024-05-01", datetime(2024, 5, 1, tzinfo=timezone.utc)),
        ("null", datetime(1900, 1, 1, tzinfo=timezone.utc)),
    ],
)
def test_dates_are_read_in_the_forms_people_write(text: str, expected: datetime) -> None:
    """Always UTC."""
    assert read_state(item(LastFullLoadDate=text)).last_full_load == expected


@pytest.mark.parametrize(
    ("text", "cursor"),
    [
        (f"raw/dms/sales/orders/{CDC}", f"raw/dms/sales/orders/{CDC}"),
        (f"s3://raw/dms/sales/orders/{CDC}", f"raw/dms/sales/orders/{CDC}"),
        (CDC, f"raw/dms/sales/orders/{CDC}"),
        (f" raw/dms/sales/orders/2024/05/01/{CDC} ", f"raw/dms/sales/orders/2024/05/01/{CDC}"),
        ("raw/dms/sales/orders/0.parquet", ""),
        ("0.parquet", ""),
        ("null", ""),
    ],
)
def test_a_cursor_is_a_key_or_a_bare_name(text: str, cursor: str) -> None:
    """`0.parquet` means none."""
    assert read_state(item(LastIncrementalFile=text)).cursor == cursor


SHARED = "s3://raw/dms/changes/"
TXN = "CDC_TXN-20240501120000033.csv"


@pytest.mark.parametrize("text", [SHARED, "s3a://raw/dms/changes", "dms/changes", " dms/changes/ "])
def test_the_folder_of_transaction_files_is_an_address_or_a_folder_of_the_raw_bucket(text: str) -> None:
    """DMS writes it beside the schemas."""
    assert read_state(item(CdcPath=text)).cdc_path == SHARED


@pytest.mark.parametrize("text", ["s3://other/dms/changes/", "s3://raw/", "/", "s3://raw/dms/sales/orders/changes/", "a/../b", "s3://"])
def test_another_folder_of_transaction_files_is_refused(text: str) -> None:
    """Of another bucket, of no folder, of the table's own files."""
    with pytest.raises(TableBlocked, match="CdcPath") as raised:
        read_state(item(CdcPath=text))

    assert "s3://raw/folder/" in raised.value.message


@pytest.mark.parametrize("text", ["", "null", None])
def test_a_table_has_no_such_folder_unless_it_is_said(text: Any) -> None:
    """DMS's default."""
    assert read_state(item(CdcPath=text)).cdc_path == ""


@pytest.mark.parametrize("text", [TXN, f"raw/dms/changes/{TXN}", f"s3://raw/dms/changes/{TXN}"])
def test_a_cursor_may_be_a_transaction_file(text: str) -> None:
    """As a key, or by its bare name."""
    assert read_state(item(LastIncrementalFile=text, CdcPath=SHARED)).cursor == f"raw/dms/changes/{TXN}"


def test_a_cursor_stays_when_the_task_goes_back_to_files_of_each_table() -> None:
    """Its digits are still the place in the order."""
    assert read_state(item(LastIncrementalFile=f"raw/dms/changes/{TXN}")).cursor == f"raw/dms/changes/{TXN}"


@pytest.mark.parametrize("text", [f"other/dms/changes/{TXN}", f"raw/dms/changes/{CDC}"])
def test_a_cursor_of_another_bucket_or_table_is_refused(text: str) -> None:
    """Only transaction files are shared."""
    with pytest.raises(TableBlocked, match="LastIncrementalFile"):
        read_state(item(LastIncrementalFile=text, CdcPath=SHARED))


def test_out_path_is_a_folder_however_it_is_written() -> None:
    """Connector schemes and missing slashes included."""
    assert [read_state(item(out_path=text)).out_path for text in (OUT, OUT.rstrip("/"), OUT.replace("s3", "s3a", 1))] == [OUT] * 3


@pytest.mark.parametrize(
    ("attribute", "value"),
    [
        ("ActiveFlag", "maybe"),
        ("LastFullLoadDate", "yesterday"),
        ("LastFullLoadDate", "2024-13-01 00:00:00"),
        ("LastIncrementalFile", "raw/dms/other/orders/" + CDC),
        ("LastIncrementalFile", "notes.txt"),
        ("LastIncrementalFile", "LOAD00000001.parquet"),
        ("out_path", "lake/tables"),
        ("out_path", "hdfs://lake/tables/sales/orders/"),
        ("out_path", "s3://B/x/y/"),
        ("out_path", "s3://lake/"),
        ("PartitionKey", "hour(d)"),
        ("LoadQuietMinutes", "soon"),
        ("LoadQuietMinutes", "-1"),
        ("LateWindowHours", "nan"),
        ("LateWindowHours", "1e9"),
        ("Request", "drop"),
        ("Fence", "new"),
        ("Fence", -1),
        ("LeaseBeat", "x"),
        ("LeaseSeconds", "long"),
        ("Head", " 0000000001-000001-0badcafe"),
        ("Publishing", "0000000001-000001-0badcafe\n"),
    ],
)
def test_nonsense_is_refused_with_the_attributes_name(attribute: str, value: Any) -> None:
    """As a block of this table, with what was found."""
    with pytest.raises(TableBlocked) as caught:
        read_state(item(**{attribute: value}))

    assert attribute in str(caught.value)
    assert str(value).strip() in str(caught.value)


def test_numbers_may_be_texts_or_numbers() -> None:
    """Zero is a number, not nothing."""
    state = read_state(item(LoadQuietMinutes=0, LateWindowHours=" 1.5 ", Fence=Decimal(7), LeaseSeconds=Decimal("2.5")))

    assert (state.load_quiet_minutes, state.late_window_hours, state.fence, state.lease_seconds) == (0.0, 1.5, 7, 2.5)


def test_a_request_may_carry_a_value() -> None:
    """Behind a colon."""
    state = read_state(item(Request="schema-rename:old=new", SkipFiles="a.csv, b.csv", PartitionKey="year(d)"))

    assert (state.request, state.request_value, state.skip_files, state.partitioning) == (
        "schema-rename",
        "old=new",
        ("a.csv", "b.csv"),
        (PartitionField("d", "year"),),
    )


@pytest.mark.parametrize("value", [False, "false", "no", "0", 0, "off", "False "])
def test_a_word_that_says_no_pauses_and_blocks_nothing(value: Any) -> None:
    """A person ends by it what a reason began."""
    state = read_state(item(Paused=value, Blocked=value))

    assert (state.paused, state.blocked) == ("", None)


@pytest.mark.parametrize("form", [dict, json.dumps])
def test_a_block_is_read_as_map_or_text(form: Any) -> None:
    """The program writes one, a console may save the other."""
    block = {"code": "c", "message": "m", "todo": "t", "signature": "s"}

    assert read_state(item(Blocked=form(block))).blocked == BlockedBy("c", "m", "t", "s")


def test_a_persons_own_block_has_no_signature() -> None:
    """So nothing but a person lifts it."""
    state = read_state(item(Blocked="waiting for Anna"))

    assert state.blocked is not None
    assert (state.blocked.code, state.blocked.message, state.blocked.signature) == ("by-hand", "waiting for Anna", "")


def test_a_damaged_result_is_no_harm() -> None:
    """LastRun is for people."""
    assert (read_state(item(LastRun="{")).last_run, read_state(item(LastRun={"a": 1})).last_run) == ({}, {"a": 1})


def test_an_item_of_another_program_is_not_new() -> None:
    """Its cursor or load date gives it away."""
    found = [
        read_state(item(**change)).is_new for change in ({"LastIncrementalFile": CDC}, {"LastFullLoadDate": "2024-01-01"}, {"Head": "x"})
    ]

    assert found == [False, False, False]


def test_a_key_column_named_twice_is_refused() -> None:
    """A slip of the pen in PrimaryKey."""
    with pytest.raises(TableBlocked, match=r"PrimaryKey.*each column once"):
        read_state(item(PrimaryKey="id, id"))
