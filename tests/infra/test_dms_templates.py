"""The templates of DMS and of the sample database: settings that dmslake needs, for the parameters that change them."""

from __future__ import annotations

import json
import os
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
from botocore.loaders import Loader
from botocore.model import ServiceModel
from botocore.validate import ParamValidator

from glue_jobs.spark.dms_files import BEFORE_PREFIX
from infra.local.sample.scripts import SCRIPTS, statements
from tests.infra.resolve import Resolved

ROOT = Path(__file__).parents[2]
GIVEN = {
    "VpcId": "vpc-1",
    "SubnetIds": "subnet-1,subnet-2",
    "SecurityGroupIds": "sg-1",
    "SourceSecretArn": "arn:aws:secretsmanager:eu-central-1:123456789012:secret:db-1",
    "RawBucket": "raw-bucket",
    "SchemaName": "sampledb",
}
TLS = {"SslMode": "verify-ca", "CertificateArn": "arn:aws:dms:eu-central-1:123456789012:cert:rds-ca"}
KEY = "arn:aws:kms:eu-central-1:123456789012:key/1"
SETTINGS = {  # of the S3 target, with what another value would do
    "DataFormat": "parquet",  # CSV has no types
    "IncludeOpForFullLoad": True,
    "CdcInsertsOnly": False,  # no updates, no deletes
    "CdcInsertsAndUpdates": False,  # no deletes
    "PreserveTransactions": False,  # CSV in one folder, which every table reads
    "DatePartitionEnabled": False,
    "ParquetTimestampInMillisecond": False,  # microseconds are lost
    "TimestampColumnName": "dms_timestamp",
    "UseTaskStartTimeForFullLoadTimestamp": False,  # a reload's CDC files would be those since the task's start
}


def dms(**parameters: Any) -> Resolved:
    return Resolved.read("dms-source.yaml", **{**GIVEN, **parameters})


def test_the_s3_target_has_the_settings_that_dmslake_needs() -> None:
    settings = dms().resource("TargetEndpoint")["S3Settings"]
    assert {name: settings[name] for name in SETTINGS} == SETTINGS
    assert (settings["BucketName"], settings["BucketFolder"], settings["EncryptionMode"]) == ("raw-bucket", "dms", "sse-s3")
    assert settings["ExpectedBucketOwner"] == "123456789012"


@pytest.mark.parametrize("parameters", [{}, {"KmsKeyArn": KEY}])
def test_the_s3_targets_settings_are_ones_that_the_api_has(parameters: dict[str, str]) -> None:
    """CloudFormation hands them on as they are, and neither it nor cfn-lint knows the words."""
    model = ServiceModel(Loader().load_service_model("dms", "service-2"), "dms")
    shape: Any = model.shape_for("S3Settings")
    settings = dms(**parameters).resource("TargetEndpoint")["S3Settings"]
    assert ParamValidator().validate(settings, shape).generate_report() == ""
    words = {name: shape.members[name].enum for name in settings if getattr(shape.members[name], "enum", None)}
    assert len(words) > 3
    assert [name for name, allowed in words.items() if settings[name] not in allowed] == []


@pytest.mark.parametrize(("prefix", "folder"), [("dms/", "dms"), ("a/b.c/", "a/b.c"), ("", None)])
def test_the_folder_of_the_target_is_the_prefix_without_its_last_slash(prefix: str, folder: str | None) -> None:
    assert dms(RawPrefix=prefix).resource("TargetEndpoint")["S3Settings"].get("BucketFolder") == folder


def test_table_mappings_name_tables_exclusions_and_before_images() -> None:
    """As an instance's task has them, a text, and as a serverless replication, an object."""
    for exclude in ("", "tmp%"):
        task = dms(ExcludeTable=exclude, TableName="order%").resource("ReplicationTask")
        serverless = dms(ExcludeTable=exclude, TableName="order%", Capacity="serverless").resource("ServerlessReplication")
        assert json.loads(task["TableMappings"]) == serverless["TableMappings"]
        rules = {rule["rule-name"]: rule for rule in json.loads(task["TableMappings"])["rules"]}
        assert rules["include"]["object-locator"] == {"schema-name": "sampledb", "table-name": "order%"}
        assert ("exclude" in rules) == bool(exclude)
        assert rules.get("exclude", {}).get("object-locator", {}).get("table-name", "") == exclude
        before = rules["before-images"]
        assert before["rule-action"] == "add-before-image-columns"
        assert before["before-image-def"] == {"column-prefix": BEFORE_PREFIX, "column-suffix": "", "column-filter": "pk-only"}
        assert len({rule["rule-id"] for rule in rules.values()}) == len(rules)
    given = '{"rules": []}'
    assert dms(TableMappings=given).resource("ReplicationTask")["TableMappings"] == given


def test_table_mappings_of_ones_own_are_a_tasks_only() -> None:
    """A parameter is a text, and a serverless replication wants an object."""
    assert dms(TableMappings="{}").refusals() == []
    assert dms(Capacity="serverless").refusals() == []
    assert [said.partition(" ")[0] for said in dms(TableMappings="{}", Capacity="serverless").refusals()] == ["TableMappings"]


@pytest.mark.parametrize("log", ["true", "false"])
def test_serverless_settings_have_truth_values_and_numbers(log: str) -> None:
    """What CloudFormation makes of a parameter is a text, of whatever type it is declared."""
    parameters = {"WithTaskLog": log, "LobMaxSizeKb": "1024"}
    text = dms(**parameters).resource("ReplicationTask")["ReplicationTaskSettings"]
    assert dms(Capacity="serverless", **parameters).resource("ServerlessReplication")["ReplicationSettings"] == json.loads(text)


def test_a_serverless_replication_is_told_another_lob_size() -> None:
    serverless = dms(Capacity="serverless", LobMaxSizeKb="2048").resource("ServerlessReplication")
    assert serverless["ReplicationSettings"]["TargetMetadata"]["LobMaxSize"] == "2048"


def test_the_task_copies_and_follows_and_stops_a_table_rather_than_losing_a_row() -> None:
    task = dms().resource("ReplicationTask")
    serverless = dms(Capacity="serverless").resource("ServerlessReplication")
    assert json.loads(task["ReplicationTaskSettings"]) == serverless["ReplicationSettings"]
    assert task["MigrationType"] == serverless["ReplicationType"] == "full-load-and-cdc"
    settings = json.loads(task["ReplicationTaskSettings"])
    assert settings["TargetMetadata"]["BatchApplyEnabled"] is False  # loses data on S3, says DMS's guide
    assert settings["TargetMetadata"]["LimitedSizeLobMode"] is True  # the full mode is not supported on S3
    assert {settings["ErrorBehavior"][name] for name in ("DataErrorPolicy", "DataTruncationErrorPolicy")} == {"SUSPEND_TABLE"}
    assert settings["FullLoadSettings"]["TargetTablePrepMode"] == "DROP_AND_CREATE"
    assert settings["ChangeProcessingDdlHandlingPolicy"]["HandleSourceTableDropped"] is False


@pytest.mark.parametrize(("capacity", "made", "left"), [
    ("instance", {"ReplicationInstance", "ReplicationTask"}, {"ServerlessReplication"}),
    ("serverless", {"ServerlessReplication"}, {"ReplicationInstance", "ReplicationTask"}),
])  # fmt: skip
def test_capacity_is_an_instance_or_serverless(capacity: str, made: set[str], left: set[str]) -> None:
    resolved = dms(Capacity=capacity)
    resources = set(resolved.resources())
    assert made <= resources
    assert not left & resources
    start = resolved.outputs()["StartCommand"]
    assert any(name in start for name in made)
    assert resolved.outputs()["RawLocation"] == "s3://raw-bucket/dms/"


@pytest.mark.parametrize(("engine", "there", "absent"), [
    ("mysql", "MySqlSettings", "PostgreSqlSettings"),
    ("aurora", "MySqlSettings", "PostgreSqlSettings"),
    ("aurora-postgresql", "PostgreSqlSettings", "MySqlSettings"),
])  # fmt: skip
def test_the_source_is_told_by_a_secret_and_by_nothing_else(engine: str, there: str, absent: str) -> None:
    endpoint = dms(SourceEngine=engine).resource("SourceEndpoint")
    assert endpoint[there]["SecretsManagerSecretId"] == GIVEN["SourceSecretArn"]
    assert absent not in endpoint
    assert not {"Username", "Password", "ServerName"} & set(endpoint)
    parameters = Resolved.read("dms-source.yaml", **GIVEN).template["Parameters"]
    assert not [name for name in parameters if "assword" in name]


def test_the_roles_reach_the_raw_folder_and_the_secret_only() -> None:
    def allowed(resolved: Resolved, role: str) -> dict[str, Any]:
        (policy,) = resolved.resource(role)["Policies"]
        return {json.dumps(one["Action"]): one["Resource"] for one in policy["PolicyDocument"]["Statement"]}

    plain, keyed = dms(), dms(KmsKeyArn=KEY, SourceSecretKmsKeyArn=KEY)
    assert list(allowed(plain, "TargetRole").values()) == ["arn:aws:s3:::raw-bucket/dms/*", "arn:aws:s3:::raw-bucket"]
    assert list(allowed(plain, "SecretRole").values()) == [GIVEN["SourceSecretArn"]]
    for role in ("TargetRole", "SecretRole"):
        assert list(allowed(keyed, role).values())[-1] == KEY
        assert "s3:DeleteObjectVersion" not in str(allowed(keyed, role))
        (trust,) = keyed.resource(role)["AssumeRolePolicyDocument"]["Statement"]
        assert trust["Condition"] == {"StringEquals": {"aws:SourceAccount": "123456789012"}}
    assert keyed.resource("TargetEndpoint")["S3Settings"]["ServerSideEncryptionKmsKeyId"] == KEY


def test_endpoints_of_the_network_are_made_on_request() -> None:
    kind = "AWS::EC2::VPCEndpoint"
    assert dms().resources(kind) == {}
    made = dms(RouteTableIds="rtb-1,rtb-2", WithSecretsEndpoint="true").resources(kind)
    assert made["S3Endpoint"]["RouteTableIds"] == ["rtb-1", "rtb-2"]
    assert made["SecretsEndpoint"]["PrivateDnsEnabled"] is True


@pytest.fixture(scope="module")
def sample() -> Resolved:
    return Resolved.read("sample-db.yaml", VpcId="vpc-1", SubnetIds="subnet-1,subnet-2")


def test_the_sample_database_writes_a_row_binlog_and_is_not_public(sample: Resolved) -> None:
    database = sample.resource("Database")
    assert sample.resource("ParameterGroup")["Parameters"] == {
        "binlog_format": "ROW",
        "binlog_row_image": "FULL",
        "binlog_checksum": "NONE",
    }
    assert database["BackupRetentionPeriod"] > 0  # without backups RDS writes no binlog
    assert (database["PubliclyAccessible"], database["StorageEncrypted"]) == (False, True)
    assert database["MasterUserPassword"].startswith("{{resolve:secretsmanager:")
    (rule,) = sample.resource("DatabaseSecurityGroup")["SecurityGroupIngress"]
    assert (rule["SourceSecurityGroupId"], rule["FromPort"], rule["ToPort"]) == ("ClientSecurityGroup", 3306, 3306)


def test_the_sample_database_is_of_a_version_that_rds_supports_without_a_surcharge(sample: Resolved) -> None:
    """8.0 is in Extended Support, which is charged, since August 2026; each version has parameters of its own family."""
    versions = sample.template["Parameters"]["EngineVersion"]["AllowedValues"]
    stacks = {version: Resolved.read("sample-db.yaml", VpcId="vpc-1", SubnetIds="subnet-1", EngineVersion=version) for version in versions}

    assert (sample.resource("Database")["EngineVersion"], sample.resource("ParameterGroup")["Family"]) == ("8.4", "mysql8.4")
    assert {version: stack.resource("ParameterGroup")["Family"] for version, stack in stacks.items()} == {
        version: f"mysql{version}" for version in versions
    }


def test_the_outputs_of_the_sample_database_fill_dms_source(sample: Resolved) -> None:
    said = [re.search(r"(\w+) of dms-source\.yaml", one["Description"]) for one in sample.template["Outputs"].values()]
    named = {match[1] for match in said if match}
    assert named == {"SourceSecretArn", "SecurityGroupIds", "SchemaName"}
    network = sample.template["Metadata"]["AWS::CloudFormation::Interface"]["ParameterGroups"][0]["Parameters"]
    assert {*named, *network} <= set(dms().template["Parameters"])


def test_the_command_of_the_output_feeds_the_sample_to_mysql(sample: Resolved, tmp_path: Path) -> None:
    """The pasted line is run, with an `aws` that knows the secret and a `mysql` that keeps what it is given."""
    programs = {
        "aws": """#!/bin/sh\nprintf '%s' '{"username": "admin", "password": "pa ss$1"}'\n""",
        "mysql": f'#!/bin/sh\necho "$MYSQL_PWD|$*" > {tmp_path}/call\ncat > {tmp_path}/script\n',
    }
    for name, text in programs.items():
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(0o755)
    environment = {"PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}"}
    subprocess.run(["sh", "-ec", sample.outputs()["LoadSample"]], cwd=ROOT, env=environment, check=True, timeout=60)
    script = (tmp_path / "script").read_text("utf-8")
    assert script.startswith((ROOT / "infra/local/sample/initial.sql").read_text("utf-8"))
    assert script.rstrip().endswith("call mysql.rds_set_configuration('binlog retention hours', 24);")
    call = (tmp_path / "call").read_text("utf-8").strip()
    assert call == "pa ss$1|--host Database.Endpoint.Address --user admin --default-character-set utf8mb4 sampledb"


def test_the_sample_of_the_command_is_the_one_that_the_tests_load() -> None:
    assert [(ROOT / f"infra/local/sample/{name}.sql").is_file() for name in SCRIPTS] == [True, True]
    assert all(statements(name) for name in SCRIPTS)


@pytest.mark.parametrize(("file", "more"), [("dms-source.yaml", set(TLS)), ("sample-db.yaml", set())])
def test_the_page_gives_the_parameters_that_there_are(file: str, more: set[str]) -> None:
    """The commands of docs/dms-source.md name no other, all that have no default, and the TLS that the sample's MySQL wants."""
    page = (ROOT / "docs/dms-source.md").read_text("utf-8")
    (command,) = (text for text in re.findall(r"\$ (aws cloudformation deploy(?:[^\n]*\\\n)*[^\n]*)", page) if file in text)
    given = set(re.findall(r"(\w+)=", command))
    parameters = Resolved.read(file, **{name: {**GIVEN, **TLS}[name] for name in given}).template["Parameters"]
    assert {name for name, one in parameters.items() if "Default" not in one} | more == given
