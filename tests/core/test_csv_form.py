"""A person's attributes for CSV are read kindly in form and strictly in sense."""

from __future__ import annotations

from typing import Any

import pytest

from glue_jobs.core.csv_form import CsvForm, form_of_details, schema_text
from glue_jobs.core.errors import TableBlocked
from glue_jobs.core.paths import TablePath
from glue_jobs.core.schema import Column
from glue_jobs.core.state import PERSON_ATTRIBUTES, default_item, read_state

PATH = TablePath.parse("raw/dms/shop/orders")


def form(**attributes: Any) -> CsvForm:
    return read_state({**default_item(PATH, ""), **attributes}).csv


def test_without_attributes_dms_defaults_hold() -> None:
    """Comma, NULL, and no columns."""
    assert form() == CsvForm((), ",", "NULL")


def test_schema_keeps_its_order_and_its_types_are_normalised() -> None:
    """Blanks and case are no matter; the order is that of the text."""
    found = form(Schema='{"z": " BigInt ", "a": "Decimal( 12 , 2 )", "m": "string"}')
    assert found.schema == (Column("z", "bigint"), Column("a", "decimal(12,2)"), Column("m", "string"))
    assert form(Schema=schema_text(found.schema)).schema == found.schema


@pytest.mark.parametrize("nothing", ["", " ", "null", None])
def test_an_empty_schema_is_none(nothing: str | None) -> None:
    """As with other attributes."""
    assert form(Schema=nothing).schema == ()


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ({"id": "int"}, "a Map of DynamoDB keeps no order"),
        ("[]", "a JSON object"),
        ("{}", "a JSON object"),
        ("id int", "a JSON object"),
        ('{"id": "int"', "a JSON object"),
        ('{"id": "int", "id": "bigint"}', "'id' stands there twice"),
        ('{"id": "integer"}', "('id' has 'integer')"),
        ('{"id": "decimal(39,2)"}', "decimal(p,s)"),
        ('{"id": 4}', "('id' has 4)"),
        ('{"id": {"type": "int"}}', "('id' has "),
        ('{"": "int"}', "('' has 'int')"),
    ],
)
def test_a_schema_that_is_none_is_refused(value: Any, said: str) -> None:
    """With the attribute's name, what was expected and what was found."""
    with pytest.raises(TableBlocked) as caught:
        form(Schema=value)
    assert caught.value.code == "bad-attribute"
    assert "attribute Schema" in caught.value.message
    assert said in caught.value.message


@pytest.mark.parametrize(
    ("text", "delimiter"), [(";", ";"), (" | ", "|"), ("\t", "\t"), ("\\t", "\t"), ("TAB", "\t"), (" ", " "), ("", ","), ("null", ",")]
)
def test_delimiter(text: str, delimiter: str) -> None:
    """One character; a tab is not stripped away."""
    assert form(CsvDelimiter=text).delimiter == delimiter


@pytest.mark.parametrize("text", ["||", '"', "\n", "§", "a", "1"])
def test_a_delimiter_that_can_be_none_is_refused(text: str) -> None:
    """Several characters, quotes, line ends, letters, and what is more than a byte."""
    with pytest.raises(TableBlocked, match="CsvDelimiter"):
        form(CsvDelimiter=text)


@pytest.mark.parametrize(("text", "null"), [("NULL", "NULL"), ("null", "null"), ("\\N", "\\N"), ("", ""), (" none ", "none")])
def test_null_value(text: str, null: str) -> None:
    """The words that say nothing in other attributes are meant here."""
    assert form(CsvNullValue=text).null == null


def test_a_null_value_with_a_quote_is_refused() -> None:
    """Quoted, it would be a text."""
    with pytest.raises(TableBlocked, match="CsvNullValue"):
        form(CsvNullValue='"NULL"')


def test_a_record_keeps_the_form() -> None:
    """With the columns' places; their types are the record's, and DMS's own columns are texts."""
    kept = CsvForm((Column("id", "int"), Column("AR_H_CHANGE_SEQ", "string")), ";", "\\N").details()
    again = form_of_details({"csv": kept}, (Column("id", "bigint"), Column("name", "string")))
    assert again == CsvForm((Column("id", "bigint"), Column("AR_H_CHANGE_SEQ", "string")), ";", "\\N")
    assert form_of_details({}, ()) == CsvForm()


def test_what_an_empty_field_is() -> None:
    """Null, unless a person says otherwise; a record keeps that."""
    assert not form().empty_is_text
    said = form(CsvEmptyIsText="true")
    assert said.empty_is_text
    assert form_of_details({"csv": said.details()}, ()) == said


def test_a_changed_attribute_is_a_reason_to_try_again() -> None:
    """They decide what a change does."""
    assert {"Schema", "CsvDelimiter", "CsvNullValue", "CsvEmptyIsText"} <= set(PERSON_ATTRIBUTES)
