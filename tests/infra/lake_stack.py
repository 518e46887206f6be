"""The template of the lake under some parameters, and the questions that the rules ask of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from tests.infra.resolve import Resolved

ROLES = ("ControllerRole", "LoadRole", "RollbackRole", "EraseRole")
PROGRAM = {"ArtifactBucket": "artifacts", "ArtifactPrefix": "dmslake/1.0/", "ControllerWheel": "dmslake-1.0-py3-none-any.whl"}
KEY = "arn:aws:kms:eu-central-1:123456789012:key/1"
SETUPS: dict[str, dict[str, Any]] = {
    "as it comes": {},
    "all there is": {
        "KmsKeyArn": KEY,
        "WithAthena": "true",
        "AlarmEmail": "a@b.c",
        "NewRawBucketName": "new-raw",
        "NewLakeBucketName": "new-lake",
    },
    "buckets of one's own": {
        "RawBucket": "raw",
        "LakeBucket": "lake",
        "KmsKeyArn": KEY,
        "JobPrefix": "",
        "ScheduleEnabled": "false",
        "StateTableName": "state",
        "DatabaseName": "db",
    },
}


@dataclass(frozen=True)
class Statement:
    """A statement of a policy. The values of its members are always lists."""

    effect: str
    actions: tuple[str, ...]
    resources: tuple[str, ...]
    condition: Mapping[str, Mapping[str, Any]]
    principal: Any = None
    sid: str = ""


@dataclass(frozen=True)
class LakeStack:
    """A stack as it would be made."""

    setup: str
    resolved: Resolved

    @classmethod
    def of(cls, template: Mapping[str, Any], setup: str) -> LakeStack:
        given = {**PROGRAM, **SETUPS[setup]}
        declared = template["Parameters"]
        return cls(setup, Resolved(template, {name: given.get(name, one.get("Default")) for name, one in declared.items()}))

    @property
    def parameters(self) -> Mapping[str, Any]:
        return self.resolved.parameters

    @property
    def template(self) -> Mapping[str, Any]:
        return self.resolved.template

    def all_of(self, kind: str) -> dict[str, dict[str, Any]]:
        """The properties of the resources that are made, by logical id: of a type, or of all that begin so (`AWS::S3::`)."""
        types = {name: each["Type"] for name, each in self.template["Resources"].items()}
        found = self.resolved.resources(kind)
        return {name: each for name, each in found.items() if types[name] == kind or kind.endswith("::")}

    def role_statements(self, role: str) -> list[Statement]:
        """All that a role is given, by itself and by the template's managed policies."""
        properties = self.resolved.resource(role)
        documents = [policy["PolicyDocument"] for policy in properties.get("Policies", ())]
        documents += [self.resolved.resource(name)["PolicyDocument"] for name in properties.get("ManagedPolicyArns", ())]
        return [statement for document in documents for statement in statements(document)]

    def allowed(self) -> Iterator[tuple[str, Statement]]:
        """(role, statement) of everything that is allowed to a role."""
        for role in ROLES:
            for statement in self.role_statements(role):
                if statement.effect == "Allow":
                    yield role, statement

    def bucket(self, kind: str) -> str:
        """The name of the bucket 'Raw' or 'Lake', given or made."""
        return str(self.parameters[f"{kind}Bucket"] or f"Created{kind}Bucket")

    def jobs(self) -> dict[str, dict[str, Any]]:
        return self.all_of("AWS::Glue::Job")

    def spark_jobs(self) -> dict[str, dict[str, Any]]:
        return {name: job for name, job in self.jobs().items() if job["Command"]["Name"] == "glueetl"}


def statements(document: Mapping[str, Any]) -> list[Statement]:
    """The statements of a policy document."""
    return [
        Statement(
            each["Effect"],
            tuple(_list(each["Action"])),
            tuple(_list(each.get("Resource", ()))),
            each.get("Condition", {}),
            each.get("Principal"),
            each.get("Sid", ""),
        )
        for each in document["Statement"]
    ]


def _list(value: Any) -> list[Any]:
    return [value] if isinstance(value, str) else list(value)
