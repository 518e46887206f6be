"""Changes that write every file anew: another layout, another key, a renamed column, a wider type; by Arrow and by Spark."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from tests.spark.tables import WorkTable
from tests.work_tables import MakeTable

COLUMNS = pa.schema([("id", pa.int64()), ("name", pa.string()), ("qty", pa.int32())])
ROWS = [(number, f"n{number}", number % 3) for number in range(40)]
Make = tuple[MakeTable, dict[str, str]]


@pytest.fixture(params=["driver", "spark"])
def make(request: pytest.FixtureRequest) -> Make:
    """A maker of tables, and the settings with which their work is done by one process or by Spark."""
    if request.param == "driver":
        return request.getfixturevalue("new_table"), {}
    return request.getfixturevalue("spark_table"), {"driver_bytes": "0"}


def _loaded(make: Make, rows: list[tuple[Any, ...]] = ROWS, **attributes: Any) -> WorkTable:
    table = make[0](COLUMNS, **attributes)
    table.load(rows)
    table.sync()
    return table


def _whole(table: WorkTable, kind: str) -> bool:
    """Whether the head is a change of this kind that replaced every file."""
    table.check_folder()
    table.check_files()
    record = table.head()
    return record.kind == kind and {file.path for file in record.added} == table.visible()


def test_another_layout_is_written_on_request(make: Make) -> None:
    """Repartition: new folders, same rows; changes go on in the new layout."""
    table = _loaded(make, partition_key="null")
    table.edit(PartitionKey="qty", Request="repartition")

    table.sync(**make[1])

    assert _whole(table, "repartition")
    assert {path.split("/")[0] for path in table.visible()} == {"qty=0", "qty=1", "qty=2"}
    assert sorted(table.rows()) == ROWS
    assert "Request" not in table.item()
    table.cdc([("U", (0, "moved", 2))])
    table.sync()
    assert sorted(table.rows()) == [(0, "moved", 2), *ROWS[1:]]
    table.edit(PartitionKey="null", Request="repartition")
    table.sync(**make[1])
    assert all("/" not in path for path in table.visible())
    assert len(table.rows()) == 40


def test_an_empty_text_that_becomes_null_is_an_update(make: Make) -> None:
    """Where EmptyPartition says so: a folder's name can't say an empty text. The record counts the rows; the same layout again, none."""
    table = _loaded(make, [(1, "", 1), (2, "a", 1), (3, None, 1), (4, "", 2)], partition_key="null")
    table.edit(PartitionKey="name", EmptyPartition="null", Request="repartition")

    table.sync(**make[1])

    assert _whole(table, "repartition")
    assert sorted(table.rows()) == [(1, None, 1), (2, "a", 1), (3, None, 1), (4, None, 2)]
    assert (table.counts(), table.head().counts.updated) == ((0, 2, 0), 2)
    table.edit(PartitionKey="name,qty", Request="repartition")
    table.sync(**make[1])
    assert table.counts() == (0, 0, 0)


def test_many_small_files_become_few_on_request(make: Make) -> None:
    """The same layout again compacts the table, also where no batch touches its files."""
    table = make[0](COLUMNS)
    for start in range(0, 40, 4):
        table.cdc([("I", row) for row in ROWS[start : start + 4]])
    table.sync(batch_files="1", small_file_bytes="0")
    assert len(table.visible()) == 10
    table.edit(Request="repartition")

    table.sync(**make[1])

    assert _whole(table, "repartition")
    assert len(table.visible()) == 1
    assert sorted(table.rows()) == ROWS


@pytest.mark.usefixtures("without_shuffle")
def test_files_in_the_order_of_their_keys_are_compacted_without_a_shuffle(spark_table: MakeTable) -> None:
    """In whatever order the files came."""
    table = spark_table(COLUMNS)
    for start in (20, 0, 30, 10):
        table.cdc([("I", row) for row in ROWS[start : start + 10]])
    table.sync(batch_files="1", small_file_bytes="0")
    table.edit(Request="repartition")

    table.sync(driver_bytes="0")

    assert _whole(table, "repartition")
    assert len(table.visible()) == 1
    assert sorted(table.rows()) == ROWS


def test_another_key_is_checked_and_kept(make: Make) -> None:
    """A unique key: the files are sorted and bounded by it from then on, and changes find their rows by it."""
    table = _loaded(make)
    table.edit(PrimaryKey="name")

    table.sync(**make[1])

    assert _whole(table, "rekey")
    assert table.snapshot().primary_key == ("name",)
    table.cdc([("U", (99, "n5", 1)), ("D", (None, "n6", None))])
    table.sync()
    assert {row[0] for row in table.rows()} == {*range(40), 99} - {5, 6}


def test_a_key_that_is_not_unique_blocks_the_table(make: Make) -> None:
    """Nothing is written, and setting the attribute back is a way out."""
    table = _loaded(make)
    before = (table.visible(), table.item()["Head"])
    table.edit(PrimaryKey="qty")

    error = table.blocked(**make[1])

    assert error["code"] == "key-not-unique"
    assert "37 row(s)" in error["message"]
    assert (table.visible(), table.item()["Head"]) == before
    table.edit(PrimaryKey="id")
    table.sync()
    assert "Blocked" not in table.item() or table.run() == 0


def test_a_key_that_is_not_unique_blocks_a_table_with_partitions_too(spark_table: MakeTable) -> None:
    """The two rows are in different partitions, and the files in no order of the new key."""
    table = spark_table(COLUMNS, partition_key="qty")
    table.load([*ROWS[::-1], (100, ROWS[0][1], ROWS[1][2])])
    table.sync()
    before = (table.visible(), table.item()["Head"])
    table.edit(PrimaryKey="name")

    error = table.blocked(driver_bytes="0")

    assert error["code"] == "key-not-unique"
    assert "1 row(s)" in error["message"]
    assert (table.visible(), table.item()["Head"]) == before
    assert table.open_uploads() == []


def test_a_key_with_nulls_is_refused(make: Make) -> None:
    """The error says which file and column; in a Spark task too."""
    table = _loaded(make, [*ROWS, (100, None, 1)])
    table.edit(PrimaryKey="name")

    error = table.blocked(**make[1])

    assert error["code"] == "null-key"
    assert "'name'" in error["message"]
    assert next(iter(table.visible())) in error["message"]


def test_a_key_may_be_given_up_and_taken_again(make: Make) -> None:
    """Without PrimaryKey rows are only appended; with it again they must be unique."""
    table = _loaded(make, ROWS[:5])
    table.edit(PrimaryKey="null")
    table.sync(**make[1])
    assert _whole(table, "rekey")
    table.cdc([("I", (0, "again", 0))])
    table.sync()
    assert len(table.rows()) == 6
    table.edit(PrimaryKey="id")

    assert table.blocked(**make[1])["code"] == "key-not-unique"


def test_a_renamed_column_is_renamed_in_every_file(make: Make) -> None:
    """Also in files that have no change in them."""
    table = _loaded(make, partition_key="qty")
    table.edit(Request="schema-rename:name=title")

    table.sync(**make[1])

    assert _whole(table, "schema")
    assert {name for file in table.snapshot().files.values() for name in table.data(file).column_names} == {"id", "title", "qty"}
    assert sorted(table.rows()) == ROWS


def test_a_wider_type_comes_with_its_batch(make: Make) -> None:
    """One change merges the batch and rewrites all other files."""
    table = _loaded(make, partition_key="qty")
    wide = pa.schema([("id", pa.int64()), ("name", pa.large_string()), ("qty", pa.int64()), ("more", pa.float64())])
    table.cdc([("U", (1, "far", 2**40, 0.5)), ("D", (3, None, None, None))], columns=wide)

    table.sync(**make[1])

    assert _whole(table, "incremental")
    expected = [(*row, None) for row in ROWS if row[0] not in (1, 3)]
    assert sorted(table.rows(), key=lambda row: row[0]) == [expected[0], (1, "far", 2**40, 0.5), *expected[1:]]
    assert table.counts() == (0, 1, 1)


def test_a_changed_layout_without_the_request_blocks_the_table(new_table: MakeTable) -> None:
    """Layouts are never mixed: the message names both ways out."""
    table = _loaded((new_table, {}))
    before = table.visible()
    table.cdc([("D", (1, None, None))])
    table.edit(PartitionKey="qty")

    error = table.blocked()

    assert error["code"] == "partition-key-changed"
    assert "dmslake repartition" in error["todo"]
    assert table.visible() == before
    table.edit(PartitionKey="null")
    table.sync()
    assert len(table.rows()) == 39


@pytest.mark.parametrize(("attribute", "code"), [("PrimaryKey", "no-key-column"), ("PartitionKey", "no-partition-column")])
def test_a_column_that_is_not_there_is_refused(new_table: MakeTable, attribute: str, code: str) -> None:
    """A new key or layout of a loaded table is checked before anything is written."""
    table = _loaded((new_table, {}))
    before = (table.visible(), table.item()["Head"])
    table.edit(**{attribute: "nope"}, Request="repartition")

    error = table.blocked()

    assert error["code"] == code
    for text in ("'nope'", "id, name, qty", str(table.path)):
        assert text in error["message"]
    assert attribute in error["todo"]
    assert (table.visible(), table.item()["Head"]) == before
