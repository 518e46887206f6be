"""Fixtures: a moto in this process, alone or behind a loopback port."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from moto import mock_aws
from moto.server import ThreadedMotoServer

from glue_jobs.aws.clients import Clients, make_clients
from tests.controller.world import CREDENTIALS, World


@pytest.fixture(scope="session")
def same_clients() -> Clients:
    """One set for all tests: making clients loads service models, a quarter of a second each time."""
    with mock_aws():
        clients = make_clients(CREDENTIALS)
        assert all((clients.s3, clients.dynamodb, clients.glue))
    return clients


@pytest.fixture
def clients(same_clients: Clients) -> Iterator[Clients]:
    """Clients of a moto in this process, empty at first."""
    with mock_aws():
        yield same_clients


@pytest.fixture
def world(clients: Clients) -> World:
    """Raw bucket, versioned lake bucket and state table."""
    return World(clients).set_up()


@pytest.fixture(scope="session")
def moto_url() -> Iterator[str]:
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    try:
        host, port = server.get_host_and_port()
        yield f"http://{host}:{port}"
    finally:
        server.stop()


@pytest.fixture
def served(moto_url: str, monkeypatch: pytest.MonkeyPatch) -> World:
    """A world behind a loopback port, to which this process's environment points, as a person's would."""
    import urllib.request

    urllib.request.urlopen(urllib.request.Request(f"{moto_url}/moto-api/reset", method="POST"), timeout=10).close()
    environment = {
        **CREDENTIALS,
        "AWS_ENDPOINT_URL": moto_url,
        "DMSLAKE_RAW": "s3://raw-bucket/dms/",
        "DMSLAKE_LAKE": "s3://lake-bucket/lake/",
        "DMSLAKE_DATABASE": "lake",
        "DMSLAKE_WAIT_SECONDS": "0",
    }
    for name in ("AWS_PROFILE", "AWS_SESSION_TOKEN", "DMSLAKE_RUNNER", "DMSLAKE_STATE_TABLE", "DMSLAKE_JOB_PREFIX"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    return World(make_clients(environment)).set_up()
