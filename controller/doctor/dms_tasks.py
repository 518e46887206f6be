"""DMS's tasks and serverless replications, both read into one form, and what is wrong with them. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from controller.doctor.finding import FINE, WARNS, Finding, aws_line

CHECK = "dms-task"
STANDING = ("failed", "stopped")
IMAGES = "add-before-image-columns"
IMAGE_PREFIX = "BI_"  # the one that the jobs look for
LEAVES_FILES = "DO_NOTHING"


@dataclass(frozen=True)
class Task:
    """A replication task, or a serverless replication (which has a config instead, and its state elsewhere: status '')."""

    name: str
    arn: str
    target: str  # the ARN of the endpoint that it writes to
    kind: str
    status: str
    message: str
    settings: Mapping[str, Any]
    rules: Sequence[Mapping[str, Any]]
    serverless: bool = False

    @property
    def where(self) -> str:
        return f"DMS {'replication' if self.serverless else 'task'} {self.name}"

    @property
    def leaves_files(self) -> bool:
        """Whether files of an earlier load stay when a table is loaded again."""
        return (self.settings.get("FullLoadSettings") or {}).get("TargetTablePrepMode") == LEAVES_FILES

    def line(self, **options: str) -> str:
        """The command that modifies it; a task must be stopped before."""
        verb, named = (
            ("modify-replication-config", "replication_config_arn")
            if self.serverless
            else ("modify-replication-task", "replication_task_arn")
        )
        return aws_line("dms", verb, **{named: self.arn}, **options)


def read_task(answer: Mapping[str, Any]) -> Task:
    """Of what DescribeReplicationTasks shows."""
    return Task(
        str(answer["ReplicationTaskIdentifier"]), str(answer["ReplicationTaskArn"]), str(answer.get("TargetEndpointArn")),
        str(answer.get("MigrationType") or ""), str(answer.get("Status") or ""),
        str(answer.get("LastFailureMessage") or answer.get("StopReason") or ""),
        _json(answer.get("ReplicationTaskSettings")), _json(answer.get("TableMappings")).get("rules") or [],
    )  # fmt: skip


def read_config(answer: Mapping[str, Any]) -> Task:
    """Of what DescribeReplicationConfigs shows."""
    return Task(
        str(answer["ReplicationConfigIdentifier"]), str(answer["ReplicationConfigArn"]), str(answer.get("TargetEndpointArn")),
        str(answer.get("ReplicationType") or ""), "", "",
        _json(answer.get("ReplicationSettings")), _json(answer.get("TableMappings")).get("rules") or [], serverless=True,
    )  # fmt: skip


def _json(text: Any) -> dict[str, Any]:
    """The JSON object in a text; an empty one where it is none."""
    try:
        value = json.loads(text or "{}")
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}


def task_findings(tasks: Sequence[Task]) -> list[Finding]:
    """Each task's, and whether there are several."""
    found = [finding for task in tasks for finding in (*_status(task), *_kind(task), *_old_files(task), *_before_images(task))]
    if len(tasks) > 1:
        where, what = (
            ", ".join(task.where for task in tasks),
            "two that write one table's folder mix its changes; fine if no table is in both",
        )
        found.append(Finding(WARNS, CHECK, where, what, "each table in one", f"{len(tasks)} tasks", todo="compare their table mappings"))
    if not tasks:
        found.append(Finding(WARNS, CHECK, "DMS", "nothing writes to the raw folder", "a task with this endpoint as its target", "none"))
    return found or [Finding(FINE, CHECK, tasks[0].where, found=tasks[0].status or tasks[0].kind)]


def _status(task: Task) -> list[Finding]:
    if task.status not in STANDING:
        return []
    fix = aws_line("dms", "start-replication-task", replication_task_arn=task.arn, start_replication_task_type="resume-processing")
    return [Finding(WARNS, CHECK, task.where, "no changes come", "running", " ".join(filter(None, [task.status, task.message])), fix)]


def _kind(task: Task) -> list[Finding]:
    if task.kind != "full-load":
        return []
    option = "replication_type" if task.serverless else "migration_type"
    fix = task.line(**{option: "full-load-and-cdc"})
    return [Finding(WARNS, CHECK, task.where, "no changes come after the load", "full-load-and-cdc", task.kind, fix)]


def _old_files(task: Task) -> list[Finding]:
    if not task.leaves_files:
        return []
    settings = json.dumps({"FullLoadSettings": {"TargetTablePrepMode": "DROP_AND_CREATE"}})
    fix = task.line(**{"replication_settings" if task.serverless else "replication_task_settings": settings})
    what = "when a table is loaded again, load files of the time before stay beside the new ones and are taken for theirs"
    return [Finding(WARNS, CHECK, task.where, what, "TargetTablePrepMode DROP_AND_CREATE", LEAVES_FILES, fix)]


def _before_images(task: Task) -> list[Finding]:
    """Only a mapping rule makes columns of them: BeforeImageSettings are for Kinesis and Kafka."""
    images = [rule for rule in task.rules if rule.get("rule-action") == IMAGES]
    named = [rule.get("before-image-def") or {} for rule in images]
    if any(image.get("column-prefix") == IMAGE_PREFIX and not image.get("column-suffix") for image in named):
        return []
    what = "where an update changes a row's primary key, nothing tells the old one: the row stays in the lake under both"
    what += "; if the tables' items say these names (BeforeImagePrefix), all is well" if images else ""
    found = "another prefix or a suffix" if images else "none"
    return [Finding(WARNS, CHECK, task.where, what, f"a mapping rule {IMAGES} with prefix {IMAGE_PREFIX}", found, _images_line(task))]


def _images_line(task: Task) -> str:
    """The task's mappings, with a rule for the primary keys of all tables."""
    others = [rule for rule in task.rules if rule.get("rule-action") != IMAGES]
    numbers = [int(rule["rule-id"]) for rule in others if str(rule.get("rule-id", "")).isdigit()]
    number = str(max(numbers, default=0) + 1)
    rule = {
        "rule-type": "transformation", "rule-id": number, "rule-name": number, "rule-target": "column", "rule-action": IMAGES,
        "object-locator": {"schema-name": "%", "table-name": "%"},
        "before-image-def": {"column-prefix": IMAGE_PREFIX, "column-suffix": "", "column-filter": "pk-only"},
    }  # fmt: skip
    return task.line(table_mappings=json.dumps({"rules": [*others, rule]}))
