"""What CloudFormation makes of a template for given parameters, as far as our templates' functions go."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from cfnlint.decode.cfn_yaml import load

from infra.aws import FOLDER

PSEUDO = {
    "AWS::AccountId": "123456789012",
    "AWS::Partition": "aws",
    "AWS::Region": "eu-central-1",
    "AWS::StackName": "lake-stack",
    "AWS::URLSuffix": "amazonaws.com",
    "AWS::StackId": "arn:aws:cloudformation:eu-central-1:123456789012:stack/lake-stack/1",
}
_LEFT_OUT = object()  # what AWS::NoValue stands for
_VARIABLE = re.compile(r"\$\{(!?)([^}]+)\}")


@dataclass
class Resolved:
    """A template with its parameters. `names`: what Ref of a resource gives; without one it is the logical id."""

    template: Mapping[str, Any]
    parameters: Mapping[str, Any]
    names: Mapping[str, str] = field(default_factory=dict)
    attributes: Mapping[tuple[str, str], str] = field(default_factory=dict)

    @classmethod
    def read(cls, file: str, **parameters: Any) -> Resolved:
        """The template `file` of infra/aws; parameters that are not given have their default."""
        template = load(str(FOLDER / file))
        declared = template.get("Parameters", {})
        unknown = set(parameters) - set(declared)
        missing = {name for name, one in declared.items() if "Default" not in one} - set(parameters)
        if unknown or missing:
            raise ValueError(f"{file}: unknown parameters {sorted(unknown)}, missing {sorted(missing)}")
        given = {name: parameters.get(name, one.get("Default")) for name, one in declared.items()}
        lists = {name for name, one in declared.items() if str(one["Type"]).startswith(("List<", "CommaDelimitedList"))}
        return cls(template, {name: value.split(",") if name in lists else value for name, value in given.items()})

    def resource(self, name: str) -> dict[str, Any]:
        """The resource's properties; KeyError if its condition leaves it out."""
        resource = self.template["Resources"][name]
        if not self._exists(resource):
            raise KeyError(f"{name} is not made under these parameters")
        properties: dict[str, Any] = self.value(resource.get("Properties", {}))
        return properties

    def resources(self, kind: str = "") -> dict[str, dict[str, Any]]:
        """The properties of all resources (of one type) that are made, by logical id."""
        found = {name: one for name, one in self.template["Resources"].items() if self._exists(one) and one["Type"].startswith(kind)}
        return {name: self.resource(name) for name in found}

    def refusals(self) -> list[str]:
        """What the template's rules say of these parameters; with any of it CloudFormation makes nothing."""
        rules = [rule for rule in self.template.get("Rules", {}).values() if self._truth(rule["RuleCondition"])]
        return [one["AssertDescription"] for rule in rules for one in rule["Assertions"] if not self._truth(one["Assert"])]

    def outputs(self) -> dict[str, Any]:
        """The outputs' values, by name."""
        return {name: self.value(one["Value"]) for name, one in self.template["Outputs"].items() if self._exists(one)}

    def value(self, node: Any) -> Any:
        """A part of the template, resolved. ValueError for a function that is not known here."""
        if isinstance(node, list):
            return [one for one in map(self.value, node) if one is not _LEFT_OUT]
        if not isinstance(node, Mapping):
            return node
        if len(node) == 1:
            name, argument = next(iter(node.items()))
            if name == "Ref" or name.startswith("Fn::"):
                return self._call(name, argument)
        pairs = {key: self.value(value) for key, value in node.items()}
        return {key: value for key, value in pairs.items() if value is not _LEFT_OUT}

    def condition(self, name: str) -> bool:
        return bool(self._truth(self.template["Conditions"][name]))

    def _exists(self, part: Mapping[str, Any]) -> bool:
        return "Condition" not in part or self.condition(part["Condition"])

    def _truth(self, node: Mapping[str, Any]) -> bool:
        ((name, argument),) = node.items()
        if name == "Condition":
            return self.condition(argument)
        if name == "Fn::Equals":
            left, right = (self.value(side) for side in argument)
            return bool(str(left) == str(right))
        sides = [self._truth(side) for side in argument]
        return {"Fn::Not": not sides[0], "Fn::And": all(sides), "Fn::Or": any(sides)}[name]

    def _call(self, name: str, argument: Any) -> Any:
        functions: dict[str, Callable[[Any], Any]] = {
            "Ref": self._ref,
            "Fn::Sub": self._sub,
            "Fn::If": lambda parts: self.value(parts[1] if self.condition(parts[0]) else parts[2]),
            "Fn::GetAtt": self._get_att,
            "Fn::Join": lambda parts: self.value(parts[0]).join(str(one) for one in self.value(parts[1])),
            "Fn::Split": lambda parts: self.value(parts[1]).split(parts[0]),
            "Fn::Select": lambda parts: self.value(parts[1])[int(self.value(parts[0]))],
            "Fn::FindInMap": self._find_in_map,
            "Fn::GetAZs": lambda region: ["a", "b"],
        }
        if name not in functions:
            raise ValueError(f"function {name}: not known to tests/infra/resolve.py")
        return functions[name](argument)

    def _ref(self, name: str) -> Any:
        if name == "AWS::NoValue":
            return _LEFT_OUT
        if name in self.parameters:
            return self.parameters[name]
        if name in PSEUDO:
            return PSEUDO[name]
        if name in self.template["Resources"]:
            return self.names.get(name, name)
        raise ValueError(f"Ref {name}: no such parameter or resource")

    def _get_att(self, argument: Any) -> str:
        resource, attribute = argument.split(".", 1) if isinstance(argument, str) else argument
        if resource not in self.template["Resources"]:
            raise ValueError(f"GetAtt {resource}.{attribute}: no such resource")
        return self.attributes.get((resource, attribute), f"{resource}.{attribute}")

    def _sub(self, argument: Any) -> str:
        text, variables = (argument, {}) if isinstance(argument, str) else argument
        own = {name: self.value(value) for name, value in variables.items()}

        def put(match: re.Match[str]) -> str:
            literal, name = match.groups()
            if literal:
                return f"${{{name}}}"
            if name in own:
                return str(own[name])
            return str(self._get_att(name) if "." in name else self._ref(name))

        return _VARIABLE.sub(put, text)

    def _find_in_map(self, argument: Any) -> Any:
        name, first, second = (self.value(part) for part in argument)
        return self.template["Mappings"][name][first][second]
