"""Fixtures of lake tables whose runs happen in this process: on a moto in this process, or on the embedded AWS."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import pyarrow as pa
import pytest
from moto import mock_aws

from glue_jobs.aws.clients import Clients, make_clients
from glue_jobs.aws.state_table import StateTable
from infra.local.embedded import EmbeddedAws
from tests.quick_aws import QuickAws
from tests.spark.tables import SHOP, WorkTable

MakeTable = Callable[..., WorkTable]
IN_PROCESS = {
    "AWS_ACCESS_KEY_ID": "testing",
    "AWS_SECRET_ACCESS_KEY": "testing",
    "AWS_REGION": "us-east-1",
    "DMSLAKE_STATE_TABLE": "states",
}


@pytest.fixture(scope="module")
def in_process() -> Iterator[Clients]:
    """Clients of a moto in this process with a raw and a versioned lake bucket: three times as quick as one behind a port."""
    with mock_aws():
        clients = make_clients(IN_PROCESS)
        for bucket in ("raw", "lake"):
            clients.s3.create_bucket(Bucket=bucket)
        clients.s3.put_bucket_versioning(Bucket="lake", VersioningConfiguration={"Status": "Enabled"})
        yield clients


@pytest.fixture
def names_of_any_age(monkeypatch: pytest.MonkeyPatch) -> None:
    """CDC files may be named long before they are written, as most of the tests' are: else a load after them looks like a copied folder."""
    monkeypatch.setattr("glue_jobs.core.load_plan._CLEARLY", timedelta(days=36_500))


@pytest.fixture
def new_table(in_process: Clients) -> MakeTable:
    """Makes tables on the AWS in this process; Spark can't be used on them."""

    def make(columns: pa.Schema = SHOP, **attributes: Any) -> WorkTable:
        return WorkTable(IN_PROCESS, "s3://raw/dms/", "s3://lake/lake/", columns, shared=in_process, **attributes)

    return make


@pytest.fixture(scope="session")
def quick_aws() -> Iterator[QuickAws]:
    """What `embedded_aws` is, for tests whose runs are calls in this process: half the time, and no port, no jobs, no Spark."""
    with QuickAws().connected() as aws:
        aws.create()
        StateTable(make_clients(aws.environment()), aws.state_table).ensure()
        yield aws


@pytest.fixture(scope="session")
def quick_clients(quick_aws: QuickAws) -> Clients:
    """One set of clients for the tests' own requests to it."""
    return make_clients(quick_aws.environment())


@pytest.fixture
def quick_table(quick_aws: QuickAws, quick_clients: Clients) -> MakeTable:
    """Makes tables there: as quick as `new_table`, and an aborted upload is answered as S3 does."""

    def make(columns: pa.Schema = SHOP, **attributes: Any) -> WorkTable:
        return WorkTable(quick_aws.environment(), quick_aws.raw, quick_aws.lake, columns, shared=quick_clients, **attributes)

    return make


@pytest.fixture(scope="session")
def embedded_clients(embedded_aws: EmbeddedAws) -> Clients:
    """One set of clients for the tests' own requests to the embedded AWS."""
    return make_clients(embedded_aws.environment())


@pytest.fixture
def served_table(embedded_aws: EmbeddedAws, embedded_clients: Clients) -> MakeTable:
    """The same on the embedded AWS, where Spark's workers reach it."""

    def make(columns: pa.Schema = SHOP, **attributes: Any) -> WorkTable:
        return WorkTable(embedded_aws.environment(), embedded_aws.raw, embedded_aws.lake, columns, shared=embedded_clients, **attributes)

    return make
