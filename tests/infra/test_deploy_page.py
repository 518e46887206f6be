"""What docs/deploy.md gives to paste: rules for a lake bucket of one's own, statements for a key of one's own."""

from __future__ import annotations

import fnmatch
import json
import re
from pathlib import Path
from typing import Any

import boto3
from moto import mock_aws

from glue_jobs.aws.buckets import abort_days, check_lake_bucket, noncurrent_days
from tests.infra.resolve import Resolved

PAGE = (Path(__file__).parents[2] / "docs/deploy.md").read_text("utf-8")
PROGRAM = {"ArtifactBucket": "artifacts", "ArtifactPrefix": "1/", "ControllerWheel": "dmslake-1-py3-none-any.whl"}


def block(name: str) -> Any:
    """The page's block of JSON with that name."""
    found = re.search(rf"^```json {name}\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    assert found, f"docs/deploy.md has no block `json {name}`"
    return json.loads(found[1])


def test_the_rules_for_a_lake_bucket_are_those_of_a_created_one() -> None:
    """The program is content with them, and finds the template's days."""
    created = Resolved.read("lake.yaml", **PROGRAM).resource("CreatedLakeBucket")["LifecycleConfiguration"]["Rules"]
    with mock_aws():
        s3 = boto3.client("s3", region_name="us-east-1", aws_access_key_id="test", aws_secret_access_key="test")
        s3.create_bucket(Bucket="my-lake")
        s3.put_bucket_versioning(Bucket="my-lake", VersioningConfiguration={"Status": "Enabled"})
        s3.put_bucket_lifecycle_configuration(Bucket="my-lake", LifecycleConfiguration=block("lifecycle"))
        assert check_lake_bucket(s3, "my-lake", "lake/") == []
        assert noncurrent_days(s3, "my-lake", "lake/") == created[0]["NoncurrentVersionExpiration"]["NoncurrentDays"]
        assert abort_days(s3, "my-lake", "lake/") == created[1]["AbortIncompleteMultipartUpload"]["DaysAfterInitiation"]


def test_the_key_policy_reaches_the_stacks_log_groups_and_whoever_publishes() -> None:
    stack = Resolved.read("lake.yaml", **PROGRAM)
    logs, alarms = block("key-policy")
    pattern = logs["Condition"]["ArnLike"]["kms:EncryptionContext:aws:logs:arn"].rpartition(":log-group:")[2]
    groups = [group["LogGroupName"] for group in stack.resources("AWS::Logs::LogGroup").values()]
    assert fnmatch.filter(groups, pattern) == groups
    allowed = [each for each in stack.resource("AlarmTopicPolicy")["PolicyDocument"]["Statement"] if each["Effect"] == "Allow"]
    assert sorted(alarms["Principal"]["Service"]) == sorted(each["Principal"]["Service"] for each in allowed)
