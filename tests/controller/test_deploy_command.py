"""`dmslake build | deploy`: the same code gives the same files, a version is written once, and a stack changes only as it was shown."""

from __future__ import annotations

import io
import re
import sys
import uuid
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import boto3
import pytest
from botocore.stub import Stubber

from controller.artifacts import JOBS_ZIP, build_artifacts, make_zip
from controller.deploying.change_set import Change, ChangeSet, Move, choose_parameters, find_moves, is_unchanged
from controller.deploying.stack import Found, Stack, check_status
from controller.deploying.store import upload
from glue_jobs.core.errors import ConfigurationError, DmslakeError, RetryLater, UsageError
from glue_jobs.core.paths import S3Uri
from infra.aws import LAKE
from infra.local.embedded import EmbeddedAws
from tests.controller.past_world import Command, Done
from tests.controller.world import CREDENTIALS

ROOT = Path(__file__).parents[2]
TEMPLATE = """
Parameters:
  ArtifactBucket: {Type: String}
  ArtifactPrefix: {Type: String}
  ControllerWheel: {Type: String}
  Name: {Type: String, Default: ''}
  Days: {Type: Number, Default: 7}
  RawPrefix: {Type: String, Default: ''}
  LakePrefix: {Type: String, Default: lake/}
  WorkPrefix: {Type: String, Default: work/}
Conditions:
  IsNamed: !Not [!Equals [!Ref Name, '']]
Resources:
  Items:
    Type: AWS::DynamoDB::Table
    DeletionPolicy: Retain
    UpdateReplacePolicy: Retain
    Properties:
      TableName: !If [IsNamed, !Ref Name, !Ref AWS::NoValue]
      BillingMode: PAY_PER_REQUEST
      KeySchema: [{AttributeName: path, KeyType: HASH}]
      AttributeDefinitions: [{AttributeName: path, AttributeType: S}]
  Log:
    Type: AWS::Logs::LogGroup
    Properties: {RetentionInDays: !Ref Days}
Outputs:
  Program:
    Value: !Sub s3://${ArtifactBucket}/${ArtifactPrefix}${ControllerWheel}
"""


class Deploy:
    """`dmslake deploy` of a small template to a stack of the test's own, on the embedded AWS."""

    def __init__(self, aws: EmbeddedAws, command: Command, folder: Path) -> None:
        self.stack, self._command = f"lake-{uuid.uuid4().hex[:8]}", command
        self.s3, self.cloudformation = aws.client("s3"), aws.client("cloudformation")
        self.s3.create_bucket(Bucket=self.stack)
        self.template = folder / "template.yaml"
        self.template.write_text(TEMPLATE)

    def __call__(self, *words: str) -> Done:
        given = ["--stack", self.stack, "--artifacts", f"s3://{self.stack}/programs", "--template", str(self.template)]
        return self._command("deploy", *given, *words)

    def files(self) -> dict[str, Any]:
        """The time of each object below the artifacts."""
        return {entry["Key"]: entry["LastModified"] for entry in self.s3.list_objects_v2(Bucket=self.stack).get("Contents", ())}

    def parameters(self) -> dict[str, str] | None:
        """The stack's; None if it isn't there."""
        found = [stack for stack in self.cloudformation.describe_stacks()["Stacks"] if stack["StackName"] == self.stack]
        return {each["ParameterKey"]: each["ParameterValue"] for each in found[0]["Parameters"]} if found else None

    def change_sets(self) -> list[str]:
        """Those that wait."""
        found = self.cloudformation.list_change_sets(StackName=self.stack)["Summaries"]
        return [
            each["ChangeSetName"] for each in found if each["StackName"] == self.stack and each["ExecutionStatus"] != "EXECUTE_COMPLETE"
        ]


@pytest.fixture
def deploy(embedded_aws: EmbeddedAws, lake_command: Command, tmp_path: Path) -> Deploy:
    return Deploy(embedded_aws, lake_command, tmp_path)


# --- artifacts


def test_artifacts_are_what_the_template_names() -> None:
    """The script of each job that there is (tests/infra holds the template to that), and the archives that they import from."""
    text = LAKE.read_text()
    built = {file.name for file in build_artifacts(text.encode()).files}
    named = set(re.findall(r"s3://\$\{ArtifactBucket\}/\$\{ArtifactPrefix\}(\S+)", text))
    scripts = {name for name in named if name.endswith(".py") and (ROOT / name).exists()}

    assert len(scripts) > 8
    assert scripts | {JOBS_ZIP} <= built
    assert named >= {JOBS_ZIP, "${ControllerWheel}"}


def test_the_order_of_files_makes_no_difference() -> None:
    assert make_zip({"b": b"2", "a": b"1"}) == make_zip({"a": b"1", "b": b"2"})


# --- deploy


def test_a_stack_is_created_updated_and_left_as_it_is(deploy: Deploy) -> None:
    """The same code again uploads and changes nothing; other code of the same version is refused; a given parameter is kept."""
    first = deploy("--yes", "--parameter", "Days=14")
    files = deploy.files()
    again = deploy("--yes", "--output", "json")
    untouched = deploy.files() == files
    deploy.template.write_text(TEMPLATE.replace("Outputs:", "  Topic: {Type: AWS::SNS::Topic}\nOutputs:"))
    taken = deploy("--yes")
    labelled = deploy("--yes", "--label", "fix.1", "--output", "json")

    assert first.code == 0, first.err
    assert first.err.startswith("account  123456789012, in us-east-1\n")
    assert f"{deploy.stack}  CREATE_COMPLETE" in first.err
    assert first.out.startswith(f"the stack {deploy.stack} is created; version ")
    (wheel,) = (name for name in files if name.endswith(".whl"))
    assert f"Program  s3://{deploy.stack}/{wheel}" in first.out
    assert (again.code, again.json["outcome"], any(file["is_new"] for file in again.json["files"]), untouched) == (
        0,
        "unchanged",
        False,
        True,
    )
    assert (taken.code, "already there with other content" in taken.err, "1 file(s) differ: lake.yaml" in taken.err) == (2, True, True)
    assert (labelled.code, labelled.json["outcome"], (deploy.parameters() or {})["Days"]) == (0, "updated", "14"), labelled.err
    assert [(change["action"], change["resource"]) for change in labelled.json["changes"]] == [("Add", "Topic")]
    assert labelled.json["artifacts"].endswith("-fix.1/")
    assert labelled.json["outputs"]["Program"].startswith(labelled.json["artifacts"])
    assert deploy.change_sets() == []


def test_a_dry_run_leaves_nothing_behind(deploy: Deploy) -> None:
    """No file, no change set, no stack that is only under review; and a stack that is there as it was."""
    new = deploy("--dry-run")
    left = (deploy.files(), deploy.parameters())
    assert deploy("--yes").code == 0
    before = (deploy.files(), deploy.parameters())
    old = deploy("--dry-run", "--parameter", "Days=30", "--output", "json")

    assert (new.code, "nothing was uploaded or changed" in new.out) == (0, True), new.err
    assert new.out.startswith("account  123456789012, in us-east-1\n")
    assert (old.json["account"], old.json["region"]) == ("123456789012", "us-east-1")
    assert [line.split() for line in new.out.splitlines() if line.startswith("Add")] == [
        ["Add", "Items", "AWS::DynamoDB::Table"],
        ["Add", "Log", "AWS::Logs::LogGroup"],
    ]
    assert left == ({}, None)
    assert (old.code, [change["resource"] for change in old.json["changes"]]) == (0, ["Log"])
    assert ((deploy.files(), deploy.parameters()), deploy.change_sets()) == (before, [])


def test_a_stack_that_somebody_else_reviews_stays(deploy: Deploy) -> None:
    """With that person's change set; and a deploy goes on from there."""
    theirs = {"ParameterKey": "ControllerWheel", "ParameterValue": "w.whl"}, {"ParameterKey": "ArtifactPrefix", "ParameterValue": "p/"}
    parameters = [*theirs, {"ParameterKey": "ArtifactBucket", "ParameterValue": deploy.stack}]
    more = {"TemplateBody": TEMPLATE, "ChangeSetType": "CREATE", "Parameters": parameters}
    deploy.cloudformation.create_change_set(StackName=deploy.stack, ChangeSetName="theirs", **more)

    looked = deploy("--dry-run")
    kept = deploy.change_sets()
    done = deploy("--yes", "--output", "json")

    assert (looked.code, kept) == (0, ["theirs"]), looked.err
    assert (done.code, done.json["outcome"]) == (0, "created"), done.err


def test_a_no_leaves_the_stack_as_it_was(deploy: Deploy, monkeypatch: pytest.MonkeyPatch) -> None:
    """Asked on a terminal; without one and without --yes it is refused. The uploaded files stay."""
    stdin = io.StringIO("n\n")
    monkeypatch.setattr(sys, "stdin", stdin)
    refused = deploy()
    stdin.isatty = lambda: True  # type: ignore[method-assign]
    declined = deploy()

    assert (refused.code, "nobody can be asked here" in refused.err) == (2, True), refused.err
    assert (declined.code, "nothing was changed" in declined.err) == (1, True), declined.err
    assert (deploy.parameters(), len(deploy.files()) > 3) == (None, True)


def test_what_would_part_with_data_is_refused(deploy: Deploy) -> None:
    """A yes is not enough, for a replaced table as for a removed one."""
    assert deploy("--yes").code == 0
    replaced = deploy("--yes", "--parameter", f"Name={deploy.stack}")
    start, end = TEMPLATE.index("  Items:"), TEMPLATE.index("  Log:")
    deploy.template.write_text(TEMPLATE[:start] + TEMPLATE[end:])
    removed = deploy("--yes", "--label", "without")
    allowed = deploy("--yes", "--label", "without", "--allow-replacement", "--output", "json")

    assert (replaced.code, "would be replaced by a new, empty one" in replaced.err) == (2, True), replaced.err
    assert (removed.code, "ATTENTION: Items (Table" in removed.err, "what holds its data: Items" in removed.err) == (2, True, True)
    assert (allowed.code, allowed.json["parting"]) == (0, ["Items"])
    assert deploy.change_sets() == []


def test_what_would_leave_data_behind_is_refused(deploy: Deploy) -> None:
    """The roles would follow a folder, and what lies in it would not: as for a replaced table a yes is not enough. The same one is fine."""
    moved = [f"--parameter={name}" for name in ("RawPrefix=dms/", "LakePrefix=tables/", "WorkPrefix=jobs/")]
    assert deploy("--yes").code == 0
    refused = deploy("--yes", "--parameter", "Days=30", *moved)
    looked = deploy("--dry-run", "--parameter", "Days=30", *moved, "--output", "json")
    same = deploy("--yes", "--parameter", "Days=30", "--parameter", "LakePrefix=lake/", "--output", "json")
    allowed = deploy("--yes", "--parameter", "Days=60", *moved, "--allow-replacement")

    assert (refused.code, "what holds its data: LakePrefix, RawPrefix, WorkPrefix" in refused.err) == (2, True), refused.err
    assert "ATTENTION: LakePrefix would be tables/ in place of lake/: " in refused.err
    assert "ATTENTION: RawPrefix would be dms/ in place of nothing: " in refused.err
    assert (looked.code, looked.json["moves"], looked.json["parting"]) == (0, ["LakePrefix", "RawPrefix", "WorkPrefix"], [])
    assert (same.code, same.json["moves"]) == (0, []), same.err
    assert (allowed.code, (deploy.parameters() or {})["LakePrefix"]) == (0, "tables/"), allowed.err
    assert deploy.change_sets() == []


def test_the_installation_that_it_makes_runs(embedded_aws: EmbeddedAws, lake_command: Command) -> None:
    """The real template, with nothing given: the settings and the first run that it prints work as they stand."""
    embedded_aws.client("s3").create_bucket(Bucket="programs-of-all")
    done = lake_command("deploy", "--stack", "warehouse", "--artifacts", "s3://programs-of-all", "--yes", "--output", "json")
    assert done.code == 0, done.err
    outputs = done.json["outputs"]

    run = embedded_aws.run_job(outputs["FirstRun"].rpartition(" ")[2])

    assert run["JobRunState"] == "SUCCEEDED", embedded_aws.log_file(run["Id"]).read_text()
    assert f"DMSLAKE_STATE_TABLE={outputs['StateTable']} DMSLAKE_DATABASE=warehouse DMSLAKE_JOB_PREFIX=warehouse-" in outputs["Settings"]


REFUSED = [
    (["--parameter", "Days"], 2, "not a parameter: 'Days'"),
    (["--parameter", "Day=1"], 2, "it has: Days, LakePrefix, Name, RawPrefix, WorkPrefix"),
    (["--parameter", "ArtifactPrefix=x/"], 2, "is filled in by deploy"),
    (["--label", "a b"], 2, "not a label: 'a b'"),
    (["--artifacts", "s3://nowhere-at-all/x"], 3, "aws s3 mb s3://nowhere-at-all"),
]


def test_a_wrong_call_says_what_is_wrong_and_leaves_no_stack(deploy: Deploy) -> None:
    for words, code, says in REFUSED:
        done = deploy("--dry-run", *words)
        assert (done.code, says in done.err) == (code, True), done.err

    assert (deploy.files(), deploy.parameters()) == ({}, None)


class Denies(BaseHTTPRequestHandler):
    """A CloudFormation that allows nobody anything."""

    def do_POST(self) -> None:
        body = b"<ErrorResponse><Error><Code>AccessDenied</Code><Message>not authorized</Message></Error></ErrorResponse>"
        self.send_response(403)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        """Nothing."""


@pytest.fixture
def denied() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Denies)
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


def test_without_permission_a_dry_run_shows_the_files(deploy: Deploy, denied: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """And says which permission it lacks; its template is gone again."""
    monkeypatch.setenv("AWS_ENDPOINT_URL_CLOUDFORMATION", denied)

    done = deploy("--dry-run")

    assert (done.code, deploy.files()) == (3, {})
    assert "file(s) to upload" in done.out
    assert "allow DescribeStacks" in done.out


def test_a_file_that_somebody_else_wrote_meanwhile_is_not_replaced(deploy: Deploy) -> None:
    """Between the look and the upload; the same content is fine."""
    artifacts = build_artifacts(b"ours")
    place = S3Uri(deploy.stack, "v/")
    for file in artifacts.files:
        deploy.s3.put_object(Bucket=place.bucket, Key=place.key + file.name, Body=file.data)

    upload(deploy.s3, place, artifacts, artifacts.files)
    deploy.s3.put_object(Bucket=place.bucket, Key=place.key + "lake.yaml", Body=b"them")
    with pytest.raises(UsageError, match="already there with other content"):
        upload(deploy.s3, place, artifacts, artifacts.files)

    assert deploy.s3.get_object(Bucket=place.bucket, Key=place.key + "lake.yaml")["Body"].read() == b"them"


# --- what moto's CloudFormation never says: answers in AWS's shapes, checked against its model by botocore's Stubber

STACK = "arn:aws:cloudformation:us-east-1:123456789012:stack/lake/1"
SET = ChangeSet("arn:aws:cloudformation:us-east-1:123456789012:changeSet/one/1", STACK, "CREATE")
TIMES = {"Timestamp": "2024-05-01T12:00:00Z", "StackName": "lake", "StackId": STACK}


def stubbed() -> tuple[Stack, Stubber, list[str]]:
    """A stack, what it will be answered, and what it says."""
    keys = {name.lower(): CREDENTIALS[name] for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY")}
    client = boto3.client("cloudformation", region_name="us-east-1", **keys)
    said: list[str] = []
    return Stack(client, "lake", lambda: None, said.append), Stubber(client), said


def event(number: int, resource: str, status: str, reason: str = "") -> dict[str, Any]:
    own = (
        {"ResourceType": "AWS::CloudFormation::Stack", "PhysicalResourceId": STACK}
        if resource == "lake"
        else {"ResourceType": "AWS::S3::Bucket"}
    )
    more = {"ResourceStatusReason": reason} if reason else {}
    return {**TIMES, "EventId": str(number), "LogicalResourceId": resource, "ResourceStatus": status, **own, **more}


def test_a_failed_stack_is_told_by_the_first_resource_that_failed() -> None:
    """Each event once; what was cancelled because of it is no reason."""
    stack, stub, said = stubbed()
    old = [event(1, "lake", "REVIEW_IN_PROGRESS")]
    half = [event(4, "Table", "CREATE_FAILED", "Resource creation cancelled"), event(3, "Raw", "CREATE_FAILED", "taken"), *old]
    whole = [event(5, "lake", "ROLLBACK_COMPLETE"), *half]
    stub.add_response("describe_stack_events", {"StackEvents": old})
    stub.add_response("execute_change_set", {})
    for events in (old, half, whole):
        stub.add_response("describe_stack_events", {"StackEvents": events})

    with stub, pytest.raises(DmslakeError, match=r"lake is ROLLBACK_COMPLETE: Raw \(AWS::S3::Bucket\): taken\n.*delete-stack") as caught:
        stack.execute(SET)

    assert caught.value.code == "stack-failed"
    assert said == ["Raw  CREATE_FAILED  taken", "Table  CREATE_FAILED  Resource creation cancelled", "lake  ROLLBACK_COMPLETE"]


def test_a_replacement_is_read_from_all_pages_and_a_failed_change_set_is_deleted() -> None:
    """The first has two pages; the second one's reason is the error; the third has nothing to change."""
    stack, stub, _ = stubbed()
    found = {"StackName": "lake", "StackId": STACK, "StackStatus": "UPDATE_COMPLETE", "CreationTime": TIMES["Timestamp"]}
    bucket = {"Action": "Modify", "LogicalResourceId": "Lake", "ResourceType": "AWS::S3::Bucket", "Replacement": "True"}
    role = {"Action": "Modify", "LogicalResourceId": "Role", "ResourceType": "AWS::IAM::Role", "Replacement": "True"}
    answers: list[list[dict[str, Any]]] = [
        [
            {"Status": "CREATE_IN_PROGRESS"},
            {"Status": "CREATE_COMPLETE", "NextToken": "2", "Changes": [{"Type": "Resource", "ResourceChange": role}]},
            {"Status": "CREATE_COMPLETE", "Changes": [{"Type": "Resource", "ResourceChange": bucket}]},
        ],
        [{"Status": "FAILED", "StatusReason": "Parameters: [Shards] must have values"}],
        [{"Status": "FAILED", "StatusReason": "No updates are to be performed."}],
    ]
    made: list[ChangeSet] = []
    for described in answers:
        stub.add_response("describe_stacks", {"Stacks": [found]})
        stub.add_response("get_template_summary", {"Parameters": []})
        stub.add_response("create_change_set", {"Id": SET.id, "StackId": STACK})
        for answer in described:
            stub.add_response("describe_change_set", answer)
    stub_delete(stub, answers)

    with stub:
        made.append(stack.make_change_set("one", "https://s3/x", {}, {}))
        with pytest.raises(ConfigurationError, match="must have values"):
            stack.make_change_set("one", "https://s3/x", {}, {})
        made.append(stack.make_change_set("one", "https://s3/x", {}, {}))

    assert [change.resource for change in made[0].changes] == ["Role", "Lake"]
    assert [change.warning.partition(" would")[0] for change in made[0].parting] == ["Lake (Bucket of the stack)"]
    assert made[1].changes == ()


def stub_delete(stub: Stubber, answers: list[list[dict[str, Any]]]) -> None:
    """The failed one's deletion comes before the third is asked for."""
    place = next(at for at, each in enumerate(stub._queue) if each["response"][1].get("StatusReason", "").startswith("Parameters"))
    stub.add_response("delete_change_set", {})
    stub._queue.insert(place + 1, stub._queue.pop())


def test_only_a_stack_at_rest_is_changed() -> None:
    """Each other status has its way out."""
    for status in (None, "REVIEW_IN_PROGRESS", "CREATE_COMPLETE", "UPDATE_ROLLBACK_COMPLETE"):
        check_status("lake", Found(STACK, status) if status else None)
    refused = {
        "UPDATE_IN_PROGRESS": (RetryLater, "run again when its operation has ended"),
        "ROLLBACK_COMPLETE": (ConfigurationError, "delete-stack --stack-name lake"),
        "UPDATE_ROLLBACK_FAILED": (ConfigurationError, "continue-update-rollback"),
        "DELETE_FAILED": (ConfigurationError, "describe-stack-events"),
    }
    for status, (kind, says) in refused.items():
        with pytest.raises(kind, match=says):
            check_status("lake", Found(STACK, status))


def test_parameters_are_filled_given_kept_or_left_to_the_template() -> None:
    """In this order; one that the template no longer has is dropped."""
    chosen = choose_parameters(["A", "B", "C", "D"], ["B", "C", "Gone"], {"B": "given"}, {"A": "filled"})

    assert chosen == [
        {"ParameterKey": "A", "ParameterValue": "filled"},
        {"ParameterKey": "B", "ParameterValue": "given"},
        {"ParameterKey": "C", "UsePreviousValue": True},
    ]


def test_only_what_holds_data_is_called_out() -> None:
    assert not Change("Remove", "Role", "AWS::IAM::Role").parts
    assert not Change("Modify", "Lake", "AWS::S3::Bucket", "False").parts
    assert Change("Modify", "Lake", "AWS::S3::Bucket", "Conditional").parts
    assert "might be replaced" in Change("Modify", "Lake", "AWS::S3::Bucket", "Conditional").warning
    assert not is_unchanged("Template error")


def test_a_place_moves_if_a_stack_that_is_there_gets_another_value() -> None:
    """Also the bucket, where both are buckets of one's own: no resource of the stack changes then."""
    before = {"LakeBucket": "one", "LakePrefix": "lake/", "RawBucket": "", "RollbackDays": "30"}

    found = find_moves(before, {"LakeBucket": "two", "LakePrefix": "lake/", "WorkPrefix": "new/", "RollbackDays": "7"})

    assert found == (Move("LakeBucket", "one", "two"),)
