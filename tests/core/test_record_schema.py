"""The published JSON Schema of change records is what the program writes."""

from __future__ import annotations

import json
import re
from dataclasses import fields
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from hypothesis import given

from glue_jobs.core.record import (
    FORMAT,
    KINDS,
    ChangeRecord,
    Checkpoint,
    Counts,
    DataFile,
    Generation,
    Given,
    Input,
    Part,
    Upload,
    from_json,
    to_json,
)
from glue_jobs.core.schema import Column, OldName
from tests.core.records import RECORDS, minimal

DOCS = Path(__file__).parent.parent.parent / "docs"
SCHEMA: dict[str, Any] = json.loads((DOCS / "change-record.schema.json").read_text())
VALIDATOR = jsonschema.Draft202012Validator(SCHEMA)


def test_the_schema_itself_is_valid() -> None:
    """Against the standard's own."""
    jsonschema.Draft202012Validator.check_schema(SCHEMA)


@given(RECORDS)
def test_every_record_is_valid(record: ChangeRecord) -> None:
    """Also one with every reserved field."""
    VALIDATOR.validate(json.loads(to_json(record)))


@pytest.mark.parametrize(
    ("kind", "definition"),
    [
        (Input, "input"), (Generation, "generation"), (Counts, "counts"), (Part, "part"), (Upload, "upload"),
        (DataFile, "dataFile"), (Column, "column"), (OldName, "oldName"), (Checkpoint, "checkpoint"), (Given, "given"),
    ],
)  # fmt: skip
def test_every_field_is_described(kind: type[Any], definition: str) -> None:
    """No more and no less than the program knows."""
    assert list(SCHEMA["$defs"][definition]["properties"]) == [field.name for field in fields(kind)]


def test_the_record_itself_is_described() -> None:
    """With its kinds and its format."""
    properties = SCHEMA["properties"]

    assert list(properties) == ["format", *(field.name for field in fields(ChangeRecord))]
    assert (properties["format"]["const"], tuple(properties["kind"]["enum"])) == (FORMAT, KINDS)


@pytest.mark.parametrize(
    "edit",
    [
        {"format": 2},
        {"colour": "red"},
        {"kind": "merge"},
        {"id": "x"},
        {"inputs": [{"key": "k"}]},
        {"schema": [{"name": "a", "type": "varchar"}]},
    ],
)
def test_what_the_program_would_not_write_is_invalid(edit: dict[str, Any]) -> None:
    """A schema that takes everything would prove nothing."""
    data = {**json.loads(to_json(minimal())), **edit}

    assert not VALIDATOR.is_valid(data)


def test_the_page_tells_every_kind_and_its_example_is_a_record() -> None:
    """The example is read by the program."""
    page = (DOCS / "change-record.md").read_text()
    example = re.search(r"```json\n(.*?)```", page, re.DOTALL)
    assert example is not None

    VALIDATOR.validate(json.loads(example.group(1)))
    assert from_json(example.group(1), "the page").kind == "incremental"
    assert [kind for kind in KINDS if f"`{kind}`" not in page] == []
