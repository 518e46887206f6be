"""The code that Glue's Python shell runs, on a real Python 3.9 with the newest boto3 that it can have."""

from __future__ import annotations

import json
import uuid
from pathlib import Path

import pytest

from tests.import_rules import LAYERS, layer_of, module_name
from tests.runtimes.python39 import NEWEST_BOTO3, PREINSTALLED_BOTO3, Python39

ROOT = Path(__file__).parents[2]

# The command line and the pages are for laptops: click, rich and jinja2 are not on Glue's Python shell.
SHELL_MODULES = sorted(
    name
    for folder in ("glue_jobs", "controller")
    for path in (ROOT / folder).rglob("*.py")
    if LAYERS[layer_of(name := module_name(path.relative_to(ROOT).as_posix()))].python39
    and not name.startswith(("controller.cli", "controller.pages"))
)


# What the jobs ask of AWS, by the clients that they use: prints what came back.
SPEAKS_TO_AWS = """
import json, os
from glue_jobs.aws.clients import make_clients

clients, bucket = make_clients(os.environ), os.environ["BUCKET"]
clients.s3.create_bucket(Bucket=bucket)
upload = clients.s3.create_multipart_upload(Bucket=bucket, Key="a", ChecksumAlgorithm="CRC32")["UploadId"]
part = clients.s3.upload_part(Bucket=bucket, Key="a", UploadId=upload, PartNumber=1, Body=b"abc")
parts = {"Parts": [{"PartNumber": 1, "ETag": part["ETag"]}]}
clients.s3.complete_multipart_upload(Bucket=bucket, Key="a", UploadId=upload, MultipartUpload=parts)
clients.dynamodb.create_table(
    TableName=bucket,
    BillingMode="PAY_PER_REQUEST",
    KeySchema=[{"AttributeName": "path", "KeyType": "HASH"}],
    AttributeDefinitions=[{"AttributeName": "path", "AttributeType": "S"}],
)
item = {"TableName": bucket, "Item": {"path": {"S": "p"}}, "ConditionExpression": "attribute_not_exists(#p)"}
clients.dynamodb.put_item(ExpressionAttributeNames={"#p": "path"}, **item)
try:
    clients.dynamodb.put_item(ExpressionAttributeNames={"#p": "path"}, **item)
    second = "taken"
except clients.dynamodb.exceptions.ConditionalCheckFailedException:
    second = "refused"
clients.glue.create_database(DatabaseInput={"Name": bucket})
databases = [each["Name"] for each in clients.glue.get_databases()["DatabaseList"]]
body = clients.s3.get_object(Bucket=bucket, Key="a")["Body"].read().decode()
print(json.dumps({"body": body, "second": second, "database": bucket in databases}))
"""


@pytest.fixture(params=["python39", "python39_preinstalled"])
def either_boto3(request: pytest.FixtureRequest) -> Python39:
    """One after the other: the newest boto3 for Python 3.9, the one that the Python shell has by itself."""
    shell: Python39 = request.getfixturevalue(request.param)
    return shell


def test_it_is_the_shells_python_and_boto3(python39: Python39, python39_preinstalled: Python39) -> None:
    """The other tests of this folder run where they say they do."""
    versions = "import sys, boto3; print(*sys.version_info[:2], boto3.__version__)"

    found = [each.run39(versions).stdout.split() for each in (python39, python39_preinstalled)]

    assert found == [["3", "9", name.partition("==")[2]] for name in (NEWEST_BOTO3, PREINSTALLED_BOTO3)]


def test_the_clients_reach_the_endpoint_they_are_given(either_boto3: Python39, moto_server: str) -> None:
    """S3 (a multipart upload), DynamoDB (a conditional write) and Glue answer through AWS_ENDPOINT_URL."""
    bucket = f"b{uuid.uuid4().hex}"
    keys = {"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test"}

    done = either_boto3.run39(SPEAKS_TO_AWS, {"AWS_ENDPOINT_URL": moto_server, "BUCKET": bucket, **keys})

    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == {"body": "abc", "second": "refused", "database": True}


# Each in a child of its own, so that none finds what another has imported; the parent has loaded boto3, which takes longest.
IMPORTS_EACH = """
import importlib, os, sys, boto3

failed = []
for name in sys.argv[1:]:
    child = os.fork()
    if not child:
        module = importlib.import_module(name)
        os._exit(0 if module.__file__.startswith(sys.path[1]) else 2)
    if os.waitpid(child, 0)[1]:
        failed.append(name)
print(*failed)
"""


def test_each_module_imports(python39: Python39) -> None:
    """From the built wheel, with boto3 as its only company."""
    done = python39.run39(["-c", IMPORTS_EACH, *SHELL_MODULES])

    assert len(SHELL_MODULES) > 50
    assert (done.returncode, done.stdout.split()) == (0, []), done.stderr


def test_a_module_that_can_not_be_imported_is_named(python39: Python39) -> None:
    """What the command line needs is not there."""
    done = python39.run39(["-c", IMPORTS_EACH, "controller.plan", "controller.cli.entry"])

    assert done.stdout.split() == ["controller.cli.entry"]
