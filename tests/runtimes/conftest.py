"""The built files, and a real Python 3.9 to run them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from moto.server import ThreadedMotoServer

from controller.artifacts import build_artifacts
from infra.aws import LAKE
from tests.runtimes.environments import call
from tests.runtimes.python39 import NEWEST_BOTO3, PREINSTALLED_BOTO3, Python39, environment_with


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of `dmslake build`: the files that Glue would get."""
    folder = tmp_path_factory.mktemp("built")
    build_artifacts(LAKE.read_bytes()).write(folder)
    return folder


@pytest.fixture(scope="session")
def python39(built: Path, tmp_path_factory: pytest.TempPathFactory) -> Python39:
    """Python 3.9 with the newest boto3 it can have; the built wheel is installed in a folder of this session."""
    executable = environment_with(NEWEST_BOTO3)
    packages = tmp_path_factory.mktemp("packages39")
    (wheel,) = built.glob("*.whl")
    call(executable, "-m", "pip", "install", "--quiet", "--target", packages, wheel)
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
