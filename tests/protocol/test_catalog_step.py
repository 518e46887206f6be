"""Step 7: the catalog. Its failure doesn't undo a change, and the next run repairs it, whatever state the table is in."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.aws.faults import json_error
from tests.lake import LakeTable
from tests.protocol.conftest import AFTER, BEFORE, TableMaker
from tests.protocol.runs import die, run_on
from tests.protocol.test_converge import die_after
from tests.protocol.wire import Request, Wire

GLUE_WRITES = ("CreateTable", "UpdateTable", "BatchCreatePartition")


def denied(request: Request, forward: Callable[[], Any]) -> Any:
    """Every write to the catalog is refused."""
    return json_error(400, "AccessDeniedException") if request.operation in GLUE_WRITES else forward()


def glue_table(table: LakeTable) -> Any:
    database = table.environment["DMSLAKE_DATABASE"]
    return table.clients.glue.get_table(DatabaseName=database, Name=table.item()["CatalogTable"])["Table"]


def partitions(table: LakeTable) -> list[list[str]]:
    found = table.clients.glue.get_partitions(DatabaseName=table.environment["DMSLAKE_DATABASE"], TableName=table.item()["CatalogTable"])
    return sorted(entry["Values"] for entry in found["Partitions"])


@pytest.fixture
def behind(make_table: TableMaker, wire: Wire) -> LakeTable:
    """A partitioned table that was loaded while the catalog could not be written."""
    table = make_table(partition_key="name")
    table.load(BEFORE)
    assert run_on(wire, table, "LoadInitial", denied) == 0
    return table


def test_a_change_stands_without_its_catalog_step(behind: LakeTable) -> None:
    """Exit 0, a warning, and the item says what is left to do."""
    item = behind.item()

    assert (behind.rows(), item["CatalogPending"], "Publishing" in item) == (BEFORE, item["Head"], False)
    assert item["LastRun"]["outcome"] == "committed"
    assert "was not updated" in item["LastRun"]["warnings"][0]


@pytest.mark.parametrize("edits", [{}, {"ActiveFlag": "false"}, {"Paused": "let me look"}])
def test_the_next_run_does_it_again(behind: LakeTable, edits: dict[str, str]) -> None:
    """Though nothing is pending, and though the table is inactive or paused."""
    behind.edit(**edits)

    assert behind.run("LoadIncremental") == 0

    assert "CatalogPending" not in behind.item()
    assert glue_table(behind)["StorageDescriptor"]["Location"].rstrip("/") == str(behind.out_path).rstrip("/")
    assert partitions(behind) == [["one"], ["three"], ["two"]]


def test_files_go_on_while_the_catalog_fails(behind: LakeTable, wire: Wire) -> None:
    """The next changes are applied, and the step stays pending until it works."""
    behind.cdc([("I", (4, "four"))])

    assert run_on(wire, behind, "LoadIncremental", denied) == 0
    assert (behind.rows(), behind.item()["CatalogPending"]) == (sorted([*BEFORE, (4, "four")], key=repr), behind.item()["Head"])
    assert behind.run("LoadIncremental") == 0

    assert partitions(behind) == [["four"], ["one"], ["three"], ["two"]]


@pytest.mark.parametrize("edits", [{"ActiveFlag": "false"}, {"Paused": "let me look"}])
def test_a_table_that_is_held_is_published_to_the_end(loaded: LakeTable, wire: Wire, edits: dict[str, str]) -> None:
    """Readers would see half a change; no further file is taken."""
    die(wire, loaded, "LoadIncremental", die_after(wire, Request.is_completion, 1))
    loaded.edit(**edits)
    loaded.cdc([("I", (5, "five"))])

    assert loaded.run("LoadIncremental") == 0

    assert loaded.rows() == AFTER
    loaded.check_folder()


def test_a_table_that_a_person_dropped_comes_back_whole(make_table: TableMaker) -> None:
    """A change that touches one partition creates the Glue table anew, with the partitions of all files."""
    table = make_table(partition_key="name")
    table.load(BEFORE)
    assert table.run("LoadInitial") == 0
    table.clients.glue.delete_table(DatabaseName=table.environment["DMSLAKE_DATABASE"], Name=table.item()["CatalogTable"])
    table.cdc([("I", (4, "four"))])

    assert table.run("LoadIncremental") == 0

    assert partitions(table) == [["four"], ["one"], ["three"], ["two"]]


def test_without_a_database_there_is_no_catalog_step(table: LakeTable, wire: Wire) -> None:
    """The setting is empty: no request to Glue, and nothing stays pending."""
    table.environment = {name: value for name, value in table.environment.items() if name != "DMSLAKE_DATABASE"} | {"DMSLAKE_DATABASE": ""}

    assert run_on(wire, table, "LoadInitial") == 0

    assert "CatalogPending" not in table.item()
    assert not [request for request in wire.requests if request.operation in ("GetTable", "CreateTable")]
