"""Step 7: the catalog. Its failure doesn't undo a change, and the next run repairs it, whatever state the table is in."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import pytest

from glue_jobs.aws.records import list_records
from infra.local.dms_files import DmsRow
from tests.aws.faults import json_error
from tests.lake import START, LakeTable
from tests.protocol.conftest import AFTER, BEFORE, TableMaker
from tests.protocol.runs import die, run_on
from tests.protocol.test_converge import die_after
from tests.protocol.wire import Request, Wire, once

GLUE_WRITES = ("CreateTable", "UpdateTable", "BatchCreatePartition")


def denied(request: Request, forward: Callable[[], Any]) -> Any:
    """Every write to the catalog is refused."""
    return json_error(400, "AccessDeniedException") if request.operation in GLUE_WRITES else forward()


def glue_table(table: LakeTable) -> Any:
    database = table.environment["DMSLAKE_DATABASE"]
    return table.clients.glue.get_table(DatabaseName=database, Name=table.item()["CatalogTable"])["Table"]


def drop_glue_table(table: LakeTable) -> None:
    table.clients.glue.delete_table(DatabaseName=table.environment["DMSLAKE_DATABASE"], Name=table.item()["CatalogTable"])


def set_glue_fence(table: LakeTable, fence: int) -> None:
    """What a lease with that fence wrote, of which the item and the records know nothing."""
    found = glue_table(table)
    given = {name: found[name] for name in ("Name", "TableType", "PartitionKeys", "StorageDescriptor")}
    given["Parameters"] = {**found["Parameters"], "dmslake.fence": str(fence)}
    table.clients.glue.update_table(DatabaseName=table.environment["DMSLAKE_DATABASE"], TableInput=given)


def partitions(table: LakeTable, of: str = "") -> list[list[str]]:
    """of: what the Glue table's name ends in."""
    name = table.item()["CatalogTable"] + of
    found = table.clients.glue.get_partitions(DatabaseName=table.environment["DMSLAKE_DATABASE"], TableName=name)
    return sorted(entry["Values"] for entry in found["Partitions"])


@contextmanager
def without_database(table: LakeTable) -> Iterator[None]:
    """Runs that are not given the setting."""
    environment = table.environment
    table.environment = {**environment, "DMSLAKE_DATABASE": ""}
    yield
    table.environment = environment


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


def test_the_result_names_the_change_until_the_step_is_done(behind: LakeTable, wire: Wire) -> None:
    """So that the controller can tell; a run that has nothing else to do says it too, and one that does the step no more."""
    assert behind.item()["LastRun"]["catalog_pending"] == behind.item()["Head"]

    assert run_on(wire, behind, "LoadIncremental", denied) == 0
    again = behind.item()["LastRun"]
    assert (again["outcome"], again["catalog_pending"]) == ("nothing", behind.item()["Head"])

    assert behind.run("LoadIncremental") == 0
    assert "catalog_pending" not in behind.item()["LastRun"]


@pytest.fixture
def second(loaded: LakeTable, make_table: TableMaker) -> LakeTable:
    """A table that is not loaded yet, with the catalog name of one that is."""
    table = make_table()
    table.load([(8, "eight")])
    table.edit(CatalogTable=loaded.item()["CatalogTable"])
    return table


@pytest.mark.parametrize("settings", [{}, {"stage": "true"}])
def test_a_first_load_under_the_catalog_name_of_another_table_is_refused(
    loaded: LakeTable, second: LakeTable, settings: dict[str, str]
) -> None:
    """Once both are loaded the controller would refuse both. The other goes on; with a name of its own the table is loaded, and nobody must
    lift the block."""
    assert [second.run("LoadInitial", **settings) for _ in range(2)] == [1, 1]

    error = second.item()["LastRun"]["error"]
    assert (error["code"], str(loaded.path) in error["message"]) == ("catalog-name-taken", True)
    assert "catalog-name-taken" in second.item()["Blocked"]
    assert ("Head" in second.item(), list(list_records(second.clients.s3, second.out_path)), second.visible()) == (False, [], set())
    loaded.sync()
    assert (loaded.rows(), loaded.verify()) == (AFTER, [])

    second.edit(CatalogTable=f"{second.item()['CatalogTable']}_2")
    second.sync()
    assert (second.rows(), second.verify(), "Blocked" in second.item()) == ([(8, "eight")], [], False)


def test_a_first_load_takes_the_name_of_a_glue_table_that_is_gone(loaded: LakeTable, second: LakeTable) -> None:
    """The other table was forgotten, say: neither item nor raw files of this one need change."""
    assert second.run("LoadInitial") == 1
    drop_glue_table(loaded)

    second.sync()

    assert (second.rows(), second.verify()) == ([(8, "eight")], [])


def test_a_glue_table_of_another_program_holds_up_no_load(make_table: TableMaker) -> None:
    """Only the catalog does not follow."""
    table = make_table()
    table.load(BEFORE)
    database = table.environment["DMSLAKE_DATABASE"]
    table.edit(CatalogTable=f"of_another_{table.table}")
    given = {"Name": f"of_another_{table.table}", "StorageDescriptor": {"Location": "s3://elsewhere/"}}
    table.clients.glue.create_table(DatabaseName=database, TableInput=given)

    assert table.run("LoadInitial") == 0

    assert (table.rows(), "CatalogPending" in table.item()) == (BEFORE, True)
    assert "is of something else" in table.item()["LastRun"]["warnings"][0]


def test_a_catalog_that_does_not_answer_holds_up_no_load(second: LakeTable, wire: Wire) -> None:
    """Its step is tried after the commit, and by each run after it."""

    def unseen(request: Request, forward: Callable[[], Any]) -> Any:
        return json_error(400, "AccessDeniedException") if request.service == "glue" else forward()

    assert run_on(wire, second, "LoadInitial", unseen) == 0

    assert (second.rows(), second.item()["CatalogPending"]) == ([(8, "eight")], second.item()["Head"])


def test_a_run_without_a_database_looks_at_no_catalog(second: LakeTable) -> None:
    """The name is as good as any other."""
    with without_database(second):
        assert second.run("LoadInitial") == 0

    assert (second.rows(), "CatalogPending" in second.item()) == ([(8, "eight")], False)


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
    drop_glue_table(table)
    table.cdc([("I", (4, "four"))])

    assert table.run("LoadIncremental") == 0

    assert partitions(table) == [["four"], ["one"], ["three"], ["two"]]


@pytest.fixture
def grown(make_table: TableMaker) -> LakeTable:
    """A partitioned table with a load and a batch that added a partition."""
    table = make_table(partition_key="name")
    table.load(BEFORE)
    table.cdc([("I", (4, "four"))])
    table.sync()
    assert partitions(table) == [["four"], ["one"], ["three"], ["two"]]
    return table


def lay_out_anew(table: LakeTable) -> None:
    table.edit(PartitionKey="id", Request="repartition")
    assert table.run() == 0


@pytest.mark.parametrize("between", [lay_out_anew, drop_glue_table])
@pytest.mark.parametrize("wish", ["reapply", "to"])
def test_what_comes_back_has_its_partitions_in_a_table_that_was_made_anew(
    grown: LakeTable, between: Callable[[LakeTable], None], wish: str
) -> None:
    """The Glue table was dropped for another layout, or by a person, and made anew while the partition was undone."""
    load, batch = (record.id for record in reversed(list(grown.lineage().back())))
    between(grown)
    assert grown.run("Rollback", to=load) == 0
    undone = partitions(grown)

    assert grown.run("Rollback", **{wish: batch}) == 0

    assert (undone, partitions(grown)) == ([["one"], ["three"], ["two"]], [["four"], ["one"], ["three"], ["two"]])
    assert grown.verify() == []


def test_versions_that_come_back_have_their_partitions_too(make_table: TableMaker) -> None:
    """The history's Glue table was dropped, and made anew while the versions of a month were undone."""
    table = make_table(timestamp_column="committed")
    table.edit(History="true")
    table.put_raw("LOAD00000001.parquet", table.parquet([DmsRow("I", (1, "one"), START)]))
    table.cdc([DmsRow("U", (1, "ONE"), START + timedelta(days=31))])
    table.sync()
    months = [["2024", "5"], ["2024", "6"]]
    assert partitions(table, "_history") == months
    name = table.item()["CatalogTable"] + "_history"
    table.clients.glue.delete_table(DatabaseName=table.environment["DMSLAKE_DATABASE"], Name=name)
    assert table.run("Rollback", to="previous") == 0
    undone = partitions(table, "_history")

    assert table.run("Rollback", reapply="all") == 0

    assert (undone, partitions(table, "_history")) == (months[:1], months)


def test_a_fence_that_the_item_has_forgotten_is_outgrown(grown: LakeTable, wire: Wire) -> None:
    """The item was lost, and leases that left no record had written the catalog. A run that lost its lease leaves that alone as ever."""

    def overtake(forward: Callable[[], Any]) -> Any:
        item = grown.item()
        assert grown.state_table.take_lease(str(grown.path), item, "successor", item["Fence"] + 1, 0.05)
        set_glue_fence(grown, 40)
        return forward()

    grown.cdc([("I", (5, "five"))])
    code = run_on(wire, grown, "LoadIncremental", once(lambda sent: sent.operation == "GetTable", overtake), lease_seconds=60)
    item, fences = grown.item(), (grown.item()["Fence"], int(glue_table(grown)["Parameters"]["dmslake.fence"]))
    assert (code, item["LeaseOwner"], item["CatalogPending"], fences, ["five"] in partitions(grown)) == (
        1,
        "successor",
        item["Head"],
        (4, 40),
        False,
    )

    grown.cdc([("I", (6, "six"))])
    assert grown.run("LoadIncremental") == 0

    fences = grown.item()["Fence"], int(glue_table(grown)["Parameters"]["dmslake.fence"])
    assert (fences, partitions(grown)) == ((41, 41), [["five"], ["four"], ["one"], ["six"], ["three"], ["two"]])
    assert (grown.verify(), grown.item()["LastRun"]["warnings"], "LeaseOwner" in grown.item()) == ([], [], False)
    assert (grown.run("LoadIncremental"), grown.item()["Fence"]) == (0, 42)


@pytest.mark.parametrize("after", [False, True], ids=["before it is raised", "after"])
def test_a_run_that_dies_as_it_outgrows_a_forgotten_fence(grown: LakeTable, wire: Wire, after: bool) -> None:
    """A greater fence in the item, or none, and the catalog's step to be done: the next run does it."""
    set_glue_fence(grown, 40)
    grown.cdc([("I", (5, "five"))])

    def raises_it(request: Request) -> bool:
        return request.operation == "UpdateItem" and b'"41"' in request.body

    def last(forward: Callable[[], Any]) -> Any:
        if after:
            forward()
        return wire.kill()

    die(wire, grown, "LoadIncremental", once(raises_it, last))
    assert (grown.item()["Fence"] == 41, "CatalogPending" in grown.item()) == (after, True)

    assert grown.run("LoadIncremental") == 0
    assert (["five"] in partitions(grown), grown.verify()) == (True, [])
    assert not {"CatalogPending", "LeaseOwner"} & set(grown.item())


def test_a_repair_outgrows_a_forgotten_fence_too(grown: LakeTable) -> None:
    """No step is pending: it is the repair that finds the partition gone."""
    name, database = grown.item()["CatalogTable"], grown.environment["DMSLAKE_DATABASE"]
    grown.clients.glue.delete_partition(DatabaseName=database, TableName=name, PartitionValues=["four"])
    set_glue_fence(grown, 40)

    assert grown.repair().code == 0

    assert (grown.verify(), partitions(grown)) == ([], [["four"], ["one"], ["three"], ["two"]])


def test_without_a_database_there_is_no_catalog_step(table: LakeTable, wire: Wire) -> None:
    """The setting is empty: no request to Glue, and nothing stays pending."""
    with without_database(table):
        assert run_on(wire, table, "LoadInitial") == 0

    assert "CatalogPending" not in table.item()
    assert not [request for request in wire.requests if request.operation in ("GetTable", "CreateTable")]


def test_without_a_database_no_crash_leaves_a_step_that_nobody_can_do(loaded: LakeTable, wire: Wire) -> None:
    """The commit does not ask for one."""
    with without_database(loaded):
        die(wire, loaded, "LoadIncremental", die_after(wire, Request.is_commit, 1))
        item = loaded.item()
        code = loaded.run("LoadIncremental")

    assert ("Publishing" in item, "CatalogPending" in item) == (True, False)
    assert (code, loaded.rows(), loaded.item()["LastRun"]["warnings"]) == (0, AFTER, [])


def test_a_run_without_a_database_leaves_the_step_to_one_that_has_it(behind: LakeTable) -> None:
    """It says so, goes on with the files, and its own change is in the catalog afterwards as well."""
    pending = behind.item()["CatalogPending"]
    behind.cdc([("I", (4, "four"))])

    with without_database(behind):
        assert behind.run("LoadIncremental") == 0
    item = behind.item()
    assert (item["CatalogPending"], len(item["LastRun"]["warnings"]), len(behind.rows())) == (pending, 1, 4)
    assert "is left to a run that is given the database" in item["LastRun"]["warnings"][0]
    assert behind.run("LoadIncremental") == 0

    assert (partitions(behind), behind.verify()) == ([["four"], ["one"], ["three"], ["two"]], [])


def test_a_repair_without_a_database_says_what_it_leaves(behind: LakeTable) -> None:
    """Nothing is said to be finished, and the table still differs."""
    done = behind.repair(database="")

    assert (done.steps, len(done.warnings), behind.verify()) == ((), 1, ["unfinished-catalog"])
    assert (behind.repair().steps[0][:15], behind.verify()) == ("finished change", [])
