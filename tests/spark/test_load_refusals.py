"""Input that can't be taken: the table is blocked with a message that says all, nothing of it has changed, and it is tried again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

from glue_jobs import load_initial
from tests.lake import DRIVER
from tests.spark.tables import SHOP, WorkTable
from tests.work_tables import IN_PROCESS, MakeTable

NO_KEY = pa.schema([("name", pa.string()), ("qty", pa.int32())])
Make = tuple[MakeTable, dict[str, str]]


@pytest.fixture(params=["driver", "spark"])
def make(request: pytest.FixtureRequest) -> Make:
    """A maker of tables, and the settings with which their work is done by one process or by Spark."""
    if request.param == "driver":
        return request.getfixturevalue("new_table"), {}
    return request.getfixturevalue("spark_table"), {"driver_bytes": "0"}


def _mark(table: WorkTable) -> tuple[Any, ...]:
    """What a blocked table must still have: the files, the head, the cursor."""
    item = table.item()
    return table.visible(), item.get("Head"), item["LastIncrementalFile"]


def _flipped(data: bytes) -> bytes:
    """The file with a damaged page header: the footer is whole."""
    return data[:4] + bytes(byte ^ 0xFF for byte in data[4:40]) + data[40:]


# What a broken file is made of, given a good one.
BROKEN: dict[str, Callable[[bytes], bytes]] = {
    "no bytes": lambda _: b"",
    "no Parquet": lambda _: b"<html>Service Unavailable</html>",
    "cut in the middle": lambda data: data[: len(data) // 2],
    "without its last byte": lambda data: data[:-1],
    "a damaged footer": lambda data: data[:-60] + b"\0" * 40 + data[-20:],
    "a damaged page": _flipped,
}
CHANGES = [("U", (1, "changed", 1)), ("D", (2, None, None)), ("I", (3, "c", 3))]


@pytest.mark.parametrize("breaks", BROKEN.values(), ids=BROKEN.keys())
@pytest.mark.parametrize("kind", ["load", "batch", "second file"])
def test_a_broken_file_blocks_the_table(new_table: MakeTable, kind: str, breaks: Callable[[bytes], bytes]) -> None:
    """Wherever it stands, the table stays as it was; a whole file in its place is taken by the next run."""
    table = new_table()
    name = "LOAD00000001.parquet" if kind == "load" else "20240501-130000000.parquet"
    if kind != "load":
        table.load([(1, "a", 1), (2, "b", 2)])
        table.sync()
    if kind == "second file":
        table.cdc(CHANGES)
    good = table.parquet(CHANGES)
    key = table.put_raw(name, breaks(good))
    before = _mark(table)

    error = table.blocked()

    assert error["code"] == "bad-raw-file"
    assert f"s3://raw/{key}" in error["message"]
    assert "expected: a whole Parquet file" in error["message"]
    assert "--skip-file" in error["todo"]
    assert _mark(table) == before
    assert [table.run("LoadIncremental"), table.item()["LastRun"]["outcome"]] == [1, "blocked"], "known, not read again"
    table.put_raw(name, good)
    table.sync()
    assert table.rows() == [(1, "changed", 1), (3, "c", 3)]
    assert "Blocked" not in table.item()


def test_a_broken_file_may_be_skipped(new_table: MakeTable) -> None:
    """SkipFiles names it: the batch goes on without it, and the record says so."""
    table = new_table()
    table.load([(1, "a", 1)])
    bad = table.put_raw("20240501-110000000.parquet", b"PAR1")
    table.cdc([("U", (1, "b", 1))])
    table.blocked()
    table.edit(SkipFiles="20240501-110000000.parquet")

    table.sync()

    assert table.rows() == [(1, "b", 1)]
    assert [item.key for item in table.head().skipped] == [bad]


@pytest.mark.parametrize("name", ["orders.parquet", "LOAD1.parquet", "20240230-120000000.parquet", "20240501-120000000.orc"])
def test_a_file_that_dms_does_not_name_so_blocks_the_table(new_table: MakeTable, name: str) -> None:
    """Nobody knows where its rows belong: not even the files beside it are taken."""
    table = new_table()
    table.load([(1, "a", 1)])
    key = table.put_raw(name, table.parquet([("I", (2, "b", 2))]))

    error = table.blocked()

    assert error["code"] == "foreign-raw-file"
    for text in (f"s3://raw/{key}", "LOAD00000001.parquet", name):
        assert text in error["message"]
    assert table.visible() == set()
    table.delete_raw(name)
    table.sync()
    assert table.rows() == [(1, "a", 1)]


@pytest.mark.parametrize("kind", ["load", "batch"])
def test_a_null_key_blocks_the_table(make: Make, kind: str) -> None:
    """The message names file, row and column; in a Spark task too. Another key, or a whole file, is a way out."""
    table = make[0]()
    table.load([(1, "a", 1), (2, "b", 2)], 1)
    if kind == "batch":
        table.sync(**make[1])
        key = table.cdc([("U", (2, "b", 2)), ("U", (None, "c", 3))])
    else:
        key = table.load([(3, "c", 3), (None, "d", 4)], 2)
    before = _mark(table)

    error = table.blocked(**make[1])

    assert error["code"] == "null-key"
    for text in (f"{key}, row 1", "'id'"):
        assert text in error["message"]
    assert _mark(table) == before
    table.delete_raw(key.rsplit("/", 1)[1])
    table.sync(**make[1])
    assert len(table.rows()) == 2


@pytest.mark.parametrize("kind", ["load", "batch"])
def test_a_file_without_the_key_column_blocks_the_table(new_table: MakeTable, kind: str) -> None:
    """Read as null it would be a null key; the message says which columns are there."""
    table = new_table()
    if kind == "batch":
        table.load([(1, "a", 1)])
        table.sync()
        key = table.cdc([("U", ("b", 2))], columns=NO_KEY)
    else:
        key = table.load([("b", 2)], columns=NO_KEY)
    before = _mark(table)

    error = table.blocked()

    assert error["code"] == "no-key-column"
    for text in (key, "'id'", "name, qty"):
        assert text in error["message"]
    assert _mark(table) == before


@pytest.mark.parametrize(
    ("attribute", "value", "code", "named"),
    [
        ("PrimaryKey", "id,nope", "no-key-column", "'nope'"),
        ("PrimaryKey", "ID", "no-key-column", "'ID'"),
        ("PartitionKey", "nope", "no-partition-column", "'nope'"),
        ("PartitionKey", "year(qty)", "no-date-parts", "'qty'"),
        ("PartitionKey", "month(day) as name", "partition-name-taken", "'name'"),
    ],
)
@pytest.mark.parametrize("kind", ["load", "batch"])
def test_attributes_that_name_no_column_block_the_table(
    new_table: MakeTable, kind: str, attribute: str, value: str, code: str, named: str
) -> None:
    """Before anything is written, the message names the attribute and what is wrong in it; corrected, the table goes on."""
    table = new_table(SHOP.append(pa.field("day", pa.date32())))
    table.edit(**{attribute: value})
    if kind == "load":
        table.load([(1, "a", 1, None)])
    else:
        table.cdc([("I", (1, "a", 1, None))])

    error = table.blocked()

    assert error["code"] == code
    assert named in error["message"]
    assert attribute in error["todo"]
    assert (table.visible(), table.item().get("Head")) == (set(), None)
    table.edit(PrimaryKey="id", PartitionKey="day")
    table.sync()
    assert table.rows() == [(1, "a", 1, None)]


@pytest.mark.parametrize("value", ["", "a\0b"])
def test_a_value_that_can_be_no_folder_blocks_the_table(make: Make, value: str) -> None:
    """An empty text can't be told from null in a folder's name; the message names column and value."""
    table = make[0](partition_key="name")
    table.load([(1, "a", 1)])
    table.sync()
    before = _mark(table)
    table.cdc([("U", (1, value, 1))])

    error = table.blocked(**make[1])

    assert error["code"] == ("bad-partition-value" if value else "empty-partition")
    assert "'name'" in error["message"]
    assert _mark(table) == before
    if not value:
        table.edit(EmptyPartition="null")
        table.sync(**make[1])
        assert table.rows() == [(1, None, 1)]


def test_one_bad_table_does_not_stop_the_others(new_table: MakeTable) -> None:
    """A run of three tables: the bad one is reported, the others are loaded."""
    tables = [new_table() for _ in range(3)]
    for table in tables:
        table.load([(1, "a", 1)])
    tables[1].put_raw("LOAD00000002.parquet", b"no")
    paths = ",".join(str(table.path) for table in tables)

    code = load_initial.main(["--path", paths, "--state_table", "states", "--driver_bytes", DRIVER], IN_PROCESS)

    assert code == 1
    assert [table.last_run()["outcome"] for table in tables] == ["committed", "blocked", "committed"]
    assert [len(table.visible()) for table in tables] == [1, 0, 1]
