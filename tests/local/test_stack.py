"""CloudFormation of the embedded AWS: the lake's template is what stands there, and what would be passed over is refused by name."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from botocore.exceptions import ClientError

from infra.local import artifacts
from infra.local.embedded import EmbeddedAws, EmbeddedAwsError
from tests.infra.resolve import PSEUDO, Resolved

ROLES = ["CAPABILITY_IAM"]
SMALL: dict[str, Any] = {
    "Parameters": {
        "Folder": {"Type": "String", "Default": "a/", "AllowedPattern": "[a-z]*/"},
        "Days": {"Type": "Number", "Default": 7, "MinValue": 1, "MaxValue": 30},
        "WithLog": {"Type": "String", "Default": "no", "AllowedValues": ["yes", "no"]},
        "JobName": {"Type": "String", "Default": "SmallJob", "MaxLength": 20},
        "Schedule": {"Type": "String", "Default": "cron(0 * * * ? *)"},
    },
    "Conditions": {
        "HasLog": {"Fn::Equals": [{"Ref": "WithLog"}, "yes"]},
        "Week": {"Fn::Equals": [{"Ref": "Days"}, "7"]},
        "Never": {"Fn::And": [{"Condition": "HasLog"}, {"Fn::Not": [{"Condition": "HasLog"}]}]},
        "Ever": {"Fn::Or": [{"Condition": "Week"}, {"Fn::Not": [{"Condition": "Week"}]}]},
    },
    "Rules": {
        "LogsNeedTime": {
            "RuleCondition": {"Fn::Equals": [{"Ref": "WithLog"}, "yes"]},
            "Assertions": [{"Assert": {"Fn::Not": [{"Fn::Equals": [{"Ref": "Days"}, "1"]}]}, "AssertDescription": "a day is too short"}],
        }
    },
    "Resources": {
        "Job": {
            "Type": "AWS::Glue::Job",
            "Condition": "Ever",
            "Properties": {
                "Name": {"Ref": "JobName"},
                "Role": "arn:aws:iam::123456789012:role/r",
                "Command": {"Name": "pythonshell", "ScriptLocation": {"Fn::Sub": "s3://${Bucket}/${Folder}job.py"}},
                "DefaultArguments": {"--days": {"Ref": "Days"}, "--flag": True},
            },
        },
        "Nothing": {"Type": "AWS::Glue::Workflow", "Condition": "Never"},
        "Bucket": {
            "Type": "AWS::S3::Bucket",
            "DeletionPolicy": "Retain",
            "Properties": {"LifecycleConfiguration": {"Rules": [{"Id": "r", "Status": "Enabled", "ExpirationInDays": {"Ref": "Days"}}]}},
        },
        "Log": {"Type": "AWS::Logs::LogGroup", "Condition": "HasLog", "Properties": {"RetentionInDays": {"Ref": "Days"}}},
        "Trigger": {
            "Type": "AWS::Glue::Trigger",
            "DependsOn": "Job",
            "Properties": {
                "Type": "SCHEDULED",
                "Schedule": {"Ref": "Schedule"},
                "StartOnCreation": True,
                "Actions": [{"JobName": {"Ref": "Job"}}],
            },
        },
    },
    "Outputs": {"Bucket": {"Value": {"Ref": "Bucket"}}},
}


class Stack:
    """One stack on the session's server."""

    def __init__(self, aws: EmbeddedAws, name: str) -> None:
        self.aws, self.name = aws, name
        self.api = aws.client("cloudformation")

    def create(self, template: Mapping[str, Any], **parameters: str) -> None:
        self.api.create_stack(StackName=self.name, TemplateBody=json.dumps(template), Parameters=_given(parameters), Capabilities=ROLES)

    def update(self, template: Mapping[str, Any], **parameters: str) -> None:
        self.api.update_stack(StackName=self.name, TemplateBody=json.dumps(template), Parameters=_given(parameters), Capabilities=ROLES)

    def described(self) -> dict[str, Any]:
        described: dict[str, Any] = self.api.describe_stacks(StackName=self.name)["Stacks"][0]
        return described

    def resources(self) -> dict[str, str]:
        """Logical → physical id."""
        found = self.api.describe_stack_resources(StackName=self.name)["StackResources"]
        return {resource["LogicalResourceId"]: resource["PhysicalResourceId"] for resource in found}

    def change_set(self, kind: str, template: Mapping[str, Any], **parameters: str) -> dict[str, Any]:
        made = self.api.create_change_set(
            StackName=self.name,
            ChangeSetName=f"{self.name}-{kind.lower()}-{len(self.api.list_change_sets(StackName=self.name)['Summaries'])}",
            ChangeSetType=kind,
            TemplateBody=json.dumps(template),
            Parameters=_given(parameters),
            Capabilities=ROLES,
        )
        described: dict[str, Any] = self.api.describe_change_set(ChangeSetName=made["Id"], StackName=self.name)
        return described

    def execute(self, change_set: Mapping[str, Any]) -> None:
        self.api.execute_change_set(ChangeSetName=change_set["ChangeSetId"], StackName=self.name)

    def job(self, name: str = "SmallJob") -> dict[str, Any]:
        job: dict[str, Any] = self.aws.client("glue").get_job(JobName=name)["Job"]
        return job


@pytest.fixture
def stack(embedded_aws: EmbeddedAws, request: pytest.FixtureRequest) -> Iterator[Stack]:
    """A stack of the test's own, gone afterwards."""
    made = Stack(embedded_aws, request.node.originalname.replace("_", "-")[:60])
    yield made
    made.api.delete_stack(StackName=made.name)


def _given(parameters: Mapping[str, str]) -> list[dict[str, Any]]:
    previous = {"UsePreviousValue": True}
    return [{"ParameterKey": name, **({"ParameterValue": value} if value else previous)} for name, value in parameters.items()]


def _actions(change_set: Mapping[str, Any]) -> dict[str, tuple[str, str | None]]:
    changes = [change["ResourceChange"] for change in change_set["Changes"]]
    return {change["LogicalResourceId"]: (change["Action"], change.get("Replacement")) for change in changes}


def test_what_stands_there_is_what_the_template_says(embedded_aws: EmbeddedAws) -> None:
    """Versioning, lifecycle, encryption, key schema, recovery and each job, as another reader of the template resolves them."""
    aws, s3, stack = embedded_aws, embedded_aws.client("s3"), Stack(embedded_aws, "dmslake")
    given = {parameter["ParameterKey"]: parameter["ParameterValue"] for parameter in stack.described()["Parameters"]}
    template = Resolved.read("lake.yaml", **given)
    template.names = stack.resources()
    lake, table = template.resource("CreatedLakeBucket"), template.resource("StateTable")

    rules = s3.get_bucket_lifecycle_configuration(Bucket=aws.lake_bucket)["Rules"]
    days = [rule.get("NoncurrentVersionExpiration", {}).get("NoncurrentDays") for rule in rules]
    assert set(template.names) == set(template.resources())
    assert s3.get_bucket_versioning(Bucket=aws.lake_bucket)["Status"] == lake["VersioningConfiguration"]["Status"] == "Enabled"
    assert "Status" not in s3.get_bucket_versioning(Bucket=aws.raw_bucket)
    assert [rule["ID"] for rule in rules] == [rule["Id"] for rule in lake["LifecycleConfiguration"]["Rules"]]
    assert days == [int(given["RollbackDays"]), None]
    assert [rule.get("AbortIncompleteMultipartUpload", {}).get("DaysAfterInitiation") for rule in rules] == [None, 7]
    assert rules[0]["Expiration"] == {"ExpiredObjectDeleteMarker": True}
    block = s3.get_public_access_block(Bucket=aws.lake_bucket)["PublicAccessBlockConfiguration"]
    assert block == lake["PublicAccessBlockConfiguration"]
    ownership = s3.get_bucket_ownership_controls(Bucket=aws.raw_bucket)["OwnershipControls"]["Rules"]
    assert ownership == [{"ObjectOwnership": "BucketOwnerEnforced"}]
    (encryption,) = s3.get_bucket_encryption(Bucket=aws.lake_bucket)["ServerSideEncryptionConfiguration"]["Rules"]
    assert encryption["ApplyServerSideEncryptionByDefault"] == {"SSEAlgorithm": "AES256"}
    assert "TlsOnly" in s3.get_bucket_policy(Bucket=aws.lake_bucket)["Policy"]

    dynamodb = aws.client("dynamodb")
    described = dynamodb.describe_table(TableName=aws.state_table)["Table"]
    recovery = dynamodb.describe_continuous_backups(TableName=aws.state_table)["ContinuousBackupsDescription"]
    assert described["KeySchema"] == table["KeySchema"] == [{"AttributeName": "path", "KeyType": "HASH"}]
    assert described["BillingModeSummary"]["BillingMode"] == table["BillingMode"]
    assert (described["DeletionProtectionEnabled"], described["SSEDescription"]["Status"]) == (True, "ENABLED")
    assert recovery["PointInTimeRecoveryDescription"]["PointInTimeRecoveryStatus"] == "ENABLED"

    for declared in template.resources("AWS::Glue::Job").values():
        job = stack.job(declared["Name"])
        arguments = {name: str(value).replace(PSEUDO["AWS::StackName"], stack.name) for name, value in declared["DefaultArguments"].items()}
        assert job["DefaultArguments"] == arguments
        same = ("Command", "GlueVersion", "WorkerType", "NumberOfWorkers", "MaxCapacity", "MaxRetries", "Timeout", "ExecutionProperty")
        assert {name: job.get(name) for name in same} == {name: _number(declared.get(name)) for name in same}
    assert stack.job("LoadInitial")["DefaultArguments"]["--lake"] == aws.lake


def _number(value: Any) -> Any:
    """Parameters stand in the description as text, numbers too; a Glue version is a text."""
    if isinstance(value, dict):
        return {name: _number(entry) if name == "MaxConcurrentRuns" else entry for name, entry in value.items()}
    return int(value) if isinstance(value, str) and value.isdigit() else value


def test_every_resource_of_the_lake_is_changed_in_place_and_deleted(stack: Stack) -> None:
    """A second installation with all there is: other parameters change it, and its end leaves what is retained."""
    key = "arn:aws:kms:us-east-1:123456789012:key/1"
    first = {"NewLakeBucketName": "second-lake", "NewRawBucketName": "second-raw", "StateTableName": "second", "DatabaseName": "second"}
    last = {"ScheduleExpression": "cron(5 6 ? * MON *)", "LogRetentionDays": "7", "LagAlarmSeconds": "99", "RollbackDays": "8"}
    both = {**artifacts.PARAMETERS, **first, "WithAthena": "true"}
    made = {"StackName": stack.name, "TemplateURL": artifacts.TEMPLATE_URL, "Capabilities": ROLES}
    stack.api.create_stack(**made, Parameters=_given({**both, "AlarmEmail": "a@b.c"}))
    before = stack.resources()
    changed = {**both, **last, "KmsKeyArn": key, "AlarmEmail": "d@e.f", "LakePrefix": "other/"}
    stack.api.update_stack(**made, Parameters=_given(changed))
    after, aws = stack.resources(), stack.aws

    assert stack.described()["StackStatus"] == "UPDATE_COMPLETE", stack.described()
    assert {name for name in before if before[name] != after[name]} == {"AlarmMail"}
    rules = aws.client("s3").get_bucket_lifecycle_configuration(Bucket="second-lake")["Rules"]
    assert rules[0]["NoncurrentVersionExpiration"] == {"NoncurrentDays": 8}
    assert stack.job(f"{stack.name}-Apply")["DefaultArguments"]["--lake"] == "s3://second-lake/other/"
    topic = aws.client("sns").get_topic_attributes(TopicArn=after["AlarmTopic"])["Attributes"]
    assert (topic["KmsMasterKeyId"], "FailedRuns" in topic["Policy"]) == (key, True)
    mails = aws.client("sns").list_subscriptions_by_topic(TopicArn=after["AlarmTopic"])["Subscriptions"]
    assert [mail["Endpoint"] for mail in mails] == ["d@e.f"]
    (log,) = aws.client("logs").describe_log_groups(logGroupNamePrefix=after["JobOutput"])["logGroups"]
    assert (log["retentionInDays"], log["kmsKeyId"]) == (7, key)
    assert aws.client("glue").get_trigger(Name=after["Schedule"])["Trigger"]["Schedule"] == "cron(5 6 ? * MON *)"
    (alarm,) = aws.client("cloudwatch").describe_alarms(AlarmNames=[after["LagAlarm"]])["MetricAlarms"]
    assert alarm["Threshold"] == 99.0
    assert "other/" in json.dumps(aws.client("iam").get_role_policy(RoleName=after["EraseRole"], PolicyName="erase")["PolicyDocument"])
    policy = aws.client("iam").get_policy(PolicyArn=after["JobPolicy"])["Policy"]["DefaultVersionId"]
    assert (policy, len(aws.client("iam").list_policy_versions(PolicyArn=after["JobPolicy"])["Versions"])) == ("v2", 1)
    stack.api.delete_stack(StackName=stack.name)

    assert stack.name not in {job["Name"].split("-Load")[0] for job in aws.client("glue").get_jobs()["Jobs"]}
    assert not aws.client("cloudwatch").describe_alarms(AlarmNames=[after["LagAlarm"]])["MetricAlarms"]
    assert not [topic for topic in aws.client("sns").list_topics()["Topics"] if topic["TopicArn"] == after["AlarmTopic"]]
    assert not [role for role in aws.client("iam").list_roles()["Roles"] if role["RoleName"] == after["EraseRole"]]
    assert not aws.client("events").list_rules(NamePrefix=after["FailedRuns"])["Rules"]
    assert not aws.client("cloudwatch").list_dashboards(DashboardNamePrefix=after["Dashboard"])["DashboardEntries"]
    assert after["Athena"] not in {group["Name"] for group in aws.client("athena").list_work_groups()["WorkGroups"]}
    assert aws.client("dynamodb").describe_table(TableName="second")["Table"]["TableStatus"] == "ACTIVE"
    assert aws.client("s3").head_bucket(Bucket="second-lake")


def _with(**resource: Any) -> dict[str, Any]:
    return {**SMALL, "Resources": {**SMALL["Resources"], "Other": resource}}


REFUSED = {
    "Resource types not handled by the embedded AWS: AWS::SQS::Queue": (_with(Type="AWS::SQS::Queue"), {}),
    "Properties not handled by the embedded AWS: Other.AccelerateConfiguration": (
        _with(Type="AWS::S3::Bucket", Properties={"AccelerateConfiguration": {"AccelerationStatus": "Enabled"}}),
        {},
    ),
    "Properties not handled by the embedded AWS: Other.CreationPolicy": (_with(Type="AWS::S3::Bucket", CreationPolicy={}), {}),
    "Template sections not handled by the embedded AWS: Hooks": ({**SMALL, "Hooks": {}}, {}),
    "Functions not handled by the embedded AWS: Fn::Length": (
        _with(Type="AWS::Glue::Workflow", Properties={"Name": {"Fn::Length": []}}),
        {},
    ),
    "knows no Transform": ({**SMALL, "Transform": "AWS::Include"}, {}),
    "At least one Resources member": ({"Parameters": {}}, {}),
    r"Unresolved resource dependencies \[Nobody\]": (_with(Type="AWS::S3::BucketPolicy", Properties={"Bucket": {"Ref": "Nobody"}}), {}),
    "Circular dependency": (_with(Type="AWS::Glue::Workflow", DependsOn="More") | {}, {}),
    r"Parameters: \[Fodler\] do not exist": (SMALL, {"Fodler": "b/"}),
    "Parameter Id: type AWS::SSM::Parameter::Name is not handled": (
        {**SMALL, "Parameters": {**SMALL["Parameters"], "Id": {"Type": "AWS::SSM::Parameter::Name", "Default": "x"}}},
        {},
    ),
    "Parameter Folder must satisfy": (SMALL, {"Folder": "B"}),
    "Parameter WithLog must be one of": (SMALL, {"WithLog": "maybe"}),
    "Parameter Days must be a number": (SMALL, {"Days": "x"}),
    "Parameter Days must be at least 1": (SMALL, {"Days": "0"}),
    "Parameter Days must be at most 30": (SMALL, {"Days": "31"}),
    "Parameter JobName must have 0 to 20": (SMALL, {"JobName": "j" * 21}),
    "Rule LogsNeedTime: a day is too short": (SMALL, {"WithLog": "yes", "Days": "1"}),
}
REFUSED["Circular dependency"][0]["Resources"]["More"] = {"Type": "AWS::Glue::Workflow", "DependsOn": ["Other"]}


@pytest.mark.parametrize("way", ["stack", "change set"])
def test_what_would_be_passed_over_is_refused_by_name(stack: Stack, way: str) -> None:
    """Types, properties, sections and parameters that moto takes in silence; and nothing is left of the attempt."""
    for said, (template, parameters) in REFUSED.items():
        with pytest.raises(ClientError, match=said):
            stack.change_set("CREATE", template, **parameters) if way == "change set" else stack.create(template, **parameters)
        with pytest.raises(ClientError, match="does not exist"):
            stack.described()


def test_what_aws_asks_for_is_asked_for(stack: Stack) -> None:
    """Roles need a capability, a named role a stronger one; a long template comes by URL; text that is no template is refused."""
    role: dict[str, Any] = {
        "Type": "AWS::IAM::Role",
        "Properties": {"AssumeRolePolicyDocument": {"Version": "2012-10-17", "Statement": []}},
    }
    plain = json.dumps({"Resources": {"Role": role}})
    named = json.dumps({"Resources": {"Role": {**role, "Properties": {**role["Properties"], "RoleName": "r"}}}})

    for body, capabilities in ((plain, []), (named, ROLES)):
        with pytest.raises(ClientError, match="InsufficientCapabilities"):
            stack.api.create_stack(StackName=stack.name, TemplateBody=body, Capabilities=capabilities)
    for body, said in ((json.dumps({**SMALL, "Description": "d" * 52_000}), "TemplateURL"), ("{: :", "Template format error")):
        with pytest.raises(ClientError, match=said):
            stack.api.create_stack(StackName=stack.name, TemplateBody=body, Capabilities=ROLES)
    yaml = (
        "Resources:\n  W:\n    Type: AWS::Glue::Workflow\n    Properties:\n      Description: 2012-10-17\nOutputs:\n  N: {Value: !Ref W}\n"
    )
    summary = stack.api.get_template_summary(TemplateURL=artifacts.TEMPLATE_URL)
    defaults = {parameter["ParameterKey"]: parameter.get("DefaultValue") for parameter in summary["Parameters"]}
    assert (defaults["RollbackDays"], defaults["RawPrefix"], defaults["ArtifactBucket"]) == ("30", "dms/", None)
    assert summary["Capabilities"] == ROLES
    stack.api.create_stack(StackName=stack.name, TemplateBody=yaml)
    assert stack.described()["Outputs"][0]["OutputValue"] == stack.resources()["W"]


def test_a_stack_that_fails_is_taken_back_and_says_why(stack: Stack) -> None:
    """A nested property nobody handles, a schedule that is none, a name that is taken: no job is left, the bucket is retained."""
    bucket = {
        "Type": "AWS::S3::Bucket",
        "Properties": {"LifecycleConfiguration": {"Rules": [{"Id": "r", "Status": "Enabled", "TagFilters": []}]}},
    }
    other_type = json.loads(json.dumps(SMALL).replace("SCHEDULED", "EVENT"))
    failures: list[tuple[dict[str, Any], dict[str, str], str]] = [
        (_with(**bucket), {}, "TagFilters is not handled"),
        (SMALL, {"Schedule": "rate(5 minutes)"}, "no schedule of a Glue trigger"),
        (SMALL, {"Schedule": "cron(61 * * * ? *)"}, "Invalid minute"),
        (SMALL, {"JobName": "LoadInitial"}, "already exists"),
        (other_type, {}, "only SCHEDULED"),
        (_with(Type="AWS::CloudWatch::Dashboard", Properties={"DashboardBody": "{"}), {}, "JSONDecodeError"),
        (_with(Type="AWS::Athena::WorkGroup", Properties={"Name": "primary", "WorkGroupConfiguration": {}}), {}, "already exists"),
    ]
    for template, parameters, reason in failures:
        stack.create(template, **parameters)
        described = stack.described()
        events = stack.api.describe_stack_events(StackName=stack.name)["StackEvents"]

        assert described["StackStatus"] == "ROLLBACK_COMPLETE"
        assert reason in described["StackStatusReason"]
        (failed,) = [event for event in events if event["ResourceStatus"] == "CREATE_FAILED"]
        assert reason in failed["ResourceStatusReason"]
        assert "SmallJob" not in {job["Name"] for job in stack.aws.client("glue").get_jobs()["Jobs"]}
        assert "Outputs" not in described
        with pytest.raises(ClientError, match="ROLLBACK_COMPLETE state and can not be updated"):
            stack.update(SMALL)
        stack.api.delete_stack(StackName=stack.name)


def test_a_change_set_shows_and_does_what_parameters_change(stack: Stack) -> None:
    """Also where a parameter stands inside Fn::Sub or a condition; previous values stay, a new name is a new resource."""
    created = stack.change_set("CREATE", SMALL)
    assert (created["Status"], stack.described()["StackStatus"]) == ("CREATE_COMPLETE", "REVIEW_IN_PROGRESS")
    assert _actions(created) == dict.fromkeys(("Bucket", "Job", "Trigger"), ("Add", None))
    stack.execute(created)
    bucket = stack.described()["Outputs"][0]["OutputValue"]
    assert stack.job()["Command"]["ScriptLocation"] == f"s3://{bucket}/a/job.py"
    assert stack.job()["DefaultArguments"] == {"--days": "7", "--flag": "true"}
    with pytest.raises(ClientError, match="InvalidChangeSetStatus"):
        stack.execute(created)
    with pytest.raises(ClientError, match="already exists"):
        stack.change_set("CREATE", SMALL)

    moved = stack.change_set("UPDATE", SMALL, Folder="b/", WithLog="yes")
    assert _actions(moved) == {"Job": ("Modify", "False"), "Log": ("Add", None)}
    assert stack.job()["Command"]["ScriptLocation"] == f"s3://{bucket}/a/job.py"
    stack.execute(moved)
    log = stack.resources()["Log"]
    assert stack.job()["Command"]["ScriptLocation"] == f"s3://{bucket}/b/job.py"
    same = stack.change_set("UPDATE", SMALL, Folder="", WithLog="")
    assert (same["Status"], same["ExecutionStatus"]) == ("FAILED", "UNAVAILABLE")
    assert "didn't contain changes" in same["StatusReason"]

    renamed = stack.change_set("UPDATE", SMALL, Folder="", WithLog="no", JobName="Renamed")
    assert _actions(renamed) == {"Job": ("Modify", "True"), "Trigger": ("Modify", "False"), "Log": ("Remove", None)}
    stack.execute(renamed)
    assert stack.job("Renamed")["Command"]["ScriptLocation"] == f"s3://{bucket}/b/job.py"
    assert not stack.aws.client("logs").describe_log_groups(logGroupNamePrefix=log)["logGroups"]
    assert "SmallJob" not in {job["Name"] for job in stack.aws.client("glue").get_jobs()["Jobs"]}


def test_an_update_that_fails_changes_nothing(stack: Stack) -> None:
    """What was changed before the failure is changed back, what was made is deleted; an update without a change is refused."""
    stack.create(SMALL)
    before, resources = stack.job(), stack.resources()
    for parameters in ({"Days": "9", "Schedule": "cron(x)", "WithLog": "yes"}, {"JobName": "LoadInitial"}):
        stack.update(SMALL, **parameters)

        assert stack.described()["StackStatus"] == "UPDATE_ROLLBACK_COMPLETE"
        assert stack.job()["DefaultArguments"] == before["DefaultArguments"]
        assert stack.resources() == resources
        rules = stack.aws.client("s3").get_bucket_lifecycle_configuration(Bucket=resources["Bucket"])["Rules"]
        assert rules[0]["Expiration"] == {"Days": 7}
    with pytest.raises(ClientError, match="No updates are to be performed"):
        stack.update(SMALL, Days="7")
    stack.update(SMALL, Days="8", Folder="")
    assert stack.job()["DefaultArguments"]["--days"] == "8"


def test_services_that_are_left_out_of_the_import_are_there(embedded_aws: EmbeddedAws) -> None:
    """They are empty modules only while moto's CloudFormation is imported."""
    assert embedded_aws.client("kinesis").list_streams()["StreamNames"] == []


def test_a_start_with_a_stack_that_fails_is_told() -> None:
    """The reason stands in the error, and no server is left."""
    aws = EmbeddedAws(parameters={"ScheduleExpression": "cron(0 0 31)"})

    with pytest.raises(EmbeddedAwsError, match=r"ROLLBACK_COMPLETE: .*6 required"):
        aws.start()
    with pytest.raises(EmbeddedAwsError, match="not started"):
        _ = aws.work_folder
