"""A rule for the lake's template: why it is there, what breaks it, and a change of the template that it must notice."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from tests.infra.lake_stack import LakeStack

Template = dict[str, Any]
Problems = Callable[[LakeStack], Iterator[str]]
Spoil = Callable[[Template], None]


@dataclass(frozen=True)
class Rule:
    """problems: what is wrong with a stack. spoil: changes a template so that the rule finds something in one of the set-ups."""

    name: str
    reason: str
    problems: Problems
    spoil: Spoil


class Rules(list[Rule]):
    """The rules of a file; `@rules("why", spoil)` adds a function."""

    def __call__(self, reason: str, spoil: Spoil) -> Callable[[Problems], Problems]:
        def add(problems: Problems) -> Problems:
            self.append(Rule(problems.__name__, reason, problems, spoil))
            return problems

        return add


def put(path: str, value: Any) -> Spoil:
    """A change that sets the member at `Resources/Name/Properties/…`. Numbers are places in a list."""

    def spoil(template: Template) -> None:
        node, last = _find(template, path)
        node[last] = value

    return spoil


def remove(path: str) -> Spoil:
    """A change that removes the member at the path."""

    def spoil(template: Template) -> None:
        node, last = _find(template, path)
        del node[last]

    return spoil


def _find(template: Template, path: str) -> tuple[Any, Any]:
    """What holds the member at the path, and its name or place in there."""
    node: Any = template
    *way, last = path.split("/")
    for name in way:
        node = node[int(name) if isinstance(node, list) else name]
    return node, int(last) if isinstance(node, list) else last


def allow(policy: str, *actions: str, resource: Any = "*", condition: Any = None) -> Spoil:
    """A change that gives the managed policy or role one more statement."""

    def spoil(template: Template) -> None:
        statement: dict[str, Any] = {"Effect": "Allow", "Action": list(actions), "Resource": resource}
        if condition is not None:
            statement["Condition"] = condition
        properties = template["Resources"][policy]["Properties"]
        if "PolicyDocument" in properties:
            properties["PolicyDocument"]["Statement"].append(statement)
        else:
            document = {"Version": "2012-10-17", "Statement": [statement]}
            properties.setdefault("Policies", []).append({"PolicyName": "more", "PolicyDocument": document})

    return spoil
