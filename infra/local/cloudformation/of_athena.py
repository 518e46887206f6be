"""Athena workgroups; no query runs here."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from infra.local.cloudformation.resource import NotHandled, Properties, Resource, backend


class WorkGroup(Resource):
    """A workgroup with its configuration."""

    TYPE = "AWS::Athena::WorkGroup"
    NAME = "Name"
    HANDLED = frozenset({"Name", "Description", "WorkGroupConfiguration"})
    WITHOUT_EFFECT: ClassVar[Mapping[str, str]] = {"RecursiveDeleteOption": "no query runs here, so a workgroup is always empty"}

    def create(self) -> None:
        """Makes the workgroup; moto says nothing when there is one of this name."""
        given = self.properties
        if backend("athena").create_work_group(self.name, dict(given["WorkGroupConfiguration"]), given.get("Description", ""), []) is None:
            raise NotHandled(f"WorkGroup {self.name} already exists")

    def update(self, properties: Properties) -> None:
        """Changes configuration and description."""
        group = backend("athena").work_groups[self.name]
        group.configuration = dict(properties["WorkGroupConfiguration"])
        group.description = properties.get("Description", "")

    def delete(self) -> None:
        """Deletes the workgroup."""
        backend("athena").delete_work_group(self.name)
