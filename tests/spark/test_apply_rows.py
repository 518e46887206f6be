"""Corrections on Spark: the same lake as by one process, and two DataFrames from a program."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from glue_jobs.apply import apply_to_lake
from glue_jobs.aws.clients import Clients
from glue_jobs.core.errors import DmslakeError, TableBlocked, UsageError
from glue_jobs.spark import apply_rows
from tests.protocol.test_apply import ORDERS, expected
from tests.spark.tables import WorkTable
from tests.spark.test_requests import counted
from tests.work_tables import IN_PROCESS, MakeTable

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LINES = pa.schema([("id", pa.int64()), ("order_id", pa.int64()), ("shop", pa.string()), ("qty", pa.int32())])
NEW = [(41, 4, "b", 9), (31, 3, "a", 8), (32, 3, "z", 8), (34, 3, "c", 8), (990, 99, "a", 1)]
GONE = [1, 5, 77]
AFTER = expected(ORDERS, GONE, NEW)


def loaded(make: MakeTable) -> WorkTable:
    table = make(LINES, partition_key="shop")
    table.load(ORDERS)
    assert table.run("LoadInitial") == 0
    return table


def test_spark_gives_the_same_lake(spark_table: MakeTable, tmp_path: Path) -> None:
    """Every step as tasks of Spark, row changes of a staged one too: rows, counts and details as by the driver."""
    files = {"deletes": str(tmp_path / "deletes.parquet"), "updates": str(tmp_path / "updates.parquet")}
    pq.write_table(pa.table({"order_id": GONE}), files["deletes"])
    pq.write_table(pa.Table.from_pylist([dict(zip(LINES.names, row, strict=True)) for row in NEW], LINES), files["updates"])
    seen = []
    for driver_bytes in ("0", "1000000000"):
        table = loaded(spark_table)
        assert table.run("Apply", key="order_id", **files, driver_bytes=driver_bytes, stage="true") == 0, table.last_run()
        assert table.commit(table.last_run()["staged"]).code == 0
        table.check_folder()
        table.check_files()
        record = table.head()
        details = {name: value for name, value in record.details.items() if name not in ("engine", "before", "seconds")}
        seen.append((table.rows(), record.counts, details, len(record.added), record.details["engine"]))

    assert seen[0][0] == AFTER
    assert seen[0][:4] == seen[1][:4]
    assert seen[0][4] == "spark"


def test_two_data_frames(spark_table: MakeTable, spark: SparkSession) -> None:
    """Their columns are held against the table's before anything is computed; the session stays as it was; errors are raised whole."""
    table = loaded(spark_table)
    partitions = spark.conf.get("spark.sql.shuffle.partitions")
    settings: dict[str, Any] = {"environment": table.environment, "lease_seconds": "10", "driver_bytes": "0"}
    gone = spark.createDataFrame([(order, "x") for order in GONE], "order_id int, shop string")
    rows = [(qty, shop, order, number) for number, order, shop, qty in NEW]
    new = spark.createDataFrame(rows, "qty int, shop string, order_id long, id long")
    wrong = new.selectExpr("id", "cast(qty as double) qty", "order_id", "raise_error('computed') more")

    def refused(*arguments: Any, **more: Any) -> DmslakeError:
        with pytest.raises(DmslakeError) as caught:
            apply_to_lake(spark, str(table.path), *arguments, **more, **settings)
        return caught.value

    columns = refused("order_id", None, wrong)
    unknown = refused(["order_id"], gone.where("order_id = 77"))
    change = apply_to_lake(spark, str(table.path), "order_id", gone, new, **settings)

    assert (type(columns), columns.code) == (UsageError, "given-columns")
    for part in ("'shop' (string) is missing", "'qty' is double, the table has int", "'more' is no column"):
        assert part in columns.message
    assert (type(unknown), unknown.code) == (TableBlocked, "no-key-found")
    assert refused("order_id").code == refused("order_id,order_id", gone).code == "bad-argument"
    assert refused("order_id", gone, strict=True).code in ("no-key-found", "keys-not-found")
    assert (change, table.rows()) == (table.item()["Head"], AFTER)
    assert table.head().counts.deleted + table.head().counts.updated == table.head().details["rows_matched_before"]
    assert spark.conf.get("spark.sql.shuffle.partitions") == partitions
    table.check_folder()


def test_of_many_files_only_those_with_hits_are_written(in_process: Clients, tmp_path: Path) -> None:
    """By a key outside the primary key all 60 files are searched and one is replaced; by the primary key no other is read."""
    environment = {**IN_PROCESS, "DMSLAKE_DATABASE": ""}
    columns = pa.schema([("id", pa.int64()), ("part", pa.int32()), ("name", pa.string())])
    table = WorkTable(environment, "s3://raw/dms/", "s3://lake/lake/", columns, partition_key="part", shared=in_process)
    table.load([(number, number // 3, f"n{number}") for number in range(180)])
    assert table.run("LoadInitial") == 0
    for key, value, reads in (("name", "n100", 60 + 1), ("id", "101", 2)):
        keys = tmp_path / "keys.csv"
        keys.write_text(f"{key}\n{value}\n")

        with counted(in_process) as requests:
            assert table.run("Apply", key=key, deletes=str(keys)) == 0, table.last_run()

        of_data = [(operation, path) for operation, path in requests if "/part=" in path]
        assert sum(operation == "GetObject" for operation, _ in of_data) == reads
        assert [operation for operation, _ in of_data if operation != "GetObject"] == ["CreateMultipartUpload", "UploadPart"]
        assert (len(table.head().added), len(table.head().superseded), table.head().counts.deleted) == (1, 1, 1)


def test_a_correction_whose_new_rows_fail_leaves_nothing(in_process: Clients, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The file that was written anew before is given up; the same correction goes through afterwards."""
    columns = pa.schema([("id", pa.int64()), ("part", pa.int32())])
    environment = {**IN_PROCESS, "DMSLAKE_DATABASE": ""}
    table = WorkTable(environment, "s3://raw/dms/", "s3://lake/lake/", columns, partition_key="part", shared=in_process)
    table.load([(1, 1), (2, 1)])
    assert table.run("LoadInitial") == 0
    rows = tmp_path / "rows.csv"
    rows.write_text("id,part\n1,2\n")
    given = {"key": "id", "updates": str(rows)}
    begun: list[int] = []

    def fails(task: Any, new: Any) -> Any:
        begun.append(len(table.open_uploads()))
        raise OSError("the connection was lost")

    with monkeypatch.context() as patch:
        patch.setattr(apply_rows._NewFileTask, "__call__", fails)
        assert table.run("Apply", **given) != 0

    assert (begun, table.open_uploads()) == ([1], [])
    assert table.run("Apply", **given) == 0, table.last_run()
    assert sorted(table.rows()) == [(1, 2), (2, 1)]
