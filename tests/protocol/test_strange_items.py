"""An item whose key is no table's path, as a person's slip leaves one, stops no other table."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from glue_jobs.past import open_past
from glue_jobs.rows import create_table, insert_rows
from tests.lake import DRIVER, JOBS, LakeTable
from tests.protocol.conftest import BEFORE


@pytest.fixture
def beside(loaded: LakeTable) -> Iterator[LakeTable]:
    """A loaded table, in a state table with items that are no table's; one has its path in another spelling."""
    keys = ("x", f"s3://{loaded.path}")
    for key in keys:
        loaded.state_table.create({"path": key})
    yield loaded
    for key in keys:
        loaded.clients.dynamodb.delete_item(TableName=loaded.state_table.name, Key={"path": {"S": key}})


def test_jobs_find_tables_by_their_short_names(beside: LakeTable) -> None:
    """For that they look at all items."""
    argv = ["--path", f"shop.{beside.table}", "--state_table", beside.state_table.name, "--driver_bytes", DRIVER]

    assert JOBS["LoadIncremental"](argv, beside.environment) == 0

    assert beside.item()["LastRun"]["outcome"] == "committed"


def test_programs_find_tables_by_their_short_names(beside: LakeTable) -> None:
    """To change them and to read them."""
    name = f"shop.{beside.table}"

    change = insert_rows(name, [{"id": 9, "name": "nine"}], environment=beside.environment, driver_bytes=DRIVER)

    assert beside.item()["Head"] == change
    assert open_past(name, beside.environment).table().read().num_rows == len(BEFORE) + 1


def test_tables_are_made(beside: LakeTable) -> None:
    """For that their names are compared with those of all items."""
    path = f"{str(beside.out_path)[:-1]}_made/"

    change = create_table(path, "id bigint", primary_key="id", environment=beside.environment)

    item = beside.state_table.get(path[len("s3://") :])
    assert item is not None
    assert item["Head"] == change
