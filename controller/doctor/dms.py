"""The DMS endpoints that write to the raw folder, and their tasks."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from controller.doctor.dms_tasks import Task, read_config, read_task, task_findings
from controller.doctor.endpoint_rules import CHECK, endpoint_findings
from controller.doctor.finding import FINE, WARNS, Finding
from controller.doctor.image_rules import ItemNames
from controller.doctor.looks import Seen, look_by, not_checked
from controller.raw_scope import RawScope

WHERE = "DMS"
S3_TARGETS = [{"Name": "endpoint-type", "Values": ["target"]}, {"Name": "engine-name", "Values": ["s3"]}]

NONE = ("ResourceNotFoundFault",)  # what DMS answers where nothing fits a filter


@dataclass(frozen=True)
class DmsFacts:
    """endpoints: those with the raw bucket as their target, and a folder that meets the raw prefix. tasks, configs: of these endpoints."""

    endpoints: Seen
    tasks: Seen = Seen([])
    configs: Seen = Seen([])

    @property
    def known(self) -> list[Task]:
        """All tasks that could be seen, in one form; target: the folder that the endpoint writes to, since several may write to one."""
        places = {endpoint["EndpointArn"]: f"s3://{_bucket(endpoint)}/{_prefix(endpoint)}" for endpoint in self.endpoints.answer or ()}
        tasks = [*map(read_task, self.tasks.answer or ()), *map(read_config, self.configs.answer or ())]
        return [replace(task, target=places.get(task.target, task.target)) for task in tasks]


def dms_facts(dms: Any, scope: RawScope) -> DmsFacts:
    """The endpoints of this account and region, and, if any writes to raw, what they are the targets of."""
    endpoints = look_by("dms:DescribeEndpoints", lambda: _pages(dms, "describe_endpoints", "Endpoints", Filters=S3_TARGETS), NONE)
    if endpoints.is_unknown:
        return DmsFacts(endpoints)
    ours = [endpoint for endpoint in endpoints.answer or () if writes_to(endpoint, scope)]
    if not ours:
        return DmsFacts(Seen([]))
    arns = {endpoint["EndpointArn"] for endpoint in ours}

    def targeting(operation: str, name: str) -> list[Any]:
        return [task for task in _pages(dms, operation, name) if task.get("TargetEndpointArn") in arns]

    return DmsFacts(
        Seen(ours),
        look_by("dms:DescribeReplicationTasks", lambda: targeting("describe_replication_tasks", "ReplicationTasks"), NONE),
        look_by("dms:DescribeReplicationConfigs", lambda: targeting("describe_replication_configs", "ReplicationConfigs"), NONE),
    )


def _pages(dms: Any, operation: str, name: str, **request: Any) -> list[Any]:
    """All entries; DMS's pages, by hand: older boto3 has no paginator for every operation."""
    found: list[Any] = []
    marker: dict[str, str] = {}
    while True:
        answer = getattr(dms, operation)(**request, **marker)
        found += answer[name]
        if not answer.get("Marker"):
            return found
        marker = {"Marker": answer["Marker"]}


def writes_to(endpoint: Mapping[str, Any], scope: RawScope) -> bool:
    """Whether what the endpoint writes can lie below the raw folder."""
    prefix = _prefix(endpoint)
    return _bucket(endpoint) == scope.bucket and (prefix.startswith(scope.prefix) or scope.prefix.startswith(prefix))


def _bucket(endpoint: Mapping[str, Any]) -> str:
    return str((endpoint.get("S3Settings") or {}).get("BucketName"))


def _prefix(endpoint: Mapping[str, Any]) -> str:
    folder = str((endpoint.get("S3Settings") or {}).get("BucketFolder") or "").strip("/")
    return folder + "/" if folder else ""


def item_names(tables: Seen, scope: RawScope) -> list[ItemNames]:
    """The names of before images that the tables of the scope look for which are kept up."""
    states = [state for state in (tables.answer.states if tables.answer else ()) if state.active and state.has_source]
    return [ItemNames(state.path.schema, state.path.table, state.before_images) for state in states if scope.has(state.path)]


def dms_findings(facts: DmsFacts, scope: RawScope, items: Sequence[ItemNames] = (), is_local: bool = False) -> list[Finding]:
    """Each endpoint's settings, then the tasks. items: see item_names. is_local: whether the jobs run here, with this shell's raw."""
    if facts.endpoints.is_unknown:
        return [not_checked(facts.endpoints, CHECK, WHERE)]
    endpoints: Sequence[Mapping[str, Any]] = facts.endpoints.answer
    if not endpoints:
        return [Finding(FINE, CHECK, WHERE, found=f"no endpoint of this account and region writes to {scope}")]
    unknown = [not_checked(seen, "dms-task", WHERE) for seen in (facts.tasks, facts.configs) if seen.is_unknown]
    leaves_files = bool(unknown) or any(task.leaves_files for task in facts.known)
    found = [
        finding for endpoint in endpoints for finding in (*_folder(endpoint, scope, is_local), *endpoint_findings(endpoint, leaves_files))
    ]
    names = ", ".join(str(endpoint["EndpointIdentifier"]) for endpoint in endpoints)
    found = found or [Finding(FINE, CHECK, f"DMS endpoint {names}", found="no setting that hurts")]
    return [*found, *unknown, *(task_findings(facts.known, items) if facts.known or not unknown else [])]


def _folder(endpoint: Mapping[str, Any], scope: RawScope, is_local: bool) -> list[Finding]:
    """A BucketFolder that is not the raw folder puts the schemas higher or lower than they are looked for.

    Jobs on Glue have the raw folder, and their roles the rights to it, from their stack: another one in this shell alone mends nothing.
    """
    prefix = _prefix(endpoint)
    if prefix == scope.prefix:
        return []
    where = f"DMS endpoint {endpoint['EndpointIdentifier']}"
    what = "schemas are looked for right below the raw folder: those of this endpoint lie higher or lower"
    expected, found = f"BucketFolder={scope.prefix.rstrip('/')}", f"BucketFolder={prefix.rstrip('/')}"
    if is_local:
        fix = f"export DMSLAKE_RAW={shlex.quote(str(replace(scope, prefix=prefix)))}"
        return [Finding(WARNS, CHECK, where, what, expected, found, fix)]
    todo = f"set {expected} in the endpoint and load again; or, as long as no table was loaded, deploy with --parameter RawPrefix={prefix}"
    return [Finding(WARNS, CHECK, where, what, expected, found, todo=f"{todo} --allow-replacement (docs/deploy.md)")]
