"""What a resource type of the embedded AWS is: a class that makes, changes and deletes one kind of moto resource."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from moto.backends import get_backend

from infra.local.cloudformation.moto_parts import exceptions
from infra.local.session import ACCOUNT, REGION

Properties = dict[str, Any]

PARTITION = "aws"
_OF_A_PARTITION = frozenset({"s3", "iam"})  # these services of moto are one for all regions


class NotHandled(Exception):
    """A part of a template that the embedded AWS would pass over in silence; the message names it."""


class Resource:
    """One resource of a stack. A subclass is a type; what it does with its properties stands in the three lists.

    `create`, `update` and `delete` act on moto's backends, not on the wire: a first request to each of eight services would
    cost a start of the embedded AWS half a second. They raise what moto raises; that becomes the reason of the stack's failure.
    """

    TYPE: ClassVar[str]
    HANDLED: ClassVar[frozenset[str]]  # properties that take effect here
    WITHOUT_EFFECT: ClassVar[Mapping[str, str]] = {}  # property → why nothing here needs it
    NAME: ClassVar[str] = ""  # the property that names the resource; '' if there is none
    REPLACES: ClassVar[frozenset[str]] = frozenset()  # properties, NAME aside, that can't be changed in place

    def __init__(self, logical_id: str, name: str, properties: Properties) -> None:
        self.logical_resource_id = logical_id
        self.name = name
        self.properties = properties

    @property
    def cf_resource_type(self) -> str:
        """`AWS::Service::Kind`; moto asks for it by this name."""
        return self.TYPE

    @property
    def physical_resource_id(self) -> str:
        """What Ref gives."""
        return self.name

    @classmethod
    def given_name(cls, properties: Properties) -> str | None:
        """The name that the template gives; None: one is made up."""
        return properties.get(cls.NAME)

    @classmethod
    def unhandled(cls, names: Mapping[str, Any]) -> list[str]:
        """Those of the property names that this type would pass over in silence."""
        return sorted(set(names) - cls.HANDLED - set(cls.WITHOUT_EFFECT))

    def must_replace(self, properties: Properties) -> bool:
        """Whether these properties want a new resource in place of this one."""
        fixed = self.REPLACES | {self.NAME}
        return any(self.properties.get(name) != properties.get(name) for name in fixed)

    def attributes(self) -> dict[str, str]:
        """What GetAtt gives."""
        return {}

    def get_cfn_attribute(self, name: str) -> str:
        """The attribute; moto asks for it by this name, and turns this error into CloudFormation's."""
        try:
            return self.attributes()[name]
        except KeyError:
            raise exceptions.UnformattedGetAttTemplateException from None

    def create(self) -> None:
        """Makes the resource as its properties say."""
        raise NotImplementedError

    def update(self, properties: Properties) -> None:
        """Changes the resource in place, to these properties."""
        raise NotImplementedError

    def delete(self) -> None:
        """Deletes the resource."""
        raise NotImplementedError


def backend(service: str) -> Any:
    """moto's backend of the one account and region of the embedded AWS."""
    by_name: Any = get_backend
    return by_name(service)[ACCOUNT][PARTITION if service in _OF_A_PARTITION else REGION]


def arn(service: str, resource: str) -> str:
    """The ARN of a resource of the region."""
    return f"arn:{PARTITION}:{service}:{REGION}:{ACCOUNT}:{resource}"


def only(value: Mapping[str, Any], known: frozenset[str], where: str) -> Mapping[str, Any]:
    """`value`, refused if it has a key that is not known."""
    unknown = sorted(set(value) - known)
    if unknown:
        raise NotHandled(f"{where}.{unknown[0]} is not handled by the embedded AWS")
    return value
