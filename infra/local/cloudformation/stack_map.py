"""The resources of one stack: in which order they are made, what another template would change, and the change itself."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from infra.local.cloudformation.checks import as_text, check_parameters, check_shape
from infra.local.cloudformation.moto_parts import ValidationError, parsing
from infra.local.cloudformation.resource import Resource
from infra.local.cloudformation.template import references
from infra.local.cloudformation.types import TYPES

Tell = Callable[[Resource, str, str], None]  # a resource, its status, the reason or ''

KNOWN_LATER = "{{changeSet:KNOWN_AFTER_APPLY}}"
_one_at_a_time = threading.RLock()


class StackFailed(Exception):
    """A resource could not be made or changed; what was done before it has been taken back. The message is the reason."""


@dataclass(frozen=True)
class Difference:
    """What a deployment does to one resource: 'Add', 'Modify' or 'Remove'."""

    action: str
    logical_id: str
    kind: str
    physical_id: str = ""
    replaces: bool = False


class _Later:
    """Stands for a resource that is not made yet, where only differences are asked for."""

    physical_resource_id = KNOWN_LATER

    def get_cfn_attribute(self, _: str) -> str:
        return KNOWN_LATER


class StackMap(parsing.ResourceMap):  # type: ignore[misc,name-defined]
    """moto's map of a stack's resources, of which its reading of parameters and conditions is used, and nothing else.

    moto makes a resource when it is first asked for, never compares resolved properties (a parameter inside `Fn::Sub` changes
    nothing there), and stops half way when something fails. This map is made anew for each template: `deploy` carries over what
    stays from the map before, and either all of it is done or all of it is taken back.
    """

    def load(self) -> None:
        """Reads and checks the template; a ValidationError says what CloudFormation would say before it makes anything."""
        if not self._template:  # a stack that has nothing but a change set
            self.lazy_condition_map: dict[str, Any] = {}
            self.no_echo_parameter_keys: list[str] = []
            return
        check_shape(self._template)
        check_parameters(self._template, self.input_parameters)
        self.load_mapping()
        self.load_parameters()
        self.load_conditions()
        self._check_rules()
        self.order()  # refuses a circle

    def load_conditions(self) -> None:
        """All conditions, evaluated; each may be made of others."""
        declared = self._template.get("Conditions", {})
        self.lazy_condition_map = {}

        def truth(name: str) -> bool:
            if name not in self.lazy_condition_map:
                self.lazy_condition_map[name] = self._holds(declared[name], truth)
            return bool(self.lazy_condition_map[name])

        for name in declared:
            truth(name)

    def _holds(self, condition: Any, truth: Callable[[str], bool]) -> bool:
        ((function, value),) = condition.items()
        if function == "Condition":
            return truth(value)
        if function == "Fn::Equals":
            left, right = (as_text(parsing.clean_json(side, self)) for side in value)
            return left == right
        parts = [self._holds(part, truth) for part in value]
        return {"Fn::Not": not parts[0], "Fn::And": all(parts), "Fn::Or": any(parts)}[function]

    def _check_rules(self) -> None:
        """Rules refuse parameters that don't go together; moto passes over them."""
        truth = self.lazy_condition_map.__getitem__
        for name, rule in self._template.get("Rules", {}).items():
            if "RuleCondition" in rule and not self._holds(rule["RuleCondition"], truth):
                continue
            for assertion in rule["Assertions"]:
                if not self._holds(assertion["Assert"], truth):
                    raise ValidationError(message=f"Template validation error: Rule {name}: {assertion.get('AssertDescription', '')}")

    def __getitem__(self, key: str) -> Any:
        return self._parsed_resources[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self.made)

    def __len__(self) -> int:
        return len(self.made)

    @property
    def made(self) -> dict[str, Resource]:
        """The resources there are, by logical id, in the order in which they were made."""
        return {name: value for name, value in self._parsed_resources.items() if isinstance(value, Resource)}

    def order(self) -> list[str]:
        """The resources whose condition holds, each after those it refers to; else in the template's order."""
        wanted = {
            name: declared
            for name, declared in self._resource_json_map.items()
            if "Condition" not in declared or self.lazy_condition_map[declared["Condition"]]
        }
        ordered: dict[str, None] = {}

        def visit(name: str, path: tuple[str, ...]) -> None:
            if name in path:
                raise ValidationError(message=f"Circular dependency between resources: [{', '.join(path)}]")
            if name in ordered:
                return
            depends = wanted[name].get("DependsOn", [])
            for other in [*references(wanted[name]), *([depends] if isinstance(depends, str) else depends)]:
                if other in wanted and other != name:
                    visit(other, (*path, name))
            ordered[name] = None

        for name in wanted:
            visit(name, ())
        return list(ordered)

    def resolved(self, name: str) -> dict[str, Any]:
        """The properties of a resource as values."""
        declared = self._resource_json_map[name].get("Properties", {})
        properties: dict[str, Any] = _without_gaps(parsing.clean_json(declared, self))
        return properties

    def differences(self, before: StackMap) -> list[Difference]:
        """What `deploy` would do, and nothing done. Afterwards this map is good for nothing else."""
        found = []
        for name in self.order():
            kind = TYPES[self._resource_json_map[name]["Type"]]
            old = before.made.get(name)
            self._parsed_resources[name] = old or _Later()
            if old is None:
                found.append(Difference("Add", name, kind.TYPE))
                continue
            properties = self.resolved(name)
            if properties != old.properties or old.TYPE != kind.TYPE:
                replaces = old.TYPE != kind.TYPE or old.must_replace(properties)
                found.append(Difference("Modify", name, kind.TYPE, old.physical_resource_id, replaces))
                if replaces:
                    self._parsed_resources[name] = _Later()
        wanted = set(self._parsed_resources)
        gone = [old for name, old in before.made.items() if name not in wanted]
        return found + [Difference("Remove", old.logical_resource_id, old.TYPE, old.physical_resource_id) for old in gone]

    def deploy(self, before: StackMap, tell: Tell) -> None:
        """Makes, changes and deletes until the resources are those of this template; StackFailed: all is as it was before.

        What is no longer wanted is deleted last, when nothing can fail any more; retained resources are left alone.
        """
        undo: list[Callable[[], None]] = []
        replaced: list[Resource] = []
        with _one_at_a_time:
            try:
                for name in self.order():
                    self._deploy_one(name, before.made.get(name), tell, undo, replaced)
            # Whatever moto raises is the reason of a stack that failed.
            except Exception as error:
                for step in reversed(undo):
                    with suppress(Exception):  # as CloudFormation: what can't be taken back is left
                        step()
                raise StackFailed(f"{type(error).__name__}: {error}") from error
            wanted = set(self.made)
            kept = self._retained("UpdateReplacePolicy")
            gone = [old for name, old in before.made.items() if name not in wanted and name not in before._retained("DeletionPolicy")]
            _delete([*(old for old in replaced if old.logical_resource_id not in kept), *gone], tell)

    def delete(self) -> None:
        """Deletes all resources but those that are retained, the last made first."""
        retained = self._retained("DeletionPolicy")
        with _one_at_a_time:
            _delete([resource for name, resource in self.made.items() if name not in retained], lambda *_: None)

    def _deploy_one(self, name: str, old: Resource | None, tell: Tell, undo: list[Callable[[], None]], replaced: list[Resource]) -> None:
        kind = TYPES[self._resource_json_map[name]["Type"]]
        properties = self.resolved(name)
        if old is not None and old.TYPE == kind.TYPE and not old.must_replace(properties):
            self._parsed_resources[name] = old
            if properties != old.properties:
                _change(old, properties, tell, undo)
            return
        stack_name = str(self._parsed_resources["AWS::StackName"])
        made_up = parsing.generate_resource_name(kind.TYPE, stack_name, name)
        resource = kind(name, kind.given_name(properties) or made_up, properties)
        _attempt("CREATE", resource, resource.create, tell)
        self._parsed_resources[name] = resource
        if self._resource_json_map[name].get("DeletionPolicy") != "Retain":
            undo.append(resource.delete)
        if old is not None:
            replaced.append(old)

    def _retained(self, policy: str) -> set[str]:
        return {name for name, declared in self._resource_json_map.items() if declared.get(policy, "Delete").startswith("Retain")}


def _change(resource: Resource, properties: dict[str, Any], tell: Tell, undo: list[Callable[[], None]]) -> None:
    before = resource.properties

    def restore() -> None:
        resource.update(before)
        resource.properties = before

    undo.append(restore)  # first: an update that failed half way is taken back too
    _attempt("UPDATE", resource, lambda: resource.update(properties), tell)
    resource.properties = properties


def _attempt(what: str, resource: Resource, action: Callable[[], None], tell: Tell) -> None:
    tell(resource, f"{what}_IN_PROGRESS", "")
    try:
        action()
    except Exception as error:
        tell(resource, f"{what}_FAILED", f"{type(error).__name__}: {error}")
        raise
    tell(resource, f"{what}_COMPLETE", "")


def _delete(resources: list[Resource], tell: Tell) -> None:
    """Deletes, those made last first; what can't be deleted is left, as CloudFormation leaves it, and told."""
    for resource in reversed(resources):
        with suppress(Exception):
            _attempt("DELETE", resource, resource.delete, tell)


def _without_gaps(value: Any) -> Any:
    """moto leaves a None in a list where AWS::NoValue stood."""
    if isinstance(value, list):
        return [_without_gaps(entry) for entry in value if entry is not None]
    if isinstance(value, dict):
        return {key: _without_gaps(entry) for key, entry in value.items()}
    return value
