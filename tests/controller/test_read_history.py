"""`dmslake read --history`, and the same from Python: row versions, of a key, at a time, as of a change."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from typing import Any

import pyarrow as pa
import pytest

from controller.pages.life import split_key
from glue_jobs.core.errors import UsageError
from glue_jobs.past import open_past
from infra.local.dms_files import DmsRow, load_file_name
from tests.controller.past_world import Command, Done, PastWorld, changes
from tests.lake import START, LakeTable


def at(hours: float) -> datetime:
    return START + timedelta(hours=hours)


@pytest.fixture(scope="module")
def kept(kept_world: PastWorld) -> LakeTable:
    """Two keys over two months: one is changed twice in a batch, the other is deleted."""
    table = kept_world.table(timestamp_column="committed")
    table.edit(History="true")
    table.put_raw(load_file_name(1), table.parquet([DmsRow("I", (1, "one"), at(0)), DmsRow("I", (2, "two"), at(0))]))
    table.sync()
    table.cdc([DmsRow("U", (1, "ONE"), at(10)), DmsRow("U", (1, "uno"), at(800)), DmsRow("D", (2, "two"), at(20))])
    table.sync()
    return table


def shown(done: Done, *names: str) -> list[tuple[Any, ...]]:
    assert done.code == 0, done.err
    return [tuple(row[name] for name in names) for row in done.json["rows"]]


def test_versions_of_a_key_come_in_their_order(kept: LakeTable, kept_command: Command) -> None:
    """Though they lie in two files; the answer says which change of the history it is."""
    done = kept_command("read", str(kept.path), "--history", "--key", "1", "--output", "json")

    assert shown(done, "name", "operation", "valid_from", "valid_to", "validity_flag") == [
        ("one", "insert", "2024-05-01T12:00:00Z", "2024-05-01T22:00:00Z", 0),
        ("ONE", "update", "2024-05-01T22:00:00Z", "2024-06-03T20:00:00Z", 0),
        ("uno", "update", "2024-06-03T20:00:00Z", None, 1),
    ]
    assert done.json["history"] == done.json["change"] == changes(kept)[-1]


@pytest.mark.parametrize(
    ("hours", "rows"),
    [(-1, []), (0, ["one", "two"]), (10, ["ONE", "two"]), (19.5, ["ONE", "two"]), (20, ["ONE"]), (799, ["ONE"]), (800, ["uno"])],
)
def test_at_a_time_of_the_source(kept: LakeTable, hours: float, rows: list[str]) -> None:
    """From the moment at which a version begins, up to that at which it ends; a deleted row is none."""
    past = open_past(str(kept.path), kept.environment)

    found = [name for batch in past.valid_at(at(hours)) for name in batch["name"].to_pylist()]

    assert sorted(found) == rows


def test_a_time_of_another_zone_is_the_same_moment(past_world: PastWorld) -> None:
    """On the evening of May 31 in New York it is June in UTC: what begins then stands in June's file, and the version before is over."""
    table = past_world.table(timestamp_column="committed")
    table.edit(History="true")
    table.put_raw(load_file_name(1), table.parquet([DmsRow("I", (1, "one"), at(0))]))
    table.sync()
    table.cdc([DmsRow("U", (1, "ONE"), datetime(2024, 6, 1, 1, tzinfo=timezone.utc))])
    table.sync()
    past, moment = open_past(str(table.path), table.environment), datetime(2024, 6, 1, 3, tzinfo=timezone.utc)

    found = [
        [name for batch in past.valid_at(moment.astimezone(timezone(timedelta(hours=hours)))) for name in batch["name"].to_pylist()]
        for hours in (-5, 0, 14)
    ]

    assert found == [["ONE"]] * 3


def test_the_same_by_the_command(kept: LakeTable, kept_command: Command) -> None:
    """With the conditions, counts and columns that `read` has."""
    path = str(kept.path)

    table = kept_command("read", path, "--history", "--at", at(15).isoformat(), "--columns", "id,name")
    count = kept_command("read", path, "--history", "--count", "--output", "json")
    deleted = kept_command("read", path, "--history", "--where", "operation = 'delete'", "--output", "json")

    assert table.out.splitlines()[-1].startswith("2 row(s) match")
    assert count.json["count"] == 5
    assert shown(deleted, "id", "name", "valid_from") == [(2, "two", "2024-05-02T08:00:00Z")]


def test_as_of_a_change(kept: LakeTable, kept_command: Command) -> None:
    """What the history table said then; before it began there is none to read."""
    first, _ = changes(kept)

    done = kept_command("read", str(kept.path), "--history", "--as-of", first, "--output", "json")

    assert shown(done, "id", "validity_flag") == [(1, 1), (2, 1)]


def test_an_empty_text_is_a_key(past_world: PastWorld, lake_command: Command) -> None:
    """Of a text column: the versions of that row, and not of all; a key of two columns has no such value."""
    columns = pa.schema([("name", pa.string()), ("id", pa.int64())])
    table = LakeTable(past_world.environment(), past_world.raw, past_world.aws.lake, columns, "name", shared=past_world.clients)
    table.edit(History="true")
    table.load([("", 1), ("b", 2)])
    table.sync()

    done = lake_command("read", str(table.path), "--history", "--key", "", "--output", "json")
    plain = lake_command("read", str(table.path), "--key", "")

    assert shown(done, "name", "id") == [("", 1)]
    assert (plain.code, "--key and --at are about row versions" in plain.err) == (2, True)
    assert split_key("", 2) == ("",)


def test_calls_that_can_not_be_meant(kept: LakeTable, kept_world: PastWorld, kept_command: Command) -> None:
    """What is about versions without --history; a change where a time belongs; a key of another width; a table without a history."""
    path = str(kept.path)
    wrong = [("--key", "1"), ("--at", "2024-05-01"), ("--history", "--at", "previous"), ("--history", "--key", "x")]

    assert [kept_command("read", path, *words).code for words in wrong] == [2, 2, 2, 2]
    plain = kept_world.loaded()
    done = kept_command("read", str(plain.path), "--history")
    assert done.code == 2
    assert "has no history table" in done.err
    with pytest.raises(UsageError, match="no history table"):
        open_past(str(plain.path), plain.environment).history()


def test_a_history_that_is_behind_says_so(past_world: PastWorld, lake_command: Command) -> None:
    table = past_world.table()
    table.edit(History="true")
    table.load([(1, "one")])
    table.sync()
    table.edit(History="false")
    table.cdc([("U", (1, "ONE"))])
    table.sync()

    done = lake_command("read", str(table.path), "--history", "--output", "json")

    assert shown(done, "name", "validity_flag") == [("one", 1)]
    assert "rows changed since without it" in done.err
