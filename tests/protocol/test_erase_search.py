"""What an erase finds: every version by itself, whatever its columns and types; what it does not read, and what it says it could not."""

from __future__ import annotations

import io
from collections.abc import Iterator
from datetime import date, datetime, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from glue_jobs.aws.clients import Clients
from glue_jobs.aws.erased import left_versions
from glue_jobs.aws.removal import held_versions
from glue_jobs.core.erase_plan import ErasePlan
from glue_jobs.core.paths import changes_folder
from glue_jobs.core.settings import read_settings
from glue_jobs.protocol.erase_search import plan_erase
from glue_jobs.spark.erase_rows import RowEraser
from tests.lake import DRIVER
from tests.spark.tables import WorkTable
from tests.work_tables import IN_PROCESS, MakeTable

LINES = pa.schema([("id", pa.int64()), ("customer", pa.int64()), ("shop", pa.string())])
# Ten customers with ten lines each.
ROWS = [(number, number % 10, "abc"[number % 3]) for number in range(100)]


@pytest.fixture
def make(in_process: Clients) -> MakeTable:
    """Makes loaded tables whose runs take place in this process."""

    def make(columns: pa.Schema = LINES, rows: Any = ROWS, **attributes: Any) -> WorkTable:
        environment = {**IN_PROCESS, "DMSLAKE_DATABASE": ""}
        table = WorkTable(environment, "s3://raw/dms/", "s3://lake/lake/", columns, shared=in_process, **attributes)
        table.load(rows)
        assert table.run("LoadInitial") == 0
        return table

    return make


def key_file(folder: Path, **columns: Any) -> str:
    """A Parquet file with keys."""
    path = folder / "keys.parquet"
    pq.write_table(pa.table(columns), path)
    return str(path)


def planned(table: WorkTable, keys: str, *columns: str) -> ErasePlan:
    """What an erase would do."""
    eraser = RowEraser(read_settings({"driver_bytes": DRIVER}, {}), table.environment, keys, columns)
    return plan_erase(table.clients.s3, table.state(), table.snapshot(), eraser).plan


def erased(table: WorkTable, keys: str, **settings: Any) -> None:
    """An erase that must work."""
    assert table.run("Erase", erase_keys=keys, **settings) == 0, table.last_run()
    table.check_folder()
    assert left_versions(table.clients.s3, table.out_path, table.snapshot().erases) == ()


def rows_held(table: WorkTable) -> Iterator[dict[str, Any]]:
    """Every row of every version, beside the records too."""
    s3, lake = table.clients.s3, table.out_path
    for prefix in (lake.key, changes_folder(lake).key):
        for held in held_versions(s3, lake.bucket, prefix):
            if held.key.endswith(".parquet"):
                data = s3.get_object(Bucket=lake.bucket, Key=held.key, VersionId=held.version)["Body"].read()
                yield from pq.read_table(io.BytesIO(data), partitioning=None).to_pylist()


def test_all_rows_of_some_customers_and_no_others(make: MakeTable, tmp_path: Path) -> None:
    """A key that is not unique, over partitions, batches and a rollback; the rest of the table is as it was."""
    table = make(partition_key="shop")
    table.cdc([("U", (number, number % 10, "d")) for number in range(0, 100, 7)])
    assert table.run() == 0
    assert table.run("Rollback", to="previous", skip="true", resume="true") == 0

    erased(table, key_file(tmp_path, customer=[3, 8, 77]), key="customer")

    assert table.rows() == sorted([row for row in ROWS if row[1] not in (3, 8)], key=repr)
    assert not [row for row in rows_held(table) if row["customer"] in (3, 8)]
    assert (table.head().counts.deleted, table.head().details["keys_found"], table.head().details["keys_given"]) == (20, 2, 3)


def test_rows_kept_beside_records_are_searched(make: MakeTable, tmp_path: Path) -> None:
    """What a correction was given, and what a staged change would do."""
    table = make()
    pq.write_table(pa.table({"id": [3], "customer": [3], "shop": ["x"]}), tmp_path / "rows.parquet")
    assert table.run("Apply", key="id", updates=str(tmp_path / "rows.parquet")) == 0
    pq.write_table(pa.table({"id": [13], "customer": [3], "shop": ["y"]}), tmp_path / "rows.parquet")
    assert table.run("Apply", key="id", updates=str(tmp_path / "rows.parquet"), stage="true") == 0
    kept = [row for row in rows_held(table) if row["customer"] == 3 and row["shop"] in ("x", "y")]
    assert len(kept) >= 3  # in the data, and beside two records

    erased(table, key_file(tmp_path, customer=[3]), key="customer")

    assert not [row for row in rows_held(table) if row["customer"] == 3]
    assert table.open_uploads() == []


def test_what_the_records_rule_out_is_not_read(make: MakeTable, tmp_path: Path) -> None:
    """By key range and by partition; one file of many may hold the key."""
    by_folder = make(partition_key="shop", primary_key="null")
    by_range = make(rows=[(1, 1, "a")])
    by_range.cdc([("I", (1000, 1, "a"))])
    assert by_range.run(small_file_bytes="0") == 0

    in_folder = planned(by_folder, key_file(tmp_path, shop=["b"]), "shop")
    in_range = planned(by_range, key_file(tmp_path, id=[1000]))

    assert [each.key.split("/")[-2] for each in in_folder.versions] == ["shop=b"]
    assert (in_folder.searched, in_folder.rows) == (3, 33)
    assert (in_range.searched, len(in_range.versions), in_range.rows) == (2, 1, 1)


def test_a_file_of_ours_that_no_record_knows_is_searched(make: MakeTable, tmp_path: Path) -> None:
    """An attempt whose record is gone: by its name it is ours, so it is read and removed."""
    table = make()
    s3, lake = table.clients.s3, table.out_path
    body = io.BytesIO()
    pq.write_table(pa.table({"id": [5], "customer": [5], "shop": ["z"]}), body)
    key = f"{lake.key}0000000000-000001-00000000-stray.parquet"
    s3.put_object(Bucket=lake.bucket, Key=key, Body=body.getvalue())
    s3.delete_object(Bucket=lake.bucket, Key=key)

    erased(table, key_file(tmp_path, customer=[5]), key="customer")

    assert key not in {held.key for held in held_versions(s3, lake.bucket, lake.key)}


def test_what_can_not_be_searched_is_said_and_left(make: MakeTable, tmp_path: Path) -> None:
    """Objects of others, and one of ours that is damaged."""
    table = make()
    s3, lake = table.clients.s3, table.out_path
    names = ["theirs.parquet", "notes.txt", "0000000000-000001-00000000-damaged.parquet"]
    for name in names:
        s3.put_object(Bucket=lake.bucket, Key=lake.key + name, Body=b"no Parquet")

    plan = planned(table, key_file(tmp_path, id=[5]))

    assert sorted(key[len(lake.key) :] for key in plan.unsearched) == sorted(names)
    assert len(plan.versions) == 1


def test_versions_without_the_column_are_counted(make: MakeTable, tmp_path: Path) -> None:
    """They may hold the person under another column: nobody can tell."""
    narrow = pa.schema([("id", pa.int64()), ("name", pa.string())])
    wide = pa.schema([("id", pa.int64()), ("name", pa.string()), ("mail", pa.string())])
    table = make(narrow, [(1, "one"), (2, "two")])
    table.cdc([("U", (1, "one", "a@b"))], columns=wide)
    assert table.run() == 0

    plan = planned(table, key_file(tmp_path, mail=["a@b"]), "mail")

    assert (plan.lacking, len(plan.versions), plan.rows) == (1, 1, 1)


MOMENT = datetime(2024, 5, 1, 12, 30, 0, 123456, tzinfo=timezone.utc)


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        (pa.string(), ["a", 'é, "', ""]),
        (pa.decimal128(12, 2), [Decimal("1.50"), Decimal("-2.00"), Decimal("0.01")]),
        (pa.date32(), [date(2024, 5, 1), date(1500, 1, 1), date(3018, 1, 1)]),
        (pa.timestamp("us"), [MOMENT.replace(tzinfo=None), datetime(2024, 1, 1), datetime(1969, 12, 31, 23, 59, 59, 999999)]),
        (pa.float64(), [0.0, 1.5, float("inf")]),
        (pa.bool_(), [True, False, None]),
    ],
    ids=str,
)
def test_keys_of_every_type(make: MakeTable, tmp_path: Path, kind: pa.DataType, values: list[Any]) -> None:
    """The first value goes, the others stay."""
    table = make(pa.schema([("id", pa.int64()), ("value", kind)]), list(enumerate(values)))

    erased(table, key_file(tmp_path, value=pa.array(values[:1], kind)), key="value")

    assert [row[0] for row in table.rows()] == [1, 2]


def test_a_key_of_two_columns_means_both(make: MakeTable, tmp_path: Path) -> None:
    """Rows with one of the two stay; the order of the columns is the caller's."""
    table = make()

    erased(table, key_file(tmp_path, shop=["a", "b"], customer=[3, 1]), key="shop,customer")

    gone = {("a", 3), ("b", 1)}
    assert table.rows() == sorted([row for row in ROWS if (row[2], row[1]) not in gone], key=repr)


@pytest.mark.parametrize(
    ("primary_key", "columns", "key", "code"),
    [
        ("id", {"id": [1, None]}, "", "given-null-key"),
        ("null", {"id": [1]}, "", "no-key"),
        ("id", {"id": [1]}, "nothing", "unknown-column"),
        ("id", {"id": pa.array([], pa.int64())}, "", "given-not-read"),
    ],
)
def test_keys_that_can_not_be_meant(make: MakeTable, tmp_path: Path, primary_key: str, columns: Any, key: str, code: str) -> None:
    """A wrong call, and nothing is changed."""
    table = make(primary_key=primary_key)
    head = table.item()["Head"]

    assert table.run("Erase", erase_keys=key_file(tmp_path, **columns), **({"key": key} if key else {})) != 0

    assert (table.last_run()["error"]["code"], table.item()["Head"]) == (code, head)


def test_a_file_whose_rows_all_go_has_no_successor(make: MakeTable, tmp_path: Path) -> None:
    """The partition is empty then; what is left after all rows went is an empty table."""
    table = make(partition_key="shop")

    erased(table, key_file(tmp_path, shop=["a"]), key="shop")
    assert {path.split("/")[0] for path in table.visible()} == {"shop=b", "shop=c"}
    erased(table, key_file(tmp_path, shop=["b", "c"]), key="shop")

    assert (table.visible(), list(rows_held(table))) == (set(), [])
