"""A person moves the cursor of a table: back to replay CDC files, forward to skip them."""

from __future__ import annotations

import pyarrow as pa
import pytest

from infra.local.embedded import EmbeddedAws
from tests.lake import LakeTable

COLUMNS = pa.schema([("id", pa.int64()), ("name", pa.string())])


@pytest.fixture
def table(embedded_aws: EmbeddedAws) -> LakeTable:
    return LakeTable(embedded_aws.environment(), embedded_aws.raw, embedded_aws.lake, COLUMNS)


def test_a_cursor_moved_back_replays_every_file_after_it(table: LakeTable) -> None:
    """Also in batches of one file: a replay that stopped half-way would leave the rows of an older file."""
    table.load([(1, "loaded")])
    keys = [table.cdc([("U", (1, f"version {number}"))]) for number in range(4)]
    table.sync()
    table.edit(LastIncrementalFile=f"{table.path.bucket}/{keys[0]}")

    table.sync(batch_files=1)

    assert table.rows() == [(1, "version 3")]
    assert table.item()["LastIncrementalFile"] == f"{table.path.bucket}/{keys[3]}"


def test_a_cursor_moved_forward_skips_the_files_between_for_good(table: LakeTable) -> None:
    """They don't come back as late files, and the record lists them."""
    table.load([(1, "loaded")])
    table.cdc([("U", (1, "applied"))])
    table.sync()
    skipped = table.cdc([("I", (2, "skipped"))])
    table.edit(LastIncrementalFile=f"{table.path.bucket}/{skipped}")
    table.cdc([("I", (3, "after"))])

    table.sync()
    table.sync()

    assert table.rows() == [(1, "applied"), (3, "after")]
    assert [item.key for item in table.head().skipped] == [skipped]
