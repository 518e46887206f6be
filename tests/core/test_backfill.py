"""What a history is built anew from: as many changes as can be made again, and the columns that it has after each."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import pytest

from glue_jobs.core import backfill
from glue_jobs.core.backfill import Rebuild, rebuild_for
from glue_jobs.core.errors import TableBlocked
from glue_jobs.core.history_table import COLUMNS as OURS
from glue_jobs.core.history_table import columns_after
from glue_jobs.core.record import ChangeRecord
from glue_jobs.core.replay import renamed_column
from glue_jobs.core.schema import Column, OldName, Schema
from tests.core.test_replay import COLUMNS, change, ids, name

ID, NAME = COLUMNS
TITLE, NOTE = Column("title", "string"), Column("note", "string")


def rebuilt(records: Sequence[ChangeRecord], gone: Iterable[str] = ()) -> Rebuild:
    """The rebuild where all raw files are there but some."""
    listed = {item.key: item.etag for record in records for item in record.inputs}
    return rebuild_for("raw/dms/shop/t/", "raw", records, {key: etag for key, etag in listed.items() if key not in set(gone)})


def loads_and_batches(loads: int, batches: int) -> list[ChangeRecord]:
    """So many loads, each with so many batches after it."""
    kinds = ["full-load", *["incremental"] * batches] * loads
    return [change(number, kind) for number, kind in enumerate(kinds, 1)]


def shown(columns: Schema) -> str:
    """The columns beside the history's own; those that the source left out in brackets."""
    assert columns[-len(OURS) :] == OURS
    return " ".join(f"[{column.name}]" if column.absent else f"{column.name}:{column.type}" for column in columns[: -len(OURS)])


def test_each_change_is_looked_at_once_however_many_loads_there_are(monkeypatch: pytest.MonkeyPatch) -> None:
    """Their columns are the same, and so are made once for each load with which the history could begin."""
    looked: list[str] = []
    made: list[Schema] = []

    def inputs_of(records: Iterable[ChangeRecord]) -> Any:
        records = list(records)
        looked.extend(ids(records))
        return {item.key: item for record in records for item in record.inputs}

    def after(before: Schema, lake: Schema, table: str) -> Schema:
        made.append(lake)
        return columns_after(before, lake, table)

    monkeypatch.setattr(backfill, "inputs_of", inputs_of)
    monkeypatch.setattr(backfill, "columns_after", after)
    records = loads_and_batches(10, 9)

    found = rebuilt(records)

    assert (found.records, found.left_out, found.why) == (tuple(records), 0, "")
    assert (sorted(looked), len(made)) == (sorted(ids(records)), 10)
    assert {shown(columns) for columns in found.columns} == {"id:int name:string"}
    assert len(found.columns) == len(records)


def test_a_record_that_renamed_nothing_is_not_held_against_the_columns() -> None:
    """There are as many pairs of them as the square of their number."""
    unread: Any = object()

    assert renamed_column(unread, change(2)) is None
    assert renamed_column(unread, change(2, details={"renamed": ""})) is None


@pytest.mark.parametrize(
    ("gone", "first", "said"),
    [
        ({"f1"}, 3, "is gone: f1"),
        ({"f1", "f2"}, 3, "is gone: f1, and 1 more"),
        ({"f4"}, 5, "is gone: f4"),
        ({"f2", "f4"}, 5, "is gone: f4"),
    ],
)
def test_it_goes_back_to_the_load_after_which_all_raw_files_are_there(gone: set[str], first: int, said: str) -> None:
    """It says what was looked for last in vain, and how many changes are left out."""
    found = rebuilt(loads_and_batches(3, 1), gone)

    assert ids(found.records) == [name(number) for number in range(first, 7)]
    assert (found.left_out, len(found.columns)) == (first - 1, 7 - first)
    assert found.why.split(";")[0] == f"the history can't be built anew: a raw file that was applied {said}"


def test_without_the_files_of_the_last_load_there_is_none() -> None:
    """The earlier loads are whole, but what came after them is not."""
    with pytest.raises(TableBlocked, match="is gone: f6") as caught:
        rebuilt(loads_and_batches(3, 1), {"f6"})

    assert caught.value.code == "backfill-not-possible"


@pytest.mark.parametrize(
    ("values", "said"), [({"kind": "merge"}, "is of kind merge"), ({"primary_key": ()}, "had no primary key at change")]
)
def test_what_can_not_be_made_again_is_named_before_files_that_are_gone(values: dict[str, Any], said: str) -> None:
    """Among the changes of the same load."""
    records = loads_and_batches(2, 2)
    records[1] = replace(records[1], **values)

    found = rebuilt(records, {"f1", "f3"})

    assert (ids(found.records), found.left_out, said in found.why) == (ids(records[3:]), 3, True)


def test_the_columns_after_each_change() -> None:
    """Renamed ones, new ones, those that a reload left out; the facts of the newest record of them, also where the names are the same."""
    renamed = replace(TITLE, older=(OldName("name", "0"),))
    schemas: list[tuple[str, Schema]] = [
        ("full-load", (ID, NAME)),
        ("incremental", (ID, NAME)),
        ("schema", (ID, renamed)),
        ("incremental", (ID, renamed)),
        ("incremental", (ID, renamed, NOTE)),
        ("full-load", (ID, TITLE, NOTE)),
        ("full-load", (ID, TITLE)),
        ("widen", (replace(ID, type="bigint"), TITLE)),
    ]
    records = [change(number, kind, schema=schema) for number, (kind, schema) in enumerate(schemas, 1)]
    records[2] = replace(records[2], details={"renamed": "name to title"})

    found = rebuilt(records).columns

    assert [shown(columns) for columns in found] == [
        "id:int name:string",
        "id:int name:string",
        "id:int title:string",
        "id:int title:string",
        "id:int title:string note:string",
        "id:int title:string note:string",
        "id:int title:string [note]",
        "id:bigint title:string [note]",
    ]
    assert [columns[1].older for columns in found] == [(), (), *[renamed.older] * 3, (), (), ()]


def test_a_load_before_which_a_column_was_spelled_otherwise_is_the_first() -> None:
    """The history table would have both names."""
    records = [change(1, "full-load", schema=(ID, Column("Name", "string"))), change(2, "full-load"), change(3)]

    found = rebuilt(records)

    assert (ids(found.records), found.left_out) == ([name(2), name(3)], 1)
    assert "column 'name' was 'Name' before the reload" in found.why
