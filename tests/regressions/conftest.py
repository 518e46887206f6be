"""An AWS in this process, with lake tables whose runs happen in this process too."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa
import pytest
from moto import mock_aws

from glue_jobs.aws.clients import Clients, make_clients
from infra.local.embedded import EmbeddedAws
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
    """Clients of a moto in this process with a raw and a versioned lake bucket."""
    with mock_aws():
        clients = make_clients(IN_PROCESS)
        for bucket in ("raw", "lake"):
            clients.s3.create_bucket(Bucket=bucket)
        clients.s3.put_bucket_versioning(Bucket="lake", VersioningConfiguration={"Status": "Enabled"})
        yield clients


@pytest.fixture
def new_table(in_process: Clients) -> MakeTable:
    """Makes tables of (id, name, qty); Spark can't be used on them."""

    def make(columns: pa.Schema = SHOP, **attributes: Any) -> WorkTable:
        return WorkTable(IN_PROCESS, "s3://raw/dms/", "s3://lake/lake/", columns, shared=in_process, **attributes)

    return make


@pytest.fixture
def served_table(embedded_aws: EmbeddedAws, embedded_clients: Clients) -> MakeTable:
    """The same on the embedded AWS, which says of an aborted upload that there is none, as S3 does."""

    def make(columns: pa.Schema = SHOP, **attributes: Any) -> WorkTable:
        return WorkTable(embedded_aws.environment(), embedded_aws.raw, embedded_aws.lake, columns, shared=embedded_clients, **attributes)

    return make


@pytest.fixture(scope="session")
def embedded_clients(embedded_aws: EmbeddedAws) -> Clients:
    return make_clients(embedded_aws.environment())
