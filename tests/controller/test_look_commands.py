"""`dmslake read`, `diff` and `explain`: a table as it was, what changed, and the life of a row, without Spark."""

from __future__ import annotations

import csv
import io
import re
import sys
from datetime import date, datetime, timezone
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from controller.cli.looking import cell
from controller.cli.reading import split_names
from controller.pages.life import split_key
from tests.controller.past_world import Command, PastWorld, changes, expire
from tests.lake import LakeTable

TYPES = pa.schema(
    [
        ("id", pa.int64()), ('odd "name"', pa.string()), ("price", pa.decimal128(10, 2)), ("time", pa.timestamp("us")),
        ("day", pa.date32()), ("raw", pa.binary()), ("score", pa.float64()), ("small", pa.float32()), ("yes", pa.bool_()),
    ]
)  # fmt: skip
TIME = datetime(2024, 5, 1, 12, 30, 15, 250000, timezone.utc)
WHOLE = (1, 'a,"b"\n\x1b[31m', Decimal("12.30"), TIME, date(1969, 12, 31), b"\x00\xff", 0.1, 0.1, True)
SPECIAL = (2, "", Decimal("-0.05"), TIME.replace(microsecond=0), date(9999, 12, 31), b"", float("nan"), float("-inf"), False)
NULLS = (3, *[None] * 8)
TIME_TEXT = r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d[.\d]*"


@pytest.fixture(scope="module")
def typed(kept_world: PastWorld) -> LakeTable:
    """A table with a column of most types."""
    table = LakeTable(kept_world.environment(), kept_world.raw, kept_world.aws.lake, TYPES, shared=kept_world.clients)
    table.load([WHOLE, SPECIAL, NULLS])
    assert table.run("LoadInitial") == 0, table.item()
    return table


def rows(done: Any) -> list[tuple[Any, ...]]:
    """The rows of a JSON answer."""
    return [tuple(row.values()) for row in done.json["rows"]]


# --- read


def test_values_in_json_are_whole(typed: LakeTable, kept_command: Command) -> None:
    """Decimals keep their digits, times are UTC, binary is hexadecimal, what is no number is a word, null is null."""
    found = rows(kept_command("read", str(typed.path), "--output", "json"))

    assert found == [
        (1, WHOLE[1], "12.30", "2024-05-01T12:30:15.25Z", "1969-12-31", "00ff", 0.1, 0.1, True),
        (2, "", "-0.05", "2024-05-01T12:30:15Z", "9999-12-31", "", "NaN", "-Infinity", False),
        NULLS,
    ]


def test_csv_tells_null_from_empty(typed: LakeTable, kept_command: Command) -> None:
    """A null is nothing, an empty text is two quotes; what a reader of CSV reads is what the lake has."""
    out = kept_command("read", str(typed.path), "--output", "csv", "--columns", 'id,odd "name",price').out

    assert list(csv.reader(io.StringIO(out))) == [
        ["id", 'odd "name"', "price"],
        ["1", WHOLE[1], "12.30"],
        ["2", "", "-0.05"],
        ["3", "", ""],
    ]
    assert out.splitlines()[-2:] == ['2,"",-0.05', "3,,"]


def test_a_terminal_gets_no_control_characters(typed: LakeTable, kept_command: Command) -> None:
    """They are escaped, nulls and empty texts are told apart, and the state that was read is named."""
    out = kept_command("read", str(typed.path)).out

    assert "\x1b" not in out
    assert r"'a,\"b\"\n\u001b[31m'" not in out
    assert "'a,\"b\"\\n\\u001b[31m'" in out
    assert out.splitlines()[-1].startswith(f"3 of 3 row(s); change {typed.item()['Head']} of 2")


@pytest.mark.parametrize(
    "words",
    [
        ["read", "PATH", "--as-of", "CHANGE"],
        ["diff", "PATH", "CHANGE"],
        ["explain", "PATH", "--key", "2"],
        ["rollback", "PATH", "--to", "CHANGE", "--dry-run"],
    ],
    ids=lambda words: words[0],
)
def test_a_time_that_is_printed_means_its_change(kept_history: LakeTable, kept_command: Command, words: list[str]) -> None:
    """Whoever copies it reads the rows of that change, or goes back to it; not those of the one before."""
    path, change = str(kept_history.path), changes(kept_history)[1]
    out = kept_command(*({"PATH": path, "CHANGE": change}.get(word, word) for word in words)).out
    (line,) = [line for line in out.splitlines() if change in line and re.search(TIME_TEXT, line)]
    (time,) = re.findall(TIME_TEXT, line)

    assert kept_command("read", path, "--as-of", time, "--output", "json").json["change"] == change
    assert f"to change {change}" in kept_command("rollback", path, "--to", time, "--dry-run").out


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (None, "NULL"),
        ("NULL", "'NULL'"),
        ("", "''"),
        (" a", "' a'"),
        ("'", "'''"),
        ("\u202ea\\", r"'\u202ea\\'"),
        ("ä b", "ä b"),
        (True, "true"),
    ],
)
def test_cells_are_told_apart(value: Any, shown: str) -> None:
    """A quote at the start means that the rest is to be read as quoted."""
    assert cell(value) == shown


@pytest.mark.parametrize(
    ("where", "ids"),
    [
        ('"odd ""name""" = \'\'', [2]),
        ("price > 10 or id = 3", [1, 3]),
        ("time = '2024-05-01 12:30:15.25'", [1]),
        ("raw is null -- a comment", [3]),
        ("isnan(score)", [2]),
        ("id > 99", []),
    ],
)
def test_conditions_choose_rows(typed: LakeTable, kept_command: Command, where: str, ids: list[int]) -> None:
    """Columns of every kind come back as they are."""
    every = {row[0]: row for row in rows(kept_command("read", str(typed.path), "--output", "json"))}

    found = rows(kept_command("read", str(typed.path), "--where", where, "--output", "json"))

    assert found == [every[number] for number in ids]


@pytest.mark.parametrize(
    ("where", "message"),
    [
        ("id >", "syntax error"),
        ("nope = 1", "nope"),
        ("id = 'abc'", "abc"),
        ("true; DROP TABLE x", "can't be used"),
        ("true) OR (true", "syntax error"),
        ("id IN (SELECT 1 FROM read_csv('/etc/passwd'))", "disabled"),
        ("id IN (SELECT 1 FROM source)", "source"),
        ("EXISTS (SELECT 1 FROM '/etc/passwd')", "can't be used"),
    ],
)
def test_a_bad_condition_is_a_wrong_call(typed: LakeTable, kept_command: Command, where: str, message: str) -> None:
    """Exit 2 with DuckDB's own words; files and variables of the program are out of reach."""
    done = kept_command("read", str(typed.path), "--where", where)

    assert (done.code, done.out) == (2, "")
    assert message in done.err


def test_counts_and_sums(typed: LakeTable, kept_command: Command, kept_history: LakeTable) -> None:
    """Exact for decimals and integers; a count alone reads no data file."""
    total = kept_command("read", str(typed.path), "--count", "--sum", "price", "--sum", "id", "--output", "json").json
    floats = kept_command("read", str(typed.path), "--sum", "small", "--where", "id <> 2", "--output", "csv").out
    none = kept_command("read", str(typed.path), "--sum", "price", "--where", "id = 3").out

    assert (total["count"], total["sums"]) == (3, {"price": "12.25", "id": 6})
    assert floats.splitlines()[0] == "sum(small)"
    assert float(floats.splitlines()[1]) == pytest.approx(0.1)
    assert none.splitlines()[1].split() == ["NULL"]
    assert kept_command("read", str(kept_history.path), "--count").out.splitlines()[:2] == ["count", "    3"]


def test_sums_lose_no_digits(kept_world: PastWorld, kept_command: Command) -> None:
    """More than 64 bits hold, and more digits than a decimal of the lake has."""
    columns = pa.schema([("id", pa.int64()), ("much", pa.decimal128(38, 2))])
    table = LakeTable(kept_world.environment(), kept_world.raw, kept_world.aws.lake, columns, shared=kept_world.clients)
    much = Decimal("9" * 36 + ".99")
    table.load([(2**63 - 1, much), (2**63 - 2, much), (1, Decimal("0.02"))])
    assert table.run("LoadInitial") == 0

    sums = kept_command("read", str(table.path), "--sum", "id", "--sum", "much", "--output", "json").json["sums"]

    assert sums == {"id": 2**64 - 2, "much": "2" + "0" * 36 + ".00"}


def test_every_state_can_be_read(kept_history: LakeTable, kept_command: Command) -> None:
    """By a change's id, `previous`, a time; before the first change there is nothing."""
    load, first, second = changes(kept_history)
    path = str(kept_history.path)

    found = {as_of: rows(kept_command("read", path, "--as-of", as_of, "--output", "json")) for as_of in (load, "previous", second)}

    assert found == {load: [(1, "one"), (2, "two"), (3, "three")], "previous": [(1, "ONE"), (3, "three"), (4, "four")], second: rows(
        kept_command("read", path, "--output", "json"))}  # fmt: skip
    assert kept_command("read", path, "--as-of", kept_history.lineage()(first).time, "--output", "json").json["change"] == first
    empty = kept_command("read", path, "--as-of", "1999-01-01", "--where", "id = 1")
    assert (empty.code, empty.out) == (0, "0 row(s) match; before the first change: no rows\n")
    assert kept_command("read", path, "--as-of", "1999-01-01", "--count", "--output", "csv").out == "count\n0\n"


def test_limits(kept_history: LakeTable, kept_command: Command) -> None:
    """A number of rows; the line below says that there are more."""
    path = str(kept_history.path)

    assert kept_command("read", path, "--limit", "2").out.splitlines()[-1].startswith("2 of 3 row(s) (--limit); change ")
    assert len(kept_command("read", path, "--limit", "2", "--where", "id < 99", "--output", "csv").out.splitlines()) == 3
    assert "the first 1 rows that match" in kept_command("read", path, "--limit", "1", "--where", "id < 99").out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--columns", "id,nope"], "no column 'nope'"),
        (["--sum", "nope"], "no column 'nope'"),
        (["--sum", "name"], "has no numbers: it is string"),
        (["--count", "--limit", "1"], "leave out"),
        (["--as-of", "last week"], "neither a change id nor a time"),
    ],
)
def test_wrong_calls_are_refused(kept_history: LakeTable, kept_command: Command, words: list[str], message: str) -> None:
    """With exit 2, before anything is printed."""
    done = kept_command("read", str(kept_history.path), *words)

    assert (done.code, done.out) == (2, "")
    assert message in done.err


def test_names_with_commas_stand_in_quotes() -> None:
    """As in CSV."""
    assert split_names('a,"b, c",d "e"') == ("a", "b, c", 'd "e"')
    assert split_names("") == ()


def test_missing_packages_are_named(typed: LakeTable, kept_command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only --where needs DuckDB."""
    monkeypatch.setitem(sys.modules, "duckdb", None)

    done = kept_command("read", str(typed.path), "--where", "id = 1")

    assert (done.code, "pip install --editable '.[query]'" in done.err) == (3, True)
    assert kept_command("read", str(typed.path)).code == 0


def test_data_that_is_gone_is_said(past_world: PastWorld, lake_command: Command) -> None:
    """The state can't be read any more: exit 1 with the file, nothing half-printed."""
    table = past_world.batched()
    load, _ = changes(table)
    expire(table, load)

    done = lake_command("read", str(table.path), "--as-of", load, "--output", "csv")

    assert (done.code, done.out) == (1, "")
    assert load in done.err


# --- diff


def test_diff_shows_each_kind_of_row_change(kept_history: LakeTable, kept_command: Command) -> None:
    """Counts and rows, updates with the values that differ; nothing of what is the same."""
    load, first, second = changes(kept_history)

    found = kept_command("diff", str(kept_history.path), load, "--output", "json").json

    assert (found["from"]["change"], found["to"]["change"], found["files_read"]) == (load, second, 2)
    assert found["counts"] == {"insert": 1, "update": 2, "delete": 1}
    assert found["sample"] == {
        "insert": [{"id": 5, "name": "five"}],
        "update": [
            {"before": {"id": 1, "name": "one"}, "after": {"id": 1, "name": "ONE"}, "changed": ["name"]},
            {"before": {"id": 3, "name": "three"}, "after": {"id": 3, "name": "THREE"}, "changed": ["name"]},
        ],
        "delete": [{"id": 2, "name": "two"}],
    }
    assert found["schema"] == {"added": [], "dropped": [], "changed": []}
    only_last = kept_command("diff", str(kept_history.path), "previous", "--output", "json").json
    assert (only_last["from"]["change"], only_last["counts"]) == (first, {"insert": 1, "update": 1, "delete": 1})


def test_diff_for_people(kept_history: LakeTable, kept_command: Command) -> None:
    """Old and new stand side by side; with fewer rows than there are, the rest is counted."""
    load, _, second = changes(kept_history)

    lines = kept_command("diff", str(kept_history.path), load, second, "--limit", "1").out.splitlines()

    assert [line.split() for line in lines if line.startswith("rows ")] == [
        ["rows", "3", "→", "3:", "1", "inserted,", "2", "updated,", "1", "deleted"]
    ]
    at = lines.index("updated (2)")
    assert [line.split() for line in lines[at + 1 : at + 4]] == [
        ["id", "name"], ["1", "one", "→", "ONE"], ["…", "and", "1", "more:", "--limit", "N"]
    ]  # fmt: skip


def test_diff_works_backwards_and_from_nothing(kept_history: LakeTable, kept_command: Command) -> None:
    """What going back would do; before the first change there were no rows; the same state twice reads nothing."""
    load, _, second = changes(kept_history)
    path = str(kept_history.path)

    back = kept_command("diff", path, second, load, "--output", "json").json
    first_of_all = kept_command("diff", path, "1999-01-01", load, "--output", "json").json
    away = kept_command("diff", path, load, "1999-01-01", "--output", "json").json
    same = kept_command("diff", path, load, load, "--output", "json").json

    assert back["counts"] == {"insert": 1, "update": 2, "delete": 1}
    assert back["sample"]["insert"] == [{"id": 2, "name": "two"}]
    assert (first_of_all["counts"], len(first_of_all["schema"]["added"])) == ({"insert": 3, "update": 0, "delete": 0}, 2)
    assert (away["counts"], len(away["schema"]["dropped"])) == ({"insert": 0, "update": 0, "delete": 3}, 2)
    assert (same["counts"], same["files_read"]) == ({"insert": 0, "update": 0, "delete": 0}, 0)


@pytest.mark.usefixtures("names_of_any_age")
def test_diff_shows_how_columns_changed(past_world: PastWorld, lake_command: Command) -> None:
    """A new column, a wider type; and a reload that gave a column another type altogether, which can't be compared."""
    table = past_world.loaded()
    more = pa.schema([("id", pa.int64()), ("name", pa.string()), ("note", pa.string())])
    table.cdc([("I", (4, "four", "new"))], columns=more)
    assert table.run() == 0
    other = pa.schema([("id", pa.int64()), ("name", pa.int32())])
    table.edit(LoadQuietMinutes="0")
    table.load([(1, 1), (9, 9)], columns=other)
    assert table.run("LoadInitial") == 0, table.item()
    load, batch, reload = changes(table)

    grown = lake_command("diff", str(table.path), load, batch, "--output", "json").json
    apart = lake_command("diff", str(table.path), batch, reload)

    assert grown["schema"]["added"] == [{"name": "note", "type": "string"}]
    assert grown["counts"] == {"insert": 1, "update": 0, "delete": 0}
    assert "name string → int" in apart.out
    assert "note string" in apart.out
    assert "not compared" in apart.out
    assert ": 1 inserted, 0 updated, 3 deleted" in apart.out


def test_diff_without_a_key_counts_rows(past_world: PastWorld, lake_command: Command) -> None:
    """Rows that are equal may come more than once."""
    table = past_world.loaded(primary_key="null")
    table.cdc([("I", (1, "one")), ("I", (1, "one"))])
    assert table.run() == 0

    found = lake_command("diff", str(table.path), "previous", "--output", "json").json

    assert found["counts"] == {"insert": 2, "update": 0, "delete": 0}
    assert "an update is a delete and an insert" in lake_command("diff", str(table.path), "previous").out


def test_diff_refuses_what_is_gone(past_world: PastWorld, lake_command: Command) -> None:
    """The bytes of one state are no more."""
    table = past_world.batched()
    load, _ = changes(table)
    expire(table, load)

    done = lake_command("diff", str(table.path), load)

    assert (done.code, done.out, load in done.err) == (1, "", True)


# --- explain


@pytest.fixture(scope="module")
def lived(kept_world: PastWorld) -> LakeTable:
    """A table with a load, two batches, and one that is rolled back."""
    table = kept_world.history()
    table.cdc([("U", (1, "wrong"))])
    assert table.run() == 0
    assert table.run("Rollback", to="previous") == 0
    return table


def test_explain_tells_the_life_of_a_row(lived: LakeTable, kept_command: Command) -> None:
    """Oldest first; what is undone is counted only."""
    load, first, *_ = changes(lived)

    found = kept_command("explain", str(lived.path), "--key", "1", "--output", "json").json

    assert [(step["change"], step["what"], step["after"]["name"], step["changed"]) for step in found["steps"]] == [
        (load, "insert", "one", []), (first, "update", "ONE", ["name"]),
    ]  # fmt: skip
    assert [(step["source"]["file"].rsplit("/", 1)[-1][:4], step["source"]["row"]) for step in found["steps"]] == [("LOAD", 0), ("2024", 0)]
    assert (found["key"], found["now"], found["undone"], found["files_read"]) == ({"id": 1}, {"id": 1, "name": "ONE"}, 1, 3)


def test_explain_for_people(lived: LakeTable, kept_command: Command) -> None:
    """When, which change, from which row of which raw file; what differs below it."""
    _, first, second, *_ = changes(lived)

    lines = kept_command("explain", str(lived.path), "--key", "4").out.splitlines()

    assert [line.split()[0] for line in lines[:4]] == ["table", "key", "now", "as"]
    assert lines[2].split() == ["now", "no", "such", "row"]
    told = [line for line in lines[4:] if line]
    assert next(line for line in told if first in line).endswith(", row 2")
    assert [line.strip() for line in told if line.startswith("  ")] == ["insert: id=4, name=four", "delete: id=4, name=four"]
    assert [second in line for line in told] == [False, False, True, False, False]
    assert told[-1] == "1 undone change(s) are not part of this"
    assert "no change touched this key" in kept_command("explain", str(lived.path), "--key", "77").out


def test_explain_says_what_is_gone(past_world: PastWorld, lake_command: Command) -> None:
    """The data of one change, and the raw file of another; the life goes on."""
    table = past_world.batched()
    load, _ = changes(table)
    (raw,) = (item.key for item in table.lineage()(load).inputs)
    table.clients.s3.delete_object(Bucket=table.path.bucket, Key=raw)
    expire(table, load)

    done = lake_command("explain", str(table.path), "--key", "1")

    assert done.code == 0
    assert "full-load  from 1 raw file(s) gone or changed" in done.out
    assert "not known: a data file of this change, " in done.out
    assert "not known whether it was there before; there since: id=1, name=ONE" in done.out


@pytest.mark.parametrize(
    ("key", "message"),
    [("x", "'x' is no key of column 'id'"), ("", "'' is no key of column 'id'")],
)
def test_explain_refuses_what_is_no_key(kept_history: LakeTable, kept_command: Command, key: str, message: str) -> None:
    """With exit 2 and the type that is wanted."""
    done = kept_command("explain", str(kept_history.path), "--key", key)

    assert (done.code, done.out, message in done.err) == (2, "", True)


def test_explain_wants_rows(past_world: PastWorld, lake_command: Command) -> None:
    """A table that was never loaded has none."""
    done = lake_command("explain", str(past_world.table().path), "--key", "1")

    assert (done.code, "has no rows yet" in done.err) == (2, True)


def test_keys_of_several_columns_are_read_as_csv() -> None:
    """One value alone is taken as it is."""
    assert split_key("a,b", 1) == ("a,b",)
    assert split_key('7,"a,b"', 2) == ("7", "a,b")
