"""The resource types that a template of the embedded AWS may have."""

from __future__ import annotations

from collections.abc import Mapping

from infra.local.cloudformation.of_athena import WorkGroup
from infra.local.cloudformation.of_dynamodb import Table
from infra.local.cloudformation.of_glue import Database, Job, Trigger, Workflow
from infra.local.cloudformation.of_iam import ManagedPolicy, Role
from infra.local.cloudformation.of_s3 import Bucket, BucketPolicy
from infra.local.cloudformation.of_watching import Alarm, Dashboard, LogGroup, Rule, Subscription, Topic, TopicPolicy
from infra.local.cloudformation.resource import Resource

_ALL: tuple[type[Resource], ...] = (
    *(Bucket, BucketPolicy, Table, Database, Job, Workflow, Trigger, Role, ManagedPolicy),
    *(LogGroup, Topic, Subscription, TopicPolicy, Rule, Alarm, Dashboard, WorkGroup),
)
TYPES: Mapping[str, type[Resource]] = {kind.TYPE: kind for kind in _ALL}
