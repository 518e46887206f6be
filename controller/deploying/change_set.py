"""A change set as values: the parameters it is made with, and what it would do to the stack's resources. No requests here."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from glue_jobs.core.errors import UsageError

# What these hold is not in the template: a new one begins empty.
KEEPS_DATA = frozenset({"AWS::S3::Bucket", "AWS::DynamoDB::Table", "AWS::Glue::Database"})
# Parameters that say where data lies. The roles would follow another value; the data, and the tables' items, which name it, would not.
PLACES = ("LakeBucket", "LakePrefix", "RawBucket", "RawPrefix", "WorkPrefix")
_UNCHANGED = ("didn't contain changes", "No updates are to be performed")


@dataclass(frozen=True)
class Change:
    """What would happen to one resource. action: Add, Modify, Remove …; replacement: True, Conditional, False or ''."""

    action: str
    resource: str
    type: str
    replacement: str = ""
    physical: str = ""

    @property
    def parts(self) -> bool:
        """Whether the stack would part with, or might part with, a resource that holds data."""
        gone = self.action == "Remove" or self.replacement in ("True", "Conditional")
        return gone and self.type in KEEPS_DATA

    @property
    def warning(self) -> str:
        """What that means, for a person."""
        named = f"{self.resource} ({self.type.rpartition('::')[2]} {self.physical or 'of the stack'})"
        if self.action == "Remove":
            return f"{named} would leave the stack; the template keeps it and what is in it, but nothing of the stack would use it"
        might = "might" if self.replacement == "Conditional" else "would"
        return f"{named} {might} be replaced by a new, empty one; the template keeps the old one, but nothing of the stack would use it"


@dataclass(frozen=True)
class Move:
    """One of PLACES with another value than the stack has."""

    parameter: str
    before: str
    after: str

    @property
    def warning(self) -> str:
        """What that means, for a person."""
        change = f"{self.parameter} would be {self.after or 'nothing'} in place of {self.before or 'nothing'}"
        return f"{change}: what lies there stays there, and the jobs' roles would not reach it any more"


@dataclass(frozen=True)
class ChangeSet:
    """One change set of CloudFormation. kind: CREATE or UPDATE; brought_stack: the stack, under review, came with it."""

    id: str
    stack_id: str
    kind: str
    changes: tuple[Change, ...] = ()
    brought_stack: bool = False
    moves: tuple[Move, ...] = ()

    @property
    def parting(self) -> tuple[Change, ...]:
        """The changes that part with data."""
        return tuple(change for change in self.changes if change.parts)

    @property
    def leaving(self) -> tuple[tuple[str, str], ...]:
        """(name, warning) of each resource or parameter whose change would leave data behind."""
        resources = tuple((change.resource, change.warning) for change in self.parting)
        return resources + tuple((move.parameter, move.warning) for move in self.moves)


def read_change(entry: Mapping[str, Any]) -> Change:
    """A change from an entry of DescribeChangeSet's Changes."""
    found = entry["ResourceChange"]
    return Change(
        str(found["Action"]),
        str(found["LogicalResourceId"]),
        str(found["ResourceType"]),
        str(found.get("Replacement", "")),
        str(found.get("PhysicalResourceId", "")),
    )


def is_unchanged(reason: str) -> bool:
    """Whether a change set has failed only because there is nothing to change. CloudFormation has no code for it, only these words."""
    return any(words in reason for words in _UNCHANGED)


def read_given(texts: Sequence[str]) -> dict[str, str]:
    """Parameters from `Name=Value` texts; raises UsageError."""
    given: dict[str, str] = {}
    for text in texts:
        name, sign, value = text.partition("=")
        if not sign or not name.strip():
            raise UsageError(f"not a parameter: {text!r}", "bad-argument", "write it as --parameter Name=Value")
        given[name.strip()] = value
    return given


def find_moves(previous: Mapping[str, str], given: Mapping[str, str]) -> tuple[Move, ...]:
    """The places that a stack with the parameters `previous` would have elsewhere."""
    both = [name for name in PLACES if name in previous and name in given]
    return tuple(Move(name, previous[name], given[name]) for name in both if previous[name] != given[name])


def choose_parameters(
    declared: Sequence[str], previous: Collection[str], given: Mapping[str, str], filled: Mapping[str, str]
) -> list[dict[str, Any]]:
    """CreateChangeSet's Parameters: what deploy fills in, else what is given, else the stack's value, else (left out) the default.

    Raises UsageError for a given one that the template does not declare, or that deploy fills in itself.
    """
    for name in given:
        if name in filled:
            raise UsageError(
                f"the parameter {name} is filled in by deploy", "bad-argument", "leave it out; --artifacts says where files go"
            )
        if name not in declared:
            others = ", ".join(sorted(set(declared) - set(filled)))
            raise UsageError(f"the template has no parameter {name}", "unknown-parameter", f"it has: {others}")
    chosen: list[dict[str, Any]] = []
    for name in declared:
        if name in filled or name in given:
            chosen.append({"ParameterKey": name, "ParameterValue": filled.get(name, given.get(name))})
        elif name in previous:
            chosen.append({"ParameterKey": name, "UsePreviousValue": True})
    return chosen
