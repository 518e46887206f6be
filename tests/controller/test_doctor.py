"""`dmslake doctor` against a moto behind a port, on which the template's installation stands: in health, spoiled, mended, hidden."""

from __future__ import annotations

import json
import urllib.request
from collections.abc import Callable
from typing import Any

import pytest

from controller.cli import main
from controller.doctor.examine import _can_be_read
from glue_jobs.aws.attributes import typed_item
from infra.local.embedded import EmbeddedAws
from tests.controller.aws_lines import request_of, run_lines
from tests.controller.installation import ARTIFACTS, INSTALLED, Installation, lake_stack
from tests.controller.world import CREDENTIALS, as_json, item_of, table_path

Doctor = Callable[..., tuple[int, list[dict[str, str]]]]
NAMES = ("AWS_PROFILE", "AWS_SESSION_TOKEN", "DMSLAKE_RUNNER", "DMSLAKE_JOB_PREFIX")
NOT_IN_MOTO = ("update-job", "modify-endpoint", "modify-replication-task")


def post(url: str, path: str, body: bytes = b"") -> None:
    urllib.request.urlopen(
        urllib.request.Request(f"{url}/moto-api/{path}", body, {"Content-Type": "text/plain"}, method="POST"), timeout=10
    ).close()


@pytest.fixture(scope="module")
def installation(moto_url: str) -> Installation:
    post(moto_url, "reset")
    return Installation(moto_url).make()


@pytest.fixture
def shell(moto_url: str, monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """A person's environment: credentials, endpoint, and the settings of the installation."""
    settings = {f"DMSLAKE_{name.upper()}": getattr(INSTALLED, name) for name in ("raw", "lake", "state_table", "database")}
    for name in NAMES:
        monkeypatch.delenv(name, raising=False)
    for name, value in {**CREDENTIALS, **settings, "AWS_ENDPOINT_URL": moto_url, "AWS_PAGER": ""}.items():
        monkeypatch.setenv(name, value)
    return monkeypatch


@pytest.fixture
def doctor(shell: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Doctor:
    """Runs the command: its exit code, and what it found beside what is fine."""

    def run(*words: str) -> tuple[int, list[dict[str, str]]]:
        capsys.readouterr()
        code = main(["doctor", "--quiet", "--output", "json", *words])
        return code, as_json(capsys.readouterr().out)["findings"]

    return run


def named(findings: list[dict[str, str]]) -> set[tuple[str, str, str]]:
    return {(finding["level"], finding["check"], finding["where"]) for finding in findings}


def test_a_stack_of_the_template_is_fine(installation: Installation, doctor: Doctor, capsys: pytest.CaptureFixture[str]) -> None:
    """Nothing blocks, nothing warns; for people, every check has its line."""
    assert doctor() == (0, [])

    assert main(["doctor"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert {line.split()[0] for line in lines[1:-2]} == {"fine"}
    assert lines[-1] == "0 finding(s) block, 0 warn"


@pytest.mark.parametrize(
    ("name", "value", "right"),
    [
        ("STATE_TABLE", "another", INSTALLED.state_table), ("DATABASE", "another", INSTALLED.database),
        ("RAW", "s3://another/dms/", INSTALLED.raw), ("LAKE", "s3://another/", INSTALLED.lake),
    ],
)  # fmt: skip
def test_a_shell_that_names_another_place_than_the_jobs(
    installation: Installation, doctor: Doctor, shell: pytest.MonkeyPatch, name: str, value: str, right: str
) -> None:
    """That is all that is said: no line makes the place, on which nobody works."""
    shell.setenv(f"DMSLAKE_{name}", value)

    code, findings = doctor()

    assert (code, named(findings)) == (3, {("blocks", "job-arguments", f"--{name.lower().replace('_', '-')}")})
    assert [finding["fix"] for finding in findings] == [f"export DMSLAKE_{name}={right}"]


def test_the_embedded_aws_is_in_health(doctor: Doctor, shell: pytest.MonkeyPatch) -> None:
    """The stack that `dmslake up` makes, for jobs of Glue and for jobs on this machine: nothing blocks.

    On a server of its own: on the one of all tests stand tables that are blocked, and items that can't be read.
    """
    with EmbeddedAws() as aws:
        for name, value in aws.environment().items():
            shell.setenv(name, value)

        assert doctor()[0] == 0
        assert doctor("--runner", "local") == (0, [])


def test_what_is_wrong_is_found_and_mended_by_its_line(installation: Installation, doctor: Doctor, shell: pytest.MonkeyPatch) -> None:
    """What is spoilt, all at once, and what is not there at all, by other settings: found, and no longer after their lines were run."""
    spoil(installation)
    code, spoilt = doctor()
    assert (code, named(spoilt)) == (3, {*MENDED, *LEFT})
    with shell.context() as elsewhere:
        for name, value in NOT_THERE.items():
            elsewhere.setenv(f"DMSLAKE_{name}", value)
        code, missing = doctor()
        assert (code, named(missing)) == (3, MISSING)
        assert "export DMSLAKE_JOB_PREFIX=''" in [finding["fix"] for finding in missing]

        lines = dict.fromkeys(finding["fix"] for finding in (*spoilt, *missing) if finding["fix"].startswith("aws "))
        run_lines(*(line for line in lines if line.split()[2] not in NOT_IN_MOTO))
        assert {check for _, check, _ in named(doctor()[1])} == MADE_IN_HASTE
    for line in lines:
        if line.split()[2] in NOT_IN_MOTO:
            assert request_of(line)

    assert named(doctor()[1]) == LEFT
    rules = installation.s3.get_bucket_lifecycle_configuration(Bucket="lake-bucket")["Rules"]
    assert [rule["ID"] for rule in rules] == ["logs", "dmslake lake/"]
    assert all("Prefix" not in rule for rule in rules)


# What the lines mend, and what moto can't or a person must.
MENDED = {
    ("warns", "raw-versioning", "s3://raw-bucket"),
    ("blocks", "lake-versioning", "s3://lake-bucket"),
    ("blocks", "lake-lifecycle", "s3://lake-bucket/lake/"),
    ("warns", "lake-lifecycle", "s3://lake-bucket/lake/"),
    ("warns", "lake-public", "s3://lake-bucket"),
    ("warns", "lake-ownership", "s3://lake-bucket"),
    ("warns", "lake-policy", "s3://lake-bucket"),
    ("warns", "raw-policy", "s3://raw-bucket"),
    ("warns", "state-table-protection", "state"),
    ("warns", "state-table-backups", "state"),
    ("warns", "state-table-billing", "state"),
    ("blocks", "role", "role EraseRole"),
    ("blocks", "role-trust", "role LoadRole"),
    ("warns", "schedule", "trigger hourly"),
}
LEFT = {
    ("warns", "raw-lifecycle", "s3://raw-bucket/dms/"),
    ("warns", "raw-public", "s3://raw-bucket"),
    ("warns", "item", "raw-bucket/dms/shop/odd/"),
    ("warns", "table-blocked", "raw-bucket/dms/shop/stores/"),
    ("warns", "catalog", "lake.shop_orders"),
    ("blocks", "job-version", "job LoadInitial"),
    ("warns", "job-retries", "job LoadInitial"),
    ("warns", "job-concurrency", "job LoadInitial"),
    ("blocks", "job-arguments", "job LoadInitial"),
    ("blocks", "job-kind", "job Controller"),
    ("warns", "job-files", "job Apply"),
    ("warns", "jobs", "job Rollback"),
    ("blocks", "dms-endpoint", "DMS endpoint raw"),
    ("warns", "dms-endpoint", "DMS endpoint raw"),
    ("warns", "dms-task", "DMS task shop"),
    ("warns", "dms-task", "DMS"),  # serverless replications, of which moto knows nothing
}


NOT_THERE = {"RAW": "s3://no-raw/dms/sales_*", "LAKE": "s3://no-lake/", "STATE_TABLE": "none", "DATABASE": "none", "JOB_PREFIX": "your-"}
MISSING = {
    ("blocks", "raw-bucket", "s3://no-raw"),
    ("blocks", "lake-bucket", "s3://no-lake"),
    ("blocks", "state-table", "none"),
    ("warns", "database", "none"),
    ("blocks", "jobs", "Glue"),
}
# What buckets and a table lack that were made by one line each.
MADE_IN_HASTE = {
    "raw-public", "raw-policy", "raw-ownership", "lake-public", "lake-policy", "lake-ownership", "lake-versioning", "lake-lifecycle",
    "state-table-backups", "jobs",
}  # fmt: skip


def spoil(made: Installation) -> None:
    """Everything that can be wrong at the same time."""
    spoil_buckets(made.s3)
    made.dynamodb.update_table(TableName="state", DeletionProtectionEnabled=False)
    throughput = {"ReadCapacityUnits": 1, "WriteCapacityUnits": 1}
    made.dynamodb.update_table(TableName="state", BillingMode="PROVISIONED", ProvisionedThroughput=throughput)
    made.dynamodb.update_continuous_backups(TableName="state", PointInTimeRecoverySpecification={"PointInTimeRecoveryEnabled": False})
    spoil_jobs(made)
    spoil_items(made)
    made.dms.create_endpoint(
        EndpointIdentifier="raw", EndpointType="target", EngineName="s3",
        S3Settings={
            "BucketName": "raw-bucket", "BucketFolder": "dms", "CdcPath": "changes", "ServiceAccessRoleArn": "arn:aws:iam::1:role/dms",
        },
    )  # fmt: skip
    (endpoint,) = made.dms.describe_endpoints(Filters=[])["Endpoints"]
    made.dms.create_replication_task(
        ReplicationTaskIdentifier="shop", SourceEndpointArn="arn:aws:dms:source", TargetEndpointArn=endpoint["EndpointArn"],
        ReplicationInstanceArn="arn:aws:dms:instance", MigrationType="full-load", TableMappings='{"rules": []}',
    )  # fmt: skip


def spoil_buckets(s3: Any) -> None:
    s3.put_bucket_versioning(Bucket="raw-bucket", VersioningConfiguration={"Status": "Enabled"})
    expires = {"ID": "expires", "Status": "Enabled", "Filter": {"Prefix": ""}, "Expiration": {"Days": 5}}
    s3.put_bucket_lifecycle_configuration(Bucket="raw-bucket", LifecycleConfiguration={"Rules": [expires]})
    everybody = {"Effect": "Allow", "Principal": "*", "Action": "s3:GetObject", "Resource": "arn:aws:s3:::raw-bucket/*"}
    s3.put_bucket_policy(Bucket="raw-bucket", Policy=json.dumps({"Version": "2012-10-17", "Statement": [everybody]}))
    s3.put_bucket_versioning(Bucket="lake-bucket", VersioningConfiguration={"Status": "Suspended"})
    harm = {
        "ID": "harm", "Status": "Enabled", "Prefix": "", "Expiration": {"Days": 90},
        "NoncurrentVersionExpiration": {"NoncurrentDays": 3, "NewerNoncurrentVersions": 5},
        "AbortIncompleteMultipartUpload": {"DaysAfterInitiation": 1},
    }  # fmt: skip
    logs = {"ID": "logs", "Status": "Enabled", "Prefix": "logs/", "Expiration": {"Days": 7}}
    s3.put_bucket_lifecycle_configuration(Bucket="lake-bucket", LifecycleConfiguration={"Rules": [harm, logs]})
    s3.delete_public_access_block(Bucket="lake-bucket")
    s3.put_bucket_ownership_controls(Bucket="lake-bucket", OwnershipControls={"Rules": [{"ObjectOwnership": "ObjectWriter"}]})
    denied = {"Effect": "Deny", "Principal": "*", "Action": "s3:DeleteObjectVersion", "Resource": "arn:aws:s3:::lake-bucket/*"}
    s3.put_bucket_policy(Bucket="lake-bucket", Policy=json.dumps({"Version": "2012-10-17", "Statement": [denied]}))


def spoil_jobs(made: Installation) -> None:
    stack = lake_stack()
    load = stack.resource("LoadInitial")
    load["DefaultArguments"]["--lake"] = "s3://lake-bucket/other/"
    made.make_job(load, GlueVersion="4.0", MaxRetries=2, ExecutionProperty={"MaxConcurrentRuns": 1})
    controller = stack.resource("Controller")
    made.make_job(controller, Command={**controller["Command"], "Name": "glueetl", "PythonVersion": "3"})
    made.glue.delete_job(JobName="Rollback")
    made.s3.delete_object(Bucket=ARTIFACTS, Key="v1/glue_jobs/apply.py")
    made.iam.delete_role(RoleName="EraseRole")
    other = {
        "Version": "2012-10-17",
        "Statement": {"Effect": "Allow", "Principal": {"Service": "ec2.amazonaws.com"}, "Action": "sts:AssumeRole"},
    }
    made.iam.update_assume_role_policy(RoleName="LoadRole", PolicyDocument=json.dumps(other))
    made.glue.stop_trigger(Name="hourly")


def spoil_items(made: Installation) -> None:
    block = json.dumps({"code": "type-changed", "message": "id was int", "todo": "reload it", "signature": ""})
    items = [
        item_of(table_path("odd"), ActiveFlag="perhaps"),
        item_of(table_path("stores"), Blocked=block),
        item_of(table_path("orders"), Head="0000000001-000001-0123abcd", Fence=1),
    ]
    for item in items:
        made.dynamodb.put_item(TableName="state", Item=typed_item(item))
    place = {"Name": "shop_orders", "StorageDescriptor": {"Location": "s3://elsewhere/orders/"}}
    made.glue.create_table(DatabaseName="lake", TableInput=place)


def test_nothing_that_may_be_looked_at(installation: Installation, doctor: Doctor, shell: pytest.MonkeyPatch, moto_url: str) -> None:
    """Credentials that may do nothing: each look is a warning that names the permission, and no error."""
    installation.iam.create_user(UserName="nobody")
    key = installation.iam.create_access_key(UserName="nobody")["AccessKey"]
    shell.setenv("AWS_ACCESS_KEY_ID", key["AccessKeyId"])
    shell.setenv("AWS_SECRET_ACCESS_KEY", key["SecretAccessKey"])
    post(moto_url, "reset-auth", b"0")
    try:
        code, findings = doctor()
    finally:
        post(moto_url, "reset-auth", b"inf")

    assert (code, {finding["level"] for finding in findings}) == (0, {"warns"})
    assert {finding["expected"] for finding in findings if finding["found"] == "denied"} >= {
        "s3:ListBucket", "s3:GetBucketVersioning", "s3:GetLifecycleConfiguration", "dynamodb:DescribeTable", "glue:GetJobs",
        "glue:GetDatabase", "dms:DescribeEndpoints",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("environment", "check", "found"),
    [
        ({"AWS_REGION": "", "AWS_DEFAULT_REGION": "", "AWS_ENDPOINT_URL": ""}, "region", "no AWS region is known"),
        ({"AWS_PROFILE": "nobody"}, "credentials", "The config profile (nobody) could not be found"),
        ({"AWS_ENDPOINT_URL": "http://127.0.0.1:9"}, "connection", "Could not connect to the endpoint URL"),
        ({"AWS_ACCESS_KEY_ID": "", "AWS_SECRET_ACCESS_KEY": ""}, "credentials", "Unable to locate credentials"),
    ],
)
def test_without_a_way_to_ask(doctor: Doctor, shell: pytest.MonkeyPatch, environment: dict[str, str], check: str, found: str) -> None:
    """No region, credentials or answer is a finding that blocks; nothing else on AWS is looked at, and what is not set is said."""
    for name in ("DMSLAKE_RAW", "DMSLAKE_LAKE", "DMSLAKE_DATABASE"):
        shell.delenv(name)
    for name in ("AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE"):
        shell.setenv(name, "/dev/null")
    shell.setenv("AWS_EC2_METADATA_DISABLED", "true")
    for name, value in environment.items():
        shell.setenv(name, value) if value else shell.delenv(name, raising=False)

    code, findings = doctor()

    assert code == 3
    assert [finding["check"] for finding in findings] == ["settings", "settings", check, "settings"]
    assert found in findings[2]["found"]


@pytest.mark.parametrize(("name", "value", "is_read"), [("raw", "dms", False), ("lake", "/lake", False), ("raw", "s3://bucket/dms/", True)])
def test_a_setting_of_the_jobs_that_is_none_is_not_looked_at(name: str, value: str, is_read: bool) -> None:
    """The jobs are told of it; the rest is looked at by what this shell has."""
    assert _can_be_read(name, value) is is_read
