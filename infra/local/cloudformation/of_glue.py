"""Glue: database, jobs, workflow and trigger."""

from __future__ import annotations

import inspect
import re
from collections.abc import Mapping
from datetime import datetime, timezone
from typing import Any, ClassVar

from moto.glue.exceptions import AlreadyExistsException
from moto.glue.utils import Action

from infra.local.cloudformation.resource import NotHandled, Properties, Resource, backend, only
from infra.local.schedule import ScheduleError, next_due

_DATABASE_INPUT = frozenset({"Name", "Description"})
_ACTION = frozenset({"JobName"})


class Database(Resource):
    """A database of the catalog."""

    TYPE = "AWS::Glue::Database"
    HANDLED = frozenset({"DatabaseInput"})
    WITHOUT_EFFECT: ClassVar[Mapping[str, str]] = {"CatalogId": "there is one account, and one catalog in it"}

    @classmethod
    def given_name(cls, properties: Properties) -> str | None:
        """It stands in DatabaseInput."""
        name: str | None = properties["DatabaseInput"].get("Name")
        return name

    def must_replace(self, properties: Properties) -> bool:
        """Another name is another database."""
        return self.given_name(self.properties) != self.given_name(properties)

    def create(self) -> None:
        """Makes the database."""
        backend("glue").create_database(self.name, self._input(self.properties))

    def update(self, properties: Properties) -> None:
        """Changes its description."""
        backend("glue").update_database(self.name, self._input(properties))

    def delete(self) -> None:
        """Deletes the database, and the tables' entries with it."""
        backend("glue").delete_database(self.name)

    def _input(self, properties: Properties) -> dict[str, Any]:
        return {**only(properties["DatabaseInput"], _DATABASE_INPUT, "DatabaseInput"), "Name": self.name}


class Job(Resource):
    """A job. What of it has an effect on a run here, and what is only shown, says `infra/local/embedded.py`."""

    TYPE = "AWS::Glue::Job"
    NAME = "Name"
    HANDLED = frozenset(
        {
            *("Name", "Description", "Role", "Command", "GlueVersion", "WorkerType", "NumberOfWorkers", "MaxCapacity", "MaxRetries"),
            *("Timeout", "ExecutionProperty", "DefaultArguments", "NonOverridableArguments", "SecurityConfiguration", "ExecutionClass"),
        }
    )

    def create(self) -> None:
        """Makes the job; moto would overwrite one of the same name."""
        if self.name in backend("glue").jobs:
            raise AlreadyExistsException(f"Job {self.name} already exists")
        self.update(self.properties)

    def update(self, properties: Properties) -> None:
        """Puts another definition in its place, which is what moto has for UpdateJob. Runs are kept elsewhere."""
        put_job(self.name, properties)

    def delete(self) -> None:
        """Deletes the job."""
        backend("glue").delete_job(self.name)


class Workflow(Resource):
    """A workflow: a name that holds triggers together."""

    TYPE = "AWS::Glue::Workflow"
    NAME = "Name"
    HANDLED = frozenset({"Name", "Description", "MaxConcurrentRuns", "DefaultRunProperties"})

    def create(self) -> None:
        """Makes the workflow."""
        given = self.properties
        backend("glue").create_workflow(
            self.name, given.get("DefaultRunProperties"), given.get("Description"), given.get("MaxConcurrentRuns"), {}
        )

    def update(self, properties: Properties) -> None:
        """Changes it."""
        backend("glue").update_workflow(
            self.name, properties.get("DefaultRunProperties"), properties.get("Description"), properties.get("MaxConcurrentRuns")
        )

    def delete(self) -> None:
        """Deletes the workflow; its triggers are resources of their own."""
        backend("glue").delete_workflow(self.name)


class Trigger(Resource):
    """A scheduled trigger; `dmslake up --schedule` acts on it."""

    TYPE = "AWS::Glue::Trigger"
    NAME = "Name"
    HANDLED = frozenset({"Name", "Description", "Type", "Schedule", "StartOnCreation", "WorkflowName", "Actions"})
    REPLACES = frozenset({"Type", "WorkflowName"})

    def create(self) -> None:
        """Makes the trigger, active if it is to start on creation."""
        self._put(self.properties)

    def update(self, properties: Properties) -> None:
        """Puts another in its place. UpdateTrigger leaves the state; so does this."""
        state = backend("glue").get_trigger(self.name).state
        self._put(properties)
        backend("glue").get_trigger(self.name).state = state

    def delete(self) -> None:
        """Deletes the trigger."""
        backend("glue").delete_trigger(self.name)

    def _put(self, properties: Properties) -> None:
        if properties["Type"] != "SCHEDULED":
            raise NotHandled(f"Type {properties['Type']} of a trigger is not handled by the embedded AWS, only SCHEDULED")
        if not properties["Schedule"].startswith("cron("):
            raise ScheduleError(f"{properties['Schedule']!r} is no schedule of a Glue trigger: expected cron(…)")
        next_due(properties["Schedule"], datetime.now(timezone.utc))  # Glue refuses what it can't read, moto doesn't
        backend("glue").create_trigger(
            self.name,
            workflow_name=properties.get("WorkflowName"),
            trigger_type=properties["Type"],
            schedule=properties["Schedule"],
            predicate=None,
            actions=[Action(dict(only(action, _ACTION, "Actions"))) for action in properties["Actions"]],
            description=properties.get("Description"),
            start_on_creation=properties.get("StartOnCreation", False),
            tags={},
            event_batching_condition=None,
        )


def put_job(name: str, properties: Properties) -> None:
    """Makes or overwrites a job by the properties of AWS::Glue::Job, which are the parameters of CreateJob."""
    given = {_snake(key): value for key, value in properties.items() if key != "Name"}
    for arguments in ("default_arguments", "non_overridable_arguments"):
        if arguments in given:  # CloudFormation makes strings of numbers
            given[arguments] = {key: _text(value) for key, value in given[arguments].items()}
    if "execution_property" in given:
        given["execution_property"] = dict(only(given["execution_property"], frozenset({"MaxConcurrentRuns"}), "ExecutionProperty"))
    parameters = inspect.signature(backend("glue").create_job).parameters
    backend("glue").create_job(**dict.fromkeys(parameters) | given | {"name": name})


def _snake(name: str) -> str:
    return re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower()


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
