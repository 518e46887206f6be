"""Folders that Spark itself wrote, adopted: partitions, snappy, INT96, its markers; and what the strategies of a merge make of them."""

from __future__ import annotations

from datetime import datetime, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa

from infra.local.embedded import EmbeddedAws
from tests.lake import LakeTable

COLUMNS = pa.schema(
    [
        ("id", pa.int64()),
        ("name", pa.string()),
        ("price", pa.decimal128(10, 2)),
        ("at", pa.timestamp("us")),
        ("region", pa.string()),
    ]
)


def at(minute: int) -> datetime:
    return datetime(1916, 5, 1, 12, minute, 30, 123456, timezone.utc)  # before the epoch


def row(number: int, region: str | None, name: str = "") -> tuple[Any, ...]:
    return number, name or f"row {number}", Decimal(number) / 4, at(number % 60), region


def test_a_partitioned_folder_of_spark_goes_on(embedded_aws: EmbeddedAws, spark: Any, tmp_path: Path) -> None:
    """As Spark writes by default, with the sample's `Op`; then a batch in the driver, one by the shuffle, and a look by verify."""
    table = LakeTable(embedded_aws.environment(), embedded_aws.raw, embedded_aws.lake, COLUMNS, partition_key="region")
    rows = {number: row(number, [None, "north east", "a:b", "süd"][number % 4]) for number in range(400)}
    write_by_spark(spark, rows.values(), tmp_path)
    upload(table, tmp_path)
    table.load(rows.values())
    table.edit(LastFullLoadDate="2999-01-01 00:00:00")

    assert table.run("Adopt") == 0, table.item()["LastRun"]
    assert table.verify() == []
    assert seen(table) == rows
    assert {file.partition[0] for file in table.snapshot().files.values()} == {None, "north east", "a:b", "süd"}

    for number, settings in enumerate(({}, {"driver_bytes": "0", "broadcast_bytes": "0"})):
        changed = [row(3 + number, "west", "moved"), row(8 + number, rows[8 + number][4], "updated"), row(500 + number, "west")]
        table.cdc([("U", values) for values in changed] + [("D", row(20 + number, None))])
        table.sync(**settings)
        rows.update({values[0]: values for values in changed})
        del rows[20 + number]
        assert seen(table) == rows
        assert table.verify() == []


def write_by_spark(spark: Any, rows: Any, folder: Path) -> None:
    """Into partition folders, in two files each, timestamps in INT96."""
    schema = "id bigint, name string, price decimal(10,2), at timestamp, region string, Op string"
    frame = spark.createDataFrame([(*values, "I") for values in rows], schema).repartition(2)
    frame.write.option("compression", "snappy").partitionBy("region").mode("overwrite").parquet(str(folder))


def upload(table: LakeTable, folder: Path) -> None:
    """The files as they lie there, markers and checksums too."""
    for file in sorted(folder.rglob("*")):
        if file.is_file():
            key = table.out_path.key + file.relative_to(folder).as_posix()
            table.clients.s3.put_object(Bucket=table.out_path.bucket, Key=key, Body=file.read_bytes())


def seen(table: LakeTable) -> dict[int, tuple[Any, ...]]:
    """Key → row, of what a reader of the data files sees."""
    found = table.rows(visible=set(table.snapshot().files))
    assert len({values[0] for values in found}) == len(found)
    return {values[0]: values for values in found}
