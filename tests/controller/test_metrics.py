"""The line for CloudWatch: what the format's specification asks for, and what the figures count."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import timedelta
from typing import Any

import jsonschema
import pytest

from controller.dispatch import Dispatched, RunOutcome
from controller.metrics import UNITS, metrics_line
from controller.plan import LOAD_INCREMENTAL, PlannedRun, Problem, RunPlan, TablePlan, plan_run
from controller.report import RunReport, TableReport, build_report
from tests.controller.world import NOW, SETTINGS, facts, gathered, raw_file, table_path

# What the specification of the embedded metric format says of the members of `_aws`.
NAME = {"type": "string", "minLength": 1, "maxLength": 255}
DIRECTIVE = {
    "type": "object",
    "required": ["Namespace", "Dimensions", "Metrics"],
    "additionalProperties": False,
    "properties": {
        "Namespace": NAME,
        "Dimensions": {"type": "array", "minItems": 1, "items": {"type": "array", "maxItems": 9, "items": NAME}},
        "Metrics": {
            "type": "array",
            "maxItems": 100,
            "items": {
                "type": "object",
                "required": ["Name"],
                "additionalProperties": False,
                "properties": {"Name": NAME, "Unit": {"enum": ["Seconds", "Count", "None"]}},
            },
        },
    },
}
FORMAT = {
    "type": "object",
    "required": ["_aws"],
    "properties": {
        "_aws": {
            "type": "object",
            "required": ["Timestamp", "CloudWatchMetrics"],
            "additionalProperties": False,
            "properties": {"Timestamp": {"type": "integer"}, "CloudWatchMetrics": {"type": "array", "items": DIRECTIVE}},
        }
    },
}
PATHS = {name: table_path(name) for name in ("done", "blocked", "failed", "held", "lost", "paused", "inactive", "staged", "new")}
HOURS = {"done": 9, "blocked": 3, "failed": 2, "held": 1, "lost": 1, "paused": 9, "inactive": 9, "staged": 1}


def line(outcomes: dict[str, str], **settings: Any) -> dict[str, Any] | None:
    """The line after a run with these outcomes of tables that were so many hours behind; none is run for a table that rests."""
    tables = []
    for name in outcomes:
        path = PATHS[name]
        cdc = [raw_file(path, f"20240501-{hour:02}0000000.parquet") for hour in (0, HOURS.get(name, 0))]
        person = {"paused": {"Paused": "by hand"}, "inactive": {"ActiveFlag": "false"}}.get(name, {})
        load = raw_file(path, "LOAD00000001.parquet")
        tables.append(facts(path, load) if name == "new" else facts(path, cdc[1], loaded=(load, cdc[0]), **person))
    plan = plan_run(gathered(*tables)) if tables else RunPlan()
    ended = {str(PATHS[name]): outcome for name, outcome in outcomes.items() if name not in ("paused", "inactive")}
    return metrics_line(replace(SETTINGS, **settings), report_of(plan, Dispatched(tuple(run_of(*each) for each in ended.items()))), NOW)


def run_of(path: str, outcome: str) -> RunOutcome:
    """A run of one table that wrote its outcome."""
    return RunOutcome(PlannedRun(LOAD_INCREMENTAL, (path,)), "run-1", "SUCCEEDED", results={path: {"outcome": outcome}})


def report_of(plan: RunPlan, done: Dispatched) -> RunReport:
    return build_report(plan, done, "run-1", NOW, NOW + timedelta(seconds=1))


def test_the_line_is_in_the_embedded_metric_format() -> None:
    """CloudWatch reads what fits; every metric and dimension that is named stands beside `_aws`, as a number or a text."""
    found = json.loads(json.dumps(line({"done": "committed", "blocked": "blocked"})))

    jsonschema.validate(found, FORMAT)
    (directive,) = found["_aws"]["CloudWatchMetrics"]
    assert found["_aws"]["Timestamp"] == NOW.timestamp() * 1000
    assert {each["Name"] for each in directive["Metrics"]} == set(UNITS)
    assert all(type(found[name]) in (int, float) for name in UNITS)
    assert [(directive["Namespace"], *names) for names in directive["Dimensions"]] == [("dmslake", "Installation")]
    assert found["Installation"] == SETTINGS.state_table


@pytest.mark.parametrize(
    ("outcomes", "blocked", "failed", "lag"),
    [
        ({}, 0, 0, 0),
        ({"done": "committed"}, 0, 0, 0),
        ({"done": "nothing", "blocked": "blocked"}, 1, 0, 3 * 3600),
        ({"failed": "failed", "lost": "not-started", "held": "lease-held"}, 0, 2, 2 * 3600),
        ({"paused": "paused", "inactive": "inactive", "staged": "staged"}, 0, 0, 3600),
        ({"new": "blocked"}, 1, 0, 0),
    ],
    ids=["no table", "caught up", "one blocked", "failed, not started, held", "resting and staged", "never loaded"],
)
def test_what_the_figures_count(outcomes: dict[str, str], blocked: int, failed: int, lag: float) -> None:
    """Tables that wait for a person, tables that went wrong, and the lag that is left of those that should be kept up."""
    found = line(outcomes)

    assert found is not None
    assert [found[name] for name in UNITS] == [1, blocked, failed, lag]


@pytest.mark.parametrize("outcome", ["committed", "nothing"])
def test_a_catalog_step_that_is_left_counts_as_a_failure(outcome: str) -> None:
    """Readers of the catalog don't see new partitions, and nobody else would say so: the alarm on failed tables does."""
    table = TableReport(str(PATHS["done"]), "apply", outcome, catalog_pending="0000000001-000001-0123abcd")

    found = metrics_line(SETTINGS, RunReport("run-1", "", 1.0, (table,)), NOW)

    assert found is not None
    assert (found["TablesFailed"], found["TablesBlocked"]) == (1, 0)


def test_a_table_that_was_planned_again_counts_as_it_was_found_then() -> None:
    """What is blocked an hour after the first plan is blocked, and as far behind as it was then."""
    path = str(PATHS["done"])
    first = RunPlan((TablePlan(path, "up-to-date", lag_seconds=0.0),))
    blocked = TablePlan(path, "blocked", problem=Problem("foreign-raw-file", "notes.txt"), lag_seconds=1800.0)

    found = metrics_line(SETTINGS, report_of(first, Dispatched(replanned={path: blocked})), NOW)

    assert found is not None
    assert [found[name] for name in UNITS] == [1, 1, 0, 1800.0]


def test_a_failure_that_a_later_run_mended_counts_no_more() -> None:
    """The alarm on failed tables says that no later run has mended it."""
    path = str(PATHS["failed"])
    plan = RunPlan((TablePlan(path, "apply", job=LOAD_INCREMENTAL, lag_seconds=1800.0),))

    found = metrics_line(SETTINGS, report_of(plan, Dispatched((run_of(path, "failed"), run_of(path, "committed")))), NOW)

    assert found is not None
    assert [found[name] for name in UNITS] == [1, 0, 0, 0.0]


def test_a_run_of_some_tables_says_nothing() -> None:
    """It is no sign that the schedule lives, and nobody looked at the other tables."""
    assert line({"done": "committed"}, paths=(str(PATHS["done"]),)) is None
