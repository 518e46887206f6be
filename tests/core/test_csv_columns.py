"""Which field of a CSV file is which column: told from names, numbers and values, or refused by name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest

from glue_jobs.core.csv_columns import CsvColumns, Facts, Table, form_used
from glue_jobs.core.csv_form import CsvForm
from glue_jobs.core.errors import TableBlocked
from glue_jobs.core.raw_reading import Reading
from glue_jobs.core.schema import Column, Schema
from glue_jobs.core.schema_change import reconcile

LAKE: Schema = (Column("id", "int"), Column("name", "string"), Column("price", "decimal(8,2)"))
OPS, TIMES = Facts(operations=True), Facts(times=True, least="2024-05-01 12:00:00")
TIME = "2024-05-01 12:00:00.000000"


def table(lake: Schema = LAKE, *, said: Schema = (), time: str = "") -> Table:
    return Table(Reading("raw/dms/shop/orders/", time, lake, CsvForm(said)), "s3://raw/a.csv")


def told(known: Table, first: Sequence[str], facts: Mapping[int, Facts] | None = None, rows: int = 1, lead: int = 0) -> CsvColumns:
    """What a file is whose first record is `first`."""
    header = known.is_header(first) if not lead else False
    return known.columns(first, header, facts or {}, rows, lead)


def refused(known: Table, first: Sequence[str], facts: Mapping[int, Facts] | None = None, rows: int = 1) -> TableBlocked:
    with pytest.raises(TableBlocked) as caught:
        told(known, first, facts, rows)
    assert "s3://raw/a.csv" in caught.value.message
    assert caught.value.todo
    return caught.value


# --- with a header


@pytest.mark.parametrize(
    "first",
    [
        ["Op", "id", "name", "price"],
        ["id", "name", "price"],
        ["price", "id"],
        ["id", "name", "price", "AR_H_CHANGE_SEQ"],
        ["id", "name", "price", "BI_id"],
    ],
)
def test_a_header_has_the_names_of_columns(first: list[str]) -> None:
    """In any order, with DMS's own among them."""
    assert table().is_header(first)
    found = told(table(), first)
    assert found.fields == tuple(first)
    assert {column.name for column in found.columns} == set(first) & {column.name for column in LAKE}


def test_types_are_those_of_the_lake() -> None:
    """Not of the attribute Schema, where the lake's are wider."""
    found = told(table(said=(Column("id", "smallint"),)), ["Op", "id", "price"])
    assert found.columns == (Column("id", "int"), Column("price", "decimal(8,2)"))


def test_schema_may_widen_a_type() -> None:
    """Then the lake's grows."""
    assert told(table(said=(Column("id", "bigint"),)), ["Op", "id"]).columns == (Column("id", "bigint"),)


def test_a_contradiction_is_refused() -> None:
    """The lake has another kind of values."""
    assert refused(table(said=(Column("id", "date"),)), ["Op", "id"]).code == "csv-schema-contradicts"


def test_a_new_column_takes_its_type_from_schema() -> None:
    """Only it must stand there."""
    assert told(table(said=(Column("age", "int"),)), ["Op", "id", "name", "price", "age"]).columns[-1] == Column("age", "int")


def test_a_new_column_without_a_type_is_refused_with_the_line_to_set() -> None:
    """The line names the columns that need a type, those of Schema stay in it."""
    error = refused(table(said=(Column("old", "date"),)), ["Op", "id", "name", "price", "age"])
    assert error.code == "csv-needs-schema"
    assert "'age'" in error.message
    assert '{\\"old\\": \\"date\\", \\"age\\": \\"TYPE\\"}' in error.todo
    assert "--table-name DMSCDC_Controller" in error.todo
    assert '{"path": {"S": "raw/dms/shop/orders/"}}' in error.todo


def test_the_commit_time_needs_no_type() -> None:
    """It is told by its name, or by its place and its values."""
    assert told(table(time="ts"), ["Op", "ts", "id"]).columns[0] == Column("ts", "string")
    by_values = told(table(), ["Op", "ts", "id"], {1: TIMES})
    assert (by_values.columns[0], by_values.timestamp, by_values.confirmed) == (Column("ts", "string"), "ts", False)
    assert told(table(), ["ts", "id", "name"], {0: TIMES}).columns[0] == Column("ts", "string")
    assert refused(table(), ["Op", "ts", "id"]).code == "csv-needs-schema"


def test_a_header_without_rows_brings_no_column_of_unknown_type() -> None:
    """There is nothing to read."""
    assert [column.name for column in told(table(), ["Op", "ts", "id", "age"], rows=0).columns] == ["id"]


def test_names_that_stand_twice_or_not_at_all_are_refused() -> None:
    """No column could be told."""
    assert refused(table(), ["Op", "id", "id"]).code == "column-twice"
    assert refused(table(), ["Op", "id", ""]).code == "reserved-column"


@pytest.mark.parametrize("first", [["id", "name", "age"], ["id", "x"], ["name", "id", "a", "b"]])
def test_half_a_header_is_refused(first: list[str]) -> None:
    """Names of columns beside others: a new column, or a row whose values look like names."""
    assert refused(table(), first).code == "csv-header-unclear"


@pytest.mark.parametrize("first", [["1", "name", "2.00"], ["I", "id", "name", "price"], ["I", "1", "name", "2.00"]])
def test_a_row_with_a_value_like_a_name_is_a_row(first: list[str]) -> None:
    """One such value is no header, nor is anything behind an operation."""
    assert not table().is_header(first)


# --- without a header


@pytest.mark.parametrize(
    ("first", "facts", "time", "fields"),
    [
        (["1", "a", "2.00"], {}, "", ("id", "name", "price")),
        (["I", "1", "a", "2.00"], {0: OPS}, "", ("Op", "id", "name", "price")),
        ([TIME, "1", "a", "2.00"], {0: TIMES}, "ts", ("ts", "id", "name", "price")),
        (["I", TIME, "1", "a", "2.00"], {0: OPS, 1: TIMES}, "ts", ("Op", "ts", "id", "name", "price")),
    ],
)
def test_fields_by_their_places(first: list[str], facts: dict[int, Facts], time: str, fields: tuple[str, ...]) -> None:
    """Op and the commit time are told by number and values."""
    found = told(table(time=time), first, facts)
    assert found.fields == fields
    assert [column.type for column in found.columns][-3:] == ["int", "string", "decimal(8,2)"]


def test_the_commit_time_in_the_lake_is_known_by_its_name() -> None:
    """It is one of the lake's columns, and before the table's own."""
    lake = (Column("ts", "string"), *LAKE)
    assert told(table(lake, time="ts"), ["I", TIME, "1", "a", "2.00"], {0: OPS, 1: TIMES}).fields == ("Op", "ts", "id", "name", "price")


def test_schema_says_the_places() -> None:
    """Also of columns that DMS adds; what the lake has is another order."""
    said = (Column("name", "string"), Column("id", "int"), Column("AR_H_CHANGE_SEQ", "string"), Column("BI_id", "int"))
    found = told(table(said=said), ["U", "a", "1", "20240501", "2"], {0: OPS})
    assert found.fields == ("Op", "name", "id", "AR_H_CHANGE_SEQ", "BI_id")
    assert found.columns == (Column("name", "string"), Column("id", "int"))


@pytest.mark.parametrize(
    ("known", "first", "found"),
    [
        (table(), ["Op", "id", "name", "BI_id", "BI_name", "AR_H_CHANGE_SEQ"], (3, 4)),
        (table(said=(Column("id", "int"), Column("AR_H_CHANGE_SEQ", "string"), Column("BI_id", "int"))), ["I", TIME, "1", "2", ""], (4,)),
        (table((Column("ts", "string"), Column("id", "int"), Column("BI_id", "int")), time="ts"), ["I", TIME, "1", ""], (3,)),
        (table((Column("id", "int"), Column("BI_id", "int"), Column("old", "int", absent=True))), ["I", "1", ""], (2,)),
        (table(), ["I", "1"], ()),
    ],
    ids=["header", "schema", "lake", "absent", "fewer"],
)
def test_before_images_are_looked_at_where_it_is_asked(known: Table, first: list[str], found: tuple[int, ...]) -> None:
    """Beside the first fields; without a header they are found from the end."""
    header = first[0] == "Op"
    without = known.fields_to_look_at(first, header, 0)
    assert known.fields_to_look_at(first, header, 0, with_images=True) == tuple(sorted({*without, *found}))
    assert not {*without} & {*found}


def test_schema_with_op_says_all_places() -> None:
    """The way out where values alone don't tell."""
    said = (Column("Op", "string"), Column("ts", "string"), Column("name", "string"))
    found = told(table((), said=said), ["I", TIME, "a"], {0: OPS, 1: TIMES})
    assert found.fields == ("Op", "ts", "name")
    assert found.columns == (Column("ts", "string"), Column("name", "string"))


@pytest.mark.parametrize("first", [["1", "a"], ["1", "a", "2.00", "x", "y", "z"], ["X", "1", "a", "2.00"]])
def test_another_number_of_fields_is_refused(first: list[str]) -> None:
    """With the line that sets the columns."""
    error = refused(table(), first)
    assert error.code == "csv-columns"
    assert "update-item" in error.todo


@pytest.mark.parametrize(
    ("time", "first", "facts"),
    [
        ("", ["U", "1", "a"], {0: OPS}),
        ("ts", [TIME, "1", "a"], {0: TIMES}),
        ("ts", ["U", TIME, "1", "a"], {0: OPS, 1: TIMES}),
        ("", ["U", TIME, "1", "a"], {0: OPS, 1: TIMES}),
    ],
)
def test_a_column_that_is_gone_shows_where_the_first_one_takes_no_such_value(time: str, first: list[str], facts: dict[int, Facts]) -> None:
    """The number would fit, but an id is neither an operation nor a time: it is no wrong value of the id."""
    assert refused(table(time=time), first, facts).code == "csv-columns"


def test_a_time_may_be_the_first_column_where_a_column_may_have_come() -> None:
    """Nothing said so far that there is a commit time, and the table's own first column could be one."""
    lake = (Column("made", "string"), Column("id", "string"))
    error = refused(table(lake), ["U", TIME, "1", "new"], {0: OPS, 1: TIMES})
    assert (error.code, "'made' with a column added" in error.message) == ("csv-columns-unclear", True)


def test_a_commit_time_without_a_name_is_refused() -> None:
    """Its values tell it, and nothing how it is called."""
    assert refused(table(), ["I", TIME, "1", "a", "2.00"], {0: OPS, 1: TIMES}).code == "csv-timestamp-unnamed"


@pytest.mark.parametrize(
    ("lake", "time", "first", "facts"),
    [
        ((Column("kind", "string"), Column("id", "int")), "", ["I", "1"], {0: OPS}),
        ((Column("name", "string"), Column("id", "int")), "ts", [TIME, "1"], {0: TIMES}),
        ((Column("name", "string"), Column("id", "int")), "ts", ["I", TIME, "1"], {0: OPS, 1: TIMES}),
        ((Column("made", "timestamp"), Column("id", "int")), "ts", ["I", TIME, "1"], {0: OPS, 1: TIMES}),
    ],
)
def test_a_column_that_may_be_gone_is_refused(lake: Schema, time: str, first: list[str], facts: dict[int, Facts]) -> None:
    """The number fits, but what stands first could be the operation or the commit time with a column gone behind it."""
    assert refused(table(lake, time=time), first, facts).code == "csv-columns-unclear"


def test_a_column_that_came_after_the_load_has_no_known_place() -> None:
    """The lake has it last, the source perhaps not: the places must be said."""
    lake = reconcile("t", LAKE, [("f", (*LAKE, Column("age", "int")))]).schema
    error = refused(table(lake), ["I", "1", "a", "3", "2.00"], {0: OPS})
    assert error.code == "csv-needs-schema"
    assert "order" in error.message
    said = (Column("id", "int"), Column("name", "string"), Column("age", "int"), Column("price", "decimal(8,2)"))
    assert told(table(lake, said=said), ["I", "1", "a", "3", "2.00"], {0: OPS}).fields == ("Op", "id", "name", "age", "price")


def test_a_column_that_is_no_longer_sent_has_no_place() -> None:
    """And if it comes back, its place is not known."""
    lake = reconcile("t", LAKE, [("f", (LAKE[0], LAKE[2]))]).schema
    assert told(table(lake), ["I", "1", "2.00"], {0: OPS}).fields == ("Op", "id", "price")
    back = reconcile("t", lake, [("f", LAKE)]).schema
    assert refused(table(back), ["I", "1", "a", "2.00"], {0: OPS}).code == "csv-needs-schema"


def test_a_new_table_needs_schema() -> None:
    """The first row is shown; where it looks like names, the line has them."""
    error = refused(table(()), ["1", "a b", "2.00"])
    assert (error.code, "1, a b, 2.00" in error.message, '\\"NAME\\"' in error.todo) == ("csv-needs-schema", True, True)
    names = refused(table(()), ["id", "name"])
    assert '{\\"id\\": \\"TYPE\\", \\"name\\": \\"TYPE\\"}' in names.todo
    header = refused(table(()), ["Op", "id", "name"])
    assert (header.code, "'id', 'name'" in header.message) == ("csv-needs-schema", True)


def test_a_way_out_is_short_enough_for_a_report() -> None:
    """Reports cut it at 500 characters; a command that is cut is of no use."""
    wide = ["Op", *(f"a_rather_long_column_name_{number}" for number in range(80))]
    long = Table(Reading("bucket-of-a-long-name-in-eu-central-1/prefix/of/folders/some_schema/and_a_table/"), "s3://raw/a.csv")
    todo = refused(long, wide).todo
    assert "…" in todo
    assert todo.endswith("`")
    assert len(todo) <= 500


def test_an_empty_file_has_the_columns_that_are_known() -> None:
    """So that none seems to be gone."""
    assert table().columns(None, False, {}, 0).columns == LAKE
    assert table((), said=LAKE).columns(None, False, {}, 0).columns == LAKE
    with pytest.raises(TableBlocked, match="empty file"):
        table(()).columns(None, False, {}, 0)


# --- of several tables in one file


def test_behind_operation_table_and_schema_stand_the_tables_columns() -> None:
    """Op is sure there, the commit time is told by number and values."""
    assert told(table(), ["I", "orders", "shop", "1", "a", "2.00"], lead=3).fields == ("Op", "", "", "id", "name", "price")
    with_time = told(table(time="ts"), ["I", "orders", "shop", TIME, "1", "a", "2.00"], {3: TIMES}, lead=3)
    assert with_time.fields == ("Op", "", "", "ts", "id", "name", "price")


# --- what a record keeps


def test_the_places_are_kept() -> None:
    """Of the lake, or of Schema; not where they were not known."""
    assert form_used(table().reading).schema == LAKE
    assert form_used(table(said=LAKE[:1]).reading).schema == LAKE[:1]
    assert form_used(table(()).reading).schema == ()
