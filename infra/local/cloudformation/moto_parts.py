"""moto's CloudFormation, imported in a tenth of a second.

moto imports every service that has a resource type of its own, EC2 with its tables of instance types and API Gateway with its
validators among them: two seconds more for each start of the embedded AWS. None of those types is used here: the types of the
embedded AWS are those of `types.py`. For the time of the import the services below are modules without contents; afterwards
they are taken away again, so that a request to one of them finds the real service.
"""

from __future__ import annotations

import importlib
import sys
from types import ModuleType
from typing import Any

_NOT_USED = (
    *("apigateway", "autoscaling", "awslambda", "batch", "datapipeline", "ec2", "ecr", "ecs", "efs", "elb", "elbv2", "emr", "iot"),
    *("kinesis", "rds", "redshift", "route53", "sagemaker", "ssm", "stepfunctions"),
)
_PARTS = ("", ".models", ".models.core", ".utils")


class _Empty(ModuleType):
    """A module that has a class of any name, so that `from … import …` succeeds."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return type(name, (), {})


def _import_without(services: tuple[str, ...]) -> tuple[Any, Any, Any, Any]:
    names = [f"moto.{service}{part}" for service in services for part in _PARTS]
    absent = [name for name in names if name not in sys.modules]
    sys.modules.update({name: _Empty(name) for name in absent})
    try:
        wanted = ("models", "parsing", "responses", "exceptions")
        models, parsing, responses, exceptions = (importlib.import_module(f"moto.cloudformation.{module}") for module in wanted)
    finally:
        for name in absent:
            del sys.modules[name]
    return models, parsing, responses, exceptions


models, parsing, responses, exceptions = _import_without(_NOT_USED)
ValidationError = exceptions.ValidationError
