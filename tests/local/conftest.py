"""An embedded AWS per module, with the jobs of `tests.local.jobs`."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from pathlib import Path

import pytest

from infra.local.embedded import EmbeddedAws
from tests.local.jobs import JOBS, SCRIPTS


@pytest.fixture(scope="module")
def scripts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A code folder with the scripts of the jobs."""
    folder = tmp_path_factory.mktemp("code")
    for name, text in SCRIPTS.items():
        (folder / name).write_text(textwrap.dedent(text))
    return folder


@pytest.fixture(scope="module")
def aws(scripts: Path) -> Iterator[EmbeddedAws]:
    """An embedded AWS whose jobs are these scripts; a minute of a job's Timeout takes half a second."""
    with EmbeddedAws(jobs=JOBS, code_folder=scripts, driver_memory="512m", seconds_per_timeout_minute=0.5) as running:
        yield running
