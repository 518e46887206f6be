"""The roles of the jobs: who may take them, and, as far as IAM tells, what they may do."""

from __future__ import annotations

import json
import urllib.parse
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from controller.doctor.account import Account
from controller.doctor.bucket_policy import VERSION_DELETE, listed
from controller.doctor.finding import BLOCKS, FINE, WARNS, Finding, aws_line
from controller.doctor.jobs import CONTROLLER, LOADS
from controller.doctor.looks import Seen, look, look_by, not_checked
from controller.plan import ERASE, LOAD_INCREMENTAL
from controller.raw_scope import RawScope
from glue_jobs.core.paths import S3Uri, changes_folder
from glue_jobs.core.settings import Settings

GLUE = "glue.amazonaws.com"
TRUST = {"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Principal": {"Service": GLUE}, "Action": "sts:AssumeRole"}]}


@dataclass(frozen=True)
class Right:
    """Actions on one resource. prefix: of the keys that a ListBucket asks for."""

    resource: str
    actions: tuple[str, ...]
    prefix: str = ""


@dataclass(frozen=True)
class RoleFacts:
    """name: as jobs have it, a name or an ARN. rights: what IAM's simulation said of each, empty if it was not asked."""

    name: str
    jobs: Sequence[str]
    role: Seen
    rights: Mapping[Right, Seen] = field(default_factory=dict)


def role_facts(iam: Any, name: str, jobs: Sequence[str], wanted: Iterable[Right]) -> RoleFacts:
    """The role, and for each wanted right what IAM's policy simulation says."""
    role = look("iam:GetRole", iam.get_role, ("NoSuchEntity",), RoleName=name.rsplit("/", 1)[-1])
    if role.answer is None:
        return RoleFacts(name, jobs, role)
    arn = str(role.answer["Role"]["Arn"])
    return RoleFacts(name, jobs, role, {right: _simulate(iam, arn, right) for right in wanted})


def _simulate(iam: Any, arn: str, right: Right) -> Seen:
    """Action → whether it is allowed, without those whose conditions ask for more than we can tell."""
    context = [{"ContextKeyName": "s3:prefix", "ContextKeyValues": [right.prefix], "ContextKeyType": "string"}] if right.prefix else []

    def ask() -> dict[str, bool]:
        answer = iam.simulate_principal_policy(
            PolicySourceArn=arn, ActionNames=list(right.actions), ResourceArns=[right.resource], ContextEntries=context
        )
        decided = [item for item in answer["EvaluationResults"] if not item.get("MissingContextValues")]
        return {str(item["EvalActionName"]): item["EvalDecision"] == "allowed" for item in decided}

    return look_by("iam:SimulatePrincipalPolicy", ask)


def wanted_rights(jobs: Sequence[str], settings: Settings, account: Account) -> list[Right]:
    """What a role with these jobs must be able to do at least; only what the settings name."""
    start = f"arn:{account.partition}"
    here = f"{account.region.answer}:{account.number}"
    rights = [*_raw_rights(jobs, settings, start), *_lake_rights(jobs, settings, start)]
    table = f"{start}:dynamodb:{here}:table/{settings.state_table}"
    reads, writes = ("dynamodb:GetItem", "dynamodb:BatchGetItem", "dynamodb:Scan"), ("dynamodb:GetItem", "dynamodb:UpdateItem")
    if CONTROLLER in jobs:
        rights.append(Right(table, reads))
        rights.append(Right(f"{start}:glue:{here}:job/{settings.job_prefix}{LOAD_INCREMENTAL}", ("glue:StartJobRun", "glue:GetJobRun")))
    if set(jobs) - {CONTROLLER}:
        rights.append(Right(table, writes))
    return rights


def _raw_rights(jobs: Sequence[str], settings: Settings, start: str) -> list[Right]:
    """Everybody lists raw; the jobs that load read it."""
    if not settings.raw:
        return []
    scope = RawScope.parse(settings.raw)
    bucket = f"{start}:s3:::{scope.bucket}"
    reading = Right(f"{bucket}/{scope.prefix}schema/table/LOAD00000001.parquet", ("s3:GetObject",))
    return [Right(bucket, ("s3:ListBucket",), scope.prefix), *([reading] if set(jobs) & set(LOADS) else [])]


def _lake_rights(jobs: Sequence[str], settings: Settings, start: str) -> list[Right]:
    if not settings.lake:
        return []
    lake = S3Uri.folder(settings.lake)
    bucket, file = f"{start}:s3:::{lake.bucket}", f"{start}:s3:::{lake.bucket}/{lake.key}schema/table/file.parquet"
    rights = [Right(bucket, ("s3:ListBucket",), lake.key), Right(bucket, ("s3:GetBucketVersioning",))]
    if CONTROLLER in jobs:
        rights.append(Right(f"{bucket}/{changes_folder(lake.join('schema/table/')).key}change.json", ("s3:GetObject",)))
    if set(jobs) - {CONTROLLER}:
        actions = ("s3:GetObject", "s3:GetObjectVersion", "s3:PutObject", "s3:DeleteObject", "s3:AbortMultipartUpload")
        rights.append(Right(file, (*actions, VERSION_DELETE) if ERASE in jobs else actions))
    return rights


def version_delete(settings: Settings, account: Account) -> list[Right]:
    """What only the erase role may do."""
    if not settings.lake:
        return []
    lake = S3Uri.folder(settings.lake)
    return [Right(f"arn:{account.partition}:s3:::{lake.bucket}/{lake.key}schema/table/file.parquet", (VERSION_DELETE,))]


def role_findings(facts: RoleFacts) -> list[Finding]:
    """Existence, trust, rights."""
    name = facts.name.rsplit("/", 1)[-1]
    where = f"role {name}"
    if facts.role.is_unknown:
        return [not_checked(facts.role, "role", where)]
    if facts.role.missing:
        fix = aws_line("iam", "create-role", role_name=name, assume_role_policy_document=json.dumps(TRUST))
        return [Finding(BLOCKS, "role", where, f"no run of {', '.join(facts.jobs)} starts", "the role", "none", fix)]
    found = [*_trust(name, where, facts.role.answer["Role"]), *_rights(facts, where)]
    return found or [Finding(FINE, "role", where, found=f"of {', '.join(facts.jobs)}")]


def _trust(name: str, where: str, role: Mapping[str, Any]) -> list[Finding]:
    document = role.get("AssumeRolePolicyDocument") or {}
    policy = json.loads(urllib.parse.unquote(document)) if isinstance(document, str) else document
    if any(map(_lets_glue, listed(policy.get("Statement")))):
        return []
    mended = {
        **policy,
        "Version": policy.get("Version", "2012-10-17"),
        "Statement": [*listed(policy.get("Statement")), *listed(TRUST["Statement"])],
    }
    fix = aws_line("iam", "update-assume-role-policy", role_name=name, policy_document=json.dumps(mended))
    return [Finding(BLOCKS, "role-trust", where, "Glue may not take the role: no run starts", f"{GLUE} as principal", "not there", fix)]


def _lets_glue(statement: Mapping[str, Any]) -> bool:
    principal = statement.get("Principal") or {}
    services = listed(principal.get("Service")) if isinstance(principal, dict) else [principal]
    return statement.get("Effect") == "Allow" and bool({GLUE, "*"} & set(services))


def _rights(facts: RoleFacts, where: str) -> list[Finding]:
    unknown = next((seen for seen in facts.rights.values() if seen.is_unknown), None)
    if unknown is not None:
        return [not_checked(unknown, "role-rights", where)]
    return [finding for right, seen in facts.rights.items() for finding in _right(facts, right, seen.answer, where)]


def _right(facts: RoleFacts, right: Right, allowed: Mapping[str, bool], where: str) -> list[Finding]:
    todo = f"change the policy of {where}, or deploy the template again"
    if right.actions == (VERSION_DELETE,) and ERASE not in facts.jobs:
        if not allowed.get(VERSION_DELETE):
            return []
        what = "a defect or a thief could remove versions for good: only the role of Erase needs this"
        return [Finding(WARNS, "role-rights", where, what, f"no {VERSION_DELETE}", f"allowed on {right.resource}", todo=todo)]
    denied = [action for action, is_allowed in allowed.items() if not is_allowed]
    if not denied:
        return []
    what = "runs are refused, unless the policy of the bucket or key itself allows it"
    return [Finding(WARNS, "role-rights", where, what, ", ".join(denied), f"denied on {right.resource}", todo=todo)]
