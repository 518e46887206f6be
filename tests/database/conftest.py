"""A real database server, and an S3 to capture it into."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import boto3
import pytest
from moto.server import ThreadedMotoServer

from infra.local.capture import CaptureSummary
from infra.local.capture import capture as real_capture
from infra.local.embedded import EmbeddedAws
from tests.database.files import RawFiles
from tests.database.lake import LakeDatabase, create_spark_jobs
from tests.database.server import MariaDb, running_mariadb
from tests.database.steps import Capture
from tests.database.steps import run as run_statements

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_numbers = itertools.count(1)


@pytest.fixture(scope="session")
def mariadb() -> Iterator[MariaDb]:
    """The MariaDB server of this test run; a test without one fails."""
    with running_mariadb() as server:
        yield server


@pytest.fixture
def database(mariadb: MariaDb) -> Iterator[str]:
    """The name of an empty database."""
    name = f"shop{next(_numbers)}"
    with mariadb.connect(autocommit=True) as connection, connection.cursor() as cursor:
        cursor.execute(f"CREATE DATABASE {name}")
        yield name
        cursor.execute(f"DROP DATABASE {name}")


@pytest.fixture
def connection(mariadb: MariaDb, database: str) -> Iterator[Any]:
    """A connection to the database, with autocommit."""
    with mariadb.connect(database, autocommit=True) as connection:
        yield connection


@pytest.fixture(scope="session")
def s3_client() -> Iterator[Any]:
    """A client of an S3 server in this process."""
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    yield boto3.client(
        "s3",
        endpoint_url=f"http://{host}:{port}",
        region_name="us-east-1",
        aws_access_key_id="test",
        aws_secret_access_key="test",
    )
    server.stop()


@pytest.fixture
def raw(s3_client: Any, database: str) -> RawFiles:
    """A new raw bucket, `s3://raw-<n>/dms/`, for the database."""
    bucket = f"raw-{next(_numbers)}"
    s3_client.create_bucket(Bucket=bucket)
    return RawFiles(s3_client, bucket, "dms/", database)


@pytest.fixture
def capture(mariadb: MariaDb, raw: RawFiles) -> Capture:
    """A capture of the test's database into its raw bucket."""

    def run(**arguments: Any) -> CaptureSummary:
        return real_capture(mariadb.url(raw.database), raw.url, s3_client=raw.client, **arguments)

    return run


@pytest.fixture
def table(connection: Any) -> str:
    """A table `t` with the rows 1 and 2."""
    run_statements(connection, "CREATE TABLE t (id int PRIMARY KEY, v varchar(20))", "INSERT INTO t VALUES (1, 'a'), (2, 'b')")
    return "t"


@pytest.fixture(scope="session")
def lake_aws(embedded_aws: EmbeddedAws) -> Iterator[EmbeddedAws]:
    """An AWS of its own, with jobs that do all work on Spark beside the usual ones.

    On the shared one a controller would also finish, or fail at, what other tests left unfinished on purpose.
    """
    del embedded_aws  # only needed for its credentials in the environment
    with EmbeddedAws() as aws:
        create_spark_jobs(aws)
        yield aws


@pytest.fixture
def lake(mariadb: MariaDb, database: str, lake_aws: EmbeddedAws, spark: SparkSession, tmp_path: Path) -> LakeDatabase:
    """The database's raw folder and lake tables on the embedded AWS; no table is active yet."""
    return LakeDatabase(lake_aws, mariadb, database, spark, tmp_path)
