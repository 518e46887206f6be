"""A whole installation as the template describes it, on a moto: buckets, state table, database, roles, jobs, trigger."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from typing import Any

import boto3

from controller.doctor.lifecycle import Days, mended
from glue_jobs.core.settings import Settings
from tests.infra.resolve import Resolved

ACCOUNT = "123456789012"
ROLES = ("ControllerRole", "LoadRole", "RollbackRole", "EraseRole")
ARTIFACTS = "artifact-bucket"
BUCKETS = {"CreatedRawBucket": "raw-bucket", "CreatedLakeBucket": "lake-bucket"}
INSTALLED = Settings(raw="s3://raw-bucket/dms/", lake="s3://lake-bucket/lake/", state_table="state", database="lake")


@lru_cache(maxsize=1)
def lake_stack() -> Resolved:
    """lake.yaml with the names of INSTALLED."""
    resolved = Resolved.read(
        "lake.yaml", ArtifactBucket=ARTIFACTS, ArtifactPrefix="v1/", ControllerWheel="dmslake-1-py3-none-any.whl",
        JobPrefix="",
    )  # fmt: skip
    attributes = {(role, "Arn"): f"arn:aws:iam::{ACCOUNT}:role/{role}" for role in ROLES}
    attributes |= {(made, "Arn"): f"arn:aws:s3:::{bucket}" for made, bucket in BUCKETS.items()}
    names = {"StateTable": INSTALLED.state_table, "Database": INSTALLED.database, "Controller": "Controller", **BUCKETS}
    return replace(resolved, names=names, attributes=attributes)


class Installation:
    """Clients of a moto at `url`, and hands to make and to spoil what a stack makes."""

    def __init__(self, url: str) -> None:
        session = boto3.Session(aws_access_key_id="testing", aws_secret_access_key="testing", region_name="us-east-1")
        self.s3, self.dynamodb, self.glue, self.iam, self.dms = (
            session.client(name, endpoint_url=url) for name in ("s3", "dynamodb", "glue", "iam", "dms")
        )

    def make(self) -> Installation:
        """All of it, in good health."""
        self.s3.create_bucket(Bucket=ARTIFACTS)
        for made, bucket in BUCKETS.items():
            properties = lake_stack().resource(made)
            self.s3.create_bucket(Bucket=bucket)
            self.s3.put_public_access_block(Bucket=bucket, PublicAccessBlockConfiguration=properties["PublicAccessBlockConfiguration"])
            self.s3.put_bucket_ownership_controls(Bucket=bucket, OwnershipControls=properties["OwnershipControls"])
        for policy in lake_stack().resources("AWS::S3::BucketPolicy").values():
            self.s3.put_bucket_policy(Bucket=policy["Bucket"], Policy=json.dumps(policy["PolicyDocument"]))
        self.s3.put_bucket_versioning(Bucket="lake-bucket", VersioningConfiguration={"Status": "Enabled"})
        self.rules("lake-bucket", *mended([], "lake/", Days(30)))
        self._make_table(lake_stack().resource("StateTable"))
        self.glue.create_database(DatabaseInput={"Name": INSTALLED.database})
        for role in ROLES:
            trust = lake_stack().resource(role)["AssumeRolePolicyDocument"]
            self.iam.create_role(RoleName=role, AssumeRolePolicyDocument=json.dumps(trust))
        for job in lake_stack().resources("AWS::Glue::Job").values():
            self.make_job(job)
        schedule = lake_stack().resource("Schedule")
        actions = [{"JobName": "Controller"}]
        self.glue.create_trigger(Name="hourly", Type="SCHEDULED", Schedule=schedule["Schedule"], Actions=actions, StartOnCreation=True)
        return self

    def rules(self, bucket: str, *rules: Mapping[str, Any]) -> None:
        """The lifecycle of a bucket."""
        self.s3.put_bucket_lifecycle_configuration(Bucket=bucket, LifecycleConfiguration={"Rules": list(rules)})

    def make_job(self, job: Mapping[str, Any], **changes: Any) -> None:
        """A job, in the place of one of its name; and what it takes from S3."""
        arguments = {name: str(value) for name, value in job["DefaultArguments"].items()}
        for file in (job["Command"]["ScriptLocation"], arguments["--extra-py-files"]):
            self.s3.put_object(Bucket=ARTIFACTS, Key=file.split("/", 3)[3], Body=b"x")
        self.glue.delete_job(JobName=job["Name"])
        self.glue.create_job(**{**job, "DefaultArguments": arguments, **changes})

    def _make_table(self, table: Mapping[str, Any]) -> None:
        request = {name: value for name, value in table.items() if name not in ("PointInTimeRecoverySpecification", "SSESpecification")}
        self.dynamodb.create_table(TableName=INSTALLED.state_table, **request)
        self.dynamodb.update_continuous_backups(
            TableName=INSTALLED.state_table, PointInTimeRecoverySpecification=table["PointInTimeRecoverySpecification"]
        )
