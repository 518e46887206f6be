"""The sources file and a run's wish: what is read, what is refused, and the strict comparison of columns."""

from __future__ import annotations

from datetime import date
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from glue_jobs.core.arguments import parse_arguments
from glue_jobs.core.errors import UsageError
from glue_jobs.core.schema import Column, Schema
from glue_jobs.core.snapshot_sources import (
    check_columns,
    check_run_id,
    date_folder,
    differences,
    entry_of,
    output_schema,
    read_schema,
    read_source,
    read_wish,
    wish_arguments,
)

TODAY = date(2024, 5, 3)
ENTRY: dict[str, Any] = {
    "path": "s3://raw/dms/shop/orders",
    "primary_keys": ["id"],
    "cdc_start_date": date(2024, 5, 1),
    "partition_date": "day",
    "timestamp_column": "ts",
    "schema": {"name": "string", "id": "bigint", "day": "date", "amount": "decimal(10, 2)"},
}
COLUMNS = (Column("name", "string"), Column("id", "bigint"), Column("day", "date"), Column("amount", "decimal(10,2)"))
ASKED = {"table": "orders", "to": "s3://out/snapshots"}


def test_a_wish_is_read_from_entry_and_arguments() -> None:
    """Arguments win; what is not given has its default; the Glue table and the folder follow from the table's name."""
    wish = read_wish({**ASKED, "run_date": "2024-05-02", "layout": "dated", "primary_keys": "id, name"}, ENTRY, TODAY)

    assert (wish.source.primary_keys, wish.source.cdc_start_date, wish.run_date) == (("id", "name"), date(2024, 5, 1), date(2024, 5, 2))
    assert wish.source.expected == (Column("ts", "string"), *COLUMNS)
    assert (wish.database, wish.name, str(wish.folder)) == (
        "default",
        "orders_snapshot",
        "s3://out/snapshots/default.orders_snapshot/",
    )
    assert (wish.by_column, wish.by_run_date, wish.keep, wish.full) == (True, False, 0, False)
    assert read_wish(ASKED, ENTRY, TODAY).run_date == TODAY


def test_the_arguments_of_a_wish_say_the_same_wish() -> None:
    """So that a run of the job is told all, without the file."""
    wish = read_wish({**ASKED, "keep": "3", "full": "true", "database": "lake"}, ENTRY, TODAY)

    assert read_wish(wish_arguments(wish), {}, date(1999, 1, 1)) == wish


@pytest.mark.parametrize(
    "entry",
    [
        {"csv_null": ""},
        {"csv_null": "\\N"},
        {"csv_delimiter": " "},
        {"csv_delimiter": "\t", "csv_null": " "},
        {"schema": {"id": "bigint", "unit price": "decimal(10,2)", "a,b": "int"}, "primary_keys": ["id", "a,b"]},
        {"schema": '{"id": "bigint", "[x]": "int"}'},
    ],
)
def test_what_an_argument_can_not_hold_as_it_is_arrives(entry: dict[str, Any]) -> None:
    """Nothing and a blank, which an argument can't be; names with what divides names."""
    ours = {"path": ENTRY["path"], "primary_keys": ["id"], **entry}
    wish = read_wish(ASKED, ours, TODAY)
    words = [word for name, text in wish_arguments(wish).items() for word in (f"--{name}", text)]

    assert read_wish(parse_arguments(words), {}, date(1999, 1, 1)) == wish
    assert read_wish(ASKED, ours, TODAY) != read_wish(ASKED, {"path": ENTRY["path"], "primary_keys": ["id"]}, TODAY)


@pytest.mark.parametrize(
    ("given", "entry", "code", "said"),
    [
        ({"table": ""}, {}, "no-table", "no table is given"),
        ({"to": ""}, {}, "bad-argument", "where the snapshot goes"),
        ({"to": "out"}, {}, "bad-uri", "out"),
        ({"layout": "deep"}, {}, "bad-argument", "layout can't be 'deep'"),
        ({"keep": "-1"}, {}, "bad-argument", "keep can't be '-1'"),
        ({"full": "maybe"}, {}, "bad-argument", "--full is 'maybe'"),
        ({"database": "a/b"}, {}, "bad-argument", "database can't be 'a/b'"),
        ({"run_date": "yesterday"}, {}, "bad-argument", "run_date can't be 'yesterday'"),
        ({"run_date": "2024-04-30"}, {}, "bad-argument", "after the run date"),
        ({}, {"path": ""}, "bad-sources", "no path"),
        ({}, {"primary_keys": []}, "bad-sources", "no primary_keys"),
        ({}, {"primary_key": "id"}, "bad-sources", "unknown field(s) of table 'orders': primary_key"),
        ({}, {"primary_keys": "nr"}, "unknown-column", "primary_keys names the column 'nr'"),
        ({}, {"partition_date": "dey"}, "unknown-column", "partition_date names the column 'dey'"),
        ({}, {"partition_date": "amount"}, "bad-argument", "partition_date can't be 'amount of type decimal(10,2)'"),
        ({}, {"timestamp_column": "id"}, "bad-argument", "timestamp_column can't be 'id of type bigint'"),
        ({}, {"last_change_column": "Name"}, "column-taken", "'Name'"),
        ({}, {"schema": {"id": "biggest"}}, "bad-argument", "'id' of type 'biggest'"),
        ({}, {"schema": "id bigint, id int"}, "bad-argument", "id twice"),
        ({}, {"schema": 7}, "bad-argument", "schema can't be"),
        ({}, {"schema": "[id bigint]"}, "bad-argument", "schema can't be '[id bigint]'"),
    ],
)
def test_what_can_not_be_meant_is_refused(given: dict[str, str], entry: dict[str, Any], code: str, said: str) -> None:
    """Each by a code, with the name of the argument or field."""
    with pytest.raises(UsageError) as caught:
        read_wish({**ASKED, **given}, {**ENTRY, **entry}, TODAY)

    assert (caught.value.code, said in caught.value.message) == (code, True), caught.value.message


def test_an_unknown_table_is_answered_with_those_there_are() -> None:
    """Also where the file has them at its top."""
    assert entry_of({"tables": {"orders": ENTRY}}, "orders", "f") == entry_of({"orders": ENTRY}, "orders", "f") == ENTRY
    for document, code in (({"orders": ENTRY, "stores": {}}, "unknown-source"), ([], "bad-sources"), ({"customers": 1}, "bad-sources")):
        with pytest.raises(UsageError) as caught:
            entry_of(document, "customers", "sources.yaml")
        assert caught.value.code == code
        assert "sources.yaml" in caught.value.message
    with pytest.raises(UsageError, match="it has: orders, stores"):
        entry_of({"orders": ENTRY, "stores": {}}, "customers", "sources.yaml")


def test_a_schema_can_be_written_in_three_ways() -> None:
    """The words of SQL and Python for a type are taken as well."""
    listed = [{"name": column.name, "type": column.type} for column in COLUMNS]

    assert read_schema(ENTRY["schema"]) == read_schema(listed) == COLUMNS
    assert read_schema("name string, id long, day date, amount decimal(10, 2)") == COLUMNS
    assert read_schema(None) == ()


def test_every_difference_of_columns_is_listed() -> None:
    """Missing, not expected, and of another type; the order does not matter."""
    found = (Column("id", "int"), Column("name", "string"), Column("note", "string"), Column("amount", "decimal(10,2)"))

    assert differences(COLUMNS, found) == ["'day' (date) is missing", "'note' (string) is not expected", "'id' is int, expected bigint"]


_columns = st.lists(
    st.builds(Column, st.sampled_from("abcdef"), st.sampled_from(["int", "string"])), unique_by=lambda column: column.name
).map(tuple)


@given(_columns, _columns)
def test_there_is_no_difference_only_between_the_same_columns(expected: Schema, found: Schema) -> None:
    """One line for each column that is not the same in both."""
    assert len(differences(expected, found)) == len({c.name for c in set(expected) ^ set(found)})


def test_the_output_has_keys_first_and_the_last_change_at_the_end() -> None:
    """The partition by a column that is no date is another column."""
    source = read_source("orders", {**ENTRY, "last_change_column": "changed"})

    assert [column.name for column in output_schema(source, COLUMNS)] == ["id", "name", "day", "amount", "changed"]
    assert date_folder(source, COLUMNS) == "day"
    assert date_folder(read_source("orders", {**ENTRY, "partition_date": "name"}), COLUMNS) == "name_date"
    taken = (Column("id", "bigint"), Column("day", "timestamp"), Column("day_date", "date"), Column("ts", "string"))
    with pytest.raises(UsageError, match="'day_date'"):
        check_columns(source, taken)


def test_a_run_id_must_fit_a_key() -> None:
    """Glue's own do."""
    assert check_run_id("jr_0a-1") == "jr_0a-1"
    with pytest.raises(UsageError, match="run_id"):
        check_run_id("a/b")
