"""What a template and its parameters must hold to, checked before anything is made."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from typing import Any

from infra.local.cloudformation.moto_parts import ValidationError
from infra.local.cloudformation.template import Template, references
from infra.local.cloudformation.types import TYPES

MAX_BODY_BYTES = 51_200
_SECTIONS = frozenset(
    {"AWSTemplateFormatVersion", "Description", "Metadata", "Parameters", "Mappings", "Conditions", "Rules", "Resources", "Outputs"}
)
_FUNCTIONS = frozenset(
    {
        *("Fn::Sub", "Fn::GetAtt", "Fn::If", "Fn::Join", "Fn::Split", "Fn::Select", "Fn::FindInMap", "Fn::Base64"),
        *("Fn::Equals", "Fn::Not", "Fn::And", "Fn::Or"),
    }
)
_RESOURCE_KEYS = frozenset({"Type", "Properties", "Condition", "DependsOn", "DeletionPolicy", "UpdateReplacePolicy", "Metadata"})


def check_shape(template: Template) -> None:
    """Refused by name: sections, functions, resource types and properties that would be passed over in silence."""
    unknown = sorted(set(template) - _SECTIONS)
    if unknown:
        raise ValidationError(message=f"Template sections not handled by the embedded AWS: {', '.join(unknown)}")
    functions = sorted(set(_functions(template)) - _FUNCTIONS)
    if functions:
        raise ValidationError(message=f"Functions not handled by the embedded AWS: {', '.join(functions)}")
    resources = template["Resources"]
    types = sorted({declared["Type"] for declared in resources.values()} - set(TYPES))
    if types:
        raise ValidationError(message=f"Resource types not handled by the embedded AWS: {', '.join(types)}")
    unhandled = [
        f"{name}.{part}"
        for name, declared in resources.items()
        for part in [*sorted(set(declared) - _RESOURCE_KEYS), *TYPES[declared["Type"]].unhandled(declared.get("Properties", {}))]
    ]
    if unhandled:
        raise ValidationError(message=f"Properties not handled by the embedded AWS: {', '.join(unhandled)}")
    known = {*resources, *template.get("Parameters", {})}
    for name in references({**resources, "": template.get("Outputs", {})}):
        if name not in known and not re.match("AWS::", name):
            raise ValidationError(message=f"Template format error: Unresolved resource dependencies [{name}]")


def _functions(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        yield from (name for name in value if name.startswith("Fn::"))
    for entry in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from _functions(entry)


def check_parameters(template: Template, given: Mapping[str, str]) -> None:
    """Refused as CloudFormation does, where moto takes anything: unknown parameters, and values that break a constraint."""
    declared = template.get("Parameters", {})
    unknown = sorted(set(given) - set(declared))
    if unknown:
        raise ValidationError(message=f"Parameters: [{', '.join(unknown)}] do not exist in the template")
    for name, parameter in declared.items():
        if parameter["Type"].startswith("AWS::SSM::"):
            raise ValidationError(message=f"Parameter {name}: type {parameter['Type']} is not handled by the embedded AWS")
        if name in given:
            _check_value(name, parameter, str(given[name]))


def _check_value(name: str, parameter: Mapping[str, Any], value: str) -> None:
    allowed = parameter.get("AllowedValues")
    pattern = parameter.get("AllowedPattern")
    what = ""
    if allowed is not None and value not in [as_text(entry) for entry in allowed]:
        what = f"must be one of {allowed}"
    elif pattern is not None and not re.fullmatch(pattern, value):
        what = f"must satisfy {pattern}"
    elif parameter["Type"] == "Number" and not re.fullmatch(r"-?\d+(\.\d+)?", value):
        what = "must be a number"
    elif "MinValue" in parameter and float(value) < float(parameter["MinValue"]):
        what = f"must be at least {parameter['MinValue']}"
    elif "MaxValue" in parameter and float(value) > float(parameter["MaxValue"]):
        what = f"must be at most {parameter['MaxValue']}"
    elif not int(parameter.get("MinLength", 0)) <= len(value) <= int(parameter.get("MaxLength", 4096)):
        what = f"must have {parameter.get('MinLength', 0)} to {parameter.get('MaxLength', 4096)} characters"
    if what:
        raise ValidationError(message=f"Parameter {name} {what}, not {value!r}")


def as_text(value: object) -> str:
    """The value as CloudFormation compares it: as text."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def needed_capability(template: Template) -> Collection[str]:
    """The capabilities of which one must be given: a template that makes roles wants to be asked for it."""
    iam = [declared for declared in template["Resources"].values() if declared["Type"].startswith("AWS::IAM::")]
    if not iam:
        return ()
    named = any(set(declared.get("Properties", {})) & {"RoleName", "ManagedPolicyName", "UserName", "GroupName"} for declared in iam)
    return ("CAPABILITY_NAMED_IAM",) if named else ("CAPABILITY_IAM", "CAPABILITY_NAMED_IAM")
