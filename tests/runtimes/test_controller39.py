"""The controller as Glue's Python shell runs it: Python 3.9, boto3 and the wheel; the jobs it starts run on this Python."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pyarrow as pa
import pytest

from infra.local.embedded import EmbeddedAws
from tests.lake import LakeTable
from tests.runtimes.python39 import Python39

COLUMNS = pa.schema([("id", pa.int64()), ("name", pa.string())])


@pytest.fixture(scope="module")
def aws() -> Iterator[EmbeddedAws]:
    with EmbeddedAws() as started:
        yield started


def test_a_controller_on_python39_brings_a_table_up_to_date(python39: Python39, aws: EmbeddedAws) -> None:
    """It discovers, plans, starts LoadInitial and LoadIncremental, waits, and reports what they did."""
    table = LakeTable(aws.environment(), aws.raw, aws.lake, COLUMNS)
    table.load([(1, "one"), (2, "two")])
    table.cdc([("U", (1, "uno")), ("D", (2, None)), ("I", (3, "three"))])

    done = python39.run39(["-m", "controller.main", "--wait_seconds", "0.2"], aws.environment())

    assert done.returncode == 0, done.stdout + done.stderr
    report = [json.loads(line) for line in done.stdout.splitlines()]
    assert report[0]["table"]["outcome"] == "committed"
    assert table.rows() == [(1, "uno"), (3, "three")]


def test_its_exit_code_and_words_say_what_is_wrong(python39: Python39, aws: EmbeddedAws) -> None:
    """A lake bucket without versioning is refused before anything is started."""
    environment = {**aws.environment(), "DMSLAKE_LAKE": f"s3://{aws.raw_bucket}/lake/"}

    done = python39.run39(["-m", "controller.main"], environment)

    assert done.returncode == 3
    assert "put-bucket-versioning" in done.stdout
