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
ALL = "*"
NOT_THOSE = ("ArnNotEquals", "ArnNotLike", "StringNotEquals", "StringNotLike")
Statement = Mapping[str, Any]


@dataclass(frozen=True)
class Wanted:
    """partition: of the account's ARNs. erase_role: the ARN of the role that removes versions of this bucket, '' if none does."""

    partition: str = "aws"
    erase_role: str = ""


@dataclass(frozen=True)
class _Erase:
    """Who removes versions, and of which keys: the ARN of the role, and that of the lake's folder with its slash."""

    role: str
    folder: str


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
    erase = _Erase(wanted.erase_role, f"arn:{wanted.partition}:s3:::{bucket.name}/{bucket.uri.key}")
    if erase.role and any(_stops(statement, erase) for statement in statements):
        what = "`dmslake erase` is refused when it removes versions: the policy lets other roles do that, or none"
        found.append(Finding(WARNS, check, bucket.where, what, f"an exception for {erase.role}", f"a Deny of {VERSION_DELETE}"))
        statements = [_with_exception(statement, erase) for statement in statements]
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


def _stops(statement: Statement, erase: _Erase) -> bool:
    """Whether the statement denies the role to delete versions, as far as it depends on who asks and of what, and on nothing else."""
    if not (_is_for(statement, erase.role) and _is_about(statement, erase.folder)):
        return False
    actions = [str(action).lower() for action in listed(statement.get("Action"))]
    if statement.get("Effect") != "Deny" or not any(fnmatch.fnmatchcase(VERSION_DELETE.lower(), action) for action in actions):
        return False
    condition: Mapping[str, Mapping[str, Any]] = statement.get("Condition") or {}
    exceptions = [value for operator in NOT_THOSE for name, value in condition.get(operator, {}).items() if name.lower() == PRINCIPAL]
    if len(exceptions) != sum(len(names) for names in condition.values()):
        return False
    return not any(fnmatch.fnmatchcase(erase.role, str(pattern)) for value in exceptions for pattern in listed(value))


def _is_for(statement: Statement, role: str) -> bool:
    """Whether the statement is about what the role asks for: it is named itself, with its account or with everybody, or not left out."""
    if "NotPrincipal" in statement:
        return not {role, ALL} & _principals(statement["NotPrincipal"])
    parts = role.split(":")
    account = {":".join([*parts[:5], "root"]), *parts[4:5]}  # its root, or its number alone: to S3 all principals of the account
    return bool({role, ALL, *account} & _principals(statement.get("Principal")))


def _principals(value: Any) -> set[str]:
    """Those of AWS: ARNs, numbers of accounts, * for everybody. Services, and who came from elsewhere, are no role of ours."""
    return {str(name) for name in listed(value.get("AWS") if isinstance(value, Mapping) else value)}


def _is_about(statement: Statement, folder: str) -> bool:
    """Whether the statement is about a key below the folder."""
    if "NotResource" in statement:
        patterns = [str(pattern) for pattern in listed(statement["NotResource"])]
        return not any(pattern.endswith("*") and _fits(folder, pattern) for pattern in patterns)
    # A pattern fits some text that begins with the folder's where a beginning of the pattern fits the folder's.
    patterns = [str(pattern) for pattern in listed(statement.get("Resource"))]
    return any(_fits(folder, pattern[:end]) for pattern in patterns for end in range(len(pattern) + 1))


def _fits(text: str, pattern: str) -> bool:
    """By the wildcards of policies, * and ?: a bracket is none there."""
    return fnmatch.fnmatchcase(text, pattern.replace("[", "[[]"))


def _with_exception(statement: Statement, erase: _Erase) -> Statement:
    """The statement, with an exception for the role if it stops it."""
    if not _stops(statement, erase):
        return statement
    condition: Mapping[str, Mapping[str, Any]] = statement.get("Condition") or {"ArnNotEquals": {"aws:PrincipalArn": []}}
    mended = {
        operator: {name: [*listed(value), erase.role] if name.lower() == PRINCIPAL else value for name, value in names.items()}
        for operator, names in condition.items()
    }
    return {**statement, "Condition": mended}
