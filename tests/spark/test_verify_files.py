"""Reading data files for verify: footers, bounds and keys against the records, with bounded memory."""

from __future__ import annotations

import io
import uuid
from collections.abc import Sequence
from datetime import date, datetime, timezone
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from glue_jobs.aws.clients import make_clients
from glue_jobs.aws.objects import list_files
from glue_jobs.core.partitioning import Partitioning, file_columns, folder_of, parse_partition_key
from glue_jobs.core.paths import S3Uri
from glue_jobs.core.record import DataFile
from glue_jobs.core.schema import Column, Schema
from glue_jobs.core.snapshot import Snapshot
from glue_jobs.core.verify import FileReport
from glue_jobs.spark.arrow_types import arrow_schema
from glue_jobs.spark.data_file_writer import DataFileWriter
from glue_jobs.spark.key_columns import encoded_bounds, normalised_keys
from glue_jobs.spark.key_hashes import key_hashes
from glue_jobs.spark.verify_files import check_files
from infra.local.embedded import EmbeddedAws

SCHEMA: Schema = (Column("id", "bigint"), Column("name", "string"))
Rows = Sequence[Sequence[Any]]
CHANGE = "0000000001-000001-0123abcd"


class Lake:
    """A folder with data files, and the snapshot that says what they are."""

    def __init__(self, s3: Any, bucket: str, schema: Schema, key: tuple[str, ...], partitioning: Partitioning) -> None:
        self.s3, self.uri = s3, S3Uri(bucket, f"verify/{uuid.uuid4().hex}/")
        self.schema, self.key, self.partitioning = schema, key, partitioning
        self.files: dict[str, DataFile] = {}

    def add(
        self, values: Rows, written: Schema | None = None, partition: tuple[str | None, ...] = (), is_ours: bool = True, **record: Any
    ) -> str:
        """Write a data file and its entry in the snapshot; its path. written: the file's own columns; record: what the entry says.

        is_ours: it has a name that dmslake gives.
        """
        schema = written or file_columns(self.schema, self.partitioning)
        table = pa.Table.from_arrays(
            [pa.array(column, kind) for column, kind in zip(zip(*values, strict=True), arrow_schema(schema).types, strict=True)],
            schema=arrow_schema(schema),
        )
        sink = io.BytesIO()
        writer = DataFileWriter(sink, schema, row_group_rows=3)
        writer.write(table)
        writer.close()
        there = [column for column in self.schema if column.name in self.key]
        low, high = None, None
        if self.key and all(column.name in table.column_names for column in there):
            low, high = encoded_bounds(table, self.key, [column.type for column in there])
        name = f"{CHANGE}-{len(self.files)}.parquet" if is_ours else f"{len(self.files)}.parquet"
        path = folder_of(self.partitioning, partition) + name
        facts = {"rows": table.num_rows, "low": low, "high": high, **record}
        return self.put(path, sink.getvalue(), DataFile(path, len(sink.getvalue()), partition=partition, **facts))

    def put(self, path: str, data: bytes, file: DataFile) -> str:
        self.s3.put_object(Bucket=self.uri.bucket, Key=self.uri.key + path, Body=data)
        self.files[path] = file
        return path

    @property
    def snapshot(self) -> Snapshot:
        return Snapshot("change", files=self.files, schema=self.schema, primary_key=self.key, partitioning=self.partitioning)

    def check(self, **options: Any) -> FileReport:
        there = {file.key[len(self.uri.key) :]: file for file in list_files(self.s3, self.uri.bucket, self.uri.key)}
        return check_files(self.s3, self.uri, self.snapshot, there, **options)

    def findings(self, **options: Any) -> list[tuple[str, str, str]]:
        """(code, path, found) of what a check finds."""
        start = len(str(self.uri))
        return [(finding.code, finding.where[start:], finding.found) for finding in self.check(**options).findings]


@pytest.fixture(scope="module")
def s3(embedded_aws: EmbeddedAws) -> Any:
    return make_clients(embedded_aws.environment()).s3


@pytest.fixture
def make_lake(s3: Any, embedded_aws: EmbeddedAws) -> Any:
    bucket = S3Uri.parse(embedded_aws.lake).bucket

    def make(schema: Schema = SCHEMA, key: tuple[str, ...] = ("id",), partition_key: str = "") -> Lake:
        return Lake(s3, bucket, schema, key, parse_partition_key(partition_key) if partition_key else ())

    return make


def numbered(*ids: int) -> Rows:
    return [(number, f"n{number}") for number in ids]


def test_files_that_are_right_give_no_finding(make_lake: Any) -> None:
    """Files, rows and bytes are counted; several row groups, ranges that meet and ranges that do not."""
    lake = make_lake()
    for ids in ((1, 2, 3, 4, 5), (2 - 10, 7), (100, 101)):
        lake.add(numbered(*ids))

    report = lake.check()

    assert (report.findings, report.files, report.rows) == ((), 3, 9)
    assert 0 < report.bytes_read < sum(file.size_bytes for file in lake.files.values())


@pytest.mark.parametrize("bucket_rows", [1000, 2])
def test_a_key_in_two_files_is_named_with_both(make_lake: Any, bucket_rows: int) -> None:
    """Held in memory, and spilled to disk by parts of the hash."""
    lake = make_lake()
    first, second = lake.add(numbered(1, 5, 9)), lake.add(numbered(4, 5, 6))
    lake.add(numbered(2, 3, 7, 8))

    assert lake.findings(bucket_rows=bucket_rows) == [("doubled-key", first, f"id=5 2 times, in {second} too")]


def test_a_key_twice_in_one_file_is_found(make_lake: Any) -> None:
    """Also where no other file's range meets it."""
    lake = make_lake()
    lake.add(numbered(1, 2))
    path = lake.add(numbered(10, 11, 12, 13, 10))

    assert lake.findings() == [("doubled-key", path, "id=10 2 times")]


def test_a_key_in_two_partitions_is_found(make_lake: Any) -> None:
    """A row that changed its partition and was left behind; the key's column may itself be a folder's."""
    lake = make_lake((*SCHEMA, Column("shop", "string")), partition_key="shop")
    paths = [lake.add(numbered(number, 5), partition=(shop,)) for number, shop in ((1, "a"), (2, None))]
    both = make_lake((*SCHEMA, Column("shop", "string")), key=("id", "shop"), partition_key="shop")
    for shop in ("a", None, "b"):
        both.add(numbered(5), partition=(shop,), low=(5,), high=(5,))

    assert lake.findings() == [("doubled-key", min(paths), f"id=5 2 times, in {max(paths)} too")]
    assert [finding[0] for finding in both.findings()] == ["wrong-file"]  # a null in a key


def test_many_doubled_keys_are_counted(make_lake: Any) -> None:
    """The first ones are named, the rest is a number."""
    lake = make_lake()
    for _ in range(2):
        lake.add(numbered(*range(50)))

    found = lake.findings()

    assert len(found) == 21
    assert found[-1] == ("doubled-key", "", "about 30 more keys that come more than once")


def test_two_keys_with_one_hash_are_no_doubled_key(make_lake: Any) -> None:
    """Long texts that differ at places of the same weight: the values decide."""
    one, other = "a" + "x" * 4095 + "b", "b" + "x" * 4095 + "a"
    assert key_hashes(pa.table({"id": [one]})) == key_hashes(pa.table({"id": [other]}))
    lake = make_lake((Column("id", "string"), Column("name", "string")))
    lake.add([(one, "1")])
    lake.add([(other, "2")])

    assert lake.findings() == []


def test_keys_without_bounds_are_compared_with_all(make_lake: Any) -> None:
    """Long texts may have no upper bound, or one that was cut."""
    long = "x" * 300
    lake = make_lake((Column("id", "string"), Column("name", "string")))
    paths = [lake.add([(long, "1"), (text, "2")]) for text in ("a", "z")]

    assert [finding[:2] for finding in lake.findings()] == [("doubled-key", min(paths))]


def test_without_a_key_only_the_footers_are_read(make_lake: Any) -> None:
    """Rows may come twice then."""
    lake = make_lake(key=())
    for _ in range(2):
        lake.add(numbered(1, 1))

    report = lake.check()

    assert (report.findings, report.rows) == ((), 4)


@pytest.mark.parametrize(
    ("given", "found"),
    [
        ({"rows": 7}, "2 rows in the footer"),
        ({"low": (2,), "high": (2,)}, "statistics outside of them: a merge would pass over rows of this file"),
        ({"low": (1,), "high": (1,)}, "statistics outside of them: a merge would pass over rows of this file"),
    ],
)
def test_a_footer_that_says_otherwise_is_found(make_lake: Any, given: dict[str, Any], found: str) -> None:
    """Rows, and the bounds by which a merge passes files over."""
    lake = make_lake()
    path = lake.add(numbered(1, 2), **given)

    assert lake.findings() == [("wrong-file", path, found)]


def test_bounds_of_the_whole_key_are_compared(make_lake: Any) -> None:
    """The statistics of the first column are within them, the keys are not."""
    lake = make_lake(key=("id", "name"))
    path = lake.add([(1, "b"), (1, "c")], low=(1, "b"), high=(1, "bz"))

    assert lake.findings() == [("wrong-file", path, "keys outside of them: a merge would pass over rows of this file")]


@pytest.mark.parametrize(
    ("written", "row", "found"),
    [
        ((Column("id", "int"), Column("name", "string")), (1, "x"), "id int"),
        ((Column("id", "bigint"), Column("other", "string")), (1, "x"), "a column 'other', which the table has not in its files"),
        ((Column("name", "string"),), ("x",), "no such column in the file"),
    ],
)
def test_columns_that_differ_are_found(make_lake: Any, written: Schema, row: tuple[Any, ...], found: str) -> None:
    """Another type, a column too many, a key column too few."""
    lake = make_lake()
    path = lake.add([row], written)

    assert lake.findings() == [("wrong-file", path, found)]


@pytest.mark.parametrize(
    ("written", "row", "found"),
    [
        ((Column("Op", "string"), Column("id", "int"), Column("name", "string")), ("I", 1, "x"), ""),
        ((Column("id", "string"), Column("name", "string")), ("1", "x"), "id string"),
        ((Column("name", "string"),), ("x",), "no such column in the file"),
    ],
)
def test_a_file_of_another_program(make_lake: Any, written: Schema, row: tuple[Any, ...], found: str) -> None:
    """It may have columns that the table has not, and narrower types; no other type, and no key column too few."""
    lake = make_lake()
    path = lake.add([row], written, is_ours=False, low=(1,), high=(1,))

    assert lake.findings() == ([("wrong-file", path, found)] if found else [])


def test_a_file_older_than_a_column_is_fine(make_lake: Any) -> None:
    """Readers see null in it."""
    lake = make_lake()
    lake.add([(1,)], (Column("id", "bigint"),))

    assert lake.findings() == []


def test_damage_is_found(make_lake: Any) -> None:
    """Bytes that are no Parquet, or whose key column can't be read."""
    lake = make_lake()
    good = lake.add(numbered(*range(1000)))
    data = lake.s3.get_object(Bucket=lake.uri.bucket, Key=lake.uri.key + good)["Body"].read()
    broken = lake.put("broken.parquet", b"no parquet", DataFile("broken.parquet", 10, 1))
    holed = lake.put("holed.parquet", data[:4] + b"\0" * 50 + data[54:], DataFile("holed.parquet", len(data), 1000))

    assert [finding[:2] for finding in lake.findings()] == [("wrong-file", broken), ("wrong-file", holed)]


def test_a_file_that_vanished_for_good_is_missing(make_lake: Any) -> None:
    """Its version is deleted between the listing and the reading."""
    lake = make_lake()
    path = lake.add(numbered(1))
    there = {path: next(list_files(lake.s3, lake.uri.bucket, lake.uri.key))}
    version = lake.s3.head_object(Bucket=lake.uri.bucket, Key=lake.uri.key + path)["VersionId"]
    lake.s3.delete_object(Bucket=lake.uri.bucket, Key=lake.uri.key + path, VersionId=version)

    found = check_files(lake.s3, lake.uri, lake.snapshot, there).findings

    assert [finding.code for finding in found] == ["missing-file"]


TIME = datetime(2024, 5, 1, 12, 30, 15, 123456, timezone.utc)
VALUES: dict[str, list[Any]] = {
    "boolean": [False, True],
    "tinyint": [-128, 0, 127],
    "bigint": [-(2**63), 0, 2**63 - 1],
    "float": [-1.5, 0.0, float("inf"), float("nan")],
    "double": [float("-inf"), -1e-300, 0.0, 1e300, float("nan")],
    "decimal(38,4)": [Decimal("-" + "9" * 34), Decimal("0.0001"), Decimal("12.3400")],
    "string": ["", "A", "a", "ä", "日本", "😀"],
    "binary": [b"", b"\0", b"\xff\xfe"],
    "date": [date(1, 1, 1), date(1969, 12, 31), date(9999, 12, 31)],
    "timestamp": [datetime(1, 1, 1, tzinfo=timezone.utc), TIME, datetime(9999, 12, 31, 23, 59, 59, 999999, timezone.utc)],
}


@pytest.mark.parametrize("kind", VALUES)
def test_keys_of_every_type_are_compared_by_value(make_lake: Any, kind: str) -> None:
    """Distinct values are no finding, in one file or many; each of them in two files is one."""
    values = VALUES[kind]
    lake = make_lake((Column("id", kind), Column("name", "string")))
    for value in values:
        lake.add([(value, "x")])
    assert lake.findings() == []

    lake.add([(value, "y") for value in values])

    assert [finding[0] for finding in lake.findings()] == ["doubled-key"] * len(values)


def test_equal_keys_have_equal_hashes_wherever_they_stand() -> None:
    """In a slice, in several chunks, as −0.0 or another NaN; and distinct ones differ."""
    texts = pa.chunked_array([pa.array(["pad", "a", "", "bb"]).slice(1), pa.array(["a", "bb"])])
    floats = pa.chunked_array([pa.array([1.0, -0.0, float("nan")]), pa.array([1.0, float("nan")])])
    table = pa.table({"text": texts, "float": floats})
    hashes = key_hashes(normalised_keys(table, ["text", "float"]))
    zeros = key_hashes(normalised_keys(pa.table({"float": pa.array([0.0, -0.0])}), ["float"]))

    assert [hashes[0] == hashes[3], hashes[2] == hashes[4], zeros[0] == zeros[1]] == [True] * 3
    assert len(np.unique(hashes)) == 3


def test_hashes_of_many_neighbours_differ() -> None:
    """Counters, and texts that share most of their bytes."""
    numbers = pa.table({"id": pa.array(range(100_000), pa.int64())})
    texts = pa.table({"id": pa.array([f"customer-{number:09d}" for number in range(100_000)])})

    assert [len(np.unique(key_hashes(table))) for table in (numbers, texts)] == [100_000, 100_000]
