"""The schedule of the embedded AWS: the jobs of the scheduled Glue triggers are started when they are due.

`dmslake up --schedule` asks `Scheduler.tick` once per second. A due time that passed while a run of the job was going is skipped,
as is one that passed while the machine slept: the next run takes what is pending anyway.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from typing import Any

from aws_croniter import AwsCroniter
from aws_croniter.exceptions import AwsCroniterExpressionError
from botocore.exceptions import ClientError

_RATE = re.compile(r"rate\((\d+) (minute|hour|day)s?\)")
_CRON = re.compile(r"cron\((.+)\)")
_UNFINISHED = frozenset({"STARTING", "RUNNING", "STOPPING"})


class ScheduleError(ValueError):
    """An expression that is no schedule; the message says which, and what is expected."""


def next_due(expression: str, after: datetime) -> datetime | None:
    """The first time after `after` (UTC) at which the schedule is due; None: never again. Cron knows whole minutes.

    A rate counts from `after`: the first time is one period later.
    """
    rate, cron = _RATE.fullmatch(expression), _CRON.fullmatch(expression)
    if rate:
        period = timedelta(**{f"{rate[2]}s": int(rate[1])})
        if period:
            return after + period
    if cron:
        try:
            found: datetime | None = AwsCroniter(cron[1]).get_next(after)[0]
        # The library's range check raises a plain ValueError.
        except (AwsCroniterExpressionError, ValueError) as error:
            raise ScheduleError(f"{expression!r} is no schedule: {error}") from None
        return found
    raise ScheduleError(
        f"{expression!r} is no schedule: expected cron(minutes hours day-of-month month day-of-week year) or rate(5 minutes)"
    )


class Scheduler:
    """Starts what is due, by the triggers that stand in Glue at that moment. `now` tells the time, in UTC."""

    def __init__(self, glue: Any, now: Callable[[], datetime], echo: Callable[[str], None]) -> None:
        self._glue = glue
        self._now = now
        self._echo = echo
        self._due: dict[tuple[str, str], datetime | None] = {}

    def tick(self) -> None:
        """Looks at the triggers once. A trigger seen for the first time, or changed, is due from now on.

        What Glue refuses is said: all that lies in an embedded AWS would be lost with it.
        """
        now = self._now()
        try:
            seen = {(trigger["Name"], trigger["Schedule"]): trigger for trigger in active_triggers(self._glue)}
        except ClientError as error:
            self._echo(f"# {now:%H:%M}: the triggers can't be read: {_in_one_line(error)}")
            return
        self._due = {key: self._due[key] if key in self._due else self._first_due(key[1], now) for key in seen}
        for key, due in self._due.items():
            if due is not None and due <= now:
                self._due[key] = next_due(key[1], now)
                for job in _jobs(seen[key]):
                    self._start(job, due)

    def _first_due(self, expression: str, now: datetime) -> datetime | None:
        """Of a trigger that was not there at the last look. The template's are checked; one that was made by hand may be wrong."""
        try:
            return next_due(expression, now)
        except ScheduleError as error:
            self._echo(f"# {error}")
            return None

    def _start(self, job: str, due: datetime) -> None:
        try:
            runs = self._glue.get_job_runs(JobName=job, MaxResults=50)["JobRuns"]
            if any(run["JobRunState"] in _UNFINISHED for run in runs):
                self._echo(f"# {due:%H:%M}: {job} is still running, not started")
                return
            run_id = self._glue.start_job_run(JobName=job)["JobRunId"]
        except ClientError as error:
            self._echo(f"# {due:%H:%M}: {job} can't be started: {_in_one_line(error)}")
            return
        self._echo(f"# {due:%H:%M}: started {job}, run {run_id}")


def _in_one_line(error: ClientError) -> str:
    return " ".join(str(error).split())


def _jobs(trigger: dict[str, Any]) -> list[str]:
    """The jobs that a trigger starts. A crawler that it starts beside, or in their place, is none of ours."""
    return [action["JobName"] for action in trigger["Actions"] if action.get("JobName")]


def active_triggers(glue: Any) -> Iterator[dict[str, Any]]:
    """The scheduled triggers that are activated, as GetTriggers shows them."""
    for page in glue.get_paginator("get_triggers").paginate():
        for trigger in page["Triggers"]:
            if trigger["Type"] == "SCHEDULED" and trigger["State"] == "ACTIVATED":
                yield trigger


def how_it_stands(glue: Any, now: datetime, honoured: bool) -> list[str]:
    """A line per trigger, for a person."""
    lines = []
    for trigger in active_triggers(glue):
        jobs = ", ".join(_jobs(trigger)) or "no job"
        if not honoured:
            lines.append(f"# Nothing starts by itself; with --schedule, {trigger['Schedule']} (UTC) starts {jobs}")
            continue
        due = next_due(trigger["Schedule"], now)
        lines.append(f"# {trigger['Schedule']} (UTC) starts {jobs}, " + (f"next at {due:%Y-%m-%d %H:%M}" if due else "never again"))
    return lines or ["# Nothing starts by itself: the stack has no active trigger"]
