"""A real Python 3.9 for the tests of this folder."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from moto.server import ThreadedMotoServer

from tests.runtimes.python39 import NEWEST_BOTO3, PREINSTALLED_BOTO3, Python39, call, environment_with


@pytest.fixture(scope="session")
def python39(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Python39:
    """Python 3.9 with the newest boto3 it can have; the wheel is installed in a folder of this session."""
    executable = environment_with(NEWEST_BOTO3)
    packages = tmp_path_factory.mktemp("packages39")
    call(executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", packages, wheel)
    return Python39(executable, packages)


@pytest.fixture(scope="session")
def python39_preinstalled(python39: Python39) -> Python39:
    """The same with the boto3 that Glue's Python shell has before anything is installed."""
    return Python39(environment_with(PREINSTALLED_BOTO3), python39.packages)


@pytest.fixture(scope="session")
def moto_server() -> Iterator[str]:
    """The URL of a moto server in this process, on a port that the system chose."""
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    yield f"http://{host}:{port}"
    server.stop()
