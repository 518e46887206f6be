"""One moto server for all tests of the AWS layer; every test has names of its own on it."""

from __future__ import annotations

import logging
import uuid
from collections.abc import Iterator
from typing import Any

import pytest
from moto.server import ThreadedMotoServer

from glue_jobs.aws.clients import Clients, Deadline, make_clients
from glue_jobs.aws.state_table import StateTable


@pytest.fixture(scope="session")
def endpoint() -> Iterator[str]:
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    server.start()
    host, port = server.get_host_and_port()
    yield f"http://{host}:{port}"
    server.stop()


@pytest.fixture(scope="session")
def environment(endpoint: str) -> dict[str, str]:
    return {
        "AWS_ENDPOINT_URL": endpoint,
        "AWS_REGION": "us-east-1",
        "AWS_ACCESS_KEY_ID": "testing",
        "AWS_SECRET_ACCESS_KEY": "testing",
    }


@pytest.fixture
def deadline() -> Deadline:
    return Deadline()


@pytest.fixture(scope="session")
def session(environment: dict[str, str]) -> Any:
    """One for all tests, because it keeps the service models, which take a quarter of a second to load."""
    return Clients(environment)._new_session()


@pytest.fixture
def clients(environment: dict[str, str], deadline: Deadline, session: Any) -> Clients:
    clients = make_clients(environment, deadline)
    clients._session = session
    return clients


@pytest.fixture
def s3(clients: Clients) -> Any:
    return clients.s3


@pytest.fixture
def glue(clients: Clients) -> Any:
    return clients.glue


@pytest.fixture
def bucket(s3: Any) -> str:
    """A bucket with versioning."""
    name = f"lake-{uuid.uuid4().hex}"
    s3.create_bucket(Bucket=name)
    s3.put_bucket_versioning(Bucket=name, VersioningConfiguration={"Status": "Enabled"})
    return name


@pytest.fixture
def pauses() -> list[float]:
    """What was slept, had it been slept; its append is given as `pause`."""
    return []


@pytest.fixture
def table(clients: Clients, pauses: list[float]) -> StateTable:
    table = StateTable(clients, f"state-{uuid.uuid4().hex}", pause=pauses.append)
    table.ensure()
    return table
