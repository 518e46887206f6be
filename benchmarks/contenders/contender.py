"""What a contender is: it makes its table from the base's files, applies batches of changes to it, and says how it is read."""

from __future__ import annotations

import functools
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

from benchmarks.data.base import KEY
from benchmarks.data.digest import Digest
from benchmarks.data.prepared import Prepared
from benchmarks.data.workloads import APPLY, CORRECTION_KEY, Workload
from benchmarks.server.stand import BUCKET, COPIES, base_key, changes_key, s3_client

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

# What every contender reads and writes by Spark's own S3 connector needs; of the version that Spark 3.5.6 was built with. The AWS SDK
# by its modules: the bundle that hadoop-aws asks for is 280 MB.
S3A = (
    "org.apache.hadoop:hadoop-aws:3.3.4",
    *(f"com.amazonaws:aws-java-sdk-{module}:1.12.262" for module in ("core", "s3", "sts", "kms", "dynamodb")),
)


# Where a condition on the range of the keys spares no file.
WHOLE_RANGE = dict.fromkeys(("W1", "W3", "W6", "W8"), "the range of its keys is that of the table")
# Where a MERGE that inserts nothing is no answer, or is not what is asked.
INSERTS = {**dict.fromkeys(("W4", "W5"), "it has inserts"), **dict.fromkeys(("W6", "W8"), "no counterpart, or none that was tried")}


@dataclass(frozen=True)
class World:
    """What a contender works on. environment: where the servers are, and how to log in."""

    environment: dict[str, str]
    prepared: Prepared

    @functools.cached_property
    def s3(self) -> Any:
        return s3_client(self.environment)

    @property
    def columns(self) -> list[str]:
        return list(self.prepared.base.schema.names)

    @property
    def base_url(self) -> str:
        return f"s3a://{BUCKET}/{base_key(self.prepared.base)}"

    def change_key(self, batch: int) -> str:
        return changes_key(self.prepared) + self.prepared.changes[batch].name

    def change_url(self, batch: int) -> str:
        return f"s3a://{BUCKET}/{self.change_key(batch)}"

    @property
    def changes_url(self) -> str:
        """The folder of all batches."""
        return f"s3a://{BUCKET}/{changes_key(self.prepared)}"

    def copy_base(self, bucket: str, prefix: str, names: Sequence[str] | None = None) -> None:
        """The base's files below `prefix`, all or those named, by copies in the server."""
        files = [path.name for path in self.prepared.base.paths()] if names is None else names

        def copy(name: str) -> None:
            self.s3.copy_object(Bucket=bucket, Key=prefix + name, CopySource=f"{BUCKET}/{base_key(self.prepared.base)}{name}")

        with ThreadPoolExecutor(COPIES) as threads:
            list(threads.map(copy, files))

    def put_files(self, paths: Sequence[Path], bucket: str, prefix: str) -> None:
        """Files of this machine below `prefix`, under their names."""

        def put(path: Path) -> None:
            self.s3.put_object(Bucket=bucket, Key=prefix + path.name, Body=path.read_bytes())

        with ThreadPoolExecutor(COPIES) as threads:
            list(threads.map(put, paths))

    def list_keys(self, bucket: str, prefix: str) -> Iterator[tuple[str, int]]:
        """(key, size) of the objects below `prefix`."""
        for page in self.s3.get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=prefix):
            for item in page.get("Contents", ()):
                yield item["Key"], item["Size"]


class Contender(ABC):
    """One way to keep a table up to date. Made anew in each process; `table` is a name that is used once.

    jars: Maven coordinates beside S3A's. conf: settings of the Spark session. is_whole: what it leaves has all rows, so that readers can be
    measured on it. does: the kinds of workloads that it has an answer to. without: workloads that it does not run, and why.
    """

    name: str
    title: str
    jars: tuple[str, ...] = ()
    conf: Mapping[str, str] = {}
    is_whole = True
    does: frozenset[str] = frozenset({APPLY})
    without: Mapping[str, str] = {}

    def __init__(self, world: World) -> None:
        self.world = world

    @functools.cached_property
    def spark(self) -> SparkSession:
        """The session of this process, made at its first use."""
        from benchmarks.contenders.spark_session import start_spark

        return start_spark(self.world.environment, self.jars, self.conf)

    @abstractmethod
    def make(self, table: str) -> None:
        """Make the table from the base's files. Not measured, and in a process of its own."""

    def before(self, table: str, batch: int) -> None:  # noqa: B027 - most have nothing to do
        """What happens before a batch and is not part of applying it. Not measured."""

    @abstractmethod
    def apply(self, table: str, batch: int) -> None:
        """Apply a batch: measured."""

    def undo(self, table: str) -> None:
        """Take the last batch back: measured."""
        raise NotImplementedError

    def redo(self, table: str) -> None:
        """Bring it back: measured."""
        raise NotImplementedError

    def before_load(self, table: str) -> None:  # noqa: B027 - most have nothing to do
        """What happens before a full load. Not measured."""

    def load(self, table: str) -> None:
        """Load the table from the workload's load files, partitioned by month, sorted by the key: measured."""
        raise NotImplementedError

    def correct(self, table: str) -> None:
        """Delete and update rows by CORRECTION_KEY: measured."""
        raise NotImplementedError

    @classmethod
    def refusal(cls, workload: Workload) -> str:
        """Why it does not run a workload; '' if it does."""
        return cls.without.get(workload.name) or ("" if workload.kind in cls.does else "no counterpart, or none that was tried")

    @abstractmethod
    def frame(self, table: str) -> DataFrame:
        """The table as its readers see it."""

    @property
    @abstractmethod
    def folder(self) -> tuple[str, str]:
        """(bucket, key prefix) below which the tables are: `<prefix><table>/`."""

    def expected(self) -> Digest:
        """The rows that must be there at the end."""
        return self.world.prepared.truth

    def files(self, table: str) -> list[int]:
        """The sizes of the files that a reader of the table opens, in bytes; those that only older versions of it have don't count."""
        opened = {unquote(urlsplit(address).path).rpartition("/")[2] for address in self.frame(table).inputFiles()}
        bucket, prefix = self.folder
        return [size for key, size in self.world.list_keys(bucket, f"{prefix}{table}/") if key.rpartition("/")[2] in opened]


def net_changes(spark: SparkSession, url: str) -> DataFrame:
    """The last change of each key of a DMS file: at-least-once delivery may repeat keys, and MERGE fails on a key that comes twice."""
    from pyspark.sql import functions as F

    rows = spark.read.parquet(url)
    row = F.struct(*rows.columns)
    last = rows.select(KEY, row.alias("row"), F.col("_metadata.row_index").alias("position"))
    return last.groupBy(KEY).agg(F.max_by("row", "position").alias("row")).select("row.*")


def merge_sql(target: str, columns: list[str], condition: str = "", inserts: bool = True) -> str:
    """The MERGE of the view `changes` into `target`, as Delta and Iceberg understand it. condition: on rows of `t`, beside the keys.
    inserts: whether a key that the table has not is a new row, as every batch of DMS may have some."""
    updates = ", ".join(f"t.{name} = c.{name}" for name in columns if name != KEY)
    values = ", ".join(f"c.{name}" for name in columns)
    return f"""
        MERGE INTO {target} t USING changes c ON t.{KEY} = c.{KEY}{f" AND {condition}" if condition else ""}
        WHEN MATCHED AND c.Op = 'D' THEN DELETE
        WHEN MATCHED THEN UPDATE SET {updates}
        {f"WHEN NOT MATCHED AND c.Op <> 'D' THEN INSERT ({', '.join(columns)}) VALUES ({values})" if inserts else ""}
    """


def within_range(spark: SparkSession) -> str:
    """That a key of `t` is between the least and the greatest of the view `changes`: what a careful user adds to a MERGE, so that files by
    their statistics need not be opened. One query more."""
    least, most = spark.sql(f"SELECT min({KEY}), max({KEY}) FROM changes").collect()[0]
    return f"t.{KEY} BETWEEN {least!r} AND {most!r}"


def correct_by_sql(spark: SparkSession, world: World, target: str) -> None:
    """A correction as a user of MERGE writes it: the rows of all given keys go, then those that were given come. Two commits: MERGE
    refuses several given rows for one row of the table."""
    gone, given = (spark.read.parquet(world.change_url(batch)) for batch in (0, 1))
    gone.select(*CORRECTION_KEY).union(given.select(*CORRECTION_KEY)).distinct().createOrReplaceTempView("keys")
    given.select(*world.columns).createOrReplaceTempView("given")
    same = " AND ".join(f"t.{name} = k.{name}" for name in CORRECTION_KEY)
    spark.sql(f"MERGE INTO {target} t USING keys k ON {same} WHEN MATCHED THEN DELETE")
    spark.sql(f"INSERT INTO {target} SELECT * FROM given")
