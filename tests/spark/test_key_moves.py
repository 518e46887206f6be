"""Statements that give rows the keys of other rows: a table of the database, told one statement at a time, and what a batch makes of it."""

from __future__ import annotations

import random
import uuid
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from glue_jobs.core.schema import Column
from glue_jobs.spark.net_changes import (
    DELETE,
    HELD,
    INSERT,
    MOVES_IN,
    MOVES_OUT,
    OP,
    POSITION,
    STAYS,
    STEPS,
    UPDATE,
    NetChanges,
    net_changes,
)
from glue_jobs.spark.place import Shape
from glue_jobs.spark.ranking import rank
from glue_jobs.spark.rows import settled_winners
from tests.snapshots import SnapshotTable
from tests.spark.histories import check_history
from tests.spark.tables import WorkTable
from tests.spark.test_explain import told as life_told
from tests.spark.test_key_changes import COLUMNS, IMAGES, _images
from tests.spark.test_replay_rows import differences
from tests.spark.test_shuffle import STRATEGIES
from tests.spark.test_staged_rows import kept, staged_by
from tests.work_tables import IN_PROCESS, MakeTable

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SHAPE = Shape("t", (Column("id", "int"), Column("text", "string"), Column("at", "int")), ("id",))
Rows = dict[int, str]
Change = tuple[str, int, str, int, int]  # operation, key, text, the key before, when it was committed
Statement = list[tuple[str, int, int]]  # operation, key, new key


@st.composite
def statements(draw: st.DrawFn) -> list[Statement]:
    """Inserts, updates, deletes, and statements that move the rows of some keys to others, in whatever order the log has them."""
    found: list[Statement] = []
    for _ in range(draw(st.integers(1, 6))):
        kind = draw(st.sampled_from(["upsert", "delete", "move", "move", "move"]))
        if kind != "move":
            found.append([(kind, draw(st.integers(1, 5)), 0)])
            continue
        olds = draw(st.lists(st.integers(1, 5), min_size=1, max_size=5, unique=True))
        news = draw(st.lists(st.integers(1, 6), min_size=len(olds), max_size=len(olds), unique=True))
        found.append([("move", old, new) for old, new in zip(olds, news, strict=True)])
    return found


def told(rows: Rows, statement: Statement, number: int, sets: bool) -> list[Change] | None:
    """What the log says of a statement, which is done to `rows`; None where the database refuses it. sets: it changes the text, too."""
    log: list[Change] = []
    if statement[0][0] != "move":
        kind, key, _ = statement[0]
        if kind == "delete":
            return [("D", key, rows.pop(key), 0, number)] if key in rows else None
        log = [("U" if key in rows else "I", key, f"text {number}", key if key in rows else 0, number)]
        rows[key] = f"text {number}"
        return log
    moves = {old: new for _, old, new in statement if old in rows}
    after = {key: text for key, text in rows.items() if key not in moves}
    if not moves or set(moves.values()) & set(after):
        return None
    for old, new in moves.items():
        after[new] = f"{rows[old]}, {number}" if sets else rows[old]
        log.append(("U", new, after[new], old, number))
    rows.clear()
    rows.update(after)
    return log


def changes_of(log: list[Change]) -> pa.Table:
    """As read_unit gives them."""
    found: list[tuple[int, str, int, int, int]] = []
    for at, (op, key, text, old, when) in enumerate(log):
        moves = op == "U" and old != key
        if moves:
            found.append((old, text, when, DELETE, at * STEPS + MOVES_OUT))
        found.append((key, text, when, "IUD".index(op), at * STEPS + (MOVES_IN if moves else STAYS)))
    types = pa.schema([("id", pa.int32()), ("text", pa.string()), ("at", pa.int32()), (OP, pa.int8()), (POSITION, pa.int64())])
    return pa.table([list(column) for column in zip(*found, strict=True)] or [[]] * 5, schema=types)


def applied(rows: Rows, net: NetChanges) -> Rows:
    after = dict(rows)
    for key, text, op in zip(net.table["id"].to_pylist(), net.table["text"].to_pylist(), net.ops.tolist(), strict=True):
        if op == DELETE:
            after.pop(key, None)
        elif op in (INSERT, UPDATE) or (op == HELD and key in after):
            after[key] = text
    return after


SHIFT: Statement = [("move", 1, 2), ("move", 2, 3), ("move", 3, 4)]
DOWN: Statement = [("move", 3, 4), ("move", 2, 3), ("move", 1, 2)]


@settings(max_examples=600, deadline=None)
@given(statements(), st.dictionaries(st.integers(1, 5), st.sampled_from("abcde")), st.booleans(), st.integers(0, 6), st.integers(0, 6))
@example([SHIFT], {1: "a", 2: "b", 3: "c"}, False, 0, 0)
@example([[("move", 1, 2), ("move", 2, 1)]], {1: "a", 2: "b"}, False, 0, 0)
@example([[("move", 1, 2)], [("move", 2, 3)]], {1: "a"}, False, 0, 0)
@example([SHIFT, [("upsert", 1, 0)], DOWN], {1: "a", 2: "b", 3: "c"}, True, 0, 1)
def test_a_batch_ends_as_the_database_did(found: list[Statement], first: Rows, sets: bool, sent: int, again: int) -> None:
    """Whatever moved where; also where the log is sent again from some statement on, in the same batch or in the next one."""
    rows = dict(first)
    log: list[list[Change]] = []
    for number, statement in enumerate(found):
        log += [said for said in [told(rows, statement, number, sets)] if said]
    # DMS begins once more, with statements that it has sent.
    flat = [change for statement in (*log[:sent], *log[min(sent, again) :]) for change in statement]

    after = applied(first, net_changes(rank(changes_of(flat), SHAPE.key), SHAPE))

    assert after == rows
    rest = [change for statement in log[again:] for change in statement]
    assert applied(after, net_changes(rank(changes_of(rest), SHAPE.key), SHAPE)) == rows


PEOPLE = Shape("t", (Column("id", "int"), Column("home", "string"), Column("work", "string")), ("id",))
STATEMENTS: list[Statement] = [
    SHIFT, DOWN, [("move", 1, 2), ("move", 2, 1)], [("move", 2, 9)], [("move", 1, 2)], [("upsert", 2, 0)], [("delete", 2, 0)]
]  # fmt: skip


def people_of(log: list[Change]) -> pa.Table:
    """The same with the text in one of two columns and null in the other, as it says behind a stroke."""
    found = changes_of(log)
    pairs = [text.partition("|")[::2] for text in found["text"].to_pylist()]
    home, work = ([text if place == which else None for text, place in pairs] for which in ("", "w"))
    columns = [found["id"], pa.array(home, pa.string()), pa.array(work, pa.string()), found[OP], found[POSITION]]
    return pa.table(columns, names=["id", "home", "work", OP, POSITION])


def test_spark_ranks_as_the_driver_does(spark: SparkSession) -> None:
    """Any order of such statements, some of it sent again. Two rows that differ in nothing but where they have null are two."""
    rng, tables = random.Random(7), []
    for number in range(400):
        rows: Rows = {1: "555|w", 2: "555|", 3: "555|w"}
        logs = [told(rows, statement, at, False) for at, statement in enumerate(rng.choices(STATEMENTS, k=4))]
        log = [said for said in logs if said]
        sent = log[: rng.randrange(4)] + log[rng.randrange(2) :]
        table = people_of([change for statement in sent for change in statement])
        table = table.set_column(0, "id", pc.add(table["id"], pa.scalar(number * 100, pa.int32())))
        tables.append(table.set_column(4, POSITION, pc.add(table[POSITION], number << 20)))
    changes = pa.concat_tables(tables)
    names = ["c0", "c1", "c2", "op", "position"]
    frame = spark.createDataFrame([tuple(row.values()) for row in changes.rename_columns(names).to_pylist()], PEOPLE_TYPES)

    ranked = settled_winners(frame, PEOPLE, names).collect()

    driver = rank(changes, PEOPLE.key).rename_columns(names).to_pylist()
    assert sorted(map(said_of, driver)) == sorted(said_of(row.asDict()) for row in ranked)
    assert {row["op"] for row in driver} >= {UPDATE, DELETE, HELD}


PEOPLE_TYPES = "c0 int, c1 string, c2 string, op tinyint, position bigint"


def said_of(row: dict[str, Any]) -> tuple[Any, ...]:
    values = ("", "") if row["op"] == DELETE else (str(row["c1"]), str(row["c2"]))
    return (row["c0"], row["op"], row["position"], *values)


MOVES = (
    ("U", ("a", 2, "n1"), ("a", 1, "n1")),  # one on, all at once
    ("U", ("a", 3, "n2"), ("a", 2, "n2")),
    ("U", ("a", 7, "n3"), ("a", 3, "n3")),
    ("U", ("a", 5, "n4"), ("a", 4, "n4")),  # an exchange
    ("U", ("a", 4, "n5"), ("a", 5, "n5")),
    ("U", ("a", 8, "n6"), ("a", 6, "n6")),  # one row, one after the other
    ("U", ("a", 9, "n6"), ("a", 8, "n6")),
)
AFTER = [("a", 2, "n1"), ("a", 3, "n2"), ("a", 4, "n5"), ("a", 5, "n4"), ("a", 7, "n3"), ("a", 9, "n6")]


@pytest.fixture
def keeping(spark_table: MakeTable) -> WorkTable:
    """A loaded table of six rows, with a history."""
    table = spark_table(COLUMNS, primary_key="id")
    table.environment = {"DMSLAKE_DATABASE": "", **table.environment}
    table.edit(History="true")
    table.load([("a", number, f"n{number}") for number in range(1, 7)])
    table.sync()
    return table


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_rows_that_take_each_others_keys_are_kept(keeping: WorkTable, strategy: str) -> None:
    """In the lake, in its history, and where they are made anew from the raw files."""
    keeping.cdc(_images(*MOVES), columns=IMAGES)

    assert keeping.run(**STRATEGIES[strategy]) == 0, keeping.last_run()

    assert sorted(keeping.rows()) == AFTER
    check_history(keeping)
    replays(keeping)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_such_a_row_may_come_from_another_partition(spark_table: MakeTable, strategy: str) -> None:
    """It takes the place of a row in another folder, which is gone from there."""
    table = spark_table(COLUMNS, primary_key="id", partition_key="shop")
    table.load([("a", 1, "n1"), ("b", 2, "n2"), ("b", 3, "n3")])
    table.sync()
    table.cdc(_images(("U", ("a", 2, "n1"), ("a", 1, "n1")), ("U", ("b", 1, "n2"), ("b", 2, "n2"))), columns=IMAGES)

    assert table.run(**STRATEGIES[strategy]) == 0, table.last_run()

    columns = table.read().select(["shop", "id", "name"])
    assert sorted(zip(*(column.to_pylist() for column in columns.columns), strict=True)) == [("a", 2, "n1"), ("b", 1, "n2"), ("b", 3, "n3")]
    table.check_folder()


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_look_at_a_staged_batch_shows_them(keeping: WorkTable, strategy: str) -> None:
    """Before the commit: what becomes of each key."""
    keeping.cdc(_images(*MOVES[:2], *MOVES[5:]), columns=IMAGES)

    staged = staged_by(keeping, **STRATEGIES[strategy])

    told = [(row["_change_type"], row["id"], row["name"]) for row in kept(keeping, staged).to_pylist()]
    assert sorted(told) == sorted(
        [
            ("delete", 1, "n1"),
            ("update_preimage", 2, "n2"),
            ("update_postimage", 2, "n1"),
            ("update_preimage", 3, "n3"),
            ("update_postimage", 3, "n2"),
            ("delete", 6, "n6"),
            ("insert", 9, "n6"),
        ]
    )
    assert staged.counts.table_rows == 5


def test_the_life_of_a_key_names_the_row_that_moved_to_it(keeping: WorkTable) -> None:
    """Not the one after it, which moved on."""
    keeping.cdc(_images(*MOVES), columns=IMAGES)
    keeping.sync()

    assert [life_told(keeping, key)[-1][-1] for key in "1234579"] == [0, 0, 1, 4, 3, 2, 6]


def test_a_statement_cut_in_two_is_found_by_a_replay(keeping: WorkTable) -> None:
    """Of a batch that begins with a row that moves out nothing tells whether another one came before. All files together say it."""
    for number in (0, 1):
        keeping.cdc(_images(MOVES[number]), columns=IMAGES)

    keeping.sync(batch_files="1")

    assert [row for row in keeping.rows() if row[1] < 4] == [("a", 3, "n2")]
    assert [finding.found.partition(": ")[2] for finding in differences(keeping)] == ["id=2: missing"]


def test_a_file_with_such_rows_may_come_late(keeping: WorkTable) -> None:
    """After one that changed the row of a key that was taken."""
    early, late = keeping.next_name(), keeping.next_name()
    keeping.cdc(_images(("U", ("a", 5, "later"), ("a", 5, "n4"))), columns=IMAGES, name=late)
    keeping.sync()
    keeping.cdc(_images(*MOVES), columns=IMAGES, name=early)

    keeping.sync()

    assert keeping.head().kind == "late"
    assert sorted(keeping.rows()) == [("a", 5, "later") if row[1] == 5 else row for row in AFTER]
    check_history(keeping)
    replays(keeping)


def replays(table: WorkTable) -> None:
    assert differences(table) == []
    assert differences(table, replay_bytes=1) == []


@pytest.fixture(params=["", "by Spark", "by Spark, in partitions"])
def versions(request: pytest.FixtureRequest) -> tuple[SnapshotTable, dict[str, str]]:
    """A raw folder, and how its snapshots are made."""
    columns = pa.schema([("id", pa.int64()), ("name", pa.string()), ("day", pa.string())])
    if not request.param:
        clients, environment, raw, lake = request.getfixturevalue("in_process"), IN_PROCESS, "s3://raw/", "s3://lake/"
        return SnapshotTable(clients, environment, raw, f"{lake}{uuid.uuid4().hex[:6]}/", columns, None), {}
    request.getfixturevalue("spark")
    aws = request.getfixturevalue("embedded_aws")
    settings = {"driver_bytes": "0"}
    table = SnapshotTable(
        request.getfixturevalue("embedded_clients"), aws.environment(), aws.raw, aws.lake, columns, None, settings=settings
    )
    return table, {"layout": "dated", "partition_date": "day"} if "partitions" in request.param else {}


def test_a_snapshot_keeps_them(versions: tuple[SnapshotTable, dict[str, str]]) -> None:
    """A version made of the load and all changes, and one that goes on from the version before."""
    table, layout = versions
    images = pa.schema([*table.columns, ("BI_id", pa.int64())])

    def moved(*moves: tuple[int, int, str]) -> list[tuple[str, tuple[object, ...]]]:
        return [("U", (key, name, f"2024-01-0{name[1]}", old)) for old, key, name in moves]

    table.put("LOAD00000001.parquet", [("I", (number, f"n{number}", f"2024-01-0{number}")) for number in (1, 2, 3)])
    table.put("20240501-000001000.parquet", moved((1, 2, "n1"), (2, 3, "n2"), (3, 4, "n3")), images)
    table.take(**layout)
    assert {row["id"]: row["name"] for row in table.rows()} == {2: "n1", 3: "n2", 4: "n3"}
    table.put("20240501-000002000.parquet", moved((2, 3, "n1"), (3, 2, "n2"), (4, 5, "n3"), (5, 6, "n3")), images)

    table.take(**layout)

    assert {row["id"]: row["name"] for row in table.rows()} == {2: "n2", 3: "n1", 6: "n3"}
