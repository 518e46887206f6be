"""The roles of lake.yaml: which job has which, and what the policies of a role allow."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from tests.infra.resolve import Resolved
from tests.requests.actions import ACCOUNT, Need

JOB_RESOURCE = "AWS::Glue::Job"
KEY = f"arn:aws:kms:{ACCOUNT}:key/k"
_NAMES = {"CreatedRawBucket": "raw", "CreatedLakeBucket": "lake", "StateTable": "DMSCDC_Controller", "Database": "dmslake"}


@dataclass(frozen=True)
class Statement:
    """One statement of a policy. name: the policy's and its own, as the test names it."""

    name: str
    effect: str
    actions: tuple[str, ...]
    resources: tuple[str, ...]
    conditions: Mapping[str, Mapping[str, Any]]

    def covers(self, need: Need) -> bool:
        return (
            any(_like(need.action.lower(), action.lower()) for action in self.actions)
            and any(_like(need.resource, resource) for resource in self.resources)
            and all(
                _holds(operator, key, value, need.context) for operator, pairs in self.conditions.items() for key, value in pairs.items()
            )
        )


@dataclass(frozen=True)
class Role:
    """A role's statements, and those of the policies of the buckets."""

    name: str
    allowing: tuple[Statement, ...]
    denying: tuple[Statement, ...]

    def allows(self, need: Need) -> bool:
        context = {"aws:SecureTransport": "true", "aws:PrincipalArn": f"{self.name}.Arn", **need.context}
        asked = replace(need, context=context)
        return any(one.covers(asked) for one in self.allowing) and not any(one.covers(asked) for one in self.denying)


@lru_cache(maxsize=2)
def stack(key: str = "") -> Resolved:
    """lake.yaml as the embedded AWS has it: its buckets and tables, jobs without a prefix."""
    resolved = Resolved.read(
        "lake.yaml", ArtifactBucket="artifacts", ArtifactPrefix="v1/", ControllerWheel="w.whl", JobPrefix="", KmsKeyArn=key
    )
    jobs = [name for name, one in resolved.template["Resources"].items() if one["Type"] == JOB_RESOURCE]
    attributes = {("StateTable", "Arn"): f"arn:aws:dynamodb:{ACCOUNT}:table/{_NAMES['StateTable']}"}
    for bucket in ("CreatedRawBucket", "CreatedLakeBucket"):
        attributes[bucket, "Arn"] = f"arn:aws:s3:::{_NAMES[bucket]}"
    return replace(resolved, names={**_NAMES, **{name: name for name in jobs}}, attributes=attributes)


@lru_cache(maxsize=2)
def roles(key: str = "") -> dict[str, Role]:
    """The roles that Glue jobs have, by name."""
    resolved = stack(key)
    denying = tuple(
        one
        for name, properties in resolved.resources("AWS::S3::BucketPolicy").items()
        for one in _statements(name, properties["PolicyDocument"])
        if one.effect == "Deny"
    )
    return {name: Role(name, tuple(_of_role(resolved, name)), denying) for name in sorted(set(role_of_job(key).values()))}


def role_of_job(key: str = "") -> dict[str, str]:
    """The logical id of the role of each Glue job."""
    return {name: str(one["Role"]).removesuffix(".Arn") for name, one in stack(key).resources(JOB_RESOURCE).items()}


def _of_role(resolved: Resolved, role: str) -> Iterator[Statement]:
    properties = resolved.resource(role)
    for managed in properties.get("ManagedPolicyArns", ()):
        yield from _statements(managed, resolved.resource(managed)["PolicyDocument"])
    for inline in properties.get("Policies", ()):
        yield from _statements(role, inline["PolicyDocument"])


def _statements(name: str, document: Mapping[str, Any]) -> Iterator[Statement]:
    for one in document["Statement"]:
        unknown = set(one) - {"Sid", "Effect", "Action", "Resource", "Condition", "Principal"}
        if unknown:
            raise ValueError(f"{name}: {sorted(unknown)} is not known to tests/requests/policy.py")
        yield Statement(f"{name}.{one['Sid']}", one["Effect"], _texts(one["Action"]), _texts(one["Resource"]), one.get("Condition", {}))


def _texts(value: Any) -> tuple[str, ...]:
    return (value,) if isinstance(value, str) else tuple(value)


def _like(text: str, pattern: str) -> bool:
    return _compiled(pattern).fullmatch(text) is not None


@lru_cache(maxsize=1000)
def _compiled(pattern: str) -> re.Pattern[str]:
    parts = (".*" if char == "*" else "." if char == "?" else re.escape(char) for char in pattern)
    return re.compile("".join(parts), re.DOTALL)


def _holds(operator: str, key: str, value: Any, context: Mapping[str, str]) -> bool:
    """One condition. ValueError for an operator that is not known here."""
    found = context.get(key)
    if operator == "Null":
        return (found is None) == (str(value) == "true")
    if operator.endswith("IfExists") and found is None:
        return True
    matches = found is not None and any(_like(found, pattern) for pattern in _texts(value))
    plain = operator.removesuffix("IfExists")
    if plain in ("StringLike", "StringEquals", "ArnLike", "ArnEquals", "Bool"):
        return matches
    if plain in ("StringNotLike", "StringNotEquals", "ArnNotLike", "ArnNotEquals"):
        return not matches
    raise ValueError(f"condition {operator} of {key}: not known to tests/requests/policy.py")
