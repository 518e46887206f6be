"""Stacks, change sets and events of moto's CloudFormation, deployed by `StackMap`.

A request returns when the stack is done: there is no time in which it is IN_PROGRESS. A deployment that fails is taken back and
the stack's status says so, with the reason; an event per resource tells how it went.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from moto.core.utils import utcnow

from infra.local.cloudformation.checks import MAX_BODY_BYTES, needed_capability
from infra.local.cloudformation.moto_parts import ValidationError, exceptions, models, responses
from infra.local.cloudformation.resource import Resource
from infra.local.cloudformation.stack_map import StackFailed, StackMap
from infra.local.cloudformation.summary import summary
from infra.local.cloudformation.template import parse

_NO_CHANGES = "The submitted information didn't contain changes. Submit different information to create a change set."
_REVIEW = "REVIEW_IN_PROGRESS"
_CAN_UPDATE = frozenset({"CREATE_COMPLETE", "UPDATE_COMPLETE", "UPDATE_ROLLBACK_COMPLETE"})


class InsufficientCapabilities(exceptions.CloudFormationError):
    """The template makes roles and nobody said that it may."""

    code = "InsufficientCapabilitiesException"


class InvalidChangeSetStatus(exceptions.CloudFormationError):
    """The change set can't be executed."""

    code = "InvalidChangeSetStatus"


def teach_moto() -> None:
    """For the process of the server only: from here on stacks are deployed as this file says."""
    stack, change_set, backend, response = models.Stack, models.ChangeSet, models.CloudFormationBackend, responses.CloudFormationResponse
    stack.parse_template = staticmethod(parse)
    stack._create_resource_map = _new_map
    stack.create_resources = lambda made: _deploy(made, made.resource_map, "CREATE")
    stack.update = _update_stack
    change_set._parse_template = lambda made: setattr(made, "template_dict", parse(made.template))
    change_set.diff = _changes
    backend.create_change_set = _create_change_set
    backend.execute_change_set = _execute_change_set
    backend._resolve_update_parameters = _update_parameters
    responses.get_template_summary_response_from_template = summary
    response._validate_different_update = lambda *_: None  # it compares texts; `_update_stack` compares resources
    for operation in ("create_stack", "update_stack", "create_change_set"):
        setattr(response, operation, _checked(getattr(response, operation)))


def _new_map(stack: Any, template: Mapping[str, Any] | None = None, parameters: Mapping[str, str] | None = None) -> StackMap:
    """The map of a stack as it is, or as it would be with another template and other parameters; checked, and nothing made."""
    made = StackMap(
        stack.stack_id,
        stack.name,
        dict(stack.parameters if parameters is None else parameters),
        stack.tags,
        account_id=stack.account_id,
        region_name=stack.region_name,
        template=stack.template_dict if template is None else template,
        cross_stack_resources=stack.cross_stack_resources,
    )
    made.load()
    return made


def _empty_map(stack: Any) -> StackMap:
    return _new_map(stack, {}, {})


def _deploy(stack: Any, wanted: StackMap, what: str) -> None:
    """CREATE or UPDATE: `wanted` in place of the stack's map, or the stack's status says that it was taken back, and why."""
    before = _empty_map(stack) if what == "CREATE" else stack.resource_map
    stack.status = f"{what}_IN_PROGRESS"

    def tell(resource: Resource, status: str, reason: str) -> None:
        stack.events.append(
            models.Event(
                stack_id=stack.stack_id,
                stack_name=stack.name,
                logical_resource_id=resource.logical_resource_id,
                physical_resource_id=resource.physical_resource_id,
                resource_type=resource.TYPE,
                resource_status=status,
                resource_status_reason=reason or None,
                resource_properties=None,
            )
        )

    try:
        wanted.deploy(before, tell)
    except StackFailed as failed:
        taken_back = "ROLLBACK" if what == "CREATE" else "UPDATE_ROLLBACK"
        stack._add_stack_event(f"{taken_back}_IN_PROGRESS", resource_status_reason=str(failed))
        stack.resource_map = before
        if what == "CREATE":
            stack.output_map = models.OutputMap(before, {}, stack.stack_id)
        stack.status, stack.stack_status_reason = f"{taken_back}_COMPLETE", str(failed)
    else:
        stack.resource_map = wanted
        stack.template_dict, stack.parameters = wanted._template, wanted.input_parameters
        stack.description = stack.template_dict.get("Description")
        stack.output_map = stack._create_output_map()
        stack.status, stack.stack_status_reason = f"{what}_COMPLETE", None
        stack.last_updated_time = utcnow()
    stack._add_stack_event(stack.status)


def _update_stack(
    stack: Any, template: str, role_arn: str | None = None, parameters: Mapping[str, str] | None = None, tags: Any = None
) -> None:
    """UpdateStack: refused where nothing would change."""
    _refuse_unless_updatable(stack)
    if not _new_map(stack, parse(template), parameters).differences(stack.resource_map):
        raise ValidationError(message="No updates are to be performed.")
    _deploy_update(stack, template, parameters)
    stack.role_arn = role_arn
    stack.tags = stack.tags if tags is None else tags


def _deploy_update(stack: Any, template: str, parameters: Mapping[str, str] | None) -> None:
    stack._add_stack_event("UPDATE_IN_PROGRESS", resource_status_reason="User Initiated")
    _deploy(stack, _new_map(stack, parse(template), parameters), "UPDATE")
    if stack.status == "UPDATE_COMPLETE":
        stack.template = template


def _changes(change_set: Any) -> list[Any]:
    """What executing the change set would do, as DescribeChangeSet shows it."""
    stack = change_set.stack
    before = stack.resource_map if change_set.change_set_type == "UPDATE" else _empty_map(stack)
    shown = []
    for found in _new_map(stack, change_set.template_dict, change_set.parameters).differences(before):
        change = models.Change(found.action, found.logical_id, found.kind)
        change.physical_resource_id = found.physical_id or None
        change.replacement = str(found.replaces) if found.action == "Modify" else None
        shown.append(change)
    return shown


def _create_change_set(
    backend: Any, stack_name: str, change_set_name: str, template: str, parameters: dict[str, str], description: str, change_set_type: str,
    notification_arns: Any = None, tags: Any = None, role_arn: str | None = None,
) -> tuple[str, str]:  # fmt: skip
    """CreateChangeSet. Nothing is left of one that is refused; one without changes is there, and FAILED."""
    models.validate_create_change_set(change_set_name)
    stack = _stack_of_change_set(backend, stack_name, change_set_type, parameters, tags, role_arn)
    change_set = models.ChangeSet(
        change_set_type=change_set_type,
        change_set_id=models.generate_changeset_id(change_set_name, backend.region_name, backend.account_id),
        change_set_name=change_set_name,
        stack=stack,
        template=template,
        parameters=parameters,
        description=description,
        notification_arns=notification_arns,
        tags=tags,
        role_arn=role_arn,
    )
    if change_set.changes:
        change_set.status, change_set.execution_status = "CREATE_COMPLETE", "AVAILABLE"
    else:
        change_set.status, change_set.execution_status, change_set.status_reason = "FAILED", "UNAVAILABLE", _NO_CHANGES
    if stack.stack_id not in backend.stacks:
        backend.stacks[stack.stack_id] = stack
        stack._add_stack_event(_REVIEW, resource_status_reason="User Initiated")
    backend.change_sets[change_set.change_set_id] = change_set
    return change_set.change_set_id, stack.stack_id


def _stack_of_change_set(backend: Any, name: str, change_set_type: str, parameters: Any, tags: Any, role_arn: str | None) -> Any:
    """The stack it is for; CREATE: a new one, or one that has nothing but change sets."""
    found = next((stack for stack in backend.stacks.values() if name in (stack.name, stack.stack_id)), None)
    if change_set_type == "UPDATE":
        if found is None:
            raise ValidationError(name)
        _refuse_unless_updatable(found)
        return found
    if found is not None:
        if found.status != _REVIEW:
            raise exceptions.AlreadyExistsException(f"Stack [{name}] already exists and cannot be created again with a change set.")
        return found
    stack_id = models.generate_stack_id(name, backend.region_name, backend.account_id)
    stack = models.Stack(
        stack_id, name, {}, parameters, backend.account_id, backend.region_name, tags=tags, role_arn=role_arn, cross_stack_resources={}
    )
    stack.status = _REVIEW
    return stack


def _execute_change_set(backend: Any, change_set_name: str, stack_name: str | None = None) -> None:
    """ExecuteChangeSet. The differences are found again: the stack may have changed since."""
    change_set = backend.describe_change_set(change_set_name)
    stack = backend.stacks.get(change_set.stack_id)
    if stack is None:
        raise ValidationError(stack_name)
    if change_set.execution_status != "AVAILABLE":
        raise InvalidChangeSetStatus(
            f"ChangeSet [{change_set.change_set_id}] cannot be executed in its current status of [{change_set.status}]"
        )
    change_set.execution_status = "EXECUTE_COMPLETE"
    if change_set.change_set_type == "UPDATE":
        _deploy_update(stack, change_set.template, change_set.parameters)
        return
    stack._add_stack_event("CREATE_IN_PROGRESS", resource_status_reason="User Initiated")
    stack.template = change_set.template
    _deploy(stack, _new_map(stack, change_set.template_dict, change_set.parameters), "CREATE")


def _update_parameters(_: Any, instance: Any, incoming_params: list[dict[str, Any]]) -> dict[str, str]:
    """The parameters of an UpdateStack. moto knows a previous value only if it was given once, not if it is the default."""
    previous = instance.resource_map.resolved_parameters
    named = {parameter["ParameterKey"]: parameter for parameter in incoming_params}
    return {name: given["ParameterValue"] if "ParameterValue" in given else str(previous[name]) for name, given in named.items()}


def _refuse_unless_updatable(stack: Any) -> None:
    if stack.status not in _CAN_UPDATE:
        raise ValidationError(message=f"Stack:{stack.stack_id} is in {stack.status} state and can not be updated.")


def _checked(operation: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """An operation that refuses what AWS refuses and moto doesn't: a long template as text, and roles nobody asked for."""

    def checked(response: Any) -> Any:
        text = response._get_param("TemplateBody") or ""
        if len(text.encode()) > MAX_BODY_BYTES:
            raise ValidationError(
                message=f"1 validation error detected: Value at 'templateBody' failed to satisfy constraint: "
                f"Member must have length less than or equal to {MAX_BODY_BYTES}; give a TemplateURL"
            )
        url = response._get_param("TemplateURL")
        text = text or (response._get_stack_from_s3_url(url) if url else "")
        needed = needed_capability(parse(text)) if text else ()
        if needed and not set(needed) & set(response._get_param("Capabilities", [])):
            raise InsufficientCapabilities(f"Requires capabilities : [{', '.join(needed)}]")
        return operation(response)

    return checked
