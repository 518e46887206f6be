"""The schedule of the embedded AWS, by a clock that the test sets."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone

import pytest
from botocore.exceptions import ClientError

from infra.local.embedded import EmbeddedAws
from infra.local.schedule import ScheduleError, Scheduler, how_it_stands, next_due

NOON = datetime(2026, 1, 30, 12, 0, tzinfo=timezone.utc)  # a Friday


@pytest.mark.parametrize(
    ("expression", "due"),
    [
        ("cron(0 * * * ? *)", "2026-01-30 13:00"),
        ("cron(0/15 9-17 ? * MON-FRI *)", "2026-01-30 12:15"),
        ("cron(0 9 ? * 2 *)", "2026-02-02 09:00"),  # 1 is Sunday
        ("cron(0 6 L * ? *)", "2026-01-31 06:00"),
        ("cron(30 4 15W * ? *)", "2026-02-16 04:30"),  # the 15th is a Sunday
        ("cron(0 6 ? * 6#2 *)", "2026-02-13 06:00"),
        ("cron(0 0 1 JAN ? 2031)", "2031-01-01 00:00"),
        ("cron(0 0 1 1 ? 2020)", None),
        ("rate(5 minutes)", "2026-01-30 12:05"),
        ("rate(1 day)", "2026-01-31 12:00"),
    ],
)
def test_next_due(expression: str, due: str | None) -> None:
    """Six fields as AWS reads them, and rates."""
    found = next_due(expression, NOON)

    assert (f"{found:%Y-%m-%d %H:%M}" if found else None) == due


@pytest.mark.parametrize(
    "expression", ["cron(0 * * * *)", "cron(61 * * * ? *)", "cron(0 * * * * *)", "rate(0 days)", "rate(5 weeks)", "hourly"]
)
def test_what_is_no_schedule_is_refused(expression: str) -> None:
    """The error names it."""
    with pytest.raises(ScheduleError, match="is no schedule"):
        next_due(expression, NOON)


def test_the_controller_is_started_when_due_and_never_twice_at_once(aws: EmbeddedAws) -> None:
    """The stack's trigger is hourly. A run that goes on over the next hour is let be; a wrong trigger is told, a stopped one quiet."""
    glue, said, clock = aws.client("glue"), [], [NOON]
    scheduler = Scheduler(glue, lambda: clock[0], said.append)
    glue.create_job(**_waiting())
    known = {run["Id"] for run in _runs(aws)}

    def at(**later: float) -> list[str]:
        clock[0] = NOON + timedelta(**later)
        scheduler.tick()
        return [run["Id"] for run in _runs(aws) if run["Id"] not in known]

    try:
        assert (at(), at(minutes=59, seconds=59)) == ([], [])
        (first,) = at(hours=1)
        assert at(hours=1, seconds=1) == [first]
        assert at(hours=2) == [first]
        assert said[-1] == "# 14:00: Controller is still running, not started"
        _stop(aws, first)
        second, also_first = at(hours=5, minutes=30)  # 15:00 to 17:00 passed in one go
        assert (also_first, at(hours=5, minutes=31)) == (first, [second, first])
        _stop(aws, second)
        glue.create_trigger(Name="wrong", Type="SCHEDULED", Schedule="cron(x)", StartOnCreation=True, Actions=[{"JobName": "Controller"}])
        assert len(at(hours=6)) == 3
        assert sum("is no schedule" in line for line in said) == 1
        glue.delete_trigger(Name="wrong")
        (trigger,) = glue.get_triggers()["Triggers"]
        assert how_it_stands(glue, NOON, honoured=True) == ["# cron(0 * * * ? *) (UTC) starts Controller, next at 2026-01-30 13:00"]
        assert how_it_stands(glue, NOON, honoured=False) == [
            "# Nothing starts by itself; with --schedule, cron(0 * * * ? *) (UTC) starts Controller"
        ]
        glue.stop_trigger(Name=trigger["Name"])
        _stop(aws, _runs(aws)[0]["Id"])
        assert len(at(hours=7)) == 3
        assert how_it_stands(glue, NOON, honoured=True) == ["# Nothing starts by itself: the stack has no active trigger"]
        glue.start_trigger(Name=trigger["Name"])
    finally:
        glue.create_job(**_controller())


def test_what_glue_refuses_is_said_and_the_rest_goes_on(aws: EmbeddedAws, monkeypatch: pytest.MonkeyPatch) -> None:
    """A job that is not there, and a crawler, beside the controller; a look that fails."""
    glue, said, clock = aws.client("glue"), [], [NOON]
    scheduler = Scheduler(glue, lambda: clock[0], said.append)
    known = {run["Id"] for run in _runs(aws)}
    actions = {"nowhere": {"JobName": "Nowhere"}, "crawls": {"CrawlerName": "crawler"}}
    for name, action in actions.items():
        glue.create_trigger(Name=name, Type="SCHEDULED", Schedule="cron(0 * * * ? *)", StartOnCreation=True, Actions=[action])

    def refuse(name: str) -> None:
        raise ClientError({"Error": {"Code": "Busy", "Message": "not\nnow"}}, "GetTriggers")

    try:
        scheduler.tick()
        clock[0] = NOON + timedelta(hours=1)
        scheduler.tick()
        stands = how_it_stands(glue, NOON, honoured=True)
        with monkeypatch.context() as patch:
            patch.setattr(glue, "get_paginator", refuse)
            scheduler.tick()
    finally:
        for name in actions:
            glue.delete_trigger(Name=name)
        started = [run["Id"] for run in _runs(aws) if run["Id"] not in known]
        for run_id in started:
            aws.wait_for_run("Controller", run_id)

    assert said == [
        f"# 13:00: started Controller, run {started[0]}",
        "# 13:00: Nowhere can't be started: An error occurred (EntityNotFoundException) when calling the GetJobRuns operation: "
        "Job Nowhere not found.",
        "# 13:00: the triggers can't be read: An error occurred (Busy) when calling the GetTriggers operation: not now",
    ]
    assert "# cron(0 * * * ? *) (UTC) starts no job, next at 2026-01-30 13:00" in stands


def _waiting() -> dict[str, object]:
    return {**_controller(), "Command": {"Name": "pythonshell", "ScriptLocation": "waits.py", "PythonVersion": "3.9"}}


def _controller() -> dict[str, object]:
    return {"Name": "Controller", "Role": "r", "Command": {"Name": "pythonshell", "ScriptLocation": "echo.py", "PythonVersion": "3.9"}}


def _runs(aws: EmbeddedAws) -> list[dict[str, str]]:
    runs: list[dict[str, str]] = aws.client("glue").get_job_runs(JobName="Controller")["JobRuns"]
    return runs


def _stop(aws: EmbeddedAws, run_id: str) -> None:
    aws.client("glue").batch_stop_job_run(JobName="Controller", JobRunIds=[run_id])
    aws.wait_for_run("Controller", run_id)
