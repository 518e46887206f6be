"""What GetTemplateSummary answers."""

from __future__ import annotations

from typing import Any

from infra.local.cloudformation.checks import as_text, needed_capability
from infra.local.cloudformation.template import parse


def summary(text: str) -> dict[str, Any]:
    """Parameters, types and capabilities of a template. moto reads the text by the slow parser, half a second for the lake's."""
    template = parse(text)
    parameters = [
        {
            "ParameterKey": name,
            "ParameterType": declared["Type"],
            "DefaultValue": as_text(declared["Default"]) if "Default" in declared else None,
            "Description": declared.get("Description", ""),
            "NoEcho": declared.get("NoEcho", False),
            "ParameterConstraints": {"AllowedValues": [as_text(value) for value in declared.get("AllowedValues", [])]},
        }
        for name, declared in template.get("Parameters", {}).items()
    ]
    return {
        "Description": template.get("Description"),
        "Parameters": parameters,
        "Capabilities": list(needed_capability(template))[:1],
        "ResourceTypes": sorted({declared["Type"] for declared in template["Resources"].values()}),
        "Version": template.get("AWSTemplateFormatVersion"),
    }
