"""Row changes of one change after the other: applied to the rows of a state they give those of a later one, on Arrow and on Spark."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from glue_jobs.aws.clients import Clients
from glue_jobs.core.errors import UsageError
from glue_jobs.core.feed_wish import read_feed_wish
from glue_jobs.core.limits import Limits
from glue_jobs.core.snapshot import Snapshot
from glue_jobs.generate_feed import generate
from glue_jobs.past import open_past
from glue_jobs.protocol.steps import states_between
from glue_jobs.spark.arrow_types import conform
from glue_jobs.spark.change_feed import change_feed, change_frame, feed_schema
from glue_jobs.spark.past import past_table
from glue_jobs.spark.place import Place
from glue_jobs.spark.reading import reading_place
from infra.local.embedded import EmbeddedAws
from tests.aws.plain_gets import plain_gets
from tests.spark.tables import SHOP, WorkTable
from tests.work_tables import MakeTable

LOADED = [(1, "a", 1), (2, "b", 2), (3, "c", 3)]
WIDER = pa.schema([("id", pa.int64()), ("name", pa.string()), ("qty", pa.int64()), ("score", pa.float64())])
Row = tuple[Any, ...]


def place_of(table: WorkTable) -> Place:
    return reading_place(table.environment, table.path.bucket, table.out_path, Limits())


def states(table: WorkTable, start: str = "", end: str | None = None) -> list[Snapshot]:
    return list(states_between(table.clients.s3, table.out_path, table.lineage(), start, table.item()["Head"] if end is None else end))


def same(row: Row) -> Row:
    """The row with a NaN that equals itself."""
    return tuple("NaN" if value != value else value for value in row)


def rows_of(table: WorkTable, state: Snapshot, feed: list[Snapshot]) -> Counter[Row]:
    """The rows of a state in the feed's columns."""
    rows = conform(past_table(place_of(table), "t", state).read(), feed_schema(feed), "rows")
    return Counter(same(tuple(row.values())) for row in rows.to_pylist())


def applied(rows: Counter[Row], feed: list[Row]) -> Counter[Row]:
    """The rows after the changes (rows with kind, version, time at their end); none may delete what isn't there."""
    rows = Counter(rows)
    for *values, kind, _, _ in feed:
        if kind in ("delete", "update_preimage"):
            assert rows[same(tuple(values))] > 0
            rows[same(tuple(values))] -= 1
        else:
            rows[same(tuple(values))] += 1
    return +rows


def arrow_rows(table: WorkTable, chosen: list[Snapshot]) -> list[Row]:
    return [tuple(row.values()) for part in change_feed(place_of(table), "t", chosen) for row in part.to_pylist()]


def full_of_changes(table: WorkTable) -> WorkTable:
    """Moves between partitions, nulls that come and go, a wider type, a new column, a NaN, a rollback, and a batch after it."""
    table.load(LOADED)
    assert table.run("LoadInitial") == 0
    table.cdc([("U", (1, None, 1)), ("D", (2, None, 2)), ("I", (4, "d", None))])
    assert table.run() == 0
    table.cdc([("U", (1, "x", 2, float("nan"))), ("U", (3, "c", 2**40, None))], columns=WIDER)
    assert table.run() == 0
    assert table.run("Rollback", to="previous", resume="true", skip="true") == 0
    table.cdc([("U", (4, "e", 5))])
    assert table.run() == 0
    return table


@pytest.fixture(scope="module")
def busy(embedded_aws: EmbeddedAws, embedded_clients: Clients) -> WorkTable:
    """Such a table, for tests that change nothing."""
    aws = embedded_aws
    return full_of_changes(WorkTable(aws.environment(), aws.raw, aws.lake, SHOP, shared=embedded_clients, partition_key="qty"))


@pytest.fixture
def quick_spark(spark: Any) -> Iterator[Any]:
    """Spark with few tasks after a shuffle: each of them takes as long as all the rows here."""
    before = spark.conf.get("spark.sql.shuffle.partitions")
    spark.conf.set("spark.sql.shuffle.partitions", "1")
    yield spark
    spark.conf.set("spark.sql.shuffle.partitions", before)


def test_changes_between_any_two_states_make_one_of_the_other(busy: WorkTable) -> None:
    """Every pair, the state before the first change included; each row change names its change and its time."""
    table = busy
    every = states(table)

    for start in range(len(every)):
        for end in range(start, len(every)):
            chosen = states(table, every[start].change, every[end].change)
            assert [(state.change, state.files) for state in chosen] == [(state.change, state.files) for state in every[start : end + 1]]
            feed = arrow_rows(table, chosen)
            assert applied(rows_of(table, every[start], chosen), feed) == rows_of(table, every[end], chosen)
            assert {row[-2] for row in feed} <= {state.change for state in chosen[1:]}

    times = {row[-2]: row[-1].isoformat(timespec="microseconds")[:26] for row in arrow_rows(table, every)}
    assert times == {state.change: state.time[:26].rstrip("Z") for state in every[1:]}
    rollback = [row[:-1] for row in arrow_rows(table, every[3:5])]
    assert (1, "x", 2, "update_preimage", every[4].change) in [(*row[:3], *row[-2:]) for row in rollback]


EVENTS = st.lists(
    st.tuples(st.sampled_from("IUD"), st.integers(0, 4), st.none() | st.sampled_from(["", "a"]), st.none() | st.integers(0, 1))
)


@settings(max_examples=4, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(EVENTS, min_size=1, max_size=3), st.sampled_from(["id", "null"]))
def test_any_batches_are_told(new_table: MakeTable, batches: list[list[Any]], key: str) -> None:
    """With a key and without."""
    table = new_table(primary_key=key)
    table.load(LOADED)
    assert table.run("LoadInitial") == 0
    for batch in filter(None, batches):
        table.cdc([(op, (number, name, qty)) for op, number, name, qty in batch])
        assert table.run() == 0
    every = states(table)

    feed = arrow_rows(table, every)

    assert applied(Counter(), feed) == rows_of(table, every[-1], every)


def test_programs_name_a_table_and_moments(busy: WorkTable) -> None:
    """By its short name, by changes, times and `previous`, as on the command line."""
    past = open_past(f"shop.{busy.table}", busy.environment)
    every = states(busy)
    (lasts,) = past.changes("previous")

    assert past.table(every[1].time).change == every[1].change
    assert sorted(past.table(every[1].change).read().to_pylist(), key=str) == [dict(zip(SHOP.names, row, strict=True)) for row in LOADED]
    assert [(row["name"], row["_change_type"]) for row in lasts.to_pylist()] == [("d", "update_preimage"), ("e", "update_postimage")]
    with pytest.raises(UsageError, match="is before"):
        list(past.changes("", "previous"))


def test_spark_tells_the_same(busy: WorkTable, quick_spark: Any) -> None:
    """The rollback of a batch that changed the columns: files of several partitions, nulls and a NaN."""
    chosen = states(busy)[3:5]

    frame = change_frame(quick_spark, place_of(busy), "t", chosen)

    assert frame.columns == ["id", "name", "qty", "_change_type", "_commit_version", "_commit_timestamp"]
    assert Counter(map(tuple, frame.drop("_commit_timestamp").collect())) == Counter(row[:-1] for row in arrow_rows(busy, chosen))


def test_spark_compares_keys_as_the_table_does(served_table: MakeTable, quick_spark: Any) -> None:
    """Of a key that is spelled otherwise now the row was updated: it is not another row."""
    columns = pa.schema([("qty", pa.int32()), ("name", pa.string())])
    table = served_table(columns=columns, primary_key="name")
    table.edit(KeyCollation="ci")
    table.load([(1, "abc"), (2, "x")])
    assert table.run("LoadInitial") == 0
    table.cdc([("U", (3, "ABC")), ("I", (4, "y"))])
    assert table.run() == 0
    every = states(table)[-2:]

    found = change_frame(quick_spark, place_of(table), "t", every)

    (told,) = change_feed(place_of(table), "t", every)
    assert found.columns == told.column_names
    rows = Counter(tuple(row)[:3] for row in found.collect())
    assert rows == Counter(tuple(row.values())[:3] for row in told.to_pylist())
    assert rows[(1, "abc", "update_preimage")] == rows[(3, "ABC", "update_postimage")] == 1


def test_spark_counts_rows_without_a_key(served_table: MakeTable, quick_spark: Any) -> None:
    """Two equal rows are two inserts; states that are alike have no changes; the time is the change's."""
    table = served_table(primary_key="null")
    table.load([(1, "a", None), (1, "a", None)])
    assert table.run("LoadInitial") == 0
    every = states(table)

    found = change_frame(quick_spark, place_of(table), "t", every).selectExpr("*", "unix_micros(_commit_timestamp) AS micros").collect()

    (told,) = change_feed(place_of(table), "t", every)
    assert [tuple(row)[:4] for row in found] == [(1, "a", None, "insert")] * 2
    assert [row["micros"] for row in found] == told["_commit_timestamp"].cast(pa.int64()).to_pylist()
    assert change_frame(quick_spark, place_of(table), "t", every[1:]).columns == told.column_names


def test_only_files_that_differ_are_read(new_table: MakeTable) -> None:
    """Of ten partitions a batch touched one."""
    table = new_table(partition_key="qty")
    table.load([(number, "x", number) for number in range(10)])
    assert table.run("LoadInitial") == 0
    table.cdc([("U", (3, "y", 3))])
    assert table.run() == 0
    keys: list[str] = []
    place = place_of(table)
    place.s3.meta.events.register("before-call.s3.GetObject", lambda params, **_: keys.append(params["url_path"]))

    with plain_gets():
        rows = arrow_rows(table, states(table)[1:])

    assert ([row[3] for row in rows], len(keys)) == (["update_preimage", "update_postimage"], 2)


@pytest.mark.usefixtures("names_of_any_age")
def test_wrong_orders_and_types_are_refused(new_table: MakeTable) -> None:
    """The later state first; a table that was loaded again with a text where a number was."""
    table = new_table()
    table.load(LOADED)
    assert table.run("LoadInitial") == 0
    table.cdc([("U", (1, "b", 1))])
    assert table.run() == 0
    load, batch = (state.change for state in states(table)[1:])

    with pytest.raises(UsageError, match="is before"):
        states(table, batch, load)
    table.load([(1, "a", "x")], columns=pa.schema([("id", pa.int64()), ("name", pa.string()), ("qty", pa.string())]))
    table.edit(LoadQuietMinutes="0")
    assert table.run("LoadInitial") == 0
    with pytest.raises(UsageError, match="'qty' has another type"):
        feed_schema(states(table))


@pytest.mark.parametrize("name", ["_change_type", "_commit_version", "_commit_timestamp"])
def test_a_table_with_a_column_of_the_feed_s_own_has_none(new_table: MakeTable, tmp_path: Path, name: str) -> None:
    """No two columns of one name come out, and a generated feed leaves no file behind; renamed, the column is as any other."""
    table = new_table(pa.schema([("id", pa.int64()), (name, pa.string())]))
    table.environment = {"DMSLAKE_DATABASE": "", **table.environment}
    table.load([(1, "a"), (2, "b")])
    table.sync()
    table.cdc([("U", (1, "A"))])
    table.sync()
    wish = {"path": str(table.path), "from": "previous", "staging": str(tmp_path / "feed"), "full_load": "true"}

    for made in (lambda: arrow_rows(table, states(table)[1:]), lambda: generate(read_feed_wish(wish), table.environment)):
        with pytest.raises(UsageError, match=repr(name)) as caught:
            made()
        assert caught.value.code == "reserved-column"
    assert not [each for each in tmp_path.rglob("*") if each.is_file()]
    table.edit(Request=f"schema-rename:{name}=kind")
    table.sync()
    assert [column.name for column in feed_schema(states(table))] == ["id", "kind"]
