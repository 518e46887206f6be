"""Buckets, state, names, outputs: the rules for what stays and how it is found."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from tests.infra.lake_stack import KEY, LakeStack
from tests.infra.rules import Rules, Template, put, remove

rules = Rules()
R = "Resources"
KEPT = ("CreatedRawBucket", "RawBucketPolicy", "CreatedLakeBucket", "LakeBucketPolicy", "StateTable", "Database")
CUSTOM = ("AWS::Lambda::", "Custom::", "AWS::CloudFormation::CustomResource", "AWS::CloudFormation::Macro")
NAMING = ("Name", "BucketName", "TableName", "RoleName", "ManagedPolicyName", "TopicName", "AlarmName", "DashboardName", "LogGroupName")


@rules("Who deletes a stack means its jobs, not its data", remove(f"{R}/StateTable/DeletionPolicy"))
def data_stays_when_the_stack_goes(stack: LakeStack) -> Iterator[str]:
    for name in KEPT:
        resource = stack.template[R][name]
        if (resource.get("DeletionPolicy", ""), resource.get("UpdateReplacePolicy")) not in (
            ("Retain", "Retain"),
            ("RetainExceptOnCreate", "Retain"),
        ):
            yield name


@rules(
    "What a first deployment that failed leaves behind takes its name, and no other can succeed",
    put(f"{R}/Database/DeletionPolicy", "Retain"),
)
def what_a_failed_creation_made_goes(stack: LakeStack) -> Iterator[str]:
    for name, resource in stack.template[R].items():
        # DynamoDB would not let go of a table that is protected.
        if resource.get("DeletionPolicy") == "Retain" and name != "StateTable":
            yield name


@rules(
    "Hidden files are versions; DMS advises against versioning for its target",
    remove(f"{R}/CreatedLakeBucket/Properties/VersioningConfiguration"),
)
def the_lake_has_versions_and_raw_has_none(stack: LakeStack) -> Iterator[str]:
    for name, bucket in stack.all_of("AWS::S3::Bucket").items():
        if (bucket.get("VersioningConfiguration") == {"Status": "Enabled"}) != (name == "CreatedLakeBucket"):
            yield name


@rules(
    "The rollback window is days, at least a week; counted versions would outlive or undercut it",
    put(f"{R}/CreatedLakeBucket/Properties/LifecycleConfiguration/Rules/0/NoncurrentVersionExpiration/NewerNoncurrentVersions", 3),
)
def superseded_data_is_kept_for_the_window(stack: LakeStack) -> Iterator[str]:
    days = stack.template["Parameters"]["RollbackDays"]
    if (days["Default"], days["MinValue"]) != (30, 7):
        yield "the parameter RollbackDays"
    for bucket in (each for name, each in stack.all_of("AWS::S3::Bucket").items() if name == "CreatedLakeBucket"):
        window, uploads, *more = bucket["LifecycleConfiguration"]["Rules"]
        expected = {"NoncurrentVersionExpiration": {"NoncurrentDays": stack.parameters["RollbackDays"]}, "ExpiredObjectDeleteMarker": True}
        if window != {"Id": "rollback-window", "Status": "Enabled", **expected}:
            yield str(window)
        if uploads["AbortIncompleteMultipartUpload"] != {"DaysAfterInitiation": 7}:
            yield str(uploads)
        # Whatever else there is must not reach the lake's folder: live files never expire.
        yield from (str(each) for each in more if not each.get("Prefix", "").startswith(stack.parameters["WorkPrefix"]))


@rules(
    "The state says what the lake is: it must come back from any mistake",
    put(f"{R}/StateTable/Properties/DeletionProtectionEnabled", False),
)
def the_state_table_is_protected(stack: LakeStack) -> Iterator[str]:
    table = stack.resolved.resource("StateTable")
    expected: dict[str, Any] = {
        "KeySchema": [{"AttributeName": "path", "KeyType": "HASH"}],
        "AttributeDefinitions": [{"AttributeName": "path", "AttributeType": "S"}],
        "BillingMode": "PAY_PER_REQUEST",
        "DeletionProtectionEnabled": True,
        "PointInTimeRecoverySpecification": {"PointInTimeRecoveryEnabled": True},
    }
    yield from (name for name, value in expected.items() if table.get(name) != value)


@rules("Data at rest is encrypted, by the given key if there is one", remove(f"{R}/JobErrors/Properties/KmsKeyId"))
def everything_is_encrypted(stack: LakeStack) -> Iterator[str]:
    key = stack.parameters["KmsKeyArn"] or None
    for name, bucket in stack.all_of("AWS::S3::Bucket").items():
        (rule,) = bucket["BucketEncryption"]["ServerSideEncryptionConfiguration"]
        by = rule["ServerSideEncryptionByDefault"]
        if (by["SSEAlgorithm"], by.get("KMSMasterKeyID")) != (("aws:kms", KEY) if key else ("AES256", None)):
            yield name
    table = stack.resolved.resource("StateTable")["SSESpecification"]
    if (table["SSEEnabled"], table.get("KMSMasterKeyId")) != (True, key):
        yield "StateTable"
    yield from (name for name, group in stack.all_of("AWS::Logs::LogGroup").items() if group.get("KmsKeyId") != key)
    yield from (name for name, topic in stack.all_of("AWS::SNS::Topic").items() if topic.get("KmsMasterKeyId") != key)
    for name, group in stack.all_of("AWS::Athena::WorkGroup").items():
        results = group["WorkGroupConfiguration"]["ResultConfiguration"]["EncryptionConfiguration"]
        if (results["EncryptionOption"], results.get("KmsKey")) != (("SSE_KMS", KEY) if key else ("SSE_S3", None)):
            yield name


@rules("What has to be run at deployment can fail there, and needs rights of its own", put(f"{R}/Workflow/Type", "Custom::Thing"))
def nothing_runs_at_deployment(stack: LakeStack) -> Iterator[str]:
    yield from (name for name, each in stack.template[R].items() if each["Type"].startswith(CUSTOM))
    yield from (name for name in ("Transform", "Mappings") if name in stack.template)


@rules("A second stack in the account must be possible", put(f"{R}/JobErrors/Properties/LogGroupName", "/dmslake/error"))
def no_name_is_fixed(stack: LakeStack) -> Iterator[str]:
    chosen = [str(stack.parameters[name]) for name in ("NewRawBucketName", "NewLakeBucketName", "StateTableName", "DatabaseName")]
    own = re.compile("|".join(["lake.stack", *map(re.escape, filter(None, chosen))]))
    for name, properties in stack.all_of("AWS::").items():
        names = [properties[key] for key in NAMING if key in properties] + [properties.get("DatabaseInput", {}).get("Name", "lake-stack")]
        free = stack.parameters["JobPrefix"] == "" and name in stack.jobs()  # asked for: that stack is the only one then
        yield from (f"{name}: {each}" for each in names if not own.search(each) and not free)


def _ungroup(template: Template) -> None:
    template["Metadata"]["AWS::CloudFormation::Interface"]["ParameterGroups"][0]["Parameters"].pop()


@rules("The console shows parameters by group, and what is not described is guessed", _ungroup)
def everything_is_described_and_grouped(stack: LakeStack) -> Iterator[str]:
    groups = stack.template["Metadata"]["AWS::CloudFormation::Interface"]["ParameterGroups"]
    grouped = [name for group in groups for name in group["Parameters"]]
    if sorted(grouped) != sorted(stack.template["Parameters"]):
        yield "parameters and groups differ"
    for kind in ("Parameters", "Outputs"):
        yield from (name for name, each in stack.template[kind].items() if not each.get("Description"))


@rules("What one needs next is one paste away", put("Outputs/Settings/Value", "export DMSLAKE_RAW=s3://x/"))
def the_outputs_can_be_pasted(stack: LakeStack) -> Iterator[str]:
    outputs = stack.resolved.outputs()
    words = dict(word.split("=", 1) for word in outputs["Settings"].removeprefix("export ").split())
    expected = {
        "AWS_REGION": "eu-central-1",
        "DMSLAKE_RAW": outputs["RawLocation"],
        "DMSLAKE_LAKE": outputs["LakeLocation"],
        "DMSLAKE_STATE_TABLE": outputs["StateTable"],
        "DMSLAKE_DATABASE": outputs["Database"],
        "DMSLAKE_JOB_PREFIX": outputs.get("JobPrefix", ""),
        "DMSLAKE_MAX_CONCURRENT_RUNS": str(stack.parameters["MaxConcurrentRuns"]),
    }
    if words != expected:
        yield str(words)
    if outputs["FirstRun"] != "aws glue start-job-run --region eu-central-1 --job-name Controller":
        yield outputs["FirstRun"]
