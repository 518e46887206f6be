"""A plan of many tables with many CDC files: requests for what is new, and memory for the tables that are read at the moment."""

from __future__ import annotations

import tracemalloc
from dataclasses import replace
from typing import Any

import pytest

import controller.gather as gather_module
from benchmarks.scale import NOW as AT
from benchmarks.scale import SETTINGS, plan_all
from benchmarks.synthetic.aws import LAYOUTS, Shape, SyntheticAws
from benchmarks.synthetic.aws import LOAD as LOAD_NAME
from controller.gather import Question, survey
from controller.plan import join_plans, plan_one
from controller.status import status_of
from glue_jobs.core import intake
from glue_jobs.core.limits import Limits
from glue_jobs.core.raw_names import RawListing
from glue_jobs.core.snapshot import Snapshot, apply
from glue_jobs.core.state import TableState, read_state
from glue_jobs.protocol.raw import list_raw
from tests.controller.world import NOW, facts, raw_file, table_path
from tests.raw_folders import CountedListing

ORDERS = table_path()
LOAD = raw_file(ORDERS, "LOAD00000001.parquet", 1000)
CDC = [raw_file(ORDERS, f"20240501-0{hour}0000000.parquet") for hour in range(1, 4)]


def peak_mb(shape: Shape) -> float:
    """The most memory that a plan takes, without boto3's part in it."""
    table: Any = SyntheticAws(shape)
    names = [*shape.names(), LOAD_NAME]

    def files(_: Any, state: TableState, limits: Limits) -> tuple[Snapshot, RawListing]:
        folder = state.path.raw.key
        snapshot = apply(Snapshot(), table.record(state.path)) if state.head else Snapshot()
        return snapshot, list_raw(CountedListing([folder + name for name in names]), state, snapshot, limits)

    tracemalloc.start()
    try:
        question = Question(replace(SETTINGS, raw=""), files=files)
        found = survey(table.clients(), table, question, AT, lambda fact: plan_one(fact, AT, Limits()))
        plan = join_plans(*found)
        assert [table.action for table in plan.tables] == ["apply" if shape.new < shape.files else "load"] * shape.tables
        return tracemalloc.get_traced_memory()[1] / 1e6
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("new", [10, 500])
def test_memory_does_not_grow_with_the_number_of_tables(monkeypatch: pytest.MonkeyPatch, new: int) -> None:
    """Of 40 tables as of 10, when few or all of their files wait."""
    monkeypatch.setattr(gather_module, "THREADS", 2)
    shape = Shape(10, 500, new=new, layout=LAYOUTS["odd"])
    peak_mb(replace(shape, tables=1))  # what is made once

    assert peak_mb(replace(shape, tables=40)) < 1.5 * peak_mb(shape)


def test_a_listing_keeps_no_files_that_were_taken_long_ago() -> None:
    """Though all of them are listed, because the layout's keys don't sort by time."""
    found = []
    for files in (1500, 6000):
        shape = Shape(1, files, layout=LAYOUTS["odd"])
        aws = SyntheticAws(shape)
        (item,) = aws.scan()
        state, snapshot = read_state(item), apply(Snapshot(), aws.record(shape.path(0)))
        s3 = CountedListing(shape.path(0).raw.key + name for name in (*shape.names(), LOAD_NAME))
        listing = list_raw(s3, state, snapshot, Limits())
        assert len(listing.cdc) + len(listing.loads) + listing.outdated == s3.listed == files + 1
        found.append(listing.cdc)

    assert [file.base for file in found[0]] == [file.base for file in found[1]]
    assert len(found[0]) < 350


@pytest.mark.parametrize("layout", ["flat", "dated"])
def test_requests_are_for_what_is_new(layout: str) -> None:
    """Each table's head is read once, and its folder listed from where something may come, however many files came before."""
    found = []
    for files in (25_000, 50_000):
        aws = SyntheticAws(Shape(2, files, layout=LAYOUTS[layout]))
        plan_all(aws, aws.clients())
        found.append(dict(aws.requests))

    assert found[0] == found[1]
    assert found[0]["GetObject"] == 2
    assert found[0]["ListObjectsV2"] <= 2 + 2 * 4


HINDERED: list[dict[str, Any]] = [{"Publishing": "x"}, {"CatalogPending": "x"}, {"Paused": "for now"}, {"ActiveFlag": "false"}, {}]


@pytest.mark.parametrize("attributes", HINDERED)
def test_a_table_is_planned_once(monkeypatch: pytest.MonkeyPatch, attributes: dict[str, Any]) -> None:
    """For its action, what waits, and how far it is behind: the work grows with its files."""
    planned: list[int] = []
    real = intake._plan

    def counted(*given: Any) -> Any:
        planned.append(1)
        return real(*given)

    monkeypatch.setattr(intake, "_plan", counted)
    monkeypatch.setattr(intake, "signature", lambda *given: pytest.fail("only a block needs a digest of the files"))
    fact = facts(ORDERS, *CDC[1:], loaded=(LOAD, CDC[0]), **attributes)

    plan_one(fact, NOW, Limits())
    in_plan = len(planned)
    status_of(fact, NOW, Limits())

    assert in_plan <= 1
    assert len(planned) <= 2
