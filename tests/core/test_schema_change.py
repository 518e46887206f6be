"""What a batch's columns mean for the lake's schema."""

from __future__ import annotations

import pytest

from glue_jobs.core.errors import TableBlocked
from glue_jobs.core.schema import Column, OldName, Schema
from glue_jobs.core.schema_change import reconcile, renamed


def schema(text: str) -> Schema:
    """`id int, name string` as a schema; `!` behind a type: absent."""
    pairs = (part.split() for part in text.split(", "))
    return tuple(Column(name, kind.rstrip("!"), kind.endswith("!")) for name, kind in pairs)


LAKE = schema("id int, name string")


@pytest.mark.parametrize(
    ("batch", "after"),
    [
        ([], "id int, name string"),
        (["id int, name string"], "id int, name string"),
        (["name string, id int"], "id int, name string"),
        (["id int, name string, qty int"], "id int, name string, qty int"),
        (["id int, name string", "id int, name string, qty int"], "id int, name string, qty int"),
        (["id int, name string, qty int", "id int, name string"], "id int, name string, qty int!"),
        (["id int"], "id int, name string!"),
        (["id bigint, name string"], "id bigint, name string"),
        (["id tinyint, name string"], "id int, name string"),
        (["id int, name string, a tinyint", "id int, name string, a bigint"], "id int, name string, a bigint"),
    ],
)
def test_a_batch_keeps_adds_and_widens_columns(batch: list[str], after: str) -> None:
    """New ones at the end, in the order in which they appear; nothing is ever dropped."""
    found = reconcile("t", LAKE, [(f"file {number}", schema(text)) for number, text in enumerate(batch)])

    assert found.schema == schema(after)


def test_the_change_says_what_it_did() -> None:
    """For the report."""
    found = reconcile("t", schema("id int, name string, old string!"), [("f", schema("id bigint, name string, qty int"))])

    assert (found.added, found.widened, found.absent) == (("qty",), (("id", "int", "bigint"),), ())


def test_a_column_that_comes_back_is_absent_no_more() -> None:
    """The source sends it again."""
    assert reconcile("t", schema("id int, name string!"), [("f", LAKE)]).schema == LAKE


def test_a_new_tables_columns_are_those_of_all_its_files() -> None:
    """Load files may differ, and none of their columns is absent."""
    found = reconcile("t", (), [("a", schema("id int, x int")), ("b", schema("id int, y int"))])

    assert (found.schema, found.added, found.absent) == (schema("id int, x int, y int"), (), ())


@pytest.mark.parametrize(
    ("lake", "late", "after"),
    [
        ("id int, gone string!", "id int, gone string", "id int, gone string!"),
        ("id int, new string", "id int", "id int, new string"),
        ("id int, gone string!, new string", "id bigint, gone string", "id bigint, gone string!, new string"),
        ("id int", "id int, only_there string", "id int, only_there string"),
    ],
)
def test_a_late_file_does_not_say_which_columns_there_are_now(lake: str, late: str, after: str) -> None:
    """It is from before a column went, or came; and the next new column is no rename of one that went long ago."""
    found = reconcile("t", schema(lake), [("late", schema(late))], late=True)

    assert (found.schema, found.absent) == (schema(after), ())
    if "!" in after:
        current = tuple(column for column in found.schema if not column.absent)
        next_file = ("next", (*current, Column("newer", "int")))
        assert reconcile("t", found.schema, [next_file]).added == ("newer",)


@pytest.mark.parametrize(
    "batch", [["id int, title string"], ["id int, title string", "id int"], ["id int, name string", "id int, title string"]]
)
def test_a_rename_is_not_guessed(batch: list[str]) -> None:
    """One gone and one new in a batch: a person says whether it is the same column."""
    with pytest.raises(TableBlocked) as caught:
        reconcile("shop.t", LAKE, [(f"file {number}", schema(text)) for number, text in enumerate(batch)])

    assert caught.value.code == "rename-or-drop-and-add"
    assert [word in str(caught.value) for word in ("'name'", "'title'", "--rename name=title", "--accept", "shop.t")] == [True] * 5


def test_repeated_rows_from_before_a_column_was_added_are_no_rename() -> None:
    """DMS repeats files of older columns, and a column added since follows in the same batch."""
    found = reconcile("t", LAKE, [("a", schema("id int")), ("b", LAKE), ("c", schema("id int, name string, qty int"))])

    assert found.schema == schema("id int, name string, qty int")


@pytest.mark.parametrize(
    ("files", "after"),
    [
        (["id int", "id int, qty int"], "id int, name string!, qty int"),
        (["id int, name string, qty int", "id int, qty int"], "id int, name string!, qty int"),
        (["id int", "id int, name string", "id int", "id int, qty int"], "id int, name string!, qty int"),
    ],
)
def test_a_batch_of_files_is_what_batches_of_one_are(files: list[str], after: str) -> None:
    """A column that goes in one file is no half of a rename with one that comes in another, however many files a run takes."""
    named = [(f"file {number}", schema(text)) for number, text in enumerate(files)]
    one_by_one = LAKE
    for file in named:
        one_by_one = reconcile("t", one_by_one, [file]).schema

    assert reconcile("t", LAKE, named).schema == schema(after)
    assert [(column.name, column.absent) for column in one_by_one] == [(column.name, column.absent) for column in schema(after)]


def test_a_person_may_say_that_it_was_no_rename() -> None:
    """Then the old column stays, absent."""
    found = reconcile("t", LAKE, [("f", schema("id int, title string"))], accept=True)

    assert found.schema == schema("id int, name string!, title string")


def test_a_column_that_was_absent_before_is_no_half_of_a_rename() -> None:
    """It vanished in an earlier batch."""
    found = reconcile("t", schema("id int, name string!"), [("f", schema("id int, title string"))])

    assert found.schema == schema("id int, name string!, title string")


def test_a_column_that_comes_back_as_another_vanishes_may_be_that_one() -> None:
    """Renamed onto a name that the table once had. No command gives that column other values, so a rename is for DMS to load."""
    lake, batch = schema("id int, phone string!, mobile string"), [("f", schema("id int, phone string"))]

    with pytest.raises(TableBlocked, match="'mobile' vanished, 'phone' appeared") as caught:
        reconcile("t", lake, batch)

    assert (caught.value.code, "reload" in caught.value.todo, "--rename" in caught.value.todo) == ("rename-or-drop-and-add", True, False)
    accepted = reconcile("t", lake, batch, accept=True)
    assert (accepted.schema, accepted.absent, accepted.back) == (schema("id int, phone string, mobile string!"), ("mobile",), ("phone",))
    assert reconcile("t", lake, batch, late=True).schema == lake  # a file from before: it has the columns of its time


def test_an_unsafe_change_of_type_names_table_file_column_and_types() -> None:
    """All a person needs to look it up."""
    with pytest.raises(TableBlocked) as caught:
        reconcile("shop.t", LAKE, [("20240501-1.parquet", schema("id int, name int"))])

    assert caught.value.code == "type-changed"
    assert [word in caught.value.message for word in ("shop.t", "20240501-1.parquet", "'name'", "string", "int")] == [True] * 5


@pytest.mark.parametrize("batch", ["id int, name string, NAME string", "id int, Name string"])
def test_columns_that_differ_only_by_case_are_refused(batch: str) -> None:
    """In one file, and between file and lake: Spark and Athena couldn't read the table."""
    with pytest.raises(TableBlocked) as caught:
        reconcile("t", LAKE, [("f", schema(batch))])

    assert caught.value.code == "columns-differ-by-case"
    assert ("--rename name=Name" in caught.value.todo) == ("name" not in batch)


@pytest.mark.parametrize("file", ["f.parquet", "f.csv"])
def test_rows_from_before_a_rename_are_not_to_be_accepted(file: str) -> None:
    """DMS sends them again with the old name, which no longer is a column: accepted, the column would be null in them."""
    lake = renamed(LAKE, "name", "title", "raw/dms/shop/t/20240501-120000000.parquet")

    with pytest.raises(TableBlocked) as caught:
        reconcile("t", lake, [(file, LAKE)])

    todo = caught.value.todo
    assert ("PATH --rename title=name`" in todo, "`--rename name=title`" in todo) == (True, True)
    assert ("would leave 'title' null" in todo, "attribute Schema" in todo) == (True, file.endswith("csv"))


def test_a_rename_keeps_type_and_place() -> None:
    """Only the name changes."""
    assert renamed(LAKE, "id", "number", "") == schema("number int, name string")


def test_a_rename_may_change_only_the_case() -> None:
    """The old name is gone then."""
    assert renamed(LAKE, "name", "Name", "") == schema("id int, Name string")


def test_a_renamed_column_keeps_its_older_names() -> None:
    """With the cursors up to which files have them; a batch leaves them."""
    twice = renamed(renamed(LAKE, "name", "title", "raw/1"), "title", "heading", "raw/2")
    found = reconcile("t", twice, [("f", schema("id int, heading string, qty int"))]).schema

    assert [column.older for column in found] == [(), (OldName("name", "raw/1"), OldName("title", "raw/2")), ()]


@pytest.mark.parametrize(("old", "new"), [("nowhere", "x"), ("id", "name"), ("id", "NAME")])
def test_an_impossible_rename_is_refused(old: str, new: str) -> None:
    """With the columns there are."""
    with pytest.raises(TableBlocked, match="id, name"):
        renamed(LAKE, old, new, "")
