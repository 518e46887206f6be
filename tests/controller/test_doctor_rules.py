"""What doctor makes of AWS's answers: lifecycle rules, versioning, endpoints, tasks, roles, jobs, this machine."""

from __future__ import annotations

import ast
import io
import json
import re
import shlex
import urllib.parse
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError
from botocore.stub import Stubber

from controller.doctor.account import Account, setting_findings
from controller.doctor.bucket_policy import Wanted, ownership_findings, policy_findings
from controller.doctor.buckets import Bucket, bucket_facts, bucket_findings
from controller.doctor.finding import BLOCKS, FINE, WARNS, Finding, worst_first
from controller.doctor.jobs import DEPLOY, JobFacts, agreed, all_job_findings, job_files, job_findings, longest_timeout
from controller.doctor.lake_bucket import Wish, lake_findings
from controller.doctor.looks import Seen
from controller.doctor.machine import Machine, machine_facts, machine_findings
from controller.doctor.raw_bucket import raw_findings
from controller.doctor.roles import Right, RoleFacts, role_facts, role_findings, version_delete, wanted_rights
from controller.doctor.schedule import trigger_facts, trigger_findings
from controller.doctor.state_table import StateFacts, state_findings
from controller.doctor.tables import Catalog, catalog_findings
from glue_jobs.aws.buckets import check_lake_bucket
from glue_jobs.core.errors import ConfigurationError, DmslakeError
from glue_jobs.core.paths import S3Uri
from glue_jobs.core.settings import Settings
from glue_jobs.spark.java import JavaNotFound
from tests.controller.aws_lines import request_of
from tests.controller.installation import INSTALLED, lake_stack
from tests.requests.actions import ACCOUNT, Need
from tests.requests.policy import role_of_job, roles

ROOT = Path(__file__).parent.parent.parent
LAKE = S3Uri("lake-bucket", "lake/")
DENIED = Seen(error=ConfigurationError("no", "access-denied"), permission="s3:Look")
Rule = dict[str, Any]


def rule(prefix: str | None = "", **actions: Any) -> Rule:
    return {"ID": "one", "Status": "Enabled", "Filter": {"Prefix": prefix}, **actions}


def kept(days: int = 30, **more: Any) -> Rule:
    """What noncurrent versions and uploads want."""
    return {
        "NoncurrentVersionExpiration": {"NoncurrentDays": days, **more},
        "Expiration": {"ExpiredObjectDeleteMarker": True},
        "AbortIncompleteMultipartUpload": {"DaysAfterInitiation": 7},
    }


def told(findings: list[Finding], *levels: str) -> list[tuple[str, str]]:
    """Level and what was found, of some levels (default: all but fine)."""
    return [(finding.level, finding.found) for finding in findings if finding.level in (levels or (BLOCKS, WARNS))]


# --- buckets

LIFECYCLES: list[tuple[list[Rule], list[tuple[str, str]]]] = [
    ([rule(**kept())], []),
    ([rule("lake/", **kept())], []),
    ([rule("lake/", **kept(), Transitions=[{"Days": 30, "StorageClass": "INTELLIGENT_TIERING"}])], []),
    ([rule(**kept()), rule("logs/", Expiration={"Days": 3}) | {"ID": "logs"}], []),
    ([rule(**kept()), rule("lake/", Expiration={"Days": 3}) | {"ID": "off", "Status": "Disabled"}], []),
    ([], [(WARNS, "no such rule"), (WARNS, "no such rule"), (WARNS, "no rule for the whole folder")]),
    ([rule(**kept(5))], [(WARNS, "5 day(s)")]),
    ([rule("lake/shop/", **kept())], [
        (WARNS, "rules with a narrower Filter"), (WARNS, "no such rule"), (WARNS, "no rule for the whole folder"),
    ]),
    ([rule(**kept(NewerNoncurrentVersions=2))], [(BLOCKS, "rule one: keeps 2")]),
    ([rule(**kept()), rule("lake/shop/", Expiration={"Days": 3}) | {"ID": "two"}], [(BLOCKS, "rule two: after 3 day(s)")]),
    ([rule(**kept() | {"AbortIncompleteMultipartUpload": {"DaysAfterInitiation": 1}})], [(BLOCKS, "1 day(s)")]),
    ([rule(**kept() | {"AbortIncompleteMultipartUpload": {"DaysAfterInitiation": 3}})], [(WARNS, "3 day(s)")]),
    ([rule("lake/shop/", AbortIncompleteMultipartUpload={"DaysAfterInitiation": 1})], [
        (WARNS, "no such rule"), (WARNS, "no such rule"), (BLOCKS, "1 day(s)"),
    ]),
    ([rule(**kept(), Transitions=[{"Days": 30, "StorageClass": "GLACIER"}])], [(BLOCKS, "rule one: GLACIER")]),
    ([rule(**kept(), NoncurrentVersionTransitions=[{"NoncurrentDays": 1, "StorageClass": "DEEP_ARCHIVE"}])], [
        (WARNS, "rule one: DEEP_ARCHIVE"),
    ]),
]  # fmt: skip


@pytest.mark.parametrize(("rules", "found"), LIFECYCLES)
def test_lifecycle_of_the_lake(rules: list[Rule], found: list[tuple[str, str]]) -> None:
    """What a rule does is said; the line mends it all, keeps the rules for other folders, and what a run refuses blocks here too."""
    wish = Wish(7, timeout_minutes=3 * 24 * 60)

    findings = lake_findings(with_rules(rules), wish)

    assert told(findings) == found
    assert run_refuses(rules) <= any(level == BLOCKS for level, _ in found)
    for line in {finding.fix for finding in findings if finding.fix}:
        words = shlex.split(line)
        mended = json.loads(words[words.index("--lifecycle-configuration") + 1])["Rules"]
        assert told(lake_findings(with_rules(mended), wish)) == []
        assert not run_refuses(mended)
        assert {one["ID"] for one in mended} >= {one["ID"] for one in rules if one["Filter"]["Prefix"] == "logs/"}


def test_rules_of_the_first_form_and_dates() -> None:
    """A prefix beside the filters, a date, tags, sizes and S3's least size for other storage classes come through the line."""
    rules = [
        {"ID": "old", "Status": "Enabled", "Prefix": "lake/", "Expiration": {"Date": datetime(2030, 1, 1, tzinfo=timezone.utc)}, **ABORTS},
        {"ID": "tag", "Status": "Enabled", "Filter": {"Tag": {"Key": "a", "Value": "b"}}, "Expiration": {"Days": 1}},
        {"ID": "both", "Status": "Enabled", "Filter": {"And": {"Prefix": "lake/", "ObjectSizeGreaterThan": 9}}, **kept()},
        {"ID": "dated", "Status": "Enabled", "Prefix": "logs/", "Expiration": {"Date": datetime(2030, 1, 1, tzinfo=timezone.utc)}},
    ]
    bucket = replace(HEALTHY, lifecycle=Seen({"Rules": rules, "TransitionDefaultMinimumObjectSize": "varies_by_storage_class"}))

    findings = lake_findings(bucket, Wish(7))

    assert [finding.found for finding in findings if finding.level == BLOCKS] == ["rule old: from 2030-01-01 00:00:00+00:00"]
    words = shlex.split(findings[-1].fix)
    mended = json.loads(words[words.index("--lifecycle-configuration") + 1])["Rules"]
    assert [(one["ID"], one["Filter"], one.get("Expiration")) for one in mended] == [
        ("old", {"Prefix": "lake/"}, None),
        ("tag", {"Tag": {"Key": "a", "Value": "b"}}, {"Days": 1}),
        ("both", {"And": {"Prefix": "lake/", "ObjectSizeGreaterThan": 9}}, {"ExpiredObjectDeleteMarker": True}),
        ("dated", {"Prefix": "logs/"}, {"Date": "2030-01-01T00:00:00+00:00"}),
        ("dmslake lake/", {"Prefix": "lake/"}, {"ExpiredObjectDeleteMarker": True}),
    ]
    assert words[-2:] == ["--transition-default-minimum-object-size", "varies_by_storage_class"]


ABORTS = {"AbortIncompleteMultipartUpload": {"DaysAfterInitiation": 7}}


def with_rules(rules: list[Rule]) -> Bucket:
    return replace(HEALTHY, lifecycle=Seen({"Rules": rules}) if rules else Seen(missing=True))


def run_refuses(rules: list[Rule]) -> bool:
    """Whether a run of the controller refuses a bucket with these rules."""
    s3 = boto3.client("s3", aws_access_key_id="a", aws_secret_access_key="b")
    with Stubber(s3) as aws:
        aws.add_response("get_bucket_versioning", {"Status": "Enabled"})
        aws.add_response("get_bucket_lifecycle_configuration", {"Rules": rules})
        try:
            check_lake_bucket(s3, LAKE.bucket, LAKE.key)
        except ConfigurationError:
            return True
    return False


TLS = {"Effect": "Deny", "Principal": "*", "Action": "s3:*", "Resource": "*", "Condition": {"Bool": {"aws:SecureTransport": "false"}}}
ERASE_ROLE = "arn:aws:iam::1:role/Erase"
HEALTHY = Bucket(
    "lake", LAKE, region=Seen("eu-central-1"), sample=Seen("lake/shop/a.parquet"), versioning=Seen({"Status": "Enabled"}),
    lifecycle=Seen({"Rules": [rule(**kept())]}), lock=Seen(missing=True), policy_status=Seen(missing=True),
    policy=Seen({"Policy": json.dumps({"Statement": TLS})}),
    ownership=Seen({"OwnershipControls": {"Rules": [{"ObjectOwnership": "BucketOwnerEnforced"}]}}),
    public_block=Seen({"PublicAccessBlockConfiguration": dict.fromkeys(
        ("BlockPublicAcls", "IgnorePublicAcls", "BlockPublicPolicy", "RestrictPublicBuckets"), True
    )}),
)  # fmt: skip
RETAINED = {"ObjectLockConfiguration": {"ObjectLockEnabled": "Enabled", "Rule": {"DefaultRetention": {"Mode": "GOVERNANCE", "Days": 9}}}}
MFA = {"Status": "Enabled", "MFADelete": "Enabled"}
LAKES: list[tuple[dict[str, Any], list[tuple[str, str, str]]]] = [
    ({}, []),
    ({"versioning": Seen({})}, [(BLOCKS, "lake-versioning", "off")]),
    ({"versioning": DENIED}, [(WARNS, "lake-versioning", "denied")]),
    ({"versioning": Seen(MFA)}, [(WARNS, "lake-mfa-delete", "Enabled")]),
    ({"lock": Seen(RETAINED)}, [(BLOCKS, "lake-object-lock", "GOVERNANCE for 9 day(s)")]),
    ({"lock": Seen({"ObjectLockConfiguration": {"ObjectLockEnabled": "Enabled"}})}, []),
    ({"lock": DENIED}, [(WARNS, "lake-object-lock", "denied")]),
    ({"lifecycle": DENIED}, [(WARNS, "lake-lifecycle", "denied")]),
    ({"region": Seen("eu-west-1")}, [(WARNS, "lake-region", "eu-west-1")]),
    ({"region": DENIED}, [(WARNS, "lake-region", "denied")]),
    ({"region": Seen(error=DmslakeError("moved", "region"))}, [(BLOCKS, "lake-bucket", "moved")]),
    ({"sample": DENIED}, [(WARNS, "lake-bucket", "no")]),
    ({"sample": Seen(error=DmslakeError("busy", "aws-busy"))}, [(WARNS, "lake-bucket", "busy")]),
    ({"public_block": DENIED}, [(WARNS, "lake-public", "denied")]),
    ({"policy": DENIED}, [(WARNS, "lake-policy", "denied")]),
    ({"policy": Seen(missing=True)}, [(WARNS, "lake-policy", "none")]),
    ({"ownership": DENIED}, [(WARNS, "lake-ownership", "denied")]),
    ({"ownership": Seen(missing=True)}, [(WARNS, "lake-ownership", "not set")]),
]  # fmt: skip


@pytest.mark.parametrize(("answers", "found"), LAKES)
def test_lake_bucket(answers: dict[str, Any], found: list[tuple[str, str, str]]) -> None:
    """Each answer of AWS, and what is made of it."""
    bucket = replace(HEALTHY, **answers)
    findings = bucket_findings(bucket, "eu-central-1")
    if bucket.is_there:
        findings += [*policy_findings(bucket, Wanted()), *ownership_findings(bucket), *lake_findings(bucket, Wish(7))]

    assert [(finding.level, finding.check, finding.found) for finding in findings if finding.level != FINE] == found


def test_a_bucket_elsewhere() -> None:
    """Where jobs are there, another region in this shell would not move them."""
    bucket = replace(HEALTHY, region=Seen("eu-west-1"))

    (alone,) = (finding for finding in bucket_findings(bucket, "eu-central-1") if finding.level != FINE)
    (with_jobs,) = (finding for finding in bucket_findings(bucket, "eu-central-1", has_jobs=True) if finding.level != FINE)

    (unknown,) = (finding for finding in bucket_findings(bucket, "eu-central-1", has_jobs=None) if finding.level != FINE)
    assert (alone.fix, with_jobs.fix, unknown.fix) == ("export AWS_REGION=eu-west-1", "", "")
    assert unknown.todo == "if the jobs are in eu-west-1: `export AWS_REGION=eu-west-1`; else a bucket where they run"
    assert with_jobs.todo == "the jobs run in eu-central-1: give them a bucket there, or deploy the stack in eu-west-1"


class Folder:
    """S3 as to one folder: the objects in it, by key, and which of them were read. All else is denied."""

    def __init__(self, sizes: dict[str, int]) -> None:
        self.read: list[str] = []
        self._sizes = sizes

    def list_objects_v2(self, **request: Any) -> dict[str, Any]:
        found = [{"Key": key, "Size": size} for key, size in sorted(self._sizes.items())][: request.get("MaxKeys", 1000)]
        return {"Contents": found} if found else {}

    def get_object(self, **request: Any) -> dict[str, Any]:
        self.read.append(request["Key"])
        return {"Body": io.BytesIO(b"P")}

    def __getattr__(self, operation: str) -> Any:
        def denied(**_: Any) -> Any:
            raise ClientError({"Error": {"Code": "AccessDenied", "Message": "no"}}, operation)

        return denied


@pytest.mark.parametrize(
    ("sizes", "read"),
    [
        ({"dms/": 0, "dms/shop/": 0, "dms/shop/orders/LOAD00000001.parquet": 9}, ["dms/shop/orders/LOAD00000001.parquet"]),
        ({"dms/": 0}, []),
        ({}, []),
    ],
)
def test_the_sample_is_a_file_and_no_mark_of_a_folder(sizes: dict[str, int], read: list[str]) -> None:
    """What has no bytes is not read, so that nothing would show that reading is denied."""
    s3 = Folder(sizes)

    bucket = bucket_facts(s3, "raw", S3Uri("raw-bucket", "dms/"))

    assert (bucket.sample.answer, s3.read) == ("".join(read), read)
    said = [finding.found for finding in bucket_findings(bucket, "eu-central-1") if finding.check == "raw-bucket"]
    assert said == [f"{read[0]} can be read" if read else "it can be listed; nothing is there yet"]


def denying(**condition: Any) -> dict[str, Any]:
    denied = {"Effect": "Deny", "Principal": "*", "Action": ["s3:DeleteObject*"], "Resource": "*"}
    return {**denied, "Condition": condition} if condition else denied


def of(names: Any) -> dict[str, Any]:
    """A denial for some principals of AWS."""
    return {**denying(), "Principal": {"AWS": names}}


def but_for(names: Any) -> dict[str, Any]:
    """A denial for all other principals."""
    return {"Effect": "Deny", "NotPrincipal": {"AWS": names}, "Action": "s3:*", "Resource": "*"}


def on(*keys: str) -> dict[str, Any]:
    """A denial on the lake bucket and on some of its keys."""
    return {**denying(), "Resource": ["arn:aws:s3:::lake-bucket", *(f"arn:aws:s3:::lake-bucket/{key}" for key in keys)]}


def on_all_but(key: str) -> dict[str, Any]:
    """A denial on all other keys."""
    return {"Effect": "Deny", "Principal": "*", "Action": "s3:*", "NotResource": f"arn:aws:s3:::lake-bucket/{key}"}


@pytest.mark.parametrize(
    ("statement", "stops"),
    [
        (denying(), True),
        (denying(ArnNotEquals={"aws:PrincipalArn": "arn:aws:iam::1:role/Old"}), True),
        (denying(ArnNotLike={"aws:PrincipalArn": ["arn:aws:iam::1:role/Er*"]}), False),
        (denying(ArnNotEquals={"aws:PrincipalArn": ERASE_ROLE}), False),
        (denying(Bool={"aws:MultiFactorAuthPresent": "false"}), False),
        ({**denying(), "Action": "s3:PutObject"}, False),
        ({**denying(), "Effect": "Allow"}, False),
        *((of(names), True) for names in ("*", ERASE_ROLE, ["arn:aws:iam::2:role/Dms", ERASE_ROLE], "arn:aws:iam::1:root", "1")),
        *((of(names), False) for names in ("arn:aws:iam::1:role/Dms", "arn:aws:iam::2:root", [])),
        ({**denying(), "Principal": {"Service": "dms.amazonaws.com"}}, False),
        (but_for("arn:aws:iam::1:role/Dms"), True),
        (but_for(["arn:aws:iam::1:root", ERASE_ROLE]), False),
        *((on(*keys), True) for keys in (["*"], ["lake/*"], ["logs/*", "lake/shop/*"], ["l?ke/*.parquet"])),
        *((on(*keys), False) for keys in ([], ["logs/*"], ["lake"], ["lake-2/*"])),
        (on_all_but("logs/*"), True),
        (on_all_but("lake/shop/*"), True),
        (on_all_but("lake/*"), False),
    ],
)
def test_a_policy_that_stops_the_role_of_erase(statement: dict[str, Any], stops: bool) -> None:
    """It is found, and its line lets the role in and keeps everything else; a statement that depends on more is left alone."""
    bucket = replace(HEALTHY, policy=Seen({"Policy": json.dumps({"Version": "2012-10-17", "Statement": [TLS, statement]})}))

    findings = policy_findings(bucket, Wanted("aws", ERASE_ROLE))

    assert told(findings) == ([(WARNS, "a Deny of s3:DeleteObjectVersion")] if stops else [])
    if stops:
        words = shlex.split(findings[0].fix)
        policy = words[words.index("--policy") + 1]
        assert json.loads(policy)["Statement"][0] == TLS
        assert told(policy_findings(replace(HEALTHY, policy=Seen({"Policy": policy})), Wanted("aws", ERASE_ROLE))) == []


VERSIONED, UNVERSIONED = {"versioning": Seen({"Status": "Enabled"})}, {"versioning": Seen({})}
RAWS: list[tuple[dict[str, Any], bool, list[tuple[str, str]]]] = [
    (UNVERSIONED, False, []),
    ({"versioning": Seen({"Status": "Suspended"})}, False, []),
    ({**VERSIONED, "lifecycle": Seen(missing=True)}, False, [(WARNS, "Enabled")]),
    ({**VERSIONED, "lifecycle": Seen({"Rules": [rule(**kept(3))]})}, False, []),
    ({**VERSIONED, "lifecycle": Seen(missing=True)}, True, [(WARNS, "raw and lake in one bucket")]),
    ({"versioning": DENIED, "lifecycle": DENIED}, False, [(WARNS, "denied"), (WARNS, "denied")]),
    (
        {"versioning": Seen({}), "lifecycle": Seen({"Rules": [rule("dms/", Expiration={"Days": 9})]})},
        False,
        [(WARNS, "rule one: after 9 day(s)")],
    ),
    ({"versioning": Seen({}), "lifecycle": Seen({"Rules": [rule("lake/", Expiration={"Days": 9})]})}, False, []),
    (
        {"versioning": Seen({}), "lifecycle": Seen({"Rules": [rule("dms/", Transitions=[{"Days": 30, "StorageClass": "GLACIER"}])]})},
        False,
        [(WARNS, "rule one: to GLACIER")],
    ),
]


@pytest.mark.parametrize(("answers", "is_lake_bucket", "found"), RAWS)
def test_raw_bucket(answers: dict[str, Any], is_lake_bucket: bool, found: list[tuple[str, str]]) -> None:
    """Versions and expiry of raw files are warned of."""
    raw = replace(HEALTHY, role="raw", uri=S3Uri("raw-bucket", "dms/"), **{"lifecycle": Seen(missing=True), **answers})

    assert told(raw_findings(raw, is_lake_bucket)) == found


# --- state table, catalog, schedule


def test_state_table() -> None:
    """One that is being made, one that can't be used, one with another key, one that may not be looked at."""
    table = {
        "TableStatus": "ACTIVE", "KeySchema": [{"AttributeName": "path", "KeyType": "HASH"}], "DeletionProtectionEnabled": True,
        "AttributeDefinitions": [{"AttributeName": "path", "AttributeType": "S"}], "BillingModeSummary": {"BillingMode": "PAY_PER_REQUEST"},
    }  # fmt: skip
    cases: dict[str, dict[str, Any]] = {
        "fine": {}, "making": {"TableStatus": "CREATING"}, "broken": {"TableStatus": "INACCESSIBLE_ENCRYPTION_CREDENTIALS"},
        "key": {"KeySchema": [{"AttributeName": "id", "KeyType": "HASH"}]},
        "number": {"AttributeDefinitions": [{"AttributeName": "path", "AttributeType": "N"}]},
    }  # fmt: skip
    found = {name: told(state_findings(StateFacts("state", Seen({"Table": {**table, **case}}), DENIED))) for name, case in cases.items()}

    assert found == {
        "fine": [(WARNS, "denied")],
        "making": [(WARNS, "CREATING"), (WARNS, "denied")],
        "broken": [(BLOCKS, "INACCESSIBLE_ENCRYPTION_CREDENTIALS"), (WARNS, "denied")],
        "key": [(BLOCKS, "id (HASH)"), (WARNS, "denied")],
        "number": [(BLOCKS, "path (HASH)"), (WARNS, "denied")],
    }


def test_catalog_and_schedule() -> None:
    """Tables that may not be listed, and what starts the controller."""
    assert told(catalog_findings(Catalog("lake", Seen({}), DENIED), Seen(missing=True))) == [(WARNS, "denied")]
    trigger = {"Name": "hourly", "Type": "SCHEDULED", "State": "ACTIVATED", "Schedule": "cron(0 * * * ? *)"}
    by_hand = {"Name": "hand", "Type": "ON_DEMAND", "State": "CREATED"}
    off = {**trigger, "State": "DEACTIVATED"}
    answers = [Seen([by_hand, off, trigger]), Seen([by_hand]), Seen([off]), Seen(missing=True), DENIED]

    assert [told(trigger_findings(seen, "p-")) for seen in answers] == [
        [], [(WARNS, "none")], [(WARNS, "DEACTIVATED")], [(WARNS, "none")], [(WARNS, "denied")],
    ]  # fmt: skip


class AllTriggers:
    """Glue, which answers with all triggers of the account and region where none starts the job that was asked for."""

    def __init__(self, *triggers: dict[str, Any]) -> None:
        self._triggers = triggers

    def get_paginator(self, _: str) -> AllTriggers:
        return self

    def paginate(self, DependentJobName: str) -> list[dict[str, Any]]:  # noqa: N803 - boto3's name
        ours = [trigger for trigger in self._triggers if DependentJobName in {action.get("JobName") for action in trigger["Actions"]}]
        return [{"Triggers": ours or self._triggers}]


@pytest.mark.parametrize("state", ["ACTIVATED", "DEACTIVATED"])
def test_a_trigger_of_another_job_is_not_the_controller_s(state: str) -> None:
    """Least of all is it to be started: it may be the AWS sample's, which was stopped for good reason."""
    foreign = {
        "Name": "DMSCDC-Trigger", "Type": "SCHEDULED", "State": state, "Schedule": "cron(0 * * * ? *)",
        "Actions": [{"JobName": "DMSCDC-Controller"}, {"CrawlerName": "c"}],
    }  # fmt: skip
    own = {**foreign, "Name": "hourly", "Actions": [{"JobName": "p-Controller"}], "State": "ACTIVATED"}

    alone = trigger_findings(trigger_facts(AllTriggers(foreign), "p-"), "p-")
    beside = trigger_findings(trigger_facts(AllTriggers(foreign, own), "p-"), "p-")

    assert (told(alone), "create-trigger" in alone[0].fix, "start-trigger" in alone[0].fix) == ([(WARNS, "none")], True, False)
    assert told(beside) == []


# --- jobs and roles


def template_jobs() -> dict[str, dict[str, Any]]:
    """The jobs as Glue shows them: texts in the arguments, the capacity twice."""
    found = {}
    for job in lake_stack().resources("AWS::Glue::Job").values():
        arguments = {name: str(value) for name, value in job["DefaultArguments"].items()}
        found[job["Name"]] = {"MaxCapacity": 2.0, **job, "DefaultArguments": arguments}
    return found


def test_all_that_is_wrong_with_a_job_has_one_line() -> None:
    """UpdateJob replaces a job: the line has all changes, and what was right before."""
    job = template_jobs()["LoadIncremental"]
    spoilt = {**job, "GlueVersion": None, "MaxRetries": 1, "Timeout": None, "DefaultArguments": {"--lake": "s3://other/", "--own": "1"}}

    findings = job_findings("LoadIncremental", spoilt, {}, INSTALLED)

    assert [finding.check for finding in findings] == ["job-version", "job-retries", "job-timeout", *["job-arguments"] * 3]
    (line,) = {finding.fix for finding in findings}
    update = request_of(line)["JobUpdate"]
    assert job_findings("LoadIncremental", {**update, "Name": "LoadIncremental"}, {}, INSTALLED)[0].level == FINE
    assert update["DefaultArguments"] == {"--lake": INSTALLED.lake, "--state_table": "state", "--database": "lake", "--own": "1"}
    assert (update["WorkerType"], "MaxCapacity" in update, update["Timeout"], update["GlueVersion"]) == ("G.1X", False, 480, "5.1")
    assert longest_timeout([job, spoilt]) == 2880


def test_a_job_with_fewer_runs_than_this_shell_knows_may_be_right() -> None:
    """A stack's MaxConcurrentRuns stands in the job, and the shell has the default: the line would undo it, and the words say so."""
    job = {**template_jobs()["LoadInitial"], "ExecutionProperty": {"MaxConcurrentRuns": 3}}

    (finding,) = job_findings("LoadInitial", job, {}, INSTALLED)

    assert (finding.check, finding.expected, finding.found) == ("job-concurrency", "5 (max_concurrent_runs)", "3")
    assert "if the job is right, set DMSLAKE_MAX_CONCURRENT_RUNS=3 in this shell instead" in finding.what


def test_jobs_that_are_not_there() -> None:
    """None may be listed; none is there; one that tables need, and others, are missing; a file may not be looked at."""
    jobs = template_jobs()
    few = {name: job for name, job in jobs.items() if name not in ("LoadInitial", "Controller", "Erase")}
    script = jobs["Apply"]["Command"]["ScriptLocation"]

    assert told(all_job_findings(JobFacts(DENIED), INSTALLED)) == [(WARNS, "denied")]
    assert told(all_job_findings(JobFacts(Seen({})), INSTALLED)) == [(BLOCKS, "none")]
    assert told(all_job_findings(JobFacts(Seen(few)), INSTALLED)) == [(BLOCKS, "none"), (WARNS, "none"), (WARNS, "none")]
    assert told(all_job_findings(JobFacts(Seen(jobs), {script: DENIED}), INSTALLED)) == [(WARNS, "denied")]
    script, package = job_files(jobs["LoadInitial"])
    gone = {script: Seen(missing=True), package: Seen(missing=True)}
    found = told(job_findings("LoadInitial", jobs["LoadInitial"], gone, INSTALLED))
    assert found == [(BLOCKS, f"no {script}"), (BLOCKS, f"no {package}")]


def test_jobs_of_another_prefix() -> None:
    """One prefix of ours is the right one; of several none is guessed; a job of the AWS sample has the same name and is none of ours."""
    ours = {f"lake-{name}": job for name, job in template_jobs().items()}
    others = {f"test-{name}": job for name, job in template_jobs().items()}
    command = {"Name": "glueetl", "ScriptLocation": "s3://my-scripts/DMSCDC_LoadIncremental.py"}
    sample = {"DMSCDC_LoadIncremental": {"Name": "DMSCDC_LoadIncremental", "Command": command}}

    (none,) = all_job_findings(JobFacts(Seen(sample)), INSTALLED)
    (one,) = all_job_findings(JobFacts(Seen({**sample, **ours})), INSTALLED)
    (several,) = all_job_findings(JobFacts(Seen({**sample, **ours, **others})), INSTALLED)

    assert [finding.level for finding in (none, one, several)] == [BLOCKS] * 3
    assert (none.found, none.fix) == ("none", DEPLOY)
    assert (one.found, one.fix) == ("jobs with the prefix 'lake-'", "export DMSLAKE_JOB_PREFIX=lake-")
    assert (several.found, several.fix) == ("jobs with the prefix 'lake-', 'test-'", "")
    assert "output Settings" in several.todo


def test_jobs_that_agree_are_right_and_this_shell_is_wrong() -> None:
    """A value that all jobs have is for the shell to take over, once; one job that differs from the others is mended itself."""
    jobs = template_jobs()
    here = replace(INSTALLED, state_table="another", raw="s3a://raw-bucket/dms")

    (one,) = (finding for finding in all_job_findings(JobFacts(Seen(jobs)), here) if finding.level != FINE)
    assert (one.level, one.where, one.found, one.fix) == (BLOCKS, "--state-table", "another", "export DMSLAKE_STATE_TABLE=state")
    jobs["Controller"]["DefaultArguments"]["--job_prefix"] = "other-"
    jobs["Apply"]["DefaultArguments"]["--database"] = "other"
    found = [finding for finding in all_job_findings(JobFacts(Seen(jobs)), INSTALLED) if finding.level != FINE]
    assert {finding.where: finding.found for finding in found} == {"job Controller": "other-", "job Apply": "other"}
    assert {name: agreed(jobs).get(name) for name in ("raw", "database")} == {"raw": INSTALLED.raw, "database": None}


REGION, NUMBER = ACCOUNT.split(":")
HERE = Account(Seen(REGION), Seen({"Account": NUMBER, "Arn": f"arn:aws:iam::{NUMBER}:user/me"}))


def test_the_templates_roles_have_the_rights_that_are_asked_for() -> None:
    """Each role may do what doctor wants of it, and none but that of Erase may delete versions."""
    settings = Settings(raw="s3://raw/dms/", lake="s3://lake/lake/", state_table="DMSCDC_Controller", database="dmslake")
    jobs: dict[str, list[str]] = {}
    for job, role in role_of_job().items():
        jobs.setdefault(role, []).append(job)

    for name, role in roles().items():
        wanted = [(right, action) for right in wanted_rights(jobs[name], settings, HERE) for action in right.actions]
        assert len(wanted) >= 6
        assert [need for right, action in wanted if not role.allows(need := need_of(right, action))] == []
    (forbidden,) = version_delete(settings, HERE)
    assert [name for name, role in roles().items() if role.allows(need_of(forbidden, *forbidden.actions))] == ["EraseRole"]


def need_of(right: Right, action: str) -> Need:
    return Need(action, right.resource, {"s3:prefix": right.prefix} if right.prefix else {})


def test_what_iam_says_of_a_role() -> None:
    """A denied right, a forbidden one that is allowed, one that depends on what can't be told, and a simulation that is not allowed."""
    trust = {"Statement": [{"Effect": "Allow", "Principal": {"Service": ["glue.amazonaws.com"]}, "Action": "sts:AssumeRole"}]}
    role = {"Arn": "arn:aws:iam::1:role/Load", "RoleName": "Load", "RoleId": "A" * 16, "Path": "/", "CreateDate": "2024-01-01"}
    role["AssumeRolePolicyDocument"] = urllib.parse.quote(json.dumps(trust))
    reads, removes = (
        Right("arn:aws:s3:::lake", ("s3:ListBucket", "s3:GetBucketVersioning"), "lake/"),
        Right("arn", ("s3:DeleteObjectVersion",)),
    )
    listed = {"EvalActionName": "s3:ListBucket", "EvalDecision": "implicitDeny"}
    open_question = {"EvalActionName": "s3:GetBucketVersioning", "EvalDecision": "implicitDeny", "MissingContextValues": ["aws:SourceVpc"]}
    removed = {"EvalActionName": "s3:DeleteObjectVersion", "EvalDecision": "allowed"}
    iam = boto3.client("iam", aws_access_key_id="a", aws_secret_access_key="b")
    with Stubber(iam) as aws:
        aws.add_response(
            "get_role", {"Role": {**role, "AssumeRolePolicyDocument": urllib.parse.quote(json.dumps(trust))}}, {"RoleName": "Load"}
        )
        aws.add_response("simulate_principal_policy", {"EvaluationResults": [listed, open_question]})
        aws.add_response("simulate_principal_policy", {"EvaluationResults": [removed]})
        facts = role_facts(iam, "arn:aws:iam::1:role/service/Load", ["LoadInitial"], [reads, removes])
    assert told(role_findings(facts)) == [(WARNS, "denied on arn:aws:s3:::lake"), (WARNS, "allowed on arn")]

    assert told(role_findings(replace(facts, jobs=["Erase"], rights={removes: facts.rights[removes]}))) == []
    assert told(role_findings(replace(facts, rights={removes: Seen({"s3:DeleteObjectVersion": False})}))) == []
    assert told(role_findings(replace(facts, rights={reads: DENIED, removes: DENIED}))) == [(WARNS, "denied")]
    assert told(role_findings(RoleFacts("Load", ["Apply"], DENIED))) == [(WARNS, "denied")]


# --- this machine, settings, the page


def test_this_machine() -> None:
    """With jobs on Glue only Python counts; with jobs here an old Python, a missing package and no Java block."""

    def no_java() -> str:
        raise JavaNotFound("Looked at JAVA_HOME")

    assert [finding.check for finding in machine_findings(machine_facts("glue", no_java), "glue")] == ["python"]
    here = machine_findings(machine_facts("local", no_java), "local")
    assert [(finding.level, finding.check) for finding in here] == [(FINE, "python"), (FINE, "packages"), (BLOCKS, "java")]
    assert machine_facts("local", lambda: "/java").java == "/java"
    old = machine_findings(Machine((3, 9, 18), {"pyspark": "", "pyarrow": "22"}, "/java"), "local")
    assert [(finding.level, finding.check) for finding in old] == [(BLOCKS, "python"), (BLOCKS, "packages"), (FINE, "java")]
    assert old[1].found == "without pyspark"


def test_settings_that_are_not_given() -> None:
    """A run needs raw and lake; one that runs here the database too. What is worst comes first, else the order stays."""
    found = setting_findings(Settings(raw="s3://raw/"), {"lake": INSTALLED.lake})
    assert [(finding.level, finding.where) for finding in found] == [(BLOCKS, "--lake"), (WARNS, "--database")]
    assert [finding.fix for finding in found] == [f"export DMSLAKE_LAKE={INSTALLED.lake}", "export DMSLAKE_DATABASE=NAME"]
    assert [finding.level for finding in setting_findings(Settings(runner="local"), {})] == [BLOCKS] * 3
    order = [Finding(level, str(at), "") for at, level in enumerate((FINE, WARNS, BLOCKS, WARNS))]
    assert [finding.check for finding in worst_first(order)] == ["2", "1", "3", "0"]


def test_every_check_is_on_the_page() -> None:
    """docs/doctor.md lists the checks that the code knows, and no other."""
    page = (ROOT / "docs" / "doctor.md").read_text("utf-8")
    listed = {name for line in page.splitlines() if line.startswith("| `") for name in re.findall(r"`([a-z-]+)`", line.split("|")[1])}
    known = {name for source in (ROOT / "controller" / "doctor").glob("*.py") for name in checks(ast.parse(source.read_text("utf-8")))}

    assert listed == known


def checks(tree: ast.AST) -> Iterator[str]:
    """The names of checks: what is given to a finding as its second argument, or put into a name `check`."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("Finding", "Wrong", "not_checked"):
            yield from names(node.args[1])
        elif isinstance(node, ast.Assign):
            yield from (name for one, value in assigned(node) if one.id.lower() == "check" for name in names(value))
        elif isinstance(node, ast.FunctionDef) and node.name == "_check":
            yield from (name for one in ast.walk(node) if isinstance(one, ast.Return) and one.value for name in names(one.value))


def assigned(node: ast.Assign) -> Iterator[tuple[ast.Name, ast.expr]]:
    """Names and what they get, those of `a, b = 1, 2` too."""
    (target,) = node.targets
    if isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple):
        yield from ((one, value) for one, value in zip(target.elts, node.value.elts, strict=True) if isinstance(one, ast.Name))
    elif isinstance(target, ast.Name):
        yield target, node.value


def names(value: ast.expr) -> Iterator[str]:
    """The texts that an expression can be; one that begins with a bucket's role is two."""
    if isinstance(value, ast.Constant):
        yield str(value.value)
    elif isinstance(value, ast.IfExp):
        yield from (*names(value.body), *names(value.orelse))
    elif isinstance(value, ast.JoinedStr):
        end = "".join(str(part.value) for part in value.values if isinstance(part, ast.Constant))
        yield from (role + end for role in ("raw", "lake"))
