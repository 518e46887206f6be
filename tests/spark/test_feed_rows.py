"""The rows of a made-up change feed."""

from __future__ import annotations

from collections import Counter
from datetime import date, datetime, timedelta
from itertools import pairwise
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from glue_jobs.core.errors import UsageError
from glue_jobs.core.schema import SIMPLE_TYPES, Column
from glue_jobs.spark.arrow_types import arrow_schema
from glue_jobs.spark.dms_writer import dms_parquet
from glue_jobs.spark.feed_rows import FeedFile, MadeFeed, make_feed
from glue_jobs.spark.feed_values import TEXTS, Values, seeded_faker
from tests.spark.feed_tables import LATER, MADE, SENT, STAMP, applied, bronze_of, sample_rows, wish_of

EVERY_TYPE = (*SIMPLE_TYPES, "decimal(5,2)", "decimal(20,0)", "decimal(3,3)")


def made(rows: pa.Table, **arguments: str) -> tuple[MadeFeed, list[FeedFile]]:
    """A feed of the rows, and its files."""
    wish = wish_of(**arguments)
    feed = make_feed(bronze_of(rows, wish), wish)
    return feed, list(feed.files())


def rows_of(files: list[FeedFile]) -> list[dict[str, Any]]:
    return [row for file in files for row in file.rows.to_pylist()]


def test_columns_are_dmss_then_the_tables() -> None:
    """`Op`, the timestamp column, the table's own without those that only bronze has; the timestamps are texts in order."""
    _, files = made(sample_rows(50))

    assert {tuple(file.rows.column_names) for file in files} == {("Op", "dms_timestamp", *SENT)}
    times = [row["dms_timestamp"] for row in rows_of(files)]
    assert times == sorted(set(times))
    assert str(LATER)[:16] <= times[0][:16] <= times[-1]


def test_an_update_sets_modified_and_leaves_created() -> None:
    """An insert has the time of its change in both; an update changes some other column too; a delete has the row as it was."""
    feed, files = made(sample_rows(100), updated_twice="100%")
    before = {row["id"]: row for row in feed.bronze.rows.to_pylist()}

    for row in rows_of(files):
        op, at = row.pop("Op"), datetime.fromisoformat(row.pop("dms_timestamp") + "+00:00")
        if op == "I":
            assert row["created"] == row["modified"] == at
        elif op == "U":
            assert (row["created"], row["modified"]) == (MADE, at)
            assert {name for name in SENT if row[name] != before[row["id"]][name]} - {"modified"}
        else:
            assert row == before[row["id"]]
        before[row["id"]] = row


def test_shares_and_counts_are_as_asked_for() -> None:
    """Keys updated twice at different times, and a delete of a key inserted in the same feed."""
    feed, files = made(sample_rows(100), inserts="7", updates="20%", updated_twice="50%", deletes="6", deleted_inserts="2")
    lives: dict[int, str] = {}
    for row in rows_of(files):
        lives[row["id"]] = lives.get(row["id"], "") + row["Op"]

    assert Counter(lives.values()) == {"I": 5, "ID": 2, "U": 10, "UU": 10, "D": 4}
    assert feed.expected().num_rows == 100 + 5 - 4


@given(st.integers(0, 12), st.integers(0, 6), st.integers(0, 6), st.integers(0, 6), st.integers(0, 10_000))
@settings(max_examples=60, deadline=None)
def test_the_files_applied_give_the_expected_rows(rows: int, inserts: int, updates: int, deletes: int, seed: int) -> None:
    """What the feed says of itself is what comes out when its files are applied one row after the other."""
    inserts = max(1, inserts)
    updates, deletes = (min(updates, rows), min(deletes, max(0, rows - updates))) if rows else (0, 0)
    more = {"inserts": str(inserts), "updates": str(updates), "deletes": str(deletes), "seed": str(seed)}
    feed, files = made(sample_rows(rows), **more)

    found = applied(feed.bronze.rows, [file.rows for file in files])

    assert found == feed.expected().to_pylist()


def test_the_same_seed_gives_the_same_files_byte_for_byte() -> None:
    """Whatever the order in which the version's rows are read; another seed gives others."""
    rows = sample_rows(60)
    mixed = pa.concat_tables([rows.slice(30), rows.slice(0, 30)])

    def everything(table: pa.Table, seed: str) -> list[tuple[str, bytes]]:
        return [(file.path, dms_parquet(file.rows)) for file in made(table, seed=seed)[1]]

    assert everything(rows, "3") == everything(mixed, "3") != everything(rows, "4")


@pytest.mark.parametrize("name", ["anything", "birth_date", "year", "latitude", "amount"])
@pytest.mark.parametrize("kind", EVERY_TYPE)
def test_values_fit_every_type(kind: str, name: str) -> None:
    """Arrow takes a hundred of each, whatever the column's name says, and those of a time lie before the change."""
    values = Values(seeded_faker(1), Random(1))
    column = Column(name, kind)

    found = pa.array([values.value(column, LATER) for _ in range(100)], arrow_schema((column,)).field(0).type)

    assert found.null_count == 0
    assert len(found.unique()) > 1
    assert kind not in ("date", "timestamp") or max(found.to_pylist()) <= (LATER.date() if kind == "date" else LATER)


def test_texts_are_of_the_columns_name() -> None:
    """Also in camel case; a name that says nothing gets a word."""
    values = Values(seeded_faker(1), Random(1))

    def text(name: str) -> str:
        return str(values.value(Column(name, "string"), LATER))

    assert "@" in text("email")
    assert "@" in text("customerEmail")
    assert text("website_url").startswith("http")
    assert text("description").endswith(".")
    assert text("xyz").isalpha()
    assert all(hasattr(values.faker, method) for _, method in TEXTS)


def test_nulls_are_as_frequent_as_in_the_table() -> None:
    """A column without nulls gets none; one that has only nulls gets nothing else from inserts."""
    rows = sample_rows(50).set_column(3, "color", pa.nulls(50, pa.string()))
    _, files = made(rows, inserts="100", updates="0", deletes="0")

    inserted = rows_of(files)
    assert {row["color"] for row in inserted} == {None}
    assert None not in {row["name"] for row in inserted}
    assert 10 < sum(row["description"] is None for row in inserted) < 60


@pytest.mark.parametrize(
    ("columns", "key"),
    [
        ({"id": ["a", "b"], "v": [1, 2]}, "id"),
        ({"id": [date(2024, 1, 1), date(2024, 1, 2)], "v": [1, 2]}, "id"),
        ({"id": pa.array([5, 6], pa.decimal128(9, 0)), "v": [1, 2]}, "id"),
        ({"id": [1, 1], "line": [1, 2], "v": [1, 2]}, "id,line"),
        ({"id": ["a", "a"], "line": ["x", "y"], "v": [1, 2]}, "id,line"),
        ({"id": [b"a", b"b"], "v": [1.5, 2.5]}, "id"),
    ],
)
def test_new_keys_are_free_for_keys_of_any_kind(columns: dict[str, list[Any]], key: str) -> None:
    """Whole numbers count on; texts, dates and others are drawn until one is free."""
    feed, files = made(pa.table(columns), primary_key=key, inserts="5", updates="1", deletes="1", deleted_inserts="0")

    found = applied(feed.bronze.rows, [file.rows for file in files], tuple(key.split(",")))

    assert found == feed.expected().to_pylist()
    assert len(found) == 2 + 5 - 1


FAR_DAYS = pa.array([-719_529, 0, 2_932_897, 2_932_898], pa.int32()).cast(pa.date32())  # before the year 0, and after 9999
FAR_TIMES = pa.array([-62_167_219_200_000_001, 0, 253_402_300_800_000_000, 2**62], pa.int64()).cast(STAMP)


@pytest.mark.parametrize("key", ["id", "day", "at", "id,day", "day,id"])
def test_dates_and_times_of_any_year_stay_as_they_are(key: str) -> None:
    """In keys and in other columns; an update may give such a column a value of our time."""
    rows = pa.table({"id": [1, 2, 3, 4], "day": FAR_DAYS, "at": FAR_TIMES, "v": ["a", "b", "c", "d"]})
    feed, files = made(rows, primary_key=key, inserts="2", updates="3", deletes="1", deleted_inserts="0", updated_twice="1")
    numbers = {"day": pa.int32(), "at": pa.int64()}

    def plain(table: pa.Table) -> pa.Table:
        """Days and microseconds since 1970 in the place of dates and times."""
        return table.cast(pa.schema([field.with_type(numbers.get(field.name, field.type)) for field in table.schema]))

    found = applied(plain(feed.bronze.rows), [plain(file.rows) for file in files], tuple(key.split(",")))

    assert found == plain(feed.expected()).to_pylist()
    assert len(found) == 4 + 2 - 1


def test_keys_can_run_out() -> None:
    """A small integer has 127 keys; a boolean two."""
    for values in (pa.array([126], pa.int8()), pa.array([True, False])):
        rows = pa.table({"id": values, "v": [1] * len(values)})
        with pytest.raises(UsageError) as caught:
            made(rows, inserts="2", updates="0", deletes="0")
        assert caught.value.code == "no-free-key"


def test_a_table_of_keys_alone_has_nothing_to_update() -> None:
    """Nor one with only the time of creation beside them."""
    rows = sample_rows(5).select(["id", "created"])

    with pytest.raises(UsageError) as caught:
        made(rows, updates="1")
    assert caught.value.code == "nothing-to-update"
    assert made(rows, updates="0", inserts="1", deletes="1")[0].counts.updates == 0


@pytest.mark.parametrize("kind", [pa.date32(), pa.string(), pa.int64()])
def test_modified_of_other_types(kind: pa.DataType) -> None:
    """A date and a text say the time of the change; a number is a column like any other."""
    held = {"date32[day]": date(2020, 1, 1), "string": "old", "int64": 5}[str(kind)]
    rows = pa.table({"id": [1, 2, 3], "v": ["a", "b", "c"], "modified": pa.array([held] * 3, kind)})
    _, files = made(rows, updates="3", updated_twice="0", inserts="0", deletes="0")

    for row in rows_of(files):
        wanted = {"date32[day]": date.fromisoformat(row["dms_timestamp"][:10]), "string": row["dms_timestamp"]}.get(str(kind))
        assert wanted is None or row["modified"] == wanted


@pytest.mark.parametrize(
    ("code", "columns", "arguments"),
    [
        ("no-key-column", {"number": [1]}, {}),
        ("null-key", {"id": [1, None]}, {}),
        ("key-not-unique", {"id": [1, 2, 1]}, {}),
        ("key-not-unique", {"a": [1, 1], "b": ["x", "x"]}, {"primary_key": "a,b"}),
        ("key-not-unique", {"id": FAR_DAYS.take(pa.array([3, 3]))}, {}),
        ("unsupported-type", {"id": [1], "many": [[1, 2]]}, {}),
        ("reserved-column", {"id": [1], "Op": ["I"]}, {}),
        ("reserved-column", {"id": [1], "dms_timestamp": ["x"]}, {}),
        ("reserved-column", {"id": [1], "ts": ["x"]}, {"timestamp_column": "ts"}),
        ("reserved-column", {"id": [1], "__op": ["x"]}, {}),
    ],
)
def test_versions_that_no_feed_can_be_made_of(code: str, columns: dict[str, list[Any]], arguments: dict[str, str]) -> None:
    """Each has its error; a column in the way can be left out."""
    with pytest.raises(UsageError) as caught:
        made(pa.table(columns), **arguments)
    assert caught.value.code == code


def test_files_are_an_interval_apart() -> None:
    """Their names say when; the rows of each are of the interval before."""
    _, files = made(sample_rows(200), interval_seconds="3600", files="4", start="2024-07-01T22:00:00Z")

    assert [file.path for file in files] == [
        "2024/07/01/20240701-230000000.parquet",
        "2024/07/02/20240702-000000000.parquet",
        "2024/07/02/20240702-010000000.parquet",
        "2024/07/02/20240702-020000000.parquet",
    ]
    firsts = [datetime.fromisoformat(file.rows.column("dms_timestamp")[0].as_py()) for file in files]
    assert all(timedelta(0) < after - before < timedelta(hours=2) for before, after in pairwise(firsts))
