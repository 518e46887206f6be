"""What starts the controller."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from controller.doctor.finding import FINE, WARNS, Finding, aws_line
from controller.doctor.jobs import CONTROLLER
from controller.doctor.looks import Seen, look_by, not_checked

CHECK = "schedule"
RUNNING = ("ACTIVATED", "ACTIVATING")


def trigger_facts(glue: Any, prefix: str) -> Seen:
    """The Glue triggers that start the controller."""
    job = prefix + CONTROLLER

    def ask() -> list[Any]:
        pages = glue.get_paginator("get_triggers").paginate(DependentJobName=job)
        # Where none starts the job, Glue answers with all triggers of the account and region.
        return [trigger for page in pages for trigger in page["Triggers"] if _starts(trigger, job)]

    return look_by("glue:GetTriggers", ask, ("EntityNotFoundException",))


def _starts(trigger: Mapping[str, Any], job: str) -> bool:
    return any(action.get("JobName") == job for action in trigger.get("Actions") or ())


def trigger_findings(triggers: Seen, prefix: str) -> list[Finding]:
    """One that is on is enough."""
    where = f"job {prefix}{CONTROLLER}"
    if triggers.is_unknown:
        return [not_checked(triggers, CHECK, where)]
    timed = [trigger for trigger in triggers.answer or () if trigger.get("Type") == "SCHEDULED"]
    if not timed:
        fix = aws_line(
            "glue", "create-trigger", name=f"{prefix}hourly", type="SCHEDULED", schedule="cron(0 * * * ? *)",
            actions=f"JobName={prefix}{CONTROLLER}", start_on_creation="",
        )  # fmt: skip
        what = "no trigger of Glue starts the controller (something else may: cron, EventBridge)"
        return [Finding(WARNS, CHECK, where, what, "a scheduled trigger", "none", fix)]
    on = [trigger for trigger in timed if trigger.get("State") in RUNNING]
    if on:
        return [Finding(FINE, CHECK, where, found=", ".join(str(trigger.get("Schedule")) for trigger in on))]
    off = timed[0]
    fix = aws_line("glue", "start-trigger", name=str(off["Name"]))
    return [Finding(WARNS, CHECK, f"trigger {off['Name']}", "nothing starts the controller", "ACTIVATED", str(off.get("State")), fix)]
