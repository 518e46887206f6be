"""Fixtures: a moto in this process, alone or behind a loopback port; tables with a past on the embedded AWS."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from moto import mock_aws
from moto.server import ThreadedMotoServer

from glue_jobs.aws.clients import Clients, make_clients
from infra.local.embedded import EmbeddedAws
from tests.controller.past_world import Command, PastWorld, command, make_world
from tests.controller.world import CREDENTIALS, World
from tests.lake import LakeTable


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


@pytest.fixture(scope="session")
def lake_clients(embedded_aws: EmbeddedAws) -> Clients:
    """Clients of the embedded AWS for all tests; a command makes its own."""
    return make_clients(embedded_aws.environment())


@pytest.fixture
def past_world(embedded_aws: EmbeddedAws, lake_clients: Clients) -> PastWorld:
    """An embedded AWS with a raw folder of the test's own."""
    return make_world(embedded_aws, lake_clients)


@pytest.fixture(scope="module")
def kept_world(embedded_aws: EmbeddedAws, lake_clients: Clients) -> PastWorld:
    """The same for the tests of a module that change nothing."""
    return make_world(embedded_aws, lake_clients)


@pytest.fixture
def lake_command(past_world: PastWorld, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Command:
    """Runs a command line in this process on the test's own tables."""
    return command(past_world, capsys, monkeypatch)


@pytest.fixture
def kept_command(kept_world: PastWorld, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Command:
    """Runs a command line in this process on the module's tables."""
    return command(kept_world, capsys, monkeypatch)


@pytest.fixture(scope="module")
def kept_history(kept_world: PastWorld) -> LakeTable:
    """A table with a load and two batches, for tests that change nothing."""
    return kept_world.history()
