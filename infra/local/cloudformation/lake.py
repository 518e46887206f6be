"""What `infra/aws/lake.yaml` says, for tests on a moto of their own that deploy no stack."""

from __future__ import annotations

from typing import Any

from infra import aws
from infra.local import artifacts
from infra.local.cloudformation.of_s3 import lifecycle_rule
from infra.local.cloudformation.stack_map import StackMap
from infra.local.cloudformation.template import parse
from infra.local.session import ACCOUNT, REGION


def lake_lifecycle() -> dict[str, Any]:
    """The lifecycle of the lake bucket as PutBucketLifecycleConfiguration takes it, with the parameters' defaults."""
    stack = StackMap("", "dmslake", artifacts.PARAMETERS, {}, REGION, ACCOUNT, parse(aws.LAKE.read_text("utf-8")), None)
    stack.load()
    rules = stack.resolved("CreatedLakeBucket")["LifecycleConfiguration"]["Rules"]
    return {"Rules": [lifecycle_rule(rule) for rule in rules]}
