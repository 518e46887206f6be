"""PartitionKey: reading it, checking it, folders and back."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from glue_jobs.core.errors import TableBlocked
from glue_jobs.core.partitioning import (
    NULL_FOLDER,
    PartitionField,
    check_partitioning,
    escape,
    file_columns,
    folder_of,
    parse_partition_key,
    values_of,
)
from glue_jobs.core.schema import Column

SCHEMA = (Column("id", "bigint"), Column("region", "string"), Column("d", "date"), Column("qty", "int"))
# FileUtils.charToEscape of Apache Hive, besides the control characters.
HIVE = {'"', "#", "%", "'", "*", "/", ":", "=", "?", "\\", "\x7f", "{", "[", "]", "^"}


@pytest.mark.parametrize(
    ("text", "fields"),
    [
        ("region", (PartitionField("region"),)),
        (" region , qty ", (PartitionField("region"), PartitionField("qty"))),
        ("year(d)", (PartitionField("d", "year"),)),
        ("YEAR( d ), Month(d)", (PartitionField("d", "year"), PartitionField("d", "month"))),
        ("day(d) as tag", (PartitionField("d", "day", "tag"),)),
        ("region AS r", (PartitionField("region", "identity", "r"),)),
        ("order date", (PartitionField("order date"),)),
        ("basis", (PartitionField("basis"),)),
    ],
)
def test_a_partition_key_is_read(text: str, fields: tuple[PartitionField, ...]) -> None:
    """Columns and parts of dates, with or without a name of their own."""
    assert parse_partition_key(text) == fields


@pytest.mark.parametrize("text", ["a,,b", ",", "hour(d)", "year()", "year(d", "year(d) as", "year(d) as a b", "a,a", "year(d),year(d)"])
def test_what_is_no_partition_key_is_refused_with_the_attributes_name(text: str) -> None:
    """Also two fields with one folder."""
    with pytest.raises(TableBlocked, match="PartitionKey"):
        parse_partition_key(text)


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("region, year(d)", ""),
        ("year(region)", ""),
        ("nowhere", "no-partition-column"),
        ("Region", "no-partition-column"),
        ("month(qty)", "no-date-parts"),
        ("year(d) as qty", "partition-name-taken"),
        ("year(d) as ID", "partition-name-taken"),
        ("region as region", ""),
    ],
)
def test_a_partition_key_must_fit_the_columns(text: str, code: str) -> None:
    """A folder's name must not hide a column of the files."""
    try:
        check_partitioning(parse_partition_key(text), SCHEMA, "t")
        found = ""
    except TableBlocked as error:
        found = error.code

    assert found == code


@pytest.mark.parametrize("name", ["a\0", "a\ufffe", "\uffff"])
def test_a_column_that_can_be_no_folder_is_refused(name: str) -> None:
    """Its key could be written, but not hidden: DeleteObjects is XML."""
    with pytest.raises(TableBlocked) as caught:
        check_partitioning(parse_partition_key(name), (Column(name, "string"),), "t")

    assert caught.value.code == "bad-partition-name"


def test_files_keep_a_column() -> None:
    """Rows of none can't be counted; parts of a date leave the date in the files."""
    with pytest.raises(TableBlocked, match="every column is a partition folder") as caught:
        check_partitioning(parse_partition_key("id,region"), SCHEMA[:2], "shop.orders")
    assert caught.value.code == "no-file-columns"
    check_partitioning(parse_partition_key("id,year(d)"), (SCHEMA[0], SCHEMA[2]), "shop.orders")


def test_only_whole_columns_leave_the_files() -> None:
    """The date whose year is a folder stays in the file."""
    assert [column.name for column in file_columns(SCHEMA, parse_partition_key("region, year(d)"))] == ["id", "d", "qty"]


def test_folders_are_named_as_hive_names_them() -> None:
    """Integers without zeros, null by Hive's word."""
    fields = parse_partition_key("region, year(d), month(d) as m")

    assert folder_of(fields, ("a b", "2024", None)) == f"region=a b/d_year=2024/m={NULL_FOLDER}/"


@pytest.mark.parametrize("char", sorted(HIVE | {chr(code) for code in range(1, 32)}))
def test_hives_characters_are_escaped_in_upper_case_hex(char: str) -> None:
    """The very list of Hive, so that every reader turns it back."""
    assert escape(char) == f"%{ord(char):02X}"


@given(st.characters(exclude_characters=HIVE, exclude_categories=["Cc", "Cs"]))
def test_other_characters_stay_as_they_are(char: str) -> None:
    """Letters of every script, spaces, commas."""
    assert escape(char) == char


TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), min_size=1).filter(lambda text: text != NULL_FOLDER)
FIELDS = parse_partition_key("a=b as c%d, region, year(d)")


@given(st.tuples(*[st.none() | TEXTS] * 3))
@example(("%41", "a/b=c", ".."))
@example(("+", "a+b", "%2F"))
def test_values_come_back_from_their_folders(values: tuple[str | None, ...]) -> None:
    """Whatever they hold, and whatever the folder's own name holds."""
    path = f"{folder_of(FIELDS, values)}0000000001-000001-0000000a-x.parquet"

    assert (values_of(path, FIELDS), path.count("/")) == (values, 3)


def test_a_table_without_partitions_has_no_folders() -> None:
    """Also where a file's name has an equals sign."""
    assert (folder_of((), ()), values_of("a=b.parquet", ())) == ("", ())
