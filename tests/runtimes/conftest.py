"""A real Python 3.9 for the tests of this folder."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.runtimes.python39 import Python39, call, environment_with_boto3


@pytest.fixture(scope="session")
def python39(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Python39:
    """The wheel installed for Python 3.9 in a folder of this session; the environment with boto3 is kept in .cache."""
    executable = environment_with_boto3()
    packages = tmp_path_factory.mktemp("packages39")
    call(executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", packages, wheel)
    return Python39(executable, packages)
