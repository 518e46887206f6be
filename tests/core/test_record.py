"""Change records: JSON and back, and what is refused."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given

from glue_jobs.core.errors import TableBlocked
from glue_jobs.core.record import ChangeRecord, Counts, Input, from_json, summary, to_json, without_upload
from tests.core.records import RECORDS, data_file, minimal


@given(RECORDS)
def test_a_record_is_read_as_it_was_written(record: ChangeRecord) -> None:
    """Every field, also those that are reserved for later."""
    assert from_json(to_json(record), "here") == record


def test_the_format_comes_first() -> None:
    """A reader can tell from the first bytes whether it may go on."""
    assert to_json(minimal()).startswith('{"format":1,')


def test_fields_with_their_default_are_left_out() -> None:
    """Records of small changes stay small."""
    assert json.loads(to_json(minimal())) == {
        "format": 1,
        "id": "0000000001-000001-0000000a",
        "parent": "",
        "kind": "incremental",
        "table": "t",
        "lake": "l",
        "time": "now",
    }


def edited(**values: Any) -> str:
    return json.dumps({**json.loads(to_json(minimal(inputs=(Input("k", "e"),)))), **values})


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (edited(format=2), "format 2"),
        (edited(format="1"), "format 1; this"),
        (edited(colour="red"), "unknown field 'colour' in ChangeRecord"),
        (edited(inputs=[{"key": "k", "etag": "e", "sise": 1}]), "unknown field 'sise' in Input"),
        (edited(checkpoint={"file": []}), "unknown field 'file' in Checkpoint"),
        (edited(kind="merge"), "unknown kind 'merge'"),
        (edited(inputs=[{"key": "k"}]), "etag"),
        (edited(inputs=["k"]), "can't be read"),
        (edited(generation=5), "can't be read"),
        ('{"id": "x"}', "format"),
        ("{", "can't be read"),
        ("", "can't be read"),
        ("[]", "can't be read"),
        ("null", "can't be read"),
        (to_json(minimal())[:-20], "can't be read"),
    ],
)
def test_a_damaged_or_newer_record_blocks_the_table(text: str, found: str) -> None:
    """The message names the object and what is wrong with it."""
    with pytest.raises(TableBlocked) as caught:
        from_json(text, "lake/_changes/x.json")

    assert caught.value.code == "bad-record"
    assert "s3://lake/_changes/x.json" in caught.value.message
    assert found in caught.value.message


@pytest.mark.parametrize("name", ["id", "parent", "kind", "table", "lake", "time"])
def test_a_record_without_what_every_record_has_blocks_the_table(name: str) -> None:
    """Half a record is none."""
    data = json.loads(to_json(minimal()))
    del data[name]

    with pytest.raises(TableBlocked, match=name):
        from_json(json.dumps(data), "here")


def test_a_snapshot_forgets_uploads() -> None:
    """They concern only the change that made the file."""
    file = data_file("a.parquet")

    assert without_upload(file) == replace(file, upload=None) != file


def test_a_summary_is_numbers_and_names() -> None:
    """What a log line bears: no lists of files."""
    record = minimal(counts=Counts(inserted=3), added=(data_file("a", 2), data_file("b", 1)), superseded=("c",))

    found = summary(record)

    assert (found["inserted"], found["files_added"], found["files_superseded"], found["bytes_added"]) == (3, 2, 1, 30)
    assert all(isinstance(value, (int, str)) for value in found.values())
