"""DMS's tasks and serverless replications, both read into one form, and what is wrong with them. Pure."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from controller.doctor.finding import FINE, WARNS, Finding, aws_line
from controller.doctor.image_rules import (
    ANY,
    IMAGES,
    ItemNames,
    Place,
    image_rules,
    in_item,
    looked_for,
    with_images,
    without_images,
)
from glue_jobs.core.dms_columns import BEFORE_IMAGES, BEFORE_PREFIX

CHECK = "dms-task"
STANDING = ("failed", "stopped")
LOAD, CHANGES, BOTH = "full-load", "cdc", "full-load-and-cdc"
LOADED = "FULL_LOAD_ONLY_FINISHED"  # why a task of kind full-load stops that has done its work
LEAVES_FILES = "DO_NOTHING"


@dataclass(frozen=True)
class Task:
    """A replication task, or a serverless replication (which has a config instead, and its state elsewhere: status '').

    has_loaded: whether it stopped because its load was done.
    """

    name: str
    arn: str
    target: str  # the endpoint that it writes to: its ARN, or what stands for all that write to one place
    kind: str
    status: str
    message: str
    settings: Mapping[str, Any]
    rules: Sequence[Mapping[str, Any]]
    serverless: bool = False
    has_loaded: bool = False

    @property
    def where(self) -> str:
        return f"DMS {'replication' if self.serverless else 'task'} {self.name}"

    @property
    def leaves_files(self) -> bool:
        """Whether files of an earlier load stay when a table is loaded again; by a task for changes alone, none is."""
        return self.kind != CHANGES and (self.settings.get("FullLoadSettings") or {}).get("TargetTablePrepMode") == LEAVES_FILES

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
        has_loaded=answer.get("Status") == "stopped" and LOADED in str(answer.get("StopReason") or ""),
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


def task_findings(tasks: Sequence[Task], items: Sequence[ItemNames] = ()) -> list[Finding]:
    """Each task's, and whether there are several. items: of the tables that are kept up."""
    found = [
        finding for task in tasks for finding in (*_status(task), *_kind(task, tasks), *_old_files(task), *_before_images(task, items))
    ]
    if len(tasks) > 1 and not _are_load_and_changes(tasks):
        where, what = (
            ", ".join(task.where for task in tasks),
            "two that write one table's folder mix its changes; fine if no table is in both",
        )
        found.append(Finding(WARNS, CHECK, where, what, "each table in one", f"{len(tasks)} tasks", todo="compare their table mappings"))
    if not tasks:
        found.append(Finding(WARNS, CHECK, "DMS", "nothing writes to the raw folder", "a task with this endpoint as its target", "none"))
    return found or [Finding(FINE, CHECK, tasks[0].where, found=tasks[0].status or tasks[0].kind)]


def _are_load_and_changes(tasks: Sequence[Task]) -> bool:
    """Whether one only loads the tables, and the other only brings their changes, as many have it: that mixes nothing."""
    return sorted(task.kind for task in tasks) == [CHANGES, LOAD] and len({task.target for task in tasks}) == 1


def _status(task: Task) -> list[Finding]:
    if task.status not in STANDING or (task.kind == LOAD and task.has_loaded):
        return []
    what = "the load did not come to its end" if task.kind == LOAD else "no changes come"
    expected = f"running, or {LOADED}" if task.kind == LOAD else "running"
    fix = aws_line("dms", "start-replication-task", replication_task_arn=task.arn, start_replication_task_type="resume-processing")
    return [Finding(WARNS, CHECK, task.where, what, expected, " ".join(filter(None, [task.status, task.message])), fix)]


def _kind(task: Task, tasks: Sequence[Task]) -> list[Finding]:
    """A task that only loads is right beside one that brings changes to the same place; as two with changes they would mix them."""
    if task.kind != LOAD or any(other.target == task.target and other.kind in (CHANGES, BOTH) for other in tasks):
        return []
    option = "replication_type" if task.serverless else "migration_type"
    fix = task.line(**{option: BOTH})
    return [Finding(WARNS, CHECK, task.where, "no changes come after the load", BOTH, task.kind, fix)]


def _old_files(task: Task) -> list[Finding]:
    if not task.leaves_files:
        return []
    settings = json.dumps({"FullLoadSettings": {"TargetTablePrepMode": "DROP_AND_CREATE"}})
    fix = task.line(**{"replication_settings" if task.serverless else "replication_task_settings": settings})
    what = "when a table is loaded again, load files of the time before stay beside the new ones and are taken for theirs"
    return [Finding(WARNS, CHECK, task.where, what, "TargetTablePrepMode DROP_AND_CREATE", LEAVES_FILES, fix)]


def _before_images(task: Task, items: Sequence[ItemNames]) -> list[Finding]:
    """Only a mapping rule makes columns of them: BeforeImageSettings are for Kinesis and Kafka. A load has no updates.

    Rules that are there are left alone: DMS takes one for a table, and its name is what the tables' items may know.
    """
    if task.kind == LOAD:
        return []
    what = "where an update changes a row's primary key, nothing tells the old one: the row stays in the lake under both"
    expected = f"a mapping rule {IMAGES} with prefix {BEFORE_PREFIX} for each table"
    wanted = looked_for(task.rules, items)
    if not image_rules(task.rules):
        if all(set(patterns).intersection(BEFORE_IMAGES) for patterns in wanted.values()):
            fix = task.line(table_mappings=json.dumps({"rules": with_images(task.rules)}))
            return [Finding(WARNS, CHECK, task.where, what, expected, "none", fix)]
        todo = f"add a rule {IMAGES} with the names that the tables' items have (BeforeImagePrefix), as in docs/dms-source.md"
        return [Finding(WARNS, CHECK, task.where, what, expected, "none", todo=todo)]
    without, otherwise = without_images(task.rules, wanted)
    found = []
    if otherwise:
        tables = f"another prefix or suffix than the items of {_named(otherwise)} have"
        found.append(Finding(WARNS, CHECK, task.where, what, expected, tables, todo=_other_names(wanted, otherwise)))
    if without:
        todo = f"add a rule for them, or give the one that is there the object-locator {ANY}, as in docs/dms-source.md"
        found.append(Finding(WARNS, CHECK, task.where, what, expected, f"none for {_named(without)}", todo=todo))
    return found


def _other_names(wanted: Mapping[Place, Sequence[str]], otherwise: Mapping[Place, Collection[str]]) -> str:
    """What to do where rules make other names than the items look for. Files with the names that an item has may be there."""
    names = ", ".join(map(in_item, sorted({name for some in otherwise.values() for name in some})))
    said = sorted({name for place in otherwise for name in wanted[place]}.difference(BEFORE_IMAGES))
    if said:
        return f"add {names} to BeforeImagePrefix in the tables' items, beside {', '.join(map(in_item, said))}, which older files may have"
    todo = f"give the tables' items BeforeImagePrefix = {names}; or the rules the prefix {BEFORE_PREFIX}, and the items"
    return f"{todo} BeforeImagePrefix = {BEFORE_PREFIX}, {names}, since there are files with both"


def _named(places: Iterable[Place]) -> str:
    return ", ".join(map(".".join, places))
