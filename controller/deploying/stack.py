"""One stack of CloudFormation: its state, a change set of it, and its way to the end of an operation."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from typing import Any

from botocore.exceptions import ClientError

from controller.deploying.change_set import ChangeSet, choose_parameters, find_moves, is_unchanged, read_change
from glue_jobs.aws.translate import error_code
from glue_jobs.core.errors import ConfigurationError, DmslakeError, RetryLater

REVIEW = "REVIEW_IN_PROGRESS"  # a stack that is nothing but a change set
_GOOD_ENDS = frozenset({"CREATE_COMPLETE", "UPDATE_COMPLETE"})
# What else a stack can be updated from.
_UPDATABLE = _GOOD_ENDS | {"UPDATE_ROLLBACK_COMPLETE", "IMPORT_COMPLETE", "IMPORT_ROLLBACK_COMPLETE"}
_STACK = "AWS::CloudFormation::Stack"
_FOLLOWS = "cancelled"  # in the reason of a resource that failed because another one did


@dataclass(frozen=True)
class Found:
    """A stack that is there. parameters, outputs: (name, value), in the order of the answer."""

    id: str
    status: str
    parameters: tuple[tuple[str, str], ...] = ()
    outputs: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class Event:
    """One event of a stack's operation."""

    id: str
    resource: str
    type: str
    status: str
    reason: str
    is_stack: bool

    @property
    def is_cause(self) -> bool:
        """Whether the operation failed because of this."""
        return self.status.endswith("_FAILED") and not self.is_stack and _FOLLOWS not in self.reason


@dataclass(frozen=True)
class Stack:
    """A stack by its name, there or not. pause: waits between two looks; say: takes a line for a person."""

    cloudformation: Any
    name: str
    pause: Callable[[], None]
    say: Callable[[str], None]

    def find(self, name_or_id: str = "") -> Found | None:
        """The stack as it is; None if there is none."""
        try:
            answer = self.cloudformation.describe_stacks(StackName=name_or_id or self.name)
        except ClientError as error:
            if error_code(error) == "ValidationError":  # CloudFormation's word for a stack that isn't there
                return None
            raise
        (stack,) = answer["Stacks"]
        return Found(
            stack["StackId"],
            stack["StackStatus"],
            tuple((entry["ParameterKey"], entry.get("ParameterValue", "")) for entry in stack.get("Parameters", ())),
            tuple((entry["OutputKey"], entry["OutputValue"]) for entry in stack.get("Outputs", ())),
        )

    def make_change_set(self, name: str, url: str, given: Mapping[str, str], filled: Mapping[str, str]) -> ChangeSet:
        """A change set that takes the stack to the template at `url`; without any changes if it is there already."""
        found = self.find()
        check_status(self.name, found)
        is_new = found is None or found.status == REVIEW
        declared = self.cloudformation.get_template_summary(TemplateURL=url)["Parameters"]
        names = [entry["ParameterKey"] for entry in declared]
        previous = {} if found is None or is_new else dict(found.parameters)
        kind = "CREATE" if is_new else "UPDATE"
        made = self.cloudformation.create_change_set(
            StackName=self.name,
            ChangeSetName=name,
            ChangeSetType=kind,
            TemplateURL=url,
            Parameters=choose_parameters(names, previous, given, filled),
            Capabilities=["CAPABILITY_IAM"],
        )
        change_set = ChangeSet(made["Id"], made["StackId"], kind, brought_stack=found is None, moves=find_moves(previous, given))
        try:
            return self._with_changes(change_set)
        except BaseException:
            self.discard(change_set)
            raise

    def _with_changes(self, change_set: ChangeSet) -> ChangeSet:
        """The same with what it would change; waits until CloudFormation knows it."""
        while True:
            answer = self._describe(change_set)
            status, reason = answer["Status"], str(answer.get("StatusReason") or "")
            if status == "FAILED" and is_unchanged(reason):
                return change_set
            if status == "FAILED":
                todo = "mend what the reason names; --parameter Name=Value sets a parameter"
                raise ConfigurationError(f"CloudFormation refuses the change set of {self.name}: {reason}", "change-set-failed", todo)
            if status == "CREATE_COMPLETE":
                break
            self.pause()
        entries = list(answer["Changes"])
        while answer.get("NextToken"):
            answer = self._describe(change_set, NextToken=answer["NextToken"])
            entries += answer["Changes"]
        changes = tuple(read_change(entry) for entry in entries if entry.get("Type", "Resource") == "Resource")
        return replace(change_set, changes=changes)

    def _describe(self, change_set: ChangeSet, **more: str) -> Any:
        return self.cloudformation.describe_change_set(ChangeSetName=change_set.id, StackName=change_set.stack_id, **more)

    def discard(self, change_set: ChangeSet) -> None:
        """Delete the change set, and the empty stack that came with it. One that was under review before is somebody else's."""
        self.cloudformation.delete_change_set(ChangeSetName=change_set.id, StackName=change_set.stack_id)
        if change_set.brought_stack:
            found = self.find(change_set.stack_id)
            if found is not None and found.status == REVIEW:
                self.cloudformation.delete_stack(StackName=change_set.stack_id)

    def execute(self, change_set: ChangeSet) -> Found:
        """Execute the change set and wait for the end; the stack as it is then. Raises DmslakeError with the first reason if it failed.

        The end is the stack's own event, because its status may still be that of the operation before.
        """
        seen = {event.id for event in self._fresh(change_set.stack_id, frozenset())}
        try:
            self.cloudformation.execute_change_set(ChangeSetName=change_set.id, StackName=change_set.stack_id)
        except ClientError:  # it was refused
            self.discard(change_set)
            raise
        causes: list[Event] = []
        while True:
            for event in reversed(self._fresh(change_set.stack_id, seen)):
                seen.add(event.id)
                self._tell(event)
                causes += [event] if event.is_cause else []
                if event.is_stack and not event.status.endswith("_IN_PROGRESS"):
                    return self._ended(change_set, event, causes)
            self.pause()

    def _ended(self, change_set: ChangeSet, event: Event, causes: list[Event]) -> Found:
        if event.status not in _GOOD_ENDS:
            raise stack_failed(self.name, event, causes)
        found = self.find(change_set.stack_id)
        if found is None:
            raise RetryLater(f"the stack {self.name} is gone: somebody deleted it meanwhile", "stack-gone", "run again")
        return found

    def _tell(self, event: Event) -> None:
        if event.status.endswith(("_COMPLETE", "_FAILED")):
            self.say(f"{event.resource}  {event.status}" + (f"  {event.reason}" if event.reason else ""))

    def _fresh(self, stack_id: str, seen: Collection[str]) -> list[Event]:
        """The events that were not seen yet, the newest first, as they come; no page is asked for behind one that was seen."""
        fresh: list[Event] = []
        for page in self.cloudformation.get_paginator("describe_stack_events").paginate(StackName=stack_id):
            events = [_read_event(entry, stack_id) for entry in page["StackEvents"]]
            fresh += [event for event in events if event.id not in seen]
            if any(event.id in seen for event in events):
                break
        return fresh


def _read_event(entry: Mapping[str, Any], stack_id: str) -> Event:
    is_stack = entry["ResourceType"] == _STACK and entry.get("PhysicalResourceId") == stack_id
    reason = str(entry.get("ResourceStatusReason") or "")
    return Event(entry["EventId"], entry["LogicalResourceId"], entry["ResourceType"], entry["ResourceStatus"], reason, is_stack)


def check_status(name: str, found: Found | None) -> None:
    """Refuse a stack that can't take a change set now."""
    if found is None or found.status == REVIEW or found.status in _UPDATABLE:
        return
    quoted, message = shlex.quote(name), f"the stack {name} can't be changed: it is {found.status}"
    if found.status.endswith("_IN_PROGRESS"):
        raise RetryLater(message, "stack-busy", "run again when its operation has ended")
    todo = {
        "ROLLBACK_COMPLETE": f"it was never complete: aws cloudformation delete-stack --stack-name {quoted}, then deploy again",
        "UPDATE_ROLLBACK_FAILED": f"aws cloudformation continue-update-rollback --stack-name {quoted}, then deploy again",
    }.get(found.status, f"see its events: aws cloudformation describe-stack-events --stack-name {quoted}")
    raise ConfigurationError(message, "stack-broken", todo)


def stack_failed(name: str, end: Event, causes: list[Event]) -> DmslakeError:
    """How an operation failed, by the first resource that did."""
    reasons = "; ".join(f"{event.resource} ({event.type}): {event.reason}" for event in causes[:3]) or end.reason or "no reason is given"
    todo = (
        f"mend what the reason names, then deploy again; all events: aws cloudformation describe-stack-events --stack-name {end.resource}"
    )
    if end.status == "ROLLBACK_COMPLETE":
        todo = f"mend what the reason names; aws cloudformation delete-stack --stack-name {shlex.quote(name)}; then deploy again"
    return DmslakeError(f"the stack {name} is {end.status}: {reasons}", "stack-failed", todo)
