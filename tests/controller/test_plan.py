"""The planner: one action per table, packed into runs."""

from __future__ import annotations

import re
from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controller import plan as plan_module
from controller.gather import Facts
from controller.plan import LOAD_INCREMENTAL, LOAD_INITIAL, TablePlan, find_clashes, is_small, pack_runs, plan_run
from glue_jobs.core.actions import Action
from glue_jobs.core.errors import ConfigurationError, blocked
from glue_jobs.core.limits import Limits
from glue_jobs.core.paths import TablePath
from glue_jobs.core.state import TableState
from tests.controller.world import facts, gathered, raw_file, table_path

ORDERS, STORES = table_path(), table_path("stores")
LOAD = raw_file(ORDERS, "LOAD00000001.parquet", 1000)
LOAD_AGAIN = raw_file(ORDERS, "LOAD00000002.parquet")
CDC = [raw_file(ORDERS, f"20240501-0{hour}0000000.parquet", 10 + hour) for hour in range(1, 6)]


def one(fact: Facts, limits: Limits | None = None) -> TablePlan:
    (table,) = plan_run(gathered(fact, limits=limits)).tables
    return table


@pytest.mark.parametrize(
    ("fact", "action", "job"),
    [
        (facts(ORDERS, LOAD), "load", LOAD_INITIAL),
        (facts(ORDERS, CDC[0]), "apply", LOAD_INCREMENTAL),
        (facts(ORDERS, CDC[1], loaded=(LOAD, CDC[0])), "apply", LOAD_INCREMENTAL),
        (facts(ORDERS, CDC[0], loaded=(LOAD, CDC[1])), "apply-late", LOAD_INCREMENTAL),
        (facts(ORDERS, loaded=(LOAD,)), "up-to-date", ""),
        (facts(ORDERS, raw_file(ORDERS, "LOAD00000002.parquet"), loaded=(LOAD,)), "reload", LOAD_INITIAL),
        (facts(ORDERS, raw_file(ORDERS, "LOAD00000002.parquet", age_hours=0), loaded=(LOAD,)), "reload-waits", ""),
        (facts(ORDERS, loaded=(LOAD,), Publishing="x"), "finish", LOAD_INCREMENTAL),
        (facts(ORDERS, loaded=(LOAD,), CatalogPending="x", ActiveFlag="false"), "finish", LOAD_INCREMENTAL),
        (facts(ORDERS, CDC[0], loaded=(LOAD,), CatalogPending="x"), "finish", LOAD_INCREMENTAL),
        (facts(ORDERS, LOAD_AGAIN, loaded=(LOAD,), CatalogPending="x"), "finish", LOAD_INITIAL),
        (facts(ORDERS, LOAD_AGAIN, loaded=(LOAD,), CatalogPending="x", Publishing="x"), "finish", LOAD_INCREMENTAL),
        (facts(ORDERS, loaded=(LOAD,), Request="repartition"), "repartition", LOAD_INCREMENTAL),
        (facts(ORDERS, LOAD, ActiveFlag="false"), "inactive", ""),
        (facts(ORDERS, LOAD, Paused="rolled back"), "paused", ""),
        (facts(ORDERS), "no-files", ""),
        (facts(ORDERS, LOAD, raw_file(ORDERS, "notes.txt")), "blocked", ""),
    ],
)
def test_action_and_job(fact: Facts, action: str, job: str) -> None:
    """Loads go to LoadInitial, all other work to LoadIncremental, and a table at rest to no job. A load behind a catalog step goes to its
    own job, which tries the step as well: one that fails for days would hold it up."""
    table = one(fact)

    assert (table.action, table.job) == (action, job)


def test_files_and_bytes_of_a_batch() -> None:
    """files and bytes are the next batch's; pending_bytes is all that waits."""
    table = one(facts(ORDERS, *CDC[1:], loaded=(LOAD, CDC[0])), Limits(batch_files=2))

    assert (table.files, table.bytes) == (2, CDC[1].size + CDC[2].size)
    assert table.pending_bytes == sum(file.size for file in CDC[1:])
    assert "2 more" in table.reason


def test_unfinished_step_does_not_hide_what_is_pending() -> None:
    """A table that must finish a publish first is weighed by what it applies after that."""
    fact = facts(ORDERS, CDC[1], loaded=(LOAD, CDC[0]), Publishing="x")

    assert one(fact).pending_bytes == CDC[1].size


def test_rewrite_weighs_the_table() -> None:
    """A rewrite's bytes are those of the table."""
    assert one(facts(ORDERS, loaded=(LOAD,), table_bytes=5000, Request="repartition")).pending_bytes == 5000


def test_unreadable_table_is_a_problem_of_its_own() -> None:
    """One table's error is in its plan, and the other table is planned."""
    bad = Facts("raw-bucket/dms/shop/bad/", problem=blocked("bad-attribute", "the attribute ActiveFlag can't be read", todo="correct it"))
    config = Facts("raw-bucket/dms/shop/denied/", problem=ConfigurationError("denied"))

    plan = plan_run(gathered(bad, config, facts(ORDERS, LOAD)))

    assert [table.action for table in plan.tables] == ["error", "error", "load"]
    assert plan.tables[0].problem is not None
    assert plan.tables[0].problem.todo == "correct it"
    assert plan.tables[1].problem is not None
    assert plan.tables[1].problem.exit_code == 3
    assert [run.paths for run in plan.runs] == [(str(ORDERS),)]


def test_what_nobody_foresaw_of_one_table_stops_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its plan is an error that says what, and where."""
    planned = plan_module.plan_table

    def fails(state: TableState, *given: Any) -> Action:
        if state.path == STORES:
            raise KeyError("nobody thought of that")
        return planned(state, *given)

    monkeypatch.setattr(plan_module, "plan_table", fails)
    plan = plan_run(gathered(facts(ORDERS, LOAD), facts(STORES, LOAD)))

    said = {table.path: (table.problem.code, table.problem.message) if table.problem else None for table in plan.tables}
    assert said[str(ORDERS)] is None
    assert said[str(STORES)][0] == "unexpected"
    assert re.fullmatch(r"KeyError in test_plan\.py, line \d+: 'nobody thought of that'", said[str(STORES)][1])
    assert [run.paths for run in plan.runs] == [(str(ORDERS),)]


def test_loads_come_first_and_large_before_small() -> None:
    """LoadInitial's runs come before LoadIncremental's; of one job the largest first."""
    paths = [table_path(name) for name in ("a", "b", "c", "d")]
    tables = [
        facts(paths[0], raw_file(paths[0], "20240501-010000000.parquet", 10)),
        facts(paths[1], raw_file(paths[1], "LOAD00000001.parquet", 10)),
        facts(paths[2], raw_file(paths[2], "LOAD00000001.parquet", 5000)),
        facts(paths[3], raw_file(paths[3], "LOAD00000001.parquet", 20)),
    ]

    plan = plan_run(gathered(*tables, limits=Limits(packed_pending_bytes=1000)))

    assert [(run.job, run.paths) for run in plan.runs] == [
        (LOAD_INITIAL, (str(paths[2]),)),
        (LOAD_INITIAL, (str(paths[1]), str(paths[3]))),
        (LOAD_INCREMENTAL, (str(paths[0]),)),
    ]
    assert [plan.run_of(str(path)) for path in paths] == [3, 2, 1, 2]


@st.composite
def planned(draw: st.DrawFn) -> list[TablePlan]:
    jobs = st.sampled_from(["", LOAD_INITIAL, LOAD_INCREMENTAL])
    sizes = st.integers(0, 200)
    return [
        TablePlan(f"bucket/s/t{number:02d}/", "x", job=draw(jobs), pending_bytes=draw(sizes), table_bytes=draw(sizes))
        for number in range(draw(st.integers(0, 30)))
    ]


@given(planned(), st.integers(1, 300), st.integers(1, 6), st.integers(0, 200), st.integers(1, 200))
def test_packing(tables: list[TablePlan], run_bytes: int, run_tables: int, pending: int, table: int) -> None:
    """Every table with a job is in one run of that job; a large one alone; shared runs keep both bounds."""
    limits = Limits(packed_run_bytes=run_bytes, packed_run_tables=run_tables, packed_pending_bytes=pending, small_table_bytes=table)
    by_path = {table.path: table for table in tables}

    runs = pack_runs(tables, limits)

    assert Counter((run.job, path) for run in runs for path in run.paths) == Counter(
        (table.job, table.path) for table in tables if table.job
    )
    for run in runs:
        members = [by_path[path] for path in run.paths]
        assert run.pending_bytes == sum(member.pending_bytes for member in members)
        if len(members) > 1:
            assert all(is_small(member, limits) for member in members)
            assert run.pending_bytes <= run_bytes
            assert len(members) <= run_tables


def test_a_table_whose_lease_a_dead_run_left_is_alone() -> None:
    """What killed that run may do so again: the other tables of it have their turn."""
    left = {"b": ("owner", 7), "d": ("owner", 0)}
    tables = [TablePlan(f"bucket/s/{name}/", "apply", job=LOAD_INCREMENTAL, lease=left.get(name, ("", 0))) for name in "abcde"]

    runs = pack_runs(tables, Limits())

    assert sorted("".join(path[-2] for path in run.paths) for run in runs) == ["ace", "b", "d"]


@given(planned())
def test_packing_is_the_same_for_any_order(tables: list[TablePlan]) -> None:
    """The order in which tables were read doesn't show in the runs."""
    assert pack_runs(tables, Limits()) == pack_runs(list(reversed(tables)), Limits())


def test_two_new_tables_with_one_catalog_name_are_both_refused() -> None:
    """`sales.a_b` and `sales_a.b` would be one catalog table: both errors name both paths, and no run is started."""
    first, second = TablePath("raw-bucket", "dms/sales/", "a_b/"), TablePath("raw-bucket", "dms/sales_a/", "b/")

    plan = plan_run(gathered(*(facts(path, raw_file(path, "LOAD00000001.parquet")) for path in (first, second))))

    assert [table.action for table in plan.tables] == ["blocked", "blocked"]
    assert plan.runs == ()
    for table in plan.tables:
        assert table.problem is not None
        assert str(first) in table.problem.message
        assert str(second) in table.problem.message


def test_a_loaded_table_keeps_its_catalog_name() -> None:
    """Of two with one name, the new one gives way, and the loaded one goes on."""
    old, new = TablePath("raw-bucket", "dms/sales/", "a_b/"), TablePath("raw-bucket", "dms/sales_a/", "b/")
    tables = [facts(old, loaded=(raw_file(old, "LOAD00000001.parquet"),)), facts(new, raw_file(new, "LOAD00000001.parquet"))]

    assert set(find_clashes(tables)) == {str(new)}


def test_a_name_of_its_own_resolves_the_clash() -> None:
    """CatalogTable in the item is the name; inactive tables don't count."""
    first, second = TablePath("raw-bucket", "dms/sales/", "a_b/"), TablePath("raw-bucket", "dms/sales_a/", "b/")

    assert find_clashes([facts(first), facts(second, CatalogTable="other")]) == {}
    assert find_clashes([facts(first), facts(second, ActiveFlag="false")]) == {}


@pytest.mark.parametrize(
    "other", ["s3://lake-bucket/lake/shop/orders/", "s3://lake-bucket/lake/shop/orders/part/", "s3://lake-bucket/lake/shop/"]
)
def test_two_tables_in_one_lake_folder_are_refused(other: str) -> None:
    """The same folder, or one inside the other, would mix two tables' files."""
    second = table_path("second")

    clashes = find_clashes([facts(ORDERS), facts(second, out_path=other)])

    assert set(clashes) == {str(ORDERS), str(second)}
    assert clashes[str(ORDERS)].code == "lake-folder-taken"


@pytest.mark.parametrize("attributes", [{"ActiveFlag": "false"}, {"ActiveFlag": "false", "Source": "none"}])
def test_a_new_table_gives_way_to_the_files_of_a_loaded_one(attributes: dict[str, str]) -> None:
    """Also of one that is not active, or has no source: its files are in the folder. A table that is loaded goes on beside it."""
    path = table_path("archive")
    other = facts(
        path, loaded=(raw_file(path, "LOAD00000001.parquet"),), out_path="s3://lake-bucket/lake/shop/orders/archive/", **attributes
    )
    never_loaded = facts(path, out_path="s3://lake-bucket/lake/shop/orders/archive/", **attributes)

    clashes = find_clashes([facts(ORDERS), other])

    assert set(clashes) == {str(ORDERS)}
    assert clashes[str(ORDERS)].code == "lake-folder-taken"
    assert str(path) in clashes[str(ORDERS)].message
    assert find_clashes([facts(ORDERS, loaded=(LOAD,)), other]) == {}
    assert find_clashes([facts(ORDERS), never_loaded]) == {}


def test_a_history_is_kept_in_no_table_s_folder() -> None:
    """Loaded by one run, neither would find the other's files there. One that is loaded goes on, and its own run finds what is wrong."""
    path = table_path("orders_history")
    new, keeping = facts(path), facts(ORDERS, History="true", PrimaryKey="id")
    loaded = facts(ORDERS, loaded=(LOAD,), History="true", PrimaryKey="id")

    clashes = find_clashes([keeping, new])

    assert {name: problem.code for name, problem in clashes.items()} == dict.fromkeys((str(ORDERS), str(path)), "lake-folder-taken")
    assert set(find_clashes([loaded, new])) == {str(path)}
    assert find_clashes([facts(ORDERS, PrimaryKey="id"), new]) == {}
    assert find_clashes([keeping, facts(path, ActiveFlag="false")]) == {}


def test_a_table_that_is_not_planned_may_have_the_folder() -> None:
    """Of another controller, say. Nothing is decided on it, its catalog may be another, and where it is neither active nor loaded it
    stops nobody; the rules are those of two tables that are planned."""
    us = TablePath("raw-bucket", "us/shop/", "orders/")
    shares = {"out_path": "s3://lake-bucket/lake/shop/orders/", "CatalogTable": "shop_orders"}

    def clashing(fact: Facts, **attributes: str) -> set[str]:
        state = facts(us, **{**shares, **attributes}).state
        assert state is not None
        return set(find_clashes([fact], others=[state]))

    new, loaded, idle = facts(ORDERS), facts(ORDERS, loaded=(LOAD,)), facts(ORDERS, ActiveFlag="false")
    assert [clashing(fact) for fact in (new, loaded, idle)] == [{str(ORDERS)}, {str(ORDERS)}, set()]
    was_loaded = {"ActiveFlag": "false", "Head": "0000000001-000001-0123abcd"}
    assert [clashing(fact, **was_loaded) for fact in (new, loaded, idle)] == [{str(ORDERS)}, set(), set()]
    assert clashing(new, ActiveFlag="false") == set()
    assert clashing(new, out_path="s3://lake-bucket/us/shop/orders/") == set()


def test_a_table_that_is_not_asked_for_may_have_the_name() -> None:
    """Of the same scope. Nothing is said of that one; the rules are those of two tables that are asked for."""
    other = table_path("orders", "other")

    def clashing(fact: Facts, loaded: bool = False, **attributes: str) -> dict[str, str]:
        sibling = facts(other, loaded=(LOAD,) if loaded else (), **{"CatalogTable": "shop_orders", **attributes})
        return {path: problem.code for path, problem in find_clashes([fact], [sibling]).items()}

    taken = {str(ORDERS): "catalog-name-taken"}
    assert clashing(facts(ORDERS)) == clashing(facts(ORDERS), loaded=True) == clashing(facts(ORDERS, loaded=(LOAD,)), loaded=True) == taken
    assert clashing(facts(ORDERS, loaded=(LOAD,))) == clashing(facts(ORDERS), ActiveFlag="false") == {}
    assert clashing(facts(ORDERS), CatalogTable="other") == {}


def test_folders_that_only_begin_alike_are_fine() -> None:
    """`orders/` and `orders2/` are two folders."""
    assert find_clashes([facts(ORDERS), facts(table_path("orders2"))]) == {}
