"""Names that need escapes, quotes or care: of tables, columns and partition values, through load, batch, catalog and readers."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import pyarrow as pa
import pyarrow.dataset as ds
import pytest

from glue_jobs.aws.clients import Clients
from glue_jobs.aws.objects import read_bytes
from glue_jobs.core.paths import TablePath, catalog_name, changes_folder, lake_folder
from glue_jobs.core.state import default_item
from tests.spark.tables import WorkTable
from tests.work_tables import IN_PROCESS, MakeTable

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

KEY, PART, NOTE, COUNT = "key `.+%2F'\"", "re gion=x", "a.b`c\"d'e😀 -- ;", "select *"
COLUMNS = pa.schema([(KEY, pa.string()), (PART, pa.string()), (NOTE, pa.string()), (COUNT, pa.int64())])
PART_FOLDER = "re gion%3Dx"
# A value and the name of its folder, spelled out as Hive's own code makes it.
FOLDERS = {
    "a b": "a b", " lead": " lead", "trail ": "trail ", "a=b": "a%3Db", "a/b": "a%2Fb", "a%2Fb": "a%252Fb", "%": "%25", "a+b": "a+b",
    "it's": "it%27s", 'say "x"': "say %22x%22", "a`b": "a`b", "a.b": "a.b", ".": ".", "..": "..", "_x": "_x", "a\\b": "a%5Cb", "a,b": "a,b",
    "a?b#c:d*": "a%3Fb%23c%3Ad%2A", "&amp;<x>": "&amp;<x>", "\n": "%0A", "\u2028": "\u2028", "😀": "😀", "日本": "日本", "null": "null",
    "NULL": "NULL", "01": "01", "1": "1", "2024-01-01": "2024-01-01", "True": "True", None: "__HIVE_DEFAULT_PARTITION__",
}  # fmt: skip
VALUES = list(FOLDERS)
TABLE_NAME = "Order Details=a%2Fb+c'd\"e`f.g😀"
Row = tuple[Any, ...]


def next_to(number: int) -> str | None:
    """The value that the row with this number moves to."""
    return VALUES[(number + 1) % len(VALUES)]


LOADED: list[Row] = [(f"m'{number}", value, "moves", number) for number, value in enumerate(VALUES)]
LOADED += [(f'k"{number}', value, "stays", number) for number, value in enumerate(VALUES)]
# Every partition loses a row to the next one; of the other rows each second one is deleted, the others are changed where they are.
MOVED: list[Row] = [(f"m'{number}", next_to(number), "moved `%'", number) for number in range(len(VALUES))]
CHANGED: list[Row] = [(f'k"{number}', value, "stayed", -1) for number, value in enumerate(VALUES) if number % 2]
DELETED = [f'k"{number}' for number in range(0, len(VALUES), 2)]
ADDED: list[Row] = [("new\\", "a=b", "\N{BOM}", 7), ("", "a/b", "", 8)]
EXPECTED = sorted([*MOVED, *CHANGED, *ADDED], key=repr)


def batch() -> list[tuple[str, Row]]:
    rows = [("U", row) for row in (*MOVED, *CHANGED)] + [("I", row) for row in ADDED]
    return [*rows, *(("D", (key, None, None, None)) for key in DELETED)]


@pytest.fixture(scope="module")
def moved(in_process: Clients) -> WorkTable:
    """A table with special names everywhere, loaded, then changed by a batch in every partition."""
    table = WorkTable(
        IN_PROCESS, "s3://raw/d m+s%2F/", "s3://lake/l ake=+%2F'/", COLUMNS, KEY, PART, table=TABLE_NAME, shared=in_process
    )  # fmt: skip
    table.load(LOADED)
    assert table.run("LoadInitial", database="special") == 0, table.last_run()
    assert table.rows() == sorted(LOADED, key=repr)
    table.cdc(batch())
    assert table.run(database="special") == 0, table.last_run()
    return table


def test_rows_are_the_sources(moved: WorkTable) -> None:
    """After rows moved between, were changed in and deleted from partitions with special values."""
    assert moved.rows() == EXPECTED
    assert moved.counts() == (len(ADDED), len(MOVED) + len(CHANGED), len(DELETED))
    moved.check_files()


def test_the_folder_is_the_snapshot(moved: WorkTable) -> None:
    """The superseded files are hidden by their exact keys, their data is kept, and no upload is left."""
    moved.check_folder()
    assert moved.open_uploads() == []
    head = moved.head()
    assert len(head.superseded) == len(VALUES)
    answer = moved.clients.s3.list_object_versions(Bucket="lake", Prefix=moved.out_path.key)
    assert {moved.out_path.key + path for path in head.superseded} <= {entry["Key"] for entry in answer["Versions"]}


def test_folders_are_named_as_hive_names_them(moved: WorkTable) -> None:
    """One folder for each value, in the table's folder, which has the source's names as they are."""
    assert {path.rsplit("/", 1)[0] for path in moved.visible()} == {f"{PART_FOLDER}={folder}" for folder in FOLDERS.values()}
    assert str(moved.out_path) == f"s3://lake/l ake=+%2F'/shop/{TABLE_NAME}/"


def test_the_catalog_has_values_as_they_are_and_locations_as_they_stand(moved: WorkTable) -> None:
    """A partition's values are not escaped; its location is the folder's very key."""
    pages = moved.clients.glue.get_paginator("get_partitions").paginate(DatabaseName="special", TableName=moved.item()["CatalogTable"])
    found = {entry["Values"][0]: entry["StorageDescriptor"]["Location"] for page in pages for entry in page["Partitions"]}

    at = f"{moved.out_path}{PART_FOLDER}="
    assert found == {FOLDERS[None] if value is None else value: f"{at}{folder}/" for value, folder in FOLDERS.items()}
    assert "CatalogPending" not in moved.item()


def test_the_catalog_has_the_columns_by_their_names(moved: WorkTable) -> None:
    """In lower case, the partition column apart."""
    table = moved.clients.glue.get_table(DatabaseName="special", Name=moved.item()["CatalogTable"])["Table"]

    assert [column["Name"] for column in table["StorageDescriptor"]["Columns"]] == [KEY.lower(), NOTE, COUNT]
    assert [column["Name"] for column in table["PartitionKeys"]] == [PART]


def by_pyarrow(folder: Path) -> list[Row]:
    partitioning = ds.partitioning(pa.schema([(PART, pa.string())]), flavor="hive")
    found = ds.dataset(folder, format="parquet", partitioning=partitioning).to_table(COLUMNS.names)
    return [tuple(row.values()) for row in found.to_pylist()]


def by_duckdb(folder: Path) -> list[Row]:
    # DuckDB unescapes a folder's value, but not the column's name before it.
    names = [f'"{(PART_FOLDER if name == PART else name).replace(chr(34), chr(34) * 2)}"' for name in COLUMNS.names]
    with duckdb.connect() as connection:
        query = f"SELECT {', '.join(names)} FROM read_parquet(?, hive_partitioning = true, hive_types_autocast = false)"
        return connection.execute(query, [f"{folder}/**/*.parquet"]).fetchall()


@pytest.mark.parametrize("read", [by_pyarrow, by_duckdb])
def test_readers_by_path_see_the_same(moved: WorkTable, tmp_path: Path, read: Callable[[Path], list[Row]]) -> None:
    """Hive's escapes are what readers undo."""
    for path in moved.visible():
        target = tmp_path / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(read_bytes(moved.clients.s3, "lake", moved.out_path.key + path))

    assert sorted(read(tmp_path), key=repr) == EXPECTED


# --- the empty string, and what no folder can say

SMALL = pa.schema([("id", pa.int64()), ("part", pa.string())])


def test_an_empty_text_in_a_load_blocks_the_table_until_it_may_be_null(new_table: MakeTable) -> None:
    """Readers can't tell its folder from null's; as null, such rows can be moved and deleted like others."""
    table = new_table(SMALL, partition_key="part")
    table.load([(1, ""), (2, None), (3, "x"), (4, "")])
    assert table.run("LoadInitial") == 1
    assert (table.last_run()["error"]["code"], table.visible(), table.open_uploads()) == ("empty-partition", set(), [])

    table.edit(EmptyPartition="null")
    table.sync()
    assert table.rows() == [(1, None), (2, None), (3, "x"), (4, None)]
    assert {path.split("/")[0] for path in table.visible()} == {f"part={FOLDERS[None]}", "part=x"}

    table.cdc([("U", (1, "x")), ("U", (3, "")), ("D", (4, None)), ("I", (5, ""))])
    table.sync()
    assert table.rows() == [(1, "x"), (2, None), (3, None), (5, None)]
    table.check_folder()


@pytest.mark.parametrize(
    ("value", "code"),
    [("\ufffe", "bad-partition-value"), ("__HIVE_DEFAULT_PARTITION__", "bad-partition-value"), ("x" * 1000, "key-too-long")],
    ids=["not in XML", "null's folder", "long"],
)
def test_a_value_that_no_key_can_have_blocks_the_table(new_table: MakeTable, value: str, code: str) -> None:
    """Nothing is committed or left behind, and the table goes on when the file is left out."""
    table = new_table(SMALL, partition_key="part")
    table.load([(1, "a"), (2, "b")])
    table.sync()
    name = table.cdc([("U", (1, value)), ("D", (2, None))]).rsplit("/", 1)[-1]

    assert table.blocked()["code"] == code

    assert (table.rows(), table.open_uploads()) == ([(1, "a"), (2, "b")], [])
    table.check_folder()
    table.edit(SkipFiles=name)
    table.sync()


# --- tables and schemas

NAMES = ["Order Details", "a=b", "a%2Fb", "a+b", "o'clock", '"quoted"', "tick`s", "a.b.c", "😀 日本", "$(x) & {y};", "naïve~", "0.parquet"]


def named(new_table: MakeTable, schema: str, name: str) -> WorkTable:
    """A table of this schema and name, active, without files."""
    table = new_table(SMALL, partition_key="part")
    table.path = TablePath("raw", f"dms/{schema}/", f"{name}/")
    table.out_path = lake_folder(table.lake, table.path)
    assert table.state_table.create(default_item(table.path, str(table.out_path)))
    table.edit(PrimaryKey="id", PartitionKey="part", ActiveFlag="true")
    return table


@pytest.mark.parametrize("name", NAMES)
def test_item_folders_and_records_have_the_names_as_they_are(new_table: MakeTable, name: str) -> None:
    """Of schema and table; cursor and inputs too."""
    table = named(new_table, name, name)
    table.load([(1, "a"), (2, "b")])
    table.sync()
    cdc = table.cdc([("U", (1, "b")), ("I", (3, name))])

    table.sync()

    assert table.rows() == [(1, "b"), (2, "b"), (3, name)]
    table.check_folder()
    item = table.item()
    assert (item["path"], item["LastIncrementalFile"]) == (f"raw/dms/{name}/{name}/", f"raw/{cdc}")
    records = changes_folder(table.out_path)
    assert (str(table.out_path), str(records)) == (f"s3://lake/lake/{name}/{name}/", f"s3://lake/lake/_changes/{name}/{name}/")
    listed = table.clients.s3.list_objects_v2(Bucket="lake", Prefix=records.key)["Contents"]
    assert records.key + item["Head"] + ".json" in {entry["Key"] for entry in listed}
    assert [table.head().inputs[0].key, table.head().table] == [cdc, item["path"]]


def test_two_names_that_are_one_in_the_catalog_don_t_overwrite_each_other(new_table: MakeTable) -> None:
    """Names of other scripts are all underscores there: the second table is not loaded before it has another. One that was loaded by an
    earlier version is kept up, its catalog step is not done, and says why."""
    first, second = named(new_table, "销售", "日本"), named(new_table, "東京", "中国")
    assert catalog_name(first.path) == catalog_name(second.path) == "_____"
    for table in (first, second):
        table.load([(1, "a")])
    assert [table.run("LoadInitial", database="scripts") for table in (first, second)] == [0, 1]
    assert second.last_run()["error"]["code"] == "catalog-name-taken"
    assert second.run("LoadInitial", database="") == 0
    second.cdc([("U", (1, "b"))])
    assert second.run(database="scripts") == 0

    shown = first.clients.glue.get_table(DatabaseName="scripts", Name="_____")["Table"]
    assert shown["StorageDescriptor"]["Location"] == str(first.out_path)
    assert (second.rows(), "CatalogPending" in second.item()) == ([(1, "b")], True)
    (warning,) = second.last_run()["warnings"]
    assert [text in warning for text in (str(first.path), "_____")] == [True, True]

    second.edit(CatalogTable="tokyo_china")
    assert second.run(database="scripts") == 0
    assert "CatalogPending" not in second.item()
    shown = first.clients.glue.get_table(DatabaseName="scripts", Name="tokyo_china")["Table"]
    assert shown["StorageDescriptor"]["Location"] == str(second.out_path)


# --- over HTTP, by Spark


@pytest.fixture
def served(spark: SparkSession, served_table: MakeTable) -> WorkTable:
    """Table and columns with special names on the embedded AWS, where keys travel in URLs."""
    return served_table(COLUMNS, primary_key=KEY, partition_key=PART, table=TABLE_NAME)


def test_spark_sees_no_expression_in_a_name(served: WorkTable) -> None:
    """The largest way to work, where columns pass through Spark's joins, gives the same rows."""
    served.load([("m'", "it's", "moves", 1), ("k`", "a=b", "stays", 2), ("d\\", "a%2Fb", "goes", 3)])
    assert served.run("LoadInitial") == 0
    served.cdc([("U", ("m'", "a=b", "moved", 4)), ("D", ("d\\", None, None, None)), ("I", ("", "it's", "`new`", 5))])
    assert served.run(driver_bytes="0", broadcast_bytes="0") == 0

    assert served.rows() == sorted([("", "it's", "`new`", 5), ("k`", "a=b", "stays", 2), ("m'", "a=b", "moved", 4)], key=repr)
    served.check_folder()
    assert served.head().details["engine"] == "spark"
