"""A bucket's own policy: TLS only, and versions deleted by nobody but the role of Erase; and whose the objects are. Pure."""

from __future__ import annotations

import fnmatch
import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from controller.doctor.buckets import Bucket
from controller.doctor.finding import FINE, WARNS, Finding, aws_line
from controller.doctor.looks import not_checked

ENFORCED = "BucketOwnerEnforced"
VERSION_DELETE = "s3:DeleteObjectVersion"
PRINCIPAL = "aws:principalarn"
NOT_THOSE = ("ArnNotEquals", "ArnNotLike", "StringNotEquals", "StringNotLike")
Statement = Mapping[str, Any]


@dataclass(frozen=True)
class Wanted:
    """partition: of the account's ARNs. erase_role: the ARN of the role that removes versions of this bucket, '' if none does."""

    partition: str = "aws"
    erase_role: str = ""


def policy_findings(bucket: Bucket, wanted: Wanted) -> list[Finding]:
    """What the policy lacks; all of it mended by one line, since S3 takes a policy only as a whole."""
    check, seen = f"{bucket.role}-policy", bucket.policy
    if seen.is_unknown:
        return [not_checked(seen, check, bucket.where)]
    policy: Mapping[str, Any] = json.loads(seen.answer["Policy"]) if seen.answer else {"Version": "2012-10-17"}
    statements = listed(policy.get("Statement"))
    found: list[Finding] = []
    if not any(map(_refuses_plain_http, statements)):
        what = "requests without TLS are taken, and could be read on their way"
        found.append(Finding(WARNS, check, bucket.where, what, "a Deny where aws:SecureTransport is false", "none"))
        statements = [*statements, _tls_only(bucket, wanted.partition)]
    if wanted.erase_role and any(_stops(statement, wanted.erase_role) for statement in statements):
        what = "`dmslake erase` is refused when it removes versions: the policy lets other roles do that, or none"
        found.append(Finding(WARNS, check, bucket.where, what, f"an exception for {wanted.erase_role}", f"a Deny of {VERSION_DELETE}"))
        statements = [_with_exception(statement, wanted.erase_role) for statement in statements]
    fix = aws_line("s3api", "put-bucket-policy", bucket=bucket.name, policy=json.dumps({**policy, "Statement": statements}))
    return [replace(finding, fix=fix) for finding in found] or [Finding(FINE, check, bucket.where, found="TLS only")]


def ownership_findings(bucket: Bucket) -> list[Finding]:
    """Without ACLs, every object is the bucket owner's, whoever wrote it."""
    check, seen = f"{bucket.role}-ownership", bucket.ownership
    if seen.is_unknown:
        return [not_checked(seen, check, bucket.where)]
    rules = (seen.answer or {}).get("OwnershipControls", {}).get("Rules", [])
    found = ", ".join(str(rule.get("ObjectOwnership")) for rule in rules) or "not set"
    if found == ENFORCED:
        return [Finding(FINE, check, bucket.where, found=found)]
    fix = aws_line(
        "s3api", "put-bucket-ownership-controls", bucket=bucket.name, ownership_controls=f"Rules=[{{ObjectOwnership={ENFORCED}}}]"
    )
    what = "objects that another account writes, DMS in it for one, may not be readable here"
    return [Finding(WARNS, check, bucket.where, what, ENFORCED, found, fix)]


def listed(value: Any) -> list[Any]:
    """What IAM writes as one thing or as a list, as a list."""
    return [] if value is None else list(value) if isinstance(value, list) else [value]


def _refuses_plain_http(statement: Statement) -> bool:
    condition = (statement.get("Condition") or {}).get("Bool") or {}
    plain = {str(name).lower(): str(value).lower() for name, value in condition.items()}
    return statement.get("Effect") == "Deny" and plain.get("aws:securetransport") == "false"


def _tls_only(bucket: Bucket, partition: str) -> dict[str, Any]:
    arn = f"arn:{partition}:s3:::{bucket.name}"
    return {
        "Sid": "TlsOnly", "Effect": "Deny", "Principal": "*", "Action": "s3:*", "Resource": [arn, f"{arn}/*"],
        "Condition": {"Bool": {"aws:SecureTransport": "false"}},
    }  # fmt: skip


def _stops(statement: Statement, role: str) -> bool:
    """Whether the statement denies the role to delete versions, as far as it depends on who asks and on nothing else."""
    actions = [str(action).lower() for action in listed(statement.get("Action"))]
    if statement.get("Effect") != "Deny" or not any(fnmatch.fnmatchcase(VERSION_DELETE.lower(), action) for action in actions):
        return False
    condition: Mapping[str, Mapping[str, Any]] = statement.get("Condition") or {}
    exceptions = [value for operator in NOT_THOSE for name, value in condition.get(operator, {}).items() if name.lower() == PRINCIPAL]
    if len(exceptions) != sum(len(names) for names in condition.values()):
        return False
    return not any(fnmatch.fnmatchcase(role, str(pattern)) for value in exceptions for pattern in listed(value))


def _with_exception(statement: Statement, role: str) -> Statement:
    """The statement, with an exception for the role if it stops it."""
    if not _stops(statement, role):
        return statement
    condition: Mapping[str, Mapping[str, Any]] = statement.get("Condition") or {"ArnNotEquals": {"aws:PrincipalArn": []}}
    mended = {
        operator: {name: [*listed(value), role] if name.lower() == PRINCIPAL else value for name, value in names.items()}
        for operator, names in condition.items()
    }
    return {**statement, "Condition": mended}
